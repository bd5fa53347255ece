/* SPDX-License-Identifier: MIT
 *
 * The screen during a run, on a pseudo terminal: columns that fit, a line that is rewritten in
 * place and never wraps, and plain text where that is impossible. */
#include "harness/measure/console.h"
#include "tests/support/command_line.h"
#include "tests/support/each.h"
#include "tests/support/pty.h"

TestSuite(screen, .init = folder_make, .fini = folder_remove, .timeout = 240);

/* ---- rows whose numbers are known --------------------------------------------------------- */

struct scene {
    const char *line;
    int resize_at, columns; /* before this case the terminal is resized to so many columns; 0 =
                             * never */
    bool progress;          /* show the progress of each case before its row */
    bool skip;              /* the last case has a reason instead of numbers */
    const char *width;      /* $COLUMNS */
    struct options o;
    struct plan p;
};

static void draw_case(struct console *show, const struct bench_case *c, const struct scene *s)
{
    struct latency_row row = latency_row_empty();
    struct sample samples[20];
    struct result r = {
        .bcase = c,
        .status = ROW_OK,
        .samples = samples,
        .n = ARRAY_LEN(samples),
        .sum = {.median = 3.02e6, .ci_low = 3.01e6, .ci_high = 3.04e6, .noise_pct = 1.5 / 3.02}};

    for (int i = 0; i < r.n; i++)
        samples[i] = (struct sample){.wall_ns = 3.0e6 + 1e3 * i, .calls = 1};
    row.median_ns = r.sum.median;
    row.tokens_per_s = 42400;
    row.gflop_per_s = 22;
    row.peak_flops_pct = 27.1;
    r.report.arena_bytes = 412.3 * (1 << 20);
    r.report.rss_peak_bytes = 9.8 * (1 << 20);
    if (s->skip && c->index == s->p.n - 1) {
        r.status = ROW_SKIPPED;
        snprintf(r.detail, sizeof(r.detail), "%0200d", 7);
    }
    show->last_told_s = 0; /* always due */
    if (s->progress)
        console_progress(show, &r);
    console_row(show, &r, &row);
}

static void play(void *arg)
{
    struct scene *const s = arg;
    struct console show;

    if (s->width)
        setenv("COLUMNS", s->width, 1);
    CHECK(console_open(&show, &s->o, &tables[TABLE_LATENCY], s->p.n, &failure) == OK);
    console_plan(&show, s->p.cases, s->p.n);
    for (int i = 0; i < s->p.n; i++) {
        const struct winsize size = {.ws_row = 24, .ws_col = (unsigned short)s->columns};
        if (s->resize_at && i == s->resize_at)
            CHECK(ioctl(STDOUT_FILENO, TIOCSWINSZ, &size) == 0);
        draw_case(&show, &s->p.cases[i], s);
    }
    console_note(&show, "finished");
}

static struct view v; /* of the last */

static void watch_rows(int where, int columns, struct scene s)
{
    must_plan(&s.p, &s.o, s.line);
    watch(&v, where, columns, play, &s);
    cr_assert_eq(v.code, 0);
}

/* ---- the table ---------------------------------------------------------------------------- */

/* A heading, and how often a text stands on the screen; NULL ends the list. */
struct word_count {
    const char *text;
    int n;
};

static void expect_shown(const char *screen, const struct word_count *s)
{
    for (; s->text; s++)
        cr_expect_eq(count_in(screen, s->text), s->n, "\"%s\" %d times, not %d: %s", s->text,
                     count_in(screen, s->text), s->n, screen);
}
#define SHOWN(screen, ...) expect_shown(screen, (const struct word_count[]){__VA_ARGS__, {NULL, 0}})

/* Long names, long numbers. */
#define AWKWARD                                                                                    \
    "--variant base --gate sigtanh --workload layer,segment --backend ref --seq 4,131072 "         \
    "--mem 65536 --threads 1 "

struct fit {
    int columns;
    char heading[100], row[100]; /* the end of the one, the start of the other */
    int notes;
};

