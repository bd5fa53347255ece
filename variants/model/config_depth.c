/* SPDX-License-Identifier: MIT
 *
 * Which choices make sense together of what a model's layers are and which of them a position runs:
 * letters of a layer, steps, exits, gates. */
#include "config_depth.h"
#include "choices.h"

#include <string.h>

/* The letters of a layer: attention may come again, with the same weights. */
static enum status check_subs(const struct config *c, struct err *e)
{
    const char *const name = c->variant->name;

    if (strcmp(c->subs, USUAL_SUBS) == 0)
        return OK;
    for (const char *at = c->subs; *at; at++)
        if (!strchr("sfcw", *at) || (*at != 's' && strchr(at + 1, *at)))
            return fail(e, E_USAGE,
                        "%s: layers of \"%s\"  -> s attention, and once each f feed-forward, c "
                        "convolution at the input, w convolution",
                        name, c->subs);
    if (!strchr(c->subs, 's'))
        return fail(e, E_USAGE, "%s: layers of \"%s\" have no attention  -> an s somewhere", name,
                    c->subs);
    if ((c->wiring != WIRING_PRE && c->wiring != WIRING_POST) || *c->order || c->steps ||
        c->stack.n || c->score_residual != SCORE_RESIDUAL_NONE || c->around.value_residual)
        return fail(e, E_USAGE,
                    "%s: layers of \"%s\" with norm %s, steps, an order of sub-layers or what "
                    "passes from layer to layer  -> norm pre or post, none of the others",
                    name, c->subs, wiring_name[c->wiring]);
    return OK;
}

/* Ways out before the last layer, around a sub-layer, or past the last layer. */
static enum status check_ways(const struct config *c, struct err *e)
{
    const char *const name = c->variant->name;

    if (c->exit && (c->steps || *c->order || c->pos->enter || c->transparent || c->mixer ||
                    c->logit_cap != 0 || c->score_residual != SCORE_RESIDUAL_NONE))
        return fail(
            e, E_USAGE,
            "%s: early exit with steps, an order of sub-layers, a sum of all layers, a cap of "
            "logits or scores of the layer before  -> none of them",
            name);
    if (c->cond && (c->steps || *c->order || c->rnn_layers || strcmp(c->subs, USUAL_SUBS) != 0 ||
                    (c->wiring != WIRING_PRE && c->wiring != WIRING_POST)))
        return fail(
            e, E_USAGE,
            "%s: gates of sub-layers with norm %s, steps or sub-layers other than attention "
            "and feed-forward  -> norm pre or post, none of the others",
            name, wiring_name[c->wiring]);
    if (c->transparent && (c->steps || *c->order || c->pos->enter))
        return fail(
            e, E_USAGE,
            "%s: a sum of all layers with steps, an order of sub-layers or positions %s  -> "
            "none of them",
            name, c->pos->name);
    return OK;
}

static enum status check_steps(const struct config *c, struct err *e)
{
    const char *name = c->variant->name;

    if (c->halt != HALT_NEVER && !c->steps)
        return fail(e, E_USAGE, "%s: halting %s without steps  -> halting needs steps", name,
                    halt_name[c->halt]);
    if (c->steps * c->N > MAX_LAYERS)
        return fail(e, E_USAGE, "%s: %d steps of %d layers  -> at most %d together", name, c->steps,
                    c->N, (int)MAX_LAYERS);
    if (c->steps && c->D % 2)
        return fail(e, E_USAGE, "%s: --d-model %d is odd  -> sinusoids come in pairs, give %d",
                    name, c->D, c->D + 1);
    if (c->steps && (c->pos->embed || c->pos->enter))
        return fail(e, E_USAGE, "%s: %s positions beside those of its steps  -> none", name,
                    c->pos->name);
    return c->halt_eps < 1
               ? OK
               : fail(e, E_USAGE, "%s: halt_eps %g halts nothing  -> from 0 to less than 1", name,
                      (double)c->halt_eps);
}

enum status config_check_depth(const struct config *c, struct err *e)
{
    enum status st = check_subs(c, e);

    if (st == OK)
        st = check_ways(c, e);
    return st == OK ? check_steps(c, e) : st;
}
