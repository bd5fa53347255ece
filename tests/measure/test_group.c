/* SPDX-License-Identifier: MIT
 *
 * The cases of a group when their children are wrong, silent, incoherent, too large or dead: each
 * row says so, and the others are measured. */
#include "harness/measure/group.h"
#include "tests/support/command_line.h"
#include "tests/support/each.h"
#include "tests/support/failure.h"
#include "tests/support/fake_child.h"

TestSuite(group, .timeout = 240);

enum { MAX_CASES = 8 };

/* Cases of one shape: for each variant one on ref and one on avx2, which are not executed here. */
struct crew {
    struct options opt, preset;
    struct plan plan;
    struct bench_case bcase[MAX_CASES];
    struct result result[MAX_CASES];
    int n, samples, references; /* references: made by processes of their own */
    volatile int stop;
    char warnings[2000];
    double memory_bytes, patience_s;
    bool with_ref;
    uint32_t stops_in; /* Ctrl-C at the first sample of this launch; 0 = never */
};

static void gather_crew(struct crew *c, const char *names, bool with_ref)
{
    *c = (struct crew){.memory_bytes = 1e12, .patience_s = 10, .with_ref = with_ref};
    const char *const line =
        kept_text("--variant %s --backend ref --seq 8 --mem 0 --max-time 0.003 --min-samples 3 "
                  "--warmup-ms 0 --block-ms 1 --threads 1",
                  names);
    must_plan(&c->plan, &c->opt, line);
    cr_assert_eq(options_parse_line(&c->preset, "", &failure), OK);
    for (int i = 0; i < c->plan.n; i++) {
        if (with_ref)
            c->bcase[c->n++] = c->plan.cases[i];
        c->bcase[c->n] = c->plan.cases[i];
        c->bcase[c->n].backend = backend_find("avx2");
        c->bcase[c->n].repro = case_repro(&c->bcase[c->n], &c->preset);
        cr_assert_not_null(c->bcase[c->n++].repro);
    }
}

static enum status on_sample(void *arg, const struct result *r, const struct sample *s,
                             struct err *e)
{
    struct crew *c = arg;

    c->samples++;
    c->stop = c->stop || (c->stops_in > 0 && s->launch == c->stops_in);
    return OK;
}

/* Placing is expected to take a while. */
static double on_wait(void *arg, const struct bench_case *bc, enum group_wait what)
{
    struct crew *c = arg;

    c->references += what == WAIT_REFERENCE;
    return what == WAIT_PLACE ? 0.2 : 0;
}

static void on_warning(void *arg, const char *text)
{
    struct crew *c = arg;
    const size_t n = strlen(c->warnings);

    snprintf(c->warnings + n, sizeof(c->warnings) - n, "%s\n", text);
}

static enum status run_crew(struct crew *c, const char *manners)
{
    struct group_hooks hooks = {
        .sample = on_sample, .warn = on_warning, .waits = on_wait, .arg = c};
    const struct bench_case *cases[MAX_CASES];

    setenv(FAKE_PLAN, manners, 1);
    struct child_setup setup = {.isolate = ISOLATE_EXEC,
                                .environment = environ,
                                .patience_s = c->patience_s,
                                .stop = &c->stop,
                                .memory_bytes = c->memory_bytes,
                                .cpu = FAKE_CPU};
    for (int i = 0; i < c->n; i++)
        cases[i] = &c->bcase[i];
    const enum status st = group_measure(cases, c->n, &setup, &hooks, c->result, &failure);
    kept_copy(c, sizeof(*c));
    return st;
}

static void expect_row(const struct result *r, enum row_status status, const char *detail)
{
    cr_expect_eq(r->status, status, "%s", row_status_name[r->status]);
    cr_expect_str_eq(r->detail, detail, "%s", r->detail);
}

static void expect_all(const struct crew *c, enum row_status status, const char *detail)
{
    for (int i = 0; i < c->n; i++)
        expect_row(&c->result[i], status, detail);
}

static struct result *result_of(struct crew *c, const char *variant, const char *backend)
{
    for (int i = 0; i < c->n; i++)
        if (strcmp(c->bcase[i].variant->name, variant) == 0 &&
            strcmp(c->bcase[i].backend->name, backend) == 0)
            return &c->result[i];
    cr_assert_fail("no %s/%s", variant, backend);
    return NULL;
}

/* All were measured but this one, or those of the variant. */
static void expect_fine_but(const struct crew *c, const char *variant, const char *backend)
{
    for (int i = 0; i < c->n; i++) {
        const struct result *const r = &c->result[i];
        const char *const of = c->bcase[i].variant->name, *const on = c->bcase[i].backend->name;
        if (strcmp(of, variant) == 0 && (!backend || strcmp(on, backend) == 0))
            continue;
        cr_expect_eq(r->status, ROW_OK, "%s/%s: %s", of, on, r->detail);
        cr_expect(r->n >= 3, "%s/%s has %d samples", of, on, r->n);
        cr_expect_eq(r->sum.median, 1e6 / r->outcome.inner_calls);
    }
}

