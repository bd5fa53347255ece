/* SPDX-License-Identifier: MIT
 *
 * Training and validation of masked language models. */
#include "train_masked.h"

#include "masked.h"

#include <math.h>

enum status masked_check(const struct config *c, const struct options *o, struct err *e)
{
    const char *const name = c->variant->name;

    if (o->objective == OBJECTIVE_LM)
        return c->causal ? OK
                         : fail(e, E_UNSUPPORTED,
                                "%s is bidirectional here: tokens see those that they are to "
                                "predict  -> add --objective mlm, or choose a causal variant",
                                name);
    if (c->causal && config_can_look_ahead(c))
        return fail(e, E_UNSUPPORTED,
                    "--objective mlm: tokens of %s do not see what follows a hidden one  -> add "
                    "--direction both",
                    name);
    if (c->causal)
        return fail(e, E_UNSUPPORTED,
                    "--objective mlm: %s is causal only, and its tokens do not see what follows a "
                    "hidden one  -> choose one that sees both in bench list variants",
                    name);
    if (o->mem.v[0] != 0)
        return fail(e, E_USAGE,
                    "--objective mlm: a segment is seen whole, without a past  -> use --mem 0");
    return OK;
}

void masked_open(struct trainer *t)
{
    t->hidden = masked_count(t->opt->mask_share, t->L);
    t->corpus.unit = masked_unit(t->corpus.unit);
}

void masked_batch(struct trainer *t)
{
    const size_t part = (t->text.n - 1) / (size_t)t->all_B, at = trainer_position(t);

    lm_forget(&t->lm);
    for (int b = 0; b < t->B; b++) {
        const uint8_t *const from = t->text.at + (size_t)(t->first + b) * part + at;
        const uint64_t window =
            (uint64_t)t->optimizer.step * (uint64_t)t->all_B + (uint64_t)(t->first + b);
        int32_t *const tokens = t->tokens + b * t->L;
        for (int i = 0; i < t->L; i++)
            tokens[i] = from[i];
        masked_hide(t->hidden, t->opt->seed ^ MASKED_TRAINED, window, t->lm.c.V - 1, tokens, t->L,
                    t->places + b * t->hidden, t->targets + b * t->hidden);
    }
    t->lm.picked = t->places;
    t->lm.n_picked = t->hidden;
}

struct validation masked_validate(struct trainer *t)
{
    const size_t tokens = t->valid.n - 1;
    struct lm *const m = &t->valid_lm;
    double sum[] = {0, 0};
    int window = 0;

    lm_build_tables(m, &t->engine);
    for (size_t at = 0; at < tokens; at += (size_t)t->L, window++) {
        if (window % t->ranks.count != t->ranks.index)
            continue;
        const int n = tokens - at < (size_t)t->L ? (int)(tokens - at) : t->L;
        const int hidden = masked_count(t->opt->mask_share, n);
        for (int i = 0; i < n; i++)
            t->tokens[i] = t->valid.at[at + (size_t)i];
        masked_hide(hidden, MASKED_SCORED, (uint64_t)window, m->c.V - 1, t->tokens, n, t->places,
                    t->targets);
        m->picked = t->places;
        m->n_picked = hidden;
        lm_forget(m);
        lm_forward(m, &t->engine, t->tokens, 1, n, n, t->targets, t->nll);
        for (int i = 0; i < hidden; i++)
            sum[0] += (double)t->nll[i];
        sum[1] += hidden;
    }
    ranks_sum(&t->ranks, sum, (int)ARRAY_LEN(sum));
    return (struct validation){.nll = sum[0] / sum[1],
                               .returned = NAN,
                               .returned_error = NAN,
                               .floor = NAN,
                               .accuracy = NAN,
                               .answers = {NAN, NAN, NAN, NAN}};
}
