/* SPDX-License-Identifier: MIT
 *
 * The CPU mask lowers and never raises the level; names are those of the options. */
#include "tests/support/compared.h"
#include "variants/base/cpu.h"

#include <fenv.h>

Test(cpu, mask_only_lowers)
{
    const enum isa have = cpu_isa_unmasked();

    cr_assert_lt(have, ISA_COUNT);
    cr_expect_eq(cpu_isa(), have, "no mask at the start");
    for (enum isa most = ISA_BASE; most < ISA_COUNT; most++) {
        cpu_limit(most);
        cr_expect_eq(cpu_isa(), have < most ? have : most, "limit %s", isa_name[most]);
        cr_expect_eq(cpu_isa_unmasked(), have, "limit %s", isa_name[most]);
    }
    cpu_limit(ISA_BASE);
    cr_expect_eq(cpu_isa(), ISA_BASE);
    cpu_limit(ISA_COUNT - 1);
    cr_expect_eq(cpu_isa(), have, "the mask can be lifted again");
}

Test(cpu, levels_have_names)
{
    TEXTS({isa_name[ISA_BASE], "ref"}, {isa_needs[ISA_BASE], ""});
    for (enum isa isa = ISA_BASE + 1; isa < ISA_COUNT; isa++)
        cr_expect(isa_name[isa][0] && isa_needs[isa][0]);
    cr_expect_null(isa_name[ISA_COUNT]);
    cr_expect_str_eq(isa_name[ISA_COUNT - 1], ISA_BEST);
}

Test(cpu, has_a_tidy_name_that_fits)
{
    char name[64], guarded[12];

    cpu_name(name, sizeof(name));
    const size_t n = strlen(name);
    cr_assert_gt(n, 0);
    cr_expect_null(strstr(name, "  "), "\"%s\"", name);
    cr_expect_neq(name[0], ' ', "\"%s\"", name);
    cr_expect_neq(name[n - 1], ' ', "\"%s\"", name);

    memset(guarded, '#', sizeof(guarded));
    cpu_name(guarded, 5);
    cr_expect_leq(strlen(guarded), 4);
    cr_expect_eq(strncmp(guarded, name, strlen(guarded)), 0);
    for (size_t i = 5; i < sizeof(guarded); i++)
        cr_expect_eq(guarded[i], '#', "byte %zu was written", i);
}

Test(cpu, flushes_denormals)
{
    fenv_t before;
    /* volatile: arithmetic must not move across the change of mode */
    volatile float small = 0x1p-100f, denormal = 0x1p-140f, product, from_denormal, normal;

    product = small * 0x1p-40f; /* 2^-140: below the least normal number, 2^-126 */
    cr_expect(product > 0.0f);
    cr_expect(denormal * 0x1p60f > 0.0f);

    fegetenv(&before);
    cpu_flush_denormals();
    product = small * 0x1p-40f;
    from_denormal = denormal * 0x1p60f;
    normal = small * 0x1p-20f;
    fesetenv(&before);
    cr_expect(product == 0.0f, "result not flushed");
    cr_expect(from_denormal == 0.0f, "operand not flushed");
    cr_expect(normal == 0x1p-120f, "normal numbers stay");
}
