/* SPDX-License-Identifier: MIT
 *
 * What people see, whole: the screens of commands for known rows, on terminals of 80 and of 140
 * columns, without colours, and in a pipe. tests/screens/ has the expected texts, in which ESC is
 * ^[; `scripts/screens.sh` writes them anew. */
#include "harness/compare/compare_print.h"
#include "harness/compare/gate.h"
#include "harness/learn/score/perplexity.h"
#include "harness/measure/ranking.h"
#include "tests/support/command_line.h"
#include "tests/support/pty.h"
#include "tests/support/run_folder.h"
#include "variants/model/attention/around.h"

TestSuite(screens, .init = folder_make, .fini = folder_remove, .timeout = 120);

/* ---- comparing ---------------------------------------------------------------------------- */

struct staged {
    scene_fn *scene;
    const char *line; /* of a command */
    bool no_color;
};

static void stage(void *arg)
{
    struct staged *const s = arg;

    if (s->no_color)
        setenv("NO_COLOR", "1", 1);
    s->scene(s);
}

static void put_visible(FILE *f, const char *text)
{
    for (; *text; text++)
        if (*text == '\033')
            fputs("^[", f);
        else
            fputc(*text, f);
}

static void draw(FILE *f, const char *title, int where, int columns, struct staged s)
{
    static struct view v;

    watch(&v, where, columns, stage, &s);
    cr_assert_eq(v.code, 0, "%s: %s%s", title, v.screen, v.file);
    fprintf(f, "======== %s\n", title);
    put_visible(f, where ? v.screen : v.file);
    if (where && v.file[0]) {
        fputs("-------- stderr\n", f);
        put_visible(f, v.file);
    }
    cr_expect(columns == 0 || widest(v.screen) <= columns, "%s: %s", title, v.screen);
}

static const char *draw_all(struct staged s)
{
    FILE *const f = text_begin();

    draw(f, "80 columns", ON_STDOUT, 80, s);
    draw(f, "140 columns", ON_STDOUT, 140, s);
    draw(f, "a pipe", 0, 0, s);
    s.no_color = true;
    draw(f, "80 columns, NO_COLOR", ON_STDOUT, 80, s);
    return text_end(f);
}

/* Lines of the two texts that differ. */
static void expect_same(const char *tracked, const char *is)
{
    char line[512];

    folder_put_text("drawn", is);
    const char *const command = kept_text("diff -u %s %s 2>&1", tracked, in_folder("drawn"));
    FILE *const p = popen(command, "r"), *const f = text_begin(); // NOLINT: own words
    cr_assert(p);
    while (fgets(line, sizeof(line), p))
        fputs(line, f);
    const char *const diff = text_end(f);
    cr_expect_eq(pclose(p), 0, "%s differs (scripts/screens.sh writes it anew):\n%s", tracked,
                 diff);
}

static void expect_text(const char *name, const char *is)
{
    const char *const tracked = kept_text("tests/screens/%s.txt", name);
    if (getenv("REWRITE_SCREENS"))
        MUST(file_replace(tracked, is, strlen(is), &failure));
    else
        expect_same(tracked, is);
}

static void expect_screen(const char *name, struct staged s) { expect_text(name, draw_all(s)); }

/* ---- rows --------------------------------------------------------------------------------- */

/* Rounds in which the cases of a shape take turns. Those of avx512 are disturbed in some; openblas
 * is faster and slower than avx2 in turns; times are multiples of the base. */
static const struct made_case made[] = {
    {"xl", "avx2", "0a01", 128, 2.40e6},     {"xl", "avx512", "0a02", 128, 1.91e6},
    {"xl", "openblas", "0a03", 128, 2.41e6}, {"rope", "avx2", "0a04", 128, 2.10e6},
    {"rope", "avx512", "0a05", 128, 1.90e6}, {"xl", "avx2", "0b01", 1024, 31.0e6},
    {"xl", "avx512", "0b02", 1024, 24.6e6},  {"xl", "openblas", "0b03", 1024, 30.8e6},
    {"rope", "avx2", "0b04", 1024, 26.3e6},  {"rope", "avx512", "0b05", 1024, 24.7e6},
};

static void make_run(const char *name, double factor)
{
    enum { ROUNDS = 20 };
    char from[FILE_PATH];

    struct rundir d = made_open("4f2c1ab");
    for (size_t i = 0; i < ARRAY_LEN(made); i++) {
        struct made_case c = made[i];
        c.ns *= factor;
        made_row(&d, &c, "host", "ok", "", 4 << 20);
    }
    for (int round = 0; round < ROUNDS; round++)
        for (size_t i = 0; i < ARRAY_LEN(made); i++) {
            const bool hit = strcmp(made[i].backend, "avx512") == 0 && round < 4;
            const bool shaky =
                strcmp(made[i].backend, "openblas") == 0 || strcmp(made[i].id, "0b05") == 0;
            const double turn = shaky ? (round % 2 ? 1.03 : 0.97) : 1 + 0.001 * (round % 3);
            made_sample(&d, made[i].id, round, made[i].ns * factor * turn * (hit ? 3 : 1), hit);
        }
    made_close(&d, "host", "CPU");
    text_put(from, sizeof(from), d.path);
    cr_assert_eq(rename(from, in_folder(name)), 0);
}

