/* SPDX-License-Identifier: MIT
 *
 * Verdicts of a study. */
#include "study_verdict.h"

#include "harness/util/grow.h"
#include "harness/util/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const study_verdict_name[STUDY_VERDICT_COUNT + 1] = {"better", "worse", "within noise",
                                                                 "not tested"};

static bool same_place(const struct study_row *a, const struct study_row *b)
{
    return strcmp(a->corpus, b->corpus) == 0 && strcmp(a->size, b->size) == 0;
}

static bool same_entry(const struct study_row *a, const struct study_row *b)
{
    return same_place(a, b) && strcmp(a->contender, b->contender) == 0;
}

static bool is_final_row(const struct study_row *r) { return strcmp(r->role, "final") == 0; }

static bool is_ok(const struct study_row *r)
{
    return strcmp(r->status, row_status_name[ROW_OK]) == 0;
}

/* Times of one machine, backend and number of threads make a ratio. */
static bool same_machine(const struct study_row *a, const struct study_row *b)
{
    return strcmp(a->host_id, b->host_id) == 0 && strcmp(a->backend, b->backend) == 0 &&
           a->threads == b->threads;
}

/* ---- one entry ------------------------------------------------------------------------------ */

/* Is its rate the least or the largest of three or more that it was tuned with? A better one may
 * lie beyond. */
static bool rate_at_end(const struct study_entry *e, const struct rows *rows)
{
    const struct study_row *const r = rows->row;
    bool less = false, more = false;
    double other = NAN; /* that differs from its own */
    int others = 0;

    for (size_t i = 0; i < rows->n; i++) {
        if (!same_entry(&r[i], e->row) || is_final_row(&r[i]) || r[i].lr == e->lr)
            continue;
        less = less || r[i].lr < e->lr;
        more = more || r[i].lr > e->lr;
        others += r[i].lr != other;
        other = r[i].lr;
    }
    return others >= 2 && less != more;
}

static bool asks(const struct study_row *r) { return isfinite(r->test_answer_nats); }

/* The compared numbers. */
static double loss(const struct study_row *r)
{
    return asks(r) ? r->test_answer_nats : r->test_nats;
}

static void add_way(struct study_way *w, const struct study_row *r, int seeds)
{
    const double above = r->test_answer_nats - r->test_answer_floor_nats;
    const double way = 1 - above / (r->test_answer_blind_nats - r->test_answer_floor_nats);

    if (seeds == 0)
        *w = (struct study_way){way, way, way, above};
    w->mean += (way - w->mean) / (seeds + 1);
    w->above += (above - w->above) / (seeds + 1);
    w->least = fmin(w->least, way);
    w->most = fmax(w->most, way);
}

bool study_reached(const struct study_way *w)
{
    return w->above <= log(1.02); /* not if it is NAN */
}

/* Means over the seeds of one entry. */
static enum status gather(struct study_entry *e, const struct rows *rows, struct err *err)
{
    const struct study_row *const r = rows->row;
    double *const x = calloc(rows->n + 1, sizeof(*x));
    int n = 0;

    if (!x)
        return fail(err, E_NOMEM, "no memory for %zu rows", rows->n);
    e->lr = NAN;
    e->why = "";
    e->way = (struct study_way){NAN, NAN, NAN, NAN};
    for (size_t i = 0; i < rows->n; i++) {
        if (!same_entry(&r[i], e->row))
            continue;
        if (!is_ok(&r[i]) && !*e->why)
            e->why = r[i].status_detail;
        if (!is_final_row(&r[i]) || !is_ok(&r[i]) || !isfinite(r[i].test_nats))
            continue;
        if (asks(&r[i]))
            add_way(&e->way, &r[i], n);
        x[n++] = loss(&r[i]);
        e->lr = r[i].lr;
    }
    e->at_end = rate_at_end(e, rows);
    e->test = group_stats(x, n);
    free(x);
    return OK;
}

