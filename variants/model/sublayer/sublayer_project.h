/* SPDX-License-Identifier: MIT
 *
 * The four linear maps around any core of queries, keys and values: their parameters, their
 * products over rows that may be in a cache, and the backward of both. */
#pragma once

#include "sublayer.h"

/* Parameters in the order of steps/steps.h; biases follow, as attn_bias says, in the same order. */
extern const char *const project_names[ATTN_WEIGHTS][2]; /* of weights and biases */
/* How many there are. */
int project_n_params(const struct sublayer *s);

/* q and o for rows of width `in`, k and v for rows of width `kv_in`: "attn.q.weight" after the
 * prefix, and so on. */
void project_params(const struct sublayer *s, int in, int kv_in, const char *prefix,
                    struct params *p);

/* y = x W^T (+ bias) of one of them, for `rows` rows of each of B sequences. */
void project_rows(const struct engine *g, const struct sublayer *s, int which, struct seq_rows y,
                  struct seq_rows x, int B, int rows);

/* The same for any map, and its backward: W's gradient, and that of the rows x, which is added to
 * beta times d_x. */
void project_map(const struct engine *g, const struct param *w, const struct param *bias,
                 struct seq_rows y, struct seq_rows x, int B, int rows);
void project_weight_grad(const struct engine *g, const struct param *w, struct seq_rows d_y,
                         struct seq_rows x, int B, int rows);
void project_input_grad(const struct engine *g, const struct param *w, struct seq_rows d_x,
                        struct seq_rows d_y, int B, int rows, float beta);

/* Of a map of the source rows from `first` on, d_y [B,M+L-first,out]: the gradients of its weights
 * and bias, and of the rows, added to beta times d_in, which lacks the first `skip` of each
 * sequence. */
void project_map_grad(const struct engine *g, const struct param *w, const struct param *bias,
                      const float *d_y, struct sublayer_input from, int first, float *d_in,
                      int skip, float beta);

/* f = W_o o + b_o for `rows` rows, followed by `epilogue`. */
void project_out(const struct engine *g, const struct sublayer *s, struct work *w, const float *o,
                 int rows, struct act epilogue);
/* d_o from d_y; accumulates the gradients of W_o and b_o. */
void project_out_grad(const struct engine *g, const struct sublayer *s, float *d_o,
                      const float *d_y, const float *o, int rows);

/* Without queries and keys there are no gradients of them. From the gradients of q [B,L,H*dh], k
 * and v [B,K,Hkv*dh] to d_in, that of source rows without the first `skip` of each sequence;
 * accumulates weight gradients. */
struct project_grad {
    float *d_q, *d_k, *d_v;
};
/* The same if q is projected from `pooled` rows [B,L/2,D]; d_pooled receives their gradient. */
void project_pooled_backward(const struct engine *g, const struct sublayer *s,
                             struct sublayer_input from, const float *pooled, float *d_in,
                             float *d_pooled, struct project_grad d);
void project_backward(const struct engine *g, const struct sublayer *s, struct sublayer_input from,
                      float *d_in, struct project_grad d, int skip);
