/* SPDX-License-Identifier: MIT
 *
 * Pin plans on synthetic machines of any size, and pinning itself on the actual machine. */
#include "harness/machine/topo.h"
#include "tests/support/program.h"

#include <sched.h>

enum { MOST = 256 };

static struct topo *machine(const char *synthetic)
{
    struct topo *t;

    MUST(topo_open(&t, synthetic, &failure));
    return kept(t);
}

/* `want` as in "0,2,4". */
static void expect_plan(const struct topo *t, const char *policy, int threads, const char *want)
{
    int cpus[MOST];
    char is[256] = "";

    MUST(topo_plan(t, policy, threads, cpus, &failure));
    for (int i = 0; i < threads; i++)
        text_append(is, sizeof(is), "%s%d", i ? "," : "", cpus[i]);
    cr_expect_str_eq(is, want, "%s of %d: %s, not %s", policy, threads, is, want);
}

static void expect_no_plan(const struct topo *t, const char *policy, int threads, enum status st,
                           const char *message)
{
    int cpus[MOST];

    cr_expect_eq(topo_plan(t, policy, threads, cpus, &failure), st);
    cr_expect_str_eq(failure.msg, message, "%s", failure.msg);
}

/* ---- shapes ------------------------------------------------------------------------------- */

Test(topo, facts)
{
    static const struct {
        const char *synthetic;
        int packages, nodes, cores, cpus, smt;
    } shapes[] = {
        {"core:1 pu:1", 1, 1, 1, 1, 0},
        {"core:2 pu:1", 1, 1, 2, 2, 0},
        {"package:1 core:64 pu:1", 1, 1, 64, 64, 0},
        {"package:2 core:32 pu:2", 2, 1, 64, 128, 1},
        {"numa:2 core:32 pu:2", 1, 2, 64, 128, 1},
        {"package:2 numa:2 core:8 pu:1", 2, 4, 32, 32, 0},
    };

    for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
        const char *const of = shapes[i].synthetic;
        struct topo_facts f;
        topo_facts(machine(of), &f);
        const char *const all = kept_text(shapes[i].cpus > 1 ? "0-%d" : "%d", shapes[i].cpus - 1);
        NUMBERS_OF(of, {f.packages, shapes[i].packages}, {f.numa_nodes, shapes[i].nodes},
                   {f.cores, shapes[i].cores}, {f.cpus, shapes[i].cpus},
                   {f.allowed_cores, shapes[i].cores}, {f.allowed_cpus, shapes[i].cpus},
                   {f.smt, shapes[i].smt});
        cr_expect_str_eq(f.cpuset, all, "%s", of);
    }
}

Test(topo, caches_of_a_synthetic_machine)
{
    struct topo *const t = machine("l3:2(size=33554432) l2:4(size=1048576) l1:1(size=49152) core:1 "
                                   "pu:2");
    struct topo_facts f;

    topo_facts(t, &f);
    NUMBERS({f.l1d_bytes, 48u << 10}, {f.l2_bytes, 1u << 20}, {f.l3_bytes, 32u << 20},
            {f.l3_count, 2});
}

/* ---- plans -------------------------------------------------------------------------------- */

Test(topo, plan)
{
    expect_plan(machine("core:1 pu:1"), "compact", 1, "0");
    expect_plan(machine("core:1 pu:1"), "scatter", 1, "0");
    expect_plan(machine("core:2 pu:1"), "compact", 2, "0,1");
    expect_plan(machine("core:2 pu:1"), "none", 3, "-1,-1,-1");
    expect_plan(machine("core:2 pu:1"), "1", 1, "1");
    expect_plan(machine("core:2 pu:1"), "1,0", 2, "1,0");
    expect_plan(machine("core:8 pu:1"), "6-7,0,2-4", 5, "6,7,0,2,3");
    /* cores before hardware threads, in either numbering of the system */
    expect_plan(machine("core:4 pu:2"), "compact", 4, "0,2,4,6");
    expect_plan(machine("core:4 pu:2"), "compact", 6, "0,2,4,6,1,3");
    expect_plan(machine("core:4 pu:2(indexes=0,4,1,5,2,6,3,7)"), "compact", 6, "0,1,2,3,4,5");
    /* packages alternate first, then the nodes inside them */
    expect_plan(machine("numa:2 core:32 pu:2"), "compact", 3, "0,2,4");
    expect_plan(machine("numa:2 core:32 pu:2"), "scatter", 5, "0,64,2,66,4");
    expect_plan(machine("package:2 core:2 pu:2"), "scatter", 8, "0,4,2,6,1,5,3,7");
    expect_plan(machine("package:2 numa:2 core:2 pu:1"), "scatter", 8, "0,4,2,6,1,5,3,7");
    expect_plan(machine("package:1 core:64 pu:1"), "scatter", 3, "0,1,2");
}

