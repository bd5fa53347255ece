/* SPDX-License-Identifier: MIT
 *
 * From a measured case to its rows. A number that was not measured stays empty. */
#include "result.h"

#include "harness/table/case_row.h"

enum row_status row_status_of(enum status st)
{
    switch (st) {
    case OK:
        return ROW_OK;
    case E_UNSUPPORTED:
    case E_NOMEM:
        return ROW_SKIPPED;
    case E_WRONG:
        return ROW_WRONG;
    case E_TIMEOUT:
        return ROW_TIMEOUT;
    case E_INTERRUPTED:
        return ROW_INTERRUPTED;
    case E_USAGE:
    case E_IO:
    case E_CHILD:
        break;
    }
    return ROW_FAILED;
}

/* The median, and its interval, over blocks of the field at that offset; NAN where blocks have none. */
static struct interval over_blocks(const struct result *r, size_t offset, bool of_a_call,
                                   double *work)
{
    for (int i = 0; i < r->n; i++) {
        const struct sample *const s = &r->samples[i];
        const double x = *(const double *)(const void *)((const char *)s + offset);
        work[i] = x > 0 ? x / (of_a_call ? s->calls : 1) : NAN;
    }
    sort_numbers(work, r->n);
    return stats_median_interval(work, r->n);
}

void result_finish(struct result *r)
{
    static const double STEADY = 0.98;
    double *work = need_room((size_t)max_int(1, r->n) * SUMMARY_WORK, sizeof(double));

    r->sum = summarize(r->samples, r->n, work);
    r->clock_ratio = r->spin_ns / over_blocks(r, offsetof(struct sample, spin_ns), false, work).mid;
    r->energy = over_blocks(r, offsetof(struct sample, energy_j), true, work);
    r->first_ns = over_blocks(r, offsetof(struct sample, first_ns), false, work).mid;
    r->token_ns = over_blocks(r, offsetof(struct sample, token_ns), false, work).mid;
    r->token_p99_ns = over_blocks(r, offsetof(struct sample, token_p99_ns), false, work).mid;
    free(work);
    if (r->status != ROW_OK)
        return;
    r->remarks =
        (r->bcase->opt->check ? 0 : REMARK_UNCHECKED) | (r->sum.noisy ? REMARK_NOISY : 0) |
        (r->sum.used < INTERVAL_SAMPLES ? REMARK_FEW : 0) |
        (r->report.checked_rows < r->report.output_rows ? REMARK_SAMPLED : 0) |
        (r->throttled > 0 ? REMARK_THROTTLED : 0) | (case_beyond(r->bcase) ? REMARK_BEYOND : 0) |
        (r->report.mixed_kinds > 0 ? REMARK_MIXED : 0) |
        (r->clock_ratio < STEADY ? REMARK_CLOCK : 0) | (case_has_own(r->bcase) ? REMARK_OWN : 0) |
        (case_lacks_positions(r->bcase) ? REMARK_EMBEDDED : 0);
    remarks_print(r->detail, sizeof(r->detail), r->remarks);
}

void result_widen(struct result *r, const struct launch_noise *noise)
{
    const double half = launch_noise_half(noise, r->sum.launches);

    if (!isfinite(r->sum.ci_low))
        return;
    r->sum.ci_low = fmin(r->sum.ci_low, r->sum.median * exp(-half));
    r->sum.ci_high = fmax(r->sum.ci_high, r->sum.median * exp(half));
}

double result_noise_pct(const struct result *r) { return r->sum.noise_pct; }

bool result_is_noisy(const struct result *r)
{
    enum { FAR = 5 };

    return r->status == ROW_OK &&
           (r->sum.noisy || result_noise_pct(r) > FAR * r->bcase->opt->target_ci_pct);
}

void result_free(struct result *r)
{
    free(r->samples);
    r->samples = NULL;
}

/* ---- rows --------------------------------------------------------------------------------- */

#define PUT(row, column, text) text_put((row)->column, sizeof((row)->column), (text))

