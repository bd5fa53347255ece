/* SPDX-License-Identifier: MIT
 *
 * Runs that end early, by a signal or a kill, and --resume of them: every planned case exactly
 * once, at any moment of interruption. */
#include "tests/support/each.h"
#include "tests/support/sanitized.h"
#include "tests/support/whole_run.h"

#include <signal.h>
#include <time.h>

TestSuite(resume, .init = folder_make, .fini = folder_remove, .timeout = 120);

static void sleep_ms(long ms) { nanosleep(&(struct timespec){.tv_nsec = ms * 1000000L}, NULL); }

/* Tables of an interrupted run are whole; a case that is not ok says interrupted. */
static void expect_readable(const char *run)
{
    for (int id = 0; id < TABLE_SAMPLES; id++) {
        struct rows rows = must_read(run, (enum table_id)id);
        if (id == TABLE_LATENCY)
            cr_expect_eq(count_status(&rows, "ok") + count_status(&rows, "interrupted"),
                         (int)rows.n);
    }
    must_samples(in_folder(run));
}

/* The line after "resume with: ". */
static char *printed_command(struct ran *r)
{
    static const char label[] = "\nresume with: ";
    char *at = strstr(r->err.data, label);

    cr_assert(at, "%s", r->err.data);
    at += strlen(label);
    at[strcspn(at, "\n")] = '\0';
    return at;
}

/* ---- signals ------------------------------------------------------------------------------ */

struct stop {
    int number;     /* signal */
    bool group;     /* to the whole process group, as a terminal or timeout(1) does */
    char after[32]; /* text on stderr */
    long delay_ms;  /* this much after the text */
};

static struct stop stops[] = {
    {SIGINT, false, "cases in", 0}, {SIGTERM, true, "cases in", 300}, {SIGTERM, true, "[2/8]", 20},
    {SIGINT, true, "[2/8]", 70},    {SIGTERM, true, "[4/8]", 10},     {SIGINT, false, "[4/8]", 30},
};

TEST_EACH(struct stop *s, resume, after_a_signal, EVERY(stops), .timeout = 120)
{
    struct program p = start_bench(SLOW "--out 'my runs' --filter 'seq<=32'");

    cr_assert(wait_for_text(&p, s->after));
    sleep_ms(s->delay_ms);
    kill(s->group ? -p.pid : p.pid, s->number);
    struct ran r = finish_bench(&p);
    expect_exit(&r, 128 + s->number);
    expect_said(&r, "interrupted; the rows so far are in my runs/20");
    expect_readable("my runs/latest");
    struct rows env = must_read("my runs/latest", TABLE_ENV);
    cr_expect_eq(((struct env_row *)env.row)->exit_code, 128 + s->number);

    must_shell("%s", printed_command(&r));
    expect_complete("my runs/latest");
}

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

struct stage {
    char options[100], until[40]; /* what stderr says in it */
    long delay_ms;                /* this much later */
};

static struct stage stages[] = {
    /* the reference of a case, which takes minutes */
    {"--backend openblas --workload segment --seq 4096 --mem 4096", "against the reference", 0},
    /* its own first run */
    {"--backend ref --workload segment --seq 4096 --mem 4096", "checking xl", 0},
    /* its gradients */
    {"--backend openblas --workload layer --phase fwd_bwd --seq 4096 --mem 0", "checking xl", 0},
    /* a block of 20 s */
    {"--backend ref --workload layer --seq 64 --mem 0 --warmup-ms 0 --block-ms 20000", "case in",
     1500},
    /* before anything */
    {"--backend ref --workload layer --seq 64 --mem 0", "bench ", 0},
};

/* Within a second, and two more for a busy machine to start and end processes in. */
TEST_EACH(struct stage *f, resume, one_signal_ends_any_phase, EVERY(stages), .timeout = 240)
{
    if (strstr(f->options, "openblas") && !backend_find("openblas"))
        cr_skip_test("no openblas in this build");
    struct program p = start_bench(
        "--variant xl --threads 1 --max-time 60 --target-ci 0 --progress plain --out r %s",
        f->options);
    cr_assert(wait_for_text(&p, f->until), "%s", f->options);
    sleep_ms(f->delay_ms);
    const double start = seconds();
    kill(p.pid, SIGINT);
    struct ran r = finish_bench(&p);
    cr_expect_lt(seconds() - start, 3, "%s: %g s", f->options, seconds() - start);
    expect_exit(&r, 130);
    if (strcmp(f->until, "bench ") != 0)
        expect_said(&r, "resume with: ");
}

/* In one process nothing can be stopped from outside; the second signal ends it all the same. */
Test(resume, a_second_signal_ends_at_once)
{
    struct program p = start_bench(
        "--variant xl --backend ref --workload layer --seq 256 --mem 0 --threads 1 --max-time 60 "
        "--warmup-ms 0 --block-ms 20000 --target-ci 0 --isolate none --out r");

    cr_assert(wait_for_text(&p, "1 case in"));
    sleep_ms(1500); /* into a block of 20 s */
    const double start = seconds();
    kill(p.pid, SIGINT);
    sleep_ms(50);
    kill(p.pid, SIGINT);
    struct ran r = finish_bench(&p);
    expect_exit(&r, 130);
    cr_expect_lt(seconds() - start, 3);
}

