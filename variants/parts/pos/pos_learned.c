/* SPDX-License-Identifier: MIT
 *
 * A learned table of positions, added to the embedding once (Radford et al. 2018; Gehring et al.
 * 2017): position t of the window uses row t. */
#include "variants/parts/parts.h"

static int learned_positions(const struct config *c)
{
    return c->max_pos ? c->max_pos : c->max_seq;
}

static enum status learned_check(const struct config *c, struct err *e)
{
    if (learned_positions(c) < c->max_seq)
        return fail(e, E_USAGE,
                    "learned: a table of %d positions, windows of up to %d  -> use shorter windows",
                    learned_positions(c), c->max_seq);
    return OK;
}

static void learned_params(const struct config *c, struct params *p)
{
    params_add(p, INIT_TABLE, 0, 2, (const int[]){learned_positions(c), c->D}, "pos.weight");
}

static void learned_embed(const struct config *c, const struct param *model,
                          const float *pos_encoding, int64_t first, float *h, int B, int L)
{
    CHECK(first + L <= model->shape[0]);
    for (int b = 0; b < B; b++)
        for (ptrdiff_t e = 0; e < (ptrdiff_t)L * c->D; e++)
            h[(ptrdiff_t)b * L * c->D + e] += model->data[first * c->D + e];
}

static void learned_embed_grad(const struct config *c, const struct param *model,
                               float *pos_encoding, int K, const float *d_h, int B, int L)
{
    for (int b = 0; b < B; b++)
        for (ptrdiff_t e = 0; e < (ptrdiff_t)L * c->D; e++)
            model->grad[e] += d_h[(ptrdiff_t)b * L * c->D + e];
}

const struct pos pos_learned = {
    .name = "learned",
    .check = learned_check,
    .positions = learned_positions,
    .model_params = learned_params,
    .embed = learned_embed,
    .embed_grad = learned_embed_grad,
};
