/* SPDX-License-Identifier: MIT
 *
 * The workload attn: the attention core alone, projected operands in, its output out, and backward
 * to every operand. */
#include "workload.h"

#include "variants/model/attention/sublayer_attention.h"
#include "variants/parts/masks.h"

/* ---- forward ------------------------------------------------------------------------------- */

static enum status declare(struct job *j, struct err *e)
{
    const struct config *c = &j->config;
    struct params *const p = j->params = &j->attn.params;

    /* Absolute schemes do not touch the attention core. */
    const bool relative = c->pos->reserve != NULL;
    if (relative && c->pos->model_params)
        c->pos->model_params(c, p);
    j->attn.at_layer = p->n;
    if (relative && c->pos->layer_params)
        c->pos->layer_params(c, "", p);
    j->attn.at_attn_extra = p->n;
    if (c->attn_extra && c->attn_extra->layer_params)
        c->attn_extra->layer_params(c, "", p);
    return config_check(c, e);
}

static struct term_params term_params(const struct attn_job *t)
{
    const struct param *const all = t->params.v;

    if (!all) /* none, and no array to point into */
        return (struct term_params){0};
    return (struct term_params){all, all + t->at_layer, all + t->at_attn_extra};
}

/* Numbers of its running sums. */
static size_t sums_of(const struct attn *a)
{
    return (size_t)a->B * (size_t)a->H * (size_t)attn_keys(a);
}

/* Room for the numbers added to scores: those of the attention below, and those for the one above. */
static void bind_scores(struct job *j)
{
    static const double counted[1]; /* while there is no arena */
    struct attn *const at = &j->attn.attn;
    const ptrdiff_t K = at->M + at->L;
    const size_t pairs = (size_t)at->B * (size_t)at->H * (size_t)at->L * (size_t)K;
    const struct around_call n = {.B = at->B, .L = at->L, .K = (int)K, .all = (int)K};

    const size_t sums = around_sums_count(&j->config, n);
    if (sums) {
        const double *const at_sums = arena_take(&j->arena, PART_SCORES, sums * sizeof(*at_sums));
        at->fade = around_sums(&j->config, n, at_sums ? at_sums : counted);
    }
    if (around_adds(&j->config)) /* by what is computed from queries and rows */
        at->add = around_dense(&j->config, n,
                               arena_f32(&j->arena, PART_SCORES, around_add_floats(&j->config, n)));
    if (!j->config.score_residual)
        return;
    at->add =
        (struct dense){arena_f32(&j->arena, PART_SCORES, pairs), at->H * at->L * K, at->L * K, K};
    at->scores_out = arena_f32(&j->arena, PART_SCORES, pairs);
    at->gain = j->config.score_residual == SCORE_RESIDUAL_MEAN ? 0.5f : 0;
}

/* Work space of an implementation: scores and the rest are different parts of the ledger. */
static void *take_scratch(struct arena *a, struct attn_need need)
{
    void *const scratch = arena_take(a, PART_SCORES, need.scores_bytes + need.scratch_bytes);

    a->part[PART_SCORES] -= need.scratch_bytes;
    a->part[PART_SCRATCH] += need.scratch_bytes;
    return scratch;
}

/* Rows of q and o without gaps: a layer's may have heads between them that other calls read. */
static void pack_rows(struct attn *a)
{
    const ptrdiff_t q = (ptrdiff_t)a->H * a->dh, o = (ptrdiff_t)a->H * attn_dv(a);

    a->q_at = (struct stride){a->L * q, q};
    a->o_at = (struct stride){a->L * o, o};
}

/* Keys or values, as they would be cached: [B,K] rows of heads of n numbers. Strides count floats
 * or what a narrow type's do. */
static void *take_rows(struct job *j, int heads, int n, struct stride *at)
{
    const enum elem elem = j->config.kv_dtype;
    const int K = j->shape.L + j->shape.M;
    const size_t unit = elem == ELEM_BF16 ? sizeof(uint16_t) : sizeof(float);
    const size_t row = elem_heads_bytes(elem, heads, n);

    *at = (struct stride){K * (ptrdiff_t)(row / unit), (ptrdiff_t)(row / unit)};
    return arena_take(&j->arena, PART_ACTIVATIONS, (size_t)j->shape.B * (size_t)K * row);
}

