/* SPDX-License-Identifier: MIT
 *
 * bench study of memory tasks: its rows are returns that bench eval gives again, the chosen rate is
 * that of the largest one, and a killed study goes on to the same rows. */
#include "study_runs.h"
#include "tests/support/sanitized.h"
#include "tests/support/tmp_folder.h"
#include "tests/table/must_rows.h"

/* Two rates of which one learns nothing; episodes of 4 steps, and of 6 in segments of 4. */
enum { JOBS = 2 * (2 + 3 + 2 + 3), EPISODES = 200 };
#define STUDY                                                                                      \
    "variants = vanilla xl\nsize = s: --layers 1 --d-model 16 --heads 2\n"                         \
    "task = maze: tmaze:len=2\ntask = ball: catch:delay=3,width=5\nrates = 1e-9 1e-2\n"            \
    "seeds = 3\nbaseline-seeds = 3\nsteps = 40\neval = --episodes 200\n"                           \
    "train = --seq 4 --mem 4 --batch 16 --schedule constant --lr-warmup 3 --eval-every 20 "        \
    "--backend ref --threads 1 --pin none\n"

static void make_study(void)
{
    folder_make();
    folder_put_text("tasks.study", STUDY);
}

TestSuite(study_tasks, .init = make_study, .fini = folder_remove, .timeout = 240);

static void run_whole(const char *out)
{
    struct ran r = must_bench("study tasks.study --out %s --format csv", out);
    HAS(r.out.data, "maze,s,xl,", ",return,");
}

/* The return of a checkpoint by bench eval. */
static double evaluated(const char *run, const char *ckpt)
{
    struct ran r = must_bench(
        "eval --ckpt %s/%s --episodes %d --backend ref --threads 1 --format csv --columns return",
        run, ckpt, EPISODES);
    const char *const line = strchr(r.out.data, '\n');
    const double x = line ? strtod(line, NULL) : NAN;
    return x;
}

static void expect_row(const struct study_row *r, bool final)
{
    const bool maze = strcmp(r->corpus, "maze") == 0;
    const double shown = final ? r->test_return : r->valid_return;

    cr_expect_str_eq(r->status, "ok", "%s", r->status_detail);
    cr_expect(isnan(r->valid_nats) && isnan(r->test_nats) && isnan(r->train_nats));
    cr_expect(isfinite(r->valid_return));
    NUMBERS({isfinite(r->test_return), final}, {r->test_episodes, final ? EPISODES : I64_EMPTY},
            {r->tokens, 40 / (maze ? 1 : 2) * 16 * (maze ? 4 : 6)},
            {r->random_return, maze ? 0 : 0.2, 1e-12}, {r->optimum_return, 1, 1e-12},
            {r->solved, shown - r->random_return >= 0.9 * (1 - r->random_return)});
    if (!final)
        return;
    cr_expect(r->test_return_ci95_low <= r->test_return);
    cr_expect(r->test_return <= r->test_return_ci95_high);
    cr_expect_float_eq(evaluated("r/latest", r->checkpoint), r->test_return, 1e-5);
}

Test(study_tasks, rows_and_verdicts)
{
    run_whole("r");
    const struct study_row *const r = must_rows("r/latest", TABLE_STUDY, JOBS);
    for (size_t i = 0; i < JOBS; i++) {
        const bool final = strcmp(r[i].role, "final") == 0;
        double best = -INFINITY, rate = NAN;
        expect_row(&r[i], final);
        for (size_t k = 0; k < JOBS; k++)
            if (strcmp(r[k].role, "tune") == 0 && strcmp(r[k].corpus, r[i].corpus) == 0 &&
                strcmp(r[k].contender, r[i].contender) == 0 && r[k].valid_return > best) {
                best = r[k].valid_return;
                rate = r[k].lr;
            }
        cr_expect(!final || r[i].lr == rate, "%s: %g, not %g", r[i].contender, r[i].lr, rate);
    }
    struct ran again = must_bench("study r/latest --format fom");
    HAS(again.out.data, " test_return ");
    cr_expect(!strstr(again.out.data, " nats"), "%s", again.out.data);
}

Test(study_tasks, killed_and_continued)
{
    SKIP_SANITIZED("minutes, and the other test of this suite runs the same code");
    run_whole("whole");
    kill_and_go_on("tasks.study", (const char *const[]){"[3/", "[9/"}, 2, 0);
    expect_same_rows("whole/latest", "r/latest", JOBS);
}

Test(study_tasks, a_dry_run_says_how_long)
{
    struct ran r = must_bench("study tasks.study --dry-run --format csv");
    HAS(r.out.data, "--task catch:delay=3");
    expect_said(&r, "20 jobs");
}
