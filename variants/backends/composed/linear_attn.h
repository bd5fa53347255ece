/* SPDX-License-Identifier: MIT
 *
 * Attention without softmax, as data: features of queries and keys whose products are the weights,
 * so that all past keys are summed in one matrix of fixed size, the state. How features are
 * computed is in parts/features.h. */
#ifndef LINEAR_ATTN_H
#define LINEAR_ATTN_H

#include "variants/backends/backend.h"

/* With f the features and j over the keys that query i sees, 0 <= j <= M+i:
 *
 *   o_i = sum_j (fq_i . fk_j) v_j / (sum_j fq_i . fk_j + eps)
 *
 * or, key after key,
 *
 *   S += fk_j v_j^T  [m,d]      z += fk_j  [m]      o_i = S^T fq_i / (fq_i . z + eps)
 *
 * S and z start as s0 and z0 (NULL = zeros) and end in s1 and z1 (NULL = not wanted), which must
 * not alias s0 and z0. Rows are contiguous. L = 0 only adds keys to the state. */
struct linear_attn {
    int B, H, L, M;       /* sequences, query heads, queries, context keys */
    int Hkv;              /* key/value heads, each with a state; divides H */
    int m, d;             /* features, value head width */
    const float *fq, *fk; /* [B,L,H,m] [B,K,Hkv,m], K = M+L */
    const float *v;       /* [B,K,Hkv,d] */
    float *o;             /* [B,L,H,d] */
    float *den;           /* [B,L,H] the divisors, for backward; or NULL */
    float eps;
    const float *s0, *z0; /* [B,Hkv,m,d] [B,Hkv,m] */
    float *s1, *z1;
};

/* Gradients of one call from d_o [B,L,H,d]; o and den from forward, s0 and z0 constants. All are
 * overwritten and have the shapes of their operands; heads that share a key are summed. */
struct linear_grad {
    const float *d_o;
    float *d_fq, *d_fk, *d_v;
};

/* Index of the state of sequence b's key head kv. */
static inline ptrdiff_t linear_state_at(const struct linear_attn *a, int b, int kv)
{
    return (ptrdiff_t)b * a->Hkv + kv;
}

struct linear_impl {
    const char *name;
    size_t (*need)(const struct linear_attn *a, int threads, bool backward); /* bytes */
    /* `scratch` has `need` bytes, 64-byte aligned, contents undefined. The result does not depend
     * on the number of threads. */
    void (*forward)(const struct engine *g, const struct linear_attn *a, void *scratch);
    void (*backward)(const struct engine *g, const struct linear_attn *a,
                     const struct linear_grad *d, void *scratch);
};

extern const struct linear_impl linear_ref, linear_chunked;

/* The implementation to use: the recurrence for ref, chunks for every other backend. */
const struct linear_impl *engine_linear(const struct engine *g);
/* Bytes that suffice for either, so that one can be checked against the other in the same space. */
size_t linear_need(const struct linear_attn *a, int threads, bool backward);

/* Useful FLOP of one forward call in chunks: masked pairs are counted where a chunk computes them,
 * the features are not. */
double linear_flop(const struct linear_attn *a);

/* Rows of a chunk: pairs inside it, the state before it. */
enum { LINEAR_CHUNK = 64 };

#endif
