/* SPDX-License-Identifier: MIT
 *
 * What this CPU may execute, limited by a mask that the user (--max-isa) and the tests can lower.
 * The mask is the program's only mutable global. */
#pragma once

#include "base.h"

/* X(ID, name, flags that it adds to the level before) for the levels above the baseline of this
 * architecture, in ascending order. Files whose names end in _NAME.c are compiled for one level,
 * NAME.isa.c for each; everything else is baseline code. */
#if defined(__aarch64__)
#define ISA_LIST(X) X(NEON, neon, "asimd")
#define ISA_BEST "neon"
#define CPU_MEASURED false /* its kernels ran under emulation only */
#else
#define ISA_LIST(X)                                                                                \
    X(AVX2, avx2, "avx2,fma")                                                                      \
    X(AVX512, avx512, "avx512f,bw,vl,dq")                                                          \
    X(AVX512_BF16, avx512_bf16, "avx512_bf16")                                                     \
    X(AMX_BF16, amx_bf16, "amx_tile,bf16,int8")
#define ISA_BEST "amx_bf16"
#define CPU_MEASURED true
#endif

#define ISA_ID(ID, name, flags) ISA_##ID,
enum isa { ISA_BASE, ISA_LIST(ISA_ID) ISA_COUNT };
#undef ISA_ID

/* "ref" (the user's word for BASE in --max-isa), "avx2", "avx512", ... */
extern const char *const isa_name[ISA_COUNT + 1]; /* ends with NULL */

/* The flags that a level adds to the one before: "avx2,fma", "avx512f,bw,vl,dq", ... */
extern const char *const isa_needs[ISA_COUNT];

enum isa cpu_isa(void);          /* best level that CPU, operating system and mask allow */
enum isa cpu_isa_unmasked(void); /* best level that CPU and operating system allow */
void cpu_limit(enum isa most);   /* set the mask */

/* Has this CPU sums of products of four int8 in the vectors of a level: AVX-VNNI for AVX2,
 * AVX512-VNNI for AVX512, SDOT for NEON? A mask of that very level hides them, unless it is the best
 * one. */
bool cpu_has_dot4(enum isa level);

/* ---- of the architecture: cpu_x86.c, cpu_arm64.c -------------------------------------------- */

bool cpu_has_dot4_unmasked(enum isa level);

/* Name of the CPU into buf, e.g. "AMD EPYC"; "unknown CPU" if it tells none. */
void cpu_name(char *buf, size_t size);

/* The signature of a hypervisor that the CPU tells of, e.g. "KVMKVMKVM"; "" if it tells of none. */
enum { HYPERVISOR_SIZE = 13 };
void cpu_hypervisor(char signature[HYPERVISOR_SIZE]);

/* Denormal operands and results become zeros in the calling thread: a denormal costs 2x. */
void cpu_flush_denormals(void);
