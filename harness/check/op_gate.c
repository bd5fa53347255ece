/* SPDX-License-Identifier: MIT
 *
 * Cases of gates and recurrent cells, and of their gradients: pre-activations with gaps, results
 * over operands. */
#include "op_inner.h"

static const float gate_spreads[] = {1e-6f, 0.1f, 1.0f, 8.0f, 1000.0f};
enum { N_GATES = GATE_UPDATE + 1, GATE_SPREADS = ARRAY_LEN(gate_spreads) };
enum { GATE_CASES = 2 * GATE_SPREADS * N_GATES * OP_SIZES };

static void gate_make(struct trial *t, int at)
{
    const bool large = at >= GATE_CASES;
    const int over = large ? 0 : pick(&at, 2), spread = large ? 2 : pick(&at, GATE_SPREADS);
    const float sd = gate_spreads[spread];

    t->kind = large ? GATE_UPDATE : pick(&at, N_GATES);
    set_size(t, large ? op_square : op_sizes[at]);
    t->over = over;
    t->ld = t->n + (large ? 0 : 3);
    t->mode = t->kind == GATE_SIGTANH && sd < 1; /* x = 0: only z tanh(c) remains */
    float *x = t->mode ? constant(t, t->size, 0) : operand(t, t->size, "x", 0, 1);
    float *a = operand(t, (size_t)(t->rows * t->ld), "a", 0, sd * 10);
    if (t->rows > 1)
        a[t->ld + t->n / 2] = NAN;
    t->a.gate = (struct gate_op){.kind = (enum gate_kind)t->kind,
                                 .x = x,
                                 .y = operand(t, t->size, "y", 0, 1),
                                 .a = a,
                                 .c = operand(t, (size_t)(t->rows * t->ld), "c", 0, sd),
                                 .b = operand(t, (size_t)t->n, "bias", 0, 1),
                                 .ld = t->ld,
                                 .rows = t->rows,
                                 .n = t->n};
    output(t, "out", t->size, x);
    snprintf(t->name, sizeof(t->name), "kind %d, %dx%d, spread %g%s", t->kind, t->rows, t->n,
             (double)sd, over ? ", in place" : "");
}

RUN(gate, gate_op, o.out = out[0], o.x = t->in_place ? out[0] : o.x)

/* A pre-activation a +- b is rounded once, |arg| U in the exponent, and the logistic adds 6 U (exp
 * 4, add, divide); tanh is good to 8 U; blending rounds at most four more times. All of it is
 * relative to |x| + |y|, with tanh(c) for y if the kind has it. RESET and, with x = 0, SIGTANH show
 * that the relative error also holds where sigma and tanh are tiny. */
static void gate_bounds(struct trial *t)
{
    const struct gate_op *o = &t->a.gate;
    const bool has_tanh = t->kind == GATE_SIGTANH || t->kind == GATE_UPDATE;

    for (int i = 0; i < t->rows; i++)
        for (int e = 0; e < t->n; e++) {
            const ptrdiff_t pre = i * t->ld + e, at = (ptrdiff_t)i * t->n + e;
            const double arg = fabs((double)o->a[pre]) + fabs((double)o->b[e]);
            const double second = has_tanh ? tanh((double)o->c[pre]) : (double)o->y[at];
            const double terms = fabs((double)o->x[at]) + fabs(second);
            const bool relative = t->kind == GATE_RESET || t->mode;
            const double of = relative ? fabs((double)t->out[0].want[at]) : terms;
            t->out[0].bound[at] = U * (arg + 18) * of + SMALLEST * terms;
        }
}

/* ---- their gradients ------------------------------------------------------------------------- */

enum { GATE_GRAD_CASES = 2 * N_GATES * OP_GRAD_SIZES };

static bool has_y(int k) { return k == GATE_INPUT || k == GATE_OUTPUT || k == GATE_HIGHWAY; }
static bool has_c(int k) { return k == GATE_SIGTANH || k == GATE_UPDATE; }
static bool has_b(int k) { return k != GATE_INPUT && k != GATE_RESET; }

