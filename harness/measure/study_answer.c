/* SPDX-License-Identifier: MIT
 *
 * The answer of a study. */
#include "study_answer.h"

struct study_size study_size_text(const struct study_entry *e)
{
    static const double usual = 0.02; /* equal-parameters keeps within 1 % */
    struct study_size s = {"", 0};

    if (fabs(e->more) <= usual)
        return s;
    s.n = snprintf(s.text, sizeof(s.text), "%.3g %% %s parameters", 100 * fabs(e->more),
                   e->more > 0 ? "more" : "fewer");
    snprintf(s.text + s.n, sizeof(s.text) - (size_t)s.n, " than %s %s",
             *e->row->control ? "its control" : "the baseline", e->against);
    return s;
}

static bool same_place(const struct study_entry *a, const struct study_entry *b)
{
    return study_same_place(a->row, b->row);
}

/* Only what tells the places of the study apart. */
static void say_place(FILE *f, const struct study_verdicts *v, const struct study_entry *e)
{
    bool one = true;

    for (int i = 0; i < v->n; i++)
        one = one && (same_place(e, &v->v[i]) || !study_is_last(v, &v->v[i]));
    if (!one)
        fprintf(f, "%s, %s: ", e->row->corpus, e->row->size);
    if (*study_budget_text(e->row).s)
        fprintf(f, "after%s tokens: ", study_budget_text(e->row).s);
}

static void say_difference(FILE *f, const struct study_entry *e)
{
    const double diff = fabs(e->quality.diff.mid);
    const struct study_size size = study_size_text(e);
    char number[32];

    snprintf(number, sizeof(number), diff < 0.001 ? "%.2g" : "%.3f", diff);
    if (e->is_task)
        fprintf(f, "%s returns %s %s than %s", e->row->contender, number,
                e->verdict == STUDY_BETTER ? "more" : "less", e->against);
    else
        fprintf(f, "%s is %s nats %s than %s", e->row->contender, number,
                study_verdict_name[e->verdict], e->against);
    fprintf(f, " (p %.2g)%s%.*s.\n", e->p, size.n ? ", with " : "", size.n, size.text);
}

/* "No difference is shown for a (-0.01 to +0.02), b (...): more is ruled out at 95 %." */
static void say_others(FILE *f, const struct study_verdicts *v, const struct study_entry *place,
                       enum study_verdict verdict, const char *what)
{
    int n = 0;

    for (int i = 0; i < v->n; i++) {
        const struct study_entry *const e = &v->v[i];
        if (!same_place(e, place) || e->verdict != verdict || !*e->against)
            continue;
        if (n == 0)
            say_place(f, v, e);
        fprintf(f, "%s%s", n++ ? ", " : what, e->row->contender);
        if (verdict == STUDY_NOT_SHOWN)
            fprintf(f, " (%+.3f to %+.3f)", e->quality.diff.low, e->quality.diff.high);
    }
    fputs(n == 0 ? "" : verdict == STUDY_NOT_SHOWN ? ": more is ruled out at 95 %.\n" : ".\n", f);
}

void study_answer(FILE *f, const struct study_verdicts *v)
{
    int crossings;

    for (int i = 0; i < v->n; i++) {
        bool known = !study_is_last(v, &v->v[i]);
        for (int k = 0; k < i && !known; k++)
            known = same_place(&v->v[i], &v->v[k]);
        if (known)
            continue;
        for (enum study_verdict way = STUDY_BETTER; way <= STUDY_WORSE; way++)
            for (int k = i; k < v->n; k++)
                if (same_place(&v->v[i], &v->v[k]) && v->v[k].verdict == way) {
                    say_place(f, v, &v->v[k]);
                    say_difference(f, &v->v[k]);
                }
        say_others(f, v, &v->v[i], STUDY_NOT_SHOWN, "No difference is shown for ");
        say_others(f, v, &v->v[i], STUDY_AT_END,
                   "The best rate is at an end of the tried ones for ");
        say_others(f, v, &v->v[i], STUDY_NOT_TESTED, "Not tested: ");
    }
    struct study_crossing *const c = study_crossings(v, &crossings);
    for (int i = 0; i < crossings; i++) {
        study_say_crossing(f, &c[i]);
        fputc('\n', f);
    }
    free(c);
}
