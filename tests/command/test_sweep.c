/* SPDX-License-Identifier: MIT
 *
 * Small real sweeps over every variant, backend and workload. The properties of the tables hold for
 * each row; no test depends on speed. */
#include "harness/plan/plan.h"
#include "harness/table/remarks.h"
#include "tests/support/kernel/simd.h"
#include "tests/support/sample_rows.h"
#include "tests/support/sanitized.h"
#include "tests/support/tmp_folder.h"
#include "tests/support/words.h"
#include "tests/table/must_rows.h"
#include "variants/model/config/control.h"

#include <criterion/parameterized.h>
#include <signal.h>

TestSuite(sweep, .init = folder_make, .fini = folder_remove, .timeout = SANITIZED ? 300 : 120);

static struct rows latency_of(const char *run) { return must_read(run, TABLE_LATENCY); }

/* ---- everything once ---------------------------------------------------------------------- */

static void expect_latency(const struct latency_row *r)
{
    const int64_t clean = r->samples - r->samples_disturbed;
    const bool noisy = clean < r->samples && (clean < INTERVAL_SAMPLES || 2 * clean < r->samples);
    const unsigned allowed = (noisy ? REMARK_NOISY : 0) |
                             (r->samples < INTERVAL_SAMPLES ? REMARK_FEW : 0) |
                             (r->clock_ratio < 0.98 ? REMARK_CLOCK : 0) | REMARK_EMBEDDED;
    const bool adds = /* to the embedding */
        is_word_of("learned freq floater complex", r->variant);
    const bool part = is_word_of("attn layer", r->workload);

    cr_expect_str_eq(r->status, "ok", "%s: %s", r->repro, r->status_detail);
    cr_expect_eq(remarks_of_row(r->status, r->status_detail) & ~allowed, 0, "%s: %s", r->repro,
                 r->status_detail);
    cr_expect_eq((remarks_of_row(r->status, r->status_detail) & REMARK_EMBEDDED) != 0, adds && part,
                 "%s: %s", r->repro, r->status_detail);
    cr_expect(r->samples >= 3 && r->inner_calls >= 1, "%s", r->repro);
    cr_expect(0 < r->min_ns && r->min_ns <= r->median_ns && r->median_ns <= r->max_ns, "%s",
              r->repro);
    if (r->samples < INTERVAL_SAMPLES)
        cr_expect(isnan(r->ci95_low_ns) && isnan(r->ci95_high_ns), "%s", r->repro);
    else
        cr_expect(r->ci95_low_ns <= r->median_ns && r->median_ns <= r->ci95_high_ns, "%s",
                  r->repro);
    cr_expect_eq(isnan(r->p90_ns), clean < 64, "%s: %ld samples", r->repro, (long)clean);
    cr_expect(r->cpu_time_median_ns > 0 && r->tokens_per_s > 0 && r->flop_count > 0, "%s",
              r->repro);
    cr_expect(r->gflop_per_s > 0 && r->bytes_moved_min > 0 && r->gbyte_per_s > 0, "%s", r->repro);
    cr_expect(r->bound[0] ? r->peak_flops_pct > 0 && r->peak_bw_pct > 0 /* else a busy machine */
                          : isnan(r->peak_flops_pct) && isnan(r->peak_bw_pct),
              "%s", r->repro);
    cr_expect(r->max_abs_err >= 0 && r->max_rel_err >= 0 && r->max_rel_err <= r->err_limit,
              "%s: %g", r->repro, r->max_rel_err);
    cr_expect(r->nmse >= 0 && r->nmse <= r->nmse_limit, "%s: %g", r->repro, r->nmse);
    /* More where a norm divides heads by what may be small, or weights are steep in scores. */
    const double limit = strcmp(r->workload, "attn") == 0 ? 2e-5 : 1e-4;
    const double most = strcmp(r->variant, "softpick") == 0 ? 1e-3 : 3 * limit;
    cr_expect(r->err_limit >= limit && r->err_limit < most, "%s: %g", r->repro, r->err_limit);
    cr_expect(r->ref_median_ns > 0, "%s: the group has a ref case", r->repro);
    cr_expect(fabs(r->ratio_to_ref - r->ref_median_ns / r->median_ns) < 1e-9 * r->ratio_to_ref);
    cr_expect_eq(strcmp(r->backend, "ref") == 0, r->max_abs_err == 0 && r->ratio_to_ref == 1, "%s",
                 r->repro);
    cr_expect(r->impl[0] && r->gemm_from[0] && r->rows_from[0] && r->isa_used[0], "%s", r->repro);
    NUMBERS({r->threads, 1}, {r->threads_seen, 1});
}

