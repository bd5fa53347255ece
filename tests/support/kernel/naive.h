/* SPDX-License-Identifier: MIT
 *
 * Attention as written in the papers, one head of one sequence in double, pair by pair: Shaw's
 * tables by clipped signed offset, Transformer-XL's codes by the published pad, reshape and slice.
 * Independent of `struct attn`. */
#pragma once

#include "tests/support/kept.h"

struct naive {
    int L, M, d; /* queries, remembered keys, width */
    int window;  /* 0 = off */
    bool causal;
    double scale;
    const double *q, *k, *v; /* [L,d] [K,d] [K,d], K = M+L */
    /* Shaw: rows = clip+1 (causal table) or 2 clip+1 (full one); NULL = none */
    int clip, rows;
    const double *rel_k, *rel_v; /* [rows,d] */
    /* Transformer-XL: rho [K,d] by ascending distance */
    const double *u, *w, *rho;
    const double *bias; /* [K] by ascending distance, causal only; NULL = none */
};

static inline bool naive_visible(const struct naive *n, int i, int j)
{
    const int dist = n->M + i - j;

    return (!n->causal || dist >= 0) && (n->window == 0 || dist < n->window);
}

/* Shaw et al. 2018. */
static inline int naive_shaw_row(const struct naive *n, int i, int j)
{
    const int dist = n->M + i - j, k = n->clip;

    if (n->rows == 2 * k + 1) {
        const int offset = -dist < -k ? -k : -dist > k ? k : -dist;
        return k + offset;
    }
    return k - (dist < k ? dist : k);
}

static inline double naive_dot(const double *x, const double *add, const double *y, int d)
{
    double sum = 0;

    for (int e = 0; e < d; e++)
        sum += (x[e] + (add ? add[e] : 0)) * y[e];
    return sum;
}

/* Dai et al. 2019: (q_i + w) . code of each column, columns by descending distance, a zero column
 * prepended, read as [K+1,L], the first row dropped, read as [L,K]. */
static inline double *naive_shift(const struct naive *n)
{
    const int K = n->M + n->L;
    double *padded = room((size_t)(n->L * (K + 1)), sizeof(*padded));
    double *shifted = room((size_t)(n->L * K), sizeof(*shifted));

    for (int i = 0; i < n->L; i++)
        for (int t = 0; t < K; t++)
            padded[i * (K + 1) + 1 + t] =
                naive_dot(n->q + i * n->d, n->w, n->rho + (K - 1 - t) * n->d, n->d);
    for (int x = 0; x < n->L * K; x++)
        shifted[x] = padded[n->L + x];
    return shifted;
}

/* o [L,d]. */
static inline void naive_attend(const struct naive *n, double *o)
{
    const int K = n->M + n->L, d = n->d;
    double *position = n->rho ? naive_shift(n) : NULL;
    double *s = room((size_t)K, sizeof(*s));

    for (int i = 0; i < n->L; i++) {
        double most = -INFINITY, sum = 0;
        for (int j = 0; j < K; j++) {
            s[j] = naive_dot(n->q + i * d, n->u, n->k + j * d, d);
            if (position)
                s[j] += position[i * K + j];
            if (n->rel_k && naive_visible(n, i, j))
                s[j] += naive_dot(n->q + i * d, NULL, n->rel_k + naive_shaw_row(n, i, j) * d, d);
            s[j] *= n->scale;
            if (n->bias && naive_visible(n, i, j))
                s[j] += n->bias[n->M + i - j];
            if (naive_visible(n, i, j))
                most = fmax(most, s[j]);
        }
        for (int j = 0; j < K; j++)
            sum += s[j] = naive_visible(n, i, j) ? exp(s[j] - most) : 0;
        for (int e = 0; e < d; e++) {
            o[i * d + e] = 0;
            for (int j = 0; j < K; j++)
                if (naive_visible(n, i, j))
                    o[i * d + e] += s[j] / sum *
                                    (n->v[j * d + e] +
                                     (n->rel_v ? n->rel_v[naive_shaw_row(n, i, j) * d + e] : 0));
        }
    }
}
