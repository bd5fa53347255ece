/* SPDX-License-Identifier: MIT
 *
 * Attention as data: what a position scheme fills in and a backend executes. A zeroed member always
 * means "without". What executes it is in backend.h. */
#ifndef ATTN_H
#define ATTN_H

#include "mask.h"

/*   x[h,i,j] = (q_i + u) . k_j + (q_i + w) . rel_k[dist] + k_j . rel_q[dist]
 *   s[h,i,j] = scale * x + bias[dist] + add[h,i,j]
 *   s[g]    <- sum_h mix_logits[g,h] s[h]                               scores_out = s
 *   p[h,i]   = softmax over the sinks n: scale * (q_i + u) . sink_k[n], and
 *                           the visible keys j: gain * s[i,j]           lse = log of their sum
 *   p[g]    <- sum_h mix_probs[g,h] p[h]
 *   o_i      = sum_n p_in sink_v[n] + sum_j p_ij (v_j + rel_v[dist])
 *
 * NULL removes a term, 0 a number (a gain of 0 is one of 1). dist = M + i - j, or with q_step
 * q_first + i q_step - j k_step.
 *
 * Key j is visible to query i of a head if !causal or dist >= 0, and window == 0 or dist < window,
 * and mask == NULL or it shows the pair; query i is at position base + dist(i, 0) of the stream
 * there, key j at base + j (j k_step). A query that sees nothing and has no sinks gets o = 0,
 * lse = -inf. Where heads are mixed a query meets every key that one of its heads sees; p of the
 * others is 0 there.
 *
 * Tables have R + Rf rows, farthest past first: distance n >= 0 is row R-1 - min(n, R-1), the
 * future distance -n is row R-1 + min(n, Rf). So Shaw's full table is R = clip+1, Rf = clip; its
 * causal one Rf = 0; Transformer-XL's is R = K, or with clamp_len c R = min(K, c+1). Row index as a
 * function of j: clamp(j + R-1-M-i, 0, R+Rf-1), hence contiguous. u and w are the papers' u and v.
 */
struct stride {
    ptrdiff_t batch, row; /* floats */
};

/* Element (b,h,i,j) is at[b * batch + h * head + i * row + j]; a distance of 0 repeats. */
struct dense {
    const float *at;
    ptrdiff_t batch, head, row; /* floats */
};

struct attn {
    int B, H, L, M, dh; /* sequences, heads, queries, keys in front of the queries', head width */
    int Hkv;            /* heads of k and v; divides H */
    int window;         /* 0 = off */
    int R, Rf;
    bool causal;
    float scale;
    const float *q, *k, *v; /* [B,L,H,dh] [B,K,Hkv,dh] [B,K,Hkv,dh], K = M+L */
    struct stride q_at, k_at, v_at, o_at;
    const float *u, *w;         /* [H,dh] */
    const float *rel_k, *rel_v; /* [H or 1, R+Rf, dh] */
    ptrdiff_t rel_head;         /* floats between heads' tables, 0 = shared */
    const float *bias;          /* [H or 1, R+Rf] */
    ptrdiff_t bias_head;        /* floats between heads' biases, 0 = shared */
    float *o;                   /* [B,L,H,dh] */
    float *lse;                 /* [B,H,L], or NULL */

    /* what is seen */
    ptrdiff_t base;              /* position of key 0 in the stream; only masks ask */
    const struct mask *mask;     /* one, or those that mask_of_head chooses from */
    const uint8_t *mask_of_head; /* [H] index into mask; NULL = the first for all */
    const int *window_of_head;   /* [H] each as `window`, which does not count then */
    int q_step, k_step,
        q_first; /* distances of pooled queries and keys; q_step = 0: dist = M+i-j */

    /* scores */
    bool no_content;         /* x = 0: q and k are not read, nor may u, w, rel_k, rel_q, sinks be */
    const float *rel_q;      /* as rel_k */
    struct dense add;        /* [B,H,L,K] */
    float *scores_out;       /* [B,H,L,K], visible pairs are written */
    float gain;              /* 0 = 1 */
    const float *mix_logits; /* [H,H] new head, old head */
    const float *mix_probs;  /* [H,H] */
    int sinks;               /* keys beside those of the sequence, which every query sees */
    const float *sink_k, *sink_v; /* [H,sinks,dh] */
};

/* Gradients of one forward call, from d_o [B,L,H,dh] (strides o_at) and d_scores_out. d_q, d_k, d_v
 * have the strides of q, k, v and are written, heads that share a key summed; those of the terms
 * have the shapes and distances of their terms and are added to, because layers, sequences and
 * heads may share them: rows and pairs that are not used keep what they had. NULL = not wanted.
 * With delta_i = sum_j p dA, over the sinks as well, and dA_ij = dO_i . (v_j + rel_v[dist]),
 *
 *   G = gain p (dA - delta) + d_scores_out
 *
 * is the gradient of s where visible; scale G (without mixing) is what reaches every product. */
struct attn_grad {
    const float *d_o;
    const float *d_scores_out; /* [B,H,L,K]; visible pairs are read */
    float *d_q, *d_k, *d_v;
    float *d_u, *d_w, *d_rel_k, *d_rel_v, *d_rel_q, *d_bias;
    /* As add; d_scores_out itself, which lies alike: what it holds counts as added already. */
    float *d_add;
    float *d_mix_logits, *d_mix_probs, *d_sink_k, *d_sink_v;
};

