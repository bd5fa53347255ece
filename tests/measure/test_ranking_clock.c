/* SPDX-License-Identifier: MIT
 *
 * Rankings agree with themselves, on a machine that is quiet, busy, or busy now and then: chosen
 * backends, order, ratios and times are of one clock, which tells the true order. */
#include "tests/support/ranked.h"
#include "variants/base/rng.h"

TestSuite(ranking_clock, .init = folder_make, .fini = folder_remove, .timeout = 240);

enum machine { QUIET, BUSY, MIXED, MACHINES };
static const char *const machine_name[] = {"quiet", "busy", "mixed"};
enum { VARIANTS = 4, BACKENDS = 2, SHAPES = 2, ROWS = VARIANTS * BACKENDS * SHAPES, BLOCKS = 20 };
static const char *const variant[] = {"xl", "rope", "gqa", "window"}, *const backend[] = {"avx2",
                                                                                          "onednn"};

struct dice {
    uint64_t seed, stream, n;
};
static double roll(struct dice *d, double low, double high)
{
    return low + (high - low) * rng_uniform(d->seed, d->stream, d->n++);
}

/* The true times: no two of a shape within 5 %. */
struct truth {
    int shapes, of_each, n;
    char id[ROWS][8];
    struct made_case is[ROWS];
};
static void make_truth(struct truth *t, struct dice *d)
{
    const int rows = VARIANTS * t->of_each;
    int level[VARIANTS * BACKENDS];

    for (int s = 0; s < t->shapes; s++) {
        for (int i = 0; i < rows; i++) {
            const int k = (int)roll(d, 0, i + 1);
            level[i] = level[k];
            level[k] = i;
        }
        for (int i = 0; i < rows; i++) {
            const int n = t->n++;
            snprintf(t->id[n], sizeof(t->id[n]), "%d", n);
            t->is[n] =
                (struct made_case){variant[i / t->of_each], backend[i % t->of_each], t->id[n],
                                   128 << s, 1e6 * pow(1.1, level[i]) * roll(d, 1, 1.04)};
        }
    }
}

/* Other programs stretch the wall time of a row's blocks up to fivefold, another row's by another
 * factor; the CPU time is true to 0.5 %. */
static void add_row(struct rundir *d, const struct made_case *c, bool busy, struct dice *r)
{
    const double stretch = busy ? roll(r, 1.2, 5) : 1;
    const struct key_row k = made_key(d, c, "host");
    double wall[BLOCKS], cpu[BLOCKS];

    for (int i = 0; i < BLOCKS; i++) {
        cpu[i] = c->ns * roll(r, 0.995, 1.005);
        wall[i] = cpu[i] * stretch * (busy ? roll(r, 1, 1.3) : roll(r, 1, 1.002));
        made_block(d, c->id, i, 0, wall[i], busy, cpu[i] / wall[i]);
    }
    sort_numbers(wall, BLOCKS), sort_numbers(cpu, BLOCKS);
    struct latency_row row = ROW_OF(latency, LATENCY, &k);
    row.median_ns = stats_median(wall, BLOCKS);
    row.cpu_time_median_ns = stats_median(cpu, BLOCKS);
    made_write(d, TABLE_LATENCY, &row);
}

static struct run make_run(const struct truth *t, enum machine machine, struct dice *r)
{
    struct rundir d = made_open("aaaa");
    for (int i = 0; i < t->n; i++)
        add_row(&d, &t->is[i], machine == BUSY || (machine == MIXED && i % 3 == 2), r);
    struct run run = made_read(&d);
    return run;
}

static double true_ns(const struct truth *t, const struct latency_row *row)
{
    return t->is[atoi(row->case_id)].ns;
}

/* The true time of contestant i in shape s: of a variant on its better backend. */
static double true_best(const struct truth *t, const struct ranking *r, int i, int s)
{
    double best = INFINITY;

    for (int k = 0; k < t->n; k++)
        if (strcmp(t->is[k].variant, r->v[i].place[s].row->variant) == 0 &&
            t->is[k].seq == r->v[i].place[s].row->seq_tokens)
            best = fmin(best, t->is[k].ns);
    return best;
}

static void expect_shape(const struct truth *t, const struct ranking *r, int s, enum ranked what,
                         const char *which)
{
    const int leader = r->leader[s];

    for (int i = 0; i < r->n; i++) {
        const struct place *const p = &r->v[i].place[s];
        const double ns = ranking_ns(r, i, s), first = ranking_ns(r, leader, s),
                     is = true_ns(t, p->row);
        cr_expect(i == leader || change_by_cpu(&p->change) == r->cpu[s], "%s: two clocks", which);
        cr_expect(fabs(ns / is - 1) < 0.01, "%s: %s %g, not %g", which, r->v[i].name, ns, is);
        cr_expect(fabs(ns / first / exp(p->change.log.mid) - 1) < 1e-9, "%s: %s", which,
                  r->v[i].name);
        cr_expect(i == leader || p->change.log.mid > 0, "%s: %s leads", which, r->v[i].name);
        if (what == RANKED_VARIANTS)
            cr_expect_eq(is, true_best(t, r, i, s), "%s: %s on %s", which, r->v[i].name,
                         p->row->backend);
    }
}

