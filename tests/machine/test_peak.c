/* SPDX-License-Identifier: MIT
 *
 * The peak loops do the work that they are credited with, and the answer crosses a process border
 * unharmed. How fast this machine is, no test knows; what it cannot exceed, one does. */
#include "harness/machine/peak.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct peak_loops *const loops_of[ISA_COUNT] = {&peak_loops_base, &peak_loops_avx2,
                                                             &peak_loops_avx512};

static struct topo *machine(void)
{
    struct err e;
    struct topo *t;

    cr_assert_eq(topo_open(&t, NULL, &e), OK, "%s", e.msg);
    return t;
}

/* ---- loops -------------------------------------------------------------------------------- */

Test(peak, multiply_adds_reach_their_fixed_point)
{
    for (enum isa isa = 0; isa <= cpu_isa(); isa++) {
        const double early = loops_of[isa]->fma(2), late = loops_of[isa]->fma(1000);
        cr_expect(fabs(early - 1) > 0.01, "%s: %g after two steps", isa_name[isa], early);
        cr_expect(fabs(late - 1) < 1e-5, "%s: %g", isa_name[isa], late);
    }
}

Test(peak, reads_every_word_and_no_other)
{
    const size_t bytes = 4 * PEAK_READ_STEP, words = bytes / sizeof(uint64_t);
    uint64_t *const buf = aligned_alloc(64, bytes + PEAK_READ_STEP);

    cr_assert_not_null(buf);
    for (enum isa isa = 0; isa <= cpu_isa(); isa++)
        for (size_t w = 0; w < words; w++) {
            memset(buf, 0, bytes);
            memset(buf + words, 0xff, PEAK_READ_STEP);
            buf[w] = (uint64_t)1 << (w % 64);
            cr_assert_eq(loops_of[isa]->read(buf, bytes, 1 + w % 2), buf[w], "%s word %zu",
                         isa_name[isa], w);
        }
    free(buf);
}

/* ---- measuring ---------------------------------------------------------------------------- */

static void expect_plausible(const struct peaks *p, int threads, enum isa most)
{
    const double levels[] = {p->l1, p->l2, p->l3, p->dram};

    cr_expect_eq(p->threads, threads);
    for (enum isa isa = 0; isa < ISA_COUNT; isa++)
        if (isa <= most)
            cr_expect(p->flops[isa] > 1e8 && p->flops[isa] < 1e14, "%s: %g", isa_name[isa],
                      p->flops[isa]);
        else
            cr_expect_eq(p->flops[isa], 0);
    for (size_t i = 0; i < ARRAY_LEN(levels); i++)
        cr_expect(levels[i] == 0 || (levels[i] > 1e7 && levels[i] < 1e15), "level %zu: %g", i + 1,
                  levels[i]);
    cr_expect_gt(p->dram, 0);
}

Test(peak, in_process, .timeout = 120)
{
    struct topo *const t = machine();
    struct topo_facts f;
    struct peaks p;
    struct err e;
    int cpus[2], n;

    topo_facts(t, &f);
    n = min_int(2, f.allowed_cpus);
    cr_assert_eq(topo_plan(t, "compact", n, cpus, &e), OK, "%s", e.msg);
    cr_assert_eq(peak_run_in_process(t, n, cpus, &p, &e), OK, "%s", e.msg);
    expect_plausible(&p, n, cpu_isa());
    cr_expect_eq(topo_where(t), cpus[0]);
    cr_expect_eq(p.l3 > 0, f.l3_bytes > 0);
    topo_close(t);
}

Test(peak, unpinned_below_a_mask, .timeout = 120)
{
    struct topo *const t = machine();
    struct peaks p;
    struct err e;
    const int cpus[] = {-1, -1, -1};

    cpu_limit(ISA_BASE);
    cr_assert_eq(peak_run_in_process(t, 3, cpus, &p, &e), OK, "%s", e.msg);
    expect_plausible(&p, 3, ISA_BASE);
    topo_close(t);
}

Test(peak, a_cpu_that_is_not_there, .timeout = 60)
{
    struct topo *const t = machine();
    struct peaks p;
    struct err e = {""};
    const int cpus[] = {100000};

    cr_expect_eq(peak_run_in_process(t, 1, cpus, &p, &e), E_UNSUPPORTED);
    cr_expect(strstr(e.msg, "CPU 100000") != NULL, "%s", e.msg);
    topo_close(t);
}

