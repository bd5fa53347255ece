/* SPDX-License-Identifier: MIT
 *
 * A row in words, from its columns and samples. */
#include "explain.h"

#include "harness/table/keys.h"
#include "harness/worker/job.h"
#include "launches.h"
#include "pairing.h"

/* What its samples say again. Without samples n is 0. */
struct digest {
    int n;
    struct interval blocks; /* of the median, without regard to launches */
    struct launches launches;
};

static struct digest digest_of(const struct run *run, const struct latency_row *row)
{
    const struct series s = run_series(run, row->case_id);
    struct sample *const sample = need_room((size_t)s.n + 1, sizeof(*sample));
    double *const work = need_room((size_t)s.n + 1, sizeof(*work));
    struct digest d = {.n = s.n};

    for (int i = 0; i < s.n; i++) {
        const struct sample_row *const x = s.ref[i].row;
        sample[i] = (struct sample){.wall_ns = x->wall_ns,
                                    .calls = (uint32_t)x->calls,
                                    .launch = x->launch == I64_EMPTY ? 0 : (uint32_t)x->launch,
                                    .disturbed = x->disturbed > 0};
    }
    const int used = stats_usable(sample, s.n, work, NULL);
    sort_numbers(work, used);
    d.blocks = stats_median_interval(work, used);
    d.launches = launches_of_samples(sample, s.n, false, work);
    free(sample);
    free(work);
    return d;
}

static double half_pct(double low, double high, double mid) { return 50 * (high - low) / mid; }

/* Is the interval that of the launches? Blocks alone would have a narrower one. */
static bool launches_decide(const struct digest *d, const struct latency_row *row)
{
    return d->launches.n > 1 &&
           row->ci95_high_ns - row->ci95_low_ns > 1.01 * (d->blocks.high - d->blocks.low);
}

static unsigned doubts_of(const struct digest *d, const struct latency_row *row)
{
    const unsigned remarks = remarks_of_row(row->status, row->status_detail);
    const double half = half_pct(row->ci95_low_ns, row->ci95_high_ns, row->median_ns);

    return (remarks & REMARK_NOISY ? DOUBT_PREEMPTED : 0) | (remarks & REMARK_FEW ? DOUBT_FEW : 0) |
           (strcmp(row->stop_reason, "time") == 0 && !(remarks & REMARK_FEW) ? DOUBT_WIDE : 0) |
           (launches_decide(d, row) ? DOUBT_LAUNCHES : 0) |
           (row->launches == 1 || row->launches == I64_EMPTY ? DOUBT_ONE : 0) |
           (fabs(row->drift_pct) > half ? DOUBT_DRIFT : 0) |
           (remarks & REMARK_CLOCK ? DOUBT_CLOCK : 0);
}

unsigned row_doubts(const struct run *run, const struct latency_row *row)
{
    const struct digest d = digest_of(run, row);

    return doubts_of(&d, row);
}

/* ---- lines -------------------------------------------------------------------------------- */

static void print_check(FILE *f, const struct latency_row *row)
{
    if (isnan(row->max_rel_err))
        fprintf(f, "  check      not compared with the reference\n");
    else
        fprintf(f,
                "  check      of the first launch: largest relative error %.2g of at most %.2g\n",
                row->max_rel_err, row->err_limit);
}

static void print_blocks(FILE *f, const struct latency_row *row)
{
    const bool kept = remarks_of_row(row->status, row->status_detail) & REMARK_NOISY;

    fprintf(f, "  blocks     %lld of %lld call%s each; ended by %s", (long long)row->samples,
            (long long)row->inner_calls, plural((long)row->inner_calls), row->stop_reason);
    if (row->samples_disturbed > 0)
        fprintf(f, "; %lld preempted, %s", (long long)row->samples_disturbed,
                kept ? "kept, because too few others remain" : "left out");
    fprintf(f, "\n  median     %s per call; fastest block %s, slowest %s\n",
            units_ns(row->median_ns).s, units_ns(row->min_ns).s, units_ns(row->max_ns).s);
}

static void print_launches(FILE *f, const struct digest *d, const struct latency_row *row)
{
    if (d->n == 0) {
        fprintf(f, "  launches   no samples were kept (--raw none)\n");
        return;
    }
    fprintf(f, "  launches   %d:", d->launches.n);
    for (int i = 0; i < d->launches.n; i++)
        fprintf(f, "%s %s", i ? "," : "", units_ns(exp(d->launches.x[i])).s);
    if (d->launches.n > 1)
        fprintf(f, "; standard deviation %s", units_pct(row->between_launch_pct).s);
    fprintf(f, "\n");
}

