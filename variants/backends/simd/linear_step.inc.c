/* SPDX-License-Identifier: MIT
 *
 * Adds one key to a state of attention without softmax, with the vectors of vec.h; included once
 * per instruction set. The state is read and written once: its rows stream through registers that
 * hold the values and sums of some columns. */
#include "simd.h"
#include "vec.h"

/* Update z, then compute each query's divisor. */
static void divisors(const struct linear_step *p)
{
    for (int x = 0; x < p->m; x += VL) {
        const int left = p->m - x;
        const vf k = vld_upto(p->k + x, left, v0());
        vst_upto(p->z + x, left, vadd(vld_upto(p->z0 + x, left, v0()), k));
    }
    for (int t = 0; t < p->queries; t++) {
        const float *q = p->q + (ptrdiff_t)t * p->m;
        vf sum = v0();
        for (int x = 0; x < p->m; x += VL) {
            const int left = p->m - x;
            sum = vfma(vld_upto(q + x, left, v0()), vld_upto(p->z + x, left, v0()), sum);
        }
        p->den[t] = vsum(sum) + p->eps;
    }
}

/* n vectors of columns from e on, for query t; the first query's pass adds the key. `n` and `first`
 * are compile-time constants; with n > 1 the vectors are whole. */
VEC_INLINE void columns(const struct linear_step *p, int t, int e, int n, bool first)
{
    const ptrdiff_t d = p->d;
    const int left = n > 1 ? VL : p->d - e;
    const float *const from = (first ? p->s0 : p->s) + e;
    const float *const q = t < p->queries ? p->q + (ptrdiff_t)t * p->m : NULL;
    float *const to = p->s + e;
    vf v[4], sum[4];

    UNROLL
    for (int c = 0; c < n; c++) {
        v[c] = vld_upto(p->v + e + c * VL, left, v0());
        sum[c] = v0();
    }
    for (int x = 0; x < p->m; x++) {
        const vf k = v1(p->k[x]), weight = v1(q ? q[x] : 0);
        UNROLL
        for (int c = 0; c < n; c++) {
            vf s = vld_upto(from + x * d + c * VL, left, v0());
            if (first) {
                s = vfma(k, v[c], s);
                vst_upto(to + x * d + c * VL, left, s);
            }
            sum[c] = vfma(weight, s, sum[c]);
        }
    }
    UNROLL
    for (int c = 0; c < n; c++)
        if (q)
            vst_upto(p->o + t * d + e + c * VL, left, vdiv(sum[c], v1(p->den[t])));
}

VEC_INLINE void all_columns(const struct linear_step *p, int t, bool first)
{
    int e = 0;

    for (; e + 4 * VL <= p->d; e += 4 * VL)
        columns(p, t, e, 4, first);
    for (; e + 2 * VL <= p->d; e += 2 * VL)
        columns(p, t, e, 2, first);
    for (; e < p->d; e += VL)
        columns(p, t, e, 1, first);
}

static void linear_step(const struct linear_step *p)
{
    divisors(p);
    all_columns(p, 0, true);
    for (int t = 1; t < p->queries; t++)
        all_columns(p, t, false);
}
