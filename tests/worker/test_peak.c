/* SPDX-License-Identifier: MIT
 *
 * The peak loops do the work that they report, and the answer crosses the process boundary
 * unchanged. No test depends on the machine's speed, only on its upper limit. */
#include "harness/machine/env_row.h"
#include "harness/worker/peak_child.h"
#include "tests/support/compared.h"
#include "tests/support/failure.h"

static struct topo *machine(void)
{
    struct topo *t;

    MUST(topo_open(&t, NULL, &failure));
    return kept(t);
}

/* ---- loops -------------------------------------------------------------------------------- */

Test(peak, multiply_adds_reach_their_fixed_point)
{
    for (enum isa isa = 0; isa <= cpu_isa(); isa++) {
        const double early = peak_loops[isa]->fma(2), late = peak_loops[isa]->fma(1000);
        cr_expect(fabs(early - 1) > 0.01, "%s: %g after two steps", isa_name[isa], early);
        cr_expect(fabs(late - 1) < 1e-4, "%s: %g", isa_name[isa], late);
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
            cr_assert_eq(peak_loops[isa]->read(buf, bytes, 1 + w % 2), buf[w], "%s word %zu",
                         isa_name[isa], w);
        }
    free(buf);
}

/* Each level has a column of its own. */
Test(peak, columns_of_levels)
{
    struct env_row row = {0};
    struct peaks p = {0};

    for (enum isa isa = 0; isa < ISA_COUNT; isa++)
        p.flops[isa] = 1 + isa;
    env_row_peaks(&row, &p);
    cr_expect_eq(row.peak_flop_per_s_ref, 1);
#if defined(__aarch64__)
    cr_expect_eq(row.peak_flop_per_s_neon, 1 + ISA_NEON);
#else
    NUMBERS({row.peak_flop_per_s_avx2, 1 + ISA_AVX2}, {row.peak_flop_per_s_avx512, 1 + ISA_AVX512},
            {row.peak_flop_per_s_bf16, 1 + ISA_AVX512_BF16},
            {row.peak_flop_per_s_amx_bf16, 1 + ISA_AMX_BF16});
#endif
}

/* ---- measuring ---------------------------------------------------------------------------- */

static void expect_plausible(const struct peaks *p, int threads, enum isa most)
{
    const double levels[] = {p->l1, p->l2, p->l3, p->dram};

    cr_expect_eq(p->threads, threads);
    for (enum isa isa = 0; isa < ISA_COUNT; isa++)
        if (isa <= most)
            cr_expect(p->flops[isa] > 0 && p->flops[isa] < 1e14, "%s: %g", isa_name[isa],
                      p->flops[isa]);
        else
            cr_expect_eq(p->flops[isa], 0);
    for (size_t i = 0; i < ARRAY_LEN(levels); i++)
        cr_expect(levels[i] == 0 || (levels[i] > 0 && levels[i] < 1e15), "level %zu: %g", i + 1,
                  levels[i]);
    cr_expect_gt(p->dram, 0);
}

Test(peak, in_process, .timeout = 120)
{
    struct topo *const t = machine();
    struct topo_facts f;
    struct peaks p;
    int cpus[2], n;

    topo_facts(t, &f);
    n = min_int(2, f.allowed_cpus);
    MUST(topo_plan(t, "compact", n, cpus, &failure));
    MUST(peak_run_in_process(t, n, cpus, PEAK_TIME_S, &p, &failure));
    expect_plausible(&p, n, cpu_isa());
    NUMBERS({topo_where(t), cpus[0]}, {p.l3 > 0, f.l3_bytes > 0});
}

Test(peak, unpinned_below_a_mask, .timeout = 120)
{
    struct topo *const t = machine();
    struct peaks p;
    const int cpus[] = {-1, -1, -1};

    cpu_limit(ISA_BASE);
    MUST(peak_run_in_process(t, 3, cpus, PEAK_TIME_S, &p, &failure));
    expect_plausible(&p, 3, ISA_BASE);
}

Test(peak, no_time_for_far_memory, .timeout = 120)
{
    struct topo *const t = machine();
    struct peaks p;
    const int cpus[] = {-1};

    MUST(peak_run_in_process(t, 1, cpus, 1e-3, &p, &failure));
    cr_expect_eq(p.dram, 0);
    cr_expect_gt(p.l1, 0);
}

Test(peak, a_cpu_that_is_not_there, .timeout = 240)
{
    struct topo *const t = machine();
    struct peaks p;
    const int cpus[] = {100000};

    cr_expect_eq(peak_run_in_process(t, 1, cpus, PEAK_TIME_S, &p, &failure), E_UNSUPPORTED);
    cr_expect(strstr(failure.msg, "CPU 100000") != NULL, "%s", failure.msg);
}

