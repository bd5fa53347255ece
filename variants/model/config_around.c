/* SPDX-License-Identifier: MIT
 *
 * Which choices make sense together of what is done around attention and to scores, and of what
 * differs from layer to layer. */
#include "config_around.h"
#include "choices.h"
#include "variants/parts/mem.h"
#include "variants/parts/parts.h"

#include <string.h>

/* Only one term of pairs is added to scores. */
static enum status check_added(const struct config *c, struct err *e)
{
    const int adding = c->around.forget + (c->around.cope > 0) + (c->around.local > 0) +
                       c->around.man + (c->around.predict.form > 0) + c->around.camtl.on;
    if ((c->around.local || c->around.man || c->around.camtl.on) &&
        (adding > 1 || c->around.diff || c->score_residual != SCORE_RESIDUAL_NONE ||
         c->attn_extra == &extra_talking))
        return fail(e, E_USAGE,
                    "%s: preferred places, a trained mask or a task's scores with other terms of "
                    "pairs  -> one of them",
                    c->variant->name);
    return OK;
}

/* Scores that are handed on are all that there is in the next layer's. */
static enum status check_predict(const struct config *c, struct err *e)
{
    const struct around *const a = &c->around;
    const struct predict *const p = &a->predict;
    const char *const name = c->variant->name;

    if (!p->form)
        return OK;
    if (p->rows < 1 || p->cols < 1 || (p->form == PREDICT_CONVEX && p->alpha >= 1))
        return fail(e, E_USAGE,
                    "%s: pred_rows %d, pred_cols %d, pred_alpha %g  -> 1 or more, below 1", name,
                    p->rows, p->cols, (double)p->alpha);
    if (a->forget || a->cope || a->local || a->man || a->diff || c->attn_extra ||
        c->score_residual != SCORE_RESIDUAL_NONE || c->stack.n || *c->order || c->steps ||
        strcmp(c->subs, USUAL_SUBS) != 0 || c->stream_sinks)
        return fail(e, E_USAGE,
                    "%s: predicted scores with other terms of pairs, a stack, steps, slots or an "
                    "order of sub-layers  -> none of them",
                    name);
    return OK;
}

/* What is done around attention, and per layer. */
enum status config_check_around(const struct config *c, struct err *e)
{
    const char *const name = c->variant->name;

    if (c->around.forget && (!c->causal || c->score_residual != SCORE_RESIDUAL_NONE || c->steps ||
                             (c->attn_extra && c->attn_extra->sinks)))
        return fail(e, E_USAGE,
                    "%s: forgetting with a view of the future, sinks, steps or scores of the layer "
                    "before  -> none of them",
                    name);
    /* The scores of a pair that only other heads see are mixed, too, but no head hands them on. */
    if (c->attn_extra == &extra_talking && c->score_residual != SCORE_RESIDUAL_NONE &&
        (c->head_windows.n || (c->masks.n > 1 && !c->layer_masks.n)))
        return fail(
            e, E_USAGE,
            "%s: heads that mix and see different keys, with scores of the layer before  -> "
            "the same mask or window for all heads",
            name);
    if (c->around.cope &&
        (!c->causal || c->score_residual != SCORE_RESIDUAL_NONE || c->around.forget ||
         c->around.diff || c->pos->reserve || c->pos->rotate || c->attn_extra))
        return fail(e, E_USAGE,
                    "%s: contextual positions with positions %s, a view of the future, forgetting, "
                    "differences or terms of attention  -> none of them",
                    name, c->pos->name);
    if (c->around.diff && (c->pos->reserve || c->attn_extra || c->around.forget ||
                           c->score_residual != SCORE_RESIDUAL_NONE))
        return fail(e, E_USAGE,
                    "%s: differences of heads with positions %s, forgetting or terms of attention  "
                    "-> rotated or no positions",
                    name, c->pos->name);
    if (check_added(c, e) != OK)
        return E_USAGE;
    const struct camtl *const camtl = &c->around.camtl;
    const int64_t places = (int64_t)c->max_seq + c->mem_len;
    if (camtl->on && (camtl->task < 1 || camtl->size < 1 ||
                      (camtl->blocks && places > (int64_t)camtl->blocks * camtl->size)))
        return fail(e, E_USAGE,
                    "%s: tasks of %d numbers, %d blocks of %d places for %d of a window  -> 1 or "
                    "more, as many places",
                    name, camtl->task, camtl->blocks, camtl->size, (int)places);
    if (check_predict(c, e) != OK)
        return E_USAGE;
    if (strchr(c->subs, SUB_MASKED)) {
        const struct config masked = config_of_masks(c);
        if (c->around.man || c->mixer || c->lazy_group > 1 || c->same_length)
            return fail(
                e, E_USAGE,
                "%s: layers of \"%s\" with trained masks elsewhere, a mixer, lazy layers or "
                "the same number of keys for all  -> none of them",
                name, c->subs);
        if (check_added(&masked, e) != OK)
            return E_USAGE;
    }
    if (c->around.local == LOCAL_PUBLISHED && c->mem_len)
        return fail(e, E_USAGE, "%s: preferred places count from the text's beginning  -> mem 0",
                    name);
    if (c->around.agg &&
        (c->around.capsules < 1 || c->D % c->around.capsules || c->around.agg_iters < 1 ||
         c->around.diff || (int64_t)c->H * c->D * c->around.agg_iters > 1 << 30))
        return fail(e, E_USAGE,
                    "%s: %d capsules of %d channels, %d iterations, diff %d  -> a divisor, 1 or "
                    "more, 0",
                    name, c->around.capsules, c->D, c->around.agg_iters, c->around.diff);
    if (config_has_around(c) && compressive_of(c)->rows)
        return fail(e, E_USAGE, "%s: compressed memory with norms or gates of heads  -> neither",
                    name);
    if (c->around.value_residual && c->steps)
        return fail(e, E_USAGE, "%s: values of the first layer with steps  -> none", name);
    if (c->layer_windows.n && (c->steps || *c->order || c->score_residual != SCORE_RESIDUAL_NONE))
        return fail(e, E_USAGE,
                    "%s: windows of layers with steps, an order of sub-layers or scores of the "
                    "layer before  -> none of them",
                    name);
    if (c->head_windows.n && (c->steps || *c->order || c->masks.n || c->layer_windows.n ||
                              c->same_length || c->attn_extra == &extra_span))
        return fail(
            e, E_USAGE,
            "%s: windows of heads with steps, an order of sub-layers, masks, a span or other "
            "windows  -> none of them",
            name);
    for (int i = 0; i < c->layer_masks.n; i++)
        if (c->layer_masks.at[i] >= c->masks.n)
            return fail(e, E_USAGE, "%s: mask %.0f of a layer, of %d masks  -> from 0", name,
                        c->layer_masks.at[i], c->masks.n);
    if (c->layer_masks.n && (c->steps || *c->order))
        return fail(e, E_USAGE,
                    "%s: masks of layers with steps or an order of sub-layers  -> neither", name);
    if (c->layer_rope_base.n && (c->pos != &pos_rope || c->steps || *c->order))
        return fail(e, E_USAGE,
                    "%s: bases of rotation per layer with positions %s, steps or an order of "
                    "sub-layers  -> rope, none",
                    name, c->pos->name);
    return OK;
}
