/* SPDX-License-Identifier: MIT
 *
 * Products of few rows with a weight W [n,k]: dot products along k, W read in place, and widened in
 * registers if it is narrow. For one or two rows memory is the limit: W is one stream, row after
 * row. More rows share what is loaded of some rows of W. */

/* Most of a tile: as many dot products as a vector has lanes, which vsums then adds up together. */
enum { DOT_COLS = 4, DOT_ROWS = VL / DOT_COLS };

/* c[i..][j..) from R rows of C dot products, of DOT_COLS that there is room for. */
VEC_INLINE void put_dots(const struct gemm *g, int R, int C, const vf dots[VL], int i, int j)
{
    float sum[VL];

    vst(sum, vmul(v1(g->alpha), vsums(dots)));
    for (int r = 0; r < R; r++)
        for (int c = 0; c < C; c++) {
            float *const to = g->c + (i + r) * g->ldc + j + c;
            const float x = sum[r * DOT_COLS + c];
            *to = g->beta == 0.0f ? x : x + g->beta * *to;
        }
}

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
                         const float *a, int j, int p, int left)
{
    vf x[DOT_ROWS];

    UNROLL
    for (int r = 0; r < R; r++)
        x[r] = vld_upto(a + r * g->lda + p, left, v0());
    UNROLL
    for (int c = 0; c < C; c++) {
        const vf y = dot_weights(E, g, j + c, p, left);
        UNROLL
        for (int r = 0; r < R; r++)
            acc[r * DOT_COLS + c] = vfma(x[r], y, acc[r * DOT_COLS + c]);
    }
}

VEC_INLINE void dot_plain(enum elem E, int R, int C, vf acc[VL], const struct gemm *g, int i, int j)
{
    const float *const a = g->a + i * g->lda;
    int p = 0;

    for (; p + VL <= g->k; p += VL)
        dot_step(E, R, C, acc, g, a, j, p, VL);
    if (p < g->k)
        dot_step(E, R, C, acc, g, a, j, p, g->k - p);
}

