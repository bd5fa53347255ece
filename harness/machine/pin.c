/* SPDX-License-Identifier: MIT
 *
 * Pinning of threads. */
#include "pin.h"

#include "harness/util/fileio.h"
#include "variants/base/cpu.h"

#include <omp.h>
#include <pthread.h>

enum { STACK_KIB = 128 }; /* what kernels and libraries need of a thread */

/* The CPU that each thread runs on after pinning, and what it has. */
struct place {
    int want, is;     /* CPU numbers */
    size_t stack_kib; /* 0 = unknown */
    enum status st;
    struct err err;
};

static size_t stack_kib(void)
{
    pthread_attr_t of;
    size_t bytes = 0;

    if (pthread_getattr_np(pthread_self(), &of) == 0) {
        pthread_attr_getstacksize(&of, &bytes);
        pthread_attr_destroy(&of);
    }
    return bytes >> 10;
}

static void take_places(const struct topo *topo, struct place *p, int n,
                        int (*where)(const struct topo *))
{
    omp_set_dynamic(0);
#pragma omp parallel num_threads(n)
    {
        struct place *mine = &p[omp_get_thread_num()];
        cpu_flush_denormals();
        mine->st = topo_pin(topo, mine->want, &mine->err);
        mine->stack_kib = stack_kib();
#pragma omp barrier
        mine->is = where(topo);
    }
}

static enum status check(const struct place *p, int n, struct err *e)
{
    for (int t = 0; t < n; t++) {
        if (p[t].is == -2)
            return fail(e, E_UNSUPPORTED, "%d threads wanted, OpenMP gave %d  -> lower --threads",
                        n, t);
        if (p[t].st != OK) {
            *e = p[t].err;
            return p[t].st;
        }
        if (p[t].stack_kib > 0 && p[t].stack_kib < STACK_KIB)
            return fail(e, E_USAGE,
                        "thread %d has %zu KiB of stack, kernels need %d  -> raise OMP_STACKSIZE, "
                        "or ulimit -s",
                        t, p[t].stack_kib, STACK_KIB);
        if (p[t].want >= 0 && p[t].is != p[t].want)
            return fail(e, E_CHILD, "thread %d was put on CPU %d and runs on %d  -> use --pin none",
                        t, p[t].want, p[t].is);
    }
    return OK;
}

enum status pin_team(struct team *t, const struct topo *topo, const char *policy, int threads,
                     struct err *e)
{
    return pin_team_seen(t, topo, policy, threads, topo_where, e);
}

enum status pin_team_seen(struct team *t, const struct topo *topo, const char *policy, int threads,
                          int (*where)(const struct topo *), struct err *e)
{
    struct place *p = need_room((size_t)threads, sizeof(*p));
    int *cpus = need_room((size_t)threads, sizeof(*cpus));

    enum status st = topo_plan(topo, policy, threads, cpus, e);
    for (int i = 0; i < threads; i++)
        p[i] = (struct place){.want = cpus[i], .is = -2};
    if (st == OK) {
        take_places(topo, p, threads, where);
        st = check(p, threads, e);
    }
    *t = (struct team){.first_cpu = cpus[0]};
    for (int i = 0; i < threads; i++) {
        t->seen += p[i].is != -2;
        cpus[i] = p[i].is;
    }
    t->mixed = topo_mixed(topo, cpus, threads);
    topo_format_cpus(cpus, threads, t->cpus, sizeof(t->cpus));
    free(p);
    free(cpus);
    return st;
}

double vm_hwm_bytes(void)
{
    char kib[64];

    return file_key("/proc/self/status", "VmHWM", kib, sizeof(kib)) ? strtod(kib, NULL) * 1024
                                                                    : NAN;
}

void vm_hwm_restart(void)
{
    FILE *f = fopen("/proc/self/clear_refs", "we");

    if (!f)
        return;
    fputc('5', f);
    fclose(f);
}
