/* SPDX-License-Identifier: MIT
 *
 * Opening a backend: where each operation comes from, what the mask of instruction sets changes,
 * which attention implementation runs, and the message if there is none. */
#include "tests/support/kernel/simd.h"
#include "tests/support/op_name.h"
#include "tests/support/open_engine.h"

#include <dirent.h>

/* OK, or the test is skipped because this machine or build lacks the backend. */
static struct engine must_open(const char *name, const char *impl)
{
    struct engine g;
    const enum status st = engine_open(&g, name, 1, impl, &failure);

    if (st == E_UNSUPPORTED)
        cr_skip_test("%s", failure.msg);
    cr_assert_eq(st, OK, "%s", failure.msg);
    return g;
}

static bool provides(const struct backend *b, int op)
{
#define X(member, type)                                                                            \
    if (op == OP_##member)                                                                         \
        return b->ops.member != NULL;
    OPS(X)
#undef X
    return false;
}

/* The first of b, its parent, ... that has the operation; "simd" is `level`'s backend. */
static const char *provider(const struct backend *b, int op, enum isa level)
{
    while (!provides(b, op)) {
        cr_assert_not_null(b->inherits, "no backend has %s", op_name[op]);
        b = backend_find(strcmp(b->inherits, "simd") == 0 ? isa_name[level] : b->inherits);
        cr_assert_not_null(b);
    }
    return b->name;
}

static int threads_now(void)
{
    DIR *const d = opendir("/proc/self/task");
    int n = 0;

    cr_assert_not_null(d);
    for (struct dirent *e; (e = readdir(d));)
        n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

/* A library has its own idea of how many: a second thread on the only CPU of a case is waited for. */
Test(engine, a_product_of_one_thread_starts_no_other, .timeout = 240)
{
    enum { N = 256 };
    float *const x = room((size_t)3 * N * N, sizeof(*x));
    for (int i = 0; backends[i]; i++) {
        struct engine g;
        if (engine_open(&g, backends[i]->name, 1, NULL, &(struct err){""}) != OK)
            continue;
        give_room(&g);
        omp_set_num_threads(2);
        const int before = threads_now();
        mm(&g, NT, N, N, N, 1, x, N, x + N * N, N, 0, x + 2 * N * N, N);
        NUMBERS_OF(g.backend->name, {threads_now(), before}, {omp_get_max_threads(), 2});
    }
}

Test(engine, registry_is_complete)
{
    for (int i = 0; backends[i]; i++) {
        const struct backend *b = backends[i];
        cr_expect_eq(backend_find(b->name), b, "%s is not unique", b->name);
        cr_expect(b->about && b->about[0]);
        cr_expect(b == &backend_ref
                      ? !b->inherits
                      : strcmp(b->inherits, "simd") == 0 || backend_find(b->inherits));
    }
    cr_expect_eq(backends[0], &backend_ref);
    cr_expect_null(backend_find("nosuch"));
    cr_expect_null(backend_find(""));
    for (int op = 0; op < OP_COUNT; op++)
        cr_expect(provides(&backend_ref, op), "ref lacks %s", op_name[op]);
}

/* Every level of the mask, so that one machine tests them all. */
Test(engine, operations_come_from_the_nearest_that_has_them)
{
    for (enum isa level = 0; level <= cpu_isa_unmasked(); level++) {
        cpu_limit(level);
        for (int i = 0; backends[i]; i++) {
            struct engine g;
            if (backend_usable(backends[i], NULL) != OK)
                continue;
            cr_assert_eq(engine_open(&g, backends[i]->name, 2, NULL, NULL), OK);
            cr_expect_eq(g.backend, backends[i]);
            cr_expect_eq(g.threads, 2);
            for (int op = 0; op < OP_COUNT; op++)
                cr_expect_str_eq(g.provider[op], provider(backends[i], op, level), "%s of %s at %s",
                                 op_name[op], backends[i]->name, isa_name[level]);
        }
    }
}

Test(engine, mask_lowers_the_rows_of_a_library)
{
    must_open("openblas", NULL);
    for (enum isa level = 0; level <= cpu_isa_unmasked(); level++) {
        cpu_limit(level);
        const struct engine g = must_open("openblas", NULL);
        cr_expect_str_eq(g.provider[OP_gemm], "openblas");
        const struct backend *const own = backend_find(isa_name[level]);
        TEXTS({g.provider[OP_softmax], provider(own, OP_softmax, level)},
              {g.provider[OP_norm], provider(own, OP_norm, level)}, {g.attn[0]->name, "composed"});
    }
}

Test(engine, mask_refuses_what_is_above_it)
{
    struct engine g;

    if (cpu_isa_unmasked() < ISA_SIMD)
        cr_skip_test("no " SIMD " here: nothing is above the mask");
    cpu_limit(ISA_BASE);
    cr_expect_eq(engine_open(&g, SIMD, 1, NULL, &failure), E_UNSUPPORTED);
    cr_expect_str_eq(failure.msg, "backend " SIMD " is above --max-isa ref  -> raise it, or auto");
    cr_expect_eq(engine_open(&g, "ref", 1, NULL, &failure), OK);
    cr_expect_eq(g.isa, ISA_BASE);
}

Test(engine, simd_runs_at_its_own_level)
{
    const struct engine g = must_open(SIMD, NULL);

    cr_expect_eq(g.isa, ISA_SIMD);
    TEXTS({g.provider[OP_gemm], SIMD}, {g.attn[0]->name, "fused"});
}

Test(engine, unknown_backend)
{
    struct engine g;

    cr_expect_eq(engine_open(&g, "mkl", 1, NULL, &failure), E_UNSUPPORTED);
    cr_expect_str_eq(failure.msg, "backend mkl was not built in  -> see: bench list backends");
}

static struct attn small(int dh)
{
    return (struct attn){.B = 1, .H = 1, .Hkv = 1, .L = 2, .dh = dh, .causal = true, .scale = 1};
}

Test(engine, attention_by_name)
{
    for (int i = 0; backends[i]; i++) {
        struct engine g;
        if (engine_open(&g, backends[i]->name, 1, NULL, NULL) != OK)
            continue;
        const struct attn a = small(8);
        const struct attn_impl *first, *named;
        cr_assert_eq(engine_attn(&g, &a, &first, NULL), OK);
        g.impl = first->name;
        cr_assert_eq(engine_attn(&g, &a, &named, NULL), OK);
        cr_expect_eq(first, named);
    }
}

Test(engine, unknown_attention)
{
    const struct engine g = must_open("ref", "flash");
    const struct attn_impl *impl;
    const struct attn a = small(8);

    cr_expect_eq(engine_attn(&g, &a, &impl, &failure), E_UNSUPPORTED);
    cr_expect_str_eq(failure.msg, "backend ref has no implementation \"flash\"  -> it has ref");
}

Test(engine, refusal_carries_its_reason)
{
    const struct engine g = must_open(SIMD, "fused");
    const struct attn_impl *impl;
    struct attn a = small(8);

    a.q_step = a.k_step = 1;
    cr_expect_eq(engine_attn(&g, &a, &impl, &failure), E_UNSUPPORTED);
    TEXTS({failure.msg, "backend " SIMD " cannot run this attention (fused: does not support "
                        "position steps)  -> use another backend"});
}
