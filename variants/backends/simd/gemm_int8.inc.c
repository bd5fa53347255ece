/* SPDX-License-Identifier: MIT
 *
 * Operands of products of rows of q8 with weights in blocks, and products of few rows with a
 * weight W [n,k], which read W in place. Rows are rounded here, as q8_round_row does it, bit for
 * bit. */
#include <float.h>

enum { BLOCK_VECTORS = Q8_BLOCK / 2 / VL }; /* of pairs of int16 */

static int blocks_of(int k) { return (k + Q8_BLOCK - 1) / Q8_BLOCK; }

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

#if defined(VEC_DOT4)
#include "gemm_int8_quads.inc.c"
#else
#include "gemm_int8_pairs.inc.c"
#endif

/* Rows [i, i+R) of a, columns [p, p+k), rounded: for each block the lanes of row after row, then
 * the scales of all rows, then with VEC_DOT4 what their sums are less, else for shifts their scaled
 * sums. */
static void pack_a(float *dst, const struct gemm *g, int i, int R, int p, int k)
{
    for (int at = 0; at < k; at += Q8_BLOCK, dst += PER_BLOCK * R) {
        float *const scale = dst + BLOCK_LANES * R;
        for (int r = 0; r < R; r++) {
            const float *const x = g->a + (i + r) * g->lda + p + at;
            vf pairs[BLOCK_VECTORS];
            scale[r] = round_block(pairs, x, min_int(Q8_BLOCK, k - at));
            put_block(dst + r * BLOCK_LANES, pairs);
#if defined(VEC_DOT4)
            const int32_t less = -weight_zero(g->elem) * sum_of_block(pairs);
            memcpy(scale + R + r, &less, sizeof(less));
#else
            scale[R + r] =
                g->elem == ELEM_Q4_1 ? scale[r] * sum_of_block(dst + r * BLOCK_LANES) : 0;
#endif
        }
    }
}

/* ---- few rows ----------------------------------------------------------------------------- */

#include "gemm_int8_nibbles.inc.c"

VEC_INLINE void dot_sums(enum elem E, int R, int C, vf acc[VL], const struct gemm *g, int i, int j,
                         int apart)
{
    if (E == ELEM_Q8)
        dot_q8_sums(R, C, acc, g, i, j, apart);
    else
        nibble_sums(E, R, C, acc, g, i, j, apart);
}

/* Is W read as one stream? One thread unpacks nibbles more slowly than memory gives them, unless rows
 * of W share what is loaded of the rows that they multiply; several wait for memory, which reads one
 * stream of each thread faster than four. */
VEC_INLINE bool is_stream(enum elem E, const struct gemm *g)
{
    return g->m <= STREAM_ROWS && (E == ELEM_Q8 || g->threads > 1);
}

VEC_INLINE void stream_sums(enum elem E, int R, vf acc[STREAM_ROWS][CHAINS], const struct gemm *g,
                            int j)
{
    if (E == ELEM_Q8)
        stream_q8_sums(R, acc, g, j);
    else
        nibble_stream_sums(E, R, acc, g, j);
}

#include "gemm_few.inc.c"

/* Numbers of the rows that are rounded first, up to whole units; more are packed. */
enum { FEW_NUMBERS = 65536 };

/* Blocks in a unit of rounded rows. */
static int unit_blocks(enum elem elem) { return elem == ELEM_Q8 ? UNIT_BLOCKS : NIBBLE_BLOCKS; }

static int few_units(const struct gemm *g)
{
    const int each = unit_blocks(g->elem);

    return (blocks_of(g->k) + each - 1) / each;
}

/* Are there few rows, so that W is read in place? */
static bool is_few(const struct gemm *g)
{
    const int numbers = unit_blocks(g->elem) * Q8_BLOCK;

    return g->m <= FEW_ROWS && (int64_t)g->m * few_units(g) * numbers <= FEW_NUMBERS;
}

/* c[..][j0..j1) of few rows, which are rounded once. */
static void gemm_few(const struct fused *f, struct room *room, int j0, int j1)
{
    union few {
        struct few_unit q8[FEW_NUMBERS / (UNIT_BLOCKS * Q8_BLOCK)];
        struct nibble_unit q4[FEW_NUMBERS / (NIBBLE_BLOCKS * Q8_BLOCK)];
    } *const a = (union few *)(void *)room;
    _Static_assert(sizeof(*a) <= sizeof(*room), "few rows fit");
    const bool q8 = f->g->elem == ELEM_Q8;
    const int units = few_units(f->g), numbers = unit_blocks(f->g->elem) * Q8_BLOCK;
    struct gemm rounded = *f->g;

    for (int i = 0; i < f->g->m; i++)
        for (int u = 0; u < units; u++) {
            const float *const x = f->g->a + i * f->g->lda + u * numbers;
            const int at = i * units + u, left = f->g->k - u * numbers;
            if (q8)
                put_unit(&a->q8[at], x, left);
            else
                put_nibble_unit(&a->q4[at], x, left);
        }
    rounded.a = (const float *)(const void *)a;
    rounded.lda = units * (ptrdiff_t)((q8 ? sizeof(*a->q8) : sizeof(*a->q4)) / sizeof(float));
    if (q8)
        dots(ELEM_Q8, &rounded, j0, j1);
    else if (f->g->elem == ELEM_Q4)
        dots(ELEM_Q4, &rounded, j0, j1);
    else
        dots(ELEM_Q4_1, &rounded, j0, j1);
    run_epilogue(f, 0, f->g->m, j0, j1);
}