static void bind_keys(struct job *j)
{
    static const uint32_t counted[1]; /* while there is no arena */
    struct attn *const a = &j->attn.attn;
    void *const k = take_rows(j, a->Hkv, a->dh, &a->k_at);
    void *const v = take_rows(j, a->Hkv, attn_dv(a), &a->v_at);
    const void *const keys = a->no_content ? NULL : k ? k : counted;
    const void *const values = v ? v : counted;

    if (j->config.kv_dtype == ELEM_BF16)
        a->k_bf16 = keys, a->v_bf16 = values;
    else if (j->config.kv_dtype == ELEM_Q8)
        a->k_q8 = keys, a->v_q8 = values;
    else
        a->k = k, a->v = v;
}

static enum status bind(struct job *j, struct err *e)
{
    const struct config *c = &j->config;
    const struct extent s = j->shape;
    const int K = s.L + s.M;
    struct attn_job *t = &j->attn;
    struct arena *a = &j->arena;

    params_place(&t->params, a);
    t->attn = attn_of_config(c, s.B, s.L, s.M);
    pack_rows(&t->attn);
    t->attn.bf16 = c->dtype == ELEM_BF16 && c->kv_dtype != ELEM_Q8;
    t->trained = c->pos->terms_grad || (c->attn_extra && c->attn_extra->terms_grad);
    const struct term_params p = term_params(t);
    terms_reserve(c, &p, 0, s.L, K, a, &t->attn);
    bind_scores(j);
    if (c->pos->build_tables && c->pos->n_pos_encoding)
        t->pos_encoding = arena_f32(a, PART_SCRATCH, c->pos->n_pos_encoding(c, K));
    t->attn.q = arena_f32(a, PART_ACTIVATIONS, job_elements(s.B, s.L, (int)t->attn.q_at.row));
    bind_keys(j);
    t->attn.o = arena_f32(a, PART_ACTIVATIONS, job_elements(s.B, s.L, (int)t->attn.o_at.row));
    if (j->bcase->phase == PHASE_FWD_BWD)
        t->attn.lse = arena_f32(a, PART_ACTIVATIONS, job_elements(s.B, s.L, c->H));
    const struct attn asked = masks_placeholder(&t->attn);
    TRY(engine_attn(&j->engine, &asked, &t->impl, e));
    t->scratch = take_scratch(a, t->impl->need(&t->attn, j->engine.threads));
    job_set_output(j, t->attn.o, s.L, (int)t->attn.o_at.row);
    return OK;
}

/* Draw them and bring them to their type. */
static void fill_rows(const struct job *j, const char *name, const void *to, int heads, int n)
{
    const enum elem elem = j->config.kv_dtype;
    const size_t rows = job_elements(j->shape.B, j->shape.L + j->shape.M, 1);
    const size_t width = (size_t)heads * (size_t)n, bytes = elem_heads_bytes(elem, heads, n);
    float *const x = elem == ELEM_F32 ? (float *)to : need_room(rows * width, sizeof(*x));

    job_draw(j, name, x, rows * width);
    if (j->attn.attn.bf16)
        bf16_round(x, rows * width);
    if (elem == ELEM_F32)
        return;
    for (size_t i = 0; i < rows; i++)
        elem_heads_narrow(elem, (char *)to + i * bytes, x + i * width, heads, n);
    free(x);
}

/* Where they are, whatever their type. */
static const void *keys_of(const struct attn *a)
{
    return a->k ? (const void *)a->k : a->k_bf16 ? (const void *)a->k_bf16 : a->k_q8;
}

static const void *values_of(const struct attn *a)
{
    return a->v ? (const void *)a->v : a->v_bf16 ? (const void *)a->v_bf16 : a->v_q8;
}

