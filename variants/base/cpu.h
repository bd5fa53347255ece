/* SPDX-License-Identifier: MIT
 *
 * What this CPU may execute, limited by a mask that the user (--max-isa) and the tests can lower.
 * The mask is the program's only mutable global. */
#ifndef CPU_H
#define CPU_H

#include "base.h"

/* Instruction-set levels in ascending order. BASE is baseline x86-64, for which everything outside
 * _avx2.c, *_avx512.c and *_avx512_bf16.c is compiled. */
enum isa { ISA_BASE, ISA_AVX2, ISA_AVX512, ISA_AVX512_BF16, ISA_COUNT };

/* "ref" (the user's word for BASE in --max-isa), "avx2", "avx512", "avx512_bf16". */
extern const char *const isa_name[ISA_COUNT + 1]; /* ends with NULL */

/* The flags that a level adds to the one below: "avx2,fma", "avx512f,bw,vl,dq", "avx512_bf16". */
extern const char *const isa_needs[ISA_COUNT];

enum isa cpu_isa(void);          /* best level that CPU, operating system and mask allow */
enum isa cpu_isa_unmasked(void); /* best level that CPU and operating system allow */
void cpu_limit(enum isa most);   /* set the mask */

/* Marketing name of the CPU into buf, e.g. "AMD EPYC"; "unknown CPU" if cpuid has none. */
void cpu_name(char *buf, size_t size);

/* Set flush-to-zero and denormals-are-zero in the calling thread: a denormal costs 2x. */
void cpu_flush_denormals(void);

#endif
