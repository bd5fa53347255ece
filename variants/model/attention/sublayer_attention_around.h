/* SPDX-License-Identifier: MIT
 *
 * What attention does around its core (struct around): normed queries and keys, forgetting, values
 * mixed with the first attention's, gated outputs. Equations: sublayer_attention_around.c. */
#ifndef SUBLAYER_ATTENTION_AROUND_H
#define SUBLAYER_ATTENTION_AROUND_H

#include "sublayer_attention.h"

/* Its parameters in the order they are declared; those that a sub-layer lacks take no place. */
enum around_param {
    AROUND_Q_NORM,
    AROUND_K_NORM,
    AROUND_F,
    AROUND_F_BIAS,
    AROUND_V_MIX,
    AROUND_G,
    AROUND_LAMBDA_Q1, /* one vector, then K1, Q2, K2 */
    AROUND_LAMBDA_K1,
    AROUND_LAMBDA_Q2,
    AROUND_LAMBDA_K2,
    AROUND_DIFF_NORM,
    AROUND_COPE,
    AROUND_LOCAL_W,
    AROUND_LOCAL_PLACE,
    AROUND_LOCAL_WIDTH,
    AROUND_MAN_ROW,
    AROUND_MAN_DISTANCE,
    AROUND_MAN_HEAD,
    AROUND_AGG,
    AROUND_PREDICT_W,
    AROUND_PREDICT_B,
    AROUND_CAMTL_A,
    AROUND_CAMTL_GAMMA,
    AROUND_CAMTL_GAMMA_BIAS,
    AROUND_CAMTL_BETA,
    AROUND_CAMTL_BETA_BIAS,
    AROUND_PARAMS
};
const struct param *around_param(const struct sublayer *s, enum around_param which);
void around_params(const struct sublayer *s, const char *prefix, struct params *p);

/* Does it add a term to the score of each pair? */
bool around_adds(const struct config *c);

/* Does it make its scores from those of the layer below, other than by adding them? The width of a
 * task's vector, 0 = it reads none. */
bool around_hands_on(const struct config *c);
int around_task_width(const struct config *c);

/* Numbers of what is added to scores, and where they are. */
struct around_call;
size_t around_add_floats(const struct config *c, struct around_call n);
struct dense around_dense(const struct config *c, struct around_call n, const float *at);

/* Running sums of log f [B,H,all]: how many, and where they are. */
size_t around_sums_count(const struct config *c, struct around_call n);
struct fade around_sums(const struct config *c, struct around_call n, const double *at);

/* Are its values mixed with the first attention's? */
bool around_mixes_values(const struct sublayer *s);

/* Where each array begins for a call of B sequences, L queries, K projected rows and `all` keys,
 * or that of its gradient; NULL = none. */
struct around_call {
    int B, L, K, all;
};
struct around_work {
    double *sums_f;               /* [B,H,all] of log f up to each key; first, hence aligned */
    float *raw_q, *raw_k, *raw_v; /* projections before norms and mixing [B,L,H,dh] [B,K,Hkv,dh] */
    float *fade;                  /* [B,K,H] y, of which log f = -log(1 + e^-y) */
    float *add;                   /* [B,H,L,all] */
    float *x, *by_vector;         /* contextual positions: [L,all] and [L,n] of one head */
    float *d_by_vector;           /* backward only */
    float *d_row, *d_head_row;    /* backward only: [B,L] [B,H,L] of the trained mask */
    float *o[2], *mixed;          /* [B,L,H,2 dh] of each map, and their difference */
    float *spare;                 /* [B,K] rows of queries or keys */
    float *film;          /* [B,2,n] what a task's scores are multiplied with, and what is added */
    float *mixture;       /* [B,H,L,all] scores that a convolution reads */
    float *lse;           /* [B,H,L] of a call for scores alone */
    float *zeros;         /* backward only: [B,L,H,dh] */
    float *d_v;           /* backward only: of the second map */
    float *votes;         /* [B,L,H,D] of heads, as sublayer_attention_capsules.c */
    float *shares, *sums; /* [B,L,iters,H,capsules] [B,L,iters,D]; backward: only [B,L,2,D] sums */
    float *agreed;        /* [B,L,H,capsules] */
    float *gate, *gated;  /* [B,L,H or H*dh] the gate, [B,L,H*dh] the gated output */
    float *stats;         /* backward only: of norms */
};
struct around_work around_work_of(const struct sublayer *s, float *base, struct around_call n,
                                  bool backward);
struct array around_array(const struct sublayer *s, struct extent max);
struct array around_array_grad(const struct sublayer *s, struct extent max);
struct array around_first_values(const struct sublayer *s, struct extent max, bool backward);

/* Forward: after the projection of queries, or of keys and values that end at stream position
 * `end`; what the core needs; its output as W_o reads it. */
void around_queries(const struct engine *g, const struct sublayer *s, const struct work *w,
                    struct around_call n, struct seq_rows q);
void around_keys(const struct engine *g, const struct sublayer *s, const struct work *w,
                 struct around_call n, struct seq_rows k);
void around_values(const struct engine *g, const struct sublayer *s, const struct work *w,
                   struct around_call n, struct seq_rows v, int64_t end);
void around_fade(const struct engine *g, struct sublayer *s, const struct work *w,
                 struct around_call n, struct seq_rows x);
void around_set_scores(const struct sublayer *s, const struct work *w, struct around_call n,
                       struct attn *a);
