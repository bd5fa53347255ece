/* SPDX-License-Identifier: MIT
 *
 * Products of few rows with a weight W [n,k]: dot products along k, W read in place. For one or two
 * rows memory is the limit: W is one stream, row after row. More rows, and weights that take longer
 * to unpack than to read, share what is loaded for some rows of W. Whoever includes it has the
 * sums, dot_sums and stream_sums, and says by is_stream which it is. */

/* c[i..][j, j + apart, ..) from R rows of C dot products, of DOT_COLS that there is room for. */
VEC_INLINE void put_dots(const struct gemm *g, int R, int C, const vf dots[VL], int i, int j,
                         int apart)
{
    float sum[VL];

    vst(sum, vmul(v1(g->alpha), vsums(dots)));
    for (int r = 0; r < R; r++)
        for (int c = 0; c < C; c++) {
            float *const to = g->c + (i + r) * g->ldc + j + c * apart;
            const float x = sum[r * DOT_COLS + c];
            *to = g->beta == 0.0f ? x : x + g->beta * *to;
        }
}

/* R rows of a times C rows of W, `apart` rows from one to the next, of element type E, all k. */
VEC_INLINE void dot_tile(enum elem E, int R, int C, const struct gemm *g, int i, int j, int apart)
{
    vf acc[VL];

    UNROLL
    for (int x = 0; x < VL; x++)
        acc[x] = v0();
    dot_sums(E, R, C, acc, g, i, j, apart);
    put_dots(g, R, C, acc, i, j, apart);
}

/* ---- one stream --------------------------------------------------------------------------- */

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
        stream_sums(E, R, acc, g, j);
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
VEC_INLINE void dot_rows(enum elem E, int C, const struct gemm *g, int j, int apart)
{
    const int tiles = (g->m + DOT_ROWS - 1) / DOT_ROWS;

    for (int t = 0; t < tiles; t++) {
        const int i = split_at(g->m, t, tiles);
        switch (split_at(g->m, t + 1, tiles) - i) {
        case 1:
            dot_tile(E, 1, C, g, i, j, apart);
            break;
        case 2:
            dot_tile(E, 2, C, g, i, j, apart);
            break;
        case 3:
            dot_tile(E, min_int(3, DOT_ROWS), C, g, i, j, apart);
            break;
        default:
            dot_tile(E, DOT_ROWS, C, g, i, j, apart);
        }
    }
}

/* C rows of W that are read at once lie a quarter of them apart, so that each is a stream of its
 * own: neighbours are short streams that end together, which hardware does not fetch ahead. An odd
 * number apart they do not fall on the same lines of a cache. */
VEC_INLINE int rows_apart(int rows)
{
    const int quarter = rows / DOT_COLS;

    return quarter > 0 ? (quarter - 1) | 1 : 0;
}

VEC_INLINE void dots(enum elem E, const struct gemm *g, int j0, int j1)
{
    const int apart = rows_apart(j1 - j0);

    if (is_stream(E, g)) {
        if (g->m == 1)
            stream(E, 1, g, j0, j1);
        else
            stream(E, 2, g, j0, j1);
        return;
    }
    for (int j = j0; j < j0 + apart; j++)
        dot_rows(E, DOT_COLS, g, j, apart);
    for (int j = j0 + DOT_COLS * apart; j < j1; j++)
        dot_rows(E, 1, g, j, 1);
}
