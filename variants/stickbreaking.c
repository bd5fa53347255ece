/* SPDX-License-Identifier: MIT
 *
 * Stick-breaking attention: Tan et al. 2024, "Scaling Stick-Breaking Attention: An Efficient
 * Implementation and In-depth Study".
 *
 *   p_ij = sigma(s_ij) product of (1 - sigma(s_ik)) over j < k < i,  j < i
 *
 * From the newest key before the query down, each takes its share of what later ones have left; what
 * is left at the end is not assigned. That orders the keys, without positions. */
#include "variants/parts/parts.h"

/* keep: sigma(s). The last key that is seen is the query's own. */
static void forward(double *p, double *keep, int n)
{
    double left = 0; /* its logarithm */
    bool own = true;

    for (int j = n - 1; j >= 0; j--) {
        const bool seen = p[j] != -INFINITY, counts = seen && !own;
        const double rest = fmin(-p[j], 0) - log1p(exp(-fabs(p[j]))); /* log(1 - sigma(s)) */
        keep[j] = counts ? exp(p[j] + rest) : 0;
        p[j] = counts ? exp(p[j] + rest + left) : 0;
        left += counts ? rest : 0;
        own = own && !seen;
    }
}

static void backward(double *d, const double *p, const double *keep, int n)
{
    double sum = 0;

    for (int j = 0; j < n; j++) {
        sum += p[j] * d[j];
        d[j] = p[j] * d[j] - keep[j] * sum;
    }
}

const struct pos extra_stickbreaking = {
    .name = "stickbreaking",
    .past_only = true, /* which orders the keys */
    .excludes = EXCLUDES(HAS_SOFT_CAP, HAS_MASKS),
    .weigh = &(const struct attn_weigh){forward, backward},
};

const struct variant variant_stickbreaking = {
    .name = "stickbreaking",
    .paper = "Tan et al. 2024, arXiv:2410.17980",
    .about = "each key before the query takes a share of what later keys left; no positions",
    .control = "nope",
    .pos = &pos_none,
    LLAMA_LAYERS,
    .attn_extra = &extra_stickbreaking,
};