/* Tables that the attention of a variant reads, floats. */
static double table_floats(const struct latency_row *r)
{
    const double K = (double)(r->seq_tokens + r->mem_tokens);

    if (strcmp(r->variant, "shaw") == 0)
        return 2 * fmin((double)r->clip + 1, K) * (double)r->d_head;
    if (strcmp(r->variant, "xl") == 0 || strcmp(r->variant, "gtrxl") == 0)
        return K * (double)(r->heads * r->d_head);
    return 0;
}

static void expect_memory(const struct latency_row *r, const struct memory_row *m)
{
    const int64_t parts = m->weights_bytes + m->activations_bytes + m->memory_state_bytes +
                          m->scores_bytes + m->rel_pos_bytes + m->gradients_bytes +
                          m->optimizer_bytes + m->backend_scratch_bytes;
    const int64_t HD = r->heads * r->d_head, L = r->seq_tokens, M = r->mem_tokens;
    const bool attn = strcmp(r->workload, "attn") == 0;
    const int64_t state = attn || strcmp(r->mem_kind, "recompute") == 0 ? 0
                          : strcmp(r->mem_kind, "kv") == 0
                              ? 8 * r->layers * r->batch_size * M * HD
                              : 4 * r->layers * r->batch_size * M * r->d_model;

    TEXTS({m->case_id, r->case_id}, {m->status, "ok"}, {m->rss_method, "vmhwm"});
    cr_expect(parts > 0 && parts <= m->arena_peak_bytes, "%s: parts %ld of %ld", r->repro,
              (long)parts, (long)m->arena_peak_bytes);
    NUMBERS_OF(r->repro, {m->memory_state_bytes, state},
               {m->model_predicted_bytes,
                attn ? (int64_t)(4 * (r->batch_size * (double)(4 * L + 2 * M) * (double)HD +
                                      table_floats(r)))
                     : state});
    cr_expect_eq(m->gradients_bytes + m->optimizer_bytes, 0);
    cr_expect(m->rss_before_bytes > 0 && m->rss_delta_bytes >= 0, "%s", r->repro);
    cr_expect_eq(m->rss_peak_bytes, m->rss_before_bytes + m->rss_delta_bytes);
}

static void expect_env(const char *run_id, const char *host_id, const char *path)
{
    const struct env_row *const e = must_rows(path, TABLE_ENV, 1);
    TEXTS({e->run_id, run_id}, {e->host_id, host_id});
    cr_expect(e->finished_at_utc[0] && e->git_commit[0] && e->compiler[0] && e->bench_version[0]);
    cr_expect_eq(e->exit_code, 0);
    HAS(e->argv, "--variant ");
}

/* Every ok row has the samples of its statistics, and no sample is without a row. */
static void expect_samples_of(const struct rows *latency, const char *run)
{
    int64_t total = 0;

    struct rows rows = must_samples(in_folder(run));
    const struct sample_row *s = rows.row;
    for (size_t i = 0; i < latency->n; i++) {
        const struct latency_row *r = (const struct latency_row *)latency->row + i;
        int64_t n = 0, disturbed = 0;
        double fastest = INFINITY;
        if (strcmp(r->status, "ok") != 0)
            continue;
        for (size_t k = 0; k < rows.n; k++)
            if (strcmp(s[k].case_id, r->case_id) == 0) {
                NUMBERS_OF(r->repro, {s[k].sample, n++}, {s[k].calls, r->inner_calls});
                disturbed += s[k].disturbed;
                fastest = fmin(fastest, s[k].wall_ns / (double)s[k].calls);
            }
        NUMBERS_OF(r->repro, {n, r->samples}, {disturbed, r->samples_disturbed});
        cr_expect(fastest <= r->min_ns * (1 + 1e-12), "%s", r->repro);
        total += n;
    }
    cr_expect_eq((int64_t)rows.n, total);
}

static void expect_unique_cases(const struct rows *latency)
{
    const struct latency_row *r = latency->row;

    for (size_t i = 0; i < latency->n; i++)
        for (size_t k = 0; k < i; k++)
            cr_expect(strcmp(r[i].case_id, r[k].case_id) != 0 &&
                          strcmp(r[i].repro, r[k].repro) != 0,
                      "%s twice", r[i].repro);
}

static void expect_latest(const char *run_id)
{
    char target[TEXT_SIZE] = "";

    const char *const path = in_folder("r/latest");
    cr_expect(readlink(path, target, sizeof(target) - 1) > 0);
    cr_expect_str_eq(target, run_id);
}