/* Differences: rows [heads, 2, dh] of queries or keys become [2, heads, dh], or `back`; the
 * attention of one map; its output in w->own[AT_O]. */
void around_split(const struct engine *g, const struct sublayer *s, const struct work *w,
                  struct around_call n, struct seq_rows x, int rows, int heads, bool back);
struct attn around_map(const struct sublayer *s, const struct work *w, struct around_call n,
                       const struct attn *a, int map);
void around_difference(const struct engine *g, const struct sublayer *s, const struct work *w,
                       struct around_call n);
double around_lambda_init(const struct sublayer *s);
float around_lambda(const struct sublayer *s, double part[2]);
void around_gate(const struct engine *g, const struct sublayer *s, const struct work *w,
                 struct around_call n, struct seq_rows x);
/* The rows that W_o reads. */
const float *around_output(const struct sublayer *s, const struct work *w, struct around_call n);

/* Backward, sublayer_attention_around_grad.c: from the gradient of W_o's rows to that of the core's
 * output, in place; room for that of the scores; from q, k and v to their projections, in place;
 * weight gradients, and those of the source rows [B, K-skip, in], added to d_in. */
void around_output_grad(const struct engine *g, const struct sublayer *s, const struct work *w,
                        struct around_call n, float *d_o);
void around_scores_grad(const struct sublayer *s, const struct work *w, struct around_call n,
                        struct attn_grad *d);
struct attn_grad around_map_grad(const struct sublayer *s, const struct work *w,
                                 struct around_call n, const struct attn_grad *d, int map);
void around_operands_grad(const struct engine *g, const struct sublayer *s, const struct work *w,
                          struct around_call n, struct attn_grad *d);
void around_input_grad(const struct engine *g, const struct sublayer *s, const struct work *w,
                       struct around_call n, struct sublayer_input from, float *d_in, int skip);

/* Contextual positions, sublayer_attention_cope.c: what is added to the scores of `a`, whose q and
 * k are set; from its gradient d->d_add, which is overwritten, to those of q and k, which are added
 * to; useful FLOP forward. */
void cope_add(const struct engine *g, const struct sublayer *s, const struct work *w,
              struct around_call n, const struct attn *a);
void cope_grad(const struct engine *g, const struct sublayer *s, const struct work *w,
               struct around_call n, const struct attn *a, const struct attn_grad *d);
double cope_flop(const struct sublayer *s, const struct attn *a);

/* Preferred places, sublayer_attention_local.c, and the trained mask, sublayer_attention_man.c:
 * likewise. The mask reads the rows x that queries are projected from; its backward leaves their
 * gradients' factors in d_row. */
void local_add(const struct engine *g, const struct sublayer *s, const struct work *w,
               struct around_call n, const struct attn *a);
void local_grad(const struct engine *g, const struct sublayer *s, const struct work *w,
                struct around_call n, const struct attn *a, const struct attn_grad *d);
void man_add(const struct engine *g, const struct sublayer *s, const struct work *w,
             struct around_call n, const struct attn *a, struct seq_rows x);
void man_grad(const struct engine *g, const struct sublayer *s, const struct work *w,
              struct around_call n, const struct attn *a, const struct attn_grad *d);
/* Useful FLOP of either forward. */
double local_flop(const struct sublayer *s, const struct attn *a);
double man_flop(const struct sublayer *s, const struct attn *a);

/* Predicted scores, sublayer_attention_predict.c: does this attention have them; by two calls of
 * the core; the gain of its call, 0 = 1. What is added to its scores; the core, which leaves S for
 * the next attention. Backward: the gradient of S, before; the core, which leaves that of S below;
 * useful FLOP forward. */
bool predicts(const struct sublayer *s);
bool predicts_twice(const struct sublayer *s);
float predict_gain(const struct sublayer *s);
void predict_add(const struct engine *g, const struct sublayer *s, const struct work *w,
                 struct around_call n, const struct attn *a);
void predict_core(const struct engine *g, const struct sublayer *s, const struct work *w,
                  struct around_call n, const struct attn *a);
void predict_scores_grad(const struct engine *g, const struct sublayer *s, const struct work *w,
                         const struct attn *a, struct attn_grad *d);
void predict_core_grad(const struct engine *g, const struct sublayer *s, const struct work *w,
                       struct around_call n, const struct attn *a, const struct attn_grad *d);
double predict_flop(const struct sublayer *s, const struct attn *a);

/* Scores of a task, sublayer_attention_camtl.c: likewise; d_add is summed over heads. Matrices. */
void camtl_add(const struct sublayer *s, const struct work *w, struct around_call n,
               const struct attn *a);
void camtl_grad(const struct sublayer *s, const struct work *w, struct around_call n,
                const struct attn *a, const struct attn_grad *d);
int camtl_blocks(const struct config *c);

/* Outputs of heads o [B,L,H,dh] to w->y, followed by `epilogue`, and the backward of that,
 * sublayer_attention_capsules.c; FLOP of agreeing, without the votes, which cost what W_o does. */
void capsules_out(const struct engine *g, const struct sublayer *s, struct work *w,
                  struct around_call n, const float *o, struct act epilogue);
void capsules_out_grad(const struct engine *g, const struct sublayer *s, const struct work *w,
                       struct around_call n, float *d_o, const float *d_y, const float *o);
double capsules_flop(const struct config *c, double rows);

/* Products forward, for rows of queries and projected rows. */
double around_flop(const struct sublayer *s, double rows, double projected);

#endif
