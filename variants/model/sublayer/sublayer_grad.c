/* SPDX-License-Identifier: MIT
 *
 * One sub-layer, backward: sublayer_forward.c in reverse order. d is the gradient of the stream; the
 * gradient of f's input is added to it where the sub-layer branches off. */
#include "sublayer_compress.h"
#include "sublayer_inner.h"
#include "sublayer_skip.h"

/* ---- from the stream to f ----------------------------------------------------------------- */

/* d from the gradient of gate(x, relu(y)) to that of x; d_y to that of y before its ReLU. */
static void gate_backward(const struct engine *g, const struct sublayer *s, struct work *w,
                          float *d, int rows)
{
    const struct config *c = s->c;

    c->gate->backward(g, c, s->gate, d, w->d_y, d, w->x, w->y, rows, w->gate, w->d_gate);
    g->ops.act_grad(&(struct act_grad){.kind = ACT_RELU,
                                       .d_x = w->d_y,
                                       .d_y = w->d_y,
                                       .x = w->y,
                                       .rows = rows,
                                       .n = c->D,
                                       .threads = g->threads});
}

/* Sum of x_i y_i in double, in an order that does not depend on the number of threads. */
static double dot(const float *x, const float *y, size_t n)
{
    enum { LANES = 8 };
    double lane[LANES] = {0}, sum = 0;

    for (size_t i = 0; i < n; i++)
        lane[i % LANES] += (double)x[i] * (double)y[i];
    for (int i = 0; i < LANES; i++)
        sum += lane[i];
    return sum;
}

static void scaled(float *y, const float *x, float factor, size_t n, int threads)
{
#pragma omp parallel for simd num_threads(team_for(threads, n))
    for (size_t i = 0; i < n; i++)
        y[i] = factor * x[i];
}

/* d [rows,D] from the gradient of omega x to that of x; to omega's, over rows in order. */
static void weighted_backward(const struct sublayer *s, const struct work *w, float *d, int rows,
                              int threads)
{
    enum { COLUMNS = 16 };
    const ptrdiff_t D = s->c->D;
    const float *const omega = s->omega->data, *const x = w->x;

#pragma omp parallel for num_threads(team_for(threads, (size_t)rows *(size_t)D))
    for (ptrdiff_t first = 0; first < D; first += COLUMNS) {
        const ptrdiff_t n = D - first < COLUMNS ? D - first : COLUMNS;
        double sum[COLUMNS] = {0};
        for (ptrdiff_t i = 0; i < rows; i++)
            for (ptrdiff_t e = 0; e < n; e++) {
                const ptrdiff_t at = i * D + first + e;
                sum[e] += (double)d[at] * (double)x[at];
                d[at] *= omega[first + e];
            }
        for (ptrdiff_t e = 0; e < n; e++)
            s->omega->grad[first + e] += (float)sum[e];
    }
}

/* The gradient of f before dropout, from that of the residual sum, which the stream still needs. */
static const float *of_f(const struct engine *g, const struct sublayer *s, struct work *w,
                         float *stream, int rows)
{
    const size_t n = (size_t)rows * (size_t)s->c->D;
    const float *const d = w->d_z ? w->d_z : stream;

    if (s->wiring == WIRING_REORDER)
        gate_backward(g, s, w, stream, rows);
    else if (s->skip)
        skip_grad(g, s, w, w->d_y, d, stream, rows);
    else if (s->norm_out)
        norm_backward(g, s->c, s->norm_out, w->d_y, d, w->y, w->stats, rows, rows);
    else if (s->omega)
        memcpy(w->d_y, d, n * sizeof(float));
    else if (!sublayer_adds_plainly(s))
        scaled(w->d_y, d, sublayer_factor(s), n, g->threads);
    else if (w->drop.p > 0)
        memcpy(w->d_y, d, n * sizeof(float));
    else
        return d;
    if (s->alpha)
        s->alpha->grad[0] += (float)dot(d, w->y, n);
    if (s->omega)
        weighted_backward(s, w, stream, rows, g->threads);
    dropout(&w->drop, s->kind->place, w->d_y, n, g->threads);
    return w->d_y;
}

/* ---- from f to its source rows ------------------------------------------------------------ */

/* Through the norm before f, sequence by sequence if memory lies between them. */
static void through_norm(const struct engine *g, const struct sublayer *s, struct work *w,
                         struct sublayer_input from)
{
    const struct sublayer_input x = sublayer_entered(s, sublayer_reads(w), from.B, from.L);
    const int at_once = s->kind->keeps ? 1 : from.B, rows = at_once * (from.M + from.L);

    for (int b = 0; b < from.B; b += at_once) {
        float *d = w->d_in + b * from.at.stride;
        norm_backward(g, s->c, s->norm, d, d, x.at.at + b * x.at.stride, w->stats, rows,
                      from.B * (from.M + from.L));
    }
}

/* d [B,L,D] += the last L of each sequence's rows of d_in. */
static void add_new_rows(const struct engine *g, float *d, const float *d_in,
                         struct sublayer_input from, int skip, int D)
{
    const int M = from.M - skip, at_once = M ? 1 : from.B;

    for (int b = 0; b < from.B; b += at_once)
        rows_add(g, d + (ptrdiff_t)b * from.L * D, d_in + ((ptrdiff_t)b * (M + from.L) + M) * D,
                 at_once * from.L, D);
}

void sublayer_backward(const struct engine *g, struct sublayer *s, struct work *w, float *d, int B,
                       int L)
{
    const bool first = wiring_norms_first(s->wiring);
    const struct sublayer_input from = sublayer_source_again(s, w, B, L);
    const int skip =
        first ? 0 : from.M; /* otherwise the norm, which has weights, applies to memory */
    const int rows = B * (s->pools ? pool_groups(s->c, L, 1) : L);

    sublayer_reconstruction_grad(g, s, w, B, L);
    if (wiring_norms_after(s->wiring))
        norm_backward(g, s->c, s->norm, d, d, w->sum, w->stats, rows, rows);
    const float *d_y = of_f(g, s, w, d, rows);
    s->kind->backward(g, s, w, from, w->d_in, d_y, skip);
    if (first)
        through_norm(g, s, w, from);
    if (s->pools)
        pool_rows_grad(s, w, d, B, L);
    add_new_rows(g, d, w->d_in, from, skip, s->c->D);
    if (s->kind->positions && s->c->pos->enter_grad)
        s->c->pos->enter_grad(s->c, s->state.attention.pos, d, B, L);
}

double sublayer_grad_flop(const struct sublayer *s, int B, int L, int M)
{
    const struct sublayer_cost n = s->kind->cost(s, B, L, M);
    const double rows = (double)B * L;
    const double gate = s->gate ? 2.0 * s->c->gate->n_matrices * rows * s->c->D * s->c->D : 0;

    return n.backward + 2 * n.maps + 2 * gate;
}