/* Over all shapes: the order of the true ratios, and the ratios themselves. */
static void expect_means(const struct truth *t, const struct ranking *r, const char *which)
{
    for (int i = 1; i < r->n; i++) {
        double d = 0;
        for (int s = 0; s < r->shapes; s++)
            d += log(true_ns(t, r->v[i].place[s].row) / true_ns(t, r->v[0].place[s].row)) /
                 r->shapes;
        cr_expect(fabs(r->v[i].change.log.mid - d) < 0.01, "%s: %g, not %g", which,
                  exp(r->v[i].change.log.mid), exp(d));
        cr_expect(r->v[i].change.log.mid >= (i > 1 ? r->v[i - 1].change.log.mid : 0), "%s: order",
                  which);
    }
}

static bool any_cpu(const struct ranking *r)
{
    bool any = false;

    for (int s = 0; s < r->shapes; s++)
        any = any || r->cpu[s];
    return any;
}

/* What people read: the first time is that of the clock that is named. */
static void expect_text(const struct rankings *all, enum ranked what, const char *which)
{
    const struct ranking *const r = &all->v[0];

    char *text = PRINTED(f, rankings_print(f, all, what, 100, false));
    cr_expect_eq(strstr(text, "CPU time") != NULL, any_cpu(r), "%s: %s", which, text);
    for (int s = 0; s < r->shapes && what == RANKED_VARIANTS; s++) {
        const int leader = r->leader[s];
        const char *const want =
            kept_text(r->shapes > 1 ? ": %s %s" : "%s%s", r->shapes > 1 ? r->v[leader].name : "  ",
                      units_ns(ranking_ns(r, leader, s)).s);
        cr_expect(strstr(text, want), "%s: no \"%s\" in %s", which, want, text);
    }
}

/* What programs and the report read: a time for each case, in the order of its ratio. */
static void expect_csv(const struct truth *t, const struct rankings *all, enum ranked what,
                       const char *which)
{
    enum { FIELDS = 17, CASE_ID = 6, RATIO = 7, CLOCK = 15, NS = 16 };
    char *save = NULL;
    double best[ROWS] = {0};
    struct line {
        int shape;
        double ratio, ns;
    } line[ROWS];
    int n = 0;

    char *text = PRINTED(f, rankings_print_csv(f, all, what));
    for (char *row = strtok_r(text, "\n", &save); row; row = strtok_r(NULL, "\n", &save)) {
        char *field[FIELDS], *rest = row;
        for (int k = 0; k < FIELDS; k++)
            field[k] = strsep(&rest, ",");
        cr_assert(field[NS] && !rest, "%s: %s", which, row);
        const int id = atoi(field[CASE_ID]);
        if (!*field[CASE_ID])
            continue;
        line[n] = (struct line){id / (what == RANKED_BACKENDS ? t->of_each : VARIANTS * t->of_each),
                                strtod(field[RATIO], NULL), strtod(field[NS], NULL)};
        cr_expect(strcmp(field[CLOCK], "wall") == 0 || strcmp(field[CLOCK], "CPU") == 0);
        if (line[n].ratio == 1)
            best[line[n].shape] = line[n].ns;
        n++;
    }
    cr_assert_gt(n, 0);
    for (int i = 0; i < n; i++)
        cr_expect(fabs(line[i].ns / best[line[i].shape] / line[i].ratio - 1) < 1e-7,
                  "%s: %g ns, %gx of %g", which, line[i].ns, line[i].ratio, best[line[i].shape]);
}

static void expect_agreement(uint64_t seed, int shapes, int of_each, enum machine machine)
{
    struct dice d = {seed, rng_stream("test.clock"), 0};
    struct truth t = {.shapes = shapes, .of_each = of_each};

    make_truth(&t, &d);
    struct run run = make_run(&t, machine, &d);
    for (enum ranked what = RANKED_VARIANTS; what <= RANKED_BACKENDS; what++) {
        struct rankings r;
        const char *const which =
            kept_text("%s, seed %d, %d shapes, %d backends, by %s", machine_name[machine],
                      (int)seed, shapes, of_each, what == RANKED_VARIANTS ? "variant" : "backend");
        r = ranked(&run, what);
        cr_assert_eq(r.n, what == RANKED_VARIANTS || of_each > 1);
        if (r.n == 0)
            continue;
        for (int s = 0; s < r.v[0].shapes; s++)
            expect_shape(&t, &r.v[0], s, what, which);
        cr_expect_eq(any_cpu(&r.v[0]), machine != QUIET, "%s", which);
        expect_means(&t, &r.v[0], which);
        expect_text(&r, what, which);
        expect_csv(&t, &r, what, which);
    }
    folder_remove();
    folder_make();
}

Test(ranking_clock, times_ratios_and_order_agree)
{
    enum { SEEDS = 4 };

    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        for (enum machine m = QUIET; m < MACHINES; m++)
            for (int shapes = 1; shapes <= SHAPES; shapes++)
                for (int of_each = 1; of_each <= BACKENDS; of_each++)
                    expect_agreement(seed, shapes, of_each, m);
}
