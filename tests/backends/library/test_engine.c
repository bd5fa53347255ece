/* SPDX-License-Identifier: MIT
 *
 * The library's handle: backends, threads, work space that cannot be had. */
#include "tests/support/kernel/library.h"
#include "tests/support/sanitized.h"
#include "variants/backends/library/inner.h"

#include <sys/resource.h>

TestSuite(library_engine, .timeout = 240);

Test(library_engine, names_backends_that_run_here)
{
    int n = 0;

    cr_expect_null(ba_backend_name(-1));
    cr_expect_null(ba_engine_backend(NULL));
    for (; ba_backend_name(n); n++) {
        struct ba_engine *const engine = library_engine(ba_backend_name(n), 2);
        cr_expect_str_eq(ba_engine_backend(engine), ba_backend_name(n));
        cr_expect(engine->g.backend == backend_find(ba_backend_name(n)) && engine->g.threads == 2,
                  "%s: other kernels", ba_backend_name(n));
        ba_engine_close(engine);
    }
    cr_expect_gt(n, 0);
    cr_expect_null(ba_backend_name(n));
    struct ba_engine *const best = library_engine(NULL, 0);
    cr_expect_leq(cpu_isa() ? 1 : 0, strcmp(ba_engine_backend(best), "ref") != 0);
    ba_engine_close(best);
}

Test(library_engine, refuses_what_cannot_be_opened)
{
    struct ba_engine_options o = {.size = sizeof(o)};
    struct ba_engine *engine = (struct ba_engine *)&o;

    ANSWERS(BA_ARGUMENT, "no handle", ba_engine_open, NULL, &o);
    ANSWERS(BA_ARGUMENT, "no options", ba_engine_open, &engine, NULL);
    cr_expect_null(engine);
    o.threads = -1;
    ANSWERS(BA_ARGUMENT, "-1 threads", ba_engine_open, &engine, &o);
    o.threads = 1025;
    ANSWERS(BA_ARGUMENT, "1025 threads", ba_engine_open, &engine, &o);
    o.threads = 1;
    o.backend = "nosuch";
    ANSWERS(BA_UNSUPPORTED, "nosuch", ba_engine_open, &engine, &o);
    o.backend = NULL;
    o.size = 4;
    ANSWERS(BA_ARGUMENT, "size 4", ba_engine_open, &engine, &o);
}

/* Levels above that of the CPU exist, and are refused. */
Test(library_engine, refuses_instructions_that_are_not_here)
{
    struct ba_engine_options o = {.size = sizeof(o)};
    struct ba_engine *engine;

    for (int i = 0; backends[i]; i++)
        if (backends[i]->adds == ELEM_F32 && backends[i]->needs > cpu_isa_unmasked()) {
            o.backend = backends[i]->name;
            ANSWERS(BA_UNSUPPORTED, o.backend, ba_engine_open, &engine, &o);
        }
}

/* The address space has no room for the stacks of so many, nor for the scores. */
Test(library_engine, without_memory)
{
    static float x[64];
    const struct ba_engine_options o = {.size = sizeof(o), .threads = 1024};
    struct ba_engine *engine, *const one = library_engine("ref", 1);
    const struct ba_attention a = {.size = sizeof(a),
                                   .B = 1,
                                   .H = 1,
                                   .L = 1,
                                   .M = 1 << 28,
                                   .dh = 1,
                                   .q = x,
                                   .k = x,
                                   .v = x,
                                   .o = x};

    if (SANITIZED || getenv("QEMU_LD_PREFIX"))
        cr_skip_test("sanitizers and emulators need the address space");
    setrlimit(RLIMIT_AS, &(struct rlimit){(rlim_t)1 << 30, (rlim_t)1 << 30});
    ANSWERS(BA_MEMORY, "1024 stacks", ba_engine_open, &engine, &o);
    cr_expect_null(engine);
    ANSWERS(BA_MEMORY, "scores", ba_attention_forward, one, &a);
    ba_engine_close(one);
}
