/* SPDX-License-Identifier: MIT
 *
 * The register tile of integer products by instructions that multiply four int8 a lane and add the
 * products (vpdpbusd, sdot, with VEC_AMX_INT8 tdpbsud), of operands as gemm_int8_quads.inc.c packs
 * them. Included by tile.h. */
#pragma once

/* Scaled sums of R rows from their scales and what `less` has of their sums: 8 times, negative. */
VEC_INLINE void scaled_sums(float sums[VL], const float *scale, const float *less)
{
    const vf sum = vmul(vfloats(vild(less)), v1(-1.0f / Q4_ZERO));

    vst(sums, vmul(vld(scale), sum));
}

/* acc[r][c] += scale of row r times scale of column c times the sum of their products in a block, and
 * with `shifts` row r's scaled sum times column c's shift. */
VEC_INLINE void add_scaled(int R, int C, vf acc[][TILE_COLS], vi sum[][TILE_COLS],
                           const float *scale, const float *b_scale, ptrdiff_t b_step, bool shifts)
{
    UNROLL
    for (int r = 0; r < R; r++)
        UNROLL
    for (int c = 0; c < C; c++)
        acc[r][c] = vfma(vmul(v1(scale[r]), vld(b_scale + c * VL)), vfloats(sum[r][c]), acc[r][c]);
    if (shifts) {
        float sums[VL];
        scaled_sums(sums, scale, scale + R);
        tile_shifts(R, C, acc, sums, b_scale + b_step);
    }
}

#if defined(VEC_AMX_INT8)
#include "tile_amx.h"
#else
/* Block by block; n lanes. */
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
            sum[r][c] = vi1(scale + R + r);
        UNROLL
        for (int q = 0; q < BLOCK_LANES; q++) {
            vf col[TILE_COLS];
            UNROLL
            for (int c = 0; c < C; c++)
                col[c] = vld(b + q * b_step + c * VL);
            UNROLL
            for (int r = 0; r < R; r++) {
                const vi x = vi1(a + r * BLOCK_LANES + q);
                UNROLL
                for (int c = 0; c < C; c++)
                    sum[r][c] = vdot4(sum[r][c], col[c], x);
            }
        }
        if (VEC_REGISTERS == 16)
            IN_MEMORY(acc);
        add_scaled(R, C, acc, sum, scale, b + BLOCK_LANES * b_step, b_step, shifts);
        a += R * PER_BLOCK;
        b += PER_BLOCK * b_step;
    }
}
#endif
