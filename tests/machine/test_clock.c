/* SPDX-License-Identifier: MIT
 *
 * The clocks, and the pause between blocks. */
#include "harness/machine/clock.h"

#include "tests/support/failure.h"
#include "tests/support/fake_target.h"

#include <omp.h>

static struct clocks open_clocks(int threads)
{
    struct clocks c;

    MUST(clocks_open(&c, threads, &failure));
    return c;
}

Test(clock, pause_takes_wall_time_and_no_cpu_time)
{
    struct clocks c = open_clocks(1);

    clocks_start(&c);
    clock_sleep_ms(20);
    const struct clock_span span = clocks_stop(&c);
    clocks_close(&c);

    cr_expect_geq(span.wall_ns, 20e6);
    cr_expect_lt(span.cpu_ns, 10e6);
    cr_expect_lt(span.cpu_ns, span.wall_ns);
}

Test(clock, work_takes_cpu_time)
{
    struct clocks c = open_clocks(1);

    clocks_start(&c);
    while (clocks_stop(&c).cpu_ns < 5e6)
        ;
    const struct clock_span span = clocks_stop(&c);
    clocks_close(&c);

    cr_expect_geq(span.cpu_ns, 5e6);
    cr_expect_geq(span.wall_ns, 0.9 * 5e6);
}

static void spend(double ns)
{
    struct timespec t, u;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    do
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &u);
    while ((double)(u.tv_sec - t.tv_sec) * 1e9 + (double)(u.tv_nsec - t.tv_nsec) < ns);
}

/* 20 ms of the second thread and 5 ms of the first: not their sum. */
Test(clock, a_team_takes_what_its_busiest_thread_takes)
{
    struct clocks c = open_clocks(2);

    clocks_start(&c);
#pragma omp parallel num_threads(2)
    spend(omp_get_thread_num() == 1 ? 20e6 : 5e6);
    const struct clock_span span = clocks_stop(&c);
    clocks_close(&c);

    cr_expect(span.cpu_ns >= 20e6 && span.cpu_ns < 25e6, "%g ms", span.cpu_ns / 1e6);
}

/* A smaller region ends threads, in a block and between blocks. */
Test(clock, teams_change_their_threads)
{
    struct clocks c = open_clocks(4);

    for (int block = 0; block < 3; block++) {
        clocks_start(&c);
        for (int n = 4; n >= 1; n--)
#pragma omp parallel num_threads(n)
            spend(1e6);
        const struct clock_span span = clocks_stop(&c);
        cr_expect(span.cpu_ns >= 4e6 && span.cpu_ns < 8e6, "%g ms", span.cpu_ns / 1e6);
    }
    clocks_close(&c);
}

/* Switches are counted from the start: here, from one that was a million ago. */
Test(clock, switches_since_the_start)
{
    const struct clock_span span =
        clocks_stop(&(struct clocks){.switches = clock_switches() - 1000000});

    cr_expect(span.switches >= 1000000 && span.switches < 1001000, "%u", span.switches);
}

Test(clock, gap_separates_blocks)
{
    struct schedule s = usual_schedule;
    struct bed b = {.fake = {{.call_ns = 1e6}}};

    s.gap_ms = 2;
    const int64_t start = clock_wall_ns();
    cr_assert_eq(measure_fakes(&b, 1, &s), OK);
    cr_expect_geq(clock_wall_ns() - start, 16 * 2000000, "before the warm-up and 15 blocks");
}

Test(clock, facts)
{
    const struct clock_facts f = clock_facts();

    cr_expect(f.overhead_ns > 0 && f.overhead_ns < 1e5, "overhead %g ns", f.overhead_ns);
    cr_expect(f.resolution_ns >= 1 && f.resolution_ns < 1e7, "resolution %g ns", f.resolution_ns);
}

/* A spin that lasts longer at a lower clock rate: that of a few thousand cycles or more, much the same
 * each time. */
Test(clock, spins_last_alike)
{
    double least = clock_spin_ns(), most = least;

    for (int i = 0; i < 20; i++) {
        const double ns = clock_spin_ns();
        least = ns < least ? ns : least;
        most = ns > most ? ns : most;
    }
    cr_expect_gt(least, 1e3);
    cr_expect_lt(least, 1e6);
    cr_expect_lt(most, 50 * least, "%g to %g ns", least, most); /* a machine may be busy */
}