static struct fit fits[] = {
    {40, "  seq   mem variant   backend    median\n", "    4 65536 ", 1},
    {60, "   seq    mem  variant        backend       median     tok/s\n", "     4  65536  ", 1},
    {80, "   seq    mem  variant        backend       median     tok/s  95 % interval\n",
     "     4  65536  ", 1},
    {200, "  reserved   peak RSS  check    noise\n", "     4  65536  ", 0},
};

TEST_EACH(struct fit *f, screen, table_fits, EVERY(fits))
{
    watch_rows(ON_STDOUT, f->columns,
               (struct scene){.line = AWKWARD "--color never", .skip = true});
    cr_expect_leq(widest(v.screen), f->columns, "%s", v.screen);
    cr_expect_gt(count_in(v.screen, f->row), 0, "%s", v.screen);
    const int rows = count_in(v.screen, " ref ");
    cr_expect_gt(rows, 8);
    SHOWN(v.screen, {f->heading, 2}, {"  skipped:", 1}, {" 3.02 ms", rows - 1}, {"\033", 0});
    SHOWN(v.file, {"note: ", f->notes}, {"--format csv has them all\n", f->notes});
}

/* What all cases share stands above them, a row says what is its own. */
Test(screen, labels_of_a_plan)
{
    watch_rows(ON_STDOUT, 100,
               (struct scene){.line = "--variant rope --ffn gelu_tanh --dtype f32,bf16 "
                                      "--backend ref --seq 4 --mem 0 --threads 1 --color never"});
    HAS(v.screen, "  f32,bf16  threads=1  ffn=gelu_tanh\n");
    SHOWN(v.screen, {"layer ", 1}, {"  rope   ", 1}, {"  rope/bf16   ", 1});
    /* Variants whose heads or feed-forward layers have another width stand in one table and say so. */
    watch_rows(ON_STDOUT, 100,
               (struct scene){.line = "--variant mla,llama,gdn --workload layer --backend ref "
                                      "--d-model 512 --heads 8 --seq 4 --mem 0 --threads 1 "
                                      "--color never"});
    SHOWN(v.screen, {"layer ", 1}, {"  d_head=64  ", 1}, {"\n\n", 0}, {" mla/d_head=96 ", 1},
          {" gdn/d_head=32 ", 1}, {" llama ", 1});
}

/* What people choose by is shown before how sure it is, whatever the names need. */
Test(screen, tokens_per_second_stay)
{
    EACH_TEXT (name, "--variant xl ",
               "--variant rope --norm pre,post "
               "--ffn gelu_tanh,relu ") {
        const char *const line = kept_text(
            "%s--backend ref --seq 4 --mem 512 --mem-kind hidden --threads 1 --color never", name);
        watch_rows(ON_STDOUT, 80, (struct scene){.line = line});
        HAS(v.screen, " tok/s");
        cr_expect_gt(count_in(v.screen, " 42 400"), 0, "%s", v.screen);
        cr_expect_leq(widest(v.screen), 80, "%s", v.screen);
    }
}

/* Columns are as wide as the longest name needs. */
Test(screen, long_names_stay_in_their_column)
{
    if (!backend_find("openblas"))
        cr_skip_test("openblas is not built in");
    watch_rows(ON_STDOUT, 140,
               (struct scene){.line = "--variant rope --norm pre,post --ffn gelu_tanh,relu "
                                      "--backend openblas,ref --seq 4 --mem 512 --mem-kind hidden "
                                      "--threads 1 --color never"});
    const char *const head = strstr(v.screen, " median");
    cr_assert(head && count_in(v.screen, "3.02 ms") == 8, "%s", v.screen);
    const char *line = head;
    while (line[-1] != '\n')
        line--;
    const long end = head + strlen(" median") - line;
    for (line = strchr(line, '\n') + 1; *line && strstr(line, "3.02 ms");
         line = strchr(line, '\n') + 1)
        cr_expect_eq(strstr(line, "3.02 ms") + strlen("3.02 ms") - line, end, "%s", v.screen);
}

Test(screen, columns_that_are_hidden_are_named)
{
    watch_rows(ON_STDOUT, 100, (struct scene){.line = AWKWARD});
    HAS(v.file, "note: 100 columns are too narrow for reserved, peak RSS, check, noise "
                " -> widen the terminal to ");
    watch_rows(ON_STDOUT, 100, (struct scene){.line = "-q " AWKWARD});
    SHOWN(v.file, {"note: ", 0});
}

