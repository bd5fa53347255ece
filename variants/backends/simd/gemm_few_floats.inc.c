/* SPDX-License-Identifier: MIT
 *
 * Sums of products of few rows with a weight W [n,k], which is widened in registers if it is
 * narrow. */

/* Numbers from p on of row j of W, `left` of them there. */
VEC_INLINE vf dot_weights(enum elem E, const struct gemm *g, int j, int p, int left)
{
    if (E == ELEM_F32)
        return vld_upto(g->b + j * g->ldb + p, left, v0());
    const uint16_t *const half = (const uint16_t *)g->b_narrow + (ptrdiff_t)j * g->k + p;
    return left >= VL ? vld_bf16(half) : vld_bf16_n(half, left);
}

/* `left` columns from p on, VL at most. */
VEC_INLINE void dot_step(enum elem E, int R, int C, vf acc[VL], const struct gemm *g,
                         const float *a, int j, int apart, int p, int left)
{
    vf x[DOT_ROWS];

    UNROLL
    for (int r = 0; r < R; r++)
        x[r] = vld_upto(a + r * g->lda + p, left, v0());
    UNROLL
    for (int c = 0; c < C; c++) {
        const vf y = dot_weights(E, g, j + c * apart, p, left);
        UNROLL
        for (int r = 0; r < R; r++)
            acc[r * DOT_COLS + c] = vfma(x[r], y, acc[r * DOT_COLS + c]);
    }
}

VEC_INLINE void dot_plain(enum elem E, int R, int C, vf acc[VL], const struct gemm *g, int i, int j,
                          int apart)
{
    const float *const a = g->a + i * g->lda;
    int p = 0;

    for (; p + VL <= g->k; p += VL)
        dot_step(E, R, C, acc, g, a, j, apart, p, VL);
    if (p < g->k)
        dot_step(E, R, C, acc, g, a, j, apart, p, g->k - p);
}

/* Numbers [i, i + VL) of block b of row w of W, before the sum of a block is scaled. */
VEC_INLINE vf dot_numbers(enum elem E, const void *w, int b, int i)
{
    return E == ELEM_Q4_1 ? vld_widened(E, w, b, i) : vld_of_block(E, w, b, i);
}

/* Block by block: the sum of a block is multiplied by its scale. Of q4_1 the weights are widened
 * instead: one product more a vector, which all rows share, and no sums of rows. */
VEC_INLINE void dot_blocks(enum elem E, int R, int C, vf acc[VL], const struct gemm *g, int i,
                           int j, int apart)
{
    enum { PARTS = Q8_BLOCK / VL };
    const float *a = g->a + i * g->lda;
    const void *w[DOT_COLS];

    UNROLL
    for (int c = 0; c < C; c++)
        w[c] = narrow_row(g, j + c * apart);
    for (int p = 0, b = 0; p < g->k; p += Q8_BLOCK, b++) {
        vf x[DOT_ROWS][PARTS];
        UNROLL
        for (int r = 0; r < R; r++)
            UNROLL
        for (int v = 0; v < PARTS; v++)
            x[r][v] = vld_upto(a + r * g->lda + p + v * VL, max_int(0, g->k - p - v * VL), v0());
        UNROLL
        for (int c = 0; c < C; c++) {
            const vf scale = E == ELEM_Q4_1 ? v1(1) : v1(scale_of_block(E, w[c], b));
            vf sum[DOT_ROWS];
            UNROLL
            for (int v = 0; v < PARTS; v++) {
                const vf q = dot_numbers(E, w[c], b, v * VL);
                UNROLL
                for (int r = 0; r < R; r++)
                    sum[r] = v ? vfma(x[r][v], q, sum[r]) : vmul(x[r][v], q);
            }
            UNROLL
            for (int r = 0; r < R; r++)
                acc[r * DOT_COLS + c] = vfma(sum[r], scale, acc[r * DOT_COLS + c]);
        }
    }
}

VEC_INLINE void dot_sums(enum elem E, int R, int C, vf acc[VL], const struct gemm *g, int i, int j,
                         int apart)
{
    if (elem_in_blocks(E))
        dot_blocks(E, R, C, acc, g, i, j, apart);
    else
        dot_plain(E, R, C, acc, g, i, j, apart);
}

/* ---- one stream --------------------------------------------------------------------------- */

VEC_INLINE void stream_step(enum elem E, int R, vf acc[STREAM_ROWS][CHAINS], int chain,
                            const struct gemm *g, const float *a, int j, int p, int left)
{
    const vf y = dot_weights(E, g, j, p, left);

    UNROLL
    for (int r = 0; r < R; r++)
        acc[r][chain] = vfma(vld_upto(a + r * g->lda + p, left, v0()), y, acc[r][chain]);
}

