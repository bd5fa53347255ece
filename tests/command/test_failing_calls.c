/* SPDX-License-Identifier: MIT
 *
 * Sweeps and scorings in which one call fails: opening, writing, renaming, syncing, mapping, taking
 * memory, starting a child. What was measured before stays, and --resume (of bench eval: running it
 * again) completes. Trainings: test_train_faults.c. */
#include "harness/table/rundir.h"
#include "tests/support/each.h"
#include "tests/support/failing.h"

enum { LONG = 4 * 3600 }; /* seconds; only FAULTS_ALL needs more than some */

/* ---- sweeps ------------------------------------------------------------------------------- */

#define SWEEP "-q --variant xl --backend ref --workload attn --seq 4,8 --mem 0 " TINY

enum { CASES = 2 };

/* The table, empty if there is no run yet. */
static struct rows latency_now(void)
{
    return folder_has("r/latest") ? must_read("r/latest", TABLE_LATENCY) : (struct rows){0};
}

static const struct latency_row *row_of(const struct rows *rows, const char *case_id)
{
    const struct latency_row *row = rows->row;

    for (size_t i = 0; i < rows->n; i++)
        if (strcmp(row[i].case_id, case_id) == 0)
            return &row[i];
    return NULL;
}

/* After --resume each case has one row, and those that were ok are as they were. */
static void expect_completed(const struct rows *before, const char *how, int at)
{
    struct rows after = latency_now(), memory = must_read("r/latest", TABLE_MEMORY);
    const struct latency_row *const row = before->row;

    cr_assert_eq(after.n, CASES, "%s %d: %zu rows", how, at, after.n);
    cr_assert(memory.n >= CASES, "%s %d: %zu rows of memory", how, at, memory.n);
    cr_assert_eq(count_status(&after, "interrupted"), 0, "%s %d", how, at);
    for (size_t i = 0; i < before->n; i++) {
        const struct latency_row *const now = row_of(&after, row[i].case_id);
        cr_assert_not_null(now, "%s %d: a row is lost", how, at);
        cr_assert(strcmp(row[i].status, "ok") != 0 ||
                      (now->median_ns == row[i].median_ns && now->samples == row[i].samples),
                  "%s %d: a row had %g ns of %d samples, and has %g of %d", how, at,
                  row[i].median_ns, (int)row[i].samples, now->median_ns, (int)now->samples);
    }
    for (size_t i = 0; i < after.n; i++) {
        const struct latency_row *const now = (const struct latency_row *)after.row + i;
        cr_assert_eq(strcmp(now->status, "ok") == 0, now->median_ns > 0, "%s %d: %s", how, at,
                     now->status);
    }
}

static void sweep_once(const char *how, int at, const char *words)
{
    must_shell("rm -rf r");
    struct ran r = run_failing(how, at, words);
    struct rows before = latency_now();
    const int ok = count_status(&before, "ok");
    expect_orderly(&r, how, at, (size_t)ok < before.n);

    const int broken = (int)before.n - ok - count_status(&before, "interrupted");
    r = run_bench("%s %s", words, folder_has("r/latest/run.json") ? "--resume" : "");
    cr_assert(r.code == 0 || (r.code == 1 && broken > 0), "%s %d: resumed: exit code %d: %s", how,
              at, r.code, r.err.data);
    expect_completed(&before, how, at);
}

static void skip_without_time(const char *how)
{
    if (strncmp(how, "memory:", 7) == 0 && !getenv("FAULTS_ALL"))
        cr_skip_test("%s of a thousand calls: scripts/soak.sh", how);
}

struct trial {
    char how[16], words[32];
    int most; /* about as many of its calls, unless FAULTS_ALL */
};

static struct trial trials[] = {
    {"open:EMFILE", "--raw csv", 12},
    {"fork:EAGAIN", "--raw zst", 3},
    {"memory:ENOMEM", "--raw zst", 14},
    {"open:EMFILE", "--isolate none --raw zst", 12},
    {"write:ENOSPC", "--isolate none --raw csv", 10},
    {"write:EIO", "--isolate none --raw zst", 6},
    {"name:EIO", "--isolate none", 10},
    {"sync:EIO", "--isolate none", 10},
    {"map:ENOMEM", "--isolate none", 3},
    {"memory:ENOMEM", "--isolate none --raw csv", 24},
};

