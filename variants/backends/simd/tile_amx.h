/* SPDX-License-Identifier: MIT
 *
 * tile_blocks of tile_quads.h with the tiles of amx.h. Where weights are unsigned, tdpbsud takes the
 * same operands as vpdpbusd and gives the same sums. */
#pragma once

#include "amx.h"

/* Sums of the products of two blocks: the rows of each vector of columns. */
typedef int32_t amx_sums[2][2][SIDE][VL];

/* Those of the block of b, and with `both` of the next. Two take hardly longer than one, whose
 * instructions wait for each other. */
VEC_INLINE void multiply_blocks(int R, int C, amx_sums out, const float *a, const float *b,
                                ptrdiff_t b_step, bool both)
{
    const ptrdiff_t a_row = BLOCK_LANES * sizeof(float), row = b_step * (ptrdiff_t)sizeof(float);

    _tile_loadd(4, a, a_row);
    _tile_loadd(6, b, row);
    _tile_zero(0);
    _tile_dpbsud(0, 4, 6);
    if (C > 1) {
        _tile_loadd(7, b + VL, row);
        _tile_zero(1);
        _tile_dpbsud(1, 4, 7);
    }
    if (both) {
        b += PER_BLOCK * b_step;
        _tile_loadd(5, a + R * PER_BLOCK, a_row);
        _tile_loadd(6, b, row);
        _tile_zero(2);
        _tile_dpbsud(2, 5, 6);
        if (C > 1) {
            _tile_loadd(7, b + VL, row);
            _tile_zero(3);
            _tile_dpbsud(3, 5, 7);
        }
    }
    _tile_stored(0, out[0][0], sizeof(out[0][0][0]));
    if (C > 1)
        _tile_stored(1, out[0][1], sizeof(out[0][0][0]));
    if (both) {
        _tile_stored(2, out[1][0], sizeof(out[0][0][0]));
        if (C > 1)
            _tile_stored(3, out[1][1], sizeof(out[0][0][0]));
    }
}

/* Two blocks are multiplied while the two before are scaled. Tiles of fewer rows are read whole, as
 * what follows them in the work space. */
VEC_INLINE void tile_blocks(int R, int C, vf acc[][TILE_COLS], int n, const float *a,
                            const float *b, ptrdiff_t b_step, bool shifts)
{
    enum { PAIR = 2 * PER_BLOCK };
    _Alignas(64) amx_sums out[2];

    multiply_blocks(R, C, out[0], a, b, b_step, n > PER_BLOCK);
    for (int at = 0, turn = 0; at < n; turn ^= 1) {
        if (at + PAIR < n)
            multiply_blocks(R, C, out[turn ^ 1], a + R * PAIR, b + PAIR * b_step, b_step,
                            at + PAIR + PER_BLOCK < n);
        SETTLE();
        for (int h = 0; h < 2 && at < n; h++, at += PER_BLOCK) {
            const float *const scale = a + R * BLOCK_LANES;
            vi sum[SIDE][TILE_COLS];
            UNROLL
            for (int r = 0; r < R; r++)
                UNROLL
            for (int c = 0; c < C; c++)
                sum[r][c] = _mm512_add_epi32(vild(out[turn][h][c][r]), vi1(scale + R + r));
            add_scaled(R, C, acc, sum, scale, b + BLOCK_LANES * b_step, b_step, shifts);
            a += R * PER_BLOCK;
            b += PER_BLOCK * b_step;
        }
    }
}
