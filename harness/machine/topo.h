/* SPDX-License-Identifier: MIT
 *
 * The machine as hwloc sees it: the CPUs that this process may use, the placement of a case's
 * threads and memory, and the check that threads run where they were put. */
#pragma once

#include "variants/base/base.h"

struct topo; /* an hwloc topology, opaque so that hwloc.h stays in one file */

/* `synthetic` (e.g. "numa:2 core:32 pu:2") describes a machine for tests; NULL = this one. The
 * allowed CPUs are those of the cpuset and of the calling thread's affinity (taskset), so call it
 * before pinning anything. If OMP_PROC_BIND or its like made the OpenMP runtime narrow that
 * affinity at program start, this is undone up to the runtime's own places. */
enum status topo_open(struct topo **t, const char *synthetic, struct err *e);
void topo_close(struct topo *t);

struct topo_facts {
    int packages, numa_nodes, cores, cpus; /* in the machine */
    int allowed_cores, allowed_cpus;       /* by the cpuset */
    int kinds, fast_cores;                /* of the allowed ones: kinds, and cores of the fastest */
    size_t l1d_bytes, l2_bytes, l3_bytes; /* of one cache; 0 = none seen */
    int l3_count;                         /* in the machine */
    bool smt;
    char cpuset[256]; /* allowed CPUs, "0-1,4" */
};
void topo_facts(const struct topo *t, struct topo_facts *f);

/* An allowed CPU. `node`, `package` and `l3` are hwloc's logical numbers, 0 if it sees none; `core`
 * likewise, or a number per CPU. */
struct topo_cpu {
    int cpu; /* the operating system's number */
    int core, node, package, l3;
    int sibling;   /* 0 for the first allowed hardware thread of its core, then 1, ... */
    int kind;      /* higher is faster, where cores are unlike */
    int node_rank; /* number of its node within the package */
    int turn;      /* place among the CPUs of its node that have the same sibling number */
};

/* The `*n` allowed CPUs in hwloc's order: neighbours share caches. */
const struct topo_cpu *topo_cpus(const struct topo *t, int *n);

/* CPUs of `threads` threads: cpus[i] is the operating system's CPU number of thread i, -1 = not
 * pinned. policy: "compact" (neighbouring cores, one thread per core before SMT siblings, the fastest kind of cores
 * first),
 * "scatter" (round-robin over packages and NUMA nodes), "p-cores" (compact, on the fastest kind only),
 * "e-cores" (on the other kinds), "none", or a CPU list "0,2-3". E_USAGE if there are fewer allowed
 * CPUs than threads (not for "none") or the list names a CPU that is not allowed; E_UNSUPPORTED for a
 * kind where all cores are alike. */
enum status topo_plan(const struct topo *t, const char *policy, int threads, int *cpus,
                      struct err *e);

/* Are these CPUs of more than one kind? Those that are not allowed, and -1, are of none. */
bool topo_mixed(const struct topo *t, const int *cpus, int n);

/* Allowed CPUs of the kind that is the ith fastest, 0 <= i < kinds. */
void topo_kind(const struct topo *t, int i, char *cpus, size_t size);

/* Pin the calling thread to one CPU and check that it runs there; nothing to do for -1. */
enum status topo_pin(const struct topo *t, int cpu, struct err *e);

/* Let the calling thread run on all allowed CPUs again. */
void topo_unpin(const struct topo *t);

/* The CPU that the calling thread runs on now, -1 = unknown. */
int topo_where(const struct topo *t);

/* Put [base, base+size) on a node before its first touch: "local" (the node of `cpu`; the kernel's
 * own choice for -1), "interleave", or a node number. */
enum status topo_membind(const struct topo *t, const char *policy, int cpu, void *base, size_t size,
                         struct err *e);

/* Version of hwloc, "2.9.0". */
extern const char *const topo_library;

/* "0-3,8" from a list of CPU numbers (sorted, deduplicated; -1 entries are left out). */
void topo_format_cpus(const int *cpus, int n, char *buf, size_t size);
