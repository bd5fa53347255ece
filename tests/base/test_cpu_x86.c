/* SPDX-License-Identifier: MIT
 *
 * The levels of x86-64 are those that the compiler's own detection finds. */
#include "tests/support/compared.h"
#include "variants/base/cpu.h"

Test(cpu_x86, agrees_with_the_compiler)
{
    __builtin_cpu_init();
    cr_expect_eq(cpu_isa_unmasked() >= ISA_AVX2,
                 __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"));
    if (cpu_isa_unmasked() >= ISA_AVX512) {
        cr_expect(__builtin_cpu_supports("avx512f"));
        cr_expect(__builtin_cpu_supports("avx512bw"));
        cr_expect(__builtin_cpu_supports("avx512vl"));
        cr_expect(__builtin_cpu_supports("avx512dq"));
    }
}

Test(cpu_x86, dot4_is_hidden_by_a_mask_of_its_level)
{
    __builtin_cpu_init();
    cr_expect_eq(cpu_has_dot4_unmasked(ISA_AVX512),
                 cpu_isa_unmasked() >= ISA_AVX512 && __builtin_cpu_supports("avx512vnni"));
#if !defined(__clang__) /* whose function does not know it before version 15 */
    cr_expect_eq(cpu_has_dot4_unmasked(ISA_AVX2),
                 cpu_isa_unmasked() >= ISA_AVX2 && __builtin_cpu_supports("avxvnni"));
#endif
    for (enum isa level = ISA_AVX2; level <= ISA_AVX512; level++) {
        cpu_limit(ISA_COUNT - 1);
        cr_expect_eq(cpu_has_dot4(level), cpu_has_dot4_unmasked(level));
        cpu_limit(level);
        cr_expect_not(cpu_has_dot4(level));
    }
    cpu_limit(ISA_AVX512);
    cr_expect_eq(cpu_has_dot4(ISA_AVX2), cpu_has_dot4_unmasked(ISA_AVX2));
    cr_expect_not(cpu_has_dot4_unmasked(ISA_AVX512_BF16));
}

Test(cpu_x86, levels_have_names)
{
    TEXTS({isa_name[ISA_AVX2], "avx2"}, {isa_name[ISA_AVX512], "avx512"},
          {isa_name[ISA_AVX512_BF16], "avx512_bf16"}, {isa_name[ISA_AMX_BF16], "amx_bf16"},
          {isa_needs[ISA_AVX2], "avx2,fma"}, {isa_needs[ISA_AVX512], "avx512f,bw,vl,dq"});
}
