/* SPDX-License-Identifier: MIT
 *
 * Which choices make sense together of what a model's layers are and which of them a position runs:
 * letters of a layer, steps, exits, gates. */
#include "config_depth.h"
#include "choices.h"
#include "variants/parts/parts.h"

#include <string.h>

/* The letters of a layer: attention may come again, with the same weights. */
static enum status check_subs(const struct config *c, struct err *e)
{
    const char *const name = c->variant->name;

    if (strcmp(c->subs, USUAL_SUBS) == 0)
        return OK;
    for (const char *at = c->subs; *at; at++)
        if (!strchr("sfcwlxd", *at) || (*at != SUB_ATTENTION && strchr(at + 1, *at)))
            return fail(e, E_USAGE,
                        "%s: layers of \"%s\"  -> s attention, and once each f feed-forward, c "
                        "convolution at the input, w convolution, x slots, d attention with a "
                        "trained mask; l attention of a part of the channels",
                        name, c->subs);
    if (!strpbrk(c->subs, "sl") || (strchr(c->subs, SUB_ATTENTION) && strchr(c->subs, SUB_LSRA)))
        return fail(e, E_USAGE, "%s: layers of \"%s\"  -> an s somewhere, or one l", name, c->subs);
    if ((c->wiring != WIRING_PRE && c->wiring != WIRING_POST) || *c->order || c->steps ||
        c->stack.n || c->score_residual != SCORE_RESIDUAL_NONE || c->around.value_residual)
        return fail(e, E_USAGE,
                    "%s: layers of \"%s\" with norm %s, steps, an order of sub-layers or what "
                    "passes from layer to layer  -> norm pre or post, none of the others",
                    name, c->subs, wiring_name[c->wiring]);
    return OK;
}

/* Attention of a part of the channels knows no terms but positions, and these no width. */
static enum status check_lsra(const struct config *c, struct err *e)
{
    const char *const name = c->variant->name;
    const struct lsra *const t = &c->lsra;

    if (!strchr(c->subs, SUB_LSRA))
        return t->split == 0 ? OK
                             : fail(e, E_USAGE, "%s: lsra_split %d without an l in \"%s\"  -> 0",
                                    name, t->split, c->subs);
    if (t->split < 1 || t->split >= c->D || t->kernel < 1 || t->heads < 1 ||
        (c->D - t->split) % t->heads)
        return fail(e, E_USAGE,
                    "%s: %d of %d channels attend, and %d groups share a convolution of %d rows  "
                    "-> a part of the channels, and groups of one width",
                    name, t->split, c->D, t->heads, t->kernel);
    if (config_has_around(c) || c->attn_extra || c->qkv_map || c->lazy_group || c->stream_sinks ||
        c->mixer || config_mem(c)->compressed || c->pos->enter || c->pos->no_content ||
        (c->pos->reserve && c->pos->n_pos_encoding && !c->pos->rotate))
        return fail(e, E_USAGE,
                    "%s: attention of a part of the channels with positions %s or terms of "
                    "attention  -> such as alibi, none",
                    name, c->pos->name);
    return OK;
}

/* What left a layer is remembered by its only attention. */
static enum status check_recur(const struct config *c, struct err *e)
{
    const char *const at = strchr(c->subs, SUB_ATTENTION);

    if (c->recur == RECUR_SHIFTED)
        return OK;
    if (c->steps || *c->order || c->exit || c->mixer || c->stack.n || c->lsra.split ||
        config_mem(c)->compressed || (at && strchr(at + 1, SUB_ATTENTION)))
        return fail(e, E_USAGE,
                    "%s: a memory of what left a layer with steps, exits, an order, a mixer, a "
                    "compressed memory or two attentions in a layer  -> none of them",
                    c->variant->name);
    return OK;
}

/* Layers that attend to one memory, token by token, do nothing else across tokens. */
static enum status check_feedback(const struct config *c, struct err *e)
{
    const char *const name = c->variant->name;

    if (!c->feedback.on)
        return OK;
    if (c->steps || *c->order || c->exit || c->transparent || c->cond || c->recur || c->mixer ||
        c->stack.n || c->rnn_layers || c->lazy_group || strcmp(c->subs, USUAL_SUBS) != 0 ||
        (c->wiring != WIRING_PRE && c->wiring != WIRING_POST) || c->norm_kind == NORM_POWER ||
        (c->ffn && (c->ffn->mixes || c->ffn->read_tokens || c->ffn->aux)))
        return fail(e, E_USAGE,
                    "%s: one memory of all layers with norm %s, steps, exits, other sub-layers or "
                    "what passes between rows  -> norm pre or post, none of the others",
                    name, wiring_name[c->wiring]);
    if (!c->causal || c->attn_bias || c->masks.n || c->head_windows.n || c->layer_windows.n ||
        c->stream_sinks || config_has_around(c) || c->attn_extra || c->qkv_map ||
        c->score_residual != SCORE_RESIDUAL_NONE || c->same_length || c->clamp_len ||
        config_mem(c)->compressed || config_mem(c)->state ||
        (c->pos != &pos_alibi && c->pos != &pos_recent && c->pos != pos_find("none")))
        return fail(e, E_USAGE,
                    "%s: one memory of all layers with positions %s, biases, masks or terms of "
                    "attention  -> alibi, recent or none",
                    name, c->pos->name);
    return OK;
}

/* What is carried is read somewhere, and written from what the output reads. */
static enum status check_slots(const struct config *c, struct err *e)
{
    const char *const name = c->variant->name;
    const bool reads = strchr(c->subs, SUB_READ);

    if (reads != (c->slots.n > 0))
        return fail(e, E_USAGE, "%s: %d slots and layers of \"%s\"  -> 1 or more, and an x", name,
                    c->slots.n, c->subs);
    if (!reads)
        return OK;
    if (!(c->slots.temp > 0))
        return fail(e, E_USAGE, "%s: slot_temp %g  -> more than 0", name, (double)c->slots.temp);
    if (c->exit || c->transparent || c->recur || c->attn_bias || !c->causal || c->mixer ||
        c->stack.n || c->norm_kind == NORM_POWER || (c->ffn && c->ffn->aux))
        return fail(e, E_USAGE,
                    "%s: slots with exits, a sum of all layers, biases of attention, norm_kind "
                    "power, experts or a mixer  -> none of them",
                    name);
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

/* What entered a layer is read by its attention and its feed-forward network. */
static enum status check_parallel(const struct config *c, struct err *e)
{
    if (c->wiring == WIRING_PARALLEL &&
        (c->rnn_layers || strcmp(c->subs, USUAL_SUBS) != 0 || c->pos->enter))
        return fail(e, E_USAGE,
                    "%s: norm parallel with layers of \"%s\", recurrent sub-layers or positions "
                    "that enter each layer  -> attention and feed-forward only",
                    c->variant->name, c->subs);
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
    if (c->steps && (c->pos->embed || c->pos->enter || c->pos->from_tokens))
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
        st = check_lsra(c, e);
    if (st == OK)
        st = check_recur(c, e);
    if (st == OK)
        st = check_feedback(c, e);
    if (st == OK)
        st = check_slots(c, e);
    if (st == OK)
        st = check_ways(c, e);
    if (st == OK)
        st = check_parallel(c, e);
    return st == OK ? check_steps(c, e) : st;
}
