/* SPDX-License-Identifier: MIT
 *
 * Verdicts of a study. */
#include "study_verdict.h"

#include "harness/util/grow.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const study_verdict_name[STUDY_VERDICT_COUNT + 1] = {"better", "worse", "not shown",
                                                                 "not tested"};

static bool same_place(const struct study_row *a, const struct study_row *b)
{
    return strcmp(a->corpus, b->corpus) == 0 && strcmp(a->size, b->size) == 0;
}

static bool same_entry(const struct study_row *a, const struct study_row *b)
{
    return same_place(a, b) && strcmp(a->contender, b->contender) == 0;
}

/* Does it have no control? Rows of older runs name none, and are compared with the baseline. */
static bool is_origin(const struct study_row *r) { return r->baseline == 1 && !*r->control; }

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

/* Is its rate the least or the largest of those that it was tuned with? A better one may lie
 * beyond. */
static bool rate_at_end(const struct study_entry *e, const struct rows *rows)
{
    const struct study_row *const r = rows->row;
    bool less = false, more = false;

    for (size_t i = 0; i < rows->n; i++) {
        if (!same_entry(&r[i], e->row) || is_final_row(&r[i]) || r[i].lr == e->lr)
            continue;
        less = less || r[i].lr < e->lr;
        more = more || r[i].lr > e->lr;
    }
    return less != more;
}

static bool asks(const struct study_row *r) { return isfinite(r->test_answer_nats); }

static bool plays(const struct study_row *r) { return isfinite(r->test_return); }

/* The compared numbers: less is better, of returns more. */
static double result(const struct study_row *r)
{
    return plays(r) ? r->test_return : asks(r) ? r->test_answer_nats : r->test_nats;
}

static bool has_score(const struct study_row *r)
{
    return is_final_row(r) && is_ok(r) && isfinite(result(r));
}

static double way_of(const struct study_row *r)
{
    if (plays(r))
        return (r->test_return - r->random_return) / (r->optimum_return - r->random_return);
    return 1 - (r->test_answer_nats - r->test_answer_floor_nats) /
                   (r->test_answer_blind_nats - r->test_answer_floor_nats);
}

static void add_way(struct study_way *w, const struct study_row *r, int seeds)
{
    const double above = r->test_answer_nats - r->test_answer_floor_nats, way = way_of(r);

    if (seeds == 0)
        *w = (struct study_way){way, way, way, above};
    w->mean += (way - w->mean) / (seeds + 1);
    w->above += (above - w->above) / (seeds + 1);
    w->least = fmin(w->least, way);
    w->most = fmax(w->most, way);
}

bool study_reached(const struct study_entry *e)
{
    if (e->lost > 0)
        return false;
    if (e->is_task)
        return e->test.n > 0 && e->solved == e->test.n;
    return e->way.above <= log(1.02); /* not if it is NAN */
}

/* Is row i the score of its seed? The last one is, so that a training which ran twice counts once. */
static bool counts(const struct rows *rows, size_t i)
{
    const struct study_row *const r = rows->row;

    for (size_t k = rows->n - 1; k > i; k--)
        if (r[k].seed == r[i].seed && same_entry(&r[k], &r[i]) && has_score(&r[k]))
            return false;
    return has_score(&r[i]);
}

/* Is row i the last of a seed that was trained in vain? */
static bool is_lost(const struct rows *rows, size_t i)
{
    const struct study_row *const r = rows->row;

    for (size_t k = 0; k < rows->n; k++)
        if (r[k].seed == r[i].seed && same_entry(&r[k], &r[i]) && is_final_row(&r[k]) &&
            (k > i || has_score(&r[k])))
            return false;
    return is_final_row(&r[i]);
}

/* Means over the seeds of one entry. */
static void gather(struct study_entry *e, const struct rows *rows)
{
    const struct study_row *const r = rows->row;
    double *const x = calloc(rows->n + 1, sizeof(*x));
    int n = 0;

    NEED(x);
    e->lr = NAN;
    e->remark = "";
    e->way = (struct study_way){NAN, NAN, NAN, NAN};
    for (size_t i = 0; i < rows->n; i++) {
        if (!same_entry(&r[i], e->row))
            continue;
        if (!is_ok(&r[i]) && !*e->why)
            text_put(e->why, LINE_SIZE, r[i].status_detail);
        if (is_ok(&r[i]) && !*e->remark)
            e->remark = r[i].status_detail;
        if (r[i].parameters > 0) /* a failed one may have none */
            e->parameters = r[i].parameters;
        e->lost += is_lost(rows, i);
        if (!counts(rows, i))
            continue;
        if (asks(&r[i]) || plays(&r[i]))
            add_way(&e->way, &r[i], n);
        e->is_task = plays(&r[i]);
        e->solved += r[i].solved == 1;
        x[n++] = result(&r[i]);
        e->lr = r[i].lr;
    }
    e->at_end = rate_at_end(e, rows);
    e->test = group_stats(x, n);
    free(x);
}

