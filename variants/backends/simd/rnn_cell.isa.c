/* SPDX-License-Identifier: MIT
 *
 * The recurrent cells of rnn_cell.inc.c compiled for one instruction set. */
#include "rnn_cell.inc.c"
#include "simd.h"

void AT_ISA(rnn_cell)(const struct rnn_step *o) { rnn_cell(o); }
void AT_ISA(rnn_cell_grad)(const struct rnn_step_grad *o) { rnn_cell_grad(o); }
