/* SPDX-License-Identifier: MIT
 *
 * Small functions over POSIX clocks and getrusage. */
#include "clock.h"

#include "variants/base/base.h"

#include <errno.h>
#include <sys/resource.h>
#include <time.h>

static int64_t read_ns(clockid_t id)
{
    struct timespec t;

    CHECK(clock_gettime(id, &t) == 0);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t clock_wall_ns(void) { return read_ns(CLOCK_MONOTONIC); }

int64_t clock_cpu_ns(void) { return read_ns(CLOCK_THREAD_CPUTIME_ID); }

int64_t clock_switches(void)
{
    struct rusage u;

    CHECK(getrusage(RUSAGE_SELF, &u) == 0);
    return u.ru_nivcsw;
}

void clock_sleep_ms(double ms)
{
    if (!(ms > 0))
        return;
    const int64_t until = clock_wall_ns() + (int64_t)(ms * 1e6);
    const struct timespec t = {.tv_sec = until / 1000000000, .tv_nsec = until % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
        ;
}

/* The wall clock is read last at the start and first at the stop: the other two readings are system
 * calls, whose cost must not count. */
struct clock_mark clock_start(void)
{
    struct clock_mark m;

    m.switches = clock_switches();
    m.cpu_ns = clock_cpu_ns();
    m.wall_ns = clock_wall_ns();
    return m;
}

struct clock_span clock_stop(const struct clock_mark *start)
{
    const int64_t wall = clock_wall_ns(), cpu = clock_cpu_ns(), switches = clock_switches();

    return (struct clock_span){
        .wall_ns = (double)(wall - start->wall_ns),
        .cpu_ns = (double)(cpu - start->cpu_ns),
        .switches = (uint32_t)(switches - start->switches),
    };
}

struct clock_facts clock_facts(void)
{
    enum { BATCHES = 20, READINGS = 1000 };
    struct clock_facts f = {0};

    for (int b = 0; b < BATCHES; b++) { /* the fastest batch was not interrupted */
        const int64_t start = clock_wall_ns();
        int64_t last = start;
        for (int i = 0; i < READINGS; i++) {
            const int64_t now = clock_wall_ns();
            const double step = (double)(now - last);
            if (step > 0 && (f.resolution_ns == 0 || step < f.resolution_ns))
                f.resolution_ns = step;
            last = now;
        }
        const double each = (double)(last - start) / READINGS;
        if (b == 0 || each < f.overhead_ns)
            f.overhead_ns = each;
    }
    return f;
}
