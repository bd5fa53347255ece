/* SPDX-License-Identifier: MIT
 *
 * bench study with budgets: each job is the training that it would be alone, to the bit, whatever
 * is killed between. */
#include "study_runs.h"
#include "tests/support/sanitized.h"
#include "tests/support/tmp_folder.h"
#include "tests/table/must_rows.h"

TestSuite(study_budgets, .init = folder_make, .fini = folder_remove, .timeout = 240);

/* Rows that are remembered, a state, and losses that end within a training; 10, 20 and 40 steps. */
#define BUDGETS                                                                                    \
    "variants = xl linear alrfou\nsize = s: --layers 2 --d-model 16 --heads 2\n"                   \
    "corpus = c: copy:lag=3,p=0.9,alphabet=4\nrates = 3e-3\nseeds = 2\nbaseline-seeds = 2\n"       \
    "eval = --mem 0 --bytes 256\n"
#define TRAIN                                                                                      \
    "train = --seq 16 --mem 16 --batch 4 --lr-warmup 5 --eval-every 15 --dropout 0.1 --pin none\n"
#define STUDY BUDGETS TRAIN "budgets = 0.625Ki..2560*2\n"
enum { JOBS = 3 * 3 * 2 };

/* In the first training, in a fall, and between a stable part and its copy. */
Test(study_budgets, killed_and_continued)
{
    static const char *const moments[] = {"18 jobs", "[2/", "[5/", "[9/", "[14/"};

    SKIP_SANITIZED("minutes, and the next test runs the same code");
    folder_put_text("a.study", STUDY);
    must_bench("study a.study --threads 1 --out w");
    kill_and_go_on("a.study --threads 1", moments, ARRAY_LEN(moments), 57);
    expect_same_rows("w/latest", "r/latest", JOBS);
    const struct study_row *const row = must_rows("w/latest", TABLE_STUDY, JOBS);
    for (int i = 0; i < JOBS; i++)
        must_shell("cmp w/latest/%s r/latest/%s", row[i].checkpoint, row[i].checkpoint);
}

/* In turns by seeds and budgets, with what a budget costs more than the one below; nothing is left that only
 * a training that goes on needs. */
Test(study_budgets, each_is_the_training_alone)
{
    static const char *const contenders[] = {"xl", "linear", "alrfou"};

    folder_put_text("a.study", STUDY);
    struct ran r = must_bench("study a.study --threads 1 --out r --format csv");
    cr_expect(strstr(r.out.data, "c,s,linear,xl,,640,"), "%s", r.out.data);
    const struct study_row *const row = must_rows("r/latest", TABLE_STUDY, JOBS);
    for (int i = 0; i < JOBS; i++) {
        const int budget = 640 << i / 3 % 3;
        cr_expect_str_eq(row[i].status, "ok", "%s", row[i].status_detail);
        cr_expect_str_eq(row[i].contender, contenders[i % 3]);
        NUMBERS({row[i].seed, 1 + i / 9}, {row[i].budget_tokens, budget},
                {row[i].steps, budget / 64}, {row[i].tokens, budget});
        cr_expect(strstr(row[i].repro, " --schedule wsd --lr-decay 0.2 "), "%s", row[i].repro);
        if (row[i].seed > 1)
            continue;
        must_shell("$BENCH %s --quiet --ckpt alone%d && cmp alone%d r/latest/%s && test $(wc -l "
                   "<alone%d.train.csv) -le $(wc -l <r/latest/%s.train.csv)",
                   row[i].repro + strlen("bench "), i, i, row[i].checkpoint, i, row[i].checkpoint);
    }
    shell_exits(1, NULL, "ls r/latest/jobs | grep -E 'opt|best|lock'");
    r = run_shell("\"$BENCH\" study a.study --threads 1 --dry-run --format csv | grep -c ,40,");
    cr_expect_str_eq(r.out.data, "6\n");
}

/* A job that failed is done again although the training that it was a part of has gone on. */
Test(study_budgets, what_failed_is_trained_alone)
{
    folder_put_text("a.study", STUDY);
    must_bench("study a.study --threads 1 --out w");
    must_shell("mkdir r && cp -r w/latest/ r/1 && ln -s 1 r/latest");
    struct rows whole = must_read("w/latest", TABLE_STUDY);
    struct study_row *const row = whole.row;
    const char *const ckpt = kept_text("%s", row[0].checkpoint);
    text_put(row[0].status, TEXT_SIZE, "failed");
    MUST(table_replace(&tables[TABLE_STUDY], in_folder("r/latest/study.csv"), row, whole.n,
                       &failure));
    must_shell("rm r/latest/%s*", ckpt);
    must_bench("study --resume --out r");
    must_shell("cmp w/latest/%s r/latest/%s", ckpt, ckpt);
}

/* The loss of the stable part that is no number is one at each budget that it would have been a part of. */
Test(study_budgets, a_stable_part_that_diverges)
{
    folder_put_text("wild.study",
                    "variants = vanilla\nsize = s: --layers 1 --d-model 16 --heads 2\n"
                    "corpus = c: copy:lag=3,p=0.9,alphabet=4\nrates = 10\nbaseline-seeds = 1\n"
                    "tune-seeds = 1\nseeds = 1\nbudgets = 1280,7680\ntrain = --seq 16 --mem 16 "
                    "--batch 4 --weight-decay 10 --pin none\n");
    run_bench("study wild.study --threads 1 --out r");
    const struct study_row *const row = must_rows("r/latest", TABLE_STUDY, 2);
    cr_expect_str_eq(row[1].status, "wrong", "%s", row[1].status_detail);
}

Test(study_budgets, bad_files)
{
    static const struct {
        const char *lines, *says;
    } bad[] = {
        {TRAIN "budgets = 8Ki,4Ki\n",
         "budgets go down from 8192 to 4096  -> write the least first"},
        {TRAIN "budgets = 1..1Mi*2\n", "budgets are 21  -> write at most 16"},
        {TRAIN "budgets = 0.3Ki\n", "not a whole number"},
        {TRAIN "budgets = 64 128\n", "budgets takes one word, not 2"},
        {TRAIN "budgets = 1Ki\nsteps = 4\n", "two of steps, tokens and budgets"},
        {TRAIN "budgets = 1Ki\ntokens = 4\n", "two of steps, tokens and budgets"},
        {"train = --schedule cosine\nbudgets = 1Ki\n", "--schedule is not an option"},
        {"train = --lr-decay 0.5\nbudgets = 1Ki\n", "--lr-decay is not an option"},
        {TRAIN "budgets = 1Ki\nrates = auto\n", "has no line \"tune-tokens = ...\""},
    };

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        folder_put_text("bad.study", kept_text(BUDGETS "%s", bad[i].lines));
        bench_exits(2, bad[i].says, "study bad.study --dry-run");
    }
}
