/* SPDX-License-Identifier: MIT
 *
 * The numerical rank of a matrix, by the energy of its singular values. */
#pragma once

/* The least r with
 *
 *   sum of the r largest sigma^2 >= share * sum of all sigma^2
 *
 * sigma: the singular values of x [rows,cols], whose rows are `ld` doubles apart. 0 for a matrix of
 * zeros, -1 without memory (min(rows, cols)^2 doubles). */
int energy_rank(const double *x, int rows, int cols, int ld, double share);
