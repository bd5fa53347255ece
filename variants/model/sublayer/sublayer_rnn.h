/* SPDX-License-Identifier: MIT
 *
 * LocalRNN as a kind of sub-layer: its parts, for its backward pass. */
#pragma once

#include "sublayer.h"

/* Parameters, in the order they are added. */
enum { RNN_W_IH, RNN_W_HH, RNN_B_IH, RNN_B_HH };

/* Arrays, G gates: [B,M+L,G D] W_ih x + b_ih, [B,L,G D] W_hh h, [B,L,D] h and, for LSTM, c. */
enum { RNN_X, RNN_H, RNN_STATE, RNN_CELL };
/* Those of backward: the last three of RNN_X.. for every step of the window; gradients of the x and
 * of the h side of a step, the latter for GRU only; that of RNN_X; those of h and c. */
enum { RNN_HS, RNN_STATES, RNN_CELLS, RNN_D_SIDES, RNN_D_X, RNN_D_STATE };

/* One call: sizes and arrays. Values kept per step are `step` rows after those of the step before;
 * 0 = each step overwrites them. */
struct rnn {
    const struct engine *g;
    const struct param *w; /* RNN_W_IH.. */
    enum rnn_cell_kind kind;
    int B, M, L, D, gates, window;
    int step;
    float *x, *h, *state, *cell; /* of step 0 */
};

/* The call for these source rows; the caller sets its arrays. */
struct rnn rnn_of(const struct engine *g, const struct sublayer *s, struct sublayer_input from);
void rnn_project(const struct rnn *r, struct sublayer_input from);
/* All steps of all windows; x must be projected. */
void rnn_run(const struct rnn *r);

/* Number of padded rows of step s: the first rows of a sequence, whose windows begin before the
 * first source row. They read zeros, that is b_ih alone. */
int rnn_padded(const struct rnn *r, int s);
/* Operands of step s for sequence b: its padded rows, or the others. */
struct rnn_step rnn_step_at(const struct rnn *r, int s, int b, bool padded);
float *rnn_state(const struct rnn *r, int s); /* after step s */

void rnn_backward(const struct engine *g, struct sublayer *s, const struct work *w,
                  struct sublayer_input from, float *d_in, const float *d_y, int skip);