/* The base variants, whose memory has closed forms, on all backends; all of them on the reference
 * and the fastest, as forks, which begin in half of the time. */
struct slice {
    bool closed_forms;
    char axes[128];
};
#define ALL "--variant all --seq 8 --mem 12 --isolate fork "

ParameterizedTestParameters(sweep, every_variant_on_every_backend)
{
    static struct slice parts[] = {
        {true, "--variant base --workload attn --seq 8,16 --mem 0,12 --backend auto"},
        {true, "--variant base --workload layer,segment,decode --seq 8 --mem 12 --backend auto"},
        {false, ALL "--workload attn,layer --backend ref,"},
        {false, ALL "--workload segment,decode --backend ref,"},
    };
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        if (parts[i].axes[strlen(parts[i].axes) - 1] == ',')
            strcat(parts[i].axes, lookup_fastest(backends, ELEM_F32)->name);
    return cr_make_param_array(struct slice, parts, ARRAY_LEN(parts));
}

ParameterizedTest(struct slice *p, sweep, every_variant_on_every_backend, .timeout = 240)
{
    static const char sizes[] = "--d-model 64 --heads 2 --layers 2 --threads 1";

    if (SANITIZED && !p->closed_forms)
        cr_skip_test("takes minutes; the suites of models run every variant under the sanitizers");
    struct ran listed = must_bench("list cases -q --columns case_id %s %s", sizes, p->axes);
    must_bench(
        "-q %s %s --quick --max-time 0.003 --min-samples 3 --warmup-ms 0 --block-ms 0.5 --out r",
        sizes, p->axes);
    struct rows latency = latency_of("r/latest");
    struct rows memory = must_read("r/latest", TABLE_MEMORY);
    struct rows perplexity = must_read("r/latest", TABLE_PERPLEXITY);
    const struct latency_row *row = latency.row;
    cr_assert_eq((int)latency.n, count_in(listed.out.data, "\n") - 1);
    cr_assert_eq(memory.n, latency.n);
    cr_expect_eq(perplexity.n, 0, "no checkpoint, no text");
    for (size_t i = 0; i < latency.n; i++) {
        const struct variant *const v = variant_find(row[i].variant);
        const bool no_core = v->mixer && strcmp(row[i].workload, "attn") == 0;
        const bool no_layer = (v->whole && strcmp(row[i].workload, "layer") == 0) ||
                              control_hides(v, (int)row[i].layers);
        if (no_core || no_layer || (v->bidirectional && row[i].mem_tokens)) {
            cr_expect_str_eq(row[i].status, "skipped", "%s", row[i].repro);
            HAS(row[i].status_detail, "unsupported");
            continue;
        }
        expect_latency(&row[i]);
        if (p->closed_forms)
            expect_memory(&row[i], (const struct memory_row *)memory.row + i);
        cr_expect(strstr(listed.out.data, row[i].case_id), "%s was not planned", row[i].repro);
    }
    expect_unique_cases(&latency);
    expect_samples_of(&latency, "r/latest");
    expect_env(row->run_id, row->host_id, "r/latest");
    expect_latest(row->run_id);
}

/* ---- claims of papers --------------------------------------------------------------------- */

/* DeLighT as published (one head, sinusoids, no memory, a feed-forward network of D/4) has fewer
 * parameters than a Transformer of its width, though it is deeper. */
Test(sweep, delight_as_published_has_fewer_parameters)
{
    must_bench("-q --variant delight,vanilla --workload segment --heads 1 --pos sinusoid --set "
               "dextra=code,dextra_depth=4:8,dextra_width=2:3 --layers 6 --d-model 128 --seq 8 "
               "--mem 0 --vocab 8 --backend ref --quick --max-time 0.003 --threads 1 --out r");
    const struct latency_row *const row = must_rows("r/latest", TABLE_LATENCY, 2);
    const struct memory_row *const of = must_rows("r/latest", TABLE_MEMORY, 2);
    TEXTS({row[0].variant, "delight"}, {row[0].pos, "sinusoid"});
    cr_expect(row[0].heads == 1 && row[0].d_head == 64 && row[0].d_inner == 32, "%s", row[0].repro);
    cr_expect_lt(of[0].weights_bytes, of[1].weights_bytes);
}

/* ---- sampled checks ----------------------------------------------------------------------- */

/* A reference that takes too long has some rows only, and the row says so; one that ref makes while
 * it is measured has all. */
