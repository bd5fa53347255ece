/* SPDX-License-Identifier: MIT
 *
 * A study over its budgets. */
#include "study_verdict.h"

/* The places of one text and size, by budgets. */
struct places {
    int first[STUDY_BUDGETS_MAX], n; /* the entry that a place begins with */
    struct study_pool pool[STUDY_BUDGETS_MAX];
};

bool study_is_last(const struct study_verdicts *v, const struct study_entry *e)
{
    bool is = true;

    for (int i = 0; i < v->n; i++)
        is = is && !(study_same_text(v->v[i].row, e->row) &&
                     v->v[i].row->budget_tokens > e->row->budget_tokens);
    return is;
}

/* The places of the i-th entry's text and size; none if it has no budgets, or is not the first there. */
static struct places places_of(const struct study_verdicts *v, int i)
{
    struct places p = {.n = 0};

    for (int k = 0; k < i; k++)
        if (study_same_text(v->v[k].row, v->v[i].row))
            return p;
    for (int k = i; k < v->n; k += study_at_place(v, k)) {
        const int64_t budget = v->v[k].row->budget_tokens;
        if (!study_same_text(v->v[k].row, v->v[i].row) || budget == I64_EMPTY ||
            p.n == STUDY_BUDGETS_MAX)
            continue;
        int at = p.n++;
        for (; at > 0 && v->v[p.first[at - 1]].row->budget_tokens > budget; at--)
            p.first[at] = p.first[at - 1];
        p.first[at] = k;
    }
    for (int k = 0; k < p.n; k++)
        p.pool[k] = study_pool_make(&v->v[p.first[k]], study_at_place(v, p.first[k]));
    return p;
}

static void places_free(struct places *p)
{
    for (int k = 0; k < p->n; k++)
        free(p->pool[k].in);
}

/* A contender at the k-th place; NULL: it is not there, or lost seeds. */
static const struct study_entry *find(const struct study_verdicts *v, const struct places *p, int k,
                                      const char *contender)
{
    const struct study_entry *const e = &v->v[p->first[k]];

    for (int i = 0; i < study_at_place(v, p->first[k]); i++)
        if (strcmp(e[i].row->contender, contender) == 0)
            return e[i].lost == 0 && e[i].test.n > 0 ? &e[i] : NULL;
    return NULL;
}

static bool can_compare(const struct study_entry *e)
{
    return e && e->test.n >= STUDY_LEAST_SEEDS && !study_rate_at_end(e);
}

/* How far a is ahead of b at each place. */
struct over_budgets {
    const struct study_entry *a[STUDY_BUDGETS_MAX], *b[STUDY_BUDGETS_MAX];
    struct welch by[STUDY_BUDGETS_MAX];
    double p; /* that one of them is never ahead; NAN: they share fewer than two places */
};

static struct over_budgets compare(const struct study_verdicts *v, const struct places *p,
                                   const char *a, const char *b)
{
    struct over_budgets t = {.p = NAN};
    double a_ahead = 1, b_ahead = 1; /* one-sided p */
    int shared = 0;

    for (int k = 0; k < p->n; k++) {
        const struct study_entry *const x = find(v, p, k, a), *const y = find(v, p, k, b);
        t.a[k] = can_compare(x) && can_compare(y) ? x : NULL;
        t.b[k] = y;
        if (!t.a[k])
            continue;
        const struct study_entry *const less = x->is_task ? y : x, *const more = x->is_task ? x : y;
        const bool *const in = p->pool[k].in;
        const bool pooled = in[x - v->v - p->first[k]] && in[y - v->v - p->first[k]];
        t.by[k] = study_difference(more, less, pooled, &p->pool[k]);
        const double half = t.by[k].p / 2;
        a_ahead = fmin(a_ahead, t.by[k].diff.mid > 0 ? half : 1 - half);
        b_ahead = fmin(b_ahead, t.by[k].diff.mid < 0 ? half : 1 - half);
        shared++;
    }
    if (shared > 1)
        t.p = fmin(1, shared * fmax(a_ahead, b_ahead));
    return t;
}

/* 1: a is shown ahead at the k-th place, -1: b, 0: neither. */
static int shown(const struct over_budgets *t, int k)
{
    const double effect = t->a[k] ? fmax(0, t->a[k]->row->effect) : 0;

    return !t->a[k] ? 0 : t->by[k].diff.low > effect ? 1 : t->by[k].diff.high < -effect ? -1 : 0;
}

static struct interval size_of(struct interval d, int sign)
{
    return sign > 0 ? d : (struct interval){-d.high, -d.mid, -d.low};
}