/* Block by block: the sum of a block is multiplied by its scale. */
VEC_INLINE void dot_q8(int R, int C, vf acc[VL], const struct gemm *g, int i, int j)
{
    enum { PARTS = Q8_BLOCK / VL };
    const ptrdiff_t row = (ptrdiff_t)(elem_row_bytes(ELEM_Q8, g->k) / sizeof(struct q8_block));
    const struct q8_block *w = (const struct q8_block *)g->b_narrow + j * row;
    const float *a = g->a + i * g->lda;

    for (int p = 0; p < g->k; p += Q8_BLOCK, w++) {
        vf x[DOT_ROWS][PARTS];
        UNROLL
        for (int r = 0; r < R; r++)
            UNROLL
        for (int v = 0; v < PARTS; v++)
            x[r][v] = vld_upto(a + r * g->lda + p + v * VL, max_int(0, g->k - p - v * VL), v0());
        UNROLL
        for (int c = 0; c < C; c++) {
            const vf scale = v1(w[c * row].scale);
            vf sum[DOT_ROWS];
            UNROLL
            for (int v = 0; v < PARTS; v++) {
                const vf q = vld_int8(w[c * row].q + v * VL);
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

/* R rows of a times C rows of W, of element type E, over all k: dot products along k. */
VEC_INLINE void dot_tile(enum elem E, int R, int C, const struct gemm *g, int i, int j)
{
    vf acc[VL];

    UNROLL
    for (int x = 0; x < VL; x++)
        acc[x] = v0();
    if (E == ELEM_Q8)
        dot_q8(R, C, acc, g, i, j);
    else
        dot_plain(E, R, C, acc, g, i, j);
    put_dots(g, R, C, acc, i, j);
}

/* ---- one stream --------------------------------------------------------------------------- */

/* A row's sum goes in chains, because each product waits for the one before. */
enum { CHAINS = 4, STREAM_ROWS = 2 };

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

/* A block, of which `left` numbers of a are there. */
VEC_INLINE void stream_block(int R, vf acc[STREAM_ROWS][CHAINS], int chain, const struct gemm *g,
                             const float *a, const struct q8_block *w, int left)
{
    const vf scale = v1(w->scale);
    vf sum[STREAM_ROWS];

    UNROLL
    for (int v = 0; v < Q8_BLOCK / VL; v++) {
        const vf q = vld_int8(w->q + v * VL);
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

VEC_INLINE void stream_q8(int R, vf acc[STREAM_ROWS][CHAINS], const struct gemm *g, const float *a,
                          int j)
{
    const struct q8_block *w = narrow_row(g, j);
    int p = 0;

    for (; p + CHAINS * Q8_BLOCK <= g->k; p += CHAINS * Q8_BLOCK, w += CHAINS)
        UNROLL
    for (int c = 0; c < CHAINS; c++)
        stream_block(R, acc, c, g, a + p + c * Q8_BLOCK, w + c, Q8_BLOCK);
    for (; p < g->k; p += Q8_BLOCK, w++)
        stream_block(R, acc, 0, g, a + p, w, min_int(Q8_BLOCK, g->k - p));
}

/* All R rows of a times rows [j0, j1) of W. */
VEC_INLINE void stream(enum elem E, int R, const struct gemm *g, int j0, int j1)
{
    for (int j = j0; j < j1; j++) {
        vf acc[STREAM_ROWS][CHAINS];
        UNROLL
        for (int r = 0; r < R; r++)
            UNROLL
        for (int c = 0; c < CHAINS; c++)
            acc[r][c] = v0();
        if (E == ELEM_Q8)
            stream_q8(R, acc, g, g->a, j);
        else
            stream_plain(E, R, acc, g, g->a, j);
        UNROLL
        for (int r = 0; r < R; r++) {
            float *const to = g->c + r * g->ldc + j;
            const vf all = vadd(vadd(acc[r][0], acc[r][1]), vadd(acc[r][2], acc[r][3]));
            const float sum = g->alpha * vsum(all);
            *to = g->beta == 0.0f ? sum : sum + g->beta * *to;
        }
    }
}

/* ---- few rows ----------------------------------------------------------------------------- */

/* All rows of a times C rows of W, in tiles as high as each other. */
VEC_INLINE void dot_rows(enum elem E, int C, const struct gemm *g, int j)
{
    const int tiles = (g->m + DOT_ROWS - 1) / DOT_ROWS;

    for (int t = 0; t < tiles; t++) {
        const int i = split_at(g->m, t, tiles);
        switch (split_at(g->m, t + 1, tiles) - i) {
        case 1:
            dot_tile(E, 1, C, g, i, j);
            break;
        case 2:
            dot_tile(E, 2, C, g, i, j);
            break;
        case 3:
            dot_tile(E, min_int(3, DOT_ROWS), C, g, i, j);
            break;
        default:
            dot_tile(E, DOT_ROWS, C, g, i, j);
        }
    }
}

VEC_INLINE void dots(enum elem E, const struct gemm *g, int j0, int j1)
{
    int j = j0;

    if (g->m == 1) {
        stream(E, 1, g, j0, j1);
        return;
    }
    if (g->m == 2) {
        stream(E, 2, g, j0, j1);
        return;
    }
    for (; j + DOT_COLS <= j1; j += DOT_COLS)
        dot_rows(E, DOT_COLS, g, j);
    for (; j < j1; j++)
        dot_rows(E, 1, g, j);
}

/* The rows of a are rounded once, not for each row of W. */
static void dots_bf16(const struct gemm *g, int j0, int j1)
{
    _Alignas(64) float a[FEW_BF16];
    struct gemm rounded = *g;

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
static void gemm_few(const struct fused *f, int j0, int j1)
{
    const struct gemm *g = f->g;

    if (g->elem == ELEM_BF16)
        dots_bf16(g, j0, j1);
    else if (g->elem == ELEM_Q8)
        dots(ELEM_Q8, g, j0, j1);
    else
        dots(ELEM_F32, g, j0, j1);
    run_epilogue(f, 0, g->m, j0, j1);
}