/* Of logarithms of gates, sigma(y) with normal y. */
static void fill_sums(const struct job *j)
{
    const struct attn *const a = &j->attn.attn;
    const size_t K = (size_t)attn_keys(a), n = sums_of(a);
    double *const sums = (double *)a->fade.at;
    float *const y = need_room(n, sizeof(*y));

    job_draw(j, "attn.fade", y, n);
    for (size_t i = 0; i < n; i++)
        sums[i] = (i % K ? sums[i - 1] : 0) - log1p(exp(-(double)y[i]));
    free(y);
}

static void fill(struct job *j)
{
    const struct config *c = &j->config;
    const struct extent s = j->shape;
    struct attn_job *t = &j->attn;
    const size_t queries = job_elements(s.B, s.L, (int)t->attn.q_at.row);

    job_draw(j, "attn.q", (float *)t->attn.q, queries);
    if (keys_of(&t->attn))
        fill_rows(j, "attn.k", keys_of(&t->attn), t->attn.Hkv, t->attn.dh);
    fill_rows(j, "attn.v", values_of(&t->attn), t->attn.Hkv, attn_dv(&t->attn));
    masks_draw(&c->masks, 0, &t->attn);
    if (t->pos_encoding)
        c->pos->pos_encoding(c, 0, s.L + s.M, t->pos_encoding);
    const struct around_call n = {.B = s.B, .L = s.L, .K = s.L + s.M, .all = s.L + s.M};
    if (around_adds(c))
        job_draw(j, "attn.scores", (float *)t->attn.add.at, around_add_floats(c, n));
    if (t->attn.fade.at)
        fill_sums(j);
    if (c->score_residual)
        job_draw(j, "attn.scores", (float *)t->attn.add.at,
                 job_elements(s.B, c->H, s.L * (s.L + s.M)));
    const struct term_params p = term_params(t);
    terms_build_tables(&j->engine, c, &p, t->pos_encoding, &t->attn);
    if (t->attn.bf16)
        bf16_round((float *)t->attn.q, queries);
}

static void forward(struct job *j)
{
    j->attn.impl->forward(&j->engine, &j->attn.attn, j->attn.scratch);
}

/* ---- backward ------------------------------------------------------------------------------ */

/* The gradients of one attention call, X(which, struct, member, its numbers; 0 = no such term). The
 * first are written, the others added to. */
#define OPERAND_LIST(X)                                                                            \
    X(D_Q, d, d_q, (asked * queries))                                                              \
    X(D_K, d, d_k, (asked * keys))                                                                 \
    X(D_V, d, d_v, values)                                                                         \
    X(D_U, d, d_u, a->u ? row : 0)                                                                 \
    X(D_W, d, d_w, a->w ? row : 0)                                                                 \
    X(D_REL_K, d, d_rel_k, a->rel_k ? table_floats(a, a->rel_head, a->dh) : 0)                     \
    X(D_REL_V, d, d_rel_v, a->rel_v ? table_floats(a, a->rel_head, a->dh) : 0)                     \
    X(D_BIAS, d, d_bias, a->bias && t->trained ? table_floats(a, a->bias_head, 1) : 0)             \
    X(D_REL_Q, d, d_rel_q, a->rel_q ? table_floats(a, a->rel_head, a->dh) : 0)                     \
    X(D_ADD, d, d_add, a->add.at ? dense_floats(a) : 0)                                            \
    X(D_FADE, t, d_fade, a->fade.at ? sums_of(a) : 0)                                              \
    X(D_MIX_LOGITS, d, d_mix_logits, a->mix_logits ? mix : 0)                                      \
    X(D_MIX_PROBS, d, d_mix_probs, a->mix_probs ? mix : 0)                                         \
    X(D_SINK_K, d, d_sink_k, a->sink_k ? (row * sinks) : 0)                                        \
    X(D_SINK_V, d, d_sink_v, a->sink_v ? (row * sinks) : 0)                                        \
    X(D_SINK_LOGIT, d, d_sink_logit, a->sink_logit ? ((size_t)a->H * sinks) : 0)
