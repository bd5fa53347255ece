/* SPDX-License-Identifier: MIT
 *
 * All calls of hwloc: the shape of the machine, the CPUs that this process may use, pinning and
 * memory placement. topo_plan.c decides which CPU a thread gets. */
#include "topo.h"

#include <ctype.h>
#include <errno.h>
#include <hwloc.h>
#include <omp.h>

const char *const topo_library = HWLOC_VERSION;

struct topo {
    hwloc_topology_t hw;
    hwloc_bitmap_t allowed;
    struct topo_cpu *cpus;
    int n_cpus;
    bool native;
};

/* ---- opening ------------------------------------------------------------------------------ */

/* If the user asked it to bind, an OpenMP runtime narrows the initial thread's affinity to one
 * place: libgomp before main, libomp at the first call into it. */
static bool openmp_binds(void)
{
    static const char *const variables[] = {"OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY",
                                            "KMP_AFFINITY"};

    for (size_t i = 0; i < ARRAY_LEN(variables); i++)
        if (getenv(variables[i]))
            return true;
    return false;
}

/* The runtime's places are all that is known of the affinity that the program was started with. */
static void add_openmp_places(hwloc_bitmap_t set)
{
    const int places = omp_get_num_places();

    for (int p = 0; p < places; p++) {
        const int n = omp_get_place_num_procs(p);
        int *ids = n > 0 ? malloc((size_t)n * sizeof(*ids)) : NULL;

        if (!ids)
            continue;
        omp_get_place_proc_ids(p, ids);
        for (int i = 0; i < n; i++)
            hwloc_bitmap_set(set, (unsigned)ids[i]);
        free(ids);
    }
}

/* allowed = cpuset and affinity. A binding by the OpenMP runtime is undone, because our children
 * inherit it. */
static enum status find_allowed(struct topo *t, struct err *e)
{
    enum status st = OK;
    hwloc_bitmap_t bound = hwloc_bitmap_alloc();

    hwloc_bitmap_copy(t->allowed, hwloc_topology_get_allowed_cpuset(t->hw));
    if (!t->native)
        goto out;
    if (hwloc_get_cpubind(t->hw, bound, HWLOC_CPUBIND_THREAD) != 0) {
        st = fail(e, E_UNSUPPORTED,
                  "cannot read this thread's CPU affinity (%s)  -> run on Linux with "
                  "sched_getaffinity allowed",
                  strerror(errno));
        goto out;
    }
    if (openmp_binds())
        add_openmp_places(bound);
    hwloc_bitmap_and(t->allowed, t->allowed, bound);
    if (openmp_binds() && hwloc_set_cpubind(t->hw, t->allowed, HWLOC_CPUBIND_THREAD) != 0)
        st = fail(e, E_UNSUPPORTED,
                  "cannot undo the affinity that OpenMP set at program start (%s)  -> unset "
                  "OMP_PROC_BIND, OMP_PLACES and GOMP_CPU_AFFINITY",
                  strerror(errno));
out:
    hwloc_bitmap_free(bound);
    return st;
}

static int logical(hwloc_obj_t obj) { return obj ? (int)obj->logical_index : -1; }

/* A CPU may belong to several nodes (HBM beside DRAM): the first one counts. */
static hwloc_obj_t node_of(const struct topo *t, hwloc_obj_t pu)
{
    for (hwloc_obj_t n = NULL; (n = hwloc_get_next_obj_by_type(t->hw, HWLOC_OBJ_NUMANODE, n));)
        if (hwloc_bitmap_isincluded(pu->cpuset, n->cpuset))
            return n;
    return NULL;
}

/* Of cores that are unlike; 0 where hwloc does not know which are faster. */
static int kind_of(const struct topo *t, hwloc_obj_t pu)
{
    const int kind = hwloc_cpukinds_get_by_cpuset(t->hw, pu->cpuset, 0);
    int efficiency = -1;

    if (kind < 0 ||
        hwloc_cpukinds_get_info(t->hw, (unsigned)kind, NULL, &efficiency, NULL, NULL, 0) != 0)
        return 0;
    return max_int(efficiency, 0);
}

static void fill_cpus(struct topo *t)
{
    struct topo_cpu *const s = t->cpus;
    int n = 0;

    for (hwloc_obj_t pu = NULL; (pu = hwloc_get_next_obj_by_type(t->hw, HWLOC_OBJ_PU, pu));) {
        if (!hwloc_bitmap_isset(t->allowed, pu->os_index))
            continue;
        const hwloc_obj_t core = hwloc_get_ancestor_obj_by_type(t->hw, HWLOC_OBJ_CORE, pu);
        const hwloc_obj_t package = hwloc_get_ancestor_obj_by_type(t->hw, HWLOC_OBJ_PACKAGE, pu);
        const hwloc_obj_t l3 = hwloc_get_ancestor_obj_by_type(t->hw, HWLOC_OBJ_L3CACHE, pu);
        const hwloc_obj_t node = node_of(t, pu);

        s[n] = (struct topo_cpu){
            .cpu = (int)pu->os_index,
            .core = logical(core ? core : pu),
            .node = max_int(logical(node), 0),
            .package = max_int(logical(package), 0),
            .l3 = max_int(logical(l3), 0),
            .kind = kind_of(t, pu),
        };
        for (int i = 0; i < n; i++)
            s[n].sibling += s[i].core == s[n].core;
        n++;
    }
    for (int i = 0; i < n; i++) {
        int first = s[i].node;
        for (int j = 0; j < n; j++)
            if (s[j].package == s[i].package)
                first = min_int(first, s[j].node);
        s[i].node_rank = s[i].node - first;
        for (int j = 0; j < i; j++)
            s[i].turn += s[j].sibling == s[i].sibling && s[j].package == s[i].package &&
                         s[j].node == s[i].node;
    }
    t->n_cpus = n;
}

