/* SPDX-License-Identifier: MIT
 *
 * The figures of a study: difference in quality against difference in time, with both intervals, and quality
 * over budgets. */
#include "figure.h"
#include "harness/measure/study_verdict.h"

enum { KIND_ENTRY, KIND_NOISE = 2, PANELS_ABREAST = 3 };

/* Has it no control? It is drawn at the origin of its panel. */
static bool is_origin(const struct study_row *r) { return r->baseline == 1 && !*r->control; }

static void add_entry(struct plot *p, const struct study_verdicts *v, const struct study_entry *s)
{
    const bool baseline = is_origin(s->row), named = v->controls && !baseline;
    const char *const verdict = baseline ? "baseline" : study_verdict_name[s->verdict];
    struct plot_point a = plot_point_empty();

    a.row = study_panel(p, s->row);
    a.series = plot_name(&p->series, verdict, baseline ? STYLE_FOREIGN : (int)s->verdict);
    a.kind = KIND_ENTRY;
    if (named)
        snprintf(a.label, PLOT_TEXT, "%.80s vs %.80s", s->row->contender, s->row->control);
    else
        text_put(a.label, PLOT_TEXT, v->controls ? "its control" : s->row->contender);
    a.x = baseline ? 1 : exp(s->log_time.mid);
    a.y = baseline ? 0 : s->quality.diff.mid;
    a.low = s->quality.diff.low;
    a.high = s->quality.diff.high;
    a.z = baseline ? 1 : exp(s->log_time.high - s->log_time.mid);
    plot_add(p, &a);
    if (!baseline || !isfinite(v->noise))
        return;
    a.kind = KIND_NOISE;
    a.low = -v->noise;
    a.high = v->noise;
    a.label[0] = '\0';
    plot_add(p, &a);
}

/* Of several without a control, which all stand at the origin of their panel, one is drawn. */
static bool is_first_origin(const struct study_verdicts *v, int i)
{
    const struct study_row *const r = v->v[i].row;

    for (int k = 0; k < i; k++) {
        const struct study_row *const before = v->v[k].row;
        if (is_origin(before) && study_same_place(before, r))
            return false;
    }
    return is_origin(r);
}

void study_differences(struct plot *p, const struct plot_data *d)
{
    struct study_verdicts v = study_verdicts_make(&d->table[TABLE_STUDY], 0);
    int drawn = 0, left_out = 0;

    plot_one_column(p);
    for (int i = 0; i < v.n; i++) {
        const struct study_entry *const s = &v.v[i];
        const bool known = isfinite(s->p) && isfinite(s->log_time.high);
        if (s->is_task) /* has no loss */
            continue;
        if (is_first_origin(&v, i) || known)
            add_entry(p, &v, s);
        drawn += known;
        left_out += !is_origin(s->row) && !known;
    }
    if (drawn == 0) /* baselines alone */
        p->n = 0;
    plot_say_left_out(p, left_out, "not tested or not timed");
    plot_wrap(p, PANELS_ABREAST);
    study_verdicts_free(&v);
}

void study_over_budgets(struct plot *p, const struct plot_data *d)
{
    struct study_verdicts v = study_verdicts_make(&d->table[TABLE_STUDY], 0);
    int left_out = 0;

    plot_one_column(p);
    for (int i = 0; i < v.n; i++) {
        const struct study_entry *const s = &v.v[i];
        struct study_row panel = *s->row;
        struct plot_point a = plot_point_empty();
        panel.budget_tokens = I64_EMPTY;
        if (s->is_task || s->row->budget_tokens == I64_EMPTY)
            continue;
        if (s->lost > 0 || s->test.n == 0) {
            left_out++;
            continue;
        }
        const struct interval mean = mean_interval(s->test);
        a.row = study_panel(p, &panel);
        a.series = study_series(p, s->row);
        a.x = (double)s->row->budget_tokens;
        a.y = mean.mid;
        a.low = mean.low;
        a.high = mean.high;
        plot_add(p, &a);
    }
    snprintf(p->y_title, sizeof(p->y_title), "test loss (nats per %.60s)", study_unit(d));
    plot_say_left_out(p, left_out, "seeds have no score");
    plot_wrap(p, PANELS_ABREAST);
    study_verdicts_free(&v);
}
