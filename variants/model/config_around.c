/* SPDX-License-Identifier: MIT
 *
 * Numbers of what is done around attention and to scores, and of what differs from layer to layer. */
#include "config_around.h"
#include "choices.h"

enum status config_check_around(const struct config *c, struct err *e)
{
    const char *const name = c->variant->name;
    const struct around *const a = &c->around;
    const struct predict *const p = &a->predict;
    const struct camtl *const camtl = &a->camtl;
    const int64_t places = (int64_t)c->max_seq + c->mem_len;

    if (camtl->on && (camtl->task < 1 || camtl->size < 1 ||
                      (camtl->blocks && places > (int64_t)camtl->blocks * camtl->size)))
        return fail(
            e, E_USAGE,
            "%s: tasks of %d numbers, %d blocks of %d places for %d of a window  -> use 1 or "
            "more, as many places",
            name, camtl->task, camtl->blocks, camtl->size, (int)places);
    if (p->form && (p->rows < 1 || p->cols < 1 || (p->form == PREDICT_CONVEX && p->alpha >= 1)))
        return fail(e, E_USAGE,
                    "%s: pred_rows %d, pred_cols %d, pred_alpha %g  -> use 1 or more, below 1",
                    name, p->rows, p->cols, (double)p->alpha);
    if (a->agg && (a->capsules < 1 || c->D % a->capsules || a->agg_iters < 1 ||
                   (int64_t)c->H * c->D * a->agg_iters > 1 << 30))
        return fail(e, E_USAGE,
                    "%s: %d capsules of %d channels, %d iterations  -> use a divisor, 1 or more",
                    name, a->capsules, c->D, a->agg_iters);
    for (int i = 0; i < c->layer_masks.n; i++)
        if (c->layer_masks.at[i] >= c->masks.n)
            return fail(e, E_USAGE, "%s: mask %.0f of a layer, of %d masks  -> count from 0", name,
                        c->layer_masks.at[i], c->masks.n);
    return OK;
}