/* ln of seconds per trained token; NAN: not known. */
static double log_time(const struct study_row *r)
{
    return is_final_row(r) && is_ok(r) && r->train_s > 0 && r->tokens > 0
               ? log(r->train_s / (double)r->tokens)
               : NAN;
}

/* The mean over seeds of ln(contender / baseline) with Student's 95 % interval: trainings of one
 * seed ran in the same turn. Below STUDY_LEAST_SEEDS that both have on one machine it has no
 * interval. */
static enum status paired_time(struct interval *out, const struct study_row *contender,
                               const struct study_row *baseline, const struct rows *rows,
                               struct err *err)
{
    const struct study_row *const r = rows->row;
    double *const d = calloc(rows->n + 1, sizeof(*d));
    int n = 0;

    if (!d)
        return fail(err, E_NOMEM, "no memory for %zu rows", rows->n);
    for (size_t i = 0; i < rows->n; i++) {
        double with = NAN; /* the last of a seed counts */
        if (!same_entry(&r[i], contender))
            continue;
        for (size_t k = 0; k < rows->n; k++)
            if (same_entry(&r[k], baseline) && r[k].seed == r[i].seed &&
                same_machine(&r[k], &r[i]) && !isnan(log_time(&r[k])))
                with = log_time(&r[k]);
        if (!isnan(log_time(&r[i]) - with))
            d[n++] = log_time(&r[i]) - with;
    }
    const struct group_stats s = group_stats(d, n);
    const double half =
        n < STUDY_LEAST_SEEDS ? NAN : student_quantile(0.05, n - 1) * s.sd / sqrt(n);
    *out =
        (struct interval){.low = s.mean - half, .mid = n < 1 ? NAN : s.mean, .high = s.mean + half};
    free(d);
    return OK;
}

/* Against the baseline `b`; NULL: the table has none there. Its time is known already. */
static void confront(struct study_entry *e, const struct study_entry *b, double threshold)
{
    const char *const said = e->why;

    e->verdict = STUDY_NOT_TESTED;
    e->time_verdict = VERDICT_UNSHOWN;
    e->quality = (struct welch){{NAN, NAN, NAN}, NAN, NAN};
    if (e == b || !b)
        e->log_time = (struct interval){NAN, NAN, NAN};
    if (e == b) {
        e->why = "the baseline";
        return;
    }
    if (!b) {
        e->why = "no rows of the baseline here";
        return;
    }
    e->time_verdict = verdict_of(e->log_time, threshold, 0);
    if (e->test.n < STUDY_LEAST_SEEDS) {
        e->why = *said ? said : e->test.n ? "fewer than three seeds" : "no row with a score";
        return;
    }
    if (b->test.n < STUDY_LEAST_SEEDS) {
        e->why = "too few seeds of the baseline";
        return;
    }
    e->quality = welch(b->test, e->test);
    e->why = "";
}

/* ---- the table ------------------------------------------------------------------------------ */

static enum status add_entries(struct study_verdicts *v, const struct rows *rows, bool baseline,
                               const struct study_row *place, struct err *e)
{
    const struct study_row *const r = rows->row;
    enum status st = OK;

    for (size_t i = 0; i < rows->n && st == OK; i++) {
        bool known = false;
        if (!same_place(&r[i], place) || (r[i].baseline == 1) != baseline)
            continue;
        for (int k = 0; k < v->n && !known; k++)
            known = same_entry(v->v[k].row, &r[i]);
        if (known)
            continue;
        if (GROW(v->v, v->n, e) != OK)
            return E_NOMEM;
        v->v[v->n] = (struct study_entry){.row = &r[i]};
        st = gather(&v->v[v->n++], rows, e);
    }
    return st;
}

static const struct study_entry *baseline_of(const struct study_verdicts *v,
                                             const struct study_entry *e)
{
    for (int i = 0; i < v->n; i++)
        if (v->v[i].row->baseline == 1 && same_place(v->v[i].row, e->row))
            return &v->v[i];
    return NULL;
}

