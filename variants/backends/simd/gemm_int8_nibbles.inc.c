/* SPDX-License-Identifier: MIT
 *
 * Sums of products of few rows of q8 with a weight of q4 or q4_1, read in place. A vector takes the blocks
 * of a row of W that have four lanes each, at once: they lie one after the other, and their numbers
 * differ only in half of a byte. Weights stay q + 8, which is unsigned; what the sums thus get too
 * much is 8 times the sum of the row's numbers, taken when the row is rounded, and so is the sum that
 * shifts of q4_1 multiply. */

enum { NIBBLE_BLOCKS = VL / 4 };

/* That many blocks of a rounded row: first halves, then second halves; lane by lane, four for a
 * block, what the sums are less, the scales, and the scaled sums of the numbers. */
struct nibble_unit {
    _Alignas(64) int8_t q[2][4 * VL];
    int32_t less[VL];
    float scale[VL], sum[VL];
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
        to->sum[lane] = to->scale[lane] * (float)(lower + upper);
    }
}

/* Unit u of row i of a, which is rounded: its rows lie g->lda floats apart. */
static const struct nibble_unit *nibble_unit(const struct gemm *g, int i, int u)
{
    return (const struct nibble_unit *)(const void *)(g->a + i * g->lda) + u;
}

/* As many blocks of a row of W. */
struct nibbles {
    vb both;
    vf scales, shifts;
};
VEC_INLINE struct nibbles load_nibbles(enum elem E, const void *w)
{
    return (struct nibbles){vld_nibbles(E, w), vld_nibble_scales(E, w),
                            E == ELEM_Q4_1 ? vld_nibble_shifts(w) : v0()};
}

/* acc + both scales times the sums of products of a unit with them, + shifts times sums. */
VEC_INLINE vf add_nibbles(enum elem E, vf acc, const struct nibble_unit *a, struct nibbles w)
{
    const vi sum = vdot_nibbles(vild(a->less), w.both, a->q[0], a->q[1]);

    if (E == ELEM_Q4_1)
        acc = vfma(vld(a->sum), w.shifts, acc);
    return vfma(vmul(vld(a->scale), w.scales), vfloats(sum), acc);
}

/* The `left` blocks at w and zeros, a whole unit. */
union last_nibbles {
    struct q4_block q4[NIBBLE_BLOCKS];
    struct q4_1_block q4_1[NIBBLE_BLOCKS];
};
VEC_INLINE void take_last(union last_nibbles *last, enum elem E, const void *w, int left)
{
    memset(last, 0, sizeof(*last));
    memcpy(last, w, elem_row_bytes(E, left * Q8_BLOCK));
}

/* Unit u of R rows of a times the blocks at w[c] of C rows of W. */
VEC_INLINE void nibble_step(enum elem E, int R, int C, vf acc[VL], const struct gemm *g, int i,
                            int u, const char *const w[DOT_COLS])
{
    UNROLL
    for (int c = 0; c < C; c++) {
        const struct nibbles n = load_nibbles(E, w[c]);
        UNROLL
        for (int r = 0; r < R; r++)
            acc[r * DOT_COLS + c] =
                add_nibbles(E, acc[r * DOT_COLS + c], nibble_unit(g, i + r, u), n);
    }
}

/* R rows of a times C rows of W, `apart` rows from one to the next. */
VEC_INLINE void nibble_sums(enum elem E, int R, int C, vf acc[VL], const struct gemm *g, int i,
                            int j, int apart)
{
    const int block = E == ELEM_Q4_1 ? sizeof(struct q4_1_block) : sizeof(struct q4_block);
    const int blocks = blocks_of(g->k), left = blocks % NIBBLE_BLOCKS;
    const char *w[DOT_COLS];
    int u = 0;

    UNROLL
    for (int c = 0; c < C; c++)
        w[c] = narrow_row(g, j + c * apart);
    for (; u < blocks / NIBBLE_BLOCKS; u++) {
        nibble_step(E, R, C, acc, g, i, u, w);
        UNROLL
        for (int c = 0; c < C; c++)
            w[c] += NIBBLE_BLOCKS * block;
    }
    if (left > 0) {
        union last_nibbles last[DOT_COLS];
        UNROLL
        for (int c = 0; c < C; c++) {
            take_last(&last[c], E, w[c], left);
            w[c] = (const char *)&last[c];
        }
        nibble_step(E, R, C, acc, g, i, u, w);
    }
}

/* R rows of a times row j of W, which is read as one stream; added in the order of nibble_sums. */
VEC_INLINE void nibble_stream_sums(enum elem E, int R, vf acc[STREAM_ROWS][CHAINS],
                                   const struct gemm *g, int j)
{
    const int block = E == ELEM_Q4_1 ? sizeof(struct q4_1_block) : sizeof(struct q4_block);
    const int blocks = blocks_of(g->k), left = blocks % NIBBLE_BLOCKS;
    const char *w = narrow_row(g, j);
    int u = 0;

    for (; u < blocks / NIBBLE_BLOCKS; u++, w += NIBBLE_BLOCKS * block) {
        const struct nibbles n = load_nibbles(E, w);
        UNROLL
        for (int r = 0; r < R; r++)
            acc[r][0] = add_nibbles(E, acc[r][0], nibble_unit(g, r, u), n);
    }
    if (left > 0) {
        union last_nibbles last;
        take_last(&last, E, w, left);
        const struct nibbles n = load_nibbles(E, &last);
        UNROLL
        for (int r = 0; r < R; r++)
            acc[r][0] = add_nibbles(E, acc[r][0], nibble_unit(g, r, u), n);
    }
}
