/* SPDX-License-Identifier: MIT
 *
 * Which checkpoints are language models that can be scored: nothing in them is unread, they are
 * causal or fill in hidden tokens, and in what no option chooses they are as their variant. */
#include "checkpoint.h"
#include "variants/model/attention/around.h"
#include "variants/model/config/keys.h"
#include "variants/model/lm/lm.h"

/* Keys that say more than one field, and where weights come from. All others are rows: of the model
 * (keys.h) and of its parts. */
static const char *const further_keys[] = {
    "format", "kind",        "variant", "pos",       "scheme",     "form",       "mixer",
    "synth",  "ut",          "talking", "sink",      "step",       "seed",       "unit",
    "corpus", "corpus_xxh3", "source",  "tokenizer", "mask_share", "lora_alpha", "fan_in_fan_out",
};

/* What nothing has read may decide what the weights mean. */
static enum status no_strange_keys(const struct safetensors *s, struct err *e)
{
    for (int i = 0; i < s->n_meta; i++) {
        const char *const key = s->meta[2 * i];
        size_t k = 0;
        while (k < ARRAY_LEN(further_keys) && strcmp(further_keys[k], key) != 0)
            k++;
        if (k == ARRAY_LEN(further_keys) && !s->asked_meta[i])
            return safetensors_fail(s, e,
                                    "metadata %.64s is of nothing that this model has  -> use the "
                                    "program that the file was made with",
                                    key);
    }
    return OK;
}

/* Of what is around the core of attention, the key in which two models differ; NULL = none. Numbers
 * and settings of parts may be the file's own. */
static const char *around_differs(const struct config *a, const struct config *b)
{
    for (enum part_slot s = SLOT_AROUND; s < SLOT_COUNT; s++) {
        const struct part_numbers *const numbers = config_numbers_of(a, s);
        const struct choice *const first = numbers ? numbers->choices : NULL;
        if (first && !around_of(s)->training &&
            (around_has(a, s) != around_has(b, s) ||
             (first->codec == CODEC_WORD && !first->setting &&
              !choice_equal(first, config_numbers(a, s), config_numbers(b, s)))))
            return choice_key(first);
    }
    return NULL;
}

/* --set feature_map chooses among mixers. */
static bool same_mixer(const struct config *a, const struct config *b)
{
    return a->mixer == b->mixer || (has_feature_map(a) && has_feature_map(b));
}

/* Rows are reported under the variant's name: in what no option chooses it is as the variant. */
static enum status as_its_variant(const struct safetensors *s, const struct config *c,
                                  struct err *e)
{
    const struct config own = config_default(c->variant, c->D, c->H, c->dh, c->F, c->N, c->V);
    const char *const key = c->pos != own.pos                 ? "pos or scheme"
                            : !same_mixer(c, &own)            ? "mixer"
                            : c->attn_extra != own.attn_extra ? "what attention has besides"
                            : c->qkv_map != own.qkv_map       ? "dextra"
                            : !c->score_residual != !own.score_residual ? "realformer"
                            : around_differs(c, &own)                   ? around_differs(c, &own)
                            : !c->rnn_layers != !own.rnn_layers         ? "rnn_layers"
                            : (c->steps > 0) != (own.steps > 0)         ? "steps"
                            : !*c->order != !*own.order                 ? "order"
                            : c->transparent != own.transparent         ? "transparent"
                            : c->feedback.on != own.feedback.on         ? "feedback"
                            : (c->slots.n > 0) != (own.slots.n > 0)     ? "slots"
                            : !c->exit != !own.exit                     ? "exit"
                            : !c->cond != !own.cond                     ? "cond"
                                                                        : NULL;

    return key ? safetensors_fail(
                     s, e, "metadata %s is not that of variant %s  -> is it of another variant?",
                     key, c->variant->name)
               : OK;
}

enum status checkpoint_mask_share(const struct safetensors *s, double *share, struct err *e)
{
    TRY(safetensors_real(s, "mask_share", 0, share, e));

    if (!(*share >= 0 && *share <= 1))
        return safetensors_fail(s, e, "metadata mask_share is %g  -> write a share from 0 to 1",
                                *share);
    return OK;
}

/* Who sees a whole text fills in what is hidden of it; who sees the past predicts what follows. */
static enum status has_objective(const struct safetensors *s, const struct config *c, struct err *e)
{
    double share = 0;

    TRY(checkpoint_mask_share(s, &share, e));

    if (!c->causal && share == 0)
        return safetensors_fail(s, e,
                                "metadata causal is 0: tokens see those that they are to predict  "
                                "-> a causal model, or one of hidden tokens, with mask_share");
    if (c->causal && share > 0)
        return safetensors_fail(
            s, e,
            "metadata mask_share is %g, but tokens do not see what follows them  -> write causal 0",
            share);
    return OK;
}

enum status checkpoint_lm(const struct safetensors *s, struct config *c, struct err *e)
{
    struct err why;
    struct lm m;

    TRY(checkpoint_config(s, "", c, e));
    TRY(no_strange_keys(s, e));
    TRY(has_objective(s, c, e));
    if (c->V < 1)
        return safetensors_fail(s, e, "metadata vocab is missing  -> give a language model");
    enum status st = lm_init(&m, c, &why);
    if (st != OK) /* for want of memory it is not the file's fault */
        return st == E_NOMEM ? fail(e, st, "%s", why.msg) : safetensors_fail(s, e, "%s", why.msg);
    st = checkpoint_fits(s, "", &m.params, e);
    lm_free(&m);
    TRY(st);
    return as_its_variant(s, c, e);
}