Test(topo, every_policy_uses_each_cpu_once)
{
    struct topo *const t = machine("package:2 numa:2 core:16 pu:2");

    EACH_TEXT (policy, "compact", "scatter") {
        int cpus[128], used[128] = {0};
        MUST(topo_plan(t, policy, 128, cpus, &failure));
        for (int i = 0; i < 128; i++)
            used[cpus[i]]++;
        for (int i = 0; i < 128; i++)
            cr_expect_eq(used[i], 1, "%s: CPU %d used %d times", policy, i, used[i]);
    }
}

Test(topo, refuses)
{
    expect_no_plan(
        machine("core:2 pu:1"), "compact", 8, E_USAGE,
        "8 threads wanted, 2 CPUs allowed (cpuset 0-1)  -> use --threads 2, or --pin none to "
        "oversubscribe knowingly");
    expect_no_plan(
        machine("core:1 pu:1"), "scatter", 2, E_USAGE,
        "2 threads wanted, 1 CPU allowed (cpuset 0)  -> use --threads 1, or --pin none to "
        "oversubscribe knowingly");
    expect_no_plan(
        machine("core:4 pu:1"), "0-2", 4, E_USAGE,
        "4 threads wanted, --pin 0-2 names 3 CPUs  -> use --threads 3, or name more CPUs");
    expect_no_plan(
        machine("core:4 pu:1"), "0,4", 1, E_USAGE,
        "--pin 0,4: CPU 4 is not allowed (cpuset 0-3)  -> name CPUs of 0-3, or --pin compact");
    expect_no_plan(
        machine("core:4 pu:1"), "0-2,1", 1, E_USAGE,
        "--pin 0-2,1 names CPU 1 twice  -> name each CPU once, or use --pin none to oversubscribe "
        "knowingly");
}

Test(topo, malformed_lists)
{
    struct topo *const t = machine("core:4 pu:1");
    int cpus[MOST];

    EACH_TEXT (list, "", "dense", "0,", ",0", "0,,1", "1-0", "0-", "-1", "0 ", " 0", "99999999999",
               "0-1-2", "0,x", "+1", "0x1")
        REFUSED(topo_plan(t, list, 1, cpus, &failure), E_USAGE, list,
                "  -> use compact, scatter, p-cores, e-cores, none");
}

Test(topo, bad_description)
{
    struct topo *t;

    REFUSED(topo_open(&t, "teapots:3", &failure), E_USAGE, "teapots:3");
    cr_expect_null(t);
}

Test(topo, format_cpus)
{
    const int cpus[] = {8, 2, -1, 0, 1, 2, 3};
    char text[32], small[8];
    int sparse[8];

    topo_format_cpus(cpus, ARRAY_LEN(cpus), text, sizeof(text));
    cr_expect_str_eq(text, "0-3,8");
    topo_format_cpus(cpus + 2, 1, text, sizeof(text));
    cr_expect_str_eq(text, "");
    for (int i = 0; i < 8; i++)
        sparse[i] = 2 * i;
    topo_format_cpus(sparse, 8, small, sizeof(small));
    cr_expect_str_eq(small, "0,2,...");
}

Test(topo, no_acting_on_a_machine_that_is_not_this_one)
{
    struct topo *const t = machine("core:2 pu:1");

    REFUSED(topo_pin(t, 1, &failure), E_UNSUPPORTED, "  -> use --pin none");
    cr_expect_eq(topo_pin(t, -1, &failure), OK);
}

/* ---- this machine ------------------------------------------------------------------------- */

Test(topo, respects_affinity)
{
    struct topo *t = machine(NULL);
    struct topo_facts all, one;
    int n, got[2];
    const int last = (topo_cpus(t, &n))[n - 1].cpu;
    cpu_set_t set;

    topo_facts(t, &all);
    CPU_ZERO(&set);
    CPU_SET(last, &set);
    cr_assert_eq(sched_setaffinity(0, sizeof(set), &set), 0);
    t = machine(NULL);
    topo_facts(t, &one);
    const char *const name = kept_text("%d", last);
    NUMBERS({one.allowed_cpus, 1}, {one.allowed_cores, 1});
    cr_expect_eq(one.cpus, all.cpus, "what exists does not depend on what is allowed");
    cr_expect_str_eq(one.cpuset, name);
    cr_assert_eq(topo_plan(t, "compact", 1, got, &failure), OK);
    cr_expect_eq(got[0], last);
    cr_expect_eq(topo_plan(t, "compact", 2, got, &failure), E_USAGE);
}

