/* SPDX-License-Identifier: MIT
 *
 * Sums of products of few rows of q8 with a weight of q4, read in place. A vector takes the blocks
 * of a row of W that have four lanes each, at once: they lie one after the other, and their numbers
 * differ only in half of a byte. Weights stay q + 8, which is unsigned; what the sums thus get too
 * much is 8 times the sum of the row's numbers, taken when the row is rounded. */

enum { NIBBLE_BLOCKS = VL / 4 };

/* That many blocks of a rounded row: first halves, then second halves; lane by lane, four for a
 * block, what the sums are less, and the scales. */
struct nibble_unit {
    _Alignas(64) int8_t q[2][4 * VL];
    int32_t less[VL];
    float scale[VL];
};

/* The `left` numbers at x, rounded. What is not there counts nothing, whatever multiplies it. */
static void put_nibble_unit(struct nibble_unit *to, const float *x, int left)
{
    enum { HALF = Q8_BLOCK / 2 };
    int8_t q[Q8_BLOCK];

    memset(to, 0, sizeof(*to));
    for (int b = 0; b < NIBBLE_BLOCKS && b * Q8_BLOCK < left; b++) {
        vf pairs[BLOCK_VECTORS];
        const float scale =
            round_block(pairs, x + b * Q8_BLOCK, min_int(Q8_BLOCK, left - b * Q8_BLOCK));
        UNROLL
        for (int h = 0; h < BLOCK_VECTORS; h++)
            vst_int8(q + h * 2 * VL, pairs[h]);
        memcpy(to->q[0] + b * HALF, q, HALF);
        memcpy(to->q[1] + b * HALF, q + HALF, HALF);
        for (int lane = 4 * b; lane < 4 * b + 4; lane++)
            to->scale[lane] = scale;
    }
    for (int lane = 0; lane < VL; lane++) {
        const int8_t *const lo = to->q[0] + 4 * lane, *const hi = to->q[1] + 4 * lane;
        const int lower = lo[0] + lo[1] + lo[2] + lo[3], upper = hi[0] + hi[1] + hi[2] + hi[3];
        to->less[lane] = -Q4_ZERO * (lower + upper);
    }
}

/* Unit u of row i of a, which is rounded: its rows lie g->lda floats apart. */
static const struct nibble_unit *nibble_unit(const struct gemm *g, int i, int u)
{
    return (const struct nibble_unit *)(const void *)(g->a + i * g->lda) + u;
}

/* acc + both scales times the sums of products of a unit with as many blocks. */
VEC_INLINE vf add_nibbles(vf acc, const struct nibble_unit *a, vb both, vf scales)
{
    const vi sum = vdot_nibbles(vild(a->less), both, a->q[0], a->q[1]);

    return vfma(vmul(vld(a->scale), scales), vfloats(sum), acc);
}

/* Unit u of R rows of a times the blocks at w[c] of C rows of W. */
VEC_INLINE void nibble_step(int R, int C, vf acc[VL], const struct gemm *g, int i, int u,
                            const struct q4_block *const w[DOT_COLS])
{
    UNROLL
    for (int c = 0; c < C; c++) {
        const vb both = vld_nibbles(w[c]);
        const vf scales = vld_nibble_scales(w[c]);
        UNROLL
        for (int r = 0; r < R; r++)
            acc[r * DOT_COLS + c] =
                add_nibbles(acc[r * DOT_COLS + c], nibble_unit(g, i + r, u), both, scales);
    }
}

/* R rows of a times C rows of W. */
VEC_INLINE void nibble_sums(int R, int C, vf acc[VL], const struct gemm *g, int i, int j)
{
    const int blocks = blocks_of(g->k), left = blocks % NIBBLE_BLOCKS;
    const struct q4_block *w[DOT_COLS];
    int u = 0;

    UNROLL
    for (int c = 0; c < C; c++)
        w[c] = narrow_row(g, j + c);
    for (; u < blocks / NIBBLE_BLOCKS; u++) {
        nibble_step(R, C, acc, g, i, u, w);
        UNROLL
        for (int c = 0; c < C; c++)
            w[c] += NIBBLE_BLOCKS;
    }
    if (left > 0) {
        struct q4_block last[DOT_COLS][NIBBLE_BLOCKS] = {0};
        UNROLL
        for (int c = 0; c < C; c++) {
            memcpy(last[c], w[c], (size_t)left * sizeof(**last));
            w[c] = last[c];
        }
        nibble_step(R, C, acc, g, i, u, w);
    }
}

/* R rows of a times row j of W, which is read as one stream. */
VEC_INLINE void nibble_stream_sums(int R, vf acc[STREAM_ROWS][CHAINS], const struct gemm *g, int j)
{
    const int blocks = blocks_of(g->k), left = blocks % NIBBLE_BLOCKS;
    const struct q4_block *w = narrow_row(g, j);
    int u = 0;

    for (; u < blocks / NIBBLE_BLOCKS; u++, w += NIBBLE_BLOCKS) {
        const vb both = vld_nibbles(w);
        const vf scales = vld_nibble_scales(w);
        UNROLL
        for (int r = 0; r < R; r++)
            acc[r][0] = add_nibbles(acc[r][0], nibble_unit(g, r, u), both, scales);
    }
    if (left > 0) {
        struct q4_block last[NIBBLE_BLOCKS] = {0};
        memcpy(last, w, (size_t)left * sizeof(*last));
        UNROLL
        for (int r = 0; r < R; r++)
            acc[r][1] = add_nibbles(acc[r][1], nibble_unit(g, r, u), vld_nibbles(last),
                                    vld_nibble_scales(last));
    }
}
