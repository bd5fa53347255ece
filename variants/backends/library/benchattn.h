/* SPDX-License-Identifier: MIT
 *
 * libbenchattn: attention with the terms that published models add to it, linear recurrences and the
 * short convolution before them, forward and backward, in float on CPUs. This is the whole interface.
 *
 * Functions return an enum ba_status. If that is not BA_OK they have computed nothing, and `why`
 * (NULL, or room for `why_size` characters) holds one line: what, then "  -> " and what to do.
 * Nothing is printed and nothing ends the process, except that a mistake of the library itself
 * aborts. Pointers are believed: arrays must be as long as the numbers say.
 *
 * Structs begin with `size`, which is sizeof(struct ...) of the caller: later versions add members
 * at the end. All other members may be zero, which means "without" or the default that is named.
 * Strides and offsets count numbers, not bytes.
 *
 *     struct ba_attention a = {.size = sizeof(a), .B = 1, .H = 8, .L = 512, .dh = 64, .causal = 1,
 *                              .q = q, .k = k, .v = v, .o = o};
 *     status = ba_attention_forward(engine, &a, why, sizeof(why)); */
#ifndef BENCHATTN_H
#define BENCHATTN_H

#include <stddef.h>
#include <stdint.h>

#define BA_VERSION 1 /* also that of the file: libbenchattn.so.1 */
#define BA_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

enum ba_status {
    BA_OK,
    BA_ARGUMENT,    /* arguments contradict each other, or make no sense */
    BA_UNSUPPORTED, /* not on this CPU, or not in this version */
    BA_MEMORY,      /* no memory, or no thread */
};

/* ---- engine -------------------------------------------------------------------------------- */

/* What executes calls: kernels for one level of instructions, a number of threads, and work space,
 * which grows to what the largest call needed. Calls of one engine wait for each other; engines are
 * independent.
 *
 * The threads are the OpenMP team of the calling thread. Where they run is left to the caller:
 * OMP_PLACES and OMP_PROC_BIND, or the affinity of the caller, which they inherit. Inside a parallel
 * region calls run on the calling thread alone. Results have the same bits for any number of
 * threads; attention of a few queries, whose keys are divided, is the exception.
 *
 * A call takes up to 64 KiB of the stack of each thread: those of the team have what OMP_STACKSIZE
 * says, 128k or more. What is larger is work space. */
struct ba_engine;

struct ba_engine_options {
    size_t size;
    const char
        *backend; /* "ref" (plain C, sums in double), "avx2", "avx512", ...; NULL: the best */
    int threads;  /* 0 = 1 */
    int reserved; /* 0 */
};

BA_API int ba_engine_open(struct ba_engine **engine, const struct ba_engine_options *options,
                          char *why, size_t why_size);
BA_API void ba_engine_close(struct ba_engine *engine); /* may be NULL */

/* The backend that was chosen; the names that this CPU can have, NULL after the last. */
BA_API const char *ba_engine_backend(const struct ba_engine *engine);
BA_API const char *ba_backend_name(int i);

/* ---- attention ----------------------------------------------------------------------------- */

/* Key c is visible to a query at position a, with n = a - c, if n = 0 or one of these holds, among
 * those whose first member is not 0; a zeroed mask hides nothing:
 *
 *   window, dilation    |n| < window dilation and n mod dilation = 0       (dilation 0 is 1)
 *   block, back         whole blocks of a and of c are at most `back` apart
 *     memory            or c is one of so many before the block of a              (needs block)
 *     n_random          or the block of c is one of random[block of a][..]      (needs block)
 *   stride              n mod stride = 0
 *   fixed, summary      c mod fixed >= fixed - summary
 *   global              c < global or a < global
 *   rect_rows, rect     positions are a picture of rows of `row` columns, cut into tiles of so many
 *                       rows and columns, in the order of reading, as are the positions of a tile;
 *                       c is in the tile of a, or at most `margin_rows` rows and `margin` columns
 *                       from it
 *
 * With `rows` nothing of this holds: key c is visible if bit c of row a is set. */
