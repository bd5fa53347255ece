/* SPDX-License-Identifier: MIT
 *
 * The peak loops of products of pairs of bf16. */
#include "peak.isa.c"
