/* SPDX-License-Identifier: MIT
 *
 * bench study: its table, killed and continued, split and merged. Whatever happens between, the
 * rows are those of a run that nothing happened to. */
#include "study_runs.h"
#include "tests/support/sanitized.h"
#include "tests/support/tmp_folder.h"
#include "tests/support/trains.h"
#include "tests/table/must_rows.h"
#include "variants/base/rng.h"

#include <glob.h>

#define SIZE                                                                                       \
    "size = s: --layers 1 --d-model 16 --heads 2\n"                                                \
    "train = --seq 16 --mem 16 --batch 4 --lr-warmup 5 --eval-every 5 "
#define SIZES SIZE "--backend ref\neval = --mem 16,0\n"
#define TINY_STUDY                                                                                 \
    "variants = vanilla xl shaw\n" SIZES "corpus = copy: train.txt valid.txt test.txt\n"           \
    "rates = 1e-3 3e-3\nseeds = 2\nbaseline-seeds = 3\nsteps = 20\n"
enum { JOBS = 3 * 2 + 3 + 2 + 2 };

/* Letters of which each repeats the one eight before it, nine times out of ten. */
static void write_text(const char *name, size_t n)
{
    const uint64_t stream = rng_stream(name);
    char *const text = room(n + 1, 1);

    for (size_t i = 0; i < n; i++) {
        const uint32_t r = rng_u32(1, stream, i);
        text[i] = i >= 8 && r % 10 ? text[i - 8] : (char)('a' + r / 16 % 4);
    }
    folder_put_text(name, text);
}

static void make_study(void)
{
    folder_put_text("tiny.study", TINY_STUDY);
    write_text("train.txt", 8000);
    write_text("valid.txt", 500);
    write_text("test.txt", 500);
}

static void make_all(void)
{
    folder_make();
    make_study();
}

TestSuite(study_runs, .init = make_all, .fini = folder_remove, .timeout = 240);

static void run_whole(const char *out)
{
    struct ran r = must_bench("study tiny.study --threads 1 --out %s --format csv", out);
    HAS(r.out.data, "copy,s,xl,");
}

/* Scores of the final rows are those of perplexity.csv, at the first length; tuning rows have none,
 * and the final rate is the one with the least validation loss. */
Test(study_runs, rows_and_verdicts)
{
    run_whole("r");
    enum { SCORES = 2 * (3 + 2 + 2) };
    const struct study_row *const r = must_rows("r/latest", TABLE_STUDY, JOBS);
    const struct perplexity_row *const p = must_rows("r/latest", TABLE_PERPLEXITY, SCORES);
    double best_valid[3] = {1e9, 1e9, 1e9}, best_rate[3] = {0};
    static const char *const contenders[] = {"vanilla", "xl", "shaw"};
    int seed = 0; /* of the finals so far: they are trained in turns */
    for (size_t i = 0; i < JOBS; i++) {
        const bool final = strcmp(r[i].role, "final") == 0;
        int at = 0;
        while (at < 3 && strcmp(r[i].contender, contenders[at]) != 0)
            at++;
        cr_assert_lt(at, 3);
        cr_expect(!final || r[i].seed >= seed, "seed %d after %d", (int)r[i].seed, seed);
        seed = final ? (int)r[i].seed : seed;
        cr_expect_str_eq(r[i].status, "ok");
        cr_expect_eq(isfinite(r[i].test_nats), final);
        cr_expect(r[i].train_s > 0 && r[i].tokens == 20 * 4 * 16);
        if (!final && r[i].valid_nats < best_valid[at]) {
            best_valid[at] = r[i].valid_nats;
            best_rate[at] = r[i].lr;
        }
        if (!final)
            continue;
        cr_expect(r[i].lr == best_rate[at], "%s: %g", r[i].contender, r[i].lr);
        int found = 0;
        for (size_t k = 0; k < SCORES; k++)
            if (strcmp(p[k].case_id, r[i].test_case_id) == 0) {
                found++;
                cr_expect(p[k].nll_nats_per_token == r[i].test_nats);
                cr_expect_eq(p[k].mem_tokens, 16);
            }
        cr_expect_eq(found, 1);
    }
    struct ran again = must_bench("study r/latest --format csv");
    HAS(again.out.data, "copy,s,shaw,");
    bench_exits(2, NULL, "study r/latest --threads 2");
    again =
        must_shell("\"$BENCH\" report r/latest -o page.html && grep -o 'data-answer=.*' page.html");
    HAS(again.out.data, "data-answer=\"Not tested: xl, shaw.");
}

