/* SPDX-License-Identifier: MIT
 *
 * The row of env.csv, from the facts of the machine, the build and the run's options. */
#include "env_row.h"

#include "harness/cli/build.h"
#include "variants/backends/outside.h"

#include <xxhash.h>

#define PUT(column, text) text_put(row->column, sizeof(row->column), (text))

void env_row_begin(struct env_row *row, const struct env_facts *f, const struct options *opt,
                   const char *run_id, const char *started_at_utc)
{
    *row = f->row;
    PUT(run_id, run_id);
    PUT(started_at_utc, started_at_utc);
    PUT(bench_version, build_version);
    PUT(git_commit, build_commit);
    PUT(compiler, build_compiler);
    PUT(compiler_flags, build_flags);
    row->git_dirty = build_dirty;
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
                   {"amx_bf16", &row->peak_flop_per_s_amx_bf16},
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

/* Once each, with a hash of its file; of a command also of its text and of the files that it names. */
static void put_kernel(struct env_row *row, const char *name, const char *note, const char *from)
{
    const bool process = backend_is_process(from);
    uint64_t hash = process ? XXH3_64bits(from, strlen(from)) : 0;
    char words[256], *rest = words;
    struct bytes all;

    snprintf(words, sizeof(words), "%s", from);
    if (strstr(row->outside_kernels, from))
        return;
    for (const char *word; (word = strsep(&rest, process ? ": " : ""));)
        if (file_read(&all, word, NULL) == OK) {
            hash = XXH3_64bits_withSeed(all.data, all.n, hash);
            free(all.data);
        }
    text_append(row->outside_kernels, sizeof(row->outside_kernels), "%s%s %s xxh3=%016llx%s%s",
                row->outside_kernels[0] ? ";" : "", name, from, (unsigned long long)hash,
                process ? " " : "", process ? note : "");
}

/* OpenBLAS describes itself as "OpenBLAS 0.3.21 DYNAMIC_ARCH ... SkylakeX MAX_THREADS=64"; our
 * oneDNN backend describes its library as "oneDNN 2.6.3 openmp avx512_core", and that of kernels from
 * outside theirs as "outside NAME@VERSION NOTE FILE". */
void env_row_library(struct env_row *row, const char *core, const char *config)
{
    char version[TEXT_SIZE], threading[TEXT_SIZE];

    int from = 0;

    if (sscanf(config, "outside %127s %127s %n", version, threading, &from) == 2)
        put_kernel(row, version, threading, config + from);
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
