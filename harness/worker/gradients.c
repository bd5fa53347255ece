/* SPDX-License-Identifier: MIT
 *
 * The check of a case: its output against the reference's, and its gradients against those of a
 * backward pass by the reference on the activations that the case left. */
#include "workload.h"

#include "variants/model/attention/sublayer_attention.h"

static const double NMSE_LIMIT = 1e-10;

/* Rows that are rounded to bf16 differ where two executions, both right, come to either side of a
 * tie: by one unit in the last place, up to 2^-7 of the number and 2^-8 of most. Such a row's
 * product differs by as much of its norm at most, which the next rounding meets. Along the stream
 * there are five products in a row in a layer (keys, probabilities and values or a recurrence,
 * output, both maps of the feed-forward network), three more if it attends to an encoder, which has
 * five in a layer, and one of the logits; their differences add up in
 * quadrature. A recurrence multiplies each key and value once, and its decays and erases let none
 * of them grow. Backward there are as many more. Keys and values that are cached as bf16 are two
 * more in a layer; in q8 their unit is 2^-7 of a head's largest number, four times as much in
 * squares. One product is checked closely, by `bench check`: a sum of rounded numbers has the bound
 * of any other.
 *
 * Rows that are rounded to q8 differ in the same places, by 2^-7 of a block's largest number. */
static struct bound rounded_bound(const struct bench_case *c)
{
    enum { Q8_UNIT = 4 };
    const double encoder = c->config.enc_layers ? 5.0 * c->config.enc_layers + 3.0 * c->layers : 0;
    const double forward =
        workload_context(c->workload) == CONTEXT_KEYS ? 1 : 5.0 * c->layers + encoder + 1;
    const double products = c->phase == PHASE_FWD ? forward : 2 * forward;
    const double weights = c->config.dtype == ELEM_BF16     ? products
                           : c->config.act_dtype == ROWS_Q8 ? Q8_UNIT * products
                                                            : 0;
    const double each = c->config.kv_dtype == ELEM_Q8 ? Q8_UNIT : c->config.kv_dtype == ELEM_BF16;
    const double cached = 2.0 * c->layers * each;
    const double rel = ldexp(sqrt(weights + cached), -8);

    return (struct bound){.rel = rel, .nmse = rel * rel};
}

/* Scores are sums of some products: off by a few roundings of numbers of about 1. */
static double amplified(const struct bench_case *c)
{
    enum { ROUNDINGS = 8 };
    const struct mixer *const m =
        workload_context(c->workload) == CONTEXT_KEYS ? NULL : c->config.mixer;

    const struct pos *const extra = c->config.attn_extra;
    const double weights = extra && extra->amplifies ? extra->amplifies(c->phase != PHASE_FWD) : 0;

    return ROUNDINGS * 0x1p-24 * (weights + (m ? mixer_amplifies(&c->config) : 0));
}

struct bound job_bound(const struct bench_case *c)
{
    const double more = amplified(c);

    if (c->config.dtype == ELEM_BF16 || c->config.kv_dtype != ELEM_F32 ||
        c->config.act_dtype != ROWS_F32)
        return rounded_bound(c);
    return (struct bound){.rel = workload_ops(c->workload)->err_limit + more,
                          .nmse = NMSE_LIMIT + more * more};
}

/* ---- output -------------------------------------------------------------------------------- */

struct checked_rows job_rows(const struct job *j, int each)
{
    return (struct checked_rows){j->out_shape[0], j->out_shape[1], each, j->bcase->opt->seed};
}

enum status job_want_rows(struct job *j, const struct checked_rows *r, struct err *e)
{
    CHECK(j->engine.backend == &backend_ref && !j->wanted);
    if (checked_rows_are_all(r))
        return OK;
    CHECK(j->ops->flop_of_rows && j->ops->flop_of_rows(j) > 0);
    j->wanted = calloc(job_elements(r->B, r->L, 1), sizeof(*j->wanted));
    if (!j->wanted)
        return fail(e, E_NOMEM, "no memory for the rows of a reference  -> use --no-check");
    for (int b = 0; b < r->B; b++)
        for (int k = 0; k < r->each; k++)
            j->wanted[(ptrdiff_t)b * r->L + checked_row(r, b, k)] = true;
    j->engine.wanted = j->wanted;
    return OK;
}

void job_copy_rows(const struct job *j, const struct checked_rows *r, float *to)
{
    const size_t width = (size_t)j->out_shape[2];

    for (int b = 0; b < r->B; b++)
        for (int k = 0; k < r->each; k++, to += width)
            memcpy(to,
                   j->out + job_elements(b, r->L, 1) * width + (size_t)checked_row(r, b, k) * width,
                   width * sizeof(*to));
}

