/* SPDX-License-Identifier: MIT
 *
 * Blocks of a product's operands in the order in which gemm.inc.c reads them, a number of k a lane.
 * Narrow numbers are widened. */

/* As pack_across, of columns of op(b), a part of k at a time: whole blocks. */
static void pack_narrow(float *to, const struct gemm *g, int p, int k, int j, int cols)
{
    enum { PART = 4 * Q8_BLOCK };
    _Alignas(64) float part[VL * PART];

    for (int at = 0; at < k; at += PART) {
        const int n = min_int(PART, k - at);
        for (int c = 0; c < cols; c++)
            widen(part + c * PART, g->elem, narrow_row(g, j + c), p + at, n);
        pack_across(to + (ptrdiff_t)at * NR, NR, part, PART, cols, n, 1.0f);
    }
}

/* Rows [p, p+k) of b, columns [j, j+n), into slivers of [k][NR], row by row: a row comes from
 * memory as one stream, and each line that is written is written once. */
static void pack_b_rows(float *dst, const struct gemm *g, int p, int k, int j, int n)
{
    for (int r = 0; r < k; r++) {
        const float *row = g->b + (p + r) * g->ldb + j;
        for (int s = 0; s < n; s += VL)
            vst(dst + (ptrdiff_t)(s / NR) * NR * k + r * NR + s % NR,
                vld_upto(row + s, n - s, v0()));
    }
}

/* As above, of op(b). */
static void pack_b(float *dst, const struct gemm *g, int p, int k, int j, int n)
{
    if (g->elem == ELEM_F32 && !g->tb) {
        pack_b_rows(dst, g, p, k, j, n);
        return;
    }
    for (int s = 0; s < n; s += VL) {
        float *to = dst + (ptrdiff_t)(s / NR) * NR * k + s % NR;
        const int cols = min_int(n - s, VL);
        if (g->elem != ELEM_F32)
            pack_narrow(to, g, p, k, j + s, cols);
        else
            pack_across(to, NR, g->b + (j + s) * g->ldb + p, g->ldb, cols, k, 1.0f);
    }
}

/* Rows [i, i+R) of op(a), columns [p, p+k), into [k][R]. */
static void pack_a(float *dst, const struct gemm *g, int i, int R, int p, int k)
{
    if (g->ta)
        pack_along(dst, R, g->a + p * g->lda + i, g->lda, R, k);
    else
        pack_across(dst, R, g->a + i * g->lda + p, g->lda, R, k, 1.0f);
}
