/* SPDX-License-Identifier: MIT
 *
 * Operands of integer products as pairs of int16, in the order in which tile.h reads them. */

/* Block b of row w of W. */
VEC_INLINE vb weights_of(enum elem E, const void *w, int b)
{
    return E == ELEM_Q8 ? vld_block(((const struct q8_block *)w)[b].q)
                        : vld_block4(q4_at(E, w, b)->q);
}

/* A rounded block of a row. */
VEC_INLINE void put_block(float *to, const vf pairs[BLOCK_VECTORS])
{
    UNROLL
    for (int h = 0; h < BLOCK_VECTORS; h++)
        vst(to + h * VL, pairs[h]);
}

/* The sum of its numbers. */
static float sum_of_block(const float *lanes)
{
    int16_t q[Q8_BLOCK];
    int sum = 0;

    memcpy(q, lanes, sizeof(q));
    for (int e = 0; e < Q8_BLOCK; e++)
        sum += q[e];
    return (float)sum;
}

/* dst[p][i] = pair p of block i, then their scales and shifts; rows of dst are `step` apart. */
VEC_INLINE void pack_blocks(float *dst, ptrdiff_t step, vf pairs[BLOCK_VECTORS][VL],
                            const float scale[VL], const float shift[VL])
{
    UNROLL
    for (int h = 0; h < BLOCK_VECTORS; h++)
        pack_pairs(dst + h * VL * step, step, pairs[h], VL);
    vst(dst + BLOCK_LANES * step, vld(scale));
    vst(dst + (BLOCK_LANES + 1) * step, vld(shift));
}

/* Rows [p, p+k) of b, columns [j, j+n), into slivers of [lanes_for(k)][NR]. */
VEC_INLINE void pack_weights(enum elem E, float *dst, const struct gemm *g, int p, int k, int j,
                             int n)
{
    for (int s = 0; s < n; s += VL) {
        float *to = dst + (ptrdiff_t)(s / NR * NR) * lanes_for(k) + s % NR;
        for (int at = 0; at < k; at += Q8_BLOCK, to += PER_BLOCK * NR) {
            vf pairs[BLOCK_VECTORS][VL];
            float scale[VL] = {0}, shift[VL] = {0};
            for (int i = 0; i < VL; i++) {
                const void *const w = narrow_row(g, j + min_int(s + i, n - 1));
                vf row[BLOCK_VECTORS];
                vblock_pairs(row, weights_of(E, w, (p + at) / Q8_BLOCK));
                scale[i] = scale_of_block(E, w, (p + at) / Q8_BLOCK);
                shift[i] = elem_shift(E, w, (p + at) / Q8_BLOCK);
                UNROLL
                for (int h = 0; h < BLOCK_VECTORS; h++)
                    pairs[h][i] = row[h];
            }
            pack_blocks(to, NR, pairs, scale, shift);
        }
    }
}

static void pack_b(float *dst, const struct gemm *g, int p, int k, int j, int n)
{
    if (g->elem == ELEM_Q8)
        pack_weights(ELEM_Q8, dst, g, p, k, j, n);
    else if (g->elem == ELEM_Q4)
        pack_weights(ELEM_Q4, dst, g, p, k, j, n);
    else
        pack_weights(ELEM_Q4_1, dst, g, p, k, j, n);
}

/* ---- few rows ----------------------------------------------------------------------------- */

/* A block of a rounded row. */
enum { UNIT_BLOCKS = 1 };
struct few_unit {
    float scale;
    int8_t q[Q8_BLOCK];
};

/* The `left` numbers at x, rounded. */
VEC_INLINE void put_unit(struct few_unit *to, const float *x, int left)
{
    vf pairs[BLOCK_VECTORS];

    to->scale = round_block(pairs, x, min_int(Q8_BLOCK, left));
    UNROLL
    for (int h = 0; h < BLOCK_VECTORS; h++)
        vst_int8(to->q + h * 2 * VL, pairs[h]);
}

/* Row i of a, which is rounded: its rows lie g->lda floats apart. */
static const struct few_unit *rounded_row(const struct gemm *g, int i)
{
    return (const struct few_unit *)(const void *)(g->a + i * g->lda);
}

/* R rows of a times C rows of W: sums of blocks, times both scales. */
VEC_INLINE void dot_q8_sums(int R, int C, vf acc[VL], const struct gemm *g, int i, int j, int apart)
{
    const int blocks = blocks_of(g->k);
    const struct few_unit *a[DOT_ROWS];
    const struct q8_block *w[DOT_COLS];

    UNROLL
    for (int r = 0; r < R; r++)
        a[r] = rounded_row(g, i + r);
    UNROLL
    for (int c = 0; c < C; c++)
        w[c] = narrow_row(g, j + c * apart);
    for (int b = 0; b < blocks; b++) {
        vb x[DOT_ROWS];
        UNROLL
        for (int r = 0; r < R; r++)
            x[r] = vld_block(a[r][b].q);
        UNROLL
        for (int c = 0; c < C; c++) {
            const vb y = vld_block(w[c][b].q);
            const float scale = w[c][b].scale;
            UNROLL
            for (int r = 0; r < R; r++)
                acc[r * DOT_COLS + c] =
                    vfma(v1(a[r][b].scale * scale), vdot_block(y, x[r]), acc[r * DOT_COLS + c]);
        }
    }
}

VEC_INLINE void stream_block(int R, vf acc[STREAM_ROWS][CHAINS], int chain, const struct gemm *g,
                             const struct q8_block *w, int b)
{
    const vb y = vld_block(w[b].q);
    const float scale = w[b].scale;

    UNROLL
    for (int r = 0; r < R; r++) {
        const struct few_unit *const a = rounded_row(g, r) + b;
        acc[r][chain] = vfma(v1(a->scale * scale), vdot_block(y, vld_block(a->q)), acc[r][chain]);
    }
}

VEC_INLINE void stream_q8_sums(int R, vf acc[STREAM_ROWS][CHAINS], const struct gemm *g, int j)
{
    const struct q8_block *const w = narrow_row(g, j);
    const int blocks = blocks_of(g->k);
    int b = 0;

    for (; b + CHAINS <= blocks; b += CHAINS)
        UNROLL
    for (int c = 0; c < CHAINS; c++)
        stream_block(R, acc, c, g, w, b + c);
    for (; b < blocks; b++)
        stream_block(R, acc, 0, g, w, b);
}