enum status job_check_output(const struct job *j, const struct checked_rows *r, const float *want,
                             struct agreement *a, struct err *e)
{
    const size_t width = (size_t)j->out_shape[2], each = (size_t)r->each;
    const size_t n = job_elements(r->B, r->each, j->out_shape[2]);
    const bool all = checked_rows_are_all(r);
    float *const some = all ? NULL : malloc(n * sizeof(*some));

    if (!all && !some)
        return fail(e, E_NOMEM, "no memory to compare %zu numbers  -> use --no-check", n);
    if (some)
        job_copy_rows(j, r, some);
    *a = agree(all ? j->out : some, want, n, job_bound(j->bcase));
    free(some);
    const int b = (int)(a->at / width / each), k = (int)(a->at / width % each);
    snprintf(a->where, sizeof(a->where), "[%d,%d,%zu]", b, all ? k : checked_row(r, b, k),
             a->at % width);
    return OK;
}

/* ---- backward by the reference ------------------------------------------------------------- */

enum status job_find_reference_impl(struct reference_impl *with, const struct attn *like,
                                    const struct engine *ref, size_t *most, struct err *e)
{
    TRY(engine_attn(ref, like, &with->impl, e));
    TRY(engine_attn_backward(ref, with->impl, e));
    const struct attn_need need = with->impl->need_backward(like, ref->threads);
    const size_t bytes = need.scores_bytes + need.scratch_bytes;
    *most = bytes > *most ? bytes : *most;
    return OK;
}

enum status job_reference_scratch(void **scratch, size_t bytes, struct err *e)
{
    *scratch = aligned_alloc(ARENA_ALIGN, (bytes / ARENA_ALIGN + 1) * ARENA_ALIGN);
    return *scratch
               ? OK
               : fail(e, E_NOMEM, "no %zu bytes to check gradients in  -> use --no-check", bytes);
}

/* Where a sub-layer of attention, of any kind, has its implementation; NULL = it has none. */
static const struct attn_impl **impl_of(struct sublayer *s)
{
    return s->kind->reads ? &s->reading.impl : s->kind->attends ? &s->state.attention.impl : NULL;
}

/* Exchange the implementation and scratch of every attention sub-layer with ours, of which there is
 * one per sub-layer. */
static void swap_attention(struct sublayers *sublayers, struct reference_impl *with)
{
    CHECK(with);
    for (int i = 0; i < sublayers->n; i++) {
        const struct attn_impl **const impl = impl_of(&sublayers->at[i]);
        const struct reference_impl ours = with[i];
        if (!impl)
            continue;
        with[i] = (struct reference_impl){*impl, sublayers->work[i].d_scratch};
        *impl = ours.impl;
        sublayers->work[i].d_scratch = ours.scratch;
    }
}

/* What a sub-layer needs for its backward pass with the reference's attention: other work of it may
 * need more than attention does. */
static size_t scratch_with(struct sublayer *s, const struct reference_impl *with,
                           const struct engine *ref)
{
    const struct attn_impl **const impl = impl_of(s), *const own = *impl;

    if (!s->kind->scratch)
        return 0;
    *impl = with->impl;
    const struct attn_need need = s->kind->scratch(s, ref, true);
    *impl = own;
    return need.scores_bytes + need.scratch_bytes;
}

static enum status find_reference_impls(const struct sublayers *sublayers,
                                        struct reference_impl *with, const struct engine *ref,
                                        size_t *most, struct err *e)
{
    for (int i = 0; i < sublayers->n; i++) {
        struct sublayer *const s = &sublayers->at[i];
        if (!impl_of(s))
            continue;
        const struct attn like = s->kind->reads ? sublayer_read_attn(s) : attention_for_impl(s);
        TRY(job_find_reference_impl(&with[i], &like, ref, most, e));
        const size_t all = scratch_with(s, &with[i], ref);
        *most = all > *most ? all : *most;
    }
    return OK;
}

/* Of a list, implementations in `with`, which is malloc'ed. */
static enum status find_in_list(const struct sublayers *list, struct reference_impl **with,
                                const struct engine *ref, size_t *most, struct err *e)
{
    *with = calloc((size_t)list->n, sizeof(**with));
    return *with ? find_reference_impls(list, *with, ref, most, e)
                 : fail(e, E_NOMEM, "no memory for %d sub-layers  -> lower --layers", list->n);
}

/* Of workloads that consist of sub-layers, those of an encoder included. */
static enum status sublayers_reference_backward(struct job *j, const struct engine *ref,
                                                struct err *e)
{
    struct sublayers *const *const lists = j->list;
    struct reference_impl *with[ARRAY_LEN(j->list)] = {NULL};
    void *scratch = NULL;
    size_t bytes = 0;
    enum status st = OK;

