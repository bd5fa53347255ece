/* SPDX-License-Identifier: MIT
 *
 * The gradients in rows_grad.inc.c and acts_grad.inc.c compiled for one instruction set. */
#include "acts_grad.inc.c"
#include "rows_grad.inc.c"
#include "simd.h"

void AT_ISA(softmax_grad)(const struct softmax_grad *o) { softmax_grad(o); }
void AT_ISA(norm_grad)(const struct norm_grad *o) { norm_grad(o); }
void AT_ISA(act_grad)(const struct act_grad *o) { act_grad(o); }
void AT_ISA(glu_grad)(const struct glu_grad *o) { glu_grad(o); }
void AT_ISA(gate_grad)(const struct gate_grad *o) { gate_grad(o); }
void AT_ISA(nll_grad)(const struct nll_grad *o) { nll_grad(o); }
