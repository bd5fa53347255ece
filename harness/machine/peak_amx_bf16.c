/* SPDX-License-Identifier: MIT
 *
 * The peak loop of the tiles of AMX, of bf16: an instruction multiplies 16 x 32 numbers by 32 x 16. */
#include "peak.h"

#include <immintrin.h>

enum { SIDE = 16, SUMS = 4, K = 2 * SIDE };

/* Sums in turn, enough to hide the latency. Each product of halves adds 8 to every number of its sum,
 * which begins with a half, and anew before it is inexact. Returns the mean sum, as a part of what
 * that many products add. */
static double tile_loop(uint64_t iterations)
{
    enum { EXACT = 1 << 16 };
    static const struct {
        _Alignas(64) uint8_t palette;
        uint8_t start_row, zero[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    } six = {1, 0, {0}, {64, 64, 64, 64, 64, 64}, {SIDE, SIDE, SIDE, SIDE, SIDE, SIDE}};
    const double of_all = 8 * (double)iterations;
    _Alignas(64) uint16_t half[SIDE * K];
    _Alignas(64) float sums[SUMS][SIDE * SIDE];
    double all = 0;

    for (int i = 0; i < SIDE * K; i++)
        half[i] = 0x3f00;
    for (int i = 0; i < SIDE * SIDE; i++)
        sums[0][i] = 0.5f;
    __asm__ volatile("" ::: "memory"); /* compilers do not see what tiles read and write */
    _tile_loadconfig(&six);
    _tile_loadd(0, sums[0], 64);
    _tile_loadd(1, sums[0], 64);
    _tile_loadd(2, sums[0], 64);
    _tile_loadd(3, sums[0], 64);
    _tile_loadd(4, half, 64);
    _tile_loadd(5, half, 64);
    for (int added = 0; iterations > 0; iterations--, added++) {
        if (added == EXACT) {
            all += SUMS * SIDE * SIDE * 8.0 * EXACT;
            added = 0;
            _tile_zero(0);
            _tile_zero(1);
            _tile_zero(2);
            _tile_zero(3);
        }
        _tile_dpbf16ps(0, 4, 5);
        _tile_dpbf16ps(1, 4, 5);
        _tile_dpbf16ps(2, 4, 5);
        _tile_dpbf16ps(3, 4, 5);
    }
    _tile_stored(0, sums[0], 64);
    _tile_stored(1, sums[1], 64);
    _tile_stored(2, sums[2], 64);
    _tile_stored(3, sums[3], 64);
    _tile_release();
    __asm__ volatile("" ::: "memory");
    for (int i = 0; i < SUMS; i++)
        for (int j = 0; j < SIDE * SIDE; j++)
            all += (double)sums[i][j];
    return all / (SUMS * SIDE * SIDE * of_all);
}

static uint64_t read_as_avx512(const void *buf, size_t bytes, uint64_t passes)
{
    return peak_loops_avx512.read(buf, bytes, passes);
}

const struct peak_loops peak_loops_amx_bf16 = {
    .flop = (double)SUMS * 2 * SIDE * SIDE * K,
    .cycles = SUMS * SIDE,
    .fma = tile_loop,
    .read = read_as_avx512,
};
