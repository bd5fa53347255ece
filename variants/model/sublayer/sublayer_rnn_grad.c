/* SPDX-License-Identifier: MIT
 *
 * LocalRNN as a kind of sub-layer, backward: through the steps of all windows at once, from the
 * last to the first. Forward is rerun and keeps every step; the gradients of a source row from the
 * windows that read it are summed before its one product. */
#include "sublayer_rnn.h"
#include "variants/parts/linear.h"

/* Gradients of one step: for the x and the h side of its gates, [B,L,G D] both. */
struct sides {
    float *x, *h;
};

static void cell_backward(const struct rnn *r, int s, struct sides d, float *d_state, float *d_c)
{
    for (int part = 0; part < 2 * r->B; part++) {
        const bool padded = part % 2;
        const struct rnn_step of = rnn_step_at(r, s, part / 2, padded);
        const ptrdiff_t row = (ptrdiff_t)(part / 2) * r->L + (padded ? 0 : rnn_padded(r, s));
        if (of.rows)
            r->g->ops.rnn_cell_grad(&(struct rnn_step_grad){.step = of,
                                                            .d_x = d.x + row * r->gates * r->D,
                                                            .d_h = d.h + row * r->gates * r->D,
                                                            .d_state = d_state + row * r->D,
                                                            .d_c = d_c ? d_c + row * r->D : NULL,
                                                            .d_out = d_state + row * r->D});
    }
}

/* Add to the gradients of the rows that the x sides were read from, or of b_ih if padded. */
static void scatter(const struct rnn *r, int s, float *d_x, const float *side)
{
    const int padded = rnn_padded(r, s), width = r->gates * r->D;

    for (int b = 0; b < r->B; b++) {
        const float *const from = side + (ptrdiff_t)b * r->L * width;
        const ptrdiff_t source = (ptrdiff_t)b * (r->M + r->L) + r->M + padded - (r->window - 1 - s);
        float *const to = d_x + source * width;
        if (padded)
            linear_bias_grad(r->g, &r->w[RNN_B_IH], from, padded);
        if (padded < r->L)
            rows_add(r->g, to, from + (ptrdiff_t)padded * width, r->L - padded, width);
    }
}

/* d_state becomes the gradient of the state before step s; adds to d_x. */
static void step_backward(const struct rnn *r, int s, struct sides d, float *d_x, float *d_state,
                          float *d_c)
{
    const int rows = r->B * r->L;

    cell_backward(r, s, d, d_state, d_c);
    scatter(r, s, d_x, d.x);
    linear_bias_grad(r->g, &r->w[RNN_B_HH], d.h, rows);
    if (s == 0)
        return;
    linear_backward(r->g, &r->w[RNN_W_HH], NULL, d_state, d.h, rnn_state(r, s - 1), rows,
                    r->kind == CELL_GRU);
}

/* From the gradient of W_ih x + b_ih to that of x, without the first `skip` rows of each
 * sequence. */
static void project_backward(const struct rnn *r, struct sublayer_input from, float *d_in,
                             const float *d_x, int skip)
{
    const int rows = r->M + r->L, width = r->gates * r->D;
    const bool apart = skip || from.at.stride != (ptrdiff_t)rows * r->D;
    const int at_once = apart ? 1 : r->B;

    linear_bias_grad(r->g, &r->w[RNN_B_IH], d_x, r->B * rows);
    for (int b = 0; b < r->B; b += at_once) {
        const float *const d = d_x + (ptrdiff_t)b * rows * width;
        linear_weight_grad(r->g, &r->w[RNN_W_IH], d, from.at.at + b * from.at.stride,
                           at_once * rows);
        linear_input_grad(r->g, &r->w[RNN_W_IH], d_in + (ptrdiff_t)b * (rows - skip) * r->D,
                          d + (ptrdiff_t)skip * width, at_once * rows - skip, 0);
    }
}

void rnn_backward(const struct engine *g, struct sublayer *s, const struct work *w,
                  struct sublayer_input from, float *d_in, const float *d_y, int skip)
{
    struct rnn r = rnn_of(g, s, from);
    const size_t state = (size_t)(r.B * r.L) * (size_t)r.D;
    const size_t source = (size_t)(r.B * (r.M + r.L)) * (size_t)r.D;
    const bool lstm = r.kind == CELL_LSTM;
    struct sides d = {w->d_array[RNN_D_SIDES], w->d_array[RNN_D_SIDES]};
    float *const d_state = w->d_array[RNN_D_STATE], *const d_c = lstm ? d_state + state : NULL;

    if (r.kind == CELL_GRU)
        d.h += state * (size_t)r.gates;
    r.step = r.B * r.L;
    r.x = w->array[RNN_X];
    r.h = w->d_array[RNN_HS];
    r.state = w->d_array[RNN_STATES];
    r.cell = w->d_array[RNN_CELLS];
    rnn_project(&r, from);
    rnn_run(&r);

    memcpy(d_state, d_y, state * sizeof(float));
    if (lstm)
        memset(d_c, 0, state * sizeof(float));
    memset(w->d_array[RNN_D_X], 0, source * (size_t)r.gates * sizeof(float));
    for (int i = r.window - 1; i >= 0; i--)
        step_backward(&r, i, d, w->d_array[RNN_D_X], d_state, d_c);
    project_backward(&r, from, d_in, w->d_array[RNN_D_X], skip);
}
