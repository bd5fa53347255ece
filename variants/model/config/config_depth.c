/* SPDX-License-Identifier: MIT
 *
 * Letters of a layer, and the numbers of what its layers are and of steps. */
#include "config_depth.h"
#include "choices.h"
#include "exclusions.h"

/* The letters of a layer: attention may come again, with the same weights. */
static enum status check_subs(const struct config *c, struct err *e)
{
    const char *const name = c->variant->name;

    if (strcmp(c->subs, USUAL_SUBS) == 0)
        return OK;
    for (const char *at = c->subs; *at; at++)
        if (!strchr("sfcwlxdmb", *at) || (*at != SUB_ATTENTION && strchr(at + 1, *at)))
            return fail(e, E_USAGE,
                        "%s: layers of \"%s\"  -> write s for attention, and once each f "
                        "feed-forward, c convolution at the input, w convolution, b convolutions "
                        "side by side, x slots, d attention with a trained mask, m attention of "
                        "more heads; l attention of a part of the channels",
                        name, c->subs);
    if (!strpbrk(c->subs, "sl") || (strchr(c->subs, SUB_ATTENTION) && strchr(c->subs, SUB_LSRA)))
        return fail(e, E_USAGE, "%s: layers of \"%s\"  -> add an s, or one l", name, c->subs);
    return OK;
}

/* What heads must be, those of the attention with more of them must be, too. */
static enum status check_many(const struct config *c, struct err *e)
{
    if (!strchr(c->subs, SUB_MANY))
        return OK;
    struct config many = config_of_many(c);
    strcpy(many.subs, USUAL_SUBS);
    return config_check(&many, e);
}

static enum status check_lsra(const struct config *c, struct err *e)
{
    const char *const name = c->variant->name;
    const struct lsra *const t = &c->lsra;

    if (!strchr(c->subs, SUB_LSRA))
        return t->split == 0
                   ? OK
                   : fail(e, E_USAGE, "%s: lsra_split %d without an l in \"%s\"  -> use 0", name,
                          t->split, c->subs);
    if (t->split < 1 || t->split >= c->D || t->kernel < 1 || t->heads < 1 ||
        (c->D - t->split) % t->heads)
        return fail(e, E_USAGE,
                    "%s: %d of %d channels attend, and %d groups share a convolution of %d rows  "
                    "-> use a part of the channels, and groups of one width",
                    name, t->split, c->D, t->heads, t->kernel);
    return OK;
}

/* What is carried is read somewhere, and written from what the output reads. */
static enum status check_slots(const struct config *c, struct err *e)
{
    const char *const name = c->variant->name;
    const bool reads = strchr(c->subs, SUB_READ);

    if (reads != (c->slots.n > 0))
        return fail(e, E_USAGE, "%s: %d slots and layers of \"%s\"  -> use 1 or more, and an x",
                    name, c->slots.n, c->subs);
    if (!reads)
        return OK;
    if (!(c->slots.temp > 0))
        return fail(e, E_USAGE, "%s: slot_temp %g  -> use more than 0", name,
                    (double)c->slots.temp);
    return OK;
}

static enum status check_steps(const struct config *c, struct err *e)
{
    const char *name = c->variant->name;

    if (c->halt != HALT_NEVER && !c->steps)
        return fail(e, E_USAGE, "%s: halting %s without steps  -> halting needs steps", name,
                    halt_name[c->halt]);
    if (c->steps * c->N > MAX_LAYERS)
        return fail(e, E_USAGE, "%s: %d steps of %d layers  -> use at most %d together", name,
                    c->steps, c->N, (int)MAX_LAYERS);
    if (c->steps && c->D % 2)
        return fail(e, E_USAGE, "%s: --d-model %d is odd  -> sinusoids come in pairs, give %d",
                    name, c->D, c->D + 1);
    return c->halt_eps < 1
               ? OK
               : fail(e, E_USAGE, "%s: halt_eps %g halts nothing  -> use 0 to less than 1", name,
                      (double)c->halt_eps);
}

/* Its layers are the model's, in both directions. */
struct config config_of_encoder(const struct config *c)
{
    struct config enc = *c;

    enc.N = c->enc_layers;
    enc.enc_layers = 0;
    enc.transparent = TRANSPARENT_NONE;
    enc.causal = DIRECTION_BOTH;
    model_choices_settle(&enc);
    for (char *at = enc.subs; c->enc_padded && *at; at++)
        *at = *at == SUB_ATTENTION ? SUB_READ_BOTH : *at;
    return enc;
}

static enum status check_encoder(const struct config *c, struct err *e)
{
    const char *const name = c->variant->name;

    if (!c->enc_layers)
        return OK;
    const struct config enc = config_of_encoder(c);
    struct err why;
    if (exclusions_check(&enc, &why) != OK) {
        const char *const what = why.msg + strlen(name) + strlen(": ");
        const char *const advice = strstr(what, "  -> ");
        return fail(e, E_USAGE,
                    "%s: an encoder sees its text in both directions, and %.*s  -> choose a "
                    "variant that takes --direction both",
                    name, advice ? (int)(advice - what) : (int)strlen(what), what);
    }
    if (!config_can_look_ahead(&enc))
        return fail(e, E_USAGE,
                    "%s: an encoder sees its text in both directions, this variant the past only  "
                    "-> choose one that takes --direction both",
                    name);
    if (c->enc_padded && !config_can_cross(c))
        return fail(e, E_USAGE,
                    "%s: texts of different lengths need scores that are q.k and nothing else  -> "
                    "use texts of one length",
                    name);
    return OK;
}

enum status config_check_depth(const struct config *c, struct err *e)
{
    TRY(check_subs(c, e));
    TRY(check_many(c, e));
    TRY(check_lsra(c, e));
    TRY(check_slots(c, e));
    TRY(check_encoder(c, e));
    return check_steps(c, e);
}
