/* SPDX-License-Identifier: MIT
 *
 * Verdicts of a study. */
#include "study_verdict.h"

const char *const study_verdict_name[STUDY_VERDICT_COUNT + 1] = {"better", "worse", "not shown",
                                                                 "at an end", "not tested"};

bool study_same_text(const struct study_row *a, const struct study_row *b)
{
    return strcmp(a->corpus, b->corpus) == 0 && strcmp(a->size, b->size) == 0;
}

bool study_same_place(const struct study_row *a, const struct study_row *b)
{
    return study_same_text(a, b) && a->budget_tokens == b->budget_tokens;
}

struct unit_text study_budget_text(const struct study_row *r)
{
    struct unit_text t = {""};

    if (r->budget_tokens != I64_EMPTY)
        snprintf(t.s, sizeof(t.s), " %.20s", units_exact(r->budget_tokens).s);
    return t;
}

int study_at_place(const struct study_verdicts *v, int i)
{
    int n = 1;

    while (i + n < v->n && study_same_place(v->v[i].row, v->v[i + n].row))
        n++;
    return n;
}

static bool same_entry(const struct study_row *a, const struct study_row *b)
{
    return study_same_place(a, b) && strcmp(a->contender, b->contender) == 0;
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

/* Its own, or of the contender whose rate it takes: for all budgets. */
static struct interval tried_rates(const struct study_entry *e, const struct rows *rows)
{
    const struct study_row *const r = rows->row;
    const char *const of = *e->row->rate_of ? e->row->rate_of : e->row->contender;
    struct interval tried = {e->lr, e->lr, e->lr};

    for (size_t i = 0; i < rows->n; i++)
        if (study_same_text(&r[i], e->row) && strcmp(r[i].contender, of) == 0 &&
            !is_final_row(&r[i])) {
            tried.low = fmin(tried.low, r[i].lr);
            tried.high = fmax(tried.high, r[i].lr);
        }
    return tried;
}

bool study_rate_at_end(const struct study_entry *e)
{
    return e->tried.low < e->tried.high &&
           (e->tried.mid == e->tried.low || e->tried.mid == e->tried.high);
}

static bool asks(const struct study_row *r) { return isfinite(r->test_answer_nats); }

static bool plays(const struct study_row *r) { return isfinite(r->test_return); }

/* The compared numbers: less is better, of returns more. */
static double result(const struct study_row *r)
{
    return plays(r) ? r->test_return : asks(r) ? r->test_answer_nats : r->test_nats;
}

bool study_collapsed(const struct study_row *r)
{
    const double close = 0.02;

    return is_final_row(r) && (is_ok(r) ? r->test_nats >= (1 - close) * r->test_unigram_nats
                                        : strcmp(r->status, row_status_name[ROW_WRONG]) == 0);
}

static bool has_score(const struct study_row *r)
{
    return is_final_row(r) && is_ok(r) && isfinite(result(r)) && !study_collapsed(r);
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
    int n = 0;

    e->x = need_room(rows->n + 1, sizeof(*e->x));
    e->seed = need_room(rows->n + 1, sizeof(*e->seed));
    e->lr = e->unigram_nats = NAN;
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
        if (is_final_row(&r[i]) && is_ok(&r[i]))
            e->lr = r[i].lr;
        if (isfinite(r[i].test_unigram_nats))
            e->unigram_nats = r[i].test_unigram_nats;
        if (is_lost(rows, i) && study_collapsed(&r[i]))
            e->collapsed_nats +=
                ((is_ok(&r[i]) ? r[i].test_nats : NAN) - e->collapsed_nats) / ++e->collapsed;
        e->lost += is_lost(rows, i);
        if (!counts(rows, i))
            continue;
        if (asks(&r[i]) || plays(&r[i]))
            add_way(&e->way, &r[i], n);
        e->is_task = plays(&r[i]);
        e->solved += r[i].solved == 1;
        e->seed[n] = r[i].seed;
        e->x[n++] = result(&r[i]);
    }
    e->tried = tried_rates(e, rows);
    e->test = group_stats(e->x, n);
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
    double *const d = need_room(rows->n + 1, sizeof(*d)), stretch[SIDES] = {0};
    int n = 0;

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
    const int seeds = e->lost + e->test.n;

    if (e->collapsed == 0)
        snprintf(why, LINE_SIZE, "%s%d of %d seeds%s %s no score", before, e->lost, seeds, whose,
                 e->lost == 1 ? "has" : "have");
    else if (isnan(e->collapsed_nats))
        snprintf(why, LINE_SIZE, "%s%d of %d seeds%s collapsed: no number", before, e->collapsed,
                 seeds, whose);
    else
        snprintf(why, LINE_SIZE, "%s%d of %d seeds%s collapsed: %.3f nats, single bytes %.3f",
                 before, e->collapsed, seeds, whose, e->collapsed_nats, e->unigram_nats);
}