/* Each variant against its own control: one that the file has is shared, the others are added, with
 * the seeds of a baseline. What a line of options says is its control's, too. */
Test(study_runs, controls)
{
    static const char *const pairs[][2] = {
        {"xl", "vanilla"},           {"gtrxl", "xl"}, {"adanorm", "xl --norm pre"},
        {"wide", "xl --d-inner 24"}, {"vanilla", ""}, {"xl --norm pre", ""},
        {"xl --d-inner 24", ""}};

    folder_put_text("controls.study", "variants = xl gtrxl adanorm\nbaseline = control\n"
                                      "variant = wide: --variant gtrxl --d-inner 24\n" SIZE
                                      "\neval = --mem 16 --bytes 400\n"
                                      "corpus = copy: copy:lag=8,p=0.9,alphabet=4\n"
                                      "rates = 1e-3\nseeds = 3\nbaseline-seeds = 4\nsteps = 4\n");
    struct ran r = must_bench("study controls.study --threads 1 --out r --format csv");
    HAS(r.out.data, "copy,s,adanorm,xl --norm pre,");
    const struct study_row *const row = must_rows("r/latest", TABLE_STUDY, 3 * 3 + 4 * 4);
    for (size_t i = 0; i < 3 * 3 + 4 * 4; i++) {
        size_t at = 0;
        while (at < ARRAY_LEN(pairs) && strcmp(pairs[at][0], row[i].contender) != 0)
            at++;
        cr_assert_lt(at, ARRAY_LEN(pairs), "%s", row[i].contender);
        cr_expect_str_eq(row[i].status, "ok", "%s", row[i].status_detail);
        cr_expect_str_eq(row[i].control, pairs[at][1]);
        cr_expect_eq(row[i].d_inner, strstr(pairs[at][0], "24") || at == 3 ? 24 : 64);
        cr_expect_eq(row[i].baseline, at == 0 || at >= 4, "%s", row[i].contender);
    }
    r = must_bench("study r/latest --format md");
    HAS(r.out.data, "the controls (pooled over 4); p and verdict are corrected for 4");
    folder_put_text("named.study", "variant = none: --d-inner 24\nbaseline = control\n" SIZES
                                   "corpus = copy: train.txt valid.txt test.txt\n"
                                   "rates = 1e-3\nsteps = 4\n");
    bench_exits(2, "variant none does not name one", "study named.study --dry-run");
}

/* Killed in the first jobs, between two of them, and near the end; then again while it goes on. */
Test(study_runs, killed_and_continued)
{
    static const char *const moments[] = {"13 jobs", "[3/", "[6/", "[11/"};

    SKIP_SANITIZED("minutes, and the other tests of this suite run the same code");
    run_whole("whole");
    kill_and_go_on("tiny.study --threads 1", moments, ARRAY_LEN(moments), 61);
    expect_same_rows("whole/latest", "r/latest", JOBS);
}

static void sleep_until_saved(const struct program *p, char path[FILE_PATH])
{
    glob_t found = {0};

    while (glob(in_folder("r/latest/jobs/*.safetensors"), 0, NULL, &found) != 0) {
        cr_assert(!has_ended(p->pid));
        nanosleep(&(struct timespec){.tv_nsec = 5000000L}, NULL);
    }
    snprintf(path, FILE_PATH, "%s", found.gl_pathv[0]);
    globfree(&found);
}

/* The first row of the curve has a speed, which no training has twice: one that begins again writes
 * another. */
static char *first_row(const char *ckpt)
{
    char path[FILE_PATH];

    cr_assert_lt(snprintf(path, sizeof(path), "%s.train.csv", ckpt), FILE_PATH);
    struct bytes file = must_load(path);
    char *const line = strchr(file.data, '\n');
    cr_assert(line && line[1]);
    memmove(file.data, line + 1, strlen(line + 1) + 1);
    file.data[strcspn(file.data, "\n")] = '\0';
    return file.data;
}

