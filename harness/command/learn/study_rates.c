/* SPDX-License-Identifier: MIT
 *
 * Choosing rates. */
#include "study_rates.h"

const struct study_row *study_row_of(const struct rows *rows, const struct study_job *j)
{
    const struct study_row *const r = rows->row;

    for (size_t i = rows->n; i-- > 0;)
        if (strcmp(r[i].case_id, j->id) == 0)
            return &r[i];
    return NULL;
}

bool study_is_done(const struct rows *rows, const struct study_job *j)
{
    const struct study_row *const r = study_row_of(rows, j);

    return r && row_is_final(&tables[TABLE_STUDY], r);
}

const struct study_job *study_group(const struct study_plan *p, const struct study_model *m, int *n)
{
    int first = 0;

    while (first < p->n && p->jobs[first].model != m)
        first++;
    for (*n = 0; first + *n < p->n && p->jobs[first + *n].model == m;)
        ++*n;
    return p->jobs + first;
}

/* What is made small: a loss, or what a return lacks. NAN: there is none. */
static double valid_loss(const struct study_row *r)
{
    return isfinite(r->valid_return) ? -r->valid_return : r->valid_nats;
}

/* The mean over the seeds that a rate was tried with; INFINITY: it did not work with each, NAN: it was
 * not tried. */
static double mean_loss(const struct rows *rows, const struct study_job *job, int n, double lr,
                        struct study_rate *to)
{
    double sum = 0;
    int seeds = 0;

    for (int k = 0; k < n; k++) {
        const struct study_row *const r =
            job[k].role == STUDY_TUNE && job[k].lr == lr ? study_row_of(rows, &job[k]) : NULL;
        if (!r)
            continue;
        const bool ok = strcmp(r->status, row_status_name[ROW_OK]) == 0 && isfinite(valid_loss(r));
        to->open = to->open || !row_is_final(&tables[TABLE_STUDY], r);
        if (!ok)
            to->why = r->status_detail;
        sum += ok ? valid_loss(r) : INFINITY;
        seeds++;
    }
    return sum / seeds;
}

struct study_rate study_rate_of(const struct rows *rows, const struct study_job *job, int n)
{
    struct study_rate rate = {NAN, "no learning rate was tried", false, NAN};
    double least = INFINITY, lowest = INFINITY;

    for (int i = 0; i < n; i++) {
        const double loss = mean_loss(rows, job, n, job[i].lr, &rate);
        if (loss < least) {
            least = loss;
            rate.best = job[i].lr;
        }
        lowest = isnan(loss) ? lowest : fmin(lowest, job[i].lr);
    }
    const double around[] = {isnan(rate.best) ? lowest / 2 : rate.best / 2, rate.best * 2};
    for (int k = 0; k < 2 && isnan(rate.next); k++)
        for (int i = 0; i < n; i++)
            if (job[i].role == STUDY_TUNE && job[i].lr == around[k] && !study_row_of(rows, &job[i]))
                rate.next = around[k];
    if (isinf(lowest) && n > 0) /* none was tried */
        rate.next = job[0].lr;
    return rate;
}
