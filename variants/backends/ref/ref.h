/* SPDX-License-Identifier: MIT
 *
 * What the forward and backward halves of the reference share. */
#pragma once

#include "variants/backends/backend.h"

/* The sum of x[e] y[e], in an order that depends on n only; sum[e] += x y[e]. */
double ref_dot(const double *x, const float *y, int n);
void ref_add(double *sum, double x, const float *y, int n);

/* One query's row of one head, or of all heads where they mix. Sinks follow the keys, as keys K,
 * K+1, ... */
struct ref_row {
    int h, heads;      /* first head, number of heads */
    double *s, *p, *w; /* [heads, K + sinks] scores before mixing, probabilities before and after;
                        * without mixing all are the same array */
    double *slope; /* [heads, K + sinks] cap' of the scores before mixing, or what `weigh` keeps;
                        * NULL = neither */
    double *wide;  /* [REF_OPERANDS, the wider of dh and dv] operands of a head as doubles */
};
static inline double *ref_slope(const struct ref_row *row, ptrdiff_t at)
{
    return row->slope ? row->slope + at : NULL;
}
enum { REF_OPERANDS = 3 }; /* q + u, q + w, a key */
static inline ptrdiff_t ref_ld(const struct attn *a) { return attn_keys(a) + a->sinks; }
size_t ref_row_doubles(const struct attn *a);
struct ref_row ref_row_at(const struct attn *a, int h, double *at);

/* Fill s, p and w of query i; p and w are 0 for a head that does not see a key of the row. */
void ref_probabilities(const struct attn *a, int b, int i, const struct ref_row *row);

/* attn_next_keys, followed by the sinks. */
bool ref_next(const struct attn *a, int h, int heads, int i, struct range *r);

/* Elements from `e` on of the value of key or sink j: own + rel. */
struct ref_value {
    const float *self, *rel;  /* NULL: 0 */
    const uint16_t *own_bf16; /* in place of own */
    const uint32_t *own_q8;   /* likewise, the whole head */
};
static inline struct ref_value ref_value_at(const struct attn *a, int b, int h, int i, int j, int e)
{
    const int kv = h / (a->H / a->Hkv), sink = j - attn_keys(a);
    const float *rel = a->rel_v;

    if (sink >= 0)
        return (struct ref_value){
            a->sink_v ? a->sink_v + ((ptrdiff_t)h * a->sinks + sink) * attn_dv(a) + e : NULL, NULL,
            NULL, NULL};
    if (rel)
        rel += h * a->rel_head + (ptrdiff_t)attn_table_row(a, i, j) * a->dh + e;
    const ptrdiff_t row = b * a->v_at.batch + j * a->v_at.row;
    const ptrdiff_t at = row + (ptrdiff_t)kv * attn_dv(a) + e;
    if (a->v_q8)
        return (struct ref_value){NULL, rel, NULL, a->v_q8 + row + kv * q8_head_words(attn_dv(a))};
    return a->v_bf16 ? (struct ref_value){NULL, rel, a->v_bf16 + at, NULL}
                     : (struct ref_value){a->v + at, rel, NULL, NULL};
}

/* Elements of a head that are summed at a time, so that keys are the outer loop. */
enum { REF_PART = 64 };

extern const struct attn_impl attn_ref;

struct attn_need ref_need_backward(const struct attn *a, int threads);
void ref_backward(const struct engine *g, const struct attn *a, const struct attn_grad *d,
                  void *scratch);

#define REF_PI 3.14159265358979323846

static inline double sigma(double x) { return 1 / (1 + exp(-x)); }

/* f of struct act. */
double ref_act(enum act_kind kind, double x, double beta);
/* The operands of a gated unit within its limit, and their slopes: 0 beyond it. */
struct ref_glu {
    double a, b, a_slope, b_slope;
};
struct ref_glu ref_glu(double a, double b, double limit);
/* What a row is divided by, from the sum of squares of its (centred) elements. */
double ref_norm_root(enum norm_kind kind, double squares, int n, double eps);
bool ref_norm_centred(enum norm_kind kind); /* is the mean subtracted first? */

void softmax_ref(const struct softmax *o);
void norm_ref(const struct norm *o);
void act_ref(const struct act *o);
void glu_ref(const struct glu *o);
void gate_ref(const struct gate_op *o);
void rnn_cell_ref(const struct rnn_step *o);
void nll_ref(const struct nll_op *o);
void softmax_grad_ref(const struct softmax_grad *o);
void norm_grad_ref(const struct norm_grad *o);
void act_grad_ref(const struct act_grad *o);
void glu_grad_ref(const struct glu_grad *o);
void gate_grad_ref(const struct gate_grad *o);
void rnn_cell_grad_ref(const struct rnn_step_grad *o);
void nll_grad_ref(const struct nll_grad *o);
