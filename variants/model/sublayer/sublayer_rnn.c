/* SPDX-License-Identifier: MIT
 *
 * LocalRNN as a kind of sub-layer (Wang et al. 2019, section 2.2): row t is the last state of a
 * recurrent cell that starts from zeros and reads the rows of the window that ends at t. Windows
 * are independent, so a step is one product for all of them, and W_ih x + b_ih is computed once for
 * all windows that read x. Rows before a sequence are zeros as input of the cell. With rnn_carry
 * the rows before a segment are those of the previous segments.
 *
 * It is no list of steps: rnn_window, a choice without a bound, says how many steps it has, and
 * backward runs them again where a list keeps what each one wrote. */
#include "sublayer_rnn.h"
#include "variants/parts/linear.h"

static void rnn_params(const struct sublayer *s, const char *prefix, const char *inner,
                       struct params *p)
{
    const struct config *const c = s->c;

    const int rows = rnn_cell_gates(c->rnn_cell) * c->D;

    params_map(p, rows, c->D, inner, "w_ih");
    params_map(p, rows, c->D, inner, "w_hh");
    params_vector(p, INIT_ZERO, 0, rows, inner, "b_ih");
    params_vector(p, INIT_ZERO, 0, rows, inner, "b_hh");
}

static int rnn_keeps(const struct sublayer *s, enum mem_kind mem, int M)
{
    return s->c->rnn_carry && (mem == MEM_HIDDEN || mem == MEM_KV) ? s->c->rnn_window - 1 : -1;
}

static size_t cell_floats(const struct config *c, size_t state)
{
    return c->rnn_cell == CELL_LSTM ? state : 0;
}

/* Backward recomputes all of it. */
static void rnn_arrays(const struct sublayer *s, struct extent max, struct array out[SUB_ARRAYS])
{
    const size_t D = (size_t)s->c->D, G = (size_t)rnn_cell_gates(s->c->rnn_cell);
    const size_t state = (size_t)max.B * (size_t)max.L * D;
    const size_t source = (size_t)max.B * (size_t)(s->memory.keep + max.L) * D;
    const size_t cell = cell_floats(s->c, state);

    out[RNN_X] = (struct array){G * source, G * source, true, PART_ACTIVATIONS};
    out[RNN_H] = (struct array){G * state, G * state, true, PART_ACTIVATIONS};
    out[RNN_STATE] = (struct array){state, state, true, PART_ACTIVATIONS};
    out[RNN_CELL] = (struct array){cell, cell, true, PART_ACTIVATIONS};
}

static void rnn_arrays_grad(const struct sublayer *s, struct extent max,
                            struct array out[SUB_ARRAYS])
{
    const struct config *c = s->c;
    const size_t D = (size_t)c->D, G = (size_t)rnn_cell_gates(c->rnn_cell);
    const size_t state = (size_t)max.B * (size_t)max.L * D, steps = (size_t)c->rnn_window;
    const size_t source = (size_t)max.B * (size_t)(s->memory.keep + max.L) * D;
    const size_t sides = c->rnn_cell == CELL_GRU ? 2 : 1;
    const size_t n[] = {[RNN_HS] = steps * G * state,
                        [RNN_STATES] = steps * state,
                        [RNN_CELLS] = steps * cell_floats(c, state),
                        [RNN_D_SIDES] = sides * G * state,
                        [RNN_D_X] = G * source,
                        [RNN_D_STATE] = state + cell_floats(c, state)};

    for (size_t i = 0; i < ARRAY_LEN(n); i++)
        out[i] = (struct array){0, n[i], true, PART_ACTIVATIONS};
}

/* ---- forward ------------------------------------------------------------------------------ */

struct rnn rnn_of(const struct engine *g, const struct sublayer *s, struct sublayer_input from)
{
    const struct config *c = s->c;

    return (struct rnn){.g = g,
                        .w = s->weights,
                        .kind = c->rnn_cell,
                        .B = from.B,
                        .M = from.M,
                        .L = from.L,
                        .D = c->D,
                        .gates = rnn_cell_gates(c->rnn_cell),
                        .window = c->rnn_window};
}