Test(study_runs, a_training_goes_on_from_its_checkpoint)
{
    folder_put_text("long.study",
                    "variants = xl\n" SIZES "corpus = copy: train.txt valid.txt test.txt\n"
                    "rates = 1e-3\nbaseline-seeds = 1\nsteps = 300\n");
    char ckpt[FILE_PATH];
    struct program p = start_bench("study long.study --threads 1 --out r");
    sleep_until_saved(&p, ckpt);
    kill(p.pid, SIGKILL);
    finish_bench(&p);
    must_rows("r/latest", TABLE_STUDY, 0); /* else it was killed too late */
    char *const before = first_row(ckpt);
    must_bench("study --resume --out r");
    char *const after = first_row(ckpt);
    cr_expect_str_eq(before, after);
}

Test(study_runs, ends_on_a_signal_and_says_how_to_go_on)
{
    struct program p = start_bench("study tiny.study --threads 1 --out r");

    cr_assert(wait_for_text(&p, "[2/13]"));
    kill(p.pid, SIGTERM);
    struct ran r = finish_bench(&p);
    expect_exit(&r, 143);
    expect_said(&r, "resume with: ");
    must_bench("study --resume --out r");
}

/* The file says the threads of its trainings; a run that goes on has the machine's number too. */
Test(study_runs, goes_on_with_the_threads_of_its_file)
{
    folder_put_text("one.study", "variants = vanilla\nsize = s: --layers 1 --d-model 16 --heads 2\n"
                                 "train = --seq 16 --mem 16 --batch 4 --backend ref --threads 1\n"
                                 "corpus = copy: train.txt valid.txt test.txt\nrates = 1e-3\n"
                                 "baseline-seeds = 2\nsteps = 2\n");
    must_bench("study one.study --out r");
    must_bench("study one.study --out r --resume");
    const struct study_row *const row = must_rows("r/latest", TABLE_STUDY, 2);
    cr_expect_eq(row->threads, 1);
    bench_exits(2, NULL, "study one.study --out o --threads 2"); /* or 1? */
}

/* Rows of a merged study are of its run, not of their shards'. */
static void expect_own_rows(const char *run)
{
    static const enum table_id ids[] = {TABLE_STUDY, TABLE_PERPLEXITY};
    struct rows env = must_read(run, TABLE_ENV);

    cr_assert_eq(env.n, 1);
    for (size_t t = 0; t < ARRAY_LEN(ids); t++) {
        const struct table *const table = &tables[ids[t]];
        struct rows rows = must_read(run, ids[t]);
        cr_expect_gt(rows.n, 0, "%s", table->name);
        for (size_t i = 0; i < rows.n; i++)
            cr_expect_str_eq(
                row_text(table, (const char *)rows.row + i * table->row_size, "run_id"),
                ((const struct env_row *)env.row)->run_id, "%s row %zu", table->name, i);
    }
}

Test(study_runs, split_and_merged)
{
    SKIP_SANITIZED("minutes, and the other tests of this suite run the same code");
    run_whole("whole");
    for (int i = 1; i <= 3; i++)
        must_bench("study tiny.study --threads 1 --shard %d/3 --out s%d", i, i);
    must_bench("merge s2/latest s1/latest s3/latest --out m");
    expect_same_rows("whole/latest", "m/latest", JOBS);
    expect_own_rows("m/latest");
    struct ran r = must_bench("study --resume=m/latest --format csv"); /* has everything */
    HAS(r.out.data, "copy,s,xl,");
    expect_same_rows("whole/latest", "m/latest", JOBS);
    folder_put_text("other.study", TINY_STUDY "# other\n");
    must_bench("study other.study --threads 1 --shard 2/3 --out o");
    bench_exits(2, NULL, "merge s1/latest o/latest s3/latest --out m");
}

/* A rate that makes the loss infinite is a result: the other one is chosen, and the exit code is 0.
 */
Test(study_runs, a_rate_that_diverges)
{
#define WILD                                                                                       \
    "variants = vanilla\nsize = s: --layers 1 --d-model 16 --heads 2\nbaseline-seeds = 2\n"        \
    "seeds = 2\ntrain = --seq 16 --mem 16 --batch 4 --weight-decay 10 --backend ref\nsteps = 60\n" \
    "corpus = copy: train.txt valid.txt test.txt\n"
    folder_put_text("wild.study", WILD "rates = 10 1e-3\n");
    folder_put_text("hopeless.study", WILD "rates = 10 9\n");
    must_bench("study wild.study --threads 1 --out r");
    const struct study_row *row = must_rows("r/latest", TABLE_STUDY, 4);
    cr_expect_str_eq(row[0].status, "wrong");
    for (int i = 2; i < 4; i++)
        cr_expect(row[i].lr == 1e-3 && strcmp(row[i].status, "ok") == 0);
    must_bench("study hopeless.study --threads 1 --out h");
    row = must_rows("h/latest", TABLE_STUDY, 4);
    for (int i = 0; i < 4; i++)
        cr_expect_str_eq(row[i].status, i < 2 ? "wrong" : "skipped");
}