/* ---- across the border -------------------------------------------------------------------- */

static const char good_line[] =
    "bench-peaks/1 threads=2 ref=51000000000 avx2=118000000000 avx512=0 l1=221000000000 "
    "l2=117000000000 l3=80000000000 dram=34000000000";

Test(peak, line_round_trip)
{
    const struct peaks p = {.threads = 2,
                            .flops = {51e9, 118e9, 0},
                            .l1 = 221e9,
                            .l2 = 117e9,
                            .l3 = 80e9,
                            .dram = 34e9};
    struct peaks back;
    struct err e;
    char line[512];

    peaks_format(&p, line, sizeof(line));
    cr_expect_str_eq(line, good_line);
    cr_assert_eq(peaks_parse(&back, line, &e), OK, "%s", e.msg);
    cr_expect_eq(back.flops[ISA_AVX2], 118e9);
    peaks_format(&back, line, sizeof(line));
    cr_expect_str_eq(line, good_line);
}

Test(peak, bad_lines)
{
    const char *const lines[] = {
        "",
        "bench-peaks/1",
        "bench-peaks/2 threads=2 ref=1 avx2=1 avx512=1 l1=1 l2=1 l3=1 dram=1",
        "bench-peaks/1 threads=0 ref=1 avx2=1 avx512=1 l1=1 l2=1 l3=1 dram=1",
        "bench-peaks/1 threads=2 ref=1 avx2=1 avx512=1 l1=1 l2=1 l3=1",
        "bench-peaks/1 threads=2 ref=1 avx2=1 avx512=1 l1=1 l2=1 l3=1 dram=1 ",
        "bench-peaks/1 threads=2 ref=1 avx2=1 avx512=1 l1=1 l2=1 l3=1 dram=",
        "bench-peaks/1 threads=2 ref=-1 avx2=1 avx512=1 l1=1 l2=1 l3=1 dram=1",
        "bench-peaks/1 threads=2 ref=nan avx2=1 avx512=1 l1=1 l2=1 l3=1 dram=1",
        "bench-peaks/1 threads=2 avx2=1 ref=1 avx512=1 l1=1 l2=1 l3=1 dram=1",
    };

    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        struct peaks p;
        struct err e;
        cr_expect_eq(peaks_parse(&p, lines[i], &e), E_CHILD, "\"%s\"", lines[i]);
    }
}

Test(peak, in_a_child, .timeout = 120)
{
    struct topo *const t = machine();
    struct topo_facts f;
    struct peaks p;
    struct err e;
    const char *const bench = getenv("BENCH");
    int cpus[2], n;

    cr_assert_not_null(bench, "BENCH must name the program under test");
    topo_facts(t, &f);
    n = min_int(2, f.allowed_cpus);
    cr_assert_eq(topo_plan(t, "compact", n, cpus, &e), OK, "%s", e.msg);
    cr_assert_eq(peaks_measure(bench, n, cpus, ISA_BASE, &p, &e), OK, "%s", e.msg);
    expect_plausible(&p, n, ISA_BASE);
    cpus[0] = cpus[1] = -1;
    cr_assert_eq(peaks_measure(bench, n, cpus, ISA_AVX512, &p, &e), OK, "%s", e.msg);
    expect_plausible(&p, n, cpu_isa());
    topo_close(t);
}

Test(peak, children_that_are_no_help, .timeout = 60)
{
    const struct {
        const char *program, *says;
    } cases[] = {
        {"/nowhere/bench", "cannot start /nowhere/bench"},
        {"/bin/false", "exit code 1"},
        {"/bin/echo", "answered \"peak --threads 1 --pin 0 --max-isa avx2\""},
    };
    const int cpus[] = {0};

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct peaks p;
        struct err e = {""};
        cr_expect_eq(peaks_measure(cases[i].program, 1, cpus, ISA_AVX2, &p, &e), E_CHILD);
        cr_expect(strstr(e.msg, cases[i].says) != NULL, "%s", e.msg);
    }
}
