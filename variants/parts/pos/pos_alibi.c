/* SPDX-License-Identifier: MIT
 *
 * ALiBi (Press et al. 2022): head h subtracts slope_h * distance from its scores. Nothing is
 * trained. */
#include "pos_bias.h"
#include "variants/parts/parts.h"

/* 2^(-8(h+1)/H) if H is a power of two. Otherwise the slopes for P heads, P the power of two below
 * H, then every second one of those for 2P heads, steepest first. */
double alibi_slope(int h, int H)
{
    int P = 1;

    while (2 * P <= H)
        P *= 2;
    return h < P ? exp2(-8.0 * (h + 1) / P) : exp2(-8.0 * (2 * (h - P) + 1) / (2.0 * P));
}

static void alibi_build_tables(const struct pos_call *t)
{
    for (int h = 0; h < t->c->H; h++) {
        const double slope = alibi_slope(h, t->c->H);
        for (int n = 0; n < t->a->R; n++)
            bias_of(t->a, h)[-n] = (float)(-slope * n);
    }
}

const struct pos pos_alibi = {
    .name = "alibi",
    .by_steps = true,
    .past_only = true,
    .reserve = bias_reserve,
    .build_tables = alibi_build_tables,
};
