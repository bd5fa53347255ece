/* SPDX-License-Identifier: MIT
 *
 * Embeddings that turn with the position (Wang et al. 2020, arXiv:1912.12333), in place of an
 * embedding matrix: h_t = [r cos(w t + phi), r sin(w t + phi)] with the token's rows of three
 * tables. */
#include "variants/parts/parts.h"

enum { RADIUS, FREQUENCY, PHASE };

static void complex_params(const struct config *c, struct params *p)
{
    const int shape[] = {c->V, c->D / 2};

    params_add(p, INIT_NORMAL, 1 / sqrtf((float)c->D), 2, shape, "embed.radius");
    params_add(p, INIT_NORMAL, 0.1f, 2, shape, "embed.freq");
    params_add(p, INIT_UNIFORM_BOTH, (float)M_PI, 2, shape, "embed.phase");
}

static void complex_from_tokens(const struct config *c, const struct param *words,
                                const int32_t *tokens, int64_t first, float *h, int B, int L,
                                int threads)
{
    const ptrdiff_t half = c->D / 2;

#pragma omp parallel for num_threads(threads)
    for (int row = 0; row < B * L; row++) {
        const ptrdiff_t at = tokens[row] * half;
        float *const to = h + (ptrdiff_t)row * c->D;
        for (ptrdiff_t f = 0; f < half; f++) {
            const double angle = (double)(first + row % L) * (double)words[FREQUENCY].data[at + f] +
                                 (double)words[PHASE].data[at + f];
            to[f] = words[RADIUS].data[at + f] * (float)cos(angle);
            to[half + f] = words[RADIUS].data[at + f] * (float)sin(angle);
        }
    }
}

/* Of each coordinate in token order, which does not depend on threads. */
static void complex_from_tokens_grad(const struct config *c, const struct param *words,
                                     const int32_t *tokens, const float *d_h, int B, int L,
                                     int threads)
{
    const ptrdiff_t half = c->D / 2;

#pragma omp parallel for num_threads(threads)
    for (ptrdiff_t f = 0; f < half; f++)
        for (int row = 0; row < B * L; row++) {
            const ptrdiff_t at = tokens[row] * half + f;
            const double d_re = (double)d_h[(ptrdiff_t)row * c->D + f];
            const double d_im = (double)d_h[(ptrdiff_t)row * c->D + half + f];
            const int t = row % L;
            const double angle =
                t * (double)words[FREQUENCY].data[at] + (double)words[PHASE].data[at];
            const double sine = sin(angle), cosine = cos(angle);
            const double d_angle = (double)words[RADIUS].data[at] * (d_im * cosine - d_re * sine);
            words[RADIUS].grad[at] += (float)(d_re * cosine + d_im * sine);
            words[FREQUENCY].grad[at] += (float)(t * d_angle);
            words[PHASE].grad[at] += (float)d_angle;
        }
}

const struct pos pos_complex = {
    .name = "complex",
    .sinusoids = true,
    .word_params = complex_params,
    .from_tokens = complex_from_tokens,
    .from_tokens_grad = complex_from_tokens_grad,
};
