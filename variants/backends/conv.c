/* SPDX-License-Identifier: MIT
 *
 * Short causal convolution in plain loops, of which compilers make vectors. Threads share rows forward
 * and channels backward. */
#include "conv.h"

#include "variants/base/loops.h"

static int team(const struct conv *c, int threads)
{
    return team_for(threads, (ptrdiff_t)c->B * c->L * c->n);
}

void conv_by_taps(float *by_tap, const float *w, int n, int taps)
{
    for (int e = 0; e < n; e++)
        for (int s = 0; s < taps; s++)
            by_tap[(ptrdiff_t)s * n + e] = w[(ptrdiff_t)e * taps + s];
}

static void convolve(const struct conv *c, int b, int t, float *y)
{
    for (int e = 0; e < c->n; e++)
        y[e] = c->bias ? c->bias[e] : 0;
    for (int s = 0; s < c->taps; s++) {
        const float *const x = conv_row(c, b, t - c->taps + 1 + s);
        const float *const w = c->w + (ptrdiff_t)s * c->n;
        if (!x)
            continue;
#pragma omp simd
        for (int e = 0; e < c->n; e++)
            y[e] += w[e] * x[e];
    }
}

void conv_forward(const struct conv *c, float *y, struct stride y_at, int threads)
{
#pragma omp parallel for num_threads(team(c, threads))
    for (int i = 0; i < c->B * c->L; i++)
        convolve(c, i / c->L, i % c->L, y + i / c->L * y_at.batch + i % c->L * y_at.row);
}

void conv_after(const struct conv *c, float *after)
{
    const int kept = c->taps - 1;

    for (int b = 0; b < c->B; b++)
        for (int i = 0; i < kept; i++) {
            const float *const from = conv_row(c, b, c->L - kept + i);
            float *const to = after + ((ptrdiff_t)b * kept + i) * c->n;
            if (from)
                memmove(to, from, sizeof(float) * (size_t)c->n);
            else
                memset(to, 0, sizeof(float) * (size_t)c->n);
        }
}

/* dx_j += w_s dy_t and dw_s += dy_t x_j with j = t - taps + 1 + s: for channels [from, to), so that
 * threads share neither gradients of weights nor rows. */
static void convolve_back(const struct conv *c, const struct conv_grad *d, int from, int to)
{
    for (int i = 0; i < c->B * c->L; i++) {
        const int b = i / c->L, t = i % c->L;
        const float *const d_y = d->d_y + b * d->d_y_at.batch + t * d->d_y_at.row;
        for (int s = 0; s < c->taps; s++) {
            const int j = t - c->taps + 1 + s;
            const float *const w = c->w + (ptrdiff_t)s * c->n, *const x = conv_row(c, b, j);
            float *const d_w = d->d_w + (ptrdiff_t)s * c->n, *const d_x = conv_grad_row(c, d, b, j);
#pragma omp simd
            for (int e = from; e < (x ? to : from); e++)
                d_w[e] += d_y[e] * x[e];
#pragma omp simd
            for (int e = from; e < (d_x ? to : from); e++)
                d_x[e] += w[e] * d_y[e];
        }
        for (int e = from; e < to && d->d_bias; e++)
            d->d_bias[e] += d_y[e];
    }
}

void conv_backward(const struct conv *c, const struct conv_grad *d, int threads)
{
    enum { CHANNELS = 64 };

#pragma omp parallel for num_threads(team(c, threads))
    for (int e = 0; e < c->n; e += CHANNELS)
        convolve_back(c, d, e, min_int(e + CHANNELS, c->n));
}
