/* SPDX-License-Identifier: MIT */
#pragma once

/* From now on a handler of SIGILL does what AMX's instructions do with tiles, of bf16 and int8, so that kernels
 * of such CPUs run on others, at a thousandth of the speed. */
void emulate_amx(void);