/* ln of seconds per trained token; NAN: not known. */
static double log_time(const struct study_row *r)
{
    return is_final_row(r) && is_ok(r) && r->train_s > 0 && r->tokens > 0
               ? log(r->train_s / (double)r->tokens)
               : NAN;
}

/* Without other programs its time is no less than the CPU time: ln of the one over the other. Older
 * rows do not tell. */
static double log_stretch(const struct study_row *r)
{
    return r->cpu_pct > 0 ? fmax(0, log(100 / r->cpu_pct)) : 0;
}

/* The last row of `entry` that has a time, with the seed and machine of `like`; NULL: there is none. */
static const struct study_row *last_timed(const struct rows *rows, const struct study_row *entry,
                                          const struct study_row *like)
{
    const struct study_row *const r = rows->row;

    for (size_t k = rows->n; k-- > 0;)
        if (same_entry(&r[k], entry) && r[k].seed == like->seed && same_machine(&r[k], like) &&
            !isnan(log_time(&r[k])))
            return &r[k];
    return NULL;
}

/* The mean over seeds of ln(contender / baseline) with Student's 95 % interval: trainings of one
 * seed ran in the same turn. Below STUDY_LEAST_SEEDS that both have on one machine it has no
 * interval. */
static void pair_times(struct study_entry *out, const struct study_row *baseline,
                       const struct rows *rows)
{
    const struct study_row *const contender = out->row, *const r = rows->row;
    double *const d = calloc(rows->n + 1, sizeof(*d)), stretch[SIDES] = {0};
    int n = 0;

    NEED(d);
    for (size_t i = 0; i < rows->n; i++) {
        if (!same_entry(&r[i], contender))
            continue;
        const struct study_row *const with = last_timed(rows, baseline, &r[i]);
        if (with && last_timed(rows, contender, &r[i]) == &r[i]) {
            d[n++] = log_time(&r[i]) - log_time(with);
            stretch[BEFORE] += log_stretch(with);
            stretch[AFTER] += log_stretch(&r[i]);
        }
    }
    const struct group_stats s = group_stats(d, n);
    out->log_time = mean_interval(s);
    out->time_doubt = n > 0 ? fmax(stretch[BEFORE], stretch[AFTER]) / n : 0;
    if (n < STUDY_LEAST_SEEDS)
        out->log_time.low = out->log_time.high = NAN;
    free(d);
}

/* Why there is no verdict: the seeds of `e`, which `whose` belongs to. */
static void say_lost(char why[LINE_SIZE], const struct study_entry *e, const char *before,
                     const char *whose)
{
    snprintf(why, LINE_SIZE, "%s%d of %d seeds%s %s no score", before, e->lost, e->lost + e->test.n,
             whose, e->lost == 1 ? "has" : "have");
}

/* Else its `why` says why not. */
static bool can_test(struct study_entry *e, const struct study_entry *b)
{
    const bool own = *e->row->control;
    char *const why = e->why;

    if (e->test.n == 0) {
        if (!*why) /* else it says what its rows say */
            text_put(why, LINE_SIZE, "no row with a score");
    } else if (e->lost > 0) {
        say_lost(why, e, "", "");
    } else if (e->test.n < STUDY_LEAST_SEEDS) {
        text_put(why, LINE_SIZE, "fewer than three seeds");
    } else if (b->lost > 0) {
        say_lost(why, b, "", own ? " of its control" : " of the baseline");
    } else if (b->test.n < STUDY_LEAST_SEEDS) {
        text_put(why, LINE_SIZE,
                 own ? "too few seeds of its control" : "too few seeds of the baseline");
    } else {
        *why = '\0';
        return true;
    }
    return false;
}

/* Against its control `b`, itself if it has none; NULL: the table has it not there. Its time is known
 * already. */
