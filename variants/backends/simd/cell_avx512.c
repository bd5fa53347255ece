/* SPDX-License-Identifier: MIT
 *
 * The recurrent cells of cell.inc.c compiled for AVX-512. */
#define VEC_AVX512
#include "cell.inc.c"
#include "simd.h"

void cell_avx512(const struct rnn_step *o) { cell(o); }
void cell_grad_avx512(const struct rnn_step_grad *o) { cell_grad(o); }