VEC_INLINE void stream_plain(enum elem E, int R, vf acc[STREAM_ROWS][CHAINS], const struct gemm *g,
                             const float *a, int j)
{
    int p = 0;

    for (; p + CHAINS * VL <= g->k; p += CHAINS * VL)
        UNROLL
    for (int c = 0; c < CHAINS; c++)
        stream_step(E, R, acc, c, g, a, j, p + c * VL, VL);
    for (; p < g->k; p += VL)
        stream_step(E, R, acc, 0, g, a, j, p, min_int(VL, g->k - p));
}

/* Block b of row w, of which `left` numbers of a are there. */
VEC_INLINE void stream_block(enum elem E, int R, vf acc[STREAM_ROWS][CHAINS], int chain,
                             const struct gemm *g, const float *a, const void *w, int b, int left)
{
    const vf scale = E == ELEM_Q4_1 ? v1(1) : v1(scale_of_block(E, w, b));
    vf sum[STREAM_ROWS];

    UNROLL
    for (int v = 0; v < Q8_BLOCK / VL; v++) {
        const vf q = dot_numbers(E, w, b, v * VL);
        UNROLL
        for (int r = 0; r < R; r++) {
            const float *const at = a + r * g->lda + v * VL;
            const vf x = left == Q8_BLOCK ? vld(at) : vld_upto(at, max_int(0, left - v * VL), v0());
            sum[r] = v ? vfma(x, q, sum[r]) : vmul(x, q);
        }
    }
    UNROLL
    for (int r = 0; r < R; r++)
        acc[r][chain] = vfma(sum[r], scale, acc[r][chain]);
}

VEC_INLINE void stream_blocks(enum elem E, int R, vf acc[STREAM_ROWS][CHAINS], const struct gemm *g,
                              const float *a, int j)
{
    const void *const w = narrow_row(g, j);
    int p = 0, b = 0;

    for (; p + CHAINS * Q8_BLOCK <= g->k; p += CHAINS * Q8_BLOCK, b += CHAINS)
        UNROLL
    for (int c = 0; c < CHAINS; c++)
        stream_block(E, R, acc, c, g, a + p + c * Q8_BLOCK, w, b + c, Q8_BLOCK);
    for (; p < g->k; p += Q8_BLOCK, b++)
        stream_block(E, R, acc, 0, g, a + p, w, b, min_int(Q8_BLOCK, g->k - p));
}

VEC_INLINE void stream_sums(enum elem E, int R, vf acc[STREAM_ROWS][CHAINS], const struct gemm *g,
                            int j)
{
    if (elem_in_blocks(E))
        stream_blocks(E, R, acc, g, g->a, j);
    else
        stream_plain(E, R, acc, g, g->a, j);
}

VEC_INLINE bool is_stream(enum elem E, const struct gemm *g) { return g->m <= STREAM_ROWS; }

#include "gemm_few.inc.c"

/* The rows of a are rounded once, not for each row of W. */
static void dots_bf16(const struct gemm *g, struct room *room, int j0, int j1)
{
    float *const a = room->a;
    struct gemm rounded = *g;
    _Static_assert(FEW_BF16 <= MC * KC, "few rows fit");

    for (int i = 0; i < g->m; i++)
        memcpy(a + (ptrdiff_t)i * g->k, g->a + i * g->lda, sizeof(*a) * (size_t)g->k);
    round_to_bf16(a, (ptrdiff_t)g->m * g->k);
    rounded.a = a;
    rounded.lda = g->k;
    dots(ELEM_BF16, &rounded, j0, j1);
}

/* Are there few rows, so that W is read in place? */
static bool is_few(const struct gemm *g)
{
    return g->m <= FEW_ROWS && g->tb && !g->ta && !g->rounds && !g->b_packed &&
           (g->elem != ELEM_BF16 || (int64_t)g->m * g->k <= FEW_BF16);
}

/* c[..][j0..j1) of few rows: some rows of W at a time against all rows of a. */
static void gemm_few(const struct fused *f, struct room *room, int j0, int j1)
{
    const struct gemm *g = f->g;

    if (g->elem == ELEM_BF16)
        dots_bf16(g, room, j0, j1);
    else if (g->elem == ELEM_Q8)
        dots(ELEM_Q8, g, j0, j1);
    else if (g->elem == ELEM_Q4)
        dots(ELEM_Q4, g, j0, j1);
    else if (g->elem == ELEM_Q4_1)
        dots(ELEM_Q4_1, g, j0, j1);
    else
        dots(ELEM_F32, g, j0, j1);
    run_epilogue(f, 0, g->m, j0, j1);
}
