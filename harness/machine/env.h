/* SPDX-License-Identifier: MIT
 *
 * Facts about machine and system that are recorded with a run, and the environment of measuring
 * children. build.h has the facts about the build. Only a child that opened a library knows what it
 * chose (BLAS kernels). */
#pragma once

#include "harness/table/record.h"
#include "quota.h"
#include "topo.h"

/* What columns.h calls by the same names is in `row`: the rest of the row is empty. */
struct env_facts {
    struct env_row row;
    struct topo_facts topo;
    struct quota quota;
};

/* Never fails: what cannot be read stays empty or 0. Takes a millisecond (the clock). */
void env_gather(const struct topo *t, struct env_facts *f);

/* Threads that can run all the time: a core each, and no more than the quota. */
int env_threads(const struct topo *t);

/* The machine in the first line of a session: "AMD EPYC, 2 vCPU (KVM), 1 NUMA node, L2 1 MiB, L3 32
 * MiB, avx512". */
void env_summary(const struct env_facts *f, char *buf, size_t size);

/* CPU time of all CPUs since boot. The share of `steal` needs two readings. */
struct env_ticks {
    uint64_t total, steal;
};
struct env_ticks env_ticks(void); /* zeros if the kernel does not tell */
double env_steal_pct(const struct env_ticks *before, const struct env_ticks *after);

/* The variables of `parent` that control thread pools and kernels of libraries, as
 * "NAME=value;...", sorted by name; "..." at the end if they did not fit. */
void env_overrides(char *const *parent, char *buf, size_t size);

/* Of the kernel's command line the options that change times; the others are a host's own business. In
 * place. */
void env_kernel_options(char *line);

/* Without these variables of this process, libraries that compute in it or in its forks print nothing:
 * their words would stand among the rows on stdout. */
void env_silence_libraries(void);

/* The environment of a measuring child: `parent` without the variables that control thread pools
 * and kernels, plus short spinning, plus OPENBLAS_CORETYPE and ONEDNN_MAX_CPU_ISA if
 * `openblas_core` and `onednn_max_isa` are not NULL. Free it with env_free. */
char **env_child_environment(char *const *parent, const char *openblas_core,
                             const char *onednn_max_isa);

/* A copy of `environment` with one variable more, which is malloc'ed. Free it with env_free. */
char **env_with(char *const *environment, char *variable);

/* With BENCH_PADDING, of `bytes` characters: it moves the stack of a program that is started with it. */
char **env_padded(char *const *environment, int bytes);
void env_free(char **environment);