/* A layer reads cached keys and values, a training computes those of the context from hidden rows. */
Test(screen, a_heading_names_the_context_of_its_own_workload)
{
    watch_rows(ON_STDOUT, 100,
               (struct scene){.line = "--variant gqa --workload layer,train --backend ref --seq 8 "
                                      "--mem 8 --threads 1 --color never"});
    SHOWN(v.screen, {"layer  batch=", 1}, {"  threads=1  context=kv\n", 1}, {"train  batch=", 1},
          {"  threads=1  context=hidden\n", 1}, {"  gqa  ", 2} /* no row says it again */);
    cr_expect_lt(strstr(v.screen, "context=kv"), strstr(v.screen, "train  batch="));
    cr_expect_lt(strstr(v.screen, "train  batch="), strstr(v.screen, "context=hidden"));
}

/* The next heading is laid out for the new width, and the note is not repeated. */
Test(screen, a_resize_counts_from_the_next_heading_on)
{
    struct scene s = {.line = "--variant xl --workload attn,layer,segment --backend ref --seq 4,8 "
                              "--mem 0 --threads 1 --color never",
                      .resize_at = 2,
                      .columns = 60};

    watch_rows(ON_STDOUT, 200, s);
    char *const second = strstr(v.screen, "\n\nlayer");
    cr_assert_not_null(second, "%s", v.screen);
    cr_expect_leq(widest(second), 60, "%s", second);
    *second = '\0';
    SHOWN(v.screen, {"noise\n", 1});
    SHOWN(v.file, {"note: 60 columns are too narrow", 1});
    s.resize_at = 1; /* inside the first group: its rows keep their columns */
    watch_rows(ON_STDOUT, 200, s);
    cr_expect_eq(count_in(v.screen, "0.5 % few") + count_in(v.screen, "0.5 %"), 2, "%s", v.screen);
}

Test(screen, width_of_a_terminal_that_does_not_say)
{
    watch_rows(ON_STDOUT, 0, (struct scene){.line = AWKWARD, .width = "45"});
    cr_expect_leq(widest(v.screen), 45, "%s", v.screen);
    watch_rows(ON_STDOUT, 0, (struct scene){.line = AWKWARD, .width = "rubbish"});
    cr_expect_leq(widest(v.screen), 80, "%s", v.screen);
    HAS(v.screen, "95 % interval");
    watch_rows(ON_STDOUT, 200, (struct scene){.line = AWKWARD, .width = "45"});
    cr_expect(strstr(v.screen, "noise"), "the terminal knows better: %s", v.screen);
}

/* Output to a file is not limited by the width of a terminal on the other stream. */
Test(screen, a_redirected_table_has_all_columns)
{
    watch_rows(ON_STDERR, 40,
               (struct scene){.line = AWKWARD "--format table", .width = "40", .skip = true});
    HAS(v.file, "peak RSS  check    noise\n");
    cr_expect_gt(widest(v.file), 200, "a reason is not cut: %s", v.file);
    SHOWN(v.file, {"\033", 0});
    SHOWN(v.screen, {"note: ", 0});
}

/* ---- colours ------------------------------------------------------------------------------ */

Test(screen, headings_are_bold_where_colour_is_wanted)
{
    watch_rows(ON_STDOUT, 80, (struct scene){.line = AWKWARD});
    SHOWN(v.screen, {"\033[1m", 4});
    cr_expect_leq(widest(v.screen), 80, "%s", v.screen);
    watch_rows(ON_STDOUT, 80, (struct scene){.line = AWKWARD "--color never"});
    SHOWN(v.screen, {"\033", 0});
    watch_rows(ON_STDERR, 80, (struct scene){.line = AWKWARD "--format table --color always"});
    SHOWN(v.file, {"\033[1m", 4});
}

/* ---- the live line ------------------------------------------------------------------------ */

static int widths[] = {1, 40, 80, 200};

