/* SPDX-License-Identifier: MIT
 *
 * Operands of products of rows of q8 with weights of q8 or q4: their blocks as pairs of int16, in the order in
 * which gemm.inc.c reads them, and products of few rows with a weight W [n,k], which read W in
 * place. Rows are rounded here, as q8_round_row does it, bit for bit. */
#include <float.h>
#include <math.h>

enum { BLOCK_VECTORS = BLOCK_PAIRS / VL };

static int blocks_of(int k) { return (k + Q8_BLOCK - 1) / Q8_BLOCK; }

/* Block b of row w of W. */
VEC_INLINE vb weights_of(enum elem E, const void *w, int b)
{
    return E == ELEM_Q8 ? vld_block(((const struct q8_block *)w)[b].q)
                        : vld_block4(((const struct q4_block *)w)[b].q);
}

/* n numbers at x, 0 up to a block, as pairs; returns their scale. What is not finite makes NaN of
 * its product with 0, and thus of the sum. */
VEC_INLINE float round_block(vf to[BLOCK_VECTORS], const float *x, int n)
{
    vf part[2 * BLOCK_VECTORS], largest = v0(), zero = v0();

    UNROLL
    for (int v = 0; v < 2 * BLOCK_VECTORS; v++) {
        part[v] = vld_upto(x + v * VL, max_int(0, n - v * VL), v0());
        largest = vmax(vabs(part[v]), largest);
        zero = vfma(part[v], v0(), zero);
    }
    const float most = vmax_lanes(largest), scale = vsum(zero) == 0 ? most / 127 : NAN;
    const vf by = v1(scale >= FLT_MIN ? 127 / most : 0);
    UNROLL
    for (int h = 0; h < BLOCK_VECTORS; h++)
        to[h] = vpairs(vmul(part[2 * h], by), vmul(part[2 * h + 1], by));
    return scale < FLT_MIN ? 0 : scale;
}

/* dst[p][i] = pair p of block i, then their scales; rows of dst are `step` apart. VL scales are
 * stored, too. */
VEC_INLINE void pack_blocks(float *dst, ptrdiff_t step, vf pairs[BLOCK_VECTORS][VL],
                            const float scale[VL])
{
    UNROLL
    for (int h = 0; h < BLOCK_VECTORS; h++)
        pack_pairs(dst + h * VL * step, step, pairs[h], VL);
    vst(dst + BLOCK_PAIRS * step, vld(scale));
}

/* Rows [i, i+R) of a, columns [p, p+k), rounded, into [lanes_for(k)][R]. */
static void pack_a(float *dst, const struct gemm *g, int i, int R, int p, int k)
{
    for (int at = 0; at < k; at += Q8_BLOCK, dst += PER_BLOCK * R) {
        vf pairs[BLOCK_VECTORS][VL];
        float scale[VL] = {0};
        for (int r = 0; r < VL; r++) {
            vf row[BLOCK_VECTORS] = {v0()};
            if (r < R)
                scale[r] =
                    round_block(row, g->a + (i + r) * g->lda + p + at, min_int(Q8_BLOCK, k - at));
            UNROLL
            for (int h = 0; h < BLOCK_VECTORS; h++)
                pairs[h][r] = row[h];
        }
        pack_blocks(dst, R, pairs, scale);
    }
}

/* Rows [p, p+k) of b, columns [j, j+n), into slivers of [lanes_for(k)][NR]. */
VEC_INLINE void pack_weights(enum elem E, float *dst, const struct gemm *g, int p, int k, int j,
                             int n)
{
    for (int s = 0; s < n; s += VL) {
        float *to = dst + (ptrdiff_t)(s / NR * NR) * lanes_for(k) + s % NR;
        for (int at = 0; at < k; at += Q8_BLOCK, to += PER_BLOCK * NR) {
            vf pairs[BLOCK_VECTORS][VL];
            float scale[VL] = {0};
            for (int i = 0; i < VL; i++) {
                const void *const w = narrow_row(g, j + min_int(s + i, n - 1));
                vf row[BLOCK_VECTORS];
                vblock_pairs(row, weights_of(E, w, (p + at) / Q8_BLOCK));
                scale[i] = scale_of_block(E, w, (p + at) / Q8_BLOCK);
                UNROLL
                for (int h = 0; h < BLOCK_VECTORS; h++)
                    pairs[h][i] = row[h];
            }
            pack_blocks(to, NR, pairs, scale);
        }
    }
}