void rnn_project(const struct rnn *r, struct sublayer_input from)
{
    const int rows = r->M + r->L;
    const bool apart = from.at.stride != (ptrdiff_t)rows * r->D; /* sequences are in a cache */
    const int at_once = apart ? 1 : r->B;

    for (int b = 0; b < r->B; b += at_once) {
        float *const x = r->x + (ptrdiff_t)b * rows * r->gates * r->D;
        linear_forward(r->g, &r->w[RNN_W_IH], &r->w[RNN_B_IH], x, from.at.at + b * from.at.stride,
                       at_once * rows, (struct act){.y = x});
    }
}

int rnn_padded(const struct rnn *r, int s) { return clamp_int(r->window - 1 - s - r->M, 0, r->L); }

float *rnn_state(const struct rnn *r, int s) { return r->state + (ptrdiff_t)s * r->step * r->D; }

struct rnn_step rnn_step_at(const struct rnn *r, int s, int b, bool padded)
{
    const int n_padded = rnn_padded(r, s), t = padded ? 0 : n_padded; /* first row */
    const ptrdiff_t at = ((ptrdiff_t)b * r->L + t) * r->D, width = (ptrdiff_t)r->gates * r->D;
    const ptrdiff_t source = (ptrdiff_t)b * (r->M + r->L) + r->M + t - (r->window - 1 - s);
    float *const cell = r->cell ? r->cell + (ptrdiff_t)s * r->step * r->D + at : NULL;
    const ptrdiff_t back = (ptrdiff_t)r->step * r->D; /* to the step before */

    return (struct rnn_step){.kind = r->kind,
                             .out = rnn_state(r, s) + at,
                             .c_out = cell,
                             .x = padded ? r->w[RNN_B_IH].data : r->x + source * width,
                             .x_row = padded ? 0 : width,
                             .h = s ? r->h + s * back * r->gates + at * r->gates : NULL,
                             .b = r->w[RNN_B_HH].data,
                             .state = s ? rnn_state(r, s) + at - back : NULL,
                             .c = s && cell ? cell - back : NULL,
                             .rows = padded ? n_padded : r->L - n_padded,
                             .n = r->D,
                             .threads = r->g->threads};
}

void rnn_run(const struct rnn *r)
{
    for (int s = 0; s < r->window; s++) {
        if (s) { /* the first state is zero */
            float *const h = r->h + (ptrdiff_t)s * r->step * r->D * r->gates;
            linear_apply(r->g, &r->w[RNN_W_HH], h, rnn_state(r, s - 1), r->B * r->L);
        }
        for (int part = 0; part < 2 * r->B; part++) {
            const struct rnn_step cell = rnn_step_at(r, s, part / 2, part % 2);
            if (cell.rows)
                r->g->ops.rnn_cell(&cell);
        }
    }
}

static void rnn_forward(const struct engine *g, struct sublayer *s, struct work *w,
                        struct sublayer_input from, struct act epilogue)
{
    struct rnn r = rnn_of(g, s, from);

    r.x = w->array[RNN_X];
    r.h = w->array[RNN_H];
    r.state = w->array[RNN_STATE];
    r.cell = w->array[RNN_CELL];
    rnn_project(&r, from);
    rnn_run(&r);
    linear_epilogue(g, epilogue, r.state, r.B * r.L, r.D);
}

/* ---- cost --------------------------------------------------------------------------------- */

/* W_ih x of the rows that windows read, W_hh h of all steps except the first, whose h is zero. */
static struct sublayer_cost rnn_cost(const struct sublayer *s, int B, int L, int M)
{
    const struct config *c = s->c;
    const double product = 2.0 * rnn_cell_gates(c->rnn_cell) * c->D * c->D;
    const double kept = s->keeps ? min_int(M, c->rnn_window - 1) : 0;
    /* Memory is a constant unless a norm, which has weights, is applied to it. */
    const double constant = wiring_norms_first(s->wiring) ? 0 : kept;

    return (struct sublayer_cost){
        .backward = -product * B * constant,
        .maps = product * B * (kept + L) + product * B * L * (c->rnn_window - 1),
    };
}

const struct sublayer_kind sublayer_rnn = {
    .name = "rnn",
    .own_weights = true,
    .memory = "tail",
    .mixes = true,
    .place = DROP_RNN,
    .params = rnn_params,
    .keeps = rnn_keeps,
    .arrays = rnn_arrays,
    .arrays_grad = rnn_arrays_grad,
    .forward = rnn_forward,
    .backward = rnn_backward,
    .cost = rnn_cost,
};
