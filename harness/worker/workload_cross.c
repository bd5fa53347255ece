/* SPDX-License-Identifier: MIT
 *
 * The workload cross: --seq queries attend to a context of --mem rows of another sequence, whose
 * keys and values are projected in every run (hidden) or were projected before (kv). */
#include "workload.h"

static bool cached(const struct job *j) { return j->kind == MEM_KV; }

/* ---- forward ------------------------------------------------------------------------------- */

static enum status declare(struct job *j, struct err *e)
{
    struct cross_job *const o = &j->cross;
    const struct config *const c = &j->config;

    TRY(config_check(c, e));
    CHECK(config_can_cross(c));
    j->params = &o->params;
    cross_params(c, c->D, "", &o->params);
    o->t = (struct cross){
        .c = c, .B = j->shape.B, .L = j->shape.L, .S = j->shape.M, .ctx_width = c->D};
    return OK;
}

static size_t rows_floats(const struct job *j, int rows)
{
    return job_elements(j->shape.B, rows, j->config.D);
}

static enum status bind(struct job *j, struct err *e)
{
    struct cross_job *const o = &j->cross;
    struct arena *const a = &j->arena;
    const struct extent s = j->shape;
    const bool backward = j->bcase->phase == PHASE_FWD_BWD;

    params_place(&o->params, a);
    params_place_packed(&o->params, &j->engine, s.B * max_int(s.L, s.M), a);
    o->t.weights = o->params.v;
    o->x = arena_f32(a, PART_ACTIVATIONS, rows_floats(j, s.L));
    o->y = arena_f32(a, PART_ACTIVATIONS, rows_floats(j, s.L));
    o->ctx = arena_f32(a, cached(j) ? PART_SCRATCH : PART_MEMORY, rows_floats(j, s.M));
    job_set_output(j, o->y, s.L, j->config.D);
    return cross_bind(&o->t, &j->engine, cached(j) ? PART_MEMORY : PART_ACTIVATIONS, backward, a,
                      e);
}

static enum status bind_grad(struct job *j, struct err *e)
{
    struct cross_job *const o = &j->cross;
    struct arena *const a = &j->arena;

    params_place_grad(&o->params, a);
    o->d_y = arena_f32(a, PART_GRADIENTS, rows_floats(j, j->shape.L));
    o->d_x = arena_f32(a, PART_GRADIENTS, rows_floats(j, j->shape.L));
    o->d_ctx = arena_f32(a, PART_GRADIENTS, rows_floats(j, j->shape.M));
    return OK;
}

static void fill(struct job *j)
{
    const struct cross_job *const o = &j->cross;

    params_pack(&j->cross.params, &j->engine);
    job_draw(j, "x", o->x, rows_floats(j, j->shape.L));
    job_draw(j, "ctx", o->ctx, rows_floats(j, j->shape.M));
    if (cached(j))
        cross_context(&j->engine, &o->t, o->ctx);
}

static void fill_grad(struct job *j) { job_draw(j, "d_y", j->cross.d_y, j->n_out); }

static void forward(struct job *j)
{
    const struct cross_job *const o = &j->cross;

    if (!cached(j))
        cross_context(&j->engine, &o->t, o->ctx);
    cross_forward(&j->engine, &o->t, o->y, o->x);
}

/* ---- backward ------------------------------------------------------------------------------ */

static void backward(struct job *j, const struct engine *g)
{
    struct cross_job *const o = &j->cross;

    params_zero_grad(&o->params);
    cross_backward(g, &o->t, o->d_x, o->d_ctx, o->d_y, o->x, o->ctx);
}

static enum status reference_backward(struct job *j, const struct engine *ref, struct err *e)
{
    struct cross *const t = &j->cross.t;
    const struct cross own = *t;
    const struct attn like = cross_attn(t);
    struct reference_impl with;
    size_t need = 0;

    TRY(job_find_reference_impl(&with, &like, ref, &need, e));
    TRY(job_reference_scratch(&with.scratch, need, e));
    t->impl = with.impl;
    t->d_scratch = with.scratch;
    backward(j, ref);
    *t = own;
    free(with.scratch);
    return OK;
}

/* Gradients of the parameters, then those of the rows and of the context. */
static bool gradient(const struct job *j, int i, struct gradient *out)
{
    const struct cross_job *const o = &j->cross;
    const int after = i - o->params.n;

    if (after < 0)
        return job_param_gradient(&o->params, i, out);
    *out = after == 0 ? (struct gradient){"d_x", o->d_x, rows_floats(j, j->shape.L), false}
                      : (struct gradient){"d_ctx", o->d_ctx, rows_floats(j, j->shape.M), false};
    return after < 2;
}

static void poison(struct job *j)
{
    const struct cross_job *const o = &j->cross;
    const struct cross *const t = &o->t;
    const size_t q = job_elements(t->B, t->L, config_q_width(t->c));
    const size_t k = job_elements(t->B, t->S, config_kv_width(t->c));
    const struct {
        float *at;
        size_t n;
    } all[] = {{t->d_q, q},
               {t->d_o, q},
               {t->d_k, k},
               {t->d_v, k},
               {o->d_x, rows_floats(j, t->L)},
               {o->d_ctx, rows_floats(j, t->S)}};

    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        for (size_t n = 0; n < all[i].n; n++)
            all[i].at[n] = NAN;
}

/* ---- cost ---------------------------------------------------------------------------------- */

static double flop(const struct job *j)
{
    return cross_flop(&j->cross.t) + (cached(j) ? 0 : cross_context_flop(&j->cross.t));
}

static double flop_grad(const struct job *j) { return cross_grad_flop(&j->cross.t); }

/* Weights, the context or what is cached of it, input and output. What is cached needs no weights
 * any more. */
static double bytes(const struct job *j)
{
    const struct param *const w = j->cross.params.v;
    const double unread = cached(j) ? (double)(w[ATTN_K].n + w[ATTN_V].n) : 0;

    return job_bytes_of_weights(j) - 4 * unread + 2 * 4.0 * (double)rows_floats(j, j->shape.L);
}

static size_t predicted_bytes(const struct job *j)
{
    return 4 * job_elements(j->shape.B, j->shape.M,
                            cached(j) ? 2 * config_kv_width(&j->config) : j->config.D);
}

static void impl(const struct job *j, char names[IMPL_TEXT])
{
    impl_add(names, j->cross.t.impl->name,
             job_goes_backward(j) ? j->cross.t.impl->backward_by : NULL);
}

static void close_cross(struct job *j) { params_free(&j->cross.params); }

const struct workload_ops workload_cross = {
    .err_limit = 1e-4,
    WORKLOAD_HOOKS,
    .reference_backward = reference_backward,
    .poison = poison,
    .close = close_cross,
};
