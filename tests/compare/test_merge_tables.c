/* SPDX-License-Identifier: MIT
 *
 * Merging, table by table: rows of several lengths, memories, batches and states come from shards
 * of every number, and each value stays with its case. */
#include "tests/support/json.h"
#include "tests/support/program.h"
#include "tests/support/run_folder.h"

TestSuite(merge_tables, .init = folder_make, .fini = folder_remove, .timeout = 120);

/* Case i of a plan: two variants of a length, with another memory and batch for each length. */
static struct made_case case_of(int i)
{
    static const char *const id[] = {"c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7"};

    return (struct made_case){i % 2 ? "rope" : "xl", "avx2", id[i], 64 << i / 2, 1000 + 100 * i};
}

enum { GROUPS = 4, IN_GROUP = 2, ROUNDS_OF_CASE = 3 };

static void add_case(struct rundir *d, int i, const char *status)
{
    const struct made_case c = case_of(i);
    struct key_row k = made_key(d, &c, "host");

    k.mem_tokens = 128 * (i / IN_GROUP), k.batch_size = 1 + i / IN_GROUP;
    text_put(k.status, TEXT_SIZE, status);
    struct latency_row latency = ROW_OF(latency, LATENCY, &k);
    struct memory_row memory = ROW_OF(memory, MEMORY, &k);
    latency.median_ns = c.ns;
    memory.arena_peak_bytes = 7 * i + 1;
    MUST(rundir_write(d, TABLE_MEMORY, &memory, &failure));
    MUST(rundir_write(d, TABLE_LATENCY, &latency, &failure));
    made_perplexity(d, &c, "weights", 2 + 0.1 * i);
    for (int round = 0; round < ROUNDS_OF_CASE; round++)
        made_sample(d, c.id, round, c.ns + round, 0);
}

/* Shard i of n, which has every n-th group; case 5 failed. */
static void made_shard(char path[FILE_PATH], int i, int n)
{
    struct rundir d;

    const char *const options = kept_text("seq=64\nshard=%d/%d\n", i, n);
    const char *const name = kept_text("s%d", i);
    const struct runjson json = {.command = "sweep",
                                 .host_id = "host",
                                 .started_at_utc = "2026-11-21T06:01:02Z",
                                 .options = options};
    MUST(rundir_create(&d, in_folder(name), "aaaa", 1795240862, RAW_CSV, &json, &failure));
    for (int group = i - 1; group < GROUPS; group += n)
        for (int k = 0; k < IN_GROUP; k++)
            add_case(&d, group * IN_GROUP + k, group * IN_GROUP + k == 5 ? "failed" : "ok");
    snprintf(path, FILE_PATH, "%s", d.path);
    made_close(&d, "host", "CPU");
}

static void expect_cases(const struct run *run)
{
    const struct latency_row *const latency = run->latency.row;
    const struct memory_row *const memory = run->memory.row;
    const struct perplexity_row *const scored = run->perplexity.row;

    cr_assert(run->latency.n == 8 && run->memory.n == 8 && run->perplexity.n == 8);
    for (int i = 0; i < 8; i++) {
        const struct made_case c = case_of(i);
        const struct series s = run_series(run, c.id);
        cr_expect_str_eq(latency[i].case_id, c.id, "the order of the plan");
        TEXTS({latency[i].status, i == 5 ? "failed" : "ok"}, {memory[i].case_id, c.id});
        NUMBERS({latency[i].median_ns, c.ns}, {latency[i].mem_tokens, 128 * (i / IN_GROUP)},
                {latency[i].batch_size, 1 + i / IN_GROUP}, {run_arena_bytes(run, c.id), 7 * i + 1});
        cr_assert_eq(s.n, ROUNDS_OF_CASE, "%s has %d samples", c.id, s.n);
        for (int round = 0; round < ROUNDS_OF_CASE; round++)
            cr_expect_eq(s.ref[round].row->wall_ns, 10 * (c.ns + round));
        for (int k = 0; k < 8; k++)
            if (strcmp(scored[k].case_id, c.id) == 0)
                cr_expect_float_eq(scored[k].nll_nats_per_token, 2 + 0.1 * i, 1e-12);
    }
}

/* run.json counts the rows by their status. */
static void expect_counts(const char *merged)
{
    const char *const path = kept_text("%s/%s", merged, runjson_file);
    const json_t *const rows = json_object_get(json_of_file(path), "rows");
    cr_expect(number_at(rows, "ok") == 7 && number_at(rows, "failed") == 1);
}

/* Each row of each table is of the merged run, and no value has moved to another case. */
Test(merge_tables, every_table_is_of_the_merged_run)
{
    for (int n = 1; n <= 3; n++) {
        char path[3][FILE_PATH] = {"", "", ""}, merged[FILE_PATH], out[24];
        for (int i = 1; i <= n; i++)
            made_shard(path[n - i], i, n); /* given in the opposite order */
        snprintf(out, sizeof(out), "merged%d", n);
        must_bench("merge %s %s %s --raw csv --out %s", path[0], path[1], path[2], out);
        snprintf(merged, sizeof(merged), "%s/%s/latest", folder, out);
        const struct run run = must_run(merged);
        expect_cases(&run);
        expect_counts(merged);
        cr_assert_eq(run.env.n, 1);
        const char *const id = ((const struct env_row *)run.env.row)->run_id;
        for (int t = 0; t <= TABLE_SAMPLES; t++)
            for (size_t k = 0; k < run.table[t].n; k++) {
                const char *const row = (const char *)run.table[t].row + k * tables[t].row_size;
                cr_expect_str_eq(row_text(&tables[t], row, "run_id"), id, "%s row %zu",
                                 tables[t].name, k);
            }
        for (int i = 0; i < n; i++)
            cr_expect(!strstr(path[i], id), "%s is a shard's", id);
        folder_remove();
        folder_make();
    }
}
