/* SPDX-License-Identifier: MIT
 *
 * Small run folders with known rows and samples, for the suites of compare, gate and merge. */
#pragma once

#include "harness/table/run.h"
#include "harness/table/rundir.h"
#include "sample_rows.h"
#include "tmp_folder.h"

static inline void made_write(struct rundir *r, enum table_id table, const void *row)
{
    MUST(rundir_write(r, table, row, &failure));
}

/* A table of these rows at `path`. */
static inline void made_table(const char *path, enum table_id id, const void *rows, size_t n)
{
    MUST(table_replace(&tables[id], path, rows, n, &failure));
}

/* A row of a table that is empty but for a case's first columns. */
#define ROW_OF(row, TABLE, key)                                                                    \
    __extension__({                                                                                \
        struct row##_row r_ = row##_row_empty();                                                   \
        row_set_key(&tables[TABLE_##TABLE], &r_, key);                                             \
        r_;                                                                                        \
    })

/* One case: a backend's row and its blocks, `ns` per call. */
struct made_case {
    const char *variant, *backend, *id;
    int seq;
    double ns;
};

static inline struct key_row made_key(const struct rundir *r, const struct made_case *c,
                                      const char *host)
{
    struct key_row k = key_row_empty();

    text_put(k.run_id, TEXT_SIZE, r->run_id);
    text_put(k.host_id, TEXT_SIZE, host);
    text_put(k.case_id, TEXT_SIZE, c->id);
    text_put(k.status, TEXT_SIZE, "ok");
    text_put(k.variant, TEXT_SIZE, c->variant);
    text_put(k.backend, TEXT_SIZE, c->backend);
    text_put(k.workload, TEXT_SIZE, "layer");
    text_put(k.phase, TEXT_SIZE, "fwd");
    k.seq_tokens = c->seq;
    k.mem_tokens = 0;
    k.batch_size = k.layers = k.threads = 1;
    return k;
}

static inline void made_row(struct rundir *r, const struct made_case *c, const char *host,
                            const char *status, const char *detail, int64_t arena_bytes)
{
    struct key_row k = made_key(r, c, host);

    text_put(k.status, TEXT_SIZE, status);
    text_put(k.status_detail, LINE_SIZE, detail);
    struct latency_row latency = ROW_OF(latency, LATENCY, &k);
    struct memory_row memory = ROW_OF(memory, MEMORY, &k);
    latency.median_ns = c->ns;
    latency.cpu_time_median_ns = c->ns * 0.9;
    latency.ci95_low_ns = c->ns * 0.99;
    latency.ci95_high_ns = c->ns * 1.01;
    memory.arena_peak_bytes = arena_bytes;
    made_write(r, TABLE_MEMORY, &memory);
    made_write(r, TABLE_LATENCY, &latency);
}

/* `cpu`: CPU time over wall time. */
static inline void made_block(struct rundir *r, const char *id, int round, int launch, double ns,
                              int disturbed, double cpu)
{
    struct sample_row row = sample_row_empty();

    text_put(row.run_id, TEXT_SIZE, r->run_id);
    text_put(row.case_id, TEXT_SIZE, id);
    row.sample = row.round = round;
    row.calls = 10;
    row.wall_ns = 10 * ns;
    row.cpu_ns = 10 * ns * cpu;
    row.involuntary_switches = row.disturbed = disturbed;
    row.launch = launch;
    MUST(samples_write(&r->samples, &row, &failure));
}

static inline void made_slept_sample(struct rundir *r, const char *id, int round, double ns,
                                     int disturbed, double cpu)
{
    made_block(r, id, round, 0, ns, disturbed, cpu);
}

static inline void made_sample(struct rundir *r, const char *id, int round, double ns,
                               int disturbed)
{
    made_slept_sample(r, id, round, ns, disturbed, 0.9);
}

/* A perplexity of weights and text with these hashes. */
static inline void made_perplexity(struct rundir *r, const struct made_case *c, const char *weights,
                                   double nll)
{
    struct key_row k = made_key(r, c, "host");

    struct perplexity_row row = ROW_OF(perplexity, PERPLEXITY, &k);
    text_put(row.checkpoint_xxh3, TEXT_SIZE, weights);
    text_put(row.corpus_xxh3, TEXT_SIZE, "text");
    row.tokens_scored = 1000;
    row.nll_nats_per_token = nll;
    row.ppl = exp(nll);
    made_write(r, TABLE_PERPLEXITY, &row);
}

static const struct runjson made_json = {
    .command = "sweep", .host_id = "host", .started_at_utc = "2026-11-21T06:01:02Z", .options = ""};

static inline struct rundir made_open(const char *commit)
{
    struct rundir r;

    MUST(rundir_create(&r, folder, commit, 1795240862, RAW_CSV, &made_json, &failure));
    return r;
}

static inline void made_close(struct rundir *r, const char *host, const char *cpu)
{
    struct env_row env = env_row_empty();

    text_put(env.run_id, TEXT_SIZE, r->run_id);
    text_put(env.host_id, TEXT_SIZE, host);
    text_put(env.cpu_model, LINE_SIZE, cpu);
    env.exit_code = 0;
    MUST(rundir_env(r, &env, &failure));
    MUST(rundir_close(r, &failure));
}

/* A run, kept until the test ends. */
static inline struct run must_run(const char *path)
{
    struct run run;

    MUST(run_read(&run, path, &failure));
    kept_copy(&run, sizeof(run));
    return run;
}

/* The run is over, and read. */
static inline struct run made_read(struct rundir *r)
{
    made_close(r, "host", "CPU");
    return must_run(r->path);
}

/* A run folder of this name with these cases. */
static inline void made_cases(const char *name, const char *cpu, const struct made_case *c,
                              size_t n)
{
    struct rundir r = made_open("aaaa");
    for (size_t i = 0; i < n; i++)
        made_row(&r, &c[i], "host", "ok", "", 100);
    made_close(&r, "host", cpu);
    cr_assert_eq(rename(r.path, in_folder(name)), 0);
}
