/* SPDX-License-Identifier: MIT */
#pragma once

/* From now on a handler of SIGILL does what vpdpbusd of AVX-VNNI does on 256 bits, and the tiles of AMX
 * with bf16 and int8, so that kernels of such CPUs run on others, at a thousandth of the speed. */
void emulate_x86(void);