#define X(which, of, member, n) which,
enum { OPERAND_LIST(X) OPERANDS, WRITTEN = D_U };
#undef X
struct operand {
    const char *name;
    float **at;
    size_t n;
};

/* Floats of a table of `a` whose heads are `head` apart. */
static size_t table_floats(const struct attn *a, ptrdiff_t head, int width)
{
    const ptrdiff_t rows = (ptrdiff_t)(a->R + a->Rf) * width;

    return (size_t)(head ? (a->H - 1) * head + rows : rows);
}

/* From the first entry of its dense term to the last. */
static size_t dense_floats(const struct attn *a)
{
    return (size_t)(attn_dense_at(&a->add, a->B - 1, a->H - 1, a->L - 1) + attn_keys(a));
}

static void list_operands(struct operand out[OPERANDS], struct attn_job *t)
{
    const struct attn *a = &t->attn;
    struct attn_grad *d = &t->d;
    const size_t row = (size_t)a->H * (size_t)a->dh, B = (size_t)a->B;
    const size_t queries = B * (size_t)a->L * row, rows = B * (size_t)attn_keys(a) * (size_t)a->Hkv;
    const size_t asked = a->no_content ? 0 : 1; /* are there queries and keys? */
    const size_t keys = rows * (size_t)a->dh, values = rows * (size_t)attn_dv(a);
    const size_t mix = (size_t)a->H * (size_t)a->H, sinks = (size_t)a->sinks;
#define X(which, of, member, n) [which] = {#member, &of->member, n},
    const struct operand all[OPERANDS] = {OPERAND_LIST(X)};
#undef X

    memcpy(out, all, sizeof(all));
}

static double bytes(const struct job *j) { return attn_bytes(&j->attn.attn); }

static enum status bind_grad(struct job *j, struct err *e)
{
    struct attn_job *t = &j->attn;
    struct arena *a = &j->arena;
    struct operand list[OPERANDS];

    TRY(engine_attn_backward(&j->engine, t->impl, e));
    list_operands(list, t);
    for (int i = 0; i < OPERANDS; i++)
        *list[i].at = list[i].n ? arena_f32(a, PART_GRADIENTS, list[i].n) : NULL;
    if (t->attn.fade.at)
        t->d.d_fade = arena_take(a, PART_GRADIENTS, sums_of(&t->attn) * sizeof(*t->d.d_fade));
    t->d_o = arena_f32(a, PART_GRADIENTS, j->n_out);
    t->d.d_o = t->d_o;
    const struct attn asked = masks_placeholder(&t->attn);
    t->scratch_grad = take_scratch(a, t->impl->need_backward(&asked, j->engine.threads));
    return OK;
}

static void fill_grad(struct job *j) { job_draw(j, "d_o", j->attn.d_o, j->n_out); }

/* By any implementation; gradients that are added to start from zero. */
static void backward_by(struct attn_job *t, const struct attn_impl *impl, const struct engine *g,
                        void *scratch)
{
    struct operand list[OPERANDS];

    list_operands(list, t);
    for (int i = WRITTEN; i < OPERANDS; i++)
        if (list[i].n)
            memset(*list[i].at, 0, list[i].n * sizeof(float));
    const size_t sums = t->d.d_fade ? sums_of(&t->attn) : 0;
    for (size_t x = 0; x < sums; x++)
        t->d.d_fade[x] = 0;
    impl->backward(g, &t->attn, &t->d, scratch);
    for (size_t x = 0; x < sums; x++)
        t->d_fade[x] = (float)t->d.d_fade[x];
}

static void backward(struct job *j, const struct engine *g)
{
    backward_by(&j->attn, j->attn.impl, g, j->attn.scratch_grad);
}

static enum status reference_backward(struct job *j, const struct engine *ref, struct err *e)
{
    struct reference_impl with;
    size_t need = 0;

    TRY(job_find_reference_impl(&with, &j->attn.attn, ref, &need, e));
    TRY(job_reference_scratch(&with.scratch, need, e));
    backward_by(&j->attn, with.impl, ref, with.scratch);
    free(with.scratch);
    return OK;
}

