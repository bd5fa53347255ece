/* SPDX-License-Identifier: MIT
 *
 * The judge of a cell's backward pass: the reference runs backward on the activations that the cell
 * left, and every gradient is compared with its. */
#include "job_inner.h"

#include "variants/model/sublayer_attention.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LAYER_INPUT = 1 }; /* gradients of a layer that are not a parameter's */

static const struct params *params_of(const struct job *j)
{
    return j->bcase->workload == WORK_LAYER ? &j->layer.params : &j->lm.lm.params;
}

/* The i-th gradient; false behind the last. */
static bool gradient(const struct job *j, int i, const char **name, const float **at, size_t *n)
{
    struct attn_job attn = j->attn;
    struct operand list[ATTN_OPERANDS];
    const struct params *p = params_of(j);

    if (j->bcase->workload == WORK_ATTN) {
        if (i >= ATTN_OPERANDS)
            return false;
        job_operands(list, &attn);
        *name = list[i].name;
        *at = *list[i].at;
        *n = list[i].n;
        return true;
    }
    if (i < p->n) {
        *name = p->v[i].name;
        *at = p->v[i].grad;
        *n = p->v[i].n;
        return true;
    }
    *name = "d_x";
    *at = j->layer.d;
    *n = j->n_out;
    return j->bcase->workload == WORK_LAYER && i < p->n + LAYER_INPUT;
}

static size_t all_gradients(const struct job *j, float *copy)
{
    const char *name;
    const float *at;
    size_t n, total = 0;

    for (int i = 0; gradient(j, i, &name, &at, &n); i++, total += n)
        if (copy && n)
            memcpy(copy + total, at, n * sizeof(float));
    return total;
}

struct reference_impl {
    const struct attn_impl *impl;
    void *scratch;
};

/* Change places: the implementation and scratch of every attention sub-layer with ours, which are
 * one a sub-layer, whatever its kind. */
static void swap_attention(struct job *j, struct reference_impl *with)
{
    const struct sublayers *const sublayers = job_sublayers(j);

    for (int i = 0; i < sublayers->n; i++) {
        struct sublayer *const s = &sublayers->at[i];
        const struct reference_impl ours = with[i];
        if (s->kind != &sublayer_attention)
            continue;
        with[i] = (struct reference_impl){s->of.attention.impl, sublayers->work[i].d_scratch};
        s->of.attention.impl = ours.impl;
        sublayers->work[i].d_scratch = ours.scratch;
    }
}

/* What executes `like` backward on `ref`; *most grows to the bytes that it works in. */
static enum status find_reference_impl(struct reference_impl *with, const struct attn *like,
                                       const struct engine *ref, size_t *most, struct err *e)
{
    enum status st = engine_attn(ref, like, &with->impl, e);

    if (st == OK)
        st = engine_attn_backward(ref, with->impl, e);
    if (st != OK)
        return st;
    const struct attn_need need = with->impl->need_backward(like, ref->threads);
    const size_t bytes = need.scores_bytes + need.scratch_bytes;
    *most = bytes > *most ? bytes : *most;
    return OK;
}

static enum status find_reference_impls(struct job *j, struct reference_impl *with,
                                        const struct engine *ref, size_t *most, struct err *e)
{
    const struct sublayers *const sublayers = job_sublayers(j);
    enum status st = OK;

    for (int i = 0; i < sublayers->n && st == OK; i++)
        if (sublayers->at[i].kind == &sublayer_attention) {
            const struct attn like = attention_for_impl(&sublayers->at[i]);
            st = find_reference_impl(&with[i], &like, ref, most, e);
        }
    return st;
}

/* Backward once by `ref`, with scratch as its attention wants it. */
static enum status backward_by(struct job *j, const struct engine *ref, struct err *e)
{
    const bool core = j->bcase->workload == WORK_ATTN;
    const int n = core ? 1 : job_sublayers(j)->n;
    size_t bytes = 0;
    enum status st;