static void print_interval(FILE *f, const struct digest *d, const struct latency_row *row)
{
    if (isnan(row->ci95_low_ns)) {
        fprintf(f, "  interval   none\n");
        return;
    }
    fprintf(f, "  interval   [%s %s], half of it %s of the median\n", units_ns(row->ci95_low_ns).s,
            units_ns(row->ci95_high_ns).s,
            units_pct(half_pct(row->ci95_low_ns, row->ci95_high_ns, row->median_ns)).s);
    if (launches_decide(d, row))
        fprintf(f,
                "             by launches, those of the run's cases or its own with Student's t; "
                "blocks alone: [%s %s]\n",
                units_ns(d->blocks.low).s, units_ns(d->blocks.high).s);
    else if (d->n > 0)
        fprintf(f, "             by order statistics of the blocks\n");
}

/* ---- why it takes so long ----------------------------------------------------------------- */

static void print_rate(FILE *f, double rate, const char *unit, double pct, const char *of)
{
    fprintf(f, "%s %s/s", units_rate(rate).s, unit);
    if (isfinite(pct))
        fprintf(f, ", %s of the %s", units_pct(pct).s, of);
}

/* Time at each roof: what the row would take if it ran at the peak, and could do nothing else. */
static void print_roofs(FILE *f, const struct latency_row *row)
{
    enum { NEAR = 50 }; /* % of a roof that explains a time */
    const bool compute = strcmp(row->bound, "compute") == 0;
    const double pct = compute ? row->peak_flops_pct : row->peak_bw_pct;

    if (!(pct > 0)) {
        fprintf(f, "  roof       unknown: the run has no undisturbed peaks  -> measure where "
                   "nothing else runs\n");
        return;
    }
    fprintf(f, "  roof       %s is nearer: at that rate %s per call, %s as fast\n", row->bound,
            units_ns(row->median_ns * pct / 100).s, units_ratio(100 / pct).s);
    if (pct >= NEAR)
        fprintf(f, "             near it  -> %s\n",
                compute ? "only fewer FLOP, or narrower types, make it much faster"
                        : "only fewer bytes, or narrower types, make it much faster");
    else
        fprintf(f, "             far from both: neither FLOP nor bytes explain the time  -> "
                   "profile it, docs/measuring.md\n");
}

/* NAN where they are not to be known here. FLOP do not depend on the backend, and ref opens no
 * library. */
static struct flop_shares flop_shares_of(const struct latency_row *row)
{
    struct flop_shares shares = {NAN, NAN};
    struct options opt = {0};
    struct plan plan = {0};
    struct job j;

    if (options_parse_line(&opt, row->repro, NULL) == OK && plan_make(&plan, &opt, NULL) == OK &&
        plan.n == 1) {
        opt.impl = NULL;
        plan.cases->backend = &backend_ref;
        if (job_open(&j, plan.cases, NULL) == OK && job_map(&j, NULL) == OK)
            shares = job_shares(&j);
        job_close(&j);
    }
    plan_free(&plan);
    options_free(&opt);
    return shares;
}

static void print_work(FILE *f, const struct latency_row *row)
{
    if (!(row->flop_count > 0) || !(row->bytes_moved_min > 0))
        return;
    const struct flop_shares of = flop_shares_of(row);

    fprintf(f, "  work       %s MFLOP and at least %s per call: %s FLOP per byte\n",
            units_rate(row->flop_count * 1e-6).s, units_bytes(row->bytes_moved_min).s,
            units_rate(row->flop_count / row->bytes_moved_min).s);
    if (isfinite(of.mixing)) {
        fprintf(f, "             of its layers' FLOP, counted, not timed: ");
        if (of.pairs > 0)
            fprintf(f, "pairs of queries and keys %s, their maps %s", units_pct(100 * of.pairs).s,
                    units_pct(100 * (of.mixing - of.pairs)).s);
        else
            fprintf(f, "what is in place of attention %s", units_pct(100 * of.mixing).s);
        fprintf(f, ", the rest %s\n", units_pct(100 * (1 - of.mixing)).s);
    }
    fprintf(f, "  rate       ");
    print_rate(f, row->gflop_per_s, "GFLOP", row->peak_flops_pct, "measured peak");
    fprintf(f, "; ");
    print_rate(f, row->gbyte_per_s, "GB", row->peak_bw_pct, "read bandwidth");
    fprintf(f, "\n");
    print_roofs(f, row);
}

