/* SPDX-License-Identifier: MIT
 *
 * Rates of the ref backend by timing it, and costs by FLOP. */
#include "reference_cost.h"

#include "harness/machine/clock.h"
#include "workload.h"

/* ---- rates -------------------------------------------------------------------------------- */

typedef void run_fn(struct job *j);

/* Seconds of a run, on average over some time: a busy machine will be as busy later. */
static double seconds_of(struct job *j, run_fn *run)
{
    const int64_t start = clock_wall_ns(), enough = 30000000;
    int64_t spent;
    int n = 0;

    do {
        run(j);
        n++;
        spent = clock_wall_ns() - start;
    } while (spent < enough);
    return (double)spent * 1e-9 / n;
}

static void run_feed_forward(struct job *j)
{
    struct layer_job *t = &j->layer;

    sublayers_part_forward(&t->sublayers, &j->engine, 1, 1, t->z, t->x, j->shape.B, j->shape.L);
}

/* The one job of a line of options, in this process. */
static enum status open_line(struct job *j, struct plan *p, struct options *o, const char *line,
                             int threads, struct err *e)
{
    *j = (struct job){0};
    TRY(options_parse_line(o, line, e));
    o->default_threads = threads;
    TRY(plan_make(p, o, e));
    TRY(job_open(j, p->cases, e));
    return job_place(j, NULL, NULL, e);
}

static enum status measure(struct reference_rates *r, int threads, const char *line, struct err *e)
{
    struct options o = {0};
    struct plan p = {0};
    struct job j;
    const enum status st = open_line(&j, &p, &o, line, threads, e);

    if (st == OK && p.cases->workload == WORK_LAYER) {
        const double flop = sublayer_flop(&j.layer.sublayers.at[1], j.shape.B, j.shape.L, 0);
        r->products = flop / seconds_of(&j, run_feed_forward);
    } else if (st == OK) {
        const double forward = seconds_of(&j, job_run_forward), both = seconds_of(&j, job_run);
        r->attention = j.ops->flop(&j) / forward;
        r->backward = j.ops->flop_grad(&j) / fmax(both - forward, both / 10);
    }
    job_close(&j);
    plan_free(&p);
    options_free(&o);
    return st;
}

enum status reference_rates_measure(struct reference_rates *out, int threads, struct err *e)
{
    static const char *const lines[] = {
        "--variant xl --backend ref --workload attn --phase fwd_bwd --seq 32 --mem 224 --heads 8 "
        "--d-model 512",
        "--variant vanilla --backend ref --workload layer --seq 16 --mem 0",
    };
    const int64_t start = clock_wall_ns();
    enum status st = OK;

    *out = (struct reference_rates){0};
    for (size_t i = 0; i < ARRAY_LEN(lines) && st == OK; i++)
        st = measure(out, threads, lines[i], e);
    out->spent_s = (double)(clock_wall_ns() - start) * 1e-9;
    return st;
}

const struct reference_rates reference_rates_least = {
    .products = 1e8, .attention = 1e8, .backward = 1e8};

/* ---- costs -------------------------------------------------------------------------------- */

static double flop_of_rows(const struct job *j)
{
    return j->ops->flop_of_rows ? j->ops->flop_of_rows(j) : 0;
}

/* Seconds of a forward pass without attention. Where a model does not tell attention apart, half of
 * its FLOP count as such. */
static double products_s(const struct job *j, const struct reference_rates *r)
{
    const double flop = j->ops->flop(j), rows = flop_of_rows(j);

    return (rows > 0 ? flop - rows : flop / 2) / r->products;
}

static double attention_s(const struct job *j, const struct reference_rates *r)
{
    const double flop = j->ops->flop(j), rows = flop_of_rows(j);

    return (rows > 0 ? rows : flop / 2) / r->attention;
}

double reference_forward_s(const struct job *j, const struct reference_rates *r)
{
    return products_s(j, r) + attention_s(j, r);
}

double reference_backward_s(const struct job *j, const struct reference_rates *r)
{
    const double rows = flop_of_rows(j), share = rows > 0 ? rows / j->ops->flop(j) : 0.5;

    if (j->bcase->phase != PHASE_FWD_BWD)
        return 0;
    return j->ops->flop_grad(j) * (share / r->backward + (1 - share) / r->products);
}

enum { LEAST_ROWS = 64 };

bool reference_may_sample(const struct job *j, double limit_s)
{
    return limit_s > 0 && j->out_shape[1] > LEAST_ROWS && flop_of_rows(j) > 0 &&
           j->bcase->phase != PHASE_FWD_BWD;
}

int reference_rows(const struct job *j, const struct reference_rates *r, double limit_s,
                   double *cost_s)
{
    const int L = j->out_shape[1];
    const double whole_s = reference_forward_s(j, r);

    *cost_s = whole_s;
    if (!reference_may_sample(j, limit_s) || whole_s <= limit_s)
        return L;
    const double share = (limit_s - products_s(j, r)) / attention_s(j, r);
    const int rows = min_int(L, max_int(LEAST_ROWS, (int)fmin(share * L, L)));
    *cost_s = products_s(j, r) + attention_s(j, r) * rows / L;
    return rows;
}