void result_key(struct key_row *row, const struct result *r, const char *run_id,
                const char *host_id)
{
    const struct bench_case *c = r->bcase;
    const struct report *p = &r->report;

    *row = key_row_empty();
    PUT(row, run_id, run_id);
    PUT(row, host_id, host_id);
    PUT(row, case_id, c->case_id);
    PUT(row, started_at_utc, r->started_at_utc);
    PUT(row, status, row_status_name[r->status]);
    PUT(row, status_detail, r->detail);
    key_row_choose(row, c);
    PUT(row, impl, p->impl);
    PUT(row, gemm_from, p->gemm_from);
    PUT(row, rows_from, p->rows_from);
    PUT(row, isa_used, p->isa_used);
    if (p->threads_seen > 0)
        row->threads_seen = (int64_t)p->threads_seen;
    PUT(row, pin, c->opt->pin);
    PUT(row, cpus, p->cpus);
    PUT(row, membind, c->opt->membind);
    PUT(row, cache_mode, cache_name[c->opt->cache]);
    row->seed = (int64_t)c->opt->seed;
    PUT(row, repro, c->repro);
}

/* Read bandwidth of the level that `bytes` fit into; private levels once per thread. */
static double bandwidth_for(const struct roofline *y, double bytes)
{
    const struct peaks *p = y->peaks;
    const double n = p->threads;

    if (p->l1 > 0 && bytes <= n * (double)y->caches->l1d_bytes)
        return p->l1;
    if (p->l2 > 0 && bytes <= n * (double)y->caches->l2_bytes)
        return p->l2;
    if (p->l3 > 0 && bytes <= (double)y->caches->l3_bytes * y->caches->l3_count)
        return p->l3;
    return p->dram;
}

static enum isa isa_of(const char *name)
{
    const int i = word_index(name, isa_name);

    return i < 0 ? ISA_BASE : (enum isa)i;
}

void result_judge(struct result *r, const struct roofline *y)
{
    enum { PACK = 32 }; /* numbers of the narrow types that share a scale */
    /* Other programs that preempt the samples slow the measurement of peaks as well. */
    const double certain = r->sum.disturbed > 0 ? 2 : 1.02;

    if (r->status != ROW_OK || !y->peaks || y->peaks->busy > 0)
        return;
    const enum elem elem = (enum elem)r->bcase->config.dtype;
    const double flops = y->peaks->flops[isa_of(r->report.isa_used)];
    /* What is read takes part in a multiply-add: masks, experts and clusters leave out the rest. */
    const double read = r->report.flop / 2 * (double)elem_row_bytes(elem, PACK) / PACK;
    const char *level;
    const double read_s = peaks_read_s(y->peaks, y->caches, fmin(r->report.bytes, read), &level);
    const double compute_s = elem == ELEM_F32 && flops > 0 ? r->report.flop / flops : 0;
    const double share = fmax(read_s, compute_s) * 1e9 / r->sum.median;
    if (!(share > certain))
        return;
    r->status = ROW_SUSPECT;
    snprintf(r->detail, sizeof(r->detail),
             "%.0f %% of the measured %s: no kernel is faster  -> see whether it does all of the "
             "work, and whether the peak is right: bench topo --roofline",
             100 * share, compute_s > read_s ? "peak" : "read bandwidth");
}

static void put_roofline(struct latency_row *row, const struct result *r, const struct roofline *y)
{
    if (!y->peaks || y->peaks->busy > 0)
        return;
    const double flops = y->peaks->flops[isa_of(r->report.isa_used)]; /* flop/s */
    const double bytes = bandwidth_for(y, r->report.bytes);           /* bytes/s */
    if (flops > 0)
        row->peak_flops_pct = 100 * row->gflop_per_s * 1e9 / flops;
    if (bytes > 0)
        row->peak_bw_pct = 100 * row->gbyte_per_s * 1e9 / bytes;
    if (flops > 0 && bytes > 0)
        PUT(row, bound, r->report.flop / flops > r->report.bytes / bytes ? "compute" : "memory");
}