/* After pinning, the thread has the CPUs that it was started with: all of them, and no others. */
Test(topo, unpinning_restores_the_affinity)
{
    struct topo *t = machine(NULL);
    int n;
    const struct topo_cpu *const cpu = topo_cpus(t, &n);
    cpu_set_t before, after, one;
    const int first = cpu[0].cpu, last = cpu[n - 1].cpu;

    cr_assert_eq(sched_getaffinity(0, sizeof(before), &before), 0);
    MUST(topo_pin(t, last, &failure));
    topo_unpin(t);
    cr_assert_eq(sched_getaffinity(0, sizeof(after), &after), 0);
    cr_expect(CPU_EQUAL(&before, &after), "%d CPUs of %d", CPU_COUNT(&after), CPU_COUNT(&before));

    if (n < 2) /* a single CPU: a narrower set does not exist */
        return;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    cr_assert_eq(sched_setaffinity(0, sizeof(one), &one), 0);
    t = machine(NULL);
    MUST(topo_pin(t, first, &failure));
    topo_unpin(t);
    cr_assert_eq(sched_getaffinity(0, sizeof(after), &after), 0);
    cr_expect(CPU_EQUAL(&one, &after), "%d CPUs of 1", CPU_COUNT(&after));
}

Test(topo, every_thread_runs_where_it_was_put)
{
    struct topo *const t = machine(NULL);
    int n, cpus[MOST], where[MOST], wrong = 0;

    topo_cpus(t, &n);
    n = min_int(n, MOST);
    MUST(topo_plan(t, "compact", n, cpus, &failure));
#pragma omp parallel num_threads(n) reduction(+ : wrong)
    {
        struct err mine;
        const int i = omp_get_thread_num();
        cpu_set_t set;

        wrong += topo_pin(t, cpus[i], &mine) != OK;
        for (int k = 0; k < 100; k++) {
            sched_yield();
            where[i] = topo_where(t);
            wrong += where[i] != cpus[i];
        }
        sched_getaffinity(0, sizeof(set), &set);
        wrong += CPU_COUNT(&set) != 1 || !CPU_ISSET(cpus[i], &set);
    }
    cr_expect_eq(wrong, 0, "%d observations of a thread on a CPU that is not its own", wrong);
}

/* The program itself, with an OpenMP runtime that binds its initial thread before main: it must
 * still see every CPU, and its children must inherit them all. */
Test(topo, sees_past_an_openmp_binding, .timeout = 240)
{
    struct topo_facts f;

#ifdef __clang__
    cr_skip_test("LLVM's OpenMP hides the affinity that it was started with");
#endif
    topo_facts(machine(NULL), &f);
    const char *const expected = kept_text("\nallowed_cpus,%d,\n", f.allowed_cpus);
    struct ran r = must_shell("OMP_PROC_BIND=true \"$BENCH\" topo --format csv");
    HAS(r.out.data, expected);
}

/* ---- machines with unlike cores, and masks ------------------------------------------------- */

/* Opened from a description in hwloc's own format: cores of `siblings` CPUs each, numbered in order; bits
 * of the masks are CPUs. */
struct described {
    int cores, siblings;
    unsigned allowed, fast; /* `fast` 0: the cores are alike */
};

static void put_object(FILE *f, const char *type, int number, unsigned set, const char *more)
{
    static int id = 100;

    fprintf(f,
            "<object type=\"%s\" os_index=\"%d\" gp_index=\"%d\" cpuset=\"0x%x\" "
            "complete_cpuset=\"0x%x\" nodeset=\"0x1\" complete_nodeset=\"0x1\" %s",
            type, number, id++, set, set, more);
}

static void put_machine(FILE *f, const struct described *d)
{
    const unsigned all = (1U << (d->cores * d->siblings)) - 1;

    const char *const allowed =
        kept_text("allowed_cpuset=\"0x%x\" allowed_nodeset=\"0x1\">", d->allowed);
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n"
          "<topology version=\"2.0\">",
          f);
    put_object(f, "Machine", 0, all, allowed);
    put_object(f, "NUMANode", 0, all, "local_memory=\"1073741824\"/>");
    for (int i = 0, cpu = 0; i < d->cores; i++) {
        put_object(f, "Core", i, ((1U << d->siblings) - 1) << cpu, ">");
        for (int k = 0; k < d->siblings; k++, cpu++)
            put_object(f, "PU", cpu, 1U << cpu, "/>");
        fputs("</object>", f);
    }
    fputs("</object>", f);
    if (d->fast)
        fprintf(f,
                "<cpukind cpuset=\"0x%x\" forced_efficiency=\"0\"/><cpukind cpuset=\"0x%x\" "
                "forced_efficiency=\"1\"/>",
                all & ~d->fast, d->fast);
    fputs("</topology>\n", f);
}

