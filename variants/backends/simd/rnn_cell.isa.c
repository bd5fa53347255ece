/* SPDX-License-Identifier: MIT
 *
 * Recurrent cells with the vectors of vec.h, forward and backward. */
#include "lanes.h"
#include "rows_shared.h"
#include "simd.h"

/* VL units of one row: the x and h sides of gate g; h includes the bias. */
struct rnn_cell_lanes {
    const float *x, *h, *b; /* of gate 0 */
    int n, left;
};

VEC_INLINE struct rnn_cell_lanes cell_lanes_at(const struct rnn_step *o, int gates, int i, int j)
{
    return (struct rnn_cell_lanes){o->x + i * o->x_row + j,
                                   o->h ? o->h + (ptrdiff_t)i * gates * o->n + j : NULL, o->b + j,
                                   o->n, o->n - j};
}

VEC_INLINE vf cell_x(const struct rnn_cell_lanes *u, int g)
{
    return vld_upto(u->x + (ptrdiff_t)g * u->n, u->left, v0());
}

VEC_INLINE vf cell_h(const struct rnn_cell_lanes *u, int g)
{
    const vf b = vld_upto(u->b + (ptrdiff_t)g * u->n, u->left, v0());

    return u->h ? vadd(vld_upto(u->h + (ptrdiff_t)g * u->n, u->left, v0()), b) : b;
}

VEC_INLINE vf cell_sum(const struct rnn_cell_lanes *u, int g)
{
    return vadd(cell_x(u, g), cell_h(u, g));
}

VEC_INLINE vf cell_load(const float *p, ptrdiff_t at, int left)
{
    return p ? vld_upto(p + at, left, v0()) : v0();
}

VEC_INLINE vf one_minus(vf s) { return vsub(v1(1.0f), s); }
VEC_INLINE vf one_minus_square(vf t) { return vfnma(t, t, v1(1.0f)); }

static void rnn_cell_rows(const void *arg, int first, int last)
{
    const struct rnn_step *o = arg;
    const int gates = rnn_cell_gates(o->kind);

    for (int i = first; i < last; i++)
        for (int j = 0; j < o->n; j += VL) {
            const struct rnn_cell_lanes u = cell_lanes_at(o, gates, i, j);
            const ptrdiff_t at = (ptrdiff_t)i * o->n + j;
            vf out;
            if (o->kind == CELL_RNN) {
                out = vtanh(cell_sum(&u, 0));
            } else if (o->kind == CELL_GRU) {
                const vf r = vlogistic(cell_sum(&u, 0)), z = vlogistic(cell_sum(&u, 1));
                const vf m = vtanh(vfma(r, cell_h(&u, 2), cell_x(&u, 2)));
                out = vblend(z, m, cell_load(o->state, at, u.left));
            } else {
                const vf ig = vmul(vlogistic(cell_sum(&u, 0)), vtanh(cell_sum(&u, 2)));
                const vf f = vlogistic(cell_sum(&u, 1));
                const vf c = vfma(f, cell_load(o->c, at, u.left), ig);
                vst_upto(o->c_out + at, u.left, c);
                out = vmul(vlogistic(cell_sum(&u, 3)), vtanh(c));
            }
            vst_upto(o->out + at, u.left, out);
        }
}

void AT_ISA(rnn_cell)(const struct rnn_step *o)
{
    each_row(rnn_cell_rows, o, o->rows, o->n, o->threads);
}

/* ---- backward ----------------------------------------------------------------------------- */

enum { RNN_CELL_GATES = 4 };

VEC_INLINE vf gru_grad_lanes(const struct rnn_step_grad *o, const struct rnn_cell_lanes *u,
                             ptrdiff_t at, vf d_out, vf d[RNN_CELL_GATES])
{
    const vf h = cell_h(u, 2), a_z = cell_sum(u, 1), a_r = cell_sum(u, 0);
    const vf r = vlogistic(a_r), z = vlogistic(a_z), rest = vlogistic(vsub(v0(), a_z));
    const vf m = vtanh(vfma(r, h, cell_x(u, 2)));
    const vf state = cell_load(o->step.state, at, u->left);

    vst_upto(o->d_state + at, u->left, vmul(d_out, z));
    d[2] = vmul(vmul(d_out, rest), one_minus_square(m));
    d[1] = vmul(vmul(d_out, vsub(state, m)), vmul(z, rest));
    d[0] = vmul(vmul(d[2], h), vmul(r, vlogistic(vsub(v0(), a_r))));
    return vmul(d[2], r);
}

VEC_INLINE void lstm_grad_lanes(const struct rnn_step_grad *o, const struct rnn_cell_lanes *u,
                                ptrdiff_t at, vf d_out, vf d[RNN_CELL_GATES])
{
    const vf i = vlogistic(cell_sum(u, 0)), f = vlogistic(cell_sum(u, 1));
    const vf g = vtanh(cell_sum(u, 2)), out = vlogistic(cell_sum(u, 3));
    const vf t = vtanh(vld_upto(o->step.c_out + at, u->left, v0()));
    const vf all =
        vfma(vmul(d_out, out), one_minus_square(t), vld_upto(o->d_c + at, u->left, v0()));

    vst_upto(o->d_c + at, u->left, vmul(all, f));
    d[0] = vmul(vmul(all, g), vmul(i, one_minus(i)));
    d[1] = vmul(vmul(all, cell_load(o->step.c, at, u->left)), vmul(f, one_minus(f)));
    d[2] = vmul(vmul(all, i), one_minus_square(g));
    d[3] = vmul(vmul(d_out, t), vmul(out, one_minus(out)));
}

static void rnn_cell_grad_rows(const void *arg, int first, int last)
{
    const struct rnn_step_grad *o = arg;
    const struct rnn_step *c = &o->step;
    const int gates = rnn_cell_gates(c->kind);

    for (int i = first; i < last; i++)
        for (int j = 0; j < c->n; j += VL) {
            const struct rnn_cell_lanes u = cell_lanes_at(c, gates, i, j);
            const ptrdiff_t at = (ptrdiff_t)i * c->n + j, to = (ptrdiff_t)i * gates * c->n + j;
            const vf d_out = vld_upto(o->d_out + at, u.left, v0());
            vf d[RNN_CELL_GATES], d_last;
            if (c->kind == CELL_RNN) {
                d[0] = vmul(d_out, one_minus_square(vtanh(cell_sum(&u, 0))));
                d_last = d[0];
            } else if (c->kind == CELL_GRU) {
                d_last = gru_grad_lanes(o, &u, at, d_out, d);
            } else {
                lstm_grad_lanes(o, &u, at, d_out, d);
                d_last = d[3];
            }
            for (int g = 0; g < gates; g++) {
                vst_upto(o->d_x + to + (ptrdiff_t)g * c->n, u.left, d[g]);
                vst_upto(o->d_h + to + (ptrdiff_t)g * c->n, u.left, g == gates - 1 ? d_last : d[g]);
            }
        }
}

void AT_ISA(rnn_cell_grad)(const struct rnn_step_grad *o)
{
    each_row(rnn_cell_grad_rows, o, o->step.rows, o->step.n, o->step.threads);
}
