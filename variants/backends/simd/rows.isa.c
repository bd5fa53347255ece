/* SPDX-License-Identifier: MIT
 *
 * The row operations of rows.inc.c compiled for one instruction set. */
#include "rows.inc.c"
#include "simd.h"

void AT_ISA(softmax)(const struct softmax *o) { softmax(o); }
void AT_ISA(norm)(const struct norm *o) { norm(o); }
void AT_ISA(act)(const struct act *o) { act(o); }
void AT_ISA(glu)(const struct glu *o) { glu(o); }
void AT_ISA(gate)(const struct gate_op *o) { gate(o); }
void AT_ISA(nll)(const struct nll_op *o) { nll(o); }
