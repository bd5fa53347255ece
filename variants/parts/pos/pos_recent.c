/* SPDX-License-Identifier: MIT
 *
 * Relative keys of the Feedback Transformer (Fan et al. 2020, arXiv:2002.09402): a trained row for
 * each of the newest `clip` steps of a memory that the own step is not part of; farther ones share
 * the last. The key n >= 1 steps ago has row max(clip - n, 0). */
#include "variants/parts/parts.h"

static enum status recent_check(const struct config *c, struct err *e)
{
    return c->clip >= 1 && c->feedback.on
               ? OK
               : fail(e, E_USAGE,
                      "%s: positions recent with clip %d are of a feedback memory  -> "
                      "clip 1 or more",
                      c->variant->name, c->clip);
}

static void recent_params(const struct config *c, const char *prefix, struct params *p)
{
    params_add(p, INIT_TABLE, 0, 2, (const int[]){c->clip, c->dh}, "%sattn.rel_k", prefix);
}

/* Weights are read in place: the core's distance is n - 1. */
static void recent_reserve(const struct config *c, const struct param *model,
                           const struct param *layer, int K, struct arena *arena, struct attn *a)
{
    (void)model, (void)K, (void)arena;
    a->R = c->clip;
    a->rel_k = layer->data;
}

static void recent_terms_grad(const struct config *c, const struct param *model,
                              const struct param *layer, const struct attn *a, float *tables,
                              struct attn_grad *d)
{
    (void)model, (void)tables;
    d->d_rel_k = layer->grad + (ptrdiff_t)(c->clip - a->R) * c->dh;
}

const struct pos pos_recent = {
    .name = "recent",
    .past_only = true,
    .clips = true,
    .check = recent_check,
    .layer_params = recent_params,
    .reserve = recent_reserve,
    .terms_grad = recent_terms_grad,
};