/* The verdict is that of all seeds, or there is none: the run says so, and its folder again in each
 * format and figure, with the same exit code. The scores of some seeds of `hot` are beyond what a
 * perplexity can be. */
Test(study_runs, no_verdict_of_survivors)
{
    static const char *const formats[] = {"csv", "md", "json", "table", "fom"};
    static const char no_score[] = " of 6 seeds have no score";
    char said[sizeof(no_score) + 1], failed[] = "\nbench: 0 wrong, N failed\n";

    folder_put_text("lost.study",
                    "variant = calm: --variant mamba2\nvariant = hot: --variant linear\n"
                    "baseline = calm\nsize = s: --layers 2 --d-model 16 --heads 2\n"
                    "corpus = copy: copy:lag=5,p=0.9,alphabet=8\nrates = 10\nseeds = 6\n"
                    "baseline-seeds = 1\nsteps = 36\ntrain = --seq 32 --mem 0 --batch 2 "
                    "--lr-warmup 1 --grad-clip 0 --backend ref\n"
                    "eval = --mem 0 --bytes 1024\n");
    struct ran r = bench_exits(5, NULL, "study lost.study --threads 1 -q --out r --format csv");
    const char *const at = strstr(r.out.data, no_score);
    HAS(r.out.data, ",not tested,", no_score);
    cr_assert(at && at[-1] >= '2' && at[-1] <= '5', "%s", r.out.data);
    snprintf(said, sizeof(said), "%c%s", at[-1], no_score);
    *strchr(failed, 'N') = at[-1];
    cr_expect(!strstr(r.out.data, "better") && !strstr(r.out.data, "worse"), "%s", r.out.data);
    for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
        struct ran again = bench_exits(5, NULL, "study r/latest --format %s", formats[i]);
        if (i == 0)
            cr_expect_str_eq(again.out.data, r.out.data);
        if (strcmp(formats[i], "table") == 0) /* cuts what is wide */
            HAS(again.out.data, "not tested");
        else if (strcmp(formats[i], "fom") == 0)
            HAS(again.out.data, failed);
        else
            HAS(again.out.data, said);
    }
    must_bench("report r/latest -o report.html && grep -c '%s' report.html", said);
    r = run_bench("plot r/latest --figure study");
    expect_said(&r, "left out study");
    r = shell_exits(1, NULL,
                    "mkdir t && cp r/latest/study.csv t && $BENCH study t"); /* no env.csv */
    shell_exits(5, NULL, "cp r/latest/perplexity.csv t && $BENCH study t");
    shell_exits(
        7, NULL,
        "sed '2s/Z,5,/Z,7,/' r/latest/env.csv >t/env.csv && $BENCH study t"); /* what no row says, such as that a file was bad */
}

Test(study_runs, a_dry_run_lists_and_writes_nothing)
{
    struct ran r = must_bench("study tiny.study --dry-run --format csv --out r");
    cr_expect_eq(count_in(r.out.data, "\n"), JOBS + 1, "%s", r.out.data);
    HAS(r.out.data, ",estimate_s,");
    cr_expect_not(folder_has("r"));
}

/* A model of a text file that is trained so little that it knows no more than the frequencies of bytes, which
 * are counted here again, over what is scored. */
Test(study_runs, a_run_at_the_frequencies_of_bytes_collapsed)
{
    folder_put_text(
        "idle.study",
        "variants = vanilla xl\nsize = s: --layers 1 --d-model 16 --heads 2\n"
        "train = --seq 16 --mem 16 --batch 4 --backend ref\neval = --bytes 400\n"
        "corpus = copy: train.txt valid.txt test.txt\ncorpus = one: train.txt\nrates = 1e-9\n"
        "seeds = 1\nbaseline-seeds = 1\nsteps = 1\n");
    struct ran r = must_bench("study idle.study --threads 1 --out r --format csv");
    HAS(r.out.data, "1 of 1 seeds collapsed: 5.");
    struct rows rows = must_read("r/latest", TABLE_STUDY);
    cr_assert_eq(rows.n, 4);
    for (size_t i = 0; i < rows.n; i++) {
        const struct study_row *const row = (const struct study_row *)rows.row + i;
        const bool one = strcmp(row->corpus, "one") == 0;
        double nats = 0;
        const char *const path = in_folder(one ? "train.txt" : "test.txt");
        struct bytes text = must_load(path);
        const char *const from = text.data + (one ? 7600 : 0);
        for (int n = 0; n < 400; n++) { /* -ln of each byte's share */
            int same = 0;
            for (int k = 0; k < 400; k++)
                same += from[k] == from[n];
            nats -= log(same / 400.0) / 400;
        }
        /* a sum of 400 terms of about 1, each rounded to 2^-53 of it, twice */
        NUMBERS_OF(row->corpus, {row->test_unigram_nats, nats, 1e-12});
    }
}