/* The fastest backend of the same case in the run, if it is another one; by CPU time, as in rankings,
 * where the row's blocks were preempted. */
static void print_best(FILE *f, const struct run *run, const struct latency_row *row)
{
    static const char *const but[] = {"backend", NULL};
    const struct latency_row *const all = run->latency.row, *best = row;
    const bool cpu = row->samples_disturbed > 0 && row->cpu_time_median_ns > 0;

    for (size_t i = 0; i < run->latency.n; i++)
        if (row_ns(&all[i], cpu) < row_ns(best, cpu) &&
            strcmp(all[i].status, row_status_name[ROW_OK]) == 0 &&
            rows_alike(&tables[TABLE_LATENCY], row, &all[i], but))
            best = &all[i];
    if (best == row)
        return;
    fprintf(f, "  best       %s, %s%s: %s as fast; ran %s, products of %s, rows of %s",
            best->backend, units_ns(row_ns(best, cpu)).s, cpu ? " of CPU time" : "",
            units_ratio(row_ns(row, cpu) / row_ns(best, cpu)).s, best->impl, best->gemm_from,
            best->rows_from);
    if (isfinite(best->peak_flops_pct))
        fprintf(f, ", %s of the peak", units_pct(best->peak_flops_pct).s);
    fprintf(f, "\n             bench explain %s %s\n", best->case_id, run->dir);
}

/* ---- doubts ------------------------------------------------------------------------------- */

static void print_doubts(FILE *f, unsigned doubts)
{
    static const struct {
        enum doubt doubt;
        const char *word, *means;
    } reason[] = {
        {DOUBT_PREEMPTED, "preempted", "most blocks were preempted  -> stop other jobs"},
        {DOUBT_FEW, "few", "fewer than six blocks have no interval  -> raise --max-time"},
        {DOUBT_WIDE, "wide", "time was up before --target-ci  -> raise --max-time"},
        {DOUBT_LAUNCHES, "launches", "launches differ more than blocks do  -> raise --launches"},
        {DOUBT_ONE, "launches", "one launch: others may lie outside  -> give --launches 3"},
        {DOUBT_DRIFT, "drift", "the level moved by more than the interval  -> repeat it"},
        {DOUBT_CLOCK, "clock", "the clock rate fell  -> give --cool-down 10"},
    };

    for (size_t i = 0; i < ARRAY_LEN(reason); i++)
        if (doubts & reason[i].doubt)
            fprintf(f, "  reason     %s: %s\n", reason[i].word, reason[i].means);
}

void explain_row(FILE *f, const struct run *run, const struct latency_row *row)
{
    const struct digest d = digest_of(run, row);
    char label[LINE_SIZE];

    row_label(row, NULL, label, sizeof(label));
    fprintf(f, "%s\n  case       %s in %s\n  repeat     bench rerun %s %s\n", label, row->case_id,
            run->dir, row->case_id, run->dir);
    if (!(row->median_ns > 0)) {
        fprintf(f, "  no time    %s%s%s\n", row->status, row->status_detail[0] ? ": " : "",
                row->status_detail);
        return;
    }
    if (strcmp(row->status, row_status_name[ROW_OK]) != 0)
        fprintf(f, "  %-10s %s\n", row->status, row->status_detail);
    fprintf(f, "  ran        %s, products of %s, rows of %s, CPUs %s\n", row->impl, row->gemm_from,
            row->rows_from, row->cpus);
    print_check(f, row);
    print_blocks(f, row);
    print_launches(f, &d, row);
    print_interval(f, &d, row);
    if (isfinite(row->drift_pct))
        fprintf(f, "  moved      %+.1f %% from the first blocks to the last\n", row->drift_pct);
    if (isfinite(row->clock_ratio))
        fprintf(f, "  clock      %.2f of the group's highest rate\n", row->clock_ratio);
    print_work(f, row);
    print_best(f, run, row);
    print_doubts(f, doubts_of(&d, row));
}