/* ---- across the boundary ------------------------------------------------------------------ */

/* Children of this build, or of `program`. */
static struct child_setup setup_of(const char *const program[2])
{
    const struct options o = {.isolate = ISOLATE_EXEC};
    struct child_setup s;

    cr_assert_eq(child_setup_open(&s, &o, NULL), OK);
    s.launch = program;
    return s;
}

Test(peak, in_a_child, .timeout = 120)
{
    struct topo *const t = machine();
    struct topo_facts f;
    struct peaks p;
    const char *const bench[] = {getenv("BENCH"), NULL};
    int cpus[2], n;

    cr_assert_not_null(bench[0], "BENCH must name the program under test");
    struct child_setup setup = setup_of(bench);
    topo_facts(t, &f);
    n = min_int(2, f.allowed_cpus);
    MUST(topo_plan(t, "compact", n, cpus, &failure));
    MUST(peaks_measure(&setup, n, cpus, ISA_BASE, PEAK_TIME_S, &p, &failure));
    expect_plausible(&p, n, ISA_BASE);
    cpus[0] = cpus[1] = -1;
    MUST(peaks_measure(&setup, n, cpus, ISA_COUNT - 1, PEAK_TIME_S, &p, &failure));
    expect_plausible(&p, n, cpu_isa());
    child_setup_close(&setup);
}

Test(peak, children_that_are_no_help, .timeout = 240)
{
    const int cpus[] = {0};

    EACH_TEXT (program, "/nowhere/bench", "/bin/false", "/bin/echo") {
        const char *const words[] = {program, NULL};
        struct child_setup setup = setup_of(words);
        struct peaks p;
        struct err e = {""};
        cr_expect_eq(peaks_measure(&setup, 1, cpus, ISA_COUNT - 1, PEAK_TIME_S, &p, &e), E_CHILD,
                     "%s", program);
        HAS(e.msg, "the peak measurement");
        child_setup_close(&setup);
    }
}

/* A child whose answer lacks a number, or has an invalid one. */
Test(peak, answers_that_are_no_help, .timeout = 240)
{
    static const char *const answers[] = {
        "threads 1\nref 1\navx2 1\navx512 1\nl1 1\nl2 1\nl3 1\n",
        "threads 2\nref 1\navx2 1\navx512 1\nl1 1\nl2 1\nl3 1\ndram 1\n",
        "threads 1\nref -1\navx2 1\navx512 1\nl1 1\nl2 1\nl3 1\ndram 1\n",
        "threads 1\nref nan\navx2 1\navx512 1\nl1 1\nl2 1\nl3 1\ndram 1\n",
    };
    const int cpus[] = {0};

    for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
        char script[512];
        /* "cell 3 4 ROLE" follow the script's words. */
        snprintf(script, sizeof(script),
                 "printf '" PROTOCOL_HELLO "\n%send\n' >&3; read peaks <&3; read close <&3",
                 answers[i]);
        const char *const words[] = {"/bin/sh", "-c", script, NULL};
        struct child_setup setup = setup_of(words);
        struct peaks p;
        struct err e = {""};
        cr_expect_eq(peaks_measure(&setup, 1, cpus, ISA_COUNT - 1, PEAK_TIME_S, &p, &e), E_CHILD,
                     "answer %zu", i);
        HAS(e.msg, "is incomplete");
        child_setup_close(&setup);
    }
}

/* Each level holds what it can; one that was not measured is passed over. */
Test(peak, least_time_of_reads)
{
    const struct peaks p = {.threads = 2, .l1 = 100, .l2 = 50, .dram = 10}, none = {.threads = 2};
    const struct topo_facts t = {.l1d_bytes = 10, .l2_bytes = 40, .l3_bytes = 1000, .l3_count = 1};
    const struct {
        double bytes, s;
        const char *level;
    } want[] = {{20, 0.2, "L1"}, {21, 0.22, "L2"}, {101, 1.9, "memory"}};
    const char *level;

    for (size_t i = 0; i < ARRAY_LEN(want); i++) {
        cr_expect_float_eq(peaks_read_s(&p, &t, want[i].bytes, &level), want[i].s, 1e-12);
        cr_expect_str_eq(level, want[i].level);
    }
    cr_expect_eq(peaks_read_s(&none, &t, 1, &level), 0);
    cr_expect_str_eq(level, "");
}