/* ---- one bad child, the others go on ------------------------------------------------------ */

struct manner {
    char word[16];
    enum row_status status;
    char detail[80];
    bool timed; /* had samples before it failed */
};

static struct manner manners[] = {
    {"fine", ROW_OK, "", true},
    {"wrong", ROW_WRONG, "max_rel_err 3.1e-02 > 1e-04 at [0,17,201]", false},
    {"nmse", ROW_WRONG, "mean square error 2.0e-09 > 1e-10 of the reference", false},
    {"nan", ROW_WRONG, "max_rel_err nan > 1e-04 at [0,17,201]", false},
    {"big", ROW_SKIPPED, "memory", false},
    {"nomem", ROW_SKIPPED, "no memory for 12 bytes", false},
    {"absent", ROW_SKIPPED, "not on this machine", false},
    {"cpu", ROW_FAILED, "the child sees another CPU than its parent  -> use --isolate fork", false},
    {"garble", ROW_FAILED, "child process answered \"smaple 1\"", false},
    {"mute", ROW_TIMEOUT, "is silent for 2 s", false},
    {"stop-block", ROW_TIMEOUT, "is silent for 1 s", false},
    {"segv-open", ROW_FAILED, "killed by SIGSEGV", false},
    {"segv-place", ROW_FAILED, "killed by SIGSEGV", false},
    {"segv-block", ROW_FAILED, "killed by SIGSEGV", false},
    {"kill-block", ROW_FAILED, "killed by SIGKILL (out of memory?)", false},
    {"exit-block", ROW_FAILED, "child process ended with exit code 3", false},
};

TEST_EACH(struct manner *m, group, one_bad_child, EVERY(manners), .timeout = 240)
{
    struct crew c;

    gather_crew(&c, "shaw,xl", true);
    c.memory_bytes = 1e6;
    c.patience_s = m->status == ROW_TIMEOUT ? 1 : 20;
    cr_assert_eq(run_crew(&c, kept_text("xl/avx2=%s", m->word)), OK);
    const struct result *r = result_of(&c, "xl", "avx2");
    expect_row(r, m->status, m->detail);
    cr_expect_eq(r->n > 0, m->timed, "%s: %d samples", m->word, r->n);
    expect_fine_but(&c, "xl", "avx2");
    cr_expect_eq(strstr(c.warnings,
                        "xl layer seq=8 mem=0 kv avx2 needs 953.7 MiB, 976.6 KiB free  "
                        "-> row marked skipped(memory); lower --seq or --batch") != NULL,
                 strcmp(m->word, "big") == 0, "%s", c.warnings);
}

Test(group, a_child_of_another_version)
{
    struct crew c;

    gather_crew(&c, "xl", true);
    cr_expect_eq(run_crew(&c, "xl/avx2=greet"), OK);
    expect_all(&c, ROW_FAILED, "child process said \"hello bench-cell/2\" for a greeting");
}

/* ---- references --------------------------------------------------------------------------- */

/* Nothing is timed without a reference: the ref case that should make it has failed, and so has the
 * child started in its place. It has no error, but it may be no number: it gets no time either. */