/* A row that failed is run again, and then no longer counts. */
Test(study_runs, what_failed_is_tried_again)
{
    run_whole("r");
    struct rows rows = must_read("r/latest", TABLE_STUDY);
    struct study_row *const was = rows.row;
    text_put(was[JOBS - 1].status, TEXT_SIZE, "failed");
    MUST(table_replace(&tables[TABLE_STUDY], in_folder("r/latest/study.csv"), was, rows.n,
                       &failure));
    must_bench("study --resume --out r");
    const struct study_row *const row = must_rows("r/latest", TABLE_STUDY, JOBS);
    for (size_t i = 0; i < JOBS; i++)
        cr_expect_str_eq(row[i].status, "ok");
    cr_expect_str_eq(row[JOBS - 1].test_case_id, was[JOBS - 1].test_case_id);
}

/* Variants for inference only are rows that say so; the study goes on without them. */
Test(study_runs, what_cannot_be_trained_is_skipped)
{
    const struct variant *only = NULL;

    for (int i = 0; variants[i]; i++)
        only = trains(variants[i]) ? only : variants[i];
    if (!only)
        cr_skip_test("every variant can be trained");
    const char *const text =
        kept_text("variants = vanilla %s\n" SIZES "corpus = copy: train.txt valid.txt test.txt\n"
                  "rates = 1e-3\nseeds = 2\nbaseline-seeds = 2\nsteps = 5\n",
                  only->name);
    folder_put_text("only.study", text);
    struct ran r = must_bench("study only.study --threads 1 --out r --format csv");
    HAS(r.out.data, ",not tested,");
    const struct study_row *const row = must_rows("r/latest", TABLE_STUDY, 4);
    for (int i = 1; i < 4; i += 2) /* in turns with the baseline */
        cr_expect(strcmp(row[i].status, "skipped") == 0 && *row[i].status_detail, "%s %s",
                  row[i].status, row[i].status_detail);
}

Test(study_runs, bad_calls)
{
    static const struct {
        const char *words;
        int code;
    } bad[] = {{"study", 2},
               {"study nowhere.study", 7},
               {"study tiny.study --steps 3", 2},
               {"study tiny.study --threads 1,2", 2},
               {"study tiny.study --shard 4/3", 2},
               {"study tiny.study --backend nothing", 2}};

    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        bench_exits(bad[i].code, NULL, "%s", bad[i].words);
    /* Another file than the run was made of. */
    struct program p = start_bench("study tiny.study --threads 1 --out r");
    cr_assert(wait_for_text(&p, "[2/13]"));
    kill(p.pid, SIGKILL);
    finish_bench(&p);
    folder_put_text("tiny.study", TINY_STUDY "# changed\n");
    bench_exits(2, NULL, "study tiny.study --resume --out r");
    /* Killed before the copy was written: the file must be named. */
    cr_assert_eq(unlink(in_folder("r/latest/study.txt")), 0);
    bench_exits(7, NULL, "study --resume --out r");
    make_study();
    must_bench("study tiny.study --resume --out r");
    cr_expect(folder_has("r/latest/study.txt"));
}

/* A disk that is full when the study is to be copied leaves no folder, which nothing could resume; with
 * room for the copy, one that is resumed. */
Test(study_runs, disk_full_at_the_start)
{
    make_study();
    shell_exits(7, "study.txt",
                "yes '# a long study' | head -c 30000 >>tiny.study; trap '' XFSZ; ulimit -f 40; "
                "exec \"$BENCH\" study tiny.study --threads 1 --out r");
    struct ran r = run_shell("ls -A r");
    cr_expect_eq(r.out.n, 0, "left: %s", r.out.data);
}
