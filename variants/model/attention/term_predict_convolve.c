/* SPDX-License-Identifier: MIT
 *
 * The convolution of predicted scores, plain loops over rows in all threads. */
#include "term_predict.h"

static ptrdiff_t row_at(const struct field *f, int b, int h, int i)
{
    return (((ptrdiff_t)b * f->H + h) * f->L + i) * f->K;
}

static ptrdiff_t tap_at(const struct field *f, int to, int from, int r, int c)
{
    return (((ptrdiff_t)to * f->H + from) * f->rows + r) * f->cols + c;
}

/* y[j] += w x[j + shift] where both exist. */
static void add_shifted(float *restrict y, const float *restrict x, float w, int shift, int K)
{
    const int from = max_int(0, -shift), to = min_int(K, K - shift);

    for (int j = from; j < to; j++)
        y[j] += w * x[j + shift];
}

static double dot_shifted(const float *y, const float *x, int shift, int K)
{
    const int from = max_int(0, -shift), to = min_int(K, K - shift);
    double sum = 0;

    for (int j = from; j < to; j++)
        sum += (double)y[j] * (double)x[j + shift];
    return sum;
}

void convolve(const struct field *f, float *y, const float *x)
{
#pragma omp parallel for num_threads(f->threads)
    for (int row = 0; row < f->B * f->H * f->L; row++) {
        const int i = row % f->L, g = row / f->L % f->H, b = row / f->L / f->H;
        float *const to = y + row_at(f, b, g, i);
        for (int j = 0; j < f->K; j++)
            to[j] = f->b[g];
        for (int h = 0; h < f->H; h++)
            for (int r = max_int(0, f->up - i); r < f->rows && i - f->up + r < f->L; r++)
                for (int c = 0; c < f->cols; c++)
                    add_shifted(to, x + row_at(f, b, h, i - f->up + r), f->W[tap_at(f, g, h, r, c)],
                                c - f->cols / 2, f->K);
    }
}

void convolve_back(const struct field *f, float *d_x, const float *d_y)
{
#pragma omp parallel for num_threads(f->threads)
    for (int row = 0; row < f->B * f->H * f->L; row++) {
        const int i = row % f->L, h = row / f->L % f->H, b = row / f->L / f->H;
        float *const to = d_x + row_at(f, b, h, i);
        for (int g = 0; g < f->H; g++)
            for (int r = 0; r < f->rows; r++)
                for (int c = 0; c < f->cols && i + f->up - r >= 0 && i + f->up - r < f->L; c++)
                    add_shifted(to, d_y + row_at(f, b, g, i + f->up - r),
                                f->W[tap_at(f, g, h, r, c)], f->cols / 2 - c, f->K);
    }
}

void convolve_weights(const struct field *f, const struct param *p, const float *d_y,
                      const float *x)
{
    float *const d_W = p[0].grad;
    float *const d_b = p[1].grad;

#pragma omp parallel for num_threads(f->threads)
    for (int t = 0; t < f->H * f->H * f->rows * f->cols; t++) {
        const int c = t % f->cols, r = t / f->cols % f->rows;
        const int h = t / f->cols / f->rows % f->H, g = t / f->cols / f->rows / f->H;
        double sum = 0;
        for (int b = 0; b < f->B; b++)
            for (int i = max_int(0, f->up - r); i < f->L && i - f->up + r < f->L; i++)
                sum += dot_shifted(d_y + row_at(f, b, g, i), x + row_at(f, b, h, i - f->up + r),
                                   c - f->cols / 2, f->K);
        d_W[t] += (float)sum;
    }
    for (int g = 0; g < f->H; g++) {
        double sum = 0;
        for (int b = 0; b < f->B; b++)
            for (ptrdiff_t x_at = 0; x_at < (ptrdiff_t)f->L * f->K; x_at++)
                sum += (double)d_y[row_at(f, b, g, 0) + x_at];
        d_b[g] += (float)sum;
    }
}
