/* SPDX-License-Identifier: MIT
 *
 * Backward of the gates. Forward's pre-activations are replaced by their gradients, element-wise
 * and in place; then come products with the weights. */
#include "gate.h"
#include "linear.h"

static void unblend(const struct engine *g, const struct config *c, ptrdiff_t ld,
                    struct gate_grad op, int rows)
{
    op.ld = ld;
    op.rows = rows;
    op.n = c->D;
    op.threads = g->threads;
    g->ops.gate_grad(&op);
}

GATE_BACKWARD(residual)
{
    const size_t bytes = sizeof(float) * (size_t)rows * (size_t)c->D;

    memcpy(d_y, d_out, bytes);
    if (d_x != d_out)
        memcpy(d_x, d_out, bytes);
}

/* The three gates of x alone: e = gradient of W_g x. */
static void of_x(const struct engine *g, const struct config *c, const struct param *w,
                 enum gate_kind kind, float *d_x, float *d_y, const float *d_out, const float *x,
                 const float *y, int rows, float *e)
{
    const bool biased = kind != GATE_INPUT;

    unblend(g, c, c->D,
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
    linear_backward(g, &w[WG], NULL, d_x, e, x, rows, 1);
}

GATE_BACKWARD(input) { of_x(g, c, w, GATE_INPUT, d_x, d_y, d_out, x, y, rows, work); }

GATE_BACKWARD(output) { of_x(g, c, w, GATE_OUTPUT, d_x, d_y, d_out, x, y, rows, work); }

GATE_BACKWARD(highway) { of_x(g, c, w, GATE_HIGHWAY, d_x, d_y, d_out, x, y, rows, work); }

GATE_BACKWARD(sigtanh)
{
    float *e = work, *f = work + c->D; /* columns of one [rows,2D] */

    unblend(g, c, 2 * (ptrdiff_t)c->D,
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
    linear_backward(g, &w[ST_WG], NULL, d_y, e, y, rows, 0);
}

/* Backward of gru_add, src U^T added to columns of P [rows,3D]: dU += and d_src = beta d_src +. */
static void gru_unadd(const struct engine *g, const struct config *c, const struct param *u,
                      float *d_src, float beta, const float *columns, const float *src, int rows)
{
    struct gemm weight = linear_weight_product(g, u, columns, src, rows);
    struct gemm input = linear_input_product(g, u, d_src, columns, rows, beta);

    weight.lda = input.lda = 3 * (ptrdiff_t)c->D;
    g->ops.gemm(&weight);
    g->ops.gemm(&input);
}

/* p is the gradient of r (.) x, then the part of d_x through r, z and r (.) x. */
GATE_BACKWARD(gru)
{
    const ptrdiff_t ld = 3 * (ptrdiff_t)c->D;
    const struct gru_work k = gru_work(c, work, rows);
    float *p = grad_work;

    unblend(g, c, ld,
            (struct gate_grad){.kind = GATE_UPDATE,
                               .d_x = d_x,
                               .d_a = k.z,
                               .d_c = k.cand,
                               .d_b = w[GRU_BG].grad,
                               .d_out = d_out,
                               .x = x,
                               .a = k.z,
                               .c = k.cand,
                               .b = w[GRU_BG].data},
            rows);
    gru_unadd(g, c, &w[GRU_UG], p, 0, k.cand, k.rx, rows);
    unblend(
        g, c, ld,
        (struct gate_grad){.kind = GATE_RESET, .d_x = p, .d_a = k.r, .d_out = p, .x = x, .a = k.r},
        rows);
    gru_unadd(g, c, &w[GRU_UR], p, 1, k.r, x, rows);
    linear_backward(g, &w[GRU_WR], NULL, d_y, k.r, y, rows, 0);
    rows_add(g, d_x, p, rows, c->D);
}
