/* SPDX-License-Identifier: MIT
 *
 * Scores of a study as one row a contender: perplexities are means of the loss over its seeds, with
 * Student's interval; times are means. Figures read them in place of the table. */
#include "seeds.h"

#include "harness/measure/study_verdict.h"

static bool same_size(const struct study_row *r, const struct perplexity_row *score)
{
    return r->layers == score->layers && r->d_model == score->d_model && r->heads == score->heads &&
           r->d_inner == score->d_inner;
}

/* A training that made such weights; data.c has named them by contender and seed. Texts are told apart
 * by the scores' own column. */
static const struct study_row *trained(const struct plot_data *d,
                                       const struct perplexity_row *score)
{
    const struct study_row *const r = d->table[TABLE_STUDY].row;
    char name[LINE_SIZE];

    for (size_t i = 0; i < d->table[TABLE_STUDY].n; i++) {
        plot_name_weights(name, &r[i], score->variant);
        if (*r[i].checkpoint && strcmp(name, score->checkpoint) == 0 &&
            strcmp(r[i].variant, score->variant) == 0 && same_size(&r[i], score))
            return &r[i];
    }
    return NULL;
}

/* What scores of one contender are grouped by: the text, and how they were scored. */
static bool same_score(const struct perplexity_row *a, const struct perplexity_row *b)
{
    const struct table *const t = &tables[TABLE_PERPLEXITY];

    for (int i = 0; i < t->n; i++)
        if ((plot_role(t, &t->columns[i]) & ~ROLE_SIZE) &&
            strcmp(t->columns[i].name, "checkpoint") != 0 && !plot_same_value(&t->columns[i], a, b))
            return false;
    return strcmp(a->backend, b->backend) == 0 && strcmp(a->status, b->status) == 0;
}

static bool same_contender(const struct study_row *a, const struct study_row *b)
{
    return strcmp(a->contender, b->contender) == 0 && strcmp(a->size, b->size) == 0 &&
           a->budget_tokens == b->budget_tokens;
}

/* Over the seeds of row i, which comes first of them. */
static void merge(struct perplexity_row *out, const struct study_row *const *of,
                  const struct perplexity_row *v, size_t n, size_t i, double *work)
{
    double ns = 0;
    int seeds = 0, timed = 0;

    *out = v[i];
    for (size_t k = i; k < n; k++)
        if (of[k] && same_contender(of[i], of[k]) && same_score(&v[i], &v[k])) {
            work[seeds++] = log(v[k].ppl);
            if (v[k].tokens_per_s > 0)
                ns += 1 / v[k].tokens_per_s, timed++;
        }
    snprintf(out->checkpoint, sizeof(out->checkpoint), "%s%s", of[i]->contender,
             study_budget_text(of[i]).s);
    if (timed > 0)
        out->tokens_per_s = timed / ns;
    if (seeds < 2)
        return;
    const struct interval mean = mean_interval(group_stats(work, seeds));
    out->ppl = exp(mean.mid);
    out->ppl_ci95_low = exp(mean.low);
    out->ppl_ci95_high = exp(mean.high);
}

static bool comes_first(const struct study_row *const *of, const struct perplexity_row *v, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (of[k] && same_contender(of[k], of[i]) && same_score(&v[k], &v[i]))
            return false;
    return true;
}

struct scores scores_by_contender(const struct plot_data *d)
{
    const struct perplexity_row *const v = d->table[TABLE_PERPLEXITY].row;
    const size_t n = d->table[TABLE_PERPLEXITY].n;
    const struct study_row **const of = need_room(n + 1, sizeof(const struct study_row *));
    double *const work = need_room(n + 1, sizeof(*work));
    struct scores s = {.data = *d,
                       .row = need_room(n + 1, sizeof(*s.row)),
                       .of = need_room(n + 1, sizeof(const struct study_row *))};
    size_t kept = 0;

    for (size_t i = 0; i < n; i++)
        of[i] = trained(d, &v[i]);
    for (size_t i = 0; i < n; i++) {
        if (of[i] && !comes_first(of, v, i))
            continue;
        s.row[kept] = v[i];
        if (of[i])
            merge(&s.row[kept], of, v, n, i, work);
        s.of[kept++] = of[i];
    }
    free(of);
    free(work);
    s.data.trained = s.of;
    s.data.table[TABLE_PERPLEXITY].row = s.row;
    s.data.table[TABLE_PERPLEXITY].n = kept;
    return s;
}

void scores_free(struct scores *s)
{
    free(s->row);
    free(s->of);
    *s = (struct scores){0};
}
