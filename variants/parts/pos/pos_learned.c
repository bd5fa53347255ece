/* SPDX-License-Identifier: MIT
 *
 * Learned tables of positions: position t of the window uses row t. One is added to the embedding
 * (Radford et al. 2018; Gehring et al. 2017), or every layer adds its own to its input (Al-Rfou et
 * al. 2018). */
#include "variants/parts/parts.h"

/* ---- learned_layer ------------------------------------------------------------------------ */

static int layer_positions(const struct config *c) { return c->max_seq; }

static void layer_params(const struct config *c, const char *prefix, struct params *p)
{
    params_add(p, INIT_TABLE, 0, 2, (const int[]){c->max_seq, c->D}, "%spos.weight", prefix);
}

static void enter(const struct config *c, const struct param *table, int64_t first, float *x, int B,
                  int L)
{
    CHECK(first + L <= table->shape[0]);
    for (int b = 0; b < B; b++)
        for (ptrdiff_t e = 0; e < (ptrdiff_t)L * c->D; e++)
            x[(ptrdiff_t)b * L * c->D + e] += table->data[first * c->D + e];
}

static void enter_grad(const struct config *c, const struct param *table, const float *d_x, int B,
                       int L)
{
    for (int b = 0; b < B; b++)
        for (ptrdiff_t e = 0; e < (ptrdiff_t)L * c->D; e++)
            table->grad[e] += d_x[(ptrdiff_t)b * L * c->D + e];
}

const struct pos pos_learned_layer = {
    .name = "learned_layer",
    .positions = layer_positions,
    .layer_params = layer_params,
    .enter = enter,
    .enter_grad = enter_grad,
};

/* ---- learned ------------------------------------------------------------------------------ */

static int table_positions(const struct config *c) { return c->max_pos ? c->max_pos : c->max_seq; }

static enum status check(const struct config *c, struct err *e)
{
    if (table_positions(c) < c->max_seq)
        return fail(e, E_USAGE,
                    "learned: a table of %d positions, windows of up to %d  -> use shorter windows",
                    table_positions(c), c->max_seq);
    return OK;
}

static void model_params(const struct config *c, struct params *p)
{
    params_add(p, INIT_TABLE, 0, 2, (const int[]){table_positions(c), c->D}, "pos.weight");
}

static void embed(const struct config *c, const struct param *table, const float *pos_encoding,
                  int64_t first, float *h, int B, int L)
{
    enter(c, table, first, h, B, L);
}

static void embed_grad(const struct config *c, const struct param *table, float *pos_encoding,
                       int K, const float *d_h, int B, int L)
{
    enter_grad(c, table, d_h, B, L);
}

const struct pos pos_learned = {
    .name = "learned",
    .check = check,
    .positions = table_positions,
    .model_params = model_params,
    .embed = embed,
    .embed_grad = embed_grad,
};