Test(sweep, a_check_of_some_rows)
{
    static const char *const backends_of[] = {SIMD, "ref," SIMD};
    static const int checked[] = {128, 600};

    if (backend_usable(backend_find(SIMD), NULL) != OK)
        cr_skip_test("no " SIMD " here");
    for (size_t i = 0; i < ARRAY_LEN(checked); i++) {
        must_bench("--variant xl --workload layer --seq 300 --mem 40 --batch 2 --check-time "
                   "0.000001 --backend %s " TINY,
                   backends_of[i]);
        const struct latency_row *row = must_rows("r/latest", TABLE_LATENCY, i + 1);
        row += i;
        cr_expect_str_eq(row->backend, SIMD);
        cr_expect_eq(row->check_rows, checked[i], "%lld", (long long)row->check_rows);
        cr_expect_eq(strstr(row->status_detail, "sampled") != NULL, checked[i] < 600);
        cr_expect_lt(row->max_rel_err, row->err_limit);
    }
}

/* ---- what is left out ----------------------------------------------------------------------- */

static void expect_notes(const struct ran *r, const char *text, bool there)
{
    expect_exit(r, 0);
    cr_expect_eq(strstr(r->err.data, text) != NULL, there, "%s\n%s", text, r->err.data);
}

/* A published model is timed with its vocabulary, unless another one is asked for. */
Test(sweep, times_a_published_model_with_its_vocabulary)
{
    static const struct {
        const char *options;
        int64_t vocab;
    } cases[] = {{"--workload request", 1150}, {"--workload decode --vocab 64", 64}};
    char path[FILE_PATH];

    cr_assert(realpath("tests/counted", path));
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        must_bench(
            "--ckpt %s/pairs --corpus %s/text.txt %s --seq 4 --mem 8 --backend ref --quick --out r",
            path, path, cases[i].options);
        struct rows rows = latency_of("r/latest");
        cr_assert_gt(rows.n, 0);
        cr_expect_eq(((const struct latency_row *)rows.row)->vocab, cases[i].vocab);
    }
}

/* Each is held against a reference that computes the same. */
Test(sweep, contexts_held_in_every_way_at_once)
{
    struct ran r =
        must_bench("--variant %s --workload layer,segment "
                   "--mem-kind hidden,kv,recompute,state --mem 0,6 --seq 4 --layers 2 --format csv "
                   "--columns status,status_detail,repro " TINY,
                   SANITIZED ? "learned,gdn-hybrid" : "vanilla,learned,xl,gla,linear,gdn-hybrid");
    cr_expect(strstr(r.out.data, "--mem 6 --mem-kind recompute") && !strstr(r.out.data, "wrong") &&
                  !strstr(r.out.data, "failed"),
              "%s", r.out.data);
}

/* What the time of a request consists of, on the screen and in its row. */
Test(sweep, a_request_has_times_of_tokens)
{
    struct ran r =
        must_bench("--variant xl --backend ref --workload request --seq 3 --mem 8 --d-model 8 "
                   "--heads 2 --layers 1 --ckpt none --max-time 0.01 --format table --out r");
    HAS(r.out.data, " first token ");
    const struct latency_row *const row = must_rows("r/latest", TABLE_LATENCY, 1);
    cr_expect_str_eq(row->status, "ok");
    cr_expect(row->first_token_ns > 0 && row->token_ns > 0);
    cr_expect(row->token_p99_ns >= row->token_ns);
    cr_expect(row->first_token_ns + 2 * row->token_ns < 3 * row->max_ns);
}

Test(sweep, leaves_ref_out_and_says_so)
{
#define SMALL                                                                                      \
    "--variant rope --seq 4 --mem 0 --d-model 8 --heads 2 --ckpt none --max-time 0.003 "           \
    "--min-samples 3 --warmup-ms 0 --out r "
    struct ran r = run_bench(SMALL);
    expect_notes(&r, "--backend auto", true);
    struct rows rows = latency_of("r/latest");
    for (size_t i = 0; i < rows.n; i++)
        cr_expect(rows.n == 1 ||
                  strcmp(((const struct latency_row *)rows.row)[i].backend, "ref") != 0);
    r = run_bench(SMALL "--backend auto");
    expect_notes(&r, "left out", false);
    rows = latency_of("r/latest");
    cr_expect_str_eq(((const struct latency_row *)rows.row)[0].backend, "ref");
    must_bench(SMALL "--max-isa ref --backend fast"); /* the libraries may remain */
#undef SMALL
}

