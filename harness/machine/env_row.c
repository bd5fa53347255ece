/* SPDX-License-Identifier: MIT
 *
 * The row of env.csv, from the facts of the machine, the build and the run's options. */
#include "env_row.h"

#include "harness/cli/build.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define PUT(column, text) text_put(row->column, sizeof(row->column), (text))

static void put_machine(struct env_row *row, const struct env_facts *f)
{
    const struct topo_facts *t = &f->topo;

    PUT(host_id, f->host_id);
    PUT(hostname, f->hostname);
    PUT(kernel, f->kernel);
    PUT(cpu_model, f->cpu_model);
    PUT(microcode, f->microcode);
    PUT(isa, f->isa);
    PUT(max_isa, f->max_isa);
    PUT(hypervisor, f->hypervisor);
    PUT(huge_pages, f->huge_pages);
    PUT(governor, f->governor);
    PUT(boost, f->boost);
    PUT(libc, f->libc);
    PUT(aslr, f->aslr);
    PUT(mitigations, f->mitigations);
    PUT(kernel_options, f->kernel_options);
    PUT(clock_source, f->clock_source);
    PUT(cpuset, t->cpuset);
    row->packages = t->packages;
    row->numa_nodes = t->numa_nodes;
    row->cores = t->cores;
    row->cpus = t->cpus;
    row->smt = t->smt;
    row->allowed_cores = t->allowed_cores;
    row->allowed_cpus = t->allowed_cpus;
    row->l1d_bytes = (int64_t)t->l1d_bytes;
    row->l2_bytes = (int64_t)t->l2_bytes;
    row->l3_bytes = (int64_t)t->l3_bytes;
    row->l3_count = t->l3_count;
    row->memory_bytes = f->memory_bytes;
    row->memory_free_bytes = f->memory_free_bytes;
    row->load_1min = f->load_1min;
    row->cpu_quota = f->quota.cpus;
    row->core_kinds = t->kinds;
    row->clock_resolution_ns = f->clock.resolution_ns;
    row->clock_overhead_ns = f->clock.overhead_ns;
}

void env_row_begin(struct env_row *row, const struct env_facts *f, const struct options *opt,
                   const char *run_id, const char *started_at_utc)
{
    *row = env_row_empty();
    PUT(run_id, run_id);
    PUT(started_at_utc, started_at_utc);
    PUT(bench_version, build_version);
    PUT(git_commit, build_commit);
    PUT(compiler, build_compiler);
    PUT(compiler_flags, build_flags);
    PUT(openmp, f->openmp);
    PUT(hwloc_version, f->hwloc);
    PUT(env_overrides, f->overrides);
    row->git_dirty = build_dirty;
    put_machine(row, f);
    char *const line = options_command_line(opt);
    PUT(argv, line);
    free(line);
}

/* The table has the levels of all architectures. */
static double *peak_column(struct env_row *row, enum isa isa)
{
    const struct {
        const char *name;
        double *column;
    } columns[] = {{"avx2", &row->peak_flop_per_s_avx2},
                   {"avx512", &row->peak_flop_per_s_avx512},
                   {"avx512_bf16", &row->peak_flop_per_s_bf16},
                   {"neon", &row->peak_flop_per_s_neon}};

    for (size_t i = 0; i < ARRAY_LEN(columns); i++)
        if (strcmp(columns[i].name, isa_name[isa]) == 0)
            return columns[i].column;
    CHECK(!"env.csv has no column for a level of instructions");
    return NULL;
}

void env_row_peaks(struct env_row *row, const struct peaks *p)
{
    row->peak_threads = p->threads;
    row->peak_flop_per_s_ref = p->flops[ISA_BASE];
    for (enum isa isa = ISA_BASE + 1; isa < ISA_COUNT; isa++)
        if (p->flops[isa] > 0)
            *peak_column(row, isa) = p->flops[isa];
    row->read_byte_per_s_l1 = p->l1;
    row->read_byte_per_s_l2 = p->l2;
    row->read_byte_per_s_l3 = p->l3;
    row->read_byte_per_s_dram = p->dram;
}

/* OpenBLAS describes itself as "OpenBLAS 0.3.21 DYNAMIC_ARCH ... SkylakeX MAX_THREADS=64"; our
 * oneDNN backend describes its library as "oneDNN 2.6.3 openmp avx512_core". */
void env_row_library(struct env_row *row, const char *core, const char *config)
{
    char version[TEXT_SIZE], threading[TEXT_SIZE];

    if (sscanf(config, "oneDNN %63s %63s", version, threading) == 2) {
        PUT(onednn_version, version);
        PUT(onednn_threading, threading);
    }
    if (sscanf(config, "OpenBLAS %63s", version) != 1)
        return;
    PUT(openblas_version, version);
    PUT(openblas_threading, "openmp"); /* the backend refuses every other build */
    PUT(openblas_core, core);
    PUT(openblas_config, config);
}

void env_row_end(struct env_row *row, const char *finished_at_utc, int exit_code, double steal_pct,
                 int64_t throttled)
{
    if (isfinite(row->cpu_quota))
        row->throttled_periods = throttled;
    PUT(finished_at_utc, finished_at_utc);
    row->exit_code = exit_code;
    row->steal_pct = steal_pct;
}
