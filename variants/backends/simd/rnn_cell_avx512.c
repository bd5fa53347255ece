/* SPDX-License-Identifier: MIT
 *
 * The recurrent cells of rnn_cell.inc.c compiled for AVX-512. */
#define VEC_AVX512
#include "rnn_cell.inc.c"
#include "simd.h"

void rnn_cell_avx512(const struct rnn_step *o) { rnn_cell(o); }
void rnn_cell_grad_avx512(const struct rnn_step_grad *o) { rnn_cell_grad(o); }
