/* SPDX-License-Identifier: MIT
 *
 * The tiles of AMX (Intel, Software Developer's Manual 1, chapter 18), which a product holds while it
 * multiplies: eight registers of up to 16 rows of 64 bytes. 0 to 3 are sums, 4 and 5 of a, 6 and 7 of
 * b. With VEC_AMX_BF16 a step is 32 numbers of k, and sums are 2 x 2 tiles of 16 x 16; with
 * VEC_AMX_INT8 it is a block of 32, and sums are 1 x 2 of 14 rows, twice: scaled sums fill the
 * registers of vectors. */
#pragma once

#if defined(VEC_AMX_BF16) || defined(VEC_AMX_INT8)
#include <immintrin.h>
#include <stdint.h>

#if defined(VEC_AMX_BF16)
enum { SIDE = 16, OF_A = 64, ROWS_B = 16 };
#else
enum { SIDE = 14, OF_A = 32, ROWS_B = 8 };
#endif

static const struct {
    _Alignas(64) uint8_t palette;
    uint8_t start_row, zero[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} tile_config = {.palette = 1,
                 .row_bytes = {64, 64, 64, 64, OF_A, OF_A, 64, 64},
                 .rows = {SIDE, SIDE, SIDE, SIDE, SIDE, SIDE, ROWS_B, ROWS_B}};
_Static_assert(sizeof(tile_config) == 64, "as the instruction reads it");

/* Compilers do not see that tiles read and write memory. */
#define SETTLE() __asm__ volatile("" ::: "memory")

static inline void begin_tiles(void) { _tile_loadconfig(&tile_config); }
static inline void end_tiles(void) { _tile_release(); }
#else
static inline void begin_tiles(void) {}
static inline void end_tiles(void) {}
#endif
