/* SPDX-License-Identifier: MIT
 *
 * Sigmoid attention: Ramapuram et al. 2024, "Theory, Analysis, and Best Practices for Sigmoid
 * Self-Attention".
 *
 *   p_ij = sigma(s_ij - log n)
 *
 * Nothing is divided by a sum, so that weights of a query may add up to any number. n are the keys
 * that it sees; the paper has the length of the text, which a model cut into segments does not know. */
#include "variants/parts/parts.h"

static void forward(double *p, double *keep, int n)
{
    double seen = 0;

    for (int j = 0; j < n; j++)
        seen += p[j] != -INFINITY;
    for (int j = 0; j < n; j++)
        p[j] = p[j] == -INFINITY ? 0 : 1 / (1 + seen * exp(-p[j]));
}

static void backward(double *d, const double *p, const double *keep, int n)
{
    for (int j = 0; j < n; j++)
        d[j] *= p[j] * (1 - p[j]);
}

const struct pos extra_sigmoid = {
    .name = "sigmoid",
    .excludes = EXCLUDES(HAS_SOFT_CAP),
    .weigh = &(const struct attn_weigh){forward, backward},
};

const struct variant variant_sigmoid_attention = {
    .name = "sigmoid-attention",
    .paper = "Ramapuram et al. 2024, arXiv:2409.04431",
    .about = "the sigmoid of scores less log n in place of softmax",
    AS_ROPE,
    .attn_extra = &extra_sigmoid,
};
