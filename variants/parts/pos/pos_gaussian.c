/* SPDX-License-Identifier: MIT
 *
 * The Gaussian Transformer's prior (Guo et al. 2019): bias_h[n] = -|w_h n^2 + b_h|, w and b
 * trained, w > 0 and b <= 0. */
#include "pos_bias.h"
#include "variants/parts/parts.h"

enum { GAUSS_W, GAUSS_B };
static const float LEAST = 1e-4f, INIT_W = 0.1f;
/* Published as 0, where the absolute value has no derivative: a little below it. */
static const float INIT_B = -0.05f;

static void gaussian_params(const struct config *c, const char *prefix, struct params *p)
{
    params_bound(p, params_vector(p, INIT_CONST, INIT_W, c->H, prefix, "attn.gauss.w"), LEAST,
                 INFINITY);
    params_bound(p, params_vector(p, INIT_CONST, INIT_B, c->H, prefix, "attn.gauss.b"), -INFINITY,
                 0);
}

/* w n^2 + b */
static double inner(const struct param *layer, int h, int n)
{
    return (double)layer[GAUSS_W].data[h] * n * n + (double)layer[GAUSS_B].data[h];
}

static void gaussian_build_tables(const struct pos_call *t)
{
    struct attn *const a = t->a;

    for (int h = 0; h < t->c->H; h++)
        for (int n = -a->Rf; n < a->R; n++)
            bias_of(a, h)[-n] = (float)-fabs(inner(t->layer, h, n));
}

/* ---- backward ----------------------------------------------------------------------------- */

/* dw = -sum_n d_bias[n] sign n^2;  db = -sum_n d_bias[n] sign, of the sign of the inner sum. */
static void gaussian_build_tables_grad(const struct pos_call *t)
{
    const struct param *const layer = t->layer;
    struct attn *const a = t->a;

    for (int h = 0; h < t->c->H; h++) {
        double d_w = 0, d_b = 0;
        for (int n = -a->Rf; n < a->R; n++) {
            const double d_bias = (double)bias_grad_of(a, t->d, h)[-n];
            const double d_inner = inner(layer, h, n) < 0 ? d_bias : -d_bias;
            d_w += d_inner * n * n;
            d_b += d_inner;
        }
        layer[GAUSS_W].grad[h] += (float)d_w;
        layer[GAUSS_B].grad[h] += (float)d_b;
    }
}

const struct pos pos_gaussian = {
    .name = "gaussian",
    .form = "gauss_t",
    .layer_params = gaussian_params,
    .reserve = bias_reserve,
    .build_tables = gaussian_build_tables,
    .n_tables_grad = bias_floats,
    .terms_grad = bias_terms_grad,
    .build_tables_grad = gaussian_build_tables_grad,
};