static enum status judge(struct study_verdicts *v, const struct rows *rows, double threshold,
                         struct err *e)
{
    const double level = 0.05;
    double *const p = calloc(2 * (size_t)v->n + 1, sizeof(*p));
    struct group_stats *const floor = calloc((size_t)v->n + 1, sizeof(*floor));
    enum status st = OK;

    if (!p || !floor) {
        free(p);
        free(floor);
        return fail(e, E_NOMEM, "no memory for %d comparisons", v->n);
    }
    for (int i = 0; i < v->n && st == OK; i++) {
        const struct study_entry *const b = baseline_of(v, &v->v[i]);
        if (b)
            st = paired_time(&v->v[i].log_time, v->v[i].row, b->row, rows, e);
    }
    for (int i = 0; i < v->n; i++) {
        confront(&v->v[i], baseline_of(v, &v->v[i]), threshold);
        p[i] = v->v[i].quality.p;
        v->tested += !isnan(p[i]);
        if (v->v[i].row->baseline == 1 && v->v[i].test.n >= 2)
            floor[v->noise_of++] = v->v[i].test;
    }
    v->noise = pooled_sd(floor, v->noise_of);
    holm(p, v->n, p + v->n);
    for (int i = 0; i < v->n; i++) {
        v->v[i].p = p[i];
        if (!isnan(p[i]))
            v->v[i].verdict = p[i] >= level                  ? STUDY_WITHIN_NOISE
                              : v->v[i].quality.diff.mid < 0 ? STUDY_BETTER
                                                             : STUDY_WORSE;
    }
    free(p);
    free(floor);
    return st;
}

enum status study_verdicts_make(struct study_verdicts *out, const struct rows *rows,
                                double threshold, struct err *e)
{
    const struct study_row *const r = rows->row;
    enum status st = OK;

    *out = (struct study_verdicts){.noise = NAN};
    for (size_t i = 0; i < rows->n && st == OK; i++) { /* does nothing for a place that is in */
        st = add_entries(out, rows, true, &r[i], e);
        if (st == OK)
            st = add_entries(out, rows, false, &r[i], e);
    }
    if (st == OK)
        st = judge(out, rows, threshold, e);
    if (st != OK)
        study_verdicts_free(out);
    return st;
}

void study_verdicts_free(struct study_verdicts *v)
{
    free(v->v);
    *v = (struct study_verdicts){0};
}

/* ---- printing ------------------------------------------------------------------------------- */

enum {
    CORPUS,
    SIZE,
    CONTENDER,
    PARAMETERS,
    RATE,
    SEEDS,
    TEST,
    SD,
    WAY,
    WAY_LEAST,
    WAY_MOST,
    REACHED,
    DIFF,
    LOW,
    HIGH,
    P,
    VERDICT,
    TIME,
    TIME_LOW,
    TIME_HIGH,
    TIME_VERDICT,
    NOISE,
    NOTE,
    COLUMNS
};

static const struct text_table_column columns[COLUMNS] = {
    [CORPUS] = {.name = "corpus"},
    [SIZE] = {.name = "size", .spare = 1},
    [CONTENDER] = {.name = "contender"},
    [PARAMETERS] = {.name = "parameters", .number = true, .spare = 4},
    [RATE] = {.name = "lr", .number = true, .spare = 4},
    [SEEDS] = {.name = "seeds", .number = true, .spare = 2},
    [TEST] = {.name = "test_nats", .number = true, .spare = 1},
    [SD] = {.name = "sd_nats", .number = true, .spare = 3},
    [WAY] = {.name = "way", .number = true},
    [WAY_LEAST] = {.name = "way_least", .number = true, .spare = 3},
    [WAY_MOST] = {.name = "way_most", .number = true, .spare = 3},
    [REACHED] = {.name = "reached", .spare = 1},
    [DIFF] = {.name = "diff_nats", .number = true},
    [LOW] = {.name = "ci95_low", .number = true},
    [HIGH] = {.name = "ci95_high", .number = true},
    [P] = {.name = "p_holm", .number = true, .spare = 3},
    [VERDICT] = {.name = "verdict"},
    [TIME] = {.name = "time_ratio", .number = true, .spare = 1},
    [TIME_LOW] = {.name = "time_low", .number = true, .spare = 2},
    [TIME_HIGH] = {.name = "time_high", .number = true, .spare = 2},
    [TIME_VERDICT] = {.name = "time_verdict", .spare = 1},
    [NOISE] = {.name = "noise_nats", .number = true, .wide = true},
    [NOTE] = {.name = "note", .least = 12, .spare = 2},
};