/* Else its `why` says why not. */
static bool can_test(struct study_entry *e, const struct study_entry *b)
{
    const bool own = *e->row->control;
    char *const why = e->why;

    if (e->test.n == 0 && e->collapsed == 0) {
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
static void confront(struct study_entry *e, const struct study_entry *b, double threshold,
                     bool pooled, const struct study_pool *pool)
{
    e->verdict = STUDY_NOT_TESTED;
    e->time_verdict = VERDICT_UNSHOWN;
    e->quality = (struct welch){{NAN, NAN, NAN}, NAN, NAN, NAN};
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
        e->quality = study_difference(e, b, pooled, pool);
}

/* ---- the table ------------------------------------------------------------------------------ */

static void add_entries(struct study_verdicts *v, const struct rows *rows, bool baseline,
                        const struct study_row *place)
{
    const struct study_row *const r = rows->row;

    for (size_t i = 0; i < rows->n; i++) {
        bool known = false;
        if (!study_same_place(&r[i], place) || (r[i].baseline == 1) != baseline)
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
        if (study_same_place(v->v[i].row, e->row) &&
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

/* Those of one place. */
static void confront_all(struct study_verdicts *v, int first, int n, double threshold)
{
    struct study_pool pool = study_pool_make(&v->v[first], n);

    for (int i = first; i < first + n; i++) {
        const struct study_entry *const b = baseline_of(v, &v->v[i]);
        confront(&v->v[i], b, threshold, b && pool.in[i - first] && pool.in[b - v->v - first],
                 &pool);
    }
    free(pool.in);
}

/* A difference that counts: beyond the least effect, and beyond chance. */
static enum study_verdict verdict_on(const struct study_entry *e, const struct study_entry *b)
{
    const double level = 0.05, effect = fmax(0, e->row->effect); /* older rows have none */
    const struct interval d = e->quality.diff;

    if (study_rate_at_end(e) || study_rate_at_end(b))
        return STUDY_AT_END;
    if (e->p >= level || (d.low <= effect && d.high >= -effect))
        return STUDY_NOT_SHOWN;
    return (d.mid < 0) != e->is_task ? STUDY_BETTER : STUDY_WORSE;
}

static void judge(struct study_verdicts *v, const struct rows *rows, double threshold)
{
    double *const p = need_room(3 * (size_t)v->n + 1, sizeof(*p)), *const q = p + v->n,
                  *const work = q + v->n;
    struct group_stats *const floor = need_room((size_t)v->n + 1, sizeof(*floor));

    for (int i = 0; i < v->n; i++) {
        const struct study_entry *const b = baseline_of(v, &v->v[i]);
        if (b)
            pair_times(&v->v[i], b->row, rows);
    }
    for (int i = 0; i < v->n; i += study_at_place(v, i))
        confront_all(v, i, study_at_place(v, i), threshold);
    for (int i = 0; i < v->n; i++) {
        p[i] = q[i] = v->v[i].quality.p;
        v->tested += !isnan(p[i]);
        if (v->v[i].row->baseline == 1 && v->v[i].test.n >= 2 && v->v[i].lost == 0)
            floor[v->noise_of++] = v->v[i].test;
    }
    v->noise = pooled_sd(floor, v->noise_of);
    v->controls = have_controls(v);
    holm(p, v->n, work);
    benjamini_hochberg(q, v->n, work);
    for (int i = 0; i < v->n; i++) {
        struct study_entry *const t = &v->v[i];
        t->p = p[i];
        t->q = q[i];
        t->shown_min =
            least_shown(t->quality.error, t->quality.df, v->tested, fmax(0, t->row->effect));
        if (!isnan(p[i]))
            t->verdict = verdict_on(t, baseline_of(v, t));
    }
    free(p);
    free(floor);
}

struct study_verdicts study_verdicts_make(const struct rows *rows, double threshold)
{
    const struct study_row *const r = rows->row;
    struct study_verdicts v = {.noise = NAN};
    bool budgets = false;

    for (size_t i = 0; i < rows->n; i++)
        budgets = budgets || r[i].budget_tokens != I64_EMPTY;
    for (size_t i = 0; i < rows->n; i++) {   /* does nothing for a place that is in */
        if (budgets && !is_final_row(&r[i])) /* tuning is at none of them */
            continue;
        add_entries(&v, rows, true, &r[i]);
        add_entries(&v, rows, false, &r[i]);
    }
    judge(&v, rows, threshold);
    return v;
}

void study_verdicts_free(struct study_verdicts *v)
{
    for (int i = 0; i < v->n; i++) {
        free(v->v[i].x);
        free(v->v[i].seed);
    }
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
