/* SPDX-License-Identifier: MIT
 *
 * Backward of the gates. Forward's pre-activations are replaced by their gradients, e
 * there, in place; what remains are products with the weights. */
#include "gate.h"
#include "linear.h"

#include <string.h>

static float *slot(float *work, const struct config *c, int rows, int which)
{
    return work + (ptrdiff_t)which * rows * c->D;
}

static void unblend(const struct engine *g, const struct config *c, struct gate_grad op, int rows)
{
    op.rows = rows;
    op.n = c->D;
    op.threads = g->threads;
    g->ops.gate_grad(&op);
}

GATE_BACKWARD(residual)
{
    const size_t bytes = sizeof(float) * (size_t)rows * (size_t)c->D;

    (void)g, (void)w, (void)x, (void)y, (void)work, (void)more;
    memcpy(d_y, d_out, bytes);
    if (d_x != d_out)
        memcpy(d_x, d_out, bytes);
}

/* The three that look at x alone: e = gradient of W_g x. */
static void of_x(const struct engine *g, const struct config *c, const struct param *w,
                 enum gate_kind kind, float *d_x, float *d_y, const float *d_out, const float *x,
                 const float *y, int rows, float *e)
{
    const bool biased = kind != GATE_INPUT;

    unblend(g, c,
            (struct gate_grad){.kind = kind,
                               .d_x = d_x,
                               .d_y = d_y,
                               .d_a = e,
                               .d_b = biased ? w[BG].grad : NULL,
                               .d_out = d_out,
                               .x = x,
                               .y = y,
                               .a = e,
                               .b = biased ? w[BG].data : NULL},
            rows);
    linear_weight_grad(g, &w[WG], e, x, rows);
    linear_input_grad(g, &w[WG], d_x, e, rows, 1);
}

GATE_BACKWARD(input)
{
    (void)more;
    of_x(g, c, w, GATE_INPUT, d_x, d_y, d_out, x, y, rows, work);
}

GATE_BACKWARD(output)
{
    (void)more;
    of_x(g, c, w, GATE_OUTPUT, d_x, d_y, d_out, x, y, rows, work);
}

GATE_BACKWARD(highway)
{
    (void)more;
    of_x(g, c, w, GATE_HIGHWAY, d_x, d_y, d_out, x, y, rows, work);
}

GATE_BACKWARD(sigtanh)
{
    float *e = slot(work, c, rows, SLOT_A), *f = slot(work, c, rows, SLOT_C);

    (void)more;
    unblend(g, c,
            (struct gate_grad){.kind = GATE_SIGTANH,
                               .d_x = d_x,
                               .d_a = e,
                               .d_c = f,
                               .d_b = w[ST_BG].grad,
                               .d_out = d_out,
                               .x = x,
                               .a = e,
                               .c = f,
                               .b = w[ST_BG].data},
            rows);
    linear_weight_grad(g, &w[ST_WG], e, y, rows);
    linear_weight_grad(g, &w[ST_UG], f, y, rows);
    linear_input_grad(g, &w[ST_WG], d_y, e, rows, 0);
    linear_input_grad(g, &w[ST_UG], d_y, f, rows, 1);
}

/* Forward kept r (.) x but not r, which two products bring back. */
GATE_BACKWARD(gru)
{
    float *rx = slot(work, c, rows, SLOT_RX), *er = rx, *p = more;
    float *ez = slot(work, c, rows, SLOT_Z), *ec = slot(work, c, rows, SLOT_CAND);

    unblend(g, c,
            (struct gate_grad){.kind = GATE_UPDATE,
                               .d_x = d_x,
                               .d_a = ez,
                               .d_c = ec,
                               .d_b = w[GRU_BG].grad,
                               .d_out = d_out,
                               .x = x,
                               .a = ez,
                               .c = ec,
                               .b = w[GRU_BG].data},
            rows);
    linear_weight_grad(g, &w[GRU_WG], ec, y, rows);
    linear_weight_grad(g, &w[GRU_UG], ec, rx, rows);
    linear_weight_grad(g, &w[GRU_WZ], ez, y, rows);
    linear_weight_grad(g, &w[GRU_UZ], ez, x, rows);
    linear_input_grad(g, &w[GRU_WG], d_y, ec, rows, 0);
    linear_input_grad(g, &w[GRU_WZ], d_y, ez, rows, 1);
    linear_input_grad(g, &w[GRU_UZ], d_x, ez, rows, 1);

    linear_input_grad(g, &w[GRU_UG], p, ec, rows, 0); /* of r (.) x */
    gate_project(g, c, &w[GRU_WR], er, y, rows, 0);
    gate_project(g, c, &w[GRU_UR], er, x, rows, 1);
    unblend(
        g, c,
        (struct gate_grad){.kind = GATE_RESET, .d_x = p, .d_a = er, .d_out = p, .x = x, .a = er},
        rows);
    linear_weight_grad(g, &w[GRU_WR], er, y, rows);
    linear_weight_grad(g, &w[GRU_UR], er, x, rows);
    linear_input_grad(g, &w[GRU_WR], d_y, er, rows, 1);
    linear_input_grad(g, &w[GRU_UR], p, er, rows, 1);
    g->ops.act(&(struct act){
        .y = d_x, .x = d_x, .add = p, .rows = rows, .n = c->D, .threads = g->threads});
}
