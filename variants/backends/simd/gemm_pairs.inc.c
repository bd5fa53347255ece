/* SPDX-License-Identifier: MIT
 *
 * Operands of products of bf16 as pairs of k: blocks in the order in which gemm.inc.c reads them,
 * and products of few rows with a weight W [n,k] of bf16, dot products along k that read W in
 * place. */

/* dst[p][i] = numbers i of rows 2 p and 2 p + 1 of src, k rows; `cols` of them, 0 up to VL. */
static void pack_rows_along(float *dst, ptrdiff_t step, const float *src, ptrdiff_t ld, int cols,
                            int k)
{
    for (int p = 0; p < 2 * lanes_for(k); p += 2) {
        const vf lo = p < k ? vld_upto(src + p * ld, cols, v0()) : v0();
        const vf hi = p + 1 < k ? vld_upto(src + (p + 1) * ld, cols, v0()) : v0();
        vst(dst + (ptrdiff_t)(p / 2) * step, vzip_pairs(vpairs(lo, hi)));
    }
}

/* Rows [p, p+k) of op(b), columns [j, j+n), into slivers of [lanes_for(k)][NR]. */
static void pack_b(float *dst, const struct gemm *g, int p, int k, int j, int n)
{
    for (int s = 0; s < n; s += VL) {
        float *const to = dst + (ptrdiff_t)(s / NR * NR) * lanes_for(k) + s % NR;
        const int cols = min_int(VL, n - s);

        if (g->elem == ELEM_BF16)
            pack_pairs_across(true, to, NR, (const uint16_t *)narrow_row(g, j + s) + p, g->k, cols,
                              k);
        else if (g->tb)
            pack_pairs_across(false, to, NR, g->b + (j + s) * g->ldb + p, g->ldb, cols, k);
        else
            pack_rows_along(to, NR, g->b + p * g->ldb + j + s, g->ldb, cols, k);
    }
}

#if !defined(VEC_AMX_BF16)
/* Rows [i, i+R) of op(a), columns [p, p+k), rounded, into [lanes_for(k)][R]. */
static void pack_a(float *dst, const struct gemm *g, int i, int R, int p, int k)
{
    if (g->ta)
        pack_rows_along(dst, R, g->a + p * g->lda + i, g->lda, R, k);
    else
        pack_pairs_across(false, dst, R, g->a + i * g->lda + p, g->lda, R, k);
}
#endif

/* ---- few rows ----------------------------------------------------------------------------- */

/* W is read as one stream, row after row. */
/* R rows of a, as bf16, k apart, times row w: `left` numbers from p on. */
VEC_INLINE void dot_step(int R, vf acc[STREAM_ROWS][CHAINS], int chain, const uint16_t *a, int k,
                         const uint16_t *w, int p, int left)
{
    const vf y = vld_pairs_n(w + p, left);

    UNROLL
    for (int r = 0; r < R; r++)
        acc[r][chain] = vdot2(acc[r][chain], vld_pairs_n(a + (ptrdiff_t)r * k + p, left), y);
}

/* Column j of rows [i, i+R) of c. */
VEC_INLINE void dot_rows(int R, const struct gemm *g, const uint16_t *a, int i, int j)
{
    const uint16_t *const w = narrow_row(g, j);
    const int k = g->k;
    vf acc[STREAM_ROWS][CHAINS];
    int p = 0;

    UNROLL
    for (int r = 0; r < R; r++)
        UNROLL
    for (int c = 0; c < CHAINS; c++)
        acc[r][c] = v0();
    for (; p + CHAINS * 2 * VL <= k; p += CHAINS * 2 * VL)
        UNROLL
    for (int c = 0; c < CHAINS; c++)
        dot_step(R, acc, c, a, k, w, p + c * 2 * VL, 2 * VL);
    for (; p < k; p += 2 * VL)
        dot_step(R, acc, 0, a, k, w, p, k - p);
    UNROLL
    for (int r = 0; r < R; r++) {
        float *const to = g->c + (i + r) * g->ldc + j;
        const vf all = vadd(vadd(acc[r][0], acc[r][1]), vadd(acc[r][2], acc[r][3]));
        const float sum = g->alpha * vsum(all);
        *to = g->beta == 0.0f ? sum : sum + g->beta * *to;
    }
}

/* Are there few rows, so that W is read in place? */
static bool is_few(const struct gemm *g)
{
    return g->elem == ELEM_BF16 && g->m <= FEW_ROWS && (int64_t)g->m * g->k <= FEW_BF16;
}

/* c[..][j0..j1) of few rows: each row of W against all rows of a, rounded once. */
static void gemm_few(const struct fused *f, struct room *room, int j0, int j1)
{
    uint16_t *const a = (uint16_t *)(void *)room;
    const struct gemm *const g = f->g;

    for (int i = 0; i < g->m; i++)
        for (int p = 0; p < g->k; p++)
            a[(ptrdiff_t)i * g->k + p] = bf16_of(g->a[i * g->lda + p]);
    for (int j = j0; j < j1; j++) {
        int i = 0;
        for (; i + STREAM_ROWS <= g->m; i += STREAM_ROWS)
            dot_rows(STREAM_ROWS, g, a + (ptrdiff_t)i * g->k, i, j);
        if (i < g->m)
            dot_rows(1, g, a + (ptrdiff_t)i * g->k, i, j);
    }
    run_epilogue(f, 0, g->m, j0, j1);
}
