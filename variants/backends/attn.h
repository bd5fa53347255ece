/* SPDX-License-Identifier: MIT
 *
 * Attention as data: a position scheme fills it in and a backend executes it (backend.h). A zeroed
 * member always means "without". */
#pragma once

#include "mask.h"

/*   x[h,i,j] = (q_i + u) . k_j + (q_i + w) . rel_k[dist] + k_j . rel_q[dist]
 *   s[h,i,j] = cap(scale * x) + bias[dist] + add[h,i,j] + fade[h,M+i] - fade[h,j]
 *   cap(y)   = soft_cap tanh(y / soft_cap)
 *   s[g]    <- sum_h mix_logits[g,h] s[h]
 *   p[h,i]   = softmax over the sinks n:        scale * (q_i + u) . sink_k[n] + sink_logit[n]
 *                       and the visible keys j: gain * s[i,j], or what `weigh` makes of these
 *   p[g]    <- sum_h mix_probs[g,h] p[h]
 *   o_i      = sum_n p_in sink_v[n] + sum_j p_ij (v_j + rel_v[dist])
 *
 * scores_out receives s as the softmax reads it, lse the log of the softmax's divisor; `weigh`
 * leaves it as it is.
 *
 * NULL removes a term, and so does 0 for a number (gain 0 means 1, dv 0 means dh). The distance is
 *
 *   dist = M + i - j
 *   dist = q_first + i q_step - j k_step     with q_step
 *
 * Key j is visible to query i of a head if !causal or dist >= 0, and window == 0 or dist < window,
 * and mask == NULL or the mask shows the pair. For the mask, query i is at stream position base +
 * dist(i, 0) and key j at base + j (j k_step). A query that sees nothing and has no sinks gets o =
 * 0, lse = -inf. Where heads are mixed, a query's row has every key that any of its heads sees; p
 * of the other heads is 0 there.
 *
 * Tables have R + Rf rows, farthest past first: distance n >= 0 is row R-1 - min(n, R-1), the
 * future distance -n is row R-1 + min(n, Rf). Shaw's full table is R = clip+1, Rf = clip; its
 * causal one Rf = 0; Transformer-XL's is R = K, or with clamp_len c R = min(K, c+1). The row of key
 * j is clamp(j + R-1-M-i, 0, R+Rf-1), hence contiguous in j. u and w are the papers' u and v. */
struct stride {
    ptrdiff_t batch, row; /* floats */
};

/* Element (b,h,i,j) is at[b * batch + h * head + i * row + j]; a stride of 0 repeats. */
struct dense {
    const float *at;
    ptrdiff_t batch, head, row; /* floats */
};

/* A running sum over the keys of (sequence, head), which only its differences reach: element
 * (b,h,j) is at[b * batch + h * head + j]. A float of a sum of many logarithms is coarse where the
 * difference of two neighbours is small. */
struct fade {
    const double *at;
    ptrdiff_t batch, head;
};

/* In place of softmax, for a row of n keys in their order: scores, -inf where hidden, become
 * weights, 0 there; `keep` is for backward, where d, gradients of the weights, become those of the
 * scores, 0 where hidden. */
struct attn_weigh {
    void (*forward)(double *p, double *keep, int n);
    void (*backward)(double *d, const double *p, const double *keep, int n);
};

struct attn {
    int B, H, L, M, dh; /* sequences, query heads, queries, context keys, head width */
    int Hkv;            /* key/value heads; divides H */
    int K;              /* keys; 0 = M + L. Otherwise they are not ordered with the queries */
    int dv;             /* width of a head of v and o; 0 = dh, which rel_v requires */
    int window;         /* 0 = off */
    int R, Rf;
    bool causal;
    float scale;
    const float *q, *k, *v; /* [B,L,H,dh] [B,K,Hkv,dh] [B,K,Hkv,dv], K: attn_keys */
    /* In place of k and v, forward only: rows of bf16 (elem.h), whose strides count numbers, or
     * rows of heads in q8, whose strides count words of 4 bytes. */
    const uint16_t *k_bf16, *v_bf16;
    const uint32_t *k_q8, *v_q8;
    /* q, k, v, rel_k, rel_v, sink_k and sink_v hold numbers of bf16, forward only. q + u and q + w
     * are rounded to bf16, and the probabilities may be where they meet the values: each term of o
     * is then off by 2^-8 of itself at most. All else is as without. */
    bool bf16;
    bool unrounded; /* with bf16: q, k and v are floats yet, which the implementation rounds */
    struct stride q_at, k_at, v_at, o_at;
    const float *u, *w;         /* [H,dh] */
    const float *rel_k, *rel_v; /* [H or 1, R+Rf, dh] */
    ptrdiff_t rel_head;         /* floats between heads' tables, 0 = shared */
    const float *bias;          /* [H or 1, R+Rf] */
    ptrdiff_t bias_head;        /* floats between heads' biases, 0 = shared */
    float *o;                   /* [B,L,H,dv] */
    float *lse;                 /* [B,H,L], or NULL */