static void run_line(void *arg)
{
    const struct staged *const s = arg;

    const char *const line = kept_text("exec \"$BENCH\" %s", s->line);
    execl("/bin/sh", "sh", "-c", line, (char *)NULL);
    _exit(99);
}

/* ---- sweep -------------------------------------------------------------------------------- */

static void finish_case(struct console *show, const struct bench_case *c)
{
    static const double ns[] = {3.02e6, 48.2e6, 21.4e3, 7.7e9};
    struct latency_row row = latency_row_empty();
    struct result r = {.bcase = c, .status = ROW_OK, .n = 20};
    const double median = ns[c->index % 4];

    r.sum = (struct summary){.median = median,
                             .ci_low = 0.997 * median,
                             .ci_high = 1.004 * median,
                             .noise_pct = 0.35,
                             .launches = c->index == 3 ? 1 : 3,
                             .samples = 20};
    row.median_ns = median;
    row.tokens_per_s = 1e9 * c->seq / median;
    row.gflop_per_s = 22 + 9 * c->index;
    row.peak_flops_pct = 17.1 + c->index;
    r.report.arena_bytes = 4.1 * (1 << 20) * (1 + c->index);
    r.report.rss_peak_bytes = 9.8 * (1 << 20) * (1 + c->index);
    r.report.checked_rows = 64;
    if (c->index == 1) {
        r.sum.ci_low = r.sum.ci_high = r.sum.noise_pct = NAN;
        r.sum.used = 3;
        r.sum.noisy = true;
        r.remarks = REMARK_FEW | REMARK_NOISY;
    }
    if (c->index == 2)
        r.remarks = REMARK_UNCHECKED;
    if (c->index == 3)
        r.remarks = REMARK_SAMPLED;
    if (c->index == 4) {
        r.status = ROW_WRONG;
        text_put(r.detail, sizeof(r.detail), "max_rel_err 0.031 > 0.0001 at [0,17,201]");
    }
    if (c->index == 5) {
        r.status = ROW_SKIPPED;
        text_put(r.detail, sizeof(r.detail), "needs 34.4 GiB, 20.1 GiB are free");
    }
    console_row(show, &r, &row);
}

static void sweep(void *arg)
{
    struct console show;
    struct options o;
    struct plan p;
    struct run run;

    CHECK(parse_words(&o,
                      "--variant xl,gtrxl --gate gru,sigtanh --workload layer,decode --backend ref "
                      "--seq 128 --mem 0,512 --threads 2 --progress none",
                      &failure) == OK);
    CHECK(plan_make(&p, &o, &failure) == OK);
    CHECK(console_open(&show, &o, &tables[TABLE_LATENCY], p.n, &failure) == OK);
    console_plan(&show, p.cases, p.n);
    for (int i = 0; i < p.n; i++)
        finish_case(&show, &p.cases[i]);
    console_flush(&show);
    CHECK(run_read(&run, "run", &failure) == OK);
    if (show.format == FORMAT_TABLE)
        rankings_show(stdout, &run, terminal_width(STDOUT_FILENO), show.color);
    run_free(&run);
    plan_free(&p);
}

Test(screens, sweep)
{
    make_run("run", 1);
    expect_screen("sweep", (struct staged){.scene = sweep});
}

/* ---- compare ------------------------------------------------------------------------------ */

Test(screens, compare)
{
    make_run("run", 1);
    make_run("new", 0.9);
    expect_screen(
        "compare-axis",
        (struct staged){.scene = run_line, .line = "compare --axis backend --base avx2 run"});
    expect_screen("compare-runs", (struct staged){.scene = run_line, .line = "compare run new"});
}

/* ---- gate --------------------------------------------------------------------------------- */