Test(group, references)
{
    static const struct {
        const char *names, *manners, *backend; /* of the row of xl */
        bool with_ref, unchecked;
        enum row_status status;
        const char *detail;
    } cases[] = {
        {"shaw,xl", "xl/ref=segv-place", "avx2", false, false, ROW_FAILED, "killed by SIGSEGV"},
        {"xl", "xl/avx2=wrong", "avx2", false, false, ROW_WRONG,
         "max_rel_err 3.1e-02 > 1e-04 at [0,17,201]"},
        {"shaw,xl", "xl/ref=nan", "ref", true, false, ROW_WRONG,
         "max_rel_err nan > 1e-04 at [0,17,201]"},
        {"xl", "xl/avx2=wrong", "avx2", false, true, ROW_OK, "unchecked"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct crew c;
        gather_crew(&c, cases[i].names, cases[i].with_ref);
        c.opt.check = !cases[i].unchecked;
        cr_expect_eq(run_crew(&c, cases[i].manners), OK);
        const struct result *const r = result_of(&c, "xl", cases[i].backend);
        expect_row(r, cases[i].status, cases[i].detail);
        cr_expect_eq(r->n > 0, r->status == ROW_OK, "%s", cases[i].manners);
        expect_fine_but(&c, "xl", NULL);
    }
}

/* ---- memory ------------------------------------------------------------------------------- */

/* Two cases of 1000 bytes fit together, four do not: parts, which share the first case. */
Test(group, parts_share_a_case)
{
    struct crew c;

    gather_crew(&c, "shaw,xl", true);
    c.memory_bytes = 2500;
    cr_expect_eq(run_crew(&c, ""), OK);
    expect_fine_but(&c, "", NULL);
    cr_expect_eq(c.references, 0, "the cases on ref make those of the others");
    for (int i = 1; i < c.n; i++) { /* each is paired with the first by its rounds */
        const int part = (int)(c.result[i].samples[0].round / 1000000);
        int pairs = 0;
        cr_expect_eq(part, i - 1);
        for (int k = 0; k < c.result[0].n; k++)
            pairs += c.result[0].samples[k].round == c.result[i].samples[0].round;
        cr_expect_eq(pairs, 1);
    }
}

Test(group, nothing_fits)
{
    struct crew c;

    gather_crew(&c, "shaw,xl", true);
    c.memory_bytes = 10;
    cr_expect_eq(run_crew(&c, ""), OK);
    expect_all(&c, ROW_SKIPPED, "memory");
    cr_expect_eq(c.samples, 0);
}

/* ---- launches ----------------------------------------------------------------------------- */

/* Every launch is a process of its own, with rounds of its own; the first is checked. */
Test(group, launches_share_the_samples)
{
    struct crew c;

    gather_crew(&c, "shaw,xl", true);
    c.opt.launches = 3;
    cr_assert_eq(run_crew(&c, "xl/avx2=layout"), OK);
    for (int i = 0; i < c.n; i++) {
        const struct result *r = &c.result[i];
        NUMBERS_OF(r->detail, {r->status, ROW_OK}, {r->sum.launches, 3});
        cr_expect(r->n >= INTERVAL_SAMPLES, "%d samples", r->n);
        for (int k = 0; k < r->n; k++)
            cr_expect_eq(r->samples[k].round / 1000000, r->samples[k].launch);
        for (int k = 1; k < r->n; k++)
            cr_expect(r->samples[k].launch >= r->samples[k - 1].launch);
        cr_expect_eq(r->samples[r->n - 1].launch, 2);
    }
    const struct result *moved = result_of(&c, "xl", "avx2"), *same = result_of(&c, "xl", "ref");
    cr_expect_eq(same->sum.between_pct, 0);
    cr_expect_lt(same->sum.ci_high / same->sum.ci_low, 1 + 1e-12);
    cr_expect_gt(moved->sum.between_pct, 30); /* ln 1, 2 and 2 have a deviation of ln 2 / sqrt(3) */
    cr_expect_lt(moved->sum.between_pct, 50);
    cr_expect_gt(moved->sum.ci_high / moved->sum.ci_low, 4);
    cr_expect_eq(c.samples, c.result[0].n + c.result[1].n + c.result[2].n + c.result[3].n);
}

Test(group, a_further_launch_that_dies)
{
    struct crew c;

    gather_crew(&c, "shaw,xl", true);
    c.opt.launches = 2;
    cr_assert_eq(run_crew(&c, "xl/avx2=segv-again"), OK);
    const struct result *r = result_of(&c, "xl", "avx2");
    expect_row(r, ROW_FAILED, "killed by SIGSEGV");
    cr_expect_gt(r->n, 0);
    expect_fine_but(&c, "xl", "avx2");
    cr_expect_eq(result_of(&c, "shaw", "avx2")->sum.launches, 2);
}

/* Those of parts; and blocks of 1 ms, longer than the time for all: three samples of one launch, as ever. */
Test(group, launches_of_parts_and_of_long_calls)
{
    for (int are_long = 0; are_long <= 1; are_long++) {
        struct crew c;
        gather_crew(&c, "shaw,xl", true);
        c.opt.launches = are_long ? 3 : 2;
        if (are_long)
            c.opt.max_time_s = 0.0005;
        else
            c.memory_bytes = 2500;
        cr_assert_eq(run_crew(&c, ""), OK);
        expect_all(&c, ROW_OK, are_long ? "few" : "");
        for (int i = 0; i < c.n; i++) {
            cr_expect_eq(c.result[i].sum.launches, are_long ? 1 : 2);
            cr_expect(are_long ? c.result[i].n == FEWEST_SAMPLES : c.result[i].n > 0);
        }
    }
}

/* ---- interruption ------------------------------------------------------------------------- */

/* Not all launches: none of the rows is complete. */
Test(group, interrupted_in_a_further_launch)
{
    struct crew c;

    gather_crew(&c, "shaw,xl", true);
    c.opt.launches = 3;
    c.stops_in = 1;
    cr_expect_eq(run_crew(&c, ""), E_INTERRUPTED);
    expect_all(&c, ROW_INTERRUPTED, "while it was measured");
    for (int i = 0; i < c.n; i++)
        cr_expect_lt(c.result[i].sum.launches, 3);
}

/* A child that dies after Ctrl-C died because of it: its row is no failure, a resume measures it.
 */
Test(group, interrupted_before_it_began)
{
    struct crew c;

    gather_crew(&c, "shaw,xl", true);
    c.stop = 1;
    cr_expect_eq(run_crew(&c, "xl/avx2=segv-open"), E_INTERRUPTED);
    expect_all(&c, ROW_INTERRUPTED, "before it was measured");
}
