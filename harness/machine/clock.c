/* SPDX-License-Identifier: MIT
 *
 * Small functions over POSIX clocks and getrusage. */
#include "clock.h"

#include <errno.h>
#include <omp.h>
#include <pthread.h>
#include <sys/resource.h>

int64_t clock_read_ns(clockid_t id)
{
    struct timespec t;

    return clock_gettime(id, &t) == 0 ? (int64_t)t.tv_sec * 1000000000 + t.tv_nsec : CLOCK_GONE;
}

int64_t clock_wall_ns(void)
{
    const int64_t ns = clock_read_ns(CLOCK_MONOTONIC);

    CHECK(ns != CLOCK_GONE);
    return ns;
}

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

/* The clocks of the threads that the team has now: GNU's runtime ends those that a smaller region
 * does not need. */
static int find_team(const struct clocks *c)
{
    int known = 0;

#pragma omp parallel num_threads(c->threads) reduction(+ : known)
    known += pthread_getcpuclockid(pthread_self(), &c->id[omp_get_thread_num()]) == 0;
    return known;
}

enum status clocks_open(struct clocks *c, int threads, struct err *e)
{
    *c = (struct clocks){.threads = threads};
    c->id = need_room((size_t)threads, sizeof(*c->id));
    c->cpu_ns = need_room((size_t)threads, sizeof(*c->cpu_ns));
    const int known = find_team(c);
    return known == threads
               ? OK
               : fail(e, E_UNSUPPORTED, "CPU time is known of %d of %d threads", known, threads);
}

void clocks_close(struct clocks *c)
{
    free(c->id);
    free(c->cpu_ns);
    *c = (struct clocks){0};
}

static bool read_team(struct clocks *c)
{
    bool all = true;

    for (int t = 0; t < c->threads; t++) {
        c->cpu_ns[t] = clock_read_ns(c->id[t]);
        all = all && c->cpu_ns[t] != CLOCK_GONE;
    }
    return all;
}

/* The wall clock is read last at the start and first at the stop: the other readings are system
 * calls, whose cost must not count. */
void clocks_start(struct clocks *c)
{
    c->switches = clock_switches();
    if (!read_team(c)) {
        find_team(c);
        read_team(c);
    }
    c->wall_ns = clock_wall_ns();
}

struct clock_span clocks_stop(const struct clocks *c)
{
    const int64_t wall = clock_wall_ns();
    int64_t most = 0;

    for (int t = 0; t < c->threads; t++) {
        const int64_t now = clock_read_ns(c->id[t]), cpu = now - c->cpu_ns[t];
        if (now != CLOCK_GONE && c->cpu_ns[t] != CLOCK_GONE && cpu > most)
            most = cpu;
    }
    return (struct clock_span){
        .wall_ns = (double)(wall - c->wall_ns),
        .cpu_ns = (double)most,
        .switches = (uint32_t)(clock_switches() - c->switches),
    };
}

/* Each multiplication waits for the one before, and nothing touches memory: neither caches nor a thread
 * on the same core change the number of cycles much. */
double clock_spin_ns(void)
{
    enum { TURNS = 3, STEPS = 8192 };
    double fastest = INFINITY;

    for (int t = 0; t < TURNS; t++) {
        uint64_t x = 1;
        const int64_t start = clock_wall_ns();
        for (int i = 0; i < STEPS; i++) {
            x *= 6364136223846793005;
            __asm__ volatile("" : "+r"(x)); /* the compiler must not foresee it */
        }
        fastest = fmin(fastest, (double)(clock_wall_ns() - start));
    }
    return fastest;
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