/* After Ctrl-C the scoring of a text stops early, and every row exists after the resume. */
Test(resume, an_evaluation)
{
    enum { TEXT = SANITIZED ? 8000 : 40000 };
    static const char line[] = "eval --ckpt m.safetensors --corpus text --seq 2 --mem 0..3+1 "
                               "--threads 1 --backend ref --out r";
    char *text = room(1, TEXT);

    for (int i = 0; i < TEXT; i++)
        text[i] = "the quick brown fox "[i * 7 % 20];
    folder_put("text", text, TEXT);
    must_bench("train --variant xl --layers 1 --d-model 16 --heads 1 --seq 4 --mem 4 --batch 1 "
               "--steps 1 --threads 1 --corpus text --ckpt m.safetensors");
    struct program p = start_bench("%s", line);
    cr_assert(wait_for_text(&p, "bench "));
    sleep_ms(20);
    kill(p.pid, SIGINT);
    struct ran r = finish_bench(&p);
    expect_exit(&r, 130);
    must_shell("%s", printed_command(&r));
    struct rows rows = must_read("r/latest", TABLE_PERPLEXITY);
    cr_expect_eq(rows.n, 4);
    for (size_t i = 0; i < rows.n; i++) {
        const struct perplexity_row *row = (const struct perplexity_row *)rows.row + i;
        cr_expect_str_eq(row->status, "ok");
        cr_expect_eq(rows_with(&rows, TABLE_PERPLEXITY, row->case_id), 1);
    }
}

/* A value that was written and is the general default holds, though --count has another one. */
Test(resume, an_evaluation_with_a_default_that_was_written)
{
    must_shell("seq 400 >text; $BENCH train --variant xl --layers 1 --d-model 16 --heads 1 --seq 4 "
               "--mem 4 --batch 1 --steps 1 --threads 1 --corpus text --ckpt m.safetensors -q && "
               "$BENCH eval --ckpt m.safetensors --corpus text --bytes 500 --count lm-eval --bos 9 "
               "--unit token --doc-sep none --detok none -q && $BENCH eval --resume -q");
}

/* ---- two at once -------------------------------------------------------------------------- */

/* A run that is still written is not continued by a second process. */
Test(resume, of_a_run_that_still_runs)
{
    struct program p = start_bench(SLOW "--out r");

    cr_assert(wait_for_text(&p, "[2/8]"));
    const char *const pid = kept_text("process %d ", (int)p.pid);
    kill(p.pid, SIGSTOP); /* it does not end while the second one tries */
    struct ran second = bench_exits(6, NULL, SLOW "--out r --resume");
    kill(p.pid, SIGCONT);
    expect_said(&second, pid);
    struct ran first = finish_bench(&p);
    expect_exit(&first, 0);
    expect_complete("r/latest");
}

/* Sweeps that start at the same moment make folders of their own. */
Test(resume, sweeps_at_the_same_moment)
{
    enum { AT_ONCE = 4 };
    struct program p[AT_ONCE];

    for (int i = 0; i < AT_ONCE; i++)
        p[i] = start_bench(SLOW "--out r --filter 'seq<=8' --min-samples 3 -q");
    for (int i = 0; i < AT_ONCE; i++) {
        struct ran r = finish_bench(&p[i]);
        expect_exit(&r, 0);
    }
    must_shell("set -- r/2*; test $# -eq 4 && for d; do test $(tail -n +2 $d/latency.csv | wc -l) "
               "-eq 4 || exit 9; test ! -e $d/run.lock || exit 8; done; test -d r/latest/");
}

/* A child that was killed costs its row until the run is continued. */
Test(resume, of_a_failed_row)
{
    struct program p = start_bench(SLOW "--out r");
    pid_t child;

    cr_assert(wait_for_text(&p, "[2/8]"));
    for (int i = 0; i < 2000 && children_of(p.pid, &child, 1) == 0; i++)
        sleep_ms(1);
    kill(child, SIGKILL);
    struct ran r = finish_bench(&p);
    struct rows rows = must_read("r/latest", TABLE_LATENCY);
    if (count_status(&rows, "ok") == CASES)
        cr_skip_test("the child had ended");
    expect_exit(&r, 1);
    struct ran again = must_bench(SLOW "--out r --resume");
    expect_complete("r/latest");
    cr_expect_not(strstr(again.err.data, "twice"), "%s", again.err.data);
}

/* ---- kill -9 ------------------------------------------------------------------------------ */

static bool gone(const pid_t *pid, int n)
{
    for (int i = 0; i < n; i++)
        if (!has_ended(pid[i]))
            return false;
    return true;
}

struct moment {
    char after[32];
    long delay_ms;
};

static struct moment moments[] = {{"cases in", 0}, {"[2/8]", 25}, {"[4/8]", 60}, {"[8/8]", 0}};

TEST_EACH(struct moment *m, resume, after_a_kill, EVERY(moments), .timeout = 120)
{
    struct program p = start_bench(SLOW "--out r");
    pid_t children[16];

    cr_assert(wait_for_text(&p, m->after));
    sleep_ms(m->delay_ms);
    const int n = children_of(p.pid, children, (int)ARRAY_LEN(children));
    kill(p.pid, SIGKILL);
    struct ran r = finish_bench(&p);
    cr_expect(r.code == 128 + SIGKILL || r.code == 0, "%d", r.code); /* it may have finished */
    for (int i = 0; i < 1500 && !gone(children, n); i++)
        sleep_ms(2);
    cr_expect(gone(children, n), "children survive their parent");

    must_bench(SLOW "--out r --resume");
    expect_complete("r/latest");
}