struct ba_mask {
    size_t size;
    int window, dilation;
    int block, back, memory;
    int stride;
    int fixed, summary;
    int global;
    int n_random, random_blocks;
    int row_words;         /* words of a row of bits */
    int64_t random_from;   /* query block of row 0 of random */
    const int32_t *random; /* [random_blocks, n_random] key blocks per query block, -1 = none */
    const uint64_t *rows;  /* bits of keys for each position of a query, lowest first; or NULL */
    int rect_rows, rect, row, margin_rows, margin; /* rect divides row */
    int reserved;                                  /* 0 */
};

/* Element (b,i,:) is at[b * batch + i * row]; 0 = as in an array without gaps. */
struct ba_stride {
    ptrdiff_t batch, row;
};

/*   x[h,i,j] = (q_i + u) . k_j + (q_i + w) . rel_k[dist] + k_j . rel_q[dist]
 *   s[h,i,j] = cap(scale x) + bias[dist] + add[h,i,j] + fade[h,M+i] - fade[h,j]
 *   cap(y)   = soft_cap tanh(y / soft_cap)
 *   s[g]    <- sum_h mix_logits[g,h] s[h]
 *   p[h,i]   = softmax over the sinks n:        scale (q_i + u) . sink_k[n] + sink_logit[n]
 *                       and the visible keys j: gain s[i,j]
 *   p[g]    <- sum_h mix_probs[g,h] p[h]
 *   o_i      = sum_n p_in sink_v[n] + sum_j p_ij (v_j + rel_v[dist])
 *
 * The M keys of the memory stand before those of the L queries, so that
 *
 *   dist = M + i - j
 *   dist = q_first + i q_step - j k_step     with q_step
 *
 * Key j is visible to query i of a head if !causal or dist >= 0, and window == 0 or dist < window,
 * and there is no mask or it shows the pair. For masks key j is at position base + j (j k_step), and
 * query i at dist(i, 0) after base. A query that sees nothing and has no sinks gets o = 0, lse =
 * -inf. Where heads are mixed, a query's row has every key that any of its heads sees; p of the
 * other heads is 0 there.
 *
 * Tables by distance have R + Rf rows, farthest past first: distance n >= 0 is row R-1 - min(n,
 * R-1), the future distance -n is row R-1 + min(n, Rf). */
struct ba_attention {
    size_t size;
    int B, H, L, M, dh; /* sequences, query heads, queries, keys of the memory, width of a head */
    int Hkv;            /* key/value heads, which divide H; 0 = H */
    int K;              /* keys; 0 = M + L. Otherwise they are not ordered with the queries */
    int dv;             /* width of a head of v and o; 0 = dh, which rel_v requires */
    int causal;         /* 0 or 1 */
    int window;         /* keys; 0 = off */
    int R, Rf;          /* rows of tables by distance */
    float scale;        /* 0 = 1 / sqrt(dh) */
    int n_masks;
    const float *q, *k, *v; /* [B,L,H,dh] [B,K,Hkv,dh] [B,K,Hkv,dv] */
    struct ba_stride q_at, k_at, v_at, o_at;
    float *o;   /* [B,L,H,dv] */
    float *lse; /* [B,H,L] log of the softmax's divisor; backward needs it */

    /* positions */
    const float *u, *w;                 /* [H,dh] */
    const float *rel_k, *rel_v, *rel_q; /* [H or 1, R+Rf, dh] */
    const float *bias;                  /* [H or 1, R+Rf] */
    ptrdiff_t rel_head, bias_head;      /* from head to head; 0 = shared by all */
    int q_step, k_step, q_first;        /* of pooled queries and keys; q_step = 0: off */

    /* visibility */
    int sinks;                   /* further keys, which every query sees */
    ptrdiff_t base;              /* position of key 0, for masks */
    const struct ba_mask *masks; /* [n_masks], all of one size; at most 256 */
    const uint8_t *mask_of_head; /* [H] index into masks; NULL = the first for all */
    const int *window_of_head;   /* [H], in place of `window` */