static enum status load(struct topo *t, const char *synthetic, struct err *e)
{
    if (synthetic && hwloc_topology_set_synthetic(t->hw, synthetic) != 0)
        return fail(e, E_USAGE,
                    "\"%s\" describes no machine  -> write it like \"numa:2 core:32 pu:2\"",
                    synthetic);
    hwloc_topology_set_flags(t->hw, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
    if (hwloc_topology_load(t->hw) != 0)
        return fail(e, E_UNSUPPORTED, "hwloc cannot read this machine (%s)  -> see: lstopo",
                    strerror(errno));
    t->native = hwloc_topology_is_thissystem(t->hw);
    return find_allowed(t, e);
}

enum status topo_open(struct topo **out, const char *synthetic, struct err *e)
{
    struct topo *const t = calloc(1, sizeof(*t));

    *out = NULL;
    NEED(t && (t->allowed = hwloc_bitmap_alloc()) && hwloc_topology_init(&t->hw) == 0);
    const enum status st = load(t, synthetic, e);
    if (st != OK) {
        topo_close(t);
        return st;
    }
    t->cpus =
        calloc((size_t)max_int(hwloc_get_nbobjs_by_type(t->hw, HWLOC_OBJ_PU), 1), sizeof(*t->cpus));
    NEED(t->cpus);
    fill_cpus(t);
    *out = t;
    return OK;
}

void topo_close(struct topo *t)
{
    if (!t)
        return;
    if (t->hw)
        hwloc_topology_destroy(t->hw);
    hwloc_bitmap_free(t->allowed);
    free(t->cpus);
    free(t);
}

/* ---- facts -------------------------------------------------------------------------------- */

/* hwloc's list format, with "..." if it did not fit. */
static void format_set(hwloc_const_bitmap_t set, char *buf, size_t size)
{
    if (hwloc_bitmap_list_snprintf(buf, size, set) >= (int)size && size > 3)
        memcpy(buf + size - 4, "...", 4);
}

static size_t cache_bytes(const struct topo *t, hwloc_obj_type_t type)
{
    const hwloc_obj_t pu =
        t->n_cpus ? hwloc_get_pu_obj_by_os_index(t->hw, (unsigned)t->cpus[0].cpu) : NULL;
    const hwloc_obj_t cache = pu ? hwloc_get_ancestor_obj_by_type(t->hw, type, pu) : NULL;

    return cache ? (size_t)cache->attr->cache.size : 0;
}

/* The fastest kind of allowed CPUs that is slower than this one; -1 = none. */
static int kind_below(const struct topo *t, int kind)
{
    int next = -1;

    for (int i = 0; i < t->n_cpus; i++)
        if (t->cpus[i].kind < kind)
            next = max_int(next, t->cpus[i].kind);
    return next;
}

void topo_facts(const struct topo *t, struct topo_facts *f)
{
    *f = (struct topo_facts){
        .packages = max_int(hwloc_get_nbobjs_by_type(t->hw, HWLOC_OBJ_PACKAGE), 1),
        .numa_nodes = hwloc_get_nbobjs_by_type(t->hw, HWLOC_OBJ_NUMANODE),
        .cores = hwloc_get_nbobjs_by_type(t->hw, HWLOC_OBJ_CORE),
        .cpus = hwloc_get_nbobjs_by_type(t->hw, HWLOC_OBJ_PU),
        .allowed_cpus = t->n_cpus,
        .l1d_bytes = cache_bytes(t, HWLOC_OBJ_L1CACHE),
        .l2_bytes = cache_bytes(t, HWLOC_OBJ_L2CACHE),
        .l3_bytes = cache_bytes(t, HWLOC_OBJ_L3CACHE),
        .l3_count = hwloc_get_nbobjs_by_type(t->hw, HWLOC_OBJ_L3CACHE),
    };
    if (f->cores == 0)
        f->cores = f->cpus;
    const int fastest = kind_below(t, INT_MAX);
    for (int kind = fastest; kind >= 0; kind = kind_below(t, kind))
        f->kinds++;
    for (int i = 0; i < t->n_cpus; i++) {
        f->allowed_cores += t->cpus[i].sibling == 0;
        f->fast_cores += t->cpus[i].sibling == 0 && t->cpus[i].kind == fastest;
    }
    f->smt = f->cpus > f->cores;
    format_set(t->allowed, f->cpuset, sizeof(f->cpuset));
}

void topo_kind(const struct topo *t, int i, char *cpus, size_t size)
{
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    int kind = INT_MAX;

    for (; i >= 0; i--)
        kind = kind_below(t, kind);
    for (int k = 0; k < t->n_cpus; k++)
        if (t->cpus[k].kind == kind)
            hwloc_bitmap_set(set, (unsigned)t->cpus[k].cpu);
    format_set(set, cpus, size);
    hwloc_bitmap_free(set);
}

const struct topo_cpu *topo_cpus(const struct topo *t, int *n)
{
    *n = t->n_cpus;
    return t->cpus;
}

/* ---- acting ------------------------------------------------------------------------------- */

int topo_where(const struct topo *t)
{
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    int cpu = -1;

    if (hwloc_get_last_cpu_location(t->hw, set, HWLOC_CPUBIND_THREAD) == 0)
        cpu = hwloc_bitmap_first(set);
    hwloc_bitmap_free(set);
    return cpu;
}

enum status topo_pin(const struct topo *t, int cpu, struct err *e)
{
    hwloc_bitmap_t set;
    int failed, now;

