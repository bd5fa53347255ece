/* SPDX-License-Identifier: MIT
 *
 * Rotation of pairs of coordinates by angles that grow with the position:
 *
 *   (a, b) <- (a cos - b sin, a sin + b cos)
 *
 * pos_rope.c, and mixers that rotate, choose the frequencies of pairs. The angles of a position are
 * sums of those of the first position of its stretch and of a table, so their rounding depends on
 * the position only. */
#pragma once

#include "part.h"

enum { ROTARY_PAIRS = 64 }; /* rotated together: their cosines and sines stay in L1 */

/* Rows [B,rows,heads,width], `stride` floats between sequences, whose first 2 pairs coordinates are
 * rotated in place: adjacent ones, or each of the first half with one of the second. */
struct rotary {
    float *x;
    ptrdiff_t stride;
    int B, rows, heads, width, pairs;
    int64_t position; /* of row 0 */
    bool halves, back;
};

/* Cosines and sines of a stretch's positions, which are `row` floats apart. */
struct rotary_table {
    float *c, *s;
    ptrdiff_t row;
    int positions;
};

/* Row t of the table, for n pairs that turn by w[f] radians per position. */
void rotary_row(const struct rotary_table *table, int t, const double *w, int n);
/* w[n] of pairs f0.. where all are base^(-f/pairs), up to ROTARY_PAIRS of them. */
void rotary_series(double *w, double base, int pairs, int f0, int n);

/* Rotate pairs f0 .. f0+n-1, which the table and w begin with; cosines and sines are times
 * `magnitude`. */
void rotary_turn(const struct engine *g, const struct rotary *r, const struct rotary_table *table,
                 const double *w, double magnitude, int f0, int n);
