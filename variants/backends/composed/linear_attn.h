/* SPDX-License-Identifier: MIT
 *
 * Attention without a softmax, as data: features of queries and keys whose products are the
 * weights, so that all keys of the past are one matrix of fixed size, the state. Who makes the
 * features is none of its business. */
#ifndef LINEAR_ATTN_H
#define LINEAR_ATTN_H

#include "variants/backends/backend.h"

/* With f the features and j running over the keys that query i may see, 0 <= j <= M+i:
 *
 *   o_i = sum_j (fq_i . fk_j) v_j / (sum_j fq_i . fk_j + eps)
 *
 * which is the same as, key after key,
 *
 *   S += fk_j v_j^T  [m,d]      z += fk_j  [m]      o_i = S^T fq_i / (fq_i . z + eps)
 *
 * S and z begin as s0 and z0 (NULL: as zeros) and end in s1 and z1 (NULL: not wanted), which are
 * not where s0 and z0 are. Rows follow one another without gaps. L = 0 only adds keys to the state.
 */
struct linear_attn {
    int B, H, L, M;       /* sequences, heads, queries, keys in front of the queries' */
    int Hkv;              /* heads of keys, values and states; divides H */
    int m, d;             /* features, width of a head of values */
    const float *fq, *fk; /* [B,L,H,m] [B,K,Hkv,m], K = M+L */
    const float *v;       /* [B,K,Hkv,d] */
    float *o;             /* [B,L,H,d] */
    float *den;           /* [B,L,H] the divisors, for backward; or NULL */
    float eps;
    const float *s0, *z0; /* [B,Hkv,m,d] [B,Hkv,m] */
    float *s1, *z1;
};

/* Gradients of one call from d_o [B,L,H,d]; o and den as forward left them, s0 and z0 constants.
 * All are written, with the shapes of what they are the gradients of; heads that share a key are
 * summed. */
struct linear_grad {
    const float *d_o;
    float *d_fq, *d_fk, *d_v;
};

/* Which of the states is that of sequence b's key head kv. */
static inline ptrdiff_t linear_state_at(const struct linear_attn *a, int b, int kv)
{
    return (ptrdiff_t)b * a->Hkv + kv;
}

struct linear_impl {
    const char *name;
    size_t (*need)(const struct linear_attn *a, int threads, bool backward); /* bytes */
    /* `scratch` is 64-byte aligned, need bytes long, in any state. Same result for any number of
     * threads. */
    void (*forward)(const struct engine *g, const struct linear_attn *a, void *scratch);
    void (*backward)(const struct engine *g, const struct linear_attn *a,
                     const struct linear_grad *d, void *scratch);
};

extern const struct linear_impl linear_ref, linear_chunked;

/* What executes it: the judge's own, or chunks of products on every other backend. */
const struct linear_impl *engine_linear(const struct engine *g);
/* Bytes that are enough for either, so that the one may be judged by the other in its place. */
size_t linear_need(const struct linear_attn *a, int threads, bool backward);

/* Useful FLOP of one forward call in chunks: masked pairs are counted where a chunk computes them,
 * the features are not. */
double linear_flop(const struct linear_attn *a);

/* Rows of a chunk: inside it pairs are met, what lies before it is the state. */
enum { LINEAR_CHUNK = 64 };

#endif