static inline int attn_dist(const struct attn *a, int i, int j)
{
    return a->q_step ? a->q_first + i * a->q_step - j * a->k_step : a->M + i - j;
}

/* Table row of key j for query i; 0 where there are no tables. */
static inline int attn_table_row(const struct attn *a, int i, int j)
{
    return clamp_int(a->R - 1 - attn_dist(a, i, j), 0, max_int(0, a->R + a->Rf - 1));
}

static inline float attn_gain(const struct attn *a) { return a->gain == 0 ? 1 : a->gain; }

/* `window` of head h. */
static inline int attn_window(const struct attn *a, int h)
{
    return a->window_of_head ? a->window_of_head[h] : a->window;
}

/* Where row (b,h,i) of a dense term begins. */
static inline ptrdiff_t attn_dense_at(const struct dense *d, int b, int h, int i)
{
    return b * d->batch + h * d->head + i * d->row;
}

/* Where row (b,h,i) of scores_out begins. */
static inline ptrdiff_t attn_scores_at(const struct attn *a, int b, int h, int i)
{
    return (((ptrdiff_t)b * a->H + h) * a->L + i) * (a->M + a->L);
}

/* Do heads meet, so that they cannot be computed one after the other? */
static inline bool attn_mixes(const struct attn *a) { return a->mix_logits || a->mix_probs; }

/* What head h sees. */
struct sight attn_sight(const struct attn *a, int h);

/* Go on to the next keys behind r->to that any of the heads [h, h+n) sees from query i, as far as
 * they lie side by side; false where there are no more. Begin with a range of zeros. */
bool attn_next_keys(const struct attn *a, int h, int n, int i, struct range *r);

/* From the first key that any of these heads sees from any of the queries [i, i+rows) to the last.
 */
struct range attn_hull(const struct attn *a, int h, int n, int i, int rows);

/* ---- which terms there are ---------------------------------------------------------------- */

/* Whatever an implementation may not know. X(name, is it there?, refusal) */
#define ATTN_TERMS(X)                                                                              \
    X(WINDOW, a->window != 0, "knows no window")                                                   \
    X(SHARED_KEYS, a->Hkv != a->H, "knows no shared key heads")                                    \
    X(U, a->u != NULL, "knows no vector on the queries")                                           \
    X(REL_K, a->rel_k != NULL, "knows no relative keys")                                           \
    X(REL_V, a->rel_v != NULL, "knows no relative values")                                         \
    X(BIAS, a->bias != NULL, "knows no bias")                                                      \
    X(LSE, a->lse != NULL, "gives no log-sum-exp")                                                 \
    X(MASK, a->mask != NULL, "knows no sparse mask")                                               \
    X(WINDOW_OF_HEAD, a->window_of_head != NULL, "knows no window of each head")                   \
    X(STEPS, a->q_step != 0, "knows no steps between positions")                                   \
    X(NO_CONTENT, a->no_content, "needs queries and keys")                                         \
    X(REL_Q, a->rel_q != NULL, "knows no relative queries")                                        \
    X(ADD, a->add.at != NULL, "adds nothing to the scores of a pair")                              \
    X(SCORES_OUT, a->scores_out != NULL, "gives no scores")                                        \
    X(GAIN, a->gain != 0, "knows no gain")                                                         \
    X(MIX, attn_mixes(a), "mixes no heads")                                                        \
    X(SINKS, a->sinks != 0, "knows no sinks")

enum attn_term_index {
#define X(name, there, refusal) TERM_INDEX_##name,
    ATTN_TERMS(X)
#undef X
        TERM_COUNT
};
enum attn_term {
#define X(name, there, refusal) TERM_##name = 1 << TERM_INDEX_##name,
    ATTN_TERMS(X)
#undef X
};

/* What plain kernels know: everything up to there is one table row and one range per query. */
enum {
    TERMS_PLAIN = TERM_WINDOW | TERM_SHARED_KEYS | TERM_U | TERM_REL_K | TERM_REL_V | TERM_BIAS |
                  TERM_LSE | TERM_WINDOW_OF_HEAD
};

/* What the hand-written fused kernels know. */
enum {
    TERMS_FUSED = TERMS_PLAIN | TERM_MASK | TERM_NO_CONTENT | TERM_ADD | TERM_SCORES_OUT |
                  TERM_GAIN | TERM_SINKS
};

unsigned attn_terms(const struct attn *a); /* enum attn_term */

/* For accepts(): true if every term of `a` is among the `known`; else *why_not names the first. A
 * term that is added to the list is thus refused by all who have not heard of it. */
bool attn_knows(const struct attn *a, unsigned known, const char **why_not);

/* Stop where members contradict each other. */
void attn_check(const struct attn *a);

/* ---- cost and size ------------------------------------------------------------------------ */

/* Visible (query, key) pairs of head h of one sequence. */
double attn_pairs(const struct attn *a, int h);

/* Useful FLOP of one forward call: masked pairs, exp and softmax not counted. */
double attn_flop(const struct attn *a);

/* Useful FLOP of one backward call: two products for each one of forward, masked
 * pairs and the recomputed scores not counted. */
double attn_grad_flop(const struct attn *a);

/* Compulsory bytes of one forward call: q, k, v, o and the terms, once each. */
double attn_bytes(const struct attn *a);

/* The same attention for a shorter past or segment: tables are cut to the distances that exist.
 * Strides and pointers to q, k, v, o stay, and with them key 0 and its place in the stream. What
 * lies pair by pair (add) stays only while M does, steps belong to one shape. */
void attn_resize(struct attn *a, int L, int M);

#endif