/* --dry-run says how long, without a folder. */
Test(sweep, a_dry_run_names_time)
{
    struct ran r = run_bench("-n --variant rope --seq 64 --mem 0 --out nowhere");
    expect_notes(&r, " about ", true);
    r = run_bench("list cases --variant rope --seq 64 --mem 0");
    expect_notes(&r, " about ", false);
    cr_expect_neq(access("nowhere", F_OK), 0);
}

/* A short plan needs no rates of the reference either: no process is started to measure something. */
Test(sweep, a_dry_run_measures_no_peaks)
{
    SKIP_SANITIZED("the preloaded library comes before the sanitizer's");
    struct ran r =
        must_shell("FAULT_AT=0 FAULT_HOW=fork:EAGAIN FAULT_COUNT=forks "
                   "LD_PRELOAD=\"${BENCH%%/*}/faults.so\" \"$BENCH\" -n --variant rope --seq 8 "
                   "--mem 0 --d-model 16 --heads 2 --threads 1 --quick >/dev/null && cat forks");
    cr_expect_str_eq(r.out.data, "0\n");
}

/* The next step is about this run. */
Test(sweep, next_names_the_run)
{
    struct ran r = run_bench("--variant rope --backend ref --seq 4 --mem 0 --d-model 8 --heads 2 "
                             "--ckpt none --quick --out r");
    expect_notes(&r, "next: bench plot r/2", true);
    r = run_bench("--resume=r/latest");
    expect_notes(&r, "next: bench plot r/2", true);
}

/* Scores have no noise: they are not counted among the rows that could have it. */
Test(sweep, noise_is_of_timed_rows)
{
    struct ran r = run_bench(
        "--variant rope --backend ref --seq 4 --mem 0 --d-model 8 --heads 2 --corpus copy:lag=4 "
        "--bytes 64 --max-time 0.003 --min-samples 3 --warmup-ms 0 --target-ci 0.001 --out r");
    expect_notes(&r, "1 of 1 row noisy (~)", true);
}

/* ---- launches ----------------------------------------------------------------------------- */

/* Samples and rows tell the launches; of one the last lines say what its intervals are. */
Test(sweep, launches)
{
    static const char note[] = "note: intervals are within one launch of each case";

    for (int launches = 1; launches <= 3; launches += 2) {
        struct ran r =
            run_bench("--variant xl,rope --backend ref --workload attn --seq 16 --mem 0 --d-model "
                      "32 --heads 2 --threads 1 --max-time 0.02 --warmup-ms 1 --min-samples 6 "
                      "--block-ms 0.5 --ckpt none --raw csv --launches %d --out launches%d",
                      launches, launches);
        int64_t last = 0;
        const char *const run = kept_text("launches%d/latest", launches);
        NUMBERS_OF(r.err.data, {r.code, 0}, {strstr(r.err.data, note) != NULL, launches == 1});
        const struct latency_row *const row = must_rows(run, TABLE_LATENCY, 2);
        const struct rows samples = must_read(run, TABLE_SAMPLES);
        const struct sample_row *const sample = samples.row;
        for (int i = 0; i < 2; i++) {
            NUMBERS({row[i].launches, launches}, {isnan(row[i].between_launch_pct), launches == 1});
            cr_expect(row[i].ci95_low_ns <= row[i].median_ns &&
                      row[i].median_ns <= row[i].ci95_high_ns);
        }
        for (size_t i = 0; i < samples.n; i++)
            last = sample[i].launch > last ? sample[i].launch : last;
        cr_expect_eq(last, launches - 1);
    }
}

/* Profilers and ps tell measuring processes from others: /proc says "exe" of what was started by that
 * path. */
Test(sweep, measuring_processes_have_a_name)
{
    struct program p = start_bench("-V vanilla -b ref -w layer --d-model 16 --heads 2 --seq 8 "
                                   "--mem 0 --threads 1 --max-time 60 --ckpt none --out r");
    char said[64] = "";

    for (int i = 0; i < 5000 && strcmp(said, "bench-worker\n") != 0 && !has_ended(p.pid); i++) {
        pid_t child;
        usleep(1000);
        if (children_of(p.pid, &child, 1) != 1)
            continue;
        FILE *const f = fopen(kept_text("/proc/%d/comm", (int)child), "r");
        if (f && !fgets(said, sizeof(said), f))
            said[0] = '\0';
        if (f)
            fclose(f);
    }
    cr_expect_str_eq(said, "bench-worker\n");
    kill(p.pid, SIGTERM);
    finish_bench(&p);
}
