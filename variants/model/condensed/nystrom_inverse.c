/* SPDX-License-Identifier: MIT
 *
 * The pseudo-inverse of a head's landmarks. */
#include "nystrom_inverse.h"

#include <math.h>
#include <string.h>

/* y = alpha op(x) op(z) + beta y, all [m,m]. */
static void product(const struct nystrom_head *n, float *y, float alpha, const float *x, bool tx,
                    const float *z, bool tz, float beta)
{
    n->g->ops.gemm(&(struct gemm){.ta = tx,
                                  .tb = tz,
                                  .m = n->m,
                                  .n = n->m,
                                  .k = n->m,
                                  .alpha = alpha,
                                  .beta = beta,
                                  .a = x,
                                  .lda = n->m,
                                  .b = z,
                                  .ldb = n->m,
                                  .c = y,
                                  .ldc = n->m,
                                  .threads = 1});
}

static float *iterate(const struct nystrom_head *n, int i)
{
    return n->z + (ptrdiff_t)i * n->m * n->m;
}
static float *temporary(const struct nystrom_head *n, int i)
{
    return iterate(n, n->iterations + 1 + i);
}

static void diagonal(const struct nystrom_head *n, float *x, float by)
{
    for (int i = 0; i < n->m; i++)
        x[(ptrdiff_t)i * n->m + i] += by;
}

/* Largest sum of a row and of a column, and which column that is. */
struct sums {
    float row, column;
    int at;
};

static struct sums largest(const struct nystrom_head *n)
{
    struct sums most = {0};

    for (int i = 0; i < n->m; i++) {
        float row = 0, column = 0;
        for (int j = 0; j < n->m; j++) {
            row += n->a[(ptrdiff_t)i * n->m + j];
            column += n->a[(ptrdiff_t)j * n->m + i];
        }
        most.row = fmaxf(most.row, row);
        if (column > most.column) {
            most.column = column;
            most.at = i;
        }
    }
    return most;
}

/* A step's inner matrices, of X = A Z:  P1 = 7 I - X,  P2 = 15 I - X P1,  P3 = 13 I - X P2. */
enum { X, P1, P2, P3, D_P, D_X, D_Z };

static void inner(const struct nystrom_head *n, const float *z)
{
    float *const x = temporary(n, X), *const p1 = temporary(n, P1), *const p2 = temporary(n, P2),
                 *const p3 = temporary(n, P3);

    product(n, x, 1, n->a, false, z, false, 0);
    for (ptrdiff_t i = 0; i < (ptrdiff_t)n->m * n->m; i++)
        p1[i] = -x[i];
    diagonal(n, p1, 7);
    product(n, p2, -1, x, false, p1, false, 0);
    diagonal(n, p2, 15);
    product(n, p3, -1, x, false, p2, false, 0);
    diagonal(n, p3, 13);
}

static void softmax_rows(const struct nystrom_head *n)
{
    n->g->ops.gemm(&(struct gemm){.tb = true,
                                  .m = n->m,
                                  .n = n->m,
                                  .k = n->dh,
                                  .alpha = n->scale,
                                  .a = n->q,
                                  .lda = n->row,
                                  .b = n->k,
                                  .ldb = n->row,
                                  .c = n->a,
                                  .ldc = n->m,
                                  .threads = 1});
    n->g->ops.softmax(&(struct softmax){
        .s = n->a, .ld = n->m, .rows = n->m, .cols = n->m, .hi = n->m, .threads = 1});
}

void nystrom_invert(const struct nystrom_head *n)
{
    softmax_rows(n);
    const struct sums most = largest(n);
    for (int i = 0; i < n->m; i++)
        for (int j = 0; j < n->m; j++)
            n->z[(ptrdiff_t)i * n->m + j] =
                n->a[(ptrdiff_t)j * n->m + i] / (most.row * most.column);
    for (int i = 0; i < n->iterations; i++) {
        inner(n, iterate(n, i));
        product(n, iterate(n, i + 1), 0.25f, iterate(n, i), false, temporary(n, P3), false, 0);
    }
    n->g->ops.gemm(&(struct gemm){.m = n->m,
                                  .n = n->dh,
                                  .k = n->m,
                                  .alpha = 1,
                                  .a = iterate(n, n->iterations),
                                  .lda = n->m,
                                  .b = n->o,
                                  .ldb = n->row,
                                  .c = n->to,
                                  .ldc = n->row,
                                  .threads = 1});
}