    /* visibility */
    ptrdiff_t base;              /* stream position of key 0, for masks only */
    const struct mask *mask;     /* a single mask, or the array that mask_of_head indexes */
    const uint8_t *mask_of_head; /* [H] index into mask; NULL = the first for all */
    const int *window_of_head;   /* [H] window of each head; replaces `window` */
    int q_step, k_step,
        q_first; /* distances of pooled queries and keys; q_step = 0: dist = M+i-j */

    /* scores */
    bool no_content;    /* x = 0: q, k are not read; u, w, rel_k, rel_q, sinks must be off */
    float soft_cap;     /* 0 = off */
    const float *rel_q; /* as rel_k */
    struct dense add;   /* [B,H,L,K] */
    struct fade fade;
    float *scores_out;              /* [B,H,L,K], only visible pairs are written */
    float gain;                     /* 0 = 1 */
    const struct attn_weigh *weigh; /* NULL = softmax */
    const float *mix_logits;        /* [H,H] new head, old head */
    const float *mix_probs;         /* [H,H] */
    int sinks;                      /* extra keys that every query sees */
    const float *sink_k, *sink_v;   /* [H,sinks,dh] [H,sinks,dv] */
    const float *sink_logit;        /* [H,sinks] */
};

/* Gradients of one forward call, from d_o [B,L,H,dv] (strides o_at) and d_scores_out. NULL = not
 * wanted. d_q, d_k, d_v have the strides of q, k, v and are overwritten; query heads that share a
 * key head are summed. Gradients of terms have the shapes and distances of their terms and are
 * accumulated, because layers, sequences and heads may share them: rows and pairs that are not used
 * keep their values. The gradient of s where visible is G:
 *
 *   dA_ij   = dO_i . (v_j + rel_v[dist])
 *   delta_i = sum_j p_ij dA_ij                       sinks included
 *   G       = gain p (dA - delta) + d_scores_out     or gain weigh->backward(dA) + d_scores_out
 *   cap'    = 1 - tanh^2
 *
 * scale cap' G (without mixing) enters every product. */
struct attn_grad {
    const float *d_o;
    const float *d_scores_out; /* [B,H,L,K]; only visible pairs are read */
    float *d_q, *d_k, *d_v;
    float *d_u, *d_w, *d_rel_k, *d_rel_v, *d_rel_q, *d_bias;
    /* Shaped as add. It may be d_scores_out itself, if laid out alike: its values then count as
     * added. */
    float *d_add;
    double
        *d_fade; /* shaped as fade; the sums of G over queries and over keys are those of doubles */
    float *d_mix_logits, *d_mix_probs, *d_sink_k, *d_sink_v, *d_sink_logit;
};

static inline int attn_keys(const struct attn *a) { return a->K ? a->K : a->M + a->L; }

/* Width of a head of values. */
static inline int attn_dv(const struct attn *a) { return a->dv ? a->dv : a->dh; }

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

/* Where the fade of head h begins, or its gradient. */
static inline ptrdiff_t attn_fade_at(const struct attn *a, int b, int h)
{
    return b * a->fade.batch + h * a->fade.head;
}

/* Where row (b,h,i) of scores_out begins. */
static inline ptrdiff_t attn_scores_at(const struct attn *a, int b, int h, int i)
{
    return (((ptrdiff_t)b * a->H + h) * a->L + i) * attn_keys(a);
}

/* Are heads mixed, so that they cannot be computed one after the other? */
static inline bool attn_mixes(const struct attn *a) { return a->mix_logits || a->mix_probs; }

/* What head h sees. */
struct sight attn_sight(const struct attn *a, int h);

/* Advance r to the next contiguous run of keys after r->to that any of heads [h, h+n) sees from
 * query i; false if there is none. Start with a zeroed range. */
bool attn_next_keys(const struct attn *a, int h, int n, int i, struct range *r);

/* From the first key that any of heads [h, h+n) sees from any of queries [i, i+rows) to the
 * last. */