TEST_EACH(int *columns, screen, line_fits, EVERY(widths))
{
    watch_rows(ON_STDERR, *columns, (struct scene){.line = AWKWARD, .progress = true});
    char *const end = strstr(v.screen, "finished\n");
    cr_assert_not_null(end, "%s", v.screen);
    *end = '\0';
    cr_expect_lt(widest(v.screen), max_int(2, *columns), "%s", v.screen);
    SHOWN(v.screen, {"\n", 0}); /* one line, rewritten */
    cr_expect_gt(count_in(v.screen, ERASE), 8);
    if (*columns == 40)
        HAS(v.screen, ERASE "[  1/");
    if (*columns == 200) /* ranks 6 and 15 of 20: 9 us of 3 ms, halved */
        HAS(v.screen, " ref  20/15+ samples  noise 0.1 %" ERASE);
    what_remains(v.screen);
    cr_expect_str_empty(v.screen, "left behind: %s", v.screen);
}

Test(screen, progress_is_cleared_before_anything_else)
{
    watch_rows(ON_BOTH, 120, (struct scene){.line = AWKWARD, .progress = true});
    cr_expect_gt(count_in(v.screen, "samples"), 8);
    cr_expect_leq(widest(v.screen), 200);
    what_remains(v.screen);
    SHOWN(v.screen, {"samples", 0}, {"\nfinished\n", 1});
}

/* Where rows and progress go to one place, each row stands there once, below its heading. */
Test(screen, a_log_of_both_streams_has_each_row_once)
{
    static const char *const formats[] = {"table", "csv", "md", "jsonl"}, *const medians[] = {
                                                                              " 3.02 ms",
                                                                              ",3020000,",
                                                                              " 3.020 ",
                                                                              ":3020000,"};
    for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
        const char *const line =
            kept_text("--variant xl --workload layer --backend ref --seq 4,8 --mem 0 --threads 1 "
                      "--progress plain --color never --format %s",
                      formats[i]);
        watch_rows(0, 0, (struct scene){.line = line});
        SHOWN(v.file, {"/2] xl", 0}, {medians[i], 2}, {" 412.3 |", i == 2 ? 2 : 0});
        watch_rows(ON_STDOUT, 100, (struct scene){.line = line});
        SHOWN(v.file, {"/2] xl", 2});
    }
    watch_rows(0, 0,
               (struct scene){.line = "--variant xl --workload layer --backend ref --seq 4,8 "
                                      "--mem 0 --threads 1 --progress plain --format json"});
    SHOWN(v.file, {"/2] xl", 2}); /* rows come at the end */
}

/* A case that takes longer than the rest of the run was expected to. */
static void overrun(void *arg)
{
    struct scene *const s = arg;
    struct result r = {.bcase = s->p.cases};
    struct console show;

    CHECK(console_open(&show, &s->o, &tables[TABLE_LATENCY], s->p.n, &failure) == OK);
    show.expected_s = 2;
    for (int past_s = 0; past_s <= 1000; past_s += 500) {
        show.last_told_s = 0;
        show.row_s = show.start_s - past_s;
        show.expected_done_s = 0;
        console_progress(&show, &r);
    }
}

Test(screen, nothing_is_left_only_at_the_end)
{
    struct scene s = {.line = "--variant xl --backend ref --seq 4 --mem 0 --progress plain"};

    must_plan(&s.p, &s.o, s.line);
    watch(&v, ON_STDOUT, 100, overrun, &s);
    cr_assert_eq(v.code, 0);
    SHOWN(v.file, {"  2.0 s left\n", 1}, {"  longer than expected\n", 2}, {" 0 s left", 0});
}

/* ---- the program -------------------------------------------------------------------------- */

static void run(void *arg) { execl("/bin/sh", "sh", "-c", (const char *)arg, (char *)NULL); }

static void watch_shell(int where, int columns, const char *line)
{
    char copy[600];

    snprintf(copy, sizeof(copy), "%s", line);
    watch(&v, where, columns, run, copy);
    cr_assert_eq(v.code, 0, "%s%s", v.screen, v.file);
}

#define TWO_CASES                                                                                  \
    "exec \"$BENCH\" --variant xl --backend ref --workload attn --seq 4,8 --mem 0 "                \
    "--bytes 64 " TINY