static void put_times(struct latency_row *row, const struct summary *s)
{
    row->samples = s->samples;
    row->samples_disturbed = s->disturbed;
    row->min_ns = s->min;
    row->median_ns = s->median;
    row->p90_ns = s->p90;
    row->p99_ns = s->p99;
    row->max_ns = s->max;
    row->mean_ns = s->mean;
    row->stddev_ns = s->stddev;
    row->mad_ns = s->mad;
    row->ci95_low_ns = s->ci_low;
    row->ci95_high_ns = s->ci_high;
    row->cpu_time_median_ns = s->cpu_median;
    row->involuntary_switches = s->switches;
    row->drift_pct = s->drift_pct;
    row->launches = s->launches;
    row->between_launch_pct = s->between_pct;
}

void result_latency(struct latency_row *row, const struct result *r, const struct key_row *key,
                    const struct roofline *y)
{
    const struct report *p = &r->report;

    *row = latency_row_empty();
    row_set_key(&tables[TABLE_LATENCY], row, key);
    if (p->bind_ns > 0) {
        row->bind_ns = p->bind_ns;
        row->flop_count = p->flop;
        row->bytes_moved_min = p->bytes;
        row->layers_run = p->layers_run;
        row->layers_run_p90 = p->layers_p90;
        if (p->moved_bytes > 0)
            row->gather_bytes = p->moved_bytes;
        row->max_abs_err = p->max_abs_err;
        row->max_rel_err = p->max_rel_err;
        row->nmse = p->nmse;
        if (r->bcase->opt->check) {
            const struct bound bound = job_bound(r->bcase);
            row->err_limit = bound.rel;
            row->nmse_limit = bound.nmse;
            row->check_rows = (int64_t)p->checked_rows;
        }
    }
    if (r->n == 0)
        return;
    put_times(row, &r->sum);
    row->inner_calls = r->outcome.inner_calls;
    row->clock_ratio = r->clock_ratio;
    row->energy_j = r->energy.mid;
    row->energy_ci95_low_j = r->energy.low;
    row->energy_ci95_high_j = r->energy.high;
    row->first_token_ns = r->first_ns;
    row->token_ns = r->token_ns;
    row->token_p99_ns = r->token_p99_ns;
    if (r->limited)
        row->throttled_periods = r->throttled;
    PUT(row, stop_reason, stop_name[r->outcome.stop]);
    row->tokens_per_s = p->tokens / r->sum.median * 1e9;
    if (p->moved_bytes > 0)
        row->gather_pct = 100 * p->gather_ns / r->sum.median;
    row->gflop_per_s = p->flop / r->sum.median;
    row->gbyte_per_s = p->bytes / r->sum.median;
    row->ref_median_ns = y->ref_median_ns;
    row->ratio_to_ref = y->ref_median_ns / r->sum.median;
    put_roofline(row, r, y);
}

void result_memory(struct memory_row *row, const struct result *r, const struct key_row *key)
{
    const struct report *p = &r->report;

    *row = memory_row_empty();
    row_set_key(&tables[TABLE_MEMORY], row, key);
    if (p->arena_bytes > 0)
        row->arena_peak_bytes = (int64_t)p->arena_bytes;
    if (!(p->bind_ns > 0))
        return;
#define X(id, name) row->name##_bytes = (int64_t)p->part_bytes[PART_##id];
    ARENA_PARTS(X)
#undef X
    row->model_predicted_bytes = (int64_t)p->predicted_bytes;
    row->cache_bytes = (int64_t)p->cache_bytes;
    if (!(p->rss_peak_bytes > 0) || !(p->rss_before_bytes > 0))
        return;
    row->rss_before_bytes = (int64_t)p->rss_before_bytes;
    row->rss_peak_bytes = (int64_t)p->rss_peak_bytes;
    row->rss_delta_bytes = row->rss_peak_bytes - row->rss_before_bytes;
    PUT(row, rss_method, "vmhwm");
}