static void gate(void *arg)
{
    static const struct {
        double mid, half;
        enum verdict verdict;
        enum basis basis;
        const char *note;
    } v[] = {
        {0.002, 0.004, VERDICT_SAME, BASIS_PAIRS, ""},
        {0.09, 0.01, VERDICT_SLOWER, BASIS_PAIRS, "arena 4.0 MiB -> 4.1 MiB (+102400 bytes)"},
        {-0.12, 0.02, VERDICT_FASTER, BASIS_CPU, ""},
        {0.06, 0.09, VERDICT_UNCLEAR, BASIS_PAIRS, "slower in one round of two"},
    };
    struct trial g = {.threshold = 0.05};
    struct options o;

    CHECK(parse_words(&o, "gate --exec old=build/old/bench --exec new=./bench --variant xl",
                      &failure) == OK);
    g.ab_run.session.opt = &o;
    for (size_t i = 0; i < ARRAY_LEN(v); i++) {
        struct comparison *const c = comparisons_add(&g.all);
        CHECK(c);
        snprintf(c->label, sizeof(c->label), "xl layer seq=%d mem=0 avx2", 128 << i);
        text_put(c->name[BEFORE], TEXT_SIZE, "old");
        text_put(c->name[AFTER], TEXT_SIZE, "new");
        c->threshold = i == 3 ? 0.08 : 0.05;
        c->change = (struct change){
            .log = {v[i].mid - v[i].half, v[i].mid, v[i].mid + v[i].half},
            .median = {2e6 * (double)(1 << i), 2e6 * (double)(1 << i) * exp(v[i].mid)},
            .verdict = v[i].verdict,
            .basis = v[i].basis,
            .n = 15};
        text_put(c->note, sizeof(c->note), v[i].note);
    }
    CHECK(comparisons_print(stdout, &g.all, FORMAT_AUTO, &(struct names){0}, &failure) == OK);
    comparisons_print_means(format_is_table(FORMAT_AUTO, stdout) ? stdout : stderr, FORMAT_TABLE,
                            &g.all);
    fflush(stdout);
    gate_say(stderr, &g);
    comparisons_free(&g.all);
}

Test(screens, gate) { expect_screen("gate", (struct staged){.scene = gate}); }

/* ---- eval --------------------------------------------------------------------------------- */

static void print_score(const struct perplexity_row *row, bool first)
{
    const struct table *const t = &tables[TABLE_PERPLEXITY];
    struct selection all;

    if (format_is_table(FORMAT_AUTO, stdout)) {
        perplexity_print(stdout, row, NULL, first, FORMAT_TABLE);
        return;
    }
    CHECK(columns_select(&all, t, NULL, 0, NULL) == OK);
    if (first)
        row_print_names(stdout, FORMAT_CSV, t, &all);
    row_print(stdout, FORMAT_CSV, t, &all, row);
}

static void eval(void *arg)
{
    struct perplexity_row row = perplexity_row_empty();

    text_put(row.status, sizeof(row.status), "ok");
    text_put(row.variant, sizeof(row.variant), "xl");
    text_put(row.backend, sizeof(row.backend), "avx512");
    text_put(row.checkpoint, sizeof(row.checkpoint), "results/models/xl.safetensors");
    text_put(row.unit, sizeof(row.unit), "symbol");
    row.seq_tokens = 128;
    row.tokens_scored = 262143;
    row.ppl_floor = 1.759;
    for (int i = 0; i < 3; i++) {
        row.mem_tokens = 128 * i;
        row.ppl = i == 0 ? 15.81 : i == 1 ? 4.07 : 1.86;
        row.bits_per_unit = log2(row.ppl);
        row.ppl_ci95_low = 0.99 * row.ppl;
        row.ppl_ci95_high = 1.01 * row.ppl;
        row.tokens_per_s = 123456 >> i;
        print_score(&row, i == 0);
    }
    text_put(row.status, sizeof(row.status), "wrong");
    text_put(row.status_detail, sizeof(row.status_detail), "the score is not finite");
    print_score(&row, false);
}

Test(screens, eval) { expect_screen("eval", (struct staged){.scene = eval}); }

/* ---- list --------------------------------------------------------------------------------- */

Test(screens, list)
{
    expect_screen("list-variants",
                  (struct staged){.scene = run_line, .line = "list variants --variant base"});
    expect_screen("list-cases",
                  (struct staged){.scene = run_line,
                                  .line = "list cases --variant xl,linear --workload attn,layer "
                                          "--backend ref --seq 128,1024 --mem 512 --threads 2"});
}

/* Golden files and checkpoints say their numbers: what a model has that says none stands here. */
Test(screens, usual_numbers)
{
    FILE *const f = text_begin();
    char text[CHOICE_TEXT];

    for (int v = 0; variants[v]; v++) {
        const struct config c = config_default(variants[v], 48, 4, 12, 96, 2, 256);
        for (enum part_slot s = 0; s < SLOT_COUNT; s++) {
            const bool has = s < SLOT_AROUND || around_has(&c, s);
            const struct part_numbers *const n = has ? config_numbers_of(&c, s) : NULL;
            for (const struct choice *row = n ? n->choices : NULL; row && row->name; row++) {
                choice_print(text, row, c.numbers[s].bytes);
                if (!choice_is_idle(row, &c))
                    fprintf(f, "%s %s=%s\n", c.variant->name, row->name, text);
            }
        }
    }
    expect_text("usual-numbers", text_end(f));
}
