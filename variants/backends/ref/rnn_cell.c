/* SPDX-License-Identifier: MIT
 *
 * The recurrent cells of the reference, forward and backward, written as their equations. */
#include "ref.h"

const char *const rnn_cell_name[CELL_KINDS + 1] = {"rnn", "gru", "lstm", NULL};

int rnn_cell_gates(enum rnn_cell_kind kind)
{
    static const int gates[CELL_KINDS] = {1, 3, 4};

    return gates[kind];
}

enum { MAX_GATES = 4 };

/* One unit of one row: both sides of every gate, its state and cell value. */
struct unit {
    double x[MAX_GATES], h[MAX_GATES], a[MAX_GATES]; /* a = x + h; h includes the bias */
    double state, c;
};

static struct unit unit_at(const struct rnn_step *o, int i, int e)
{
    const int gates = rnn_cell_gates(o->kind);
    const ptrdiff_t at = (ptrdiff_t)i * o->n + e;
    struct unit u = {.state = o->state ? (double)o->state[at] : 0,
                     .c = o->c ? (double)o->c[at] : 0};

    for (int g = 0; g < gates; g++) {
        const ptrdiff_t to = (ptrdiff_t)g * o->n + e;
        u.x[g] = (double)o->x[i * o->x_row + to];
        u.h[g] = (double)o->b[to] + (o->h ? (double)o->h[(ptrdiff_t)i * gates * o->n + to] : 0);
        u.a[g] = u.x[g] + u.h[g];
    }
    return u;
}

static void rnn_cell_unit(const struct rnn_step *o, int i, int e)
{
    const struct unit u = unit_at(o, i, e);
    const ptrdiff_t at = (ptrdiff_t)i * o->n + e;

    if (o->kind == CELL_RNN) {
        o->out[at] = (float)tanh(u.a[0]);
    } else if (o->kind == CELL_GRU) {
        const double r = sigma(u.a[0]), z = sigma(u.a[1]), m = tanh(u.x[2] + r * u.h[2]);
        o->out[at] = (float)((1 - z) * m + z * u.state);
    } else {
        const double c = sigma(u.a[1]) * u.c + sigma(u.a[0]) * tanh(u.a[2]);
        o->c_out[at] = (float)c;
        o->out[at] = (float)(sigma(u.a[3]) * tanh(c));
    }
}

void rnn_cell_ref(const struct rnn_step *o)
{
#pragma omp parallel for num_threads(o->threads)
    for (int i = 0; i < o->rows; i++)
        for (int e = 0; e < o->n; e++)
            rnn_cell_unit(o, i, e);
}

/* d[] receives the gradients of the gates' x sides; returns that of the h side of GRU's last
 * gate. */
static double gru_grad(const struct unit *u, double d_out, double d[MAX_GATES])
{
    const double r = sigma(u->a[0]), z = sigma(u->a[1]), m = tanh(u->x[2] + r * u->h[2]);

    d[2] = d_out * (1 - z) * (1 - m * m);
    d[1] = d_out * (u->state - m) * z * (1 - z);
    d[0] = d[2] * u->h[2] * r * (1 - r);
    return d[2] * r;
}

/* Returns the gradient of c, given that of c_out. */
static double lstm_grad(const struct unit *u, double c_out, double d_out, double d_c,
                        double d[MAX_GATES])
{
    const double i = sigma(u->a[0]), f = sigma(u->a[1]), g = tanh(u->a[2]), o = sigma(u->a[3]);
    const double t = tanh(c_out), all = d_c + d_out * o * (1 - t * t);

    d[0] = all * g * i * (1 - i);
    d[1] = all * u->c * f * (1 - f);
    d[2] = all * i * (1 - g * g);
    d[3] = d_out * t * o * (1 - o);
    return all * f;
}

static void rnn_cell_grad_unit(const struct rnn_step_grad *o, int i, int e)
{
    const struct rnn_step *c = &o->step;
    const struct unit u = unit_at(c, i, e);
    const int gates = rnn_cell_gates(c->kind);
    const ptrdiff_t at = (ptrdiff_t)i * c->n + e, row = (ptrdiff_t)i * gates * c->n;
    const double d_out = (double)o->d_out[at];
    double d[MAX_GATES] = {0}, d_last;

    if (c->kind == CELL_RNN) {
        const double t = tanh(u.a[0]);
        d[0] = d_last = d_out * (1 - t * t);
    } else if (c->kind == CELL_GRU) {
        d_last = gru_grad(&u, d_out, d);
        o->d_state[at] = (float)(d_out * sigma(u.a[1]));
    } else {
        o->d_c[at] = (float)lstm_grad(&u, (double)c->c_out[at], d_out, (double)o->d_c[at], d);
        d_last = d[3];
    }
    for (int g = 0; g < gates; g++) {
        const ptrdiff_t to = row + (ptrdiff_t)g * c->n + e;
        o->d_x[to] = (float)d[g];
        o->d_h[to] = (float)(g == gates - 1 ? d_last : d[g]);
    }
}

void rnn_cell_grad_ref(const struct rnn_step_grad *o)
{
#pragma omp parallel for num_threads(o->step.threads)
    for (int i = 0; i < o->step.rows; i++)
        for (int e = 0; e < o->step.n; e++)
            rnn_cell_grad_unit(o, i, e);
}
