/* SPDX-License-Identifier: MIT
 *
 * Sinusoids whose frequencies are trained, added to the embedding: h_t += [sin(t w), cos(t w)].
 * They begin as those of Vaswani et al. 2017. */
#include "variants/parts/parts.h"

static void freq_params(const struct config *c, struct params *p)
{
    params_vector(p, INIT_FREQUENCIES, 0, c->D / 2, "pos.", "freq");
}

static void freq_embed(const struct config *c, const struct param *model, const float *pos_encoding,
                       int64_t first, float *h, int B, int L)
{
    const int half = c->D / 2;

    for (int t = 0; t < L; t++)
        for (int f = 0; f < half; f++) {
            const double angle = (double)(first + t) * (double)model->data[f];
            const float sine = (float)sin(angle), cosine = (float)cos(angle);
            for (int b = 0; b < B; b++) {
                float *const row = h + ((ptrdiff_t)b * L + t) * c->D;
                row[f] += sine;
                row[half + f] += cosine;
            }
        }
}

/* dw_f = sum_t t (g_sin cos - g_cos sin) */
static void freq_embed_grad(const struct config *c, const struct param *model, float *pos_encoding,
                            int K, const float *d_h, int B, int L)
{
    const int half = c->D / 2;

    for (int f = 0; f < half; f++) {
        double sum = 0;
        for (int t = 0; t < L; t++) {
            const double angle = t * (double)model->data[f];
            double d_sine = 0, d_cosine = 0;
            for (int b = 0; b < B; b++) {
                const float *const row = d_h + ((ptrdiff_t)b * L + t) * c->D;
                d_sine += (double)row[f];
                d_cosine += (double)row[half + f];
            }
            sum += t * (d_sine * cos(angle) - d_cosine * sin(angle));
        }
        model->grad[f] += (float)sum;
    }
}

const struct pos pos_freq = {
    .name = "freq",
    .sinusoids = true,
    .model_params = freq_params,
    .embed = freq_embed,
    .embed_grad = freq_embed_grad,
};