    /* scores */
    const float *add; /* [B,H,L,K]; a stride of 0 repeats */
    ptrdiff_t add_batch, add_head, add_row;
    const double *fade; /* [B,H,M+L] running sums; likewise */
    ptrdiff_t fade_batch, fade_head;
    float *scores_out;                   /* [B,H,L,K] gets s of visible pairs */
    const float *mix_logits, *mix_probs; /* [H,H] new head, old head */
    const float *sink_k, *sink_v;        /* [H,sinks,dh] [H,sinks,dv] */
    const float *sink_logit;             /* [H,sinks] */
    float soft_cap;                      /* 0 = off */
    float gain;                          /* 0 = 1 */
    int no_content;                      /* 1: x = 0; q and k are not read */

    /* Packed texts: with B = 1, M = 0 and K = 0 text n has tokens [cu_seqlens[n], cu_seqlens[n+1]),
     * and is computed as if it were alone. Its lse is [H, its tokens] at lse + H cu_seqlens[n]. Not
     * with add, fade, scores_out and q_step. */
    int texts;                 /* 0 = off */
    const int32_t *cu_seqlens; /* [texts + 1], ascending from 0 to L */
};

/* Gradients, from those of the outputs. d_q, d_k and d_v have the strides of q, k and v, are
 * overwritten and needed (d_q and d_k not with no_content). The others have the shapes and strides
 * of their operands, are added to, and are not wanted where NULL. */
struct ba_attention_grad {
    size_t size;
    const float *d_o;          /* strides o_at */
    const float *d_scores_out; /* [B,H,L,K], read at visible pairs; or NULL */
    float *d_q, *d_k, *d_v;
    float *d_u, *d_w, *d_rel_k, *d_rel_v, *d_rel_q, *d_bias;
    float *d_add;   /* may be d_scores_out, laid out alike: its values then count as added */
    double *d_fade; /* [B,H,M+L] with the strides of fade, which then must not repeat */
    float *d_mix_logits, *d_mix_probs, *d_sink_k, *d_sink_v, *d_sink_logit;
};

BA_API int ba_attention_forward(struct ba_engine *engine, const struct ba_attention *a, char *why,
                                size_t why_size);
/* After forward, whose o and lse it reads. Scores are computed again, not kept. */
BA_API int ba_attention_backward(struct ba_engine *engine, const struct ba_attention *a,
                                 const struct ba_attention_grad *d, char *why, size_t why_size);

/* ---- recurrences --------------------------------------------------------------------------- */

/* For one sequence and one state head, with t over keys, w_t = exp(g_t) and S [dk,dv]:
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
 * q comes times `scale`. A write gate multiplies k_t v_t^T and the k_t of z by exp(i_t). S and z are
 * then stored times exp(-m_t), m_t = max(g_t + m_{t-1}, i_t), and the bound 1 becomes exp(-m_t). It
 * needs a normaliser, because outputs would depend on m otherwise; a sum then has eps 0. */

/* Element (b,t,h,:) is at[b * batch + t * row + (h / per) * head]. per = 0 counts as 1, and strides
 * of 0 repeat. */
struct ba_rows {
    const float *at;
    ptrdiff_t batch, row, head;
    ptrdiff_t per;
};

enum ba_norm { BA_NORM_NONE, BA_NORM_SUM, BA_NORM_MLSTM };

