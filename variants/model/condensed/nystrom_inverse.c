/* SPDX-License-Identifier: MIT
 *
 * The pseudo-inverse of a head's landmarks. */
#include "nystrom_inverse.h"

/* y = alpha op(x) op(z) + beta y, all [m,m]. */
static void product(const struct nystrom_head *n, enum mm_form form, float *y, float alpha,
                    const float *x, const float *z, float beta)
{
    mm_here(n->g, form, n->m, n->m, n->m, alpha, x, n->m, z, n->m, beta, y, n->m);
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

    product(n, NN, x, 1, n->a, z, 0);
    for (ptrdiff_t i = 0; i < (ptrdiff_t)n->m * n->m; i++)
        p1[i] = -x[i];
    diagonal(n, p1, 7);
    product(n, NN, p2, -1, x, p1, 0);
    diagonal(n, p2, 15);
    product(n, NN, p3, -1, x, p2, 0);
    diagonal(n, p3, 13);
}

static void softmax_rows(const struct nystrom_head *n)
{
    mm_here(n->g, NT, n->m, n->m, n->dh, n->scale, n->q, n->row, n->k, n->row, 0, n->a, n->m);
    n->g->ops.softmax(&(struct softmax){
        .s = n->a, .ld = n->m, .rows = n->m, .cols = n->m, .hi = n->m, .threads = 1});
}

void nystrom_invert(const struct nystrom_head *n)
{
    softmax_rows(n);
    if (n->ridge > 0)
        diagonal(n, n->a, n->ridge);
    const struct sums most = largest(n);
    for (int i = 0; i < n->m; i++)
        for (int j = 0; j < n->m; j++)
            n->z[(ptrdiff_t)i * n->m + j] =
                n->a[(ptrdiff_t)j * n->m + i] / (most.row * most.column);
    for (int i = 0; i < n->iterations; i++) {
        inner(n, iterate(n, i));
        product(n, NN, iterate(n, i + 1), 0.25f, iterate(n, i), temporary(n, P3), 0);
    }
    mm_here(n->g, NN, n->m, n->dh, n->m, 1, iterate(n, n->iterations), n->m, n->o, n->row, 0, n->to,
            n->row);
}

/* d_z from the gradient of the next iterate to that of this one; d_a gathers that of A. */
static void step_grad(const struct nystrom_head *n, const float *z, float *d_z, float *d_a)
{
    const float *const x = temporary(n, X), *const p1 = temporary(n, P1),
                       *const p2 = temporary(n, P2), *const p3 = temporary(n, P3);
    float *const d_p = temporary(n, D_P), *const d_x = temporary(n, D_X),
                 *const before = temporary(n, D_Z), *const d_p2 = temporary(n, D_Z + 1);

    inner(n, z);
    product(n, TN, d_p, 0.25f, z, d_z, 0);     /* of P3 */
    product(n, NT, before, 0.25f, d_z, p3, 0); /* through the factor Z */
    product(n, NT, d_x, -1, d_p, p2, 0);
    product(n, TN, d_p2, -1, x, d_p, 0);
    product(n, NT, d_x, -1, d_p2, p1, 1);
    product(n, TN, d_x, 1, x, d_p2, 1); /* P1's gradient is -X^T d_P2, and X's its own */
    product(n, NT, d_a, 1, d_x, z, 1);
    product(n, TN, before, 1, n->a, d_x, 1);
    memcpy(d_z, before, sizeof(float) * (size_t)n->m * (size_t)n->m);
}

void nystrom_invert_grad(const struct nystrom_head *n, const struct nystrom_head *d)
{
    const ptrdiff_t m = n->m, square = m * m;
    float *const d_z = d->z, *const d_a = d->a;

    mm_here(n->g, NT, n->m, n->m, n->dh, 1, d->to, n->row, n->o, n->row, 0, d_z, n->m);
    mm_here(n->g, TN, n->m, n->dh, n->m, 1, iterate(n, n->iterations), n->m, d->to, n->row, 0,
            (float *)d->o, n->row);
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
    for (ptrdiff_t j = 0; j < m; j++) /* rows have the same sum, whatever the scores */
        d_a[j * m + most.at] -= through / (both * most.column);
    if (n->ridge > 0) /* A_2 itself */
        softmax_rows(n);
    n->g->ops.softmax_grad(&(struct softmax_grad){
        .d = d_a, .p = n->a, .ld = m, .rows = n->m, .cols = n->m, .threads = 1});
    mm_here(n->g, NN, n->m, n->dh, n->m, n->scale, d_a, m, n->k, n->row, 0, d->to, n->row);
    mm_here(n->g, TN, n->m, n->dh, n->m, n->scale, d_a, m, n->q, n->row, 1, (float *)d->k, n->row);
}