static void confront(struct study_entry *e, const struct study_entry *b, double threshold)
{
    e->verdict = STUDY_NOT_TESTED;
    e->time_verdict = VERDICT_UNSHOWN;
    e->quality = (struct welch){{NAN, NAN, NAN}, NAN, NAN};
    e->against = e == b || !b ? "" : b->row->contender;
    if (e == b || !b)
        e->log_time = (struct interval){NAN, NAN, NAN};
    if (e == b) {
        text_put(e->why, LINE_SIZE, "the baseline");
        if (e->lost > 0)
            say_lost(e->why, e, "the baseline; ", "");
        return;
    }
    if (!b) {
        text_put(e->why, LINE_SIZE,
                 *e->row->control ? "no rows of its control here" : "no rows of the baseline here");
        return;
    }
    if (e->parameters && b->parameters)
        e->more = (double)e->parameters / (double)b->parameters - 1;
    e->time_verdict = verdict_of(e->log_time, threshold, e->time_doubt);
    if (can_test(e, b))
        e->quality = welch(b->test, e->test);
}

/* ---- the table ------------------------------------------------------------------------------ */

static void add_entries(struct study_verdicts *v, const struct rows *rows, bool baseline,
                        const struct study_row *place)
{
    const struct study_row *const r = rows->row;

    for (size_t i = 0; i < rows->n; i++) {
        bool known = false;
        if (!same_place(&r[i], place) || (r[i].baseline == 1) != baseline)
            continue;
        for (int k = 0; k < v->n && !known; k++)
            known = same_entry(v->v[k].row, &r[i]);
        if (known)
            continue;
        GROW_SMALL(v->v, v->n);
        v->v[v->n] = (struct study_entry){.row = &r[i]};
        gather(&v->v[v->n++], rows);
    }
}

/* What it is compared with: itself if that is nothing else. */
static const struct study_entry *baseline_of(const struct study_verdicts *v,
                                             const struct study_entry *e)
{
    const char *const control = e->row->control;

    if (is_origin(e->row))
        return e;
    for (int i = 0; i < v->n; i++)
        if (same_place(v->v[i].row, e->row) &&
            (*control ? strcmp(v->v[i].row->contender, control) == 0 : v->v[i].row->baseline == 1))
            return &v->v[i];
    return NULL;
}

static bool have_controls(const struct study_verdicts *v)
{
    const char *control = "";

    for (int i = 0; i < v->n; i++) {
        const char *const own = v->v[i].row->control;
        if (*own && *control && strcmp(own, control) != 0)
            return true;
        control = *own ? own : control;
    }
    return false;
}

static void judge(struct study_verdicts *v, const struct rows *rows, double threshold)
{
    const double level = 0.05;
    double *const p = calloc(2 * (size_t)v->n + 1, sizeof(*p));
    struct group_stats *const floor = calloc((size_t)v->n + 1, sizeof(*floor));

    NEED(p && floor);
    for (int i = 0; i < v->n; i++) {
        const struct study_entry *const b = baseline_of(v, &v->v[i]);
        if (b)
            pair_times(&v->v[i], b->row, rows);
    }
    for (int i = 0; i < v->n; i++) {
        confront(&v->v[i], baseline_of(v, &v->v[i]), threshold);
        p[i] = v->v[i].quality.p;
        v->tested += !isnan(p[i]);
        if (v->v[i].row->baseline == 1 && v->v[i].test.n >= 2 && v->v[i].lost == 0)
            floor[v->noise_of++] = v->v[i].test;
    }
    v->noise = pooled_sd(floor, v->noise_of);
    v->controls = have_controls(v);
    holm(p, v->n, p + v->n);
    for (int i = 0; i < v->n; i++) {
        struct study_entry *const t = &v->v[i];
        t->p = p[i];
        if (!isnan(p[i]))
            t->verdict = p[i] >= level                             ? STUDY_NOT_SHOWN
                         : (t->quality.diff.mid < 0) != t->is_task ? STUDY_BETTER
                                                                   : STUDY_WORSE;
    }
    free(p);
    free(floor);
}

struct study_verdicts study_verdicts_make(const struct rows *rows, double threshold)
{
    const struct study_row *const r = rows->row;
    struct study_verdicts v = {.noise = NAN};

    for (size_t i = 0; i < rows->n; i++) { /* does nothing for a place that is in */
        add_entries(&v, rows, true, &r[i]);
        add_entries(&v, rows, false, &r[i]);
    }
    judge(&v, rows, threshold);
    return v;
}

void study_verdicts_free(struct study_verdicts *v)
{
    free(v->v);
    *v = (struct study_verdicts){0};
}

const struct study_entry *study_entry_of(const struct study_verdicts *v, const struct study_row *r)
{
    int i = 0;

    while (i < v->n && !same_entry(v->v[i].row, r))
        i++;
    CHECK(i < v->n);
    return &v->v[i];
}
