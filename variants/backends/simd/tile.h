/* SPDX-License-Identifier: MIT
 *
 * The register tile of every matrix kernel, and the packing that feeds it. Included after vec.h,
 * once per instruction set. */
#pragma once

#include "narrow.h"

enum { TILE_COLS = 3 }; /* most vectors side by side */

/* acc + x y, lane by lane, or with `pairs`, which needs VEC_BF16, both products of each lane. */
VEC_INLINE vf tile_step(bool pairs, vf x, vf y, vf acc)
{
#if defined(VEC_BF16)
    if (pairs)
        return vdot2(acc, x, y);
#endif
    return vfma(x, y, acc);
}

/* acc[r][c] += sum over p < n of a[r, p] * b[p, c], R rows by C vectors, or of the two products of
 * each pair. pairs, R and C are constants at every call, so that acc lives in registers: R*C
 * accumulators + C of b + 1 broadcast. */
VEC_INLINE void tile_mac(bool pairs, int R, int C, vf acc[][TILE_COLS], int n, const float *a,
                         ptrdiff_t a_row, ptrdiff_t a_step, const float *b, ptrdiff_t b_step,
                         ptrdiff_t b_col)
{
    UNROLL4
    for (int p = 0; p < n; p++) {
        vf col[TILE_COLS];
        UNROLL
        for (int c = 0; c < C; c++)
            col[c] = vld(b + c * b_col);
        UNROLL
        for (int r = 0; r < R; r++) {
            const vf x = v1(a[r * a_row]);
            UNROLL
            for (int c = 0; c < C; c++)
                acc[r][c] = tile_step(pairs, x, col[c], acc[r][c]);
        }
        a += a_step;
        b += b_step;
    }
}

/* acc[r][c] += sum of row r times shift of column c. */
VEC_INLINE void tile_shifts(int R, int C, vf acc[][TILE_COLS], const float *sum, const float *shift)
{
    UNROLL
    for (int r = 0; r < R; r++)
        UNROLL
    for (int c = 0; c < C; c++)
        acc[r][c] = vfma(v1(sum[r]), vld(shift + c * VL), acc[r][c]);
}

/* The array lies in memory here, so that compilers leave registers to the sums of a block. */
#define IN_MEMORY(array) __asm__ volatile("" : : "r"(array) : "memory")

#if defined(VEC_DOT4)
#include "tile_quads.h"
#elif defined(VEC_INT8)
/* acc[r][c] += scale of row r times scale of column c times the sum of their products, block by
 * block, and with `shifts` row r's scaled sum times column c's shift; n lanes of operands that
 * gemm_int8.inc.c packs, b in rows of b_step. */
VEC_INLINE void tile_blocks(int R, int C, vf acc[][TILE_COLS], int n, const float *a,
                            const float *b, ptrdiff_t b_step, bool shifts)
{
    for (int at = 0; at < n; at += PER_BLOCK) {
        const float *const scale = a + R * BLOCK_LANES;
        vi sum[VEC_REGISTERS / 2][TILE_COLS];
        UNROLL
        for (int r = 0; r < R; r++)
            UNROLL
        for (int c = 0; c < C; c++)
            sum[r][c] = vi0();
        UNROLL4
        for (int p = 0; p < BLOCK_LANES; p++, b += b_step) {
            vf col[TILE_COLS];
            UNROLL
            for (int c = 0; c < C; c++)
                col[c] = vld(b + c * VL);
            UNROLL
            for (int r = 0; r < R; r++) {
                const vf x = v1(a[r * BLOCK_LANES + p]);
                UNROLL
                for (int c = 0; c < C; c++)
                    sum[r][c] = vmadd(sum[r][c], x, col[c]);
            }
        }
        IN_MEMORY(acc);
        UNROLL
        for (int r = 0; r < R; r++)
            UNROLL
        for (int c = 0; c < C; c++)
            acc[r][c] = vfma(vmul(v1(scale[r]), vld(b + c * VL)), vfloats(sum[r][c]), acc[r][c]);
        if (shifts)
            tile_shifts(R, C, acc, scale + R, b + b_step);
        a += R * PER_BLOCK;
        b += 2 * b_step;
    }
}
#endif

VEC_INLINE void tile_fma(int R, int C, vf acc[][TILE_COLS], int n, const float *a, ptrdiff_t a_row,
                         ptrdiff_t a_step, const float *b, ptrdiff_t b_step, ptrdiff_t b_col)
{
    tile_mac(false, R, C, acc, n, a, a_row, a_step, b, b_step, b_col);
}

/* dst[p][i] = scale src[i][p] for i < width, p < n: rows of src become columns of a panel whose
 * rows are `width` <= VL floats at stride `step`. Rows i >= rows read as 0. Each store writes a
 * whole vector, and the next one overwrites elements beyond `width`: dst needs VL floats of slack.
 */
VEC_INLINE void pack_across(float *dst, ptrdiff_t step, const float *src, ptrdiff_t ld, int rows,
                            int n, float scale)
{
    for (int p = 0; p < n; p += VL) {
        const int left = n - p < VL ? n - p : VL;
        const vmask m = vfirst(left);
        vf t[VL];
        UNROLL
        for (int i = 0; i < VL; i++)
            t[i] = i < rows ? vmul(v1(scale), vld_m(src + i * ld + p, m, v0())) : v0();
        vtranspose(t);
        if (left == VL) {
            UNROLL
            for (int i = 0; i < VL; i++)
                vst(dst + (p + i) * step, t[i]);
        } else {
            UNROLL
            for (int i = 0; i < VL; i++)
                if (i < left)
                    vst(dst + (p + i) * step, t[i]);
        }
    }
}

/* dst[p][i] = src[p][i] for i < cols, 0 up to a whole vector; p < n. Slack as above. */
VEC_INLINE void pack_along(float *dst, ptrdiff_t step, const float *src, ptrdiff_t ld, int cols,
                           int n)
{
    const vmask m = vfirst(cols < VL ? cols : VL);

    for (int p = 0; p < n; p++)
        vst(dst + p * step, vld_m(src + p * ld, m, v0()));
}

#if defined(VEC_BF16) || (defined(VEC_INT8) && !defined(VEC_DOT4))
/* dst[p][i] = pair p of row i, from t[i], VL pairs of row i. Slack as above. */
VEC_INLINE void pack_pairs(float *dst, ptrdiff_t step, vf t[VL], int pairs)
{
    vtranspose(t);
    UNROLL
    for (int i = 0; i < VL; i++)
        if (i < pairs)
            vst(dst + i * step, t[i]);
}
#endif

#if defined(VEC_BF16)
/* dst[p][i] = pair p of row i, for `rows` rows of src, VL at most, n numbers of each: floats, or with
 * `narrow` bf16; at stride `step`. */
VEC_INLINE void pack_pairs_across(bool narrow, float *dst, ptrdiff_t step, const void *src,
                                  ptrdiff_t ld, int rows, int n)
{
    for (int p = 0; p < n; p += 2 * VL) {
        vf t[VL];
        UNROLL
        for (int i = 0; i < VL; i++) {
            const ptrdiff_t at = i * ld + p;
            t[i] = i >= rows ? v0()
                   : narrow  ? vld_pairs_n((const uint16_t *)src + at, n - p)
                             : vpairs_n((const float *)src + at, n - p);
        }
        pack_pairs(dst + (ptrdiff_t)(p / 2) * step, step, t, lanes_for(n - p));
    }
}
#endif