static struct topo *open_described(const struct described *d)
{
    char path[] = "/tmp/bench_machine_XXXXXX";
    FILE *const f = fdopen(mkstemp(path), "w");

    cr_assert_not_null(f);
    put_machine(f, d);
    cr_assert_eq(fclose(f), 0);
    cr_assert_eq(setenv("HWLOC_XMLFILE", path, 1), 0);
    cr_assert_eq(setenv("HWLOC_THISSYSTEM", "0", 1), 0);
    struct topo *const t = machine(NULL);
    unlink(path);
    return t;
}

/* Six cores, the last two fast: they come first, whatever their numbers. */
Test(topo, fast_cores_first)
{
    struct topo *const t = open_described(&(struct described){6, 1, 0x3f, 0x30});
    struct topo_facts facts;
    char cpus[32];

    topo_facts(t, &facts);
    NUMBERS({facts.kinds, 2}, {facts.fast_cores, 2});
    expect_plan(t, "compact", 4, "4,5,0,1");
    expect_plan(t, "scatter", 3, "4,5,0");
    expect_plan(t, "p-cores", 2, "4,5");
    expect_plan(t, "e-cores", 4, "0,1,2,3");
    expect_no_plan(
        t, "p-cores", 3, E_USAGE,
        "3 threads wanted, --pin p-cores has 2 CPUs  -> use --threads 2, or --pin compact");
    topo_kind(t, 0, cpus, sizeof(cpus));
    cr_expect_str_eq(cpus, "4-5");
    topo_kind(t, 1, cpus, sizeof(cpus));
    cr_expect_str_eq(cpus, "0-3");
}

/* As Alder Lake: the fast cores have two threads each, the others one; here all have room for two. */
Test(topo, threads_of_fast_cores)
{
    struct topo *const t = open_described(&(struct described){4, 2, 0x5f, 0x0f});

    expect_plan(t, "compact", 6, "0,2,4,6,1,3");
    expect_plan(t, "p-cores", 4, "0,2,1,3");
    expect_plan(t, "e-cores", 2, "4,6");
}

Test(topo, teams_of_several_kinds)
{
    struct topo *const t = open_described(&(struct described){6, 1, 0x3f, 0x30});

    cr_expect(topo_mixed(t, (const int[]){4, 0}, 2));
    cr_expect_not(topo_mixed(t, (const int[]){4, 5}, 2));
    cr_expect_not(topo_mixed(t, (const int[]){0, 3}, 2));
    cr_expect_not(topo_mixed(t, (const int[]){-1, 4}, 2));
}

/* A mask may leave one thread of a core, both, or holes between cores. */
Test(topo, masks)
{
    struct topo *const holes = open_described(&(struct described){6, 1, 0x2d, 0});
    struct topo_facts f;

    expect_plan(holes, "compact", 4, "0,2,3,5");
    expect_no_plan(
        holes, "0-1", 1, E_USAGE,
        "--pin 0-1: CPU 1 is not allowed (cpuset 0,2-3,5)  -> name CPUs of 0,2-3,5, or --pin "
        "compact");
    struct topo *const siblings = open_described(&(struct described){4, 2, 0x0c, 0});
    topo_facts(siblings, &f);
    NUMBERS({f.allowed_cores, 1}, {f.allowed_cpus, 2});
    expect_plan(siblings, "compact", 2, "2,3");
    struct topo *const one_each = open_described(&(struct described){4, 2, 0xaa, 0});
    topo_facts(one_each, &f);
    cr_expect_eq(f.allowed_cores, 4);
    expect_plan(one_each, "compact", 4, "1,3,5,7");
}

Test(topo, cores_of_one_kind)
{
    struct topo *const t = machine("core:4 pu:2");
    struct topo_facts facts;

    topo_facts(t, &facts);
    NUMBERS({facts.kinds, 1}, {facts.fast_cores, 4});
    expect_no_plan(t, "e-cores", 1, E_UNSUPPORTED,
                   "--pin e-cores: the cores allowed here are of one kind  -> use --pin compact");
}
