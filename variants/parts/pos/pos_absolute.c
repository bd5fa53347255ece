/* SPDX-License-Identifier: MIT
 *
 * Absolute positions: none at all, or the sinusoid added to the embedding (Vaswani et al. 2017,
 * section 3.5). */
#include "variants/parts/parts.h"

const struct pos pos_none = {.name = "none", .by_steps = true};

void sinusoid_row(float *row, int D, int64_t position, enum sinusoid order)
{
    const int half = D / 2;

    CHECK(D % 2 == 0);
    for (int f = 0; f < half; f++) {
        const double angle = (double)position * pow(10000.0, -2.0 * f / D);
        const int at_sin = order == SINUSOID_CONCAT ? f : 2 * f;
        const int at_cos = order == SINUSOID_CONCAT ? half + f : 2 * f + 1;
        row[at_sin] = (float)sin(angle);
        row[at_cos] = (float)cos(angle);
    }
}

/* ---- sinusoid: h[t] += PE[t], t counted from the start of the window, or of the text that a state
 * has absorbed ------------------------------------------------------------------------------- */

static size_t sinusoid_n_pos_encoding(const struct config *c, int K)
{
    return (size_t)K * (size_t)c->D;
}

static void sinusoid_pos_encoding(const struct config *c, int64_t first, int K, float *pos_encoding)
{
    for (int t = 0; t < K; t++)
        sinusoid_row(pos_encoding + (ptrdiff_t)t * c->D, c->D, first + t, c->sinusoid);
}

static void sinusoid_embed(const struct config *c, const struct param *model,
                           const float *pos_encoding, int64_t first, float *h, int B, int L)
{
    for (int b = 0; b < B; b++)
        for (ptrdiff_t e = 0; e < (ptrdiff_t)L * c->D; e++)
            h[(ptrdiff_t)b * L * c->D + e] += pos_encoding[first * c->D + e];
}

const struct pos pos_sinusoid = {
    .name = "sinusoid",
    .sinusoids = true,
    .n_pos_encoding = sinusoid_n_pos_encoding,
    .pos_encoding = sinusoid_pos_encoding,
    .embed = sinusoid_embed,
};