    if (cpu < 0)
        return OK;
    set = hwloc_bitmap_alloc();
    hwloc_bitmap_set(set, (unsigned)cpu);
    failed = hwloc_set_cpubind(t->hw, set, HWLOC_CPUBIND_THREAD | HWLOC_CPUBIND_STRICT);
    hwloc_bitmap_free(set);
    if (failed)
        return fail(e, E_UNSUPPORTED, "cannot pin a thread to CPU %d (%s)  -> use --pin none", cpu,
                    strerror(errno));
    now = topo_where(t);
    if (now != cpu)
        return fail(e, E_UNSUPPORTED, "a thread pinned to CPU %d runs on CPU %d  -> use --pin none",
                    cpu, now);
    return OK;
}

void topo_unpin(const struct topo *t)
{
    if (t->native)
        hwloc_set_cpubind(t->hw, t->allowed, HWLOC_CPUBIND_THREAD);
}

/* The nodes of a policy. */
static enum status node_set(const struct topo *t, const char *policy, int cpu, hwloc_bitmap_t nodes,
                            struct err *e)
{
    if (strcmp(policy, "local") == 0) {
        const hwloc_obj_t pu = hwloc_get_pu_obj_by_os_index(t->hw, (unsigned)cpu);
        CHECK(pu != NULL);
        hwloc_bitmap_copy(nodes, pu->nodeset);
        return OK;
    }
    hwloc_bitmap_copy(nodes, hwloc_topology_get_allowed_nodeset(t->hw));
    if (strcmp(policy, "interleave") == 0)
        return OK;

    char *end, names[128];
    const long node = strtol(policy, &end, 10);

    format_set(nodes, names, sizeof(names));
    if (!isdigit((unsigned char)*policy) || *end || node > INT_MAX ||
        !hwloc_bitmap_isset(nodes, (unsigned)node))
        return fail(e, E_USAGE,
                    "--membind %s: no such NUMA node here (nodes %s)  -> use local, interleave, or "
                    "one of %s",
                    policy, names, names);
    hwloc_bitmap_only(nodes, (unsigned)node);
    return OK;
}

enum status topo_membind(const struct topo *t, const char *policy, int cpu, void *base, size_t size,
                         struct err *e)
{
    enum status st;
    hwloc_bitmap_t nodes;

    if (cpu < 0 && strcmp(policy, "local") == 0)
        return OK;
    nodes = hwloc_bitmap_alloc();
    st = node_set(t, policy, cpu, nodes, e);
    /* With one node every policy is already fulfilled, and containers may forbid the call. */
    if (st == OK && hwloc_get_nbobjs_by_type(t->hw, HWLOC_OBJ_NUMANODE) > 1 &&
        hwloc_set_area_membind(t->hw, base, size, nodes,
                               strcmp(policy, "interleave") == 0 ? HWLOC_MEMBIND_INTERLEAVE
                                                                 : HWLOC_MEMBIND_BIND,
                               HWLOC_MEMBIND_BYNODESET) != 0)
        st = fail(e, E_UNSUPPORTED,
                  "cannot place %zu bytes with --membind %s (%s)  -> allow mbind (containers: "
                  "CAP_SYS_NICE), or --pin none --membind local",
                  size, policy, strerror(errno));
    hwloc_bitmap_free(nodes);
    return st;
}

void topo_format_cpus(const int *cpus, int n, char *buf, size_t size)
{
    hwloc_bitmap_t set = hwloc_bitmap_alloc();

    for (int i = 0; i < n; i++)
        if (cpus[i] >= 0)
            hwloc_bitmap_set(set, (unsigned)cpus[i]);
    format_set(set, buf, size);
    hwloc_bitmap_free(set);
}