static double largest(const float *x, size_t n)
{
    double most = 0;

    for (size_t i = 0; x && i < n; i++)
        most = fmax(most, fabs((double)x[i]));
    return most;
}

/* Of the gradients of scores, p (dA - delta): the largest delta = dO . O of a query, and the sum of
 * a head's. A query's terms p dA add up to delta, hence are as large at least. */
static void score_terms(const struct attn_job *t, double *one, double *all)
{
    const struct attn *a = &t->attn;
    const int dv = attn_dv(a);

    *one = *all = 0;
    for (int h = 0; h < a->H; h++) {
        double sum = 0;
        for (int r = 0; r < a->B * a->L; r++) {
            const ptrdiff_t at =
                r / a->L * a->o_at.batch + r % a->L * a->o_at.row + (ptrdiff_t)h * dv;
            double delta = 0;
            for (int e = 0; e < dv; e++)
                delta += (double)t->d_o[at + e] * (double)a->o[at + e];
            *one = fmax(*one, fabs(delta));
            sum += fabs(delta);
        }
        *all = fmax(*all, sum);
    }
}

/* Size of the terms of operand i's gradient. Its elements are sums over the keys of a query, over
 * the queries of a key, or over all of both. */
static double terms_of(const struct attn_job *t, int i, const struct operand *list)
{
    const struct attn *a = &t->attn;
    const double q = fabs((double)a->scale) * largest(a->q, list[D_Q].n);
    const double k = fabs((double)a->scale) * largest(a->k, list[D_K].n);
    double one, all;

    score_terms(t, &one, &all);
    switch (i) {
    case D_Q:
        return one * k;
    case D_K:
    case D_SINK_K:
        return one * q;
    case D_U:
    case D_W:
        return all * k;
    case D_REL_K: /* one row may be of all pairs */
        return (a->R + a->Rf == 1 ? all : one) * q;
    case D_REL_Q:
        return (a->R + a->Rf == 1 ? all : one) * k;
    case D_ADD:
    case D_FADE:
        return one;
    case D_BIAS:
    case D_MIX_LOGITS:
    case D_SINK_LOGIT:
        return all;
    default: /* sums of p, which do not cancel */
        return 0;
    }
}

static bool gradient(const struct job *j, int i, struct gradient *out)
{
    struct attn_job attn = j->attn;
    struct operand list[OPERANDS];

    if (i >= OPERANDS)
        return false;
    list_operands(list, &attn);
    *out = (struct gradient){list[i].name, *list[i].at, list[i].n,
                             .terms = list[i].n ? terms_of(&attn, i, list) : 0};
    return true;
}

static void poison(struct job *j)
{
    struct operand list[OPERANDS];

    list_operands(list, &j->attn);
    for (int i = 0; i < WRITTEN; i++)
        for (size_t n = 0; n < list[i].n; n++)
            (*list[i].at)[n] = NAN;
}

/* ---- the row ------------------------------------------------------------------------------- */

static double flop(const struct job *j) { return attn_flop(&j->attn.attn); }

static double flop_grad(const struct job *j) { return attn_grad_flop(&j->attn.attn); }

/* Operands once, and their gradients as often. */
static size_t predicted_bytes(const struct job *j)
{
    const double forward_bytes = bytes(j);

    return (size_t)(j->bcase->phase == PHASE_FWD_BWD ? 2 * forward_bytes : forward_bytes);
}

static void impl(const struct job *j, char names[IMPL_TEXT])
{
    impl_add(names, j->attn.impl->name, job_goes_backward(j) ? j->attn.impl->backward_by : NULL);
}

static void close_attn(struct job *j) { params_free(&j->attn.params); }

const struct workload_ops workload_attn = {
    .err_limit = 2e-5,
    WORKLOAD_HOOKS,
    .flop_of_rows = flop,
    .bytes_grad = bytes,
    .reference_backward = reference_backward,
    .poison = poison,
    .close = close_attn,
};
