/* SPDX-License-Identifier: MIT
 *
 * x86-64, by the compiler's cpuid functions, which also check that the operating system saves the
 * wide registers. */
#include "cpu.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <xmmintrin.h>

/* Bits 22, 24 and 25 of edx of leaf 7 (bf16, tiles, int8), and the kernel's leave, for this process, to hold tiles: without
 * it the first instruction faults. Asked once: it is a call of the system. */
static bool has_amx(void)
{
    enum { ASK_FOR = 0x1023, TILES = 18 }; /* ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA */
    static _Atomic int known;              /* 1 = no, 2 = yes */
    unsigned a, b, c, d;

    if (!known)
        known = __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d >> 22 & 0xd) == 0xd &&
                        syscall(SYS_arch_prctl, ASK_FOR, TILES) == 0
                    ? 2
                    : 1;
    return known == 2;
}

enum isa cpu_isa_unmasked(void)
{
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
        return ISA_BASE;
    if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
        !__builtin_cpu_supports("avx512vl") || !__builtin_cpu_supports("avx512dq"))
        return ISA_AVX2;
    if (!__builtin_cpu_supports("avx512bf16"))
        return ISA_AVX512;
    return has_amx() ? ISA_AMX_BF16 : ISA_AVX512_BF16;
}

/* AVX-VNNI is bit 4 of eax of leaf 7.1; not all compilers' functions know it. */
static bool has_avx_vnni(void)
{
    unsigned a, b, c, d;

    return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & 1u << 4);
}

bool cpu_has_dot4_unmasked(enum isa level)
{
    const enum isa have = cpu_isa_unmasked();

    if (level == ISA_AVX2)
        return have >= ISA_AVX2 && has_avx_vnni();
    return level == ISA_AVX512 && have >= ISA_AVX512 && __builtin_cpu_supports("avx512vnni");
}

void cpu_name(char *buf, size_t size)
{
    unsigned brand[12], max = __get_cpuid_max(0x80000000u, NULL);
    char text[sizeof(brand) + 1] = {0};

    if (max < 0x80000004u) {
        snprintf(buf, size, "unknown CPU");
        return;
    }
    for (unsigned leaf = 0; leaf < 3; leaf++)
        __get_cpuid(0x80000002u + leaf, &brand[4 * leaf], &brand[4 * leaf + 1],
                    &brand[4 * leaf + 2], &brand[4 * leaf + 3]);
    memcpy(text, brand, sizeof(brand));

    /* Fold runs of blanks: vendors pad the name. */
    size_t n = 0;
    for (const char *p = text; *p && n + 1 < size; p++)
        if (*p != ' ' || (n > 0 && buf[n - 1] != ' '))
            buf[n++] = *p;
    while (n > 0 && buf[n - 1] == ' ')
        n--;
    buf[n] = '\0';
}

/* In leaf 0x40000000, valid if the hypervisor bit is set. */
void cpu_hypervisor(char signature[HYPERVISOR_SIZE])
{
    unsigned a, b, c, d;

    memset(signature, 0, HYPERVISOR_SIZE);
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & 1u << 31))
        return;
    __cpuid(0x40000000u, a, b, c, d);
    memcpy(signature, &b, 4);
    memcpy(signature + 4, &c, 4);
    memcpy(signature + 8, &d, 4);
}

void cpu_flush_denormals(void)
{
    enum { FTZ = 0x8000, DAZ = 0x0040 };
    _mm_setcsr(_mm_getcsr() | FTZ | DAZ);
}
