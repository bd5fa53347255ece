/* SPDX-License-Identifier: MIT
 *
 * From a measured cell to its rows. A number that was not measured stays empty. */
#include "result.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void case_label(const struct bench_case *c, char *buf, size_t size)
{
    char extra[320] = "", chosen[SETTINGS_TEXT];
    size_t n = 0;

    if (c->gate && c->gate != c->variant->gate)
        n += (size_t)snprintf(extra + n, sizeof(extra) - n, " gate=%s", c->gate->name);
    if (c->ffn != c->variant->ffn)
        n += (size_t)snprintf(extra + n, sizeof(extra) - n, " ffn=%s", c->ffn->name);
    if (c->kv_heads != variant_kv_heads(c->variant, c->heads))
        n += (size_t)snprintf(extra + n, sizeof(extra) - n, " kv_heads=%d", c->kv_heads);
    if (*c->mask)
        n += (size_t)snprintf(extra + n, sizeof(extra) - n, " mask=%.40s", c->mask);
    if (c->rnn_cell >= 0)
        n += (size_t)snprintf(extra + n, sizeof(extra) - n, " cell=%s", rnn_cell_name[c->rnn_cell]);
    if (c->halt >= 0)
        n += (size_t)snprintf(extra + n, sizeof(extra) - n, " halt=%s", halt_name[c->halt]);
    case_own_settings(chosen, c);
    if (*chosen)
        n += (size_t)snprintf(extra + n, sizeof(extra) - n, " %.60s", chosen);
    if (c->clip >= 0)
        n += (size_t)snprintf(extra + n, sizeof(extra) - n, " clip=%d", c->clip);
    if (c->mem_kind != MEM_NONE)
        snprintf(extra + n, sizeof(extra) - n, " %s", mem_kind_name[c->mem_kind]);
    const bool phase = case_names_phase(c);
    snprintf(buf, size, "%s %s%s%s seq=%d mem=%d%s %s", c->variant->name,
             workload_name[c->workload], phase ? " " : "", phase ? phase_name[c->phase] : "",
             c->seq, c->mem, extra, c->backend->name);
}

bool case_same_problem(const struct bench_case *a, const struct bench_case *b)
{
    return a->variant == b->variant && a->gate == b->gate && a->wiring == b->wiring &&
           a->ffn == b->ffn && a->norm_kind == b->norm_kind && a->rnn_cell == b->rnn_cell &&
           a->halt == b->halt && strcmp(a->settings, b->settings) == 0 &&
           strcmp(a->mask, b->mask) == 0 && strcmp(a->mask_heads, b->mask_heads) == 0 &&
           a->kv_heads == b->kv_heads && a->clip == b->clip && a->clamp_len == b->clamp_len &&
           a->same_length == b->same_length;
}

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

void result_finish(struct result *r)
{
    enum { FEW = 15 };
    double *work = malloc((size_t)max_int(1, r->n) * SUMMARY_WORK * sizeof(double));

    CHECK(work);
    r->sum = summarize(r->samples, r->n, r->bcase->opt->seed, work);
    free(work);
    if (r->status != ROW_OK)
        return;
    r->remarks = (r->bcase->opt->check ? 0 : REMARK_UNCHECKED) | (r->sum.noisy ? REMARK_NOISY : 0) |
                 (r->sum.samples < FEW ? REMARK_FEW : 0);
    remarks_print(r->detail, sizeof(r->detail), r->remarks);
}

void result_free(struct result *r)
{
    free(r->samples);
    r->samples = NULL;
}

/* ---- rows --------------------------------------------------------------------------------- */

#define PUT(row, column, text) text_put((row)->column, sizeof((row)->column), (text))

void result_model(struct key_row *row, const struct bench_case *c)
{
    struct case_words w;

    case_describe(&w, c);
    row->kv_heads = c->kv_heads;
    PUT(row, ffn, w.ffn);
    PUT(row, norm_kind, w.norm_kind);
    PUT(row, mask, w.mask);
    PUT(row, mask_heads, w.mask_heads);
    PUT(row, rnn_cell, w.rnn_cell);
    PUT(row, halt, w.halt);
    PUT(row, settings, w.settings);
}

static void put_choices(struct key_row *row, const struct bench_case *c)
{
    result_model(row, c);
    PUT(row, gate, c->gate ? c->gate->name : "");
    PUT(row, norm, wiring_name[c->wiring]);
    if (c->clip >= 0)
        row->clip = c->clip;
    if (c->clamp_len >= 0)
        row->clamp_len = c->clamp_len;
    if (c->same_length >= 0)
        row->same_length = c->same_length;
}

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
    PUT(row, variant, c->variant->name);
    PUT(row, backend, c->backend->name);
    PUT(row, impl, p->impl);
    PUT(row, gemm_from, p->gemm_from);
    PUT(row, rows_from, p->rows_from);
    PUT(row, isa_used, p->isa_used);
    PUT(row, dtype, "f32");
    PUT(row, workload, workload_name[c->workload]);
    PUT(row, phase, phase_name[c->phase]);
    PUT(row, mem_kind, mem_kind_name[c->mem_kind]);
    row->seq_tokens = c->seq;
    row->mem_tokens = c->mem;
    row->batch_size = c->batch;
    row->layers = c->layers;
    row->d_model = c->d_model;
    row->heads = c->heads;
    row->d_head = c->d_head;
    row->d_inner = c->d_inner;
    put_choices(row, c);
    row->threads = c->threads;
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
    for (int i = 0; i < ISA_COUNT; i++)
        if (strcmp(isa_name[i], name) == 0)
            return (enum isa)i;
    return ISA_BASE;
}

static void put_roofline(struct latency_row *row, const struct result *r, const struct roofline *y)
{
    if (!y->peaks)
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
        row->max_abs_err = p->max_abs_err;
        row->max_rel_err = p->max_rel_err;
        if (r->bcase->opt->check)
            row->err_limit = job_bound(r->bcase).rel;
    }
    if (r->n == 0)
        return;
    put_times(row, &r->sum);
    row->inner_calls = r->outcome.inner_calls;
    PUT(row, stop_reason, stop_name[r->outcome.stop]);
    row->tokens_per_s = p->tokens / r->sum.median * 1e9;
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
    if (!(p->rss_peak_bytes > 0) || !(p->rss_before_bytes > 0))
        return;
    row->rss_before_bytes = (int64_t)p->rss_before_bytes;
    row->rss_peak_bytes = (int64_t)p->rss_peak_bytes;
    row->rss_delta_bytes = row->rss_peak_bytes - row->rss_before_bytes;
    PUT(row, rss_method, "vmhwm");
}