    for (size_t k = 0; k < ARRAY_LEN(j->list) && lists[k] && st == OK; k++)
        st = find_in_list(lists[k], &with[k], ref, &bytes, e);
    if (st == OK)
        st = job_reference_scratch(&scratch, bytes, e);
    if (st == OK) {
        for (size_t k = 0; k < ARRAY_LEN(j->list) && lists[k]; k++) {
            for (int i = 0; i < lists[k]->n; i++)
                with[k][i].scratch = scratch;
            swap_attention(lists[k], with[k]);
        }
        j->ops->backward(j, ref);
        for (size_t k = 0; k < ARRAY_LEN(j->list) && lists[k]; k++)
            swap_attention(lists[k], with[k]);
    }
    free(scratch);
    for (size_t k = 0; k < ARRAY_LEN(j->list); k++)
        free(with[k]);
    return st;
}

/* ---- gradients ----------------------------------------------------------------------------- */

bool job_param_gradient(const struct params *p, int i, struct gradient *out)
{
    if (i >= p->n)
        return false;
    *out = (struct gradient){p->v[i].name, p->v[i].grad, p->v[i].n, 0};
    return true;
}

static bool gradient_at(const struct job *j, int i, struct gradient *out)
{
    return j->ops->gradient ? j->ops->gradient(j, i, out) : job_param_gradient(j->params, i, out);
}

/* Number of floats of all gradients; and those floats, concatenated. */
static size_t all_gradients(const struct job *j, float *copy)
{
    struct gradient d;
    size_t total = 0;

    for (int i = 0; gradient_at(j, i, &d); i++, total += d.n)
        if (copy && d.n)
            memcpy(copy + total, d.at, d.n * sizeof(float));
    return total;
}

/* The reference wrote where the case will write. */
static void poison(struct job *j)
{
    if (j->ops->poison)
        j->ops->poison(j);
    for (size_t k = 0; k < ARRAY_LEN(j->list) && j->list[k] && !j->ops->poison; k++)
        sublayers_poison(j->list[k]);
}

enum status job_expect_gradients(struct job *j, float **want, struct err *e)
{
    struct engine ref;

    *want = NULL;
    if (j->bcase->phase == PHASE_FWD)
        return OK;
    TRY(engine_open(&ref, backend_ref.name, j->engine.threads, NULL, e));
    TRY(engine_train_in(&ref, j->config.dtype, e));
    job_run_forward(j);
    TRY(j->ops->reference_backward ? j->ops->reference_backward(j, &ref, e)
                                   : sublayers_reference_backward(j, &ref, e));
    *want = malloc(all_gradients(j, NULL) * sizeof(float));
    if (!*want)
        return fail(e, E_NOMEM, "no memory for the expected gradients  -> use --no-check");
    all_gradients(j, *want);
    poison(j);
    return OK;
}

/* The magnitude below which numbers of a gradient are the rounding of their terms, which is all that
 * is left where those cancel, up to 0: 16 U of the largest term, as where attention's operations are
 * checked (backward_bounds in harness/check/op_attn.c). That is the bound of numbers of this size.
 * Where nothing is known of the terms, a hundredth of the largest gradient stands for it. */
static double rounding_floor(const struct gradient *d, struct bound bound, double largest)
{
    enum { ROUNDINGS = 16, NEGLIGIBLE = 100 };

    return fmax(largest / NEGLIGIBLE, ROUNDINGS * 0x1p-24 / bound.rel * d->terms);
}

void job_check_gradients(const struct job *j, const float *want, struct agreement *a)
{
    const struct bound bound = job_bound(j->bcase);
    const size_t total = all_gradients(j, NULL);
    struct gradient d;
    double largest = 0;

    *a = (struct agreement){0};
    for (size_t i = 0; i < total; i++)
        largest = fmax(largest, fabs((double)want[i]));
    for (int i = 0; gradient_at(j, i, &d); want += d.n, i++) {
        struct bound of_this = bound;
        of_this.floor = rounding_floor(&d, bound, largest);
        const struct agreement one = agree(d.at, want, d.n, of_this);
        /* A single number has no mean square to compare with: it may be the rest of a sum that
         * cancels. NaN stays. */
        if ((d.n > 1 || isnan(one.nmse)) && !(one.nmse <= a->nmse) && !isnan(a->nmse))
            a->nmse = one.nmse;
        if (one.max_rel <= a->max_rel || isnan(a->max_rel))
            continue;
        a->max_rel = one.max_rel;
        a->max_abs = one.max_abs;
        a->at = one.at;
        snprintf(a->where, sizeof(a->where), "gradient of %s[%zu]", d.name, one.at);
    }
    a->within = within_bound(a->max_rel, a->nmse, bound);
}
