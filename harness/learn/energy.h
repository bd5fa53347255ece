/* SPDX-License-Identifier: MIT
 *
 * The numerical rank of a matrix, by the energy of its singular values. */
#ifndef ENERGY_H
#define ENERGY_H

/* The least r with
 *
 *   sum of the r largest sigma^2 >= share * sum of all sigma^2
 *
 * sigma: the singular values of x [rows,cols], whose rows are `ld` doubles apart. 0 for a matrix of
 * zeros, and without memory for its products of rows or columns, min(rows, cols) squared: -1. */
int energy_rank(const double *x, int rows, int cols, int ld, double share);

#endif
