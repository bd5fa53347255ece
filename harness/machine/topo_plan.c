/* SPDX-License-Identifier: MIT
 *
 * Pin plans: from a policy and a number of threads to CPU numbers. Arithmetic over the list of
 * allowed CPUs; nothing here touches the machine. */
#include "topo.h"

#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static int by_compact(const void *pa, const void *pb)
{
    const struct topo_cpu *a = pa, *b = pb;

    if (a->sibling != b->sibling)
        return a->sibling - b->sibling;
    if (a->kind != b->kind)
        return b->kind - a->kind;
    return a->core != b->core ? a->core - b->core : a->cpu - b->cpu;
}

static int by_scatter(const void *pa, const void *pb)
{
    const struct topo_cpu *a = pa, *b = pb;

    if (a->sibling != b->sibling)
        return a->sibling - b->sibling;
    if (a->kind != b->kind)
        return b->kind - a->kind;
    if (a->turn != b->turn)
        return a->turn - b->turn;
    if (a->node_rank != b->node_rank)
        return a->node_rank - b->node_rank;
    return a->package != b->package ? a->package - b->package : a->cpu - b->cpu;
}

/* Of cores that are unlike, the fastest, and all others. */
enum cores { P_CORES, E_CORES };
static const char *const cores_policy[] = {"p-cores", "e-cores"};

/* The fastest kind of an allowed CPU. */
static int fastest_kind(const struct topo *t)
{
    int n, fastest = 0;
    const struct topo_cpu *const all = topo_cpus(t, &n);

    for (int i = 0; i < n; i++)
        fastest = max_int(fastest, all[i].kind);
    return fastest;
}

/* The CPUs of these cores into `out`, which has room for all; returns their number. */
static int select_cores(const struct topo *t, enum cores which, struct topo_cpu *out)
{
    const int fastest = fastest_kind(t);
    int n, kept = 0;
    const struct topo_cpu *const all = topo_cpus(t, &n);

    for (int i = 0; i < n; i++)
        if ((all[i].kind == fastest) == (which == P_CORES))
            out[kept++] = all[i];
    return kept;
}

/* Only where cores are unlike: elsewhere both words would name all cores, or none. */
static void put_sorted(int *cpus, int threads, struct topo_cpu *from, int n,
                       int (*order)(const void *, const void *))
{
    qsort(from, (size_t)n, sizeof(*from), order);
    for (int i = 0; i < threads; i++)
        cpus[i] = from[i].cpu;
}

static enum status plan_kind(const struct topo *t, enum cores which, int threads, int *cpus,
                             struct err *e)
{
    struct topo_facts f;
    int n;

    topo_facts(t, &f);
    if (f.kinds < 2)
        return fail(e, E_UNSUPPORTED,
                    "--pin %s: the cores allowed here are of one kind  -> use --pin compact",
                    cores_policy[which]);
    topo_cpus(t, &n);
    struct topo_cpu *const some = need_room((size_t)n, sizeof(*some));
    n = select_cores(t, which, some);
    if (threads <= n)
        put_sorted(cpus, threads, some, n, by_compact);
    free(some);
    return threads <= n ? OK
                        : fail(e, E_USAGE,
                               "%d threads wanted, --pin %s has %d CPU%s  -> use --threads %d, or "
                               "--pin compact",
                               threads, cores_policy[which], n, n == 1 ? "" : "s", n);
}

bool topo_mixed(const struct topo *t, const int *cpus, int n)
{
    int all, kind = -1;
    const struct topo_cpu *const c = topo_cpus(t, &all);

    for (int i = 0; i < n; i++)
        for (int k = 0; k < all; k++)
            if (c[k].cpu == cpus[i]) {
                if (kind >= 0 && c[k].kind != kind)
                    return true;
                kind = c[k].kind;
            }
    return false;
}

static enum status plan_sorted(const struct topo *t, int (*order)(const void *, const void *),
                               int threads, int *cpus, struct err *e)
{
    int n;
    const struct topo_cpu *const all = topo_cpus(t, &n);

    if (threads > n) {
        struct topo_facts f;
        topo_facts(t, &f);
        return fail(e, E_USAGE,
                    "%d threads wanted, %d CPU%s allowed (cpuset %s)  -> use --threads %d, or "
                    "--pin none to oversubscribe knowingly",
                    threads, n, n == 1 ? "" : "s", f.cpuset, n);
    }
    struct topo_cpu *const sorted = need_room((size_t)n, sizeof(*sorted));
    memcpy(sorted, all, (size_t)n * sizeof(*sorted));
    put_sorted(cpus, threads, sorted, n, order);
    free(sorted);
    return OK;
}

