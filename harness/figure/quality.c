/* SPDX-License-Identifier: MIT
 *
 * The figure quality: what contenders of a study have learnt, against what their variants cost in the
 * same folder: time per token after the longest context, and the state that is kept of it. */
#include "figure.h"

#include "harness/measure/study_verdict.h"

/* Panels: times of each workload, then the state. With more names than these only the front has some,
 * and the first variants of the list, which others are compared with. */
enum { NAMED_MAX = 24, PANELS_ABREAST = 2 };

static const char STATE[] = "state";

static double time_of(const void *row)
{
    const struct latency_row *const r = row;
    return r->median_ns / 1e3 / (double)(r->seq_tokens * r->batch_size);
}

static double state_of(const void *row)
{
    const int64_t bytes = ((const struct memory_row *)row)->memory_state_bytes;
    return bytes > 0 ? (double)bytes / 1024 : NAN;
}

/* Of a variant's rows of a workload after the longest context there, the one with the least value;
 * NULL without one. */
static const void *least(const struct plot_data *d, enum table_id id, const char *variant,
                         const char *workload, double (*value)(const void *row))
{
    const struct table *const t = &tables[id];
    const void *found = NULL;
    double mem = -1;

    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < d->table[id].n; i++) {
            const void *const row = (const char *)d->table[id].row + i * t->row_size;
            const double m = plot_number(t, row, "mem_tokens");
            if (strcmp(row_text(t, row, "workload"), workload) != 0 ||
                strcmp(row_text(t, row, "status"), row_status_name[ROW_OK]) != 0)
                continue;
            if (pass == 0)
                mem = fmax(mem, m);
            else if (m == mem && strcmp(row_text(t, row, "variant"), variant) == 0 &&
                     isfinite(value(row)) && (!found || value(row) < value(found)))
                found = row;
        }
    return found;
}

/* "segment: 128 tokens after 2048", of the longest context. */
static int name_panel(struct plot *p, const struct plot_data *d, const char *workload, bool state)
{
    const struct latency_row *const v = d->table[TABLE_LATENCY].row, *of = NULL;
    char text[PLOT_TEXT] = "", tokens[32] = "";

    for (size_t i = 0; i < d->table[TABLE_LATENCY].n; i++)
        if (strcmp(v[i].workload, workload) == 0 && (!of || v[i].mem_tokens > of->mem_tokens))
            of = &v[i];
    if (of && of->seq_tokens == 1)
        text_put(tokens, sizeof(tokens), "one token");
    else if (of)
        snprintf(tokens, sizeof(tokens), "%lld tokens", (long long)of->seq_tokens);
    if (of && state)
        snprintf(text, sizeof(text), "%s kept of %lld tokens", STATE, (long long)of->mem_tokens);
    else if (of)
        snprintf(text, sizeof(text), "%.60s: %s after %lld", workload, tokens,
                 (long long)of->mem_tokens);
    return plot_name(&p->rows, text, 0);
}

static void add_point(struct plot *p, const struct plot_data *d, const struct study_entry *s,
                      const char *workload, bool state)
{
    const char *const variant = s->row->variant;
    const int style = plot_variant_style(variant);
    const struct interval mean = mean_interval(s->test);
    struct plot_point a = plot_point_empty();

    const void *const cost = state ? least(d, TABLE_MEMORY, variant, workload, state_of)
                                   : least(d, TABLE_LATENCY, variant, workload, time_of);
    if (!cost)
        return;
    a.source = state ? NULL : cost;
    a.x = state ? state_of(cost) : time_of(cost);
    a.y = mean.mid / log(2);
    a.low = mean.low / log(2);
    a.high = mean.high / log(2);
    text_put(a.label, PLOT_TEXT, s->row->contender);
    const bool known = variant_find(variant) && strcmp(variant_find(variant)->name, variant) == 0;
    const int family = known ? (int)variant_family(style) : STYLE_FOREIGN;
    a.row = name_panel(p, d, workload, state);
    a.series = plot_name(&p->series, known ? family_name[family] : "others", family);
    plot_add(p, &a);
}

/* Its costs are those of the variant that it is named after. */
static bool is_drawn(const struct study_verdicts *all, const struct study_entry *s)
{
    return study_is_last(all, s) && !s->is_task && s->lost == 0 && isfinite(s->test.mean) &&
           strcmp(s->row->contender, s->row->variant) == 0;
}

static void add_panel(struct plot *p, const struct plot_data *d, const struct study_verdicts *all,
                      const char *workload, bool state)
{
    for (int i = 0; i < all->n; i++)
        if (is_drawn(all, &all->v[i]))
            add_point(p, d, &all->v[i], workload, state);
}

void quality_costs(struct plot *p, const struct plot_data *d)
{
    const struct latency_row *const v = d->table[TABLE_LATENCY].row;
    struct plot_names workloads = {0};
    struct study_verdicts all = study_verdicts_make(&d->table[TABLE_STUDY], 0);

    plot_one_column(p);
    for (size_t i = 0; i < d->table[TABLE_LATENCY].n; i++)
        plot_name(&workloads, v[i].workload, 0);
    for (int w = 0; w < workloads.n; w++)
        add_panel(p, d, &all, workloads.v[w].text, false);
    for (int w = 0; w < workloads.n; w++)
        if (strcmp(workloads.v[w].text, workload_name[WORK_DECODE]) == 0)
            add_panel(p, d, &all, workloads.v[w].text, true);
    snprintf(p->y_title, sizeof(p->y_title), "test loss (bits per %.60s)", study_unit(d));
    plot_wrap(p, PANELS_ABREAST);
    free(workloads.v);
    study_verdicts_free(&all);
}

void quality_front(struct plot *p, const struct plot_data *d)
{
    const int n = p->n;
    int most = 0;

    perplexity_front(p, d);
    for (int c = 0; c < p->columns.n; c++) {
        int points = 0;
        for (int i = 0; i < n; i++)
            points += p->point[i].column == c;
        most = max_int(most, points);
    }
    for (int i = 0; i < n && most > NAMED_MAX; i++) {
        struct plot_point *const a = &p->point[i];
        bool named = false;
        for (int k = 0; k < BASE_VARIANTS; k++)
            named = named || strcmp(a->label, variants[k]->name) == 0;
        for (int k = n; k < p->n; k++)
            named = named || (p->point[k].column == a->column && p->point[k].x == a->x &&
                              p->point[k].y == a->y && strcmp(p->point[k].label, a->label) == 0);
        a->low = a->high = NAN; /* would hide the points */
        if (!named)
            a->label[0] = '\0';
    }
}
