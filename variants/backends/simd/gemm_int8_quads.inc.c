/* SPDX-License-Identifier: MIT
 *
 * Operands of integer products as int8, four to a lane, in the order in which tile_quads.h reads
 * them. Weights are stored plus a zero: that of q8 makes them unsigned where the instruction
 * multiplies unsigned by signed numbers, those of q4 and q4_1 are stored plus 8 as it is. What the
 * sum of a block thus gets too much stands beside the scale of the row. */

static int weight_zero(enum elem elem) { return elem == ELEM_Q8 ? DOT4_ZERO : Q4_ZERO; }

/* A rounded block of a row. */
VEC_INLINE void put_block(void *to, const vf pairs[BLOCK_VECTORS])
{
    UNROLL
    for (int h = 0; h < BLOCK_VECTORS; h++)
        vst_int8((int8_t *)to + h * 2 * VL, pairs[h]);
}

/* The sum of its numbers. */
VEC_INLINE int32_t sum_of_block(const vf pairs[BLOCK_VECTORS])
{
    int32_t sum = 0;

    UNROLL
    for (int h = 0; h < BLOCK_VECTORS; h++)
        sum += vsum_pairs(pairs[h]);
    return sum;
}

/* A block as quads of weights, NR floats apart, then its scale and shift. */
static void pack_block(float *to, enum elem elem, const void *row, int b)
{
    struct q8_block block;

    elem_block(elem, &block, row, b);
    for (int e = 0; e < Q8_BLOCK; e++)
        ((uint8_t *)(void *)(to + e / PER_LANE * NR))[e % PER_LANE] =
            (uint8_t)(block.q[e] + weight_zero(elem));
    to[BLOCK_LANES * NR] = block.scale;
    to[(BLOCK_LANES + 1) * NR] = elem_shift(elem, row, b);
}

/* Rows [p, p+k) of b, columns [j, j+n), into slivers of [lanes_for(k)][NR]. */
static void pack_b(float *dst, const struct gemm *g, int p, int k, int j, int n)
{
    for (int s = 0; s < padded(n); s++) {
        float *to = dst + (ptrdiff_t)(s / NR * NR) * lanes_for(k) + s % NR;
        for (int at = 0; at < k; at += Q8_BLOCK, to += PER_BLOCK * NR)
            pack_block(to, g->elem, narrow_row(g, j + min_int(s, n - 1)), (p + at) / Q8_BLOCK);
    }
}

/* ---- few rows ----------------------------------------------------------------------------- */

/* A vector of blocks of a rounded row, one or two, lane by lane: the numbers, what their sums are
 * less, their scales. */
enum { UNIT_BLOCKS = VL / BLOCK_LANES };
struct few_unit {
    _Alignas(4 * VL) int8_t q[PER_LANE * VL];
    int32_t less[VL];
    float scale[VL];
};

/* The `left` numbers at x, rounded. What is not there counts nothing, whatever multiplies it. */
VEC_INLINE void put_unit(struct few_unit *to, const float *x, int left)
{
    for (int h = 0; h < UNIT_BLOCKS; h++) {
        vf pairs[BLOCK_VECTORS] = {v0()};
        const int n = clamp_int(left - h * Q8_BLOCK, 0, Q8_BLOCK);
        const float scale = n ? round_block(pairs, x + h * Q8_BLOCK, n) : 0;
        put_block(to->q + h * Q8_BLOCK, pairs);
        for (int i = 0; i < BLOCK_LANES; i++)
            to->scale[h * BLOCK_LANES + i] = scale;
    }
    for (int i = 0; i < VL; i++) {
        const int8_t *const q = to->q + i * PER_LANE;
        to->less[i] = -weight_zero(ELEM_Q8) * (q[0] + q[1] + q[2] + q[3]);
    }
}

/* Row i of a, which is rounded: its rows lie g->lda floats apart. */
static const struct few_unit *rounded_row(const struct gemm *g, int i)
{
    return (const struct few_unit *)(const void *)(g->a + i * g->lda);
}

/* As many blocks of a row of W and their scales; the last one twice, if it has no other. */
struct unit_weights {
    vf quads, scales;
};
VEC_INLINE struct unit_weights weights_of(const struct q8_block *w, int u, int blocks)
{
    const int b = u * UNIT_BLOCKS, then = min_int(b + 1, blocks - 1);

    return (struct unit_weights){vquads8(w[b].q, w[then].q),
                                 v1_halves(&w[b].scale, &w[then].scale)};
}

/* acc + both scales times the sums of products. */
VEC_INLINE vf add_blocks(vf acc, const struct few_unit *a, struct unit_weights w)
{
    const vi sum = vdot4(vild(a->less), w.quads, vild(a->q));

    return vfma(vmul(vld(a->scale), w.scales), vfloats(sum), acc);
}

/* R rows of a times C rows of W. */
VEC_INLINE void dot_q8_sums(int R, int C, vf acc[VL], const struct gemm *g, int i, int j, int apart)
{
    const int blocks = blocks_of(g->k);

    for (int u = 0; u * UNIT_BLOCKS < blocks; u++)
        UNROLL
    for (int c = 0; c < C; c++) {
        const struct unit_weights w = weights_of(narrow_row(g, j + c * apart), u, blocks);
        UNROLL
        for (int r = 0; r < R; r++)
            acc[r * DOT_COLS + c] = add_blocks(acc[r * DOT_COLS + c], rounded_row(g, i + r) + u, w);
    }
}

VEC_INLINE void stream_unit(int R, vf acc[STREAM_ROWS][CHAINS], int chain, const struct gemm *g,
                            const void *row, int u)
{
    const struct unit_weights w = weights_of(row, u, blocks_of(g->k));

    UNROLL
    for (int r = 0; r < R; r++)
        acc[r][chain] = add_blocks(acc[r][chain], rounded_row(g, r) + u, w);
}

VEC_INLINE void stream_q8_sums(int R, vf acc[STREAM_ROWS][CHAINS], const struct gemm *g, int j)
{
    const void *const row = narrow_row(g, j);
    const int units = (blocks_of(g->k) + UNIT_BLOCKS - 1) / UNIT_BLOCKS;
    int u = 0;

    for (; u + CHAINS <= units; u += CHAINS)
        UNROLL
    for (int c = 0; c < CHAINS; c++)
        stream_unit(R, acc, c, g, row, u + c);
    for (; u < units; u++)
        stream_unit(R, acc, 0, g, row, u);
}