static void put(char text[NUMBER_SIZE], const char *format, double x)
{
    text[0] = '\0';
    if (isfinite(x))
        snprintf(text, NUMBER_SIZE, format, x);
}

/* A number that rounds to 0.000 has no sign. */
static double no_minus(double x) { return fabs(x) < 0.0005 ? 0 : x; }

static enum status add_row(struct text_table *t, const struct study_verdicts *v,
                           const struct study_entry *r, struct err *e)
{
    char num[COLUMNS][NUMBER_SIZE];
    const char *text[COLUMNS];
    const bool timed = isfinite(r->log_time.low), baseline = r->row->baseline == 1;

    for (int i = 0; i < COLUMNS; i++)
        text[i] = num[i];
    put(num[PARAMETERS], "%.0f",
        r->row->parameters == I64_EMPTY ? NAN : (double)r->row->parameters);
    put(num[RATE], "%g", r->lr);
    put(num[SEEDS], "%.0f", r->test.n);
    put(num[TEST], "%.4f", r->test.mean);
    put(num[SD], "%.4f", r->test.sd);
    put(num[WAY], "%.3f", no_minus(r->way.mean));
    put(num[WAY_LEAST], "%.3f", no_minus(r->way.least));
    put(num[WAY_MOST], "%.3f", no_minus(r->way.most));
    put(num[DIFF], "%+.4f", r->quality.diff.mid);
    put(num[LOW], "%+.4f", r->quality.diff.low);
    put(num[HIGH], "%+.4f", r->quality.diff.high);
    put(num[P], "%.2g", r->p);
    put(num[TIME], "%.3f", exp(r->log_time.mid));
    put(num[TIME_LOW], "%.3f", exp(r->log_time.low));
    put(num[TIME_HIGH], "%.3f", exp(r->log_time.high));
    put(num[NOISE], "%.4g", v->noise);
    text[REACHED] = isnan(r->way.mean) ? "" : study_reached(&r->way) ? "yes" : "no";
    text[CORPUS] = r->row->corpus;
    text[SIZE] = r->row->size;
    text[CONTENDER] = r->row->contender;
    text[VERDICT] = baseline ? "" : study_verdict_name[r->verdict];
    text[TIME_VERDICT] = timed ? verdict_name[r->time_verdict] : "";
    char note[LINE_SIZE + 64];
    snprintf(note, sizeof(note), "%s%s%s", r->why, *r->why && r->at_end ? "; " : "",
             r->at_end ? "its learning rate is at an end of the tried ones" : "");
    text[NOTE] = note;
    return text_table_add(t, text, e);
}

enum status study_verdicts_print(FILE *f, const struct study_verdicts *v, enum format format,
                                 struct err *e)
{
    struct text_table t = {.column = columns, .columns = COLUMNS};
    const bool people = format_is_table(format, f) || format == FORMAT_MD;
    enum status st = OK;

    for (int i = 0; i < v->n && st == OK; i++)
        st = add_row(&t, v, &v->v[i], e);
    if (st == OK)
        text_table_print(f, &t, format);
    if (st == OK && people && isfinite(v->noise)) {
        fputc('\n', f);
        text_line(
            f,
            "noise floor: %.4f nats, the seed standard deviation of the baseline (pooled over "
            "%d); p and verdict are corrected for %d comparison%s",
            v->noise, v->noise_of, v->tested, v->tested == 1 ? "" : "s");
    }
    text_table_free(&t);
    return st;
}