TEST_EACH(struct trial *t, failing_calls, of_a_sweep, EVERY(trials), .init = folder_make,
          .fini = folder_remove, .timeout = LONG)
{
    char words[512];

    SKIP_SANITIZED("a library loaded first and the sanitizer's do not go together");
    skip_without_time(t->how);
    if (!HAVE_ZSTD && strstr(t->words, "zst"))
        cr_skip_test("zstd is not built in");
    snprintf(words, sizeof(words), SWEEP "%s", t->words);
    const int calls = count_failing(t->how, words);
    for (int n = 1; n <= calls; n = next_failing(n, calls, t->most))
        sweep_once(t->how, n, words);
}

/* ---- scoring ------------------------------------------------------------------------------ */

#define TEXT "--corpus text --backend ref --threads 1 --pin none "
#define TRAIN                                                                                      \
    "train --variant xl --seq 4 --mem 4 --batch 2 --layers 1 --d-model 8 --heads 2 --steps 2 "     \
    "--lr-warmup 1 --ckpt m --isolate none -q " TEXT
#define EVAL "eval --ckpt m --seq 4 --mem 4,8 --out r -q " TEXT

static void make_model(void)
{
    char text[400];

    folder_make();
    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = (char)('a' + (i * i + i / 7) % 5);
    MUST(file_replace(in_folder("text"), text, sizeof(text), &failure));
    must_shell("exec \"$BENCH\" " TRAIN);
}

/* Rows of one run are those of another, or its first ones, or say what failed. */
static size_t expect_scored(const struct rows *want, const char *run, const char *how, int at)
{
    struct rows got = must_read(run, TABLE_PERPLEXITY);
    size_t ok = 0;

    cr_assert(got.n <= want->n, "%s %d: %zu rows", how, at, got.n);
    for (size_t i = 0; i < got.n; i++) {
        const struct perplexity_row *x = (const struct perplexity_row *)got.row + i;
        const struct perplexity_row *y = (const struct perplexity_row *)want->row + i;
        const bool fine = strcmp(x->status, "ok") == 0;
        cr_assert(x->mem_tokens == y->mem_tokens &&
                      (fine ? x->nll_nats_per_token == y->nll_nats_per_token &&
                                  x->tokens_scored == y->tokens_scored
                            : x->status_detail[0] != '\0'),
                  "%s %d: row %zu: %s", how, at, i, x->status);
        ok += fine;
    }
    return ok;
}

static void eval_once(const struct rows *want, const char *how, int at)
{
    must_shell("rm -rf r");
    struct ran r = run_failing(how, at, EVAL);
    expect_orderly(&r, how, at, false);
    const size_t ok = folder_has("r/latest") ? expect_scored(want, "r/latest", how, at) : 0;
    cr_assert(r.code != 0 || ok == want->n, "%s %d: exit code 0, %zu rows", how, at, ok);
    r = run_bench(EVAL);
    cr_assert_eq(r.code, 0, "%s %d: again: %s", how, at, r.err.data);
    cr_assert_eq(expect_scored(want, "r/latest", how, at), want->n, "%s %d", how, at);
}

static struct trial scorings[] = {
    {"open:EMFILE", "", 12}, {"map:ENOMEM", "", 4},     {"fork:EAGAIN", "", 3},
    {"write:ENOSPC", "", 8}, {"memory:ENOMEM", "", 40},
};

TEST_EACH(struct trial *t, failing_calls, of_a_scoring, EVERY(scorings), .init = make_model,
          .fini = folder_remove, .timeout = LONG)
{
    SKIP_SANITIZED("a library loaded first and the sanitizer's do not go together");
    skip_without_time(t->how);
    const int calls = count_failing(t->how, EVAL);
    struct rows want = must_read("r/latest", TABLE_PERPLEXITY);

    cr_assert_eq(want.n, 2);
    for (int n = 1; n <= calls; n = next_failing(n, calls, t->most))
        eval_once(&want, t->how, n);
}