    if (!core &&
        !sublayers_attention(job_sublayers(j), 0)) { /* others ask the engine that they are given */
        job_backward(j, ref);
        return OK;
    }
    struct reference_impl *const with = calloc((size_t)n, sizeof(*with));
    if (!with)
        return fail(e, E_NOMEM, "no memory for %d sub-layers  -> lower --layers", n);
    st = core ? find_reference_impl(with, &j->attn.attn, ref, &bytes, e)
              : find_reference_impls(j, with, ref, &bytes, e);
    void *const scratch =
        st == OK ? aligned_alloc(ARENA_ALIGN, (bytes / ARENA_ALIGN + 1) * ARENA_ALIGN) : NULL;
    if (st == OK && !scratch)
        st = fail(e, E_NOMEM, "no %zu bytes to judge gradients in  -> --no-check", bytes);
    if (st == OK && core) {
        job_attn_backward(&j->attn, with->impl, ref, scratch);
    } else if (st == OK) {
        for (int i = 0; i < n; i++)
            with[i].scratch = scratch;
        swap_attention(j, with);
        job_backward(j, ref);
        swap_attention(j, with);
    }
    free(scratch);
    free(with);
    return st;
}

/* NaN for all that a backward pass writes; what it adds to starts from zero in each run. */
static void poison(struct job *j)
{
    struct operand list[ATTN_OPERANDS];

    if (j->bcase->workload != WORK_ATTN) {
        sublayers_poison(job_sublayers(j));
        return;
    }
    job_operands(list, &j->attn);
    for (int i = 0; i < ATTN_WRITTEN; i++)
        for (size_t n = 0; n < list[i].n; n++)
            (*list[i].at)[n] = NAN;
}

enum status job_expect_gradients(struct job *j, float **want, struct err *e)
{
    struct engine ref;

    *want = NULL;
    if (j->bcase->phase == PHASE_FWD)
        return OK;
    enum status st = engine_open(&ref, backend_ref.name, j->engine.threads, NULL, e);
    if (st != OK)
        return st;
    job_run_forward(j);
    st = backward_by(j, &ref, e);
    if (st != OK)
        return st;
    *want = malloc(all_gradients(j, NULL) * sizeof(float));
    if (!*want)
        return fail(e, E_NOMEM, "no memory for the expected gradients  -> --no-check");
    all_gradients(j, *want);
    poison(j); /* the reference wrote where the cell will */
    return OK;
}

/* One gradient: its largest error, in units of its own largest entry or of `floor`. */
static void check_one(struct agreement *a, const char *name, const float *got, const float *want,
                      size_t n, double floor)
{
    double worst = -1, largest = floor, off = 0, all = 0;
    size_t at = 0;

    for (size_t i = 0; i < n; i++) {
        const double w = (double)want[i], d = fabs((double)got[i] - w);
        if (d > worst || (isnan(d) && !isnan(worst))) {
            worst = d;
            at = i;
        }
        largest = fmax(largest, fabs(w));
        off += d * d;
        all += w * w;
    }
    all = fmax(all, (double)n * floor * floor);
    const double rel = worst > 0 || isnan(worst) ? worst / largest : 0;
    const double nmse = off > 0 || isnan(off) ? off / all : 0;
    /* One number has no mean: it may be what is left of a sum that cancels. Not a number stays. */
    if ((n > 1 || isnan(nmse)) && !(nmse <= a->nmse) && !isnan(a->nmse))
        a->nmse = nmse;
    if (rel <= a->max_rel || isnan(a->max_rel))
        return;
    a->max_rel = rel;
    a->max_abs = worst;
    snprintf(a->at, sizeof(a->at), "gradient of %s[%zu]", name, at);
}

void job_check_gradients(const struct job *j, const float *want, struct agreement *a)
{
    enum { NEGLIGIBLE = 100 };
    const size_t total = all_gradients(j, NULL);
    const char *name;
    const float *got;
    double largest = 0;
    size_t n;

    *a = (struct agreement){0};
    for (size_t i = 0; i < total; i++)
        largest = fmax(largest, fabs((double)want[i]));
    for (int i = 0; gradient(j, i, &name, &got, &n); want += n, i++) {
        /* What is left for a bias are differences of numbers as large as any gradient. */
        const bool bias = j->bcase->workload == WORK_ATTN && got && got == j->attn.d.d_bias;
        check_one(a, name, got, want, n, bias ? largest : largest / NEGLIGIBLE);
    }
}