/* Each change of who was last shown ahead. */
static void add_crossings(struct study_crossing **to, int *n, const struct over_budgets *t,
                          int places, int pair)
{
    int last = -1;

    for (int k = 0; k < places; k++) {
        const int sign = shown(t, k);
        if (sign == 0)
            continue;
        if (last >= 0 && shown(t, last) != sign) {
            GROW_SMALL(*to, *n);
            (*to)[(*n)++] = (struct study_crossing){
                .ahead = {sign < 0 ? t->a[last] : t->b[last], sign > 0 ? t->a[k] : t->b[k]},
                .by = {size_of(t->by[last].diff, -sign), size_of(t->by[k].diff, sign)},
                .pair = pair};
        }
        last = k;
    }
}

struct study_crossing *study_crossings(const struct study_verdicts *v, int *n)
{
    const double level = 0.05;
    struct study_crossing *found = NULL;
    double *p = NULL;
    int pairs = 0, turns = 0;

    for (int i = 0; i < v->n; i++) {
        struct places s = places_of(v, i);
        const int end = s.n > 1 ? s.first[0] + study_at_place(v, s.first[0]) : 0;
        for (int a = s.first[0]; a < end; a++)
            for (int b = a + 1; b < end; b++) {
                const struct over_budgets t =
                    compare(v, &s, v->v[a].row->contender, v->v[b].row->contender);
                GROW_SMALL(p, pairs);
                p[pairs] = t.p;
                add_crossings(&found, &turns, &t, s.n, pairs++);
            }
        places_free(&s);
    }
    double *const work = need_room((size_t)pairs + 1, sizeof(*work));
    holm(p, pairs, work);
    free(work);
    *n = 0;
    for (int i = 0; i < turns; i++) {
        found[i].p = p[found[i].pair];
        if (found[i].p < level)
            found[(*n)++] = found[i];
    }
    free(p);
    return found;
}

void study_say_crossing(FILE *f, const struct study_crossing *c)
{
    const struct study_entry *const was = c->ahead[0], *const is = c->ahead[1];
    const char *const unit = is->is_task ? "" : " nats";

    fprintf(f,
            "%s, %s: %s is ahead of %s by %.3f%s (%.3f to %.3f) after%s tokens, and behind by "
            "%.3f%s (%.3f to %.3f) after%s (p %.2g)",
            is->row->corpus, is->row->size, was->row->contender, is->row->contender, c->by[0].mid,
            unit, c->by[0].low, c->by[0].high, study_budget_text(was->row).s, c->by[1].mid, unit,
            c->by[1].low, c->by[1].high, study_budget_text(is->row).s, c->p);
}

/* A row for each contender of the first place. */
static void print_means(FILE *f, const struct study_verdicts *v, const struct places *p,
                        enum format format)
{
    struct text_table_column column[1 + STUDY_BUDGETS_MAX] = {{.name = "contender"}};
    struct unit_text head[STUDY_BUDGETS_MAX];
    struct text_table t = {.column = column, .columns = 1 + p->n};
    const struct study_entry *const first = &v->v[p->first[0]];

    for (int k = 0; k < p->n; k++) {
        head[k] = study_budget_text(v->v[p->first[k]].row);
        column[k + 1] = (struct text_table_column){.name = head[k].s + 1, .number = true};
    }
    for (int i = 0; i < study_at_place(v, p->first[0]); i++) {
        text_table_cell(&t, "%s", first[i].row->contender);
        for (int k = 0; k < p->n; k++) {
            const struct study_entry *const e = find(v, p, k, first[i].row->contender);
            const struct interval m = e ? mean_interval(e->test) : (struct interval){NAN, NAN, NAN};
            if (e)
                text_table_cell(&t, "%.3f +-%.3f", m.mid, m.high - m.mid);
            else
                text_table_cell(&t, "%s", "");
        }
    }
    text_above(f, format, "%s, %s: mean %s over seeds with its 95 %% interval, by tokens",
               first->row->corpus, first->row->size, first->is_task ? "return" : "test_nats");
    text_table_print(f, &t, format);
    text_table_free(&t);
}

void study_budgets_print(FILE *f, const struct study_verdicts *v, enum format format)
{
    int n;
    struct study_crossing *const c = study_crossings(v, &n);

    for (int i = 0; i < v->n; i++) {
        struct places p = places_of(v, i);
        if (p.n > 0) {
            fputc('\n', f);
            print_means(f, v, &p, format);
        }
        places_free(&p);
    }
    for (int i = 0; i < n; i++) {
        struct bytes line;
        FILE *const text = bytes_begin(&line);
        study_say_crossing(text, &c[i]);
        text_below(f, format, "%s", bytes_end(text, &line));
        free(line.data);
    }
    if (n == 0)
        text_below(f, format, "no two contenders are shown to change places between budgets");
    free(c);
}