struct range attn_hull(const struct attn *a, int h, int n, int i, int rows);

/* ---- terms -------------------------------------------------------------------------------- */

/* Everything an implementation may lack. X(name, is it present?, refusal) */
#define ATTN_TERMS(X)                                                                              \
    X(WINDOW, a->window != 0, "does not support a window")                                         \
    X(SHARED_KEYS, a->Hkv != a->H, "does not support shared key/value heads")                      \
    X(U, a->u != NULL, "does not support a vector added to the queries")                           \
    X(REL_K, a->rel_k != NULL, "does not support relative keys")                                   \
    X(REL_V, a->rel_v != NULL, "does not support relative values")                                 \
    X(BIAS, a->bias != NULL, "does not support a bias")                                            \
    X(LSE, a->lse != NULL, "does not return the log-sum-exp")                                      \
    X(MASK, a->mask != NULL, "does not support a sparse mask")                                     \
    X(WINDOW_OF_HEAD, a->window_of_head != NULL, "does not support a window per head")             \
    X(STEPS, a->q_step != 0, "does not support position steps")                                    \
    X(NO_CONTENT, a->no_content, "needs queries and keys")                                         \
    X(REL_Q, a->rel_q != NULL, "does not support relative queries")                                \
    X(ADD, a->add.at != NULL, "does not support a score term per pair")                            \
    X(FADE, a->fade.at != NULL, "does not support keys that fade")                                 \
    X(SCORES_OUT, a->scores_out != NULL, "does not return the scores")                             \
    X(GAIN, a->gain != 0, "does not support a gain")                                               \
    X(MIX, attn_mixes(a), "does not support mixing of heads")                                      \
    X(SINKS, a->sinks != 0, "does not support sinks")                                              \
    X(DV, attn_dv(a) != a->dh, "does not support values of another width than keys")               \
    X(SOFT_CAP, a->soft_cap != 0, "does not support a soft cap")                                   \
    X(WEIGH, a->weigh != NULL, "has softmax alone")                                                \
    X(SINK_LOGIT, a->sink_logit != NULL, "does not support logits of sinks")                       \
    X(BF16, a->v_bf16 != NULL, "does not read keys and values in bf16")                            \
    X(Q8, a->v_q8 != NULL, "does not read keys and values in q8")                                  \
    X(ROUNDED, a->bf16, "does not round its queries to bf16")

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

/* Terms of plain kernels: each query has one range of keys, and each distance one table row. */
enum {
    TERMS_PLAIN = TERM_WINDOW | TERM_SHARED_KEYS | TERM_U | TERM_REL_K | TERM_REL_V | TERM_BIAS |
                  TERM_LSE | TERM_WINDOW_OF_HEAD | TERM_DV
};

/* Terms of the hand-written fused kernels. */
enum {
    TERMS_FUSED = TERMS_PLAIN | TERM_MASK | TERM_NO_CONTENT | TERM_ADD | TERM_FADE |
                  TERM_SCORES_OUT | TERM_GAIN | TERM_SINKS | TERM_SOFT_CAP | TERM_SINK_LOGIT |
                  TERM_BF16 | TERM_Q8 | TERM_ROUNDED
};

unsigned attn_terms(const struct attn *a); /* enum attn_term */

/* For accepts(): true if every term of `a` is in `supported`; else *why_not names the first that is
 * not. A new term is thus refused by every implementation that does not list it. */
bool attn_supports(const struct attn *a, unsigned supported, const char **why_not);

/* How members contradict each other, "what  -> what to do"; NULL = they do not. */
const char *attn_fault(const struct attn *a);

/* Abort if they do. */
void attn_check(const struct attn *a);

/* ---- cost and size ------------------------------------------------------------------------ */

/* Visible (query, key) pairs of head h of one sequence. */
double attn_pairs(const struct attn *a, int h);

/* Useful FLOP of one forward call. Masked pairs, exp and softmax do not count. */
double attn_flop(const struct attn *a);

/* Useful FLOP of one backward call: two products for each forward product. Masked pairs and
 * recomputed scores do not count. */
double attn_grad_flop(const struct attn *a);

/* Compulsory bytes of one forward call: q, k, v, o and the terms, each once. */
double attn_bytes(const struct attn *a);

/* The same attention with a shorter context or segment: tables are cut to the distances that occur.
 * Strides and pointers to q, k, v, o stay, hence also key 0 and its stream position. Terms per pair
 * (add) remain valid only while M is unchanged; position steps belong to one shape. */
void attn_resize(struct attn *a, int L, int M);
