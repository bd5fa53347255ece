/* SPDX-License-Identifier: MIT
 *
 * Norms by kind. Kinds differ in their parameters; the backend computes them, all but PowerNorm
 * (norm_power.c). AdaNorm (Xu et al. 2019, "Understanding and Improving Layer Normalization",
 * arXiv:1911.07013):
 *
 *   y    = C (1 - k xhat) (.) xhat
 *   xhat = (x - mean) / sqrt(var + eps), or the authors' (x - mean) / (sqrt(sum / (D-1)) + eps)
 *
 * It has no parameters. C (1 - k xhat) is a constant in backward: d_x is defined so, it is not the
 * derivative. */
#include "norm.h"

const char *const norm_kind_name[NORM_KIND_COUNT + 1] = {"layer", "rms",   "scale", "unbiased",
                                                         "ada",   "power", NULL};

/* ---- AdaNorm's own ------------------------------------------------------------------------ */

enum ada_std { ADA_BIASED, ADA_UNBIASED };
struct ada {
    float c, k;
    enum ada_std std;
};

static const char *const ada_std_name[] = {"biased", "unbiased", NULL};

static const struct choice ada_choices[] = {
    ROW_REAL(struct ada, c, "ada_c", 0, FLT_MAX, "C of AdaNorm", .scope = SCOPE_LAYER,
             .absent = "1", SETTING),
    ROW_REAL(struct ada, k, "ada_k", 0, FLT_MAX, "k of AdaNorm", .scope = SCOPE_LAYER,
             .absent = "0.1", SETTING),
    ROW_WORD(struct ada, std, "ada_std", ada_std_name, "deviation that AdaNorm divides by",
             .scope = SCOPE_LAYER, .absent = "biased", SETTING),
    {0},
};

static enum status ada_check(const struct config *c, const void *numbers, struct err *e)
{
    const struct ada *const a = numbers;

    if (a->c == 0)
        return fail(e, E_USAGE, "%s: ada_c 0 makes every row 0  -> use more than 0",
                    c->variant->name);
    if (a->std == ADA_UNBIASED && c->D < 2)
        return fail(e, E_USAGE, "%s: ada_std unbiased of width %d  -> use --d-model 2 or more",
                    c->variant->name, c->D);
    return OK;
}

static const struct part_numbers ada_numbers = {ada_choices, PRESET(struct ada, .c = 1, .k = 0.1f),
                                                ada_check};

const struct part_numbers *const norm_numbers[NORM_KIND_COUNT] = {
    [NORM_ADA] = &ada_numbers,
    [NORM_POWER] = &power_numbers,
};

/* ---- all kinds ---------------------------------------------------------------------------- */

static bool has_bias(const struct config *c)
{
    return (c->norm_kind == NORM_LAYER || c->norm_kind == NORM_UNBIASED) && c->ln_bias;
}

void norm_params(const struct config *c, const char *prefix, const char *name, struct params *p)
{
    const int one = 1;

    if (c->norm_kind == NORM_ADA)
        return;
    if (c->norm_kind == NORM_POWER) {
        power_params(c, prefix, name, p);
        return;
    }
    if (c->norm_kind == NORM_SCALE) {
        params_add(p, INIT_CONST, sqrtf((float)c->D), 1, &one, "%s%s.g", prefix, name);
        return;
    }
    params_add(p, INIT_ONE, 0, 1, &c->D, "%s%s.weight", prefix, name);
    if (has_bias(c))
        params_add(p, INIT_ZERO, 0, 1, &c->D, "%s%s.bias", prefix, name);
}

/* The operation that the model's kind is: AdaNorm's is another kind with a weight of its own. */
static enum norm_kind op_of(const struct config *c, struct ada *ada)
{
    if (c->norm_kind != NORM_ADA) {
        *ada = (struct ada){0};
        return c->norm_kind;
    }
    *ada = *(const struct ada *)config_numbers(c, SLOT_NORM);
    return ada->std == ADA_UNBIASED ? NORM_UNBIASED : NORM_LAYER;
}

void norm_apply(const struct engine *g, const struct config *c, const struct param *w, float *y,
                const float *x, const float *add, int rows)
{
    struct ada ada;

    if (c->norm_kind == NORM_POWER) {
        power_apply(g, c, w, y, x, add, rows);
        return;
    }
    const enum norm_kind kind = op_of(c, &ada);
    g->ops.norm(&(struct norm){.kind = kind,
                               .y = y,
                               .x = x,
                               .add = add,
                               .weight = ada.c != 0 ? NULL : w[0].data,
                               .bias = has_bias(c) ? w[1].data : NULL,
                               .rows = rows,
                               .n = c->D,
                               .eps = c->ln_eps,
                               .ada_c = ada.c,
                               .ada_k = ada.k,
                               .threads = g->threads});
}

void norm_backward(const struct engine *g, const struct config *c, const struct param *w,
                   float *d_x, const float *d_y, const float *x, float *stats, int rows, int of)
{
    struct ada ada;

    if (c->norm_kind == NORM_POWER) {
        power_backward(g, c, w, d_x, d_y, x, stats, rows, of);
        return;
    }
    const enum norm_kind kind = op_of(c, &ada);
    const bool weighted = of > 0 && ada.c == 0;

    g->ops.norm_grad(&(struct norm_grad){.kind = kind,
                                         .d_x = d_x,
                                         .d_weight = weighted ? w[0].grad : NULL,
                                         .d_bias = weighted && has_bias(c) ? w[1].grad : NULL,
                                         .d_y = d_y,
                                         .x = x,
                                         .weight = ada.c != 0 ? NULL : w[0].data,
                                         .stats = stats,
                                         .rows = rows,
                                         .n = c->D,
                                         .eps = c->ln_eps,
                                         .ada_c = ada.c,
                                         .ada_k = ada.k,
                                         .threads = g->threads});
}

void norm_input_grad(const struct engine *g, const struct config *c, const struct param *w,
                     float *d_x, const float *d_y, const float *x, float *stats, int rows)
{
    norm_backward(g, c, w, d_x, d_y, x, stats, rows, 0);
}

/* ---- a layer norm ------------------------------------------------------------------------- */

void layer_norm(const struct engine *g, const struct param *w, float *y, const float *x, int rows,
                int n, float eps)
{
    g->ops.norm(&(struct norm){.kind = NORM_LAYER,
                               .y = y,
                               .x = x,
                               .weight = w[0].data,
                               .bias = w[1].data,
                               .rows = rows,
                               .n = n,
                               .eps = eps,
                               .threads = g->threads});
}

void layer_norm_grad(const struct engine *g, const struct param *w, float *d_x, const float *d_y,
                     const float *x, float *stats, int rows, int n, float eps)
{
    g->ops.norm_grad(&(struct norm_grad){.kind = NORM_LAYER,
                                         .d_x = d_x,
                                         .d_weight = w[0].grad,
                                         .d_bias = w[1].grad,
                                         .d_y = d_y,
                                         .x = x,
                                         .weight = w[0].data,
                                         .stats = stats,
                                         .rows = rows,
                                         .n = n,
                                         .eps = eps,
                                         .threads = g->threads});
}
