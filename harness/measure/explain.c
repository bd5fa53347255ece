/* SPDX-License-Identifier: MIT
 *
 * A row in words, from its columns and samples. */
#include "explain.h"

#include "harness/table/keys.h"
#include "harness/table/remarks.h"
#include "harness/util/units.h"
#include "launches.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What its samples say again. Without samples n is 0. */
struct digest {
    int n;
    struct interval blocks; /* of the median, without regard to launches */
    struct launches launches;
};

static struct digest digest_of(const struct run *run, const struct latency_row *row)
{
    const struct series s = run_series(run, row->case_id);
    struct sample *const sample = calloc((size_t)s.n + 1, sizeof(*sample));
    double *const work = calloc((size_t)s.n + 1, sizeof(*work));
    struct digest d = {.n = s.n};

    NEED(sample && work);
    for (int i = 0; i < s.n; i++) {
        const struct sample_row *const x = s.ref[i].row;
        sample[i] = (struct sample){.wall_ns = x->wall_ns,
                                    .calls = (uint32_t)x->calls,
                                    .launch = x->launch == I64_EMPTY ? 0 : (uint32_t)x->launch,
                                    .disturbed = x->disturbed > 0};
    }
    const int used = stats_usable(sample, s.n, work, NULL);
    stats_sort(work, used);
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
        fprintf(
            f,
            "             by Student's t over launches, %d degree%s of freedom; blocks alone: [%s "
            "%s]\n",
            d->launches.n - 1, plural(d->launches.n - 1), units_ns(d->blocks.low).s,
            units_ns(d->blocks.high).s);
    else if (d->n > 0)
        fprintf(f, "             by order statistics of the blocks\n");
}

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
    print_doubts(f, doubts_of(&d, row));
}
