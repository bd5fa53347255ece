/* SPDX-License-Identifier: MIT
 *
 * oneDNN's own limit of x86-64's instructions holds, and the rows say so. */
#include "tests/support/kernel/attn_case.h"
#include "tests/support/kernel/fenced.h"

#if HAVE_ONEDNN

/* The library reads the variable on first use: in this process, here. */
Test(onednn_x86, obeys_its_own_isa_limit, .timeout = 240)
{
    if (cpu_isa_unmasked() < ISA_AVX2)
        cr_skip_test("this CPU has no AVX2");
    setenv("ONEDNN_MAX_CPU_ISA", "AVX2", 1);
    struct engine g = open_engine("onednn", 1);
    struct gemm x = {.m = 70, .n = 512, .k = 512, .alpha = 1, .lda = 512, .ldb = 512, .ldc = 512};
    char names[128];

    x.threads = 1;
    x.a = normals((size_t)(x.m * x.k), "a", 0, 1);
    x.b = normals((size_t)(x.k * x.n), "b", 0, 1);
    x.c = fenced((size_t)(x.m * x.n));

    cr_expect_eq(g.isa, ISA_AVX2);
    cr_expect_str_eq(g.backend->core(), "avx2");
    cr_expect(strncmp(g.backend->config(), "oneDNN ", 7) == 0, "%s", g.backend->config());
    g.ops.gemm(&x);
    cr_expect_eq(g.backend->ran(names, sizeof(names), NULL), OK);
    cr_expect(!strstr(names, "avx512"), "%s", names);
}

/* A kernel's name says which instructions it has; the row's level is no lower and no higher. */
Test(onednn_x86, names_its_tiles, .timeout = 240)
{
    struct engine g = open_engine("onednn", 1);
    const bool tiles = strstr(g.backend->core(), "amx") != NULL;

    cr_expect_eq(g.backend->core_isa(ELEM_BF16) == ISA_AMX_BF16, tiles, "%s", g.backend->core());
    cr_expect(g.backend->core_isa(ELEM_F32) <= ISA_AVX512);
}

#endif