Test(screen, a_sweep_on_a_terminal)
{
    watch_shell(ON_BOTH, 60, TWO_CASES);
    HAS(v.screen, "   seq    mem  variant        backend       median     tok/s\033[0m\n");
    SHOWN(v.screen, {"note: 60 columns", 1});
    what_remains(v.screen);
    SHOWN(v.screen, {" samples  ", 0});
}

struct plain {
    char before[40], options[40];
    int lines; /* of progress */
};

static struct plain plain_lines[] = {
    {"TERM=dumb", "", 2},        {"CI=true", "", 2},         {"CI=1", "", 2},
    {"", "--progress plain", 2}, {"", "--progress none", 0}, {"", "-q", 0},
};

/* A line per case, nothing rewritten. */
TEST_EACH(struct plain *p, screen, plain_progress, EVERY(plain_lines), .timeout = 240)
{
    watch_shell(ON_STDERR, 80, kept_text("export A=1 %s; " TWO_CASES " %s", p->before, p->options));
    SHOWN(v.screen, {"\033", 0}, {"\r", 0}, {"/2] xl attn seq=", p->lines});
}

Test(screen, no_color_and_dumb_terminals_have_no_escapes)
{
    watch_shell(ON_STDOUT, 80, "export NO_COLOR=1; " TWO_CASES);
    SHOWN(v.screen, {"\033", 0});
    HAS(v.screen, "backend       median");
    watch_shell(ON_BOTH, 80, "export TERM=dumb; " TWO_CASES);
    SHOWN(v.screen, {"\033", 0});
}

#define TRAINING                                                                                   \
    "exec \"$BENCH\" train --variant vanilla --backend ref --threads 1 --ckpt m --seq 8 --mem 0 "  \
    "--batch 1 --layers 1 --d-model 8 --heads 1 --steps 120 --eval-every 60 --force "

/* Validations stay, the steps between them do not; elsewhere all are lines. */
Test(screen, training_on_a_terminal)
{
    watch_shell(ON_STDERR, 60, TRAINING);
    char *const steps = strstr(v.screen, "step 60/120  loss "), *const end =
                                                                    strstr(v.screen, "wrote m");
    cr_assert(steps && end);
    *end = '\0';
    cr_expect_leq(widest(steps), 60, "%s", steps);
    what_remains(steps);
    SHOWN(steps, {"step 50/", 0}, {"step 100/", 0}, {"step 60/120 ", 1}, {"step 120/120 ", 1});
    watch_shell(ON_STDERR, 60, TRAINING "--log-every 40");
    cr_expect_leq(widest(v.screen), 60, "%s", v.screen);
    what_remains(v.screen);
    SHOWN(v.screen, {"step 40/120 ", 1}); /* asked for */
    watch_shell(ON_STDOUT, 60, TRAINING);
    SHOWN(v.file, {"\nstep 50/120 ", 1}, {"\nstep 60/120 ", 1}, {"\033", 0}, {"\r", 0});
    watch_shell(ON_STDERR, 60, TRAINING "--progress none");
    SHOWN(v.screen, {"step 50", 0});
}

/* ---- widths of texts ---------------------------------------------------------------------- */

Test(screen, text_is_cut_between_characters)
{
    const struct {
        const char *text;
        int columns;
        const char *left;
    } cases[] = {
        {"plain", 5, "plain"},
        {"plain", 4, "pl.."},
        {"plain", 2, "pl"},
        {"plain", 0, ""},
        {"plain", -3, ""},
        {"1.2 \u00b1 3", 7, "1.2 \u00b1 3"},
        {"1.2 \u00b1 3", 6, "1.2 .."},
        {"\u00b1\u00b1\u00b1\u00b1", 3, "\u00b1.."},
        {"", 3, ""},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char text[32];
        snprintf(text, sizeof(text), "%s", cases[i].text);
        terminal_cut(text, cases[i].columns);
        cr_expect_str_eq(text, cases[i].left, "%s to %d", cases[i].text, cases[i].columns);
        cr_expect_leq(terminal_columns(text), max_int(0, cases[i].columns));
    }
    cr_expect_eq(terminal_columns("1.2 \u00b1 3"), 7);
}