/* Parse digits at *text and move it after them; -1 if there are none or too many. */
static int read_number(const char **text)
{
    char *end;
    long n;

    if (!isdigit((unsigned char)**text))
        return -1;
    n = strtol(*text, &end, 10);
    *text = end;
    return n < INT_MAX ? (int)n : -1;
}

static bool is_allowed(const struct topo *t, int cpu)
{
    int n;
    const struct topo_cpu *const c = topo_cpus(t, &n);

    for (int i = 0; i < n; i++)
        if (c[i].cpu == cpu)
            return true;
    return false;
}

static enum status bad_list(const char *list, struct err *e)
{
    return fail(e, E_USAGE,
                "--pin \"%s\" is neither a policy nor a list of CPUs  -> use compact, scatter, "
                "p-cores, e-cores, none, or a list such as 0,2-3",
                list);
}

static enum status not_allowed(const struct topo *t, const char *list, int cpu, struct err *e)
{
    struct topo_facts f;

    topo_facts(t, &f);
    return fail(e, E_USAGE,
                "--pin %s: CPU %d is not allowed (cpuset %s)  -> name CPUs of %s, or --pin compact",
                list, cpu, f.cpuset, f.cpuset);
}

/* "0,2-3" in the order written, into named[0..*n). No CPU twice and only allowed ones, so `room`
 * for all allowed CPUs is enough. */
static enum status read_list(const struct topo *t, const char *list, int *named, int room, int *n,
                             struct err *e)
{
    const char *p = list;

    for (*n = 0;; p++) {
        const int lo = read_number(&p);
        int hi = lo;

        if (lo >= 0 && *p == '-') {
            p++;
            hi = read_number(&p);
        }
        if (lo < 0 || hi < lo || (*p && *p != ','))
            return bad_list(list, e);
        for (int cpu = lo; cpu <= hi; cpu++) {
            if (!is_allowed(t, cpu))
                return not_allowed(t, list, cpu, e);
            for (int i = 0; i < *n; i++)
                if (named[i] == cpu)
                    return fail(e, E_USAGE,
                                "--pin %s names CPU %d twice  -> name each CPU once, or use --pin "
                                "none to oversubscribe knowingly",
                                list, cpu);
            CHECK(*n < room);
            named[(*n)++] = cpu;
        }
        if (!*p)
            return OK;
    }
}

/* Thread i runs on the i-th CPU as written; a list may name more CPUs than there are threads. */
static enum status plan_list(const struct topo *t, const char *list, int threads, int *cpus,
                             struct err *e)
{
    int room, n;

    topo_cpus(t, &room);
    int *const named = need_room((size_t)max_int(room, 1), sizeof(*named));
    enum status st = read_list(t, list, named, room, &n, e);
    if (st == OK && n < threads)
        st = fail(
            e, E_USAGE,
            "%d threads wanted, --pin %s names %d CPU%s  -> use --threads %d, or name more CPUs",
            threads, list, n, n == 1 ? "" : "s", n);
    if (st == OK)
        memcpy(cpus, named, (size_t)threads * sizeof(*cpus));
    free(named);
    return st;
}

enum status topo_plan(const struct topo *t, const char *policy, int threads, int *cpus,
                      struct err *e)
{
    CHECK(threads >= 1);
    if (strcmp(policy, "compact") == 0)
        return plan_sorted(t, by_compact, threads, cpus, e);
    if (strcmp(policy, "scatter") == 0)
        return plan_sorted(t, by_scatter, threads, cpus, e);
    if (strcmp(policy, cores_policy[P_CORES]) == 0)
        return plan_kind(t, P_CORES, threads, cpus, e);
    if (strcmp(policy, cores_policy[E_CORES]) == 0)
        return plan_kind(t, E_CORES, threads, cpus, e);
    if (strcmp(policy, "none") != 0)
        return plan_list(t, policy, threads, cpus, e);
    for (int i = 0; i < threads; i++)
        cpus[i] = -1;
    return OK;
}