/* d_z from the gradient of the next iterate to that of this one; d_a gathers that of A. */
static void step_grad(const struct nystrom_head *n, const float *z, float *d_z, float *d_a)
{
    const float *const x = temporary(n, X), *const p1 = temporary(n, P1),
                       *const p2 = temporary(n, P2), *const p3 = temporary(n, P3);
    float *const d_p = temporary(n, D_P), *const d_x = temporary(n, D_X),
                 *const before = temporary(n, D_Z), *const d_p2 = temporary(n, D_Z + 1);

    inner(n, z);
    product(n, d_p, 0.25f, z, true, d_z, false, 0);     /* of P3 */
    product(n, before, 0.25f, d_z, false, p3, true, 0); /* through the factor Z */
    product(n, d_x, -1, d_p, false, p2, true, 0);
    product(n, d_p2, -1, x, true, d_p, false, 0);
    product(n, d_x, -1, d_p2, false, p1, true, 1);
    product(n, d_x, 1, x, true, d_p2, false, 1); /* P1's gradient is -X^T d_P2, and X's its own */
    product(n, d_a, 1, d_x, false, z, true, 1);
    product(n, before, 1, n->a, true, d_x, false, 1);
    memcpy(d_z, before, sizeof(float) * (size_t)n->m * (size_t)n->m);
}

void nystrom_invert_grad(const struct nystrom_head *n, const struct nystrom_head *d)
{
    const ptrdiff_t m = n->m, square = m * m;
    float *const d_z = d->z, *const d_a = d->a;

    n->g->ops.gemm(&(struct gemm){.tb = true,
                                  .m = n->m,
                                  .n = n->m,
                                  .k = n->dh,
                                  .alpha = 1,
                                  .a = d->to,
                                  .lda = n->row,
                                  .b = n->o,
                                  .ldb = n->row,
                                  .c = d_z,
                                  .ldc = n->m,
                                  .threads = 1});
    n->g->ops.gemm(&(struct gemm){.ta = true,
                                  .m = n->m,
                                  .n = n->dh,
                                  .k = n->m,
                                  .alpha = 1,
                                  .a = iterate(n, n->iterations),
                                  .lda = n->m,
                                  .b = d->to,
                                  .ldb = n->row,
                                  .c = (float *)d->o,
                                  .ldc = n->row,
                                  .threads = 1});
    memset(d_a, 0, sizeof(float) * (size_t)square);
    for (int i = n->iterations - 1; i >= 0; i--)
        step_grad(n, iterate(n, i), d_z, d_a);
    const struct sums most = largest(n);
    const float both = most.row * most.column;
    float through = 0;
    for (ptrdiff_t i = 0; i < m; i++)
        for (ptrdiff_t j = 0; j < m; j++) {
            d_a[j * m + i] += d_z[i * m + j] / both;
            through += d_z[i * m + j] * n->a[j * m + i];
        }
    for (ptrdiff_t j = 0; j < m; j++) /* rows of a softmax have the sum 1, whatever the scores */
        d_a[j * m + most.at] -= through / (both * most.column);
    n->g->ops.softmax_grad(&(struct softmax_grad){
        .d = d_a, .p = n->a, .ld = m, .rows = n->m, .cols = n->m, .threads = 1});
    n->g->ops.gemm(&(struct gemm){.m = n->m,
                                  .n = n->dh,
                                  .k = n->m,
                                  .alpha = n->scale,
                                  .a = d_a,
                                  .lda = m,
                                  .b = n->k,
                                  .ldb = n->row,
                                  .c = d->to,
                                  .ldc = n->row,
                                  .threads = 1});
    n->g->ops.gemm(&(struct gemm){.ta = true,
                                  .m = n->m,
                                  .n = n->dh,
                                  .k = n->m,
                                  .alpha = n->scale,
                                  .beta = 1,
                                  .a = d_a,
                                  .lda = m,
                                  .b = n->q,
                                  .ldb = n->row,
                                  .c = (float *)d->k,
                                  .ldc = n->row,
                                  .threads = 1});
}
