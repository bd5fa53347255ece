/* SPDX-License-Identifier: MIT
 *
 * The reference's recurrent cells, forward and backward, against their equations in double.
 * Backends against the reference: tests/check/test_op_cases.c. */
#include "tests/support/kernel/fenced.h"
#include "tests/support/kernel/rnn_case.h"

/* Operands of one cell, as floats and, for the equations, the same numbers. */
struct case_of_cell {
    struct rnn_step_grad o;
    float *x, *h, *b, *state, *c, *d_out, *d_c_in; /* inputs */
    float *out, *c_out, *d_x, *d_h, *d_state, *d_c;
    int gates;
};

static void make_cell(struct case_of_cell *t, enum rnn_cell_kind kind, int rows, int n, bool first,
                      bool repeated)
{
    const size_t size = (size_t)(rows * n), G = (size_t)rnn_cell_gates(kind);

    *t = (struct case_of_cell){.gates = (int)G};
    t->x = normals(G * size, "x", 0, 1), t->h = normals(G * size, "h", 0, 1);
    t->b = normals(G * (size_t)n, "b", 0, 1), t->state = normals(size, "state", 0, 1);
    t->c = normals(size, "c", 0, 1), t->d_out = normals(size, "d_out", 0, 1);
    t->d_c_in = normals(size, "d_c", 0, 1);
    t->out = fenced(size), t->c_out = fenced(size), t->d_state = fenced(size);
    t->d_c = fenced(size), t->d_x = fenced(G * size), t->d_h = fenced(G * size);
    memcpy(t->d_c, t->d_c_in, size * sizeof(float));
    t->o.step = (struct rnn_step){MEMBERS(, kind, rows, n),
                                  MEMBERS(t->, out, c_out, x, b),
                                  .x_row = repeated ? 0 : (ptrdiff_t)G * n,
                                  .h = first ? NULL : t->h,
                                  .state = first ? NULL : t->state,
                                  .c = first ? NULL : t->c};
    t->o.d_x = t->d_x, t->o.d_h = t->d_h, t->o.d_state = t->d_state, t->o.d_c = t->d_c;
    t->o.d_out = t->d_out;
}

/* Entry e of row i by the equations: out and c_out, then d_x, d_h, d_state, d_c by the rules of
 * differentiation, written for each cell by itself. c' is what forward stored. */
struct by_equations {
    double out, c_out, d_x[GATES], d_h[GATES], d_state, d_c;
};

static struct by_equations equations(const struct case_of_cell *t, int i, int e)
{
    const struct rnn_step *o = &t->o.step;
    const int n = o->n, at = i * n + e;
    const double state = o->state ? (double)t->state[at] : 0, c = o->c ? (double)t->c[at] : 0;
    const double g = (double)t->d_out[at];
    double x[GATES], h[GATES], a[GATES];
    struct by_equations r = {0};

    for (int k = 0; k < t->gates; k++) {
        x[k] = (double)t->x[i * o->x_row + k * n + e];
        h[k] = (double)t->b[k * n + e] + (o->h ? (double)t->h[(i * t->gates + k) * n + e] : 0);
        a[k] = x[k] + h[k];
    }
    if (o->kind == CELL_RNN) {
        r.out = tanh(a[0]);
        r.d_x[0] = r.d_h[0] = g / (cosh(a[0]) * cosh(a[0]));
    } else if (o->kind == CELL_GRU) {
        const double s = sigma(a[0]), z = sigma(a[1]), m = tanh(x[2] + s * h[2]);
        const double d_m = g * (1 - z) * (1 - m * m);
        r.out = m + z * (state - m);
        r.d_x[0] = r.d_h[0] = d_m * h[2] * s * sigma(-a[0]);
        r.d_x[1] = r.d_h[1] = g * (state - m) * z * sigma(-a[1]);
        r.d_x[2] = d_m, r.d_h[2] = d_m * s;
        r.d_state = g * z;
    } else {
        const double in = sigma(a[0]), f = sigma(a[1]), m = tanh(a[2]), out = sigma(a[3]);
        const double T = tanh((double)t->c_out[at]);
        const double all = (double)t->d_c_in[at] + g * out * (1 - T * T);
        r.c_out = f * c + in * m, r.out = out * tanh(r.c_out);
        r.d_x[0] = all * m * in * (1 - in), r.d_x[1] = all * c * f * (1 - f);
        r.d_x[2] = all * in * (1 - m * m), r.d_x[3] = g * T * out * (1 - out);
        memcpy(r.d_h, r.d_x, sizeof(r.d_h));
        r.d_c = all * f;
    }
    return r;
}

/* Sums of three numbers of size S are off by 3 U S, which no curve here amplifies; each curve and
 * product adds a few U of numbers below 1, times g and d_c in the gradients. */
static void expect_cell(const struct case_of_cell *t)
{
    const struct rnn_step *o = &t->o.step;
    const bool gru = o->kind == CELL_GRU, lstm = o->kind == CELL_LSTM;
    const double scale = 16, bound = 16 * U * scale; /* S: four normal numbers; 16 roundings */
    double worst = 0;

    for (int i = 0; i < o->rows; i++)
        for (int e = 0; e < o->n; e++) {
            const struct by_equations r = equations(t, i, e);
            const int at = i * o->n + e;
            worst = fmax(worst, in_bounds((double)t->out[at], r.out, bound));
            for (int k = 0; k < t->gates; k++) {
                const int to = (i * t->gates + k) * o->n + e;
                worst = fmax(worst, in_bounds((double)t->d_x[to], r.d_x[k], bound));
                worst = fmax(worst, in_bounds((double)t->d_h[to], r.d_h[k], bound));
            }
            if (gru)
                worst = fmax(worst, in_bounds((double)t->d_state[at], r.d_state, bound));
            if (lstm)
                worst = fmax(worst, in_bounds((double)t->c_out[at], r.c_out, bound));
            if (lstm)
                worst = fmax(worst, in_bounds((double)t->d_c[at], r.d_c, bound));
        }
    const size_t size = (size_t)(o->rows * o->n);
    cr_expect(worst <= 1, "%s, %dx%d: %.2f x its bound", rnn_cell_name[o->kind], o->rows, o->n,
              worst);
    cr_expect(guards_intact(t->out, size) && guards_intact(t->c_out, size) &&
              guards_intact(t->d_state, size) && guards_intact(t->d_c, size) &&
              guards_intact(t->d_x, size * (size_t)t->gates) &&
              guards_intact(t->d_h, size * (size_t)t->gates));
}

Test(rnn_cells, cells)
{
    static const int sizes[][2] = {{1, 1}, {3, 8}, {2, 15}, {5, 37}, {70, 501}};

    for (int turn = 0; turn < 4; turn++)
        for (int kind = 0; kind < CELL_KINDS; kind++)
            for (size_t s = 0; s < ARRAY_LEN(sizes); s++) {
                struct case_of_cell t;
                make_cell(&t, (enum rnn_cell_kind)kind, sizes[s][0], sizes[s][1], turn & 1,
                          turn & 2);
                t.o.step.threads = 1;
                backend_ref.ops.rnn_cell(&t.o.step);
                backend_ref.ops.rnn_cell_grad(&t.o);
                expect_cell(&t);
            }
}