static void gate_grad_make(struct trial *t, int at)
{
    const bool large = at >= GATE_GRAD_CASES;
    const int over = large ? 0 : pick(&at, 2);

    t->kind = large ? GATE_UPDATE : pick(&at, N_GATES);
    set_size(t, large ? op_square : op_grad_sizes[at]);
    t->over = over;
    t->ld = t->n + (large ? 0 : 3);
    const size_t n = (size_t)t->n, wide = (size_t)(t->rows * t->ld);
    float *a = operand(t, wide, "a", 0, 2), *c = operand(t, wide, "c", 0, 1);
    float *y = operand(t, t->size, "y", 0, 1), *d_out = operand(t, t->size, "d_out", 0, 1);
    float *b = operand(t, n, "bias", 1, 1);
    t->a.gate_grad = (struct gate_grad){.kind = (enum gate_kind)t->kind,
                                        .d_out = d_out,
                                        .x = operand(t, t->size, "x", 0, 1),
                                        .y = has_y(t->kind) ? y : NULL,
                                        .a = a,
                                        .c = has_c(t->kind) ? c : NULL,
                                        .b = has_b(t->kind) ? b : NULL,
                                        .ld = t->ld,
                                        .rows = t->rows,
                                        .n = t->n};
    output(t, "d_x", t->size, d_out);
    output(t, "d_a", wide, a);
    if (has_y(t->kind))
        output(t, "d_y", t->size, NULL);
    if (has_c(t->kind))
        output(t, "d_c", wide, c);
    if (has_b(t->kind))
        output_sums(t, "d_b", n);
    snprintf(t->name, sizeof(t->name), "kind %d, %dx%d%s", t->kind, t->rows, t->n,
             over ? ", in place" : "");
}

static void gate_grad_run(const struct engine *g, struct trial *t, float *const *out)
{
    struct gate_grad o = t->a.gate_grad;
    int k = 2;

    o.d_x = out[0];
    o.d_a = out[1];
    o.d_y = has_y(t->kind) ? out[k++] : NULL;
    o.d_c = has_c(t->kind) ? out[k++] : NULL;
    o.d_b = has_b(t->kind) ? out[k++] : NULL;
    if (t->in_place) {
        o.d_out = out[0];
        o.a = o.d_a;
        o.c = o.d_c;
    }
    o.threads = g->threads;
    g->ops.gate_grad(&o);
}

/* At most five factors below 5 are multiplied; exp, logistic and tanh are good to 4 to 8 U each. */
static void gate_grad_bounds(struct trial *t)
{
    const double each = U * 40 * 25;

    for (int k = 0; k < t->n_out; k++) {
        struct output *o = &t->out[k];
        const bool sum = has_b(t->kind) && k == t->n_out - 1;
        const ptrdiff_t ld = o->n == t->size ? t->n : t->ld;
        for (int e = 0; e < t->n; e++)
            for (int i = 0; i < (sum ? 1 : t->rows); i++)
                o->bound[i * ld + e] = sum ? t->rows * (each + U * 5 * sqrt(t->rows)) : each;
    }
}

/* ---- recurrent cells ------------------------------------------------------------------------- */

static const int cell_sizes[][2] = {{1, 1}, {3, 8}, {2, 15}, {3, 21}, {5, 37}, {70, 501}};
enum { CELL_CASES = 8 * CELL_KINDS * ARRAY_LEN(cell_sizes) };

/* Case `at` but for its outputs; modes: 1: the first step, 2: x repeats, 4: in place. */
static struct rnn_step cell_of(struct trial *t, int at)
{
    const bool large = at >= CELL_CASES;
    const int mode = large ? 0 : pick(&at, 8);

    t->kind = large ? CELL_LSTM : pick(&at, CELL_KINDS);
    set_size(t, large ? op_square : cell_sizes[at]);
    const size_t G = (size_t)rnn_cell_gates((enum rnn_cell_kind)t->kind);
    const bool first = mode & 1;
    t->over = mode & 4;
    snprintf(t->name, sizeof(t->name), "%s, %dx%d, mode %d", rnn_cell_name[t->kind], t->rows, t->n,
             mode);
    return (struct rnn_step){.kind = (enum rnn_cell_kind)t->kind,
                             .x = operand(t, G * t->size, "x", 0, 1),
                             .x_row = mode & 2 ? 0 : (ptrdiff_t)G * t->n,
                             .h = first ? NULL : operand(t, G * t->size, "h", 0, 1),
                             .b = operand(t, G * (size_t)t->n, "b", 0, 1),
                             .state = first ? NULL : operand(t, t->size, "state", 0, 1),
                             .c = first ? NULL : operand(t, t->size, "c", 0, 1),
                             .rows = t->rows,
                             .n = t->n};
}

