/* SPDX-License-Identifier: MIT */
#pragma once

/* From now on a handler of SIGILL does what vpdpbusd of AVX-VNNI does on 256 bits, so that kernels
 * of such CPUs run on those with AVX2, at a few thousandths of the speed. */
void emulate_avx_vnni(void);
