/* SPDX-License-Identifier: MIT
 *
 * Relative keys of the Feedback Transformer (Fan et al. 2020, arXiv:2002.09402): a trained row for
 * each of the newest `clip` steps of a memory that the own step is not part of; farther ones share
 * the last. The key n >= 1 steps ago has row max(clip - n, 0). */
#include "variants/parts/parts.h"

static enum status recent_check(const struct config *c, struct err *e)
{
    return c->clip >= 1 && c->feedback.on ? OK
                                          : fail(e, E_USAGE,
                                                 "%s: positions recent with clip %d are of a "
                                                 "feedback memory  -> clip 1 or more",
                                                 c->variant->name, c->clip);
}

static void recent_params(const struct config *c, const char *prefix, struct params *p)
{
    params_add(p, INIT_TABLE, 0, 2, (const int[]){c->clip, c->dh}, "%sattn.rel_k", prefix);
}

/* Weights are read in place: the core's distance is n - 1. */
static void recent_reserve(const struct pos_call *t)
{
    t->a->R = t->c->clip;
    t->a->rel_k = t->layer->data;
}

static void recent_terms_grad(const struct pos_call *t)
{
    t->d->d_rel_k = t->layer->grad + (ptrdiff_t)(t->c->clip - t->a->R) * t->c->dh;
}

const struct pos pos_recent = {
    .name = "recent",
    .by_steps = true,
    .past_only = true,
    .clips = true,
    .check = recent_check,
    .layer_params = recent_params,
    .reserve = recent_reserve,
    .terms_grad = recent_terms_grad,
};
