/* SPDX-License-Identifier: MIT
 *
 * Linear recurrences as data: what stands in place of attention in models whose past is a state of
 * fixed size. One closed form covers linear attention, gated and delta-rule recurrences, state
 * spaces and matrix LSTMs; each mixer says how it fills it in.
 *
 * For one sequence and one state head, with t over keys, w_t = exp(g_t) and S [dk,dv]:
 *
 *   S'  = w_t (.) S_{t-1}                                  w_t: none, a number, or one per row of S
 *   S_t = S' + k_t v_t^T                                   no erase
 *   S_t = S' + beta_t k_t (v_t - S'^T k_t)^T               erase by the own key
 *   S_t = S' + b_t (S_{t-1}^T a_t)^T + k_t v_t^T           free rank one: reads before the decay
 *   o_t = S_t^T q_t
 *   o_t = S_{t-1}^T q_t + (sum_n q_n u_n k_n) v_t          with a bonus
 *
 * Where outputs are normalised they are o_t / (n_t + eps), or o_t / max(|n_t|, 1):
 *
 *   z_t = w_t (.) z_{t-1} + k_t
 *   n_t = q_t . z_t
 *
 * q comes times `scale`. A write gate multiplies k_t v_t^T and the k_t of z by exp(i_t). S and z
 * are then stored times exp(-m_t), m_t = max(g_t + m_{t-1}, i_t), which keeps them finite for any
 * gate; the bound 1 becomes exp(-m_t). Outputs do not depend on m, a constant in backward. */
#pragma once

#include "backend.h"

/* Element (b,t,h,:) of an array is at[b*batch + t*row + (h/per)*head]. per = 0 counts as 1, and
 * strides of 0 repeat. */
struct recur_rows {
    const float *at;
    ptrdiff_t batch, row, head;
    int per;
};

enum {
    RECUR_CHUNK = 64,     /* keys of a chunk */
    RECUR_CHUNK_FREE = 32 /* with a free rank one, whose systems grow ill conditioned */
};

enum recur_norm { RECUR_PLAIN, RECUR_SUM, RECUR_MLSTM, RECUR_NORMS };
extern const char *const recur_norm_name[RECUR_NORMS + 1]; /* "none" "sum" "mlstm" NULL */

struct recur {
    int B, L, M;            /* sequences, queries, keys before them; K = M+L */
    int H, Hs;              /* heads of q and o; state heads, which divide H: head h uses h*Hs/H */
    int dk, dv;             /* widths of a head of keys and of values */
    float scale;            /* of q */
    struct recur_rows q;    /* [B,L,H,dk]; at NULL (dk = 1): ones */
    struct recur_rows k;    /* [B,K,Hs,dk]; likewise */
    struct recur_rows v;    /* [B,K,Hs,dv] */
    struct recur_rows g;    /* [B,K,Hs,g_width] log decay, <= 0 */
    int g_width;            /* 0 no decay, 1 per head, dk per key channel */
    struct recur_rows beta; /* [B,K,Hs] erase by the own key; at NULL = none; excludes a and b */
    struct recur_rows a, b; /* [B,K,Hs,dk] free rank one; at NULL = none */
    const float *u;         /* [H,dk] bonus, or NULL */
    struct recur_rows i;    /* [B,K,Hs] log write gate; at NULL = none; needs g_width <= 1 */
    enum recur_norm norm;   /* not with an erase or a bonus */
    float eps;
    const float *s0, *z0, *m0; /* [B,Hs,dk,dv] [B,Hs,dk] [B,Hs]; NULL: zeros, zeros, -inf */
    float *s1, *z1, *m1;       /* NULL = not wanted; may be s0, z0, m0 if no backward follows */
    float *o;                  /* [B,L,H,dv] contiguous */
    float *den;                /* [B,L,H] the divisors, for backward; or NULL */
    /* Forward only: each number of q, k, v, a and b is rounded to bf16 (elem.h) where it is read,
     * before anything multiplies it. All else is as without: states, decays, beta, gates, bonus,
     * z, m and every sum are of floats. Kernels for states of one number do not take it. */
    bool bf16;
};

/* Gradients of one call from d_o [B,L,H,dv] and d_s1 [B,Hs,dk,dv] (NULL = 0); o and den are those
 * of forward. All are overwritten, have the shapes and strides of their operands, and sum over
 * heads and rows that share one. NULL = not wanted; d_s0 and d_z0 [as s0, z0]. d_u is accumulated.
 */
struct recur_grad {
    const float *d_o, *d_s1;
    float *d_q, *d_k, *d_v, *d_g, *d_beta, *d_a, *d_b, *d_u, *d_i, *d_s0, *d_z0;
};

struct recur_impl {
    const char *name;
    bool (*accepts)(const struct recur *r, bool backward);
    size_t (*need)(const struct recur *r, int threads, bool backward); /* bytes */
    /* `scratch` has `need` bytes, 64-byte aligned, contents undefined. The result does not depend
     * on the number of threads. */
    void (*forward)(const struct engine *g, const struct recur *r, void *scratch);
    void (*backward)(const struct engine *g, const struct recur *r, const struct recur_grad *d,
                     void *scratch);
};
extern const struct recur_impl recur_ref, recur_chunked;
extern const struct recur_impl *const recur_composed[]; /* both, chunks first */

/* The first implementation that accepts the call: of those without products, then of the backend's
 * own. It is a mistake to ask for a backward pass of rounded operands. */
const struct recur_impl *engine_recur(const struct engine *g, const struct recur *r, bool backward);

static inline const float *recur_at(const struct recur_rows *r, int b, int t, int h)
{
    return r->at + b * r->batch + t * r->row + h / (r->per ? r->per : 1) * r->head;
}

/* An operand's number as it is multiplied. */
static inline float recur_operand(const struct recur *r, float x)
{
    return r->bf16 ? bf16_float(bf16_of(x)) : x;
}

/* Does a state keep nothing after log decay g, e^-42 = 2^-60.6 or less of it? The gradient of g is
 * e^g times what the state gave and got. Where it is computed as a sum over later readers and
 * writers, their rounding is left, which the slope of g = -e^y would enlarge. A write gate changes
 * the unit of the state. */
static inline bool recur_resets(const struct recur *r, float g) { return !r->i.at && g < -42; }

/* The gradient's element where the operand's is. */
static inline float *recur_grad_at(float *d, const struct recur_rows *r, int b, int t, int h)
{
    return d + b * r->batch + t * r->row + h / (r->per ? r->per : 1) * r->head;
}

/* Useful FLOP of a call: one row after the other where there is one query, otherwise in chunks of
 * recur_chunk(r) keys with masked pairs not counted; no exponentials, decays of single numbers,
 * bonus or normaliser. */
double recur_flop(const struct recur *r);
int recur_chunk(const struct recur *r); /* keys of a chunk */

/* Zero the gradients of operands, to which all that share one add; d_u, d_s0 and d_z0 are left. */
void recur_clear(const struct recur *r, const struct recur_grad *d);

/* Backward in parts that add to no gradient of each other's: sequences share that of the bonus and
 * of what they share, state heads that of operands that they share. */
struct recur_part {
    int b0, b1, h0, h1; /* sequences, state heads */
};
int recur_parts(const struct recur *r, const struct recur_grad *d);
struct recur_part recur_part(const struct recur *r, const struct recur_grad *d, int i);

/* Index of the state of sequence b's head. */
static inline ptrdiff_t recur_state(const struct recur *r, int b, int hs)
{
    return (ptrdiff_t)b * r->Hs + hs;
}