static void cell_make(struct trial *t, int at)
{
    const struct rnn_step of = t->a.cell = cell_of(t, at);

    t->over = t->over && of.state;
    output(t, "out", t->size, of.state);
    if (t->kind == CELL_LSTM)
        output(t, "c_out", t->size, of.c);
}

static void cell_run(const struct engine *g, struct trial *t, float *const *out)
{
    struct rnn_step o = t->a.cell;

    o.out = out[0];
    o.c_out = t->kind == CELL_LSTM ? out[1] : NULL;
    if (t->in_place) {
        o.state = out[0];
        o.c = t->kind == CELL_LSTM ? out[1] : o.c;
    }
    o.threads = g->threads;
    g->ops.rnn_cell(&o);
}

/* Sums of three numbers of size S are off by 3 U S, which no curve here amplifies; each curve and
 * product adds a few U of numbers below 1. S: four normal numbers, 16; 16 roundings, and the
 * reference's. Gradients have the same terms, times the incoming gradients. */
static void cell_bounds(struct trial *t)
{
    for (int k = 0; k < t->n_out; k++)
        for (size_t i = 0; i < t->out[k].n; i++)
            t->out[k].bound[i] = 17 * U * 16;
}

/* ---- their gradients ------------------------------------------------------------------------- */

static void cell_grad_make(struct trial *t, int at)
{
    struct rnn_step of = cell_of(t, at);

    of.out = constant(t, t->size, 0);
    of.c_out = constant(t, t->size, 0);
    of.threads = 1;
    backend_ref.ops.rnn_cell(&of);
    float *d_out = operand(t, t->size, "d_out", 0, 1);
    const size_t gates = (size_t)rnn_cell_gates(of.kind) * t->size;
    t->a.cell_grad = (struct rnn_step_grad){.step = of, .d_out = d_out};
    output(t, "d_x", gates, NULL);
    output(t, "d_h", gates, NULL);
    if (t->kind == CELL_GRU)
        output(t, "d_state", t->size, d_out);
    if (t->kind == CELL_LSTM)
        output(t, "d_c", t->size, operand(t, t->size, "d_c", 0, 1));
}

static void cell_grad_run(const struct engine *g, struct trial *t, float *const *out)
{
    struct rnn_step_grad o = t->a.cell_grad;
    const bool gru = t->kind == CELL_GRU;

    o.d_x = out[0];
    o.d_h = t->in_place && !gru ? out[0] : out[1];
    o.d_state = gru ? out[2] : NULL;
    o.d_c = t->kind == CELL_LSTM ? out[2] : NULL;
    if (t->in_place && gru)
        o.d_out = out[2];
    o.step.threads = g->threads;
    g->ops.rnn_cell_grad(&o);
    if (o.d_h == out[0])
        memcpy(out[1], out[0], t->out[0].n * sizeof(float));
}

/* ---- the rows -------------------------------------------------------------------------------- */

const struct op_row op_gates[GATE_ROWS] = {
    {"gate", OP_gate, GATE_CASES, gate_make, gate_run, gate_bounds,
     .timing = {{"512x512 update", TIMED_ELEMENTS(512 * 512)}}},
    {"rnn_cell", OP_rnn_cell, CELL_CASES, cell_make, cell_run, cell_bounds, .same_bits = true,
     .timing = {{"512x512 lstm", TIMED_ELEMENTS(512 * 512)}}},
    {"gate_grad", OP_gate_grad, GATE_GRAD_CASES, gate_grad_make, gate_grad_run, gate_grad_bounds,
     .same_bits = true, .timing = {{"512x512 update", TIMED_ELEMENTS(512 * 512)}}},
    {"rnn_cell_grad", OP_rnn_cell_grad, CELL_CASES, cell_grad_make, cell_grad_run, cell_bounds,
     .same_bits = true, .timing = {{"512x512 lstm", TIMED_ELEMENTS(512 * 512)}}},
};
