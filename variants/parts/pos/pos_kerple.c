/* SPDX-License-Identifier: MIT
 *
 * KERPLE, the logarithmic form (Chi et al. 2022): bias_h[n] = -a_h log(1 + b_h n), a and b trained
 * and positive. */
#include "pos_bias.h"
#include "variants/parts/parts.h"

enum { KERPLE_A, KERPLE_B };
static const float LEAST = 1e-2f, INIT_BELOW = 2;

static void kerple_params(const struct config *c, const char *prefix, struct params *p)
{
    static const char *const names[] = {"attn.kerple_a", "attn.kerple_b"};

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        params_bound(p, params_vector(p, INIT_UNIFORM, INIT_BELOW, c->H, prefix, names[i]), LEAST,
                     INFINITY);
}

static void kerple_build_tables(const struct pos_call *t)
{
    for (int h = 0; h < t->c->H; h++) {
        const double A = (double)t->layer[KERPLE_A].data[h], B = (double)t->layer[KERPLE_B].data[h];
        for (int n = 0; n < t->a->R; n++)
            bias_of(t->a, h)[-n] = (float)(-A * log1p(B * n));
    }
}

/* ---- backward ----------------------------------------------------------------------------- */

/* da = -sum_n d_bias[n] log(1 + b n);  db = -sum_n d_bias[n] a n / (1 + b n). */
static void kerple_build_tables_grad(const struct pos_call *t)
{
    const struct param *const layer = t->layer;

    for (int h = 0; h < t->c->H; h++) {
        const double A = (double)layer[KERPLE_A].data[h], B = (double)layer[KERPLE_B].data[h];
        double d_A = 0, d_B = 0;
        for (int n = 0; n < t->a->R; n++) {
            const double d_bias = (double)bias_grad_of(t->a, t->d, h)[-n];
            d_A -= d_bias * log1p(B * n);
            d_B -= d_bias * A * n / (1 + B * n);
        }
        layer[KERPLE_A].grad[h] += (float)d_A;
        layer[KERPLE_B].grad[h] += (float)d_B;
    }
}

const struct pos pos_kerple = {
    .name = "kerple",
    .past_only = true,
    .layer_params = kerple_params,
    .reserve = bias_reserve,
    .build_tables = kerple_build_tables,
    .n_tables_grad = bias_floats,
    .terms_grad = bias_terms_grad,
    .build_tables_grad = kerple_build_tables_grad,
};
