/* SPDX-License-Identifier: MIT
 *
 * The peak loops of the baseline. */
#define ISA base
#include "peak.isa.c"
