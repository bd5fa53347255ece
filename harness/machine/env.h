/* SPDX-License-Identifier: MIT
 *
 * Facts about machine and system that are recorded with a run, and the environment of measuring
 * children. build.h has the facts about the build. Only a child that opened a library knows what it
 * chose (BLAS kernels). */
#ifndef ENV_H
#define ENV_H

#include "clock.h"
#include "quota.h"
#include "topo.h"

struct env_facts {
    char host_id[17]; /* 16 hex digits of the stable facts */
    char hostname[64];
    char kernel[256];    /* "Debian GNU/Linux 12 (bookworm), Linux 6.1.0-18-amd64" */
    char cpu_model[128]; /* "AMD EPYC" */
    char microcode[32];  /* "0xa101148"; "" if the kernel does not tell */
    char isa[16];        /* best level of CPU and operating system, without --max-isa */
    char max_isa[16];    /* with --max-isa */
    char hypervisor[32]; /* "KVM"; "" on bare metal */
    char huge_pages[16]; /* "always", "madvise", "never"; "" if the kernel has none */
    char governor[32];   /* of the first allowed CPU; "none" if the kernel shows none */
    char boost[8];       /* "on", "off"; "" if the kernel does not tell */
    char openmp[64];     /* runtimes loaded in this process: "libgomp.so.1" */
    char hwloc[16];
    char libc[32];          /* "glibc 2.36"; "" of another one */
    char aslr[8];           /* randomize_va_space: "0", "1", "2"; "" if the kernel does not tell */
    char mitigations[1024]; /* "NAME=what;..." of what the CPU is vulnerable to; cut if longer */
    char kernel_options[1024]; /* of /proc/cmdline what changes times; cut if longer */
    char clock_source[32];     /* "tsc"; "" if the kernel does not tell */
    char overrides[1024];      /* "NAME=value;..." of library variables; ends in "..." if cut */
    struct topo_facts topo;
    struct quota quota;
    struct clock_facts clock;
    int64_t memory_bytes, memory_free_bytes; /* 0 = unknown */
    double load_1min;
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

/* A copy of `environment` with one variable more, BENCH_PADDING, of `bytes` characters: it moves the
 * stack of a program that is started with it. Free it with env_free. */
char **env_padded(char *const *environment, int bytes);
void env_free(char **environment);

#endif