static void pack_b(float *dst, const struct gemm *g, int p, int k, int j, int n)
{
    if (g->elem == ELEM_Q8)
        pack_weights(ELEM_Q8, dst, g, p, k, j, n);
    else
        pack_weights(ELEM_Q4, dst, g, p, k, j, n);
}

/* ---- few rows ----------------------------------------------------------------------------- */

/* Of the rounded rows; more are packed. */
enum { FEW_BLOCKS = 2048, BLOCK_FLOATS = sizeof(struct q8_block) / sizeof(float) };

/* Row i of a, which is rounded: its rows lie g->lda floats apart. */
static const struct q8_block *rounded_row(const struct gemm *g, int i)
{
    return (const struct q8_block *)(const void *)(g->a + i * g->lda);
}

/* R rows of a times C rows of W: sums of blocks, times both scales. */
VEC_INLINE void dot_sums(enum elem E, int R, int C, vf acc[VL], const struct gemm *g, int i, int j)
{
    const int blocks = blocks_of(g->k);
    const struct q8_block *a[DOT_ROWS];
    const void *w[DOT_COLS];

    UNROLL
    for (int r = 0; r < R; r++)
        a[r] = rounded_row(g, i + r);
    UNROLL
    for (int c = 0; c < C; c++)
        w[c] = narrow_row(g, j + c);
    for (int b = 0; b < blocks; b++) {
        vb x[DOT_ROWS];
        UNROLL
        for (int r = 0; r < R; r++)
            x[r] = vld_block(a[r][b].q);
        UNROLL
        for (int c = 0; c < C; c++) {
            const vb y = weights_of(E, w[c], b);
            const float scale = scale_of_block(E, w[c], b);
            UNROLL
            for (int r = 0; r < R; r++)
                acc[r * DOT_COLS + c] =
                    vfma(v1(a[r][b].scale * scale), vdot_block(x[r], y), acc[r * DOT_COLS + c]);
        }
    }
}

VEC_INLINE void stream_block(enum elem E, int R, vf acc[STREAM_ROWS][CHAINS], int chain,
                             const struct gemm *g, const void *w, int b)
{
    const vb y = weights_of(E, w, b);
    const float scale = scale_of_block(E, w, b);

    UNROLL
    for (int r = 0; r < R; r++) {
        const struct q8_block *const a = rounded_row(g, r) + b;
        acc[r][chain] = vfma(v1(a->scale * scale), vdot_block(vld_block(a->q), y), acc[r][chain]);
    }
}

VEC_INLINE void stream_sums(enum elem E, int R, vf acc[STREAM_ROWS][CHAINS], const struct gemm *g,
                            int j)
{
    const void *const w = narrow_row(g, j);
    const int blocks = blocks_of(g->k);
    int b = 0;

    for (; b + CHAINS <= blocks; b += CHAINS)
        UNROLL
    for (int c = 0; c < CHAINS; c++)
        stream_block(E, R, acc, c, g, w, b + c);
    for (; b < blocks; b++)
        stream_block(E, R, acc, 0, g, w, b);
}

#include "gemm_few.inc.c"

/* Are there few rows, so that W is read in place? */
static bool is_few(const struct gemm *g)
{
    return g->m <= FEW_ROWS && (int64_t)g->m * blocks_of(g->k) <= FEW_BLOCKS;
}

/* c[..][j0..j1) of few rows, which are rounded once. */
static void gemm_few(const struct fused *f, int j0, int j1)
{
    struct q8_block a[FEW_BLOCKS];
    const int blocks = blocks_of(f->g->k);
    struct gemm rounded = *f->g;

    for (int i = 0; i < f->g->m; i++)
        for (int b = 0; b < blocks; b++) {
            struct q8_block *const to = &a[i * blocks + b];
            const int first = b * Q8_BLOCK;
            vf pairs[BLOCK_VECTORS];
            to->scale = round_block(pairs, f->g->a + i * f->g->lda + first,
                                    min_int(Q8_BLOCK, f->g->k - first));
            UNROLL
            for (int h = 0; h < BLOCK_VECTORS; h++)
                vst_int8(to->q + h * 2 * VL, pairs[h]);
        }
    rounded.a = (const float *)(const void *)a;
    rounded.lda = (ptrdiff_t)blocks * BLOCK_FLOATS;
    if (f->g->elem == ELEM_Q8)
        dots(ELEM_Q8, &rounded, j0, j1);
    else
        dots(ELEM_Q4, &rounded, j0, j1);
    run_epilogue(f, 0, f->g->m, j0, j1);
}
