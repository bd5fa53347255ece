/* SPDX-License-Identifier: MIT
 *
 * The workload layer: the sub-layers of one layer on a random stream with random context. */
#include "workload.h"

#include "variants/model/attention/sublayer_attention.h"

static enum status declare(struct job *j, struct err *e)
{
    struct params *const p = j->params = &j->layer.params;

    j->list[0] = &j->layer.sublayers;
    TRY(config_check(&j->config, e));
    sublayers_model_params(&j->config, p);
    sublayers_init(&j->layer.sublayers, &j->config, p, 0);
    return OK;
}

static enum status bind(struct job *j, struct err *e)
{
    struct layer_job *t = &j->layer;
    const struct extent s = j->shape;
    const size_t n = job_elements(s.B, s.L, j->config.D);
    struct arena *a = &j->arena;

    params_place(&t->params, a);
    params_place_packed(&t->params, &j->engine, s.B * s.L, a);
    TRY(sublayers_bind(&t->sublayers, &j->engine, &t->params, j->kind, s, a, e));
    if (j->bcase->phase == PHASE_FWD)
        t->x = arena_f32(a, PART_ACTIVATIONS, n);
    t->z = arena_f32(a, PART_ACTIVATIONS, n);
    t->given = j->config.pos->enter ? arena_f32(a, PART_ACTIVATIONS, n) : NULL;
    job_set_output(j, t->z, s.L, j->config.D);
    return OK;
}

static enum status bind_grad(struct job *j, struct err *e)
{
    struct layer_job *t = &j->layer;

    TRY(sublayers_bind_grad(&t->sublayers, &j->engine, &j->arena, e));
    params_place_grad(&t->params, &j->arena);
    t->x = sublayers_input(&t->sublayers, NULL);
    t->d_z = arena_f32(&j->arena, PART_GRADIENTS, j->n_out);
    t->d = arena_f32(&j->arena, PART_GRADIENTS, j->n_out);
    return OK;
}

static void fill(struct job *j)
{
    struct layer_job *t = &j->layer;

    if (j->config.pos->pos_encoding)
        j->config.pos->pos_encoding(&j->config, 0, j->shape.L + j->shape.M,
                                    t->sublayers.pos_encoding);
    params_pack(&t->params, &j->engine);
    sublayers_build_tables(&t->sublayers, &j->engine);
    job_fill_memories(j, &t->sublayers, t->x);
    job_draw(j, "x", t->given ? t->given : t->x, j->n_out);
}

static void fill_grad(struct job *j) { job_draw(j, "d_z", j->layer.d_z, j->n_out); }

static void forward(struct job *j)
{
    struct layer_job *t = &j->layer;

    if (t->given)
        memcpy(t->x, t->given, j->n_out * sizeof(float));
    sublayers_forward(&t->sublayers, &j->engine, t->z, t->x, j->shape.B, j->shape.L);
}

static void backward(struct job *j, const struct engine *g)
{
    struct layer_job *t = &j->layer;

    params_zero_grad(&t->params);
    memcpy(t->d, t->d_z, j->n_out * sizeof(float));
    sublayers_backward(&t->sublayers, g, t->d, j->shape.B, j->shape.L);
}

static double flop(const struct job *j)
{
    return sublayers_flop(&j->layer.sublayers, j->shape.B, j->shape.L, j->shape.M);
}

static double flop_grad(const struct job *j)
{
    return sublayers_grad_flop(&j->layer.sublayers, j->shape.B, j->shape.L, j->shape.M) +
           job_tables_flop(j, j->shape.L + j->shape.M);
}

static double flop_of_rows(const struct job *j)
{
    const struct sublayer *s = sublayers_row_by_row(&j->layer.sublayers);

    if (!s)
        return 0;
    const struct attn a = attention_for_flop(s, j->shape.B, j->shape.L, j->shape.M);
    return attn_flop(&a);
}

/* Weights, tables, memory, input and output. */
static double bytes(const struct job *j)
{
    return job_bytes_of_weights(j) + 2 * 4.0 * j->shape.B * j->shape.L * j->config.D;
}

static size_t predicted_bytes(const struct job *j)
{
    return job_memory_bytes(j, &j->layer.sublayers, j->shape.M);
}

static void impl(const struct job *j, char names[IMPL_TEXT])
{
    sublayers_impl(&j->layer.sublayers, job_goes_backward(j), names);
}

/* Gradients of the parameters, then that of the input. */
static bool gradient(const struct job *j, int i, struct gradient *out)
{
    const int at_input = j->layer.params.n;

    if (i != at_input)
        return job_param_gradient(&j->layer.params, i, out);
    *out = (struct gradient){"d_x", j->layer.d, j->n_out, 0};
    return true;
}

static void close_layer(struct job *j)
{
    params_free(&j->layer.params);
    sublayers_free(&j->layer.sublayers);
}

const struct workload_ops workload_layer = {
    .err_limit = 1e-4,
    WORKLOAD_HOOKS,
    .flop_of_rows = flop_of_rows,
    .close = close_layer,
};
