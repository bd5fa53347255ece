/* SPDX-License-Identifier: MIT
 *
 * Pin plans: from a policy and a number of threads to CPU numbers. Arithmetic over the list of
 * allowed CPUs; nothing here touches the machine. */
#include "topo.h"

#include "harness/util/units.h"

#include <ctype.h>

/* The first of the differences that is not 0. */
static int first_difference(const int *d, size_t n)
{
    size_t i = 0;

    while (i + 1 < n && d[i] == 0)
        i++;
    return d[i];
}

static int by_compact(const void *pa, const void *pb)
{
    const struct topo_cpu *a = pa, *b = pb;
    const int d[] = {a->sibling - b->sibling, b->kind - a->kind, a->core - b->core,
                     a->cpu - b->cpu};

    return first_difference(d, ARRAY_LEN(d));
}

static int by_scatter(const void *pa, const void *pb)
{
    const struct topo_cpu *a = pa, *b = pb;
    const int d[] = {a->sibling - b->sibling,     b->kind - a->kind,       a->turn - b->turn,
                     a->node_rank - b->node_rank, a->package - b->package, a->cpu - b->cpu};

    return first_difference(d, ARRAY_LEN(d));
}

/* A word of --pin: which CPUs, and in which order threads get them. */
struct policy {
    const char *word;
    int (*order)(const void *, const void *);
    bool fast, slow; /* cores of the fastest kind; of the others */
};
static const struct policy policies[] = {
    {"compact", by_compact, true, true},
    {"scatter", by_scatter, true, true},
    {"p-cores", by_compact, true, false},
    {"e-cores", by_compact, false, true},
};

static enum status plan_policy(const struct topo *t, const struct policy *p, int threads, int *cpus,
                               struct err *e)
{
    const bool all = p->fast && p->slow;
    int n, kept = 0, fastest = 0;
    const struct topo_cpu *const allowed = topo_cpus(t, &n);
    struct topo_facts f;

    topo_facts(t, &f);
    /* Elsewhere both words would name all cores, or none. */
    if (!all && f.kinds < 2)
        return fail(e, E_UNSUPPORTED,
                    "--pin %s: the cores allowed here are of one kind  -> use --pin compact",
                    p->word);
    struct topo_cpu *const some = need_room((size_t)n + 1, sizeof(*some));
    for (int i = 0; i < n; i++)
        fastest = max_int(fastest, allowed[i].kind);
    for (int i = 0; i < n; i++)
        if (allowed[i].kind == fastest ? p->fast : p->slow)
            some[kept++] = allowed[i];
    qsort(some, (size_t)kept, sizeof(*some), p->order);
    for (int i = 0; i < min_int(threads, kept); i++)
        cpus[i] = some[i].cpu;
    free(some);
    if (threads <= kept)
        return OK;
    return all ? fail(e, E_USAGE,
                      "%d threads wanted, %d CPU%s allowed (cpuset %s)  -> use --threads %d, or "
                      "--pin none to oversubscribe knowingly",
                      threads, n, plural(n), f.cpuset, n)
               : fail(e, E_USAGE,
                      "%d threads wanted, --pin %s has %d CPU%s  -> use --threads %d, or "
                      "--pin compact",
                      threads, p->word, kept, plural(kept), kept);
}

/* NULL if it is not allowed. */
static const struct topo_cpu *find_cpu(const struct topo *t, int cpu)
{
    int n;
    const struct topo_cpu *const c = topo_cpus(t, &n);

    for (int i = 0; i < n; i++)
        if (c[i].cpu == cpu)
            return &c[i];
    return NULL;
}

bool topo_mixed(const struct topo *t, const int *cpus, int n)
{
    const struct topo_cpu *before = NULL, *c;

    for (int i = 0; i < n; i++)
        if ((c = find_cpu(t, cpus[i]))) {
            if (before && c->kind != before->kind)
                return true;
            before = c;
        }
    return false;
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
            if (!find_cpu(t, cpu))
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
            threads, list, n, plural(n), n);
    if (st == OK)
        memcpy(cpus, named, (size_t)threads * sizeof(*cpus));
    free(named);
    return st;
}

enum status topo_plan(const struct topo *t, const char *policy, int threads, int *cpus,
                      struct err *e)
{
    CHECK(threads >= 1);
    for (size_t i = 0; i < ARRAY_LEN(policies); i++)
        if (strcmp(policy, policies[i].word) == 0)
            return plan_policy(t, &policies[i], threads, cpus, e);
    if (strcmp(policy, "none") != 0)
        return plan_list(t, policy, threads, cpus, e);
    for (int i = 0; i < threads; i++)
        cpus[i] = -1;
    return OK;
}