struct ba_recurrence {
    size_t size;
    int B, L, M; /* sequences, queries (0 with M), keys before them; K = M + L */
    int H, Hs;   /* heads of q and o; state heads, which divide H; 0 = H */
    int dk, dv;  /* widths of a head of keys and of values */
    int g_width; /* 0 no decay, 1 per head, dk per key channel */
    float scale; /* of q; 0 = 1 */
    float eps;
    int norm;                  /* enum ba_norm; not with an erase or a bonus */
    int texts;                 /* of cu_seqlens; 0 = off */
    struct ba_rows q;          /* [B,L,H,dk]; at NULL, with dk = 1: ones */
    struct ba_rows k;          /* [B,K,Hs,dk]; likewise */
    struct ba_rows v;          /* [B,K,Hs,dv] */
    struct ba_rows g;          /* [B,K,Hs,g_width] log decay, <= 0 */
    struct ba_rows beta;       /* [B,K,Hs] erase by the own key; excludes a and b */
    struct ba_rows a, b;       /* [B,K,Hs,dk] free rank one */
    struct ba_rows i;          /* [B,K,Hs] log write gate; needs g_width <= 1 */
    const float *u;            /* [H,dk] bonus; not with a write gate */
    const float *s0, *z0, *m0; /* [B,Hs,dk,dv] [B,Hs,dk] [B,Hs] before; NULL: zeros, zeros, -inf */
    float *s1, *z1, *m1;       /* after; may be s0, z0, m0 if no backward follows */
    float *o;                  /* [B,L,H,dv] */
    float *den; /* [B,L,H] divisors; backward needs them where outputs are normalised */

    /* Packed texts: with B = 1 and M = 0 text n has tokens [cu_seqlens[n], cu_seqlens[n+1]) and a
     * state of its own: read [texts,...] for [B,...] of s0 to m1. */
    const int32_t *cu_seqlens; /* [texts + 1], ascending from 0 to L */
};

/* Gradients, from those of o and s1. They have the shapes and strides of their operands, are
 * overwritten (d_u is added to), and sum over what shares a number. NULL = not wanted. */
struct ba_recurrence_grad {
    size_t size;
    const float *d_o, *d_s1; /* [B,L,H,dv]; [B,Hs,dk,dv], or NULL */
    float *d_q, *d_k, *d_v, *d_g, *d_beta, *d_a, *d_b, *d_u, *d_i, *d_s0, *d_z0;
};

BA_API int ba_recurrence_forward(struct ba_engine *engine, const struct ba_recurrence *r, char *why,
                                 size_t why_size);
/* After forward, whose o and den it reads. */
BA_API int ba_recurrence_backward(struct ba_engine *engine, const struct ba_recurrence *r,
                                  const struct ba_recurrence_grad *d, char *why, size_t why_size);

/* ---- short causal convolution -------------------------------------------------------------- */

/* Of each channel alone, as before recurrences (causal_conv1d):
 *
 *   y_t = f(bias + sum_s w_s x_{t-taps+1+s})          s = 0 .. taps - 1; f: none, or x sigmoid(x)
 *
 * Rows before the first are those of the state, or 0. */
struct ba_conv {
    size_t size;
    int B, L, n, taps; /* sequences, tokens, channels, rows that one output reads */
    int silu;          /* 1: f is x sigmoid(x) */
    int texts;         /* of cu_seqlens; 0 = off */
    const float *x;    /* [B,L,n] */
    const float *w;    /* [n,taps]; the last is the token's own */
    const float *bias; /* [n], or NULL */
    const float *s0;   /* [B,taps-1,n] rows before the first; NULL = 0 */
    float *s1; /* likewise after the last; NULL = not wanted; may be s0 if no backward follows */
    float *y;  /* [B,L,n], not over x */

    /* Packed texts: with B = 1, as of recurrences; states [texts,taps-1,n]. */
    const int32_t *cu_seqlens; /* [texts + 1], ascending from 0 to L */
};

/* Gradients, from those of y and s1. d_x, which is needed, and d_s0 are overwritten, the others added to.
 * NULL = not wanted. */
struct ba_conv_grad {
    size_t size;
    const float *d_y, *d_s1; /* [B,L,n]; [B,taps-1,n], or NULL */
    float *d_x, *d_w, *d_bias, *d_s0;
};

BA_API int ba_conv_forward(struct ba_engine *engine, const struct ba_conv *c, char *why,
                           size_t why_size);
/* Needs no forward: sums are computed again. */
BA_API int ba_conv_backward(struct ba_engine *engine, const struct ba_conv *c,
                            const struct ba_conv_grad *d, char *why, size_t why_size);

#ifdef __cplusplus
}
#endif
#endif
