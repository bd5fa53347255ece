/* SPDX-License-Identifier: MIT
 *
 * The workloads of a whole model: segment and decode, which differ in their sizes only, encdec,
 * which reads a source of --mem tokens with an encoder and --seq tokens of its translation, and
 * train, one training step. The step has a learning rate of 0, so AdamW reads and writes every moment and
 * every weight, and the weights keep their bits. Thousands of timed steps are thus the same step,
 * and no value can drift or become NaN. */
#include "workload.h"

static const double CLIP = 0.25, LEARNING_RATE = 0, WEIGHT_DECAY = 0.01;

/* ---- all of them ----------------------------------------------------------------------------- */

static enum status declare(struct job *j, struct err *e)
{
    j->params = &j->lm.lm.params;
    j->list[0] = &j->lm.lm.sublayers;
    return lm_init(&j->lm.lm, &j->config, e);
}

/* With `n_scored` positions that have a target. */
static enum status bind_model(struct job *j, int n_scored, struct err *e)
{
    struct lm_job *t = &j->lm;
    const struct extent s = j->shape;
    struct arena *a = &j->arena;

    TRY(lm_bind(&t->lm, &j->engine, j->kind, s, a, e));
    t->tokens = arena_take(a, PART_ACTIVATIONS, job_elements(s.B, s.L, 1) * sizeof(int32_t));
    t->targets = arena_take(a, PART_ACTIVATIONS, job_elements(s.B, s.L, 1) * sizeof(int32_t));
    t->nll = arena_f32(a, PART_ACTIVATIONS, job_elements(s.B, s.L, 1));
    t->n_scored = n_scored;
    return OK;
}

static void fill(struct job *j)
{
    struct lm_job *t = &j->lm;
    const size_t n = job_elements(j->shape.B, j->shape.L, 1);

    lm_build_tables(&t->lm, &j->engine);
    job_fill_memories(j, &t->lm.sublayers, t->lm.h);
    lm_seek(&t->lm, j->shape.M);
    job_draw_tokens(j, "tokens", t->tokens, n);
    job_draw_tokens(j, "targets", t->targets, n);
}

static void forward(struct job *j)
{
    struct lm_job *t = &j->lm;

    lm_forward(&t->lm, &j->engine, t->tokens, j->shape.B, j->shape.L, t->n_scored, t->targets,
               t->nll);
}

static double flop(const struct job *j)
{
    return lm_flop(&j->lm.lm, j->shape.B, j->shape.L, j->shape.M, j->lm.n_scored);
}

static size_t predicted_bytes(const struct job *j)
{
    return job_memory_bytes(j, &j->lm.lm.sublayers, j->shape.M) +
           4 * lm_carried(&j->lm.lm, j->shape.B);
}

static void impl(const struct job *j, char names[IMPL_TEXT])
{
    lm_impl(&j->lm.lm, job_goes_backward(j), names);
}

static void close_model(struct job *j)
{
    optimizer_free(&j->lm.optimizer);
    lm_free(&j->lm.lm);
}

/* ---- segment, decode ----------------------------------------------------------------------- */

/* Scores the new tokens: recompute runs the past with them. */
static enum status bind_evaluation(struct job *j, struct err *e)
{
    TRY(bind_model(j, j->bcase->seq, e));
    if (lm_has_logits(&j->lm.lm))
        job_set_output(j, j->lm.lm.logits, j->bcase->seq, j->config.V);
    else
        job_set_output(j, j->lm.nll, j->bcase->seq, 1);
    return OK;
}

/* Only the rows that are read count of an embedding that is not also the output. */
static double bytes(const struct job *j)
{
    return job_bytes_of_weights(j) + 4.0 * (double)j->n_out -
           lm_unread_bytes(&j->lm.lm, j->shape.B * j->shape.L);
}

#define EVALUATION                                                                                 \
    {                                                                                              \
        .err_limit = 1e-4, .declare = declare, .bind = bind_evaluation, .fill = fill,              \
        .forward = forward, .flop = flop, .bytes = bytes, .predicted_bytes = predicted_bytes,      \
        .impl = impl, .close = close_model,                                                        \
    }

const struct workload_ops workload_segment = EVALUATION;
const struct workload_ops workload_decode = EVALUATION;

/* ---- train --------------------------------------------------------------------------------- */

/* The losses are the output: backward overwrites the logits. */
static enum status bind_training(struct job *j, struct err *e)
{
    TRY(bind_model(j, j->shape.L, e));
    job_set_output(j, j->lm.nll, j->shape.L, 1);
    return OK;
}

static enum status bind_grad(struct job *j, struct err *e)
{
    struct lm_job *t = &j->lm;

    TRY(lm_bind_grad(&t->lm, &j->engine, &j->arena, e));
    t->optimizer.weight_decay = WEIGHT_DECAY;
    t->optimizer.decays = 1u << PARAM_MATRICES | 1u << PARAM_OUTPUT;
    optimizer_bind(&t->optimizer, &t->lm.params, &j->arena);
    return OK;
}

static void fill_grad(struct job *j) { optimizer_reset(&j->lm.optimizer, &j->lm.lm.params); }

static void backward(struct job *j, const struct engine *g)
{
    struct lm_job *t = &j->lm;

    params_zero_grad(&t->lm.params);
    lm_backward(&t->lm, g, t->tokens, t->targets, j->shape.B, j->shape.L);
}

/* What a trainer does with the gradients; the head of this file explains the learning rate. Memory
 * is not committed: every step starts from the same memory. */
static void optimise(struct job *j)
{
    struct lm_job *t = &j->lm;
    const double norm = grad_norm(&t->lm.params, j->engine.threads);

    optimizer_step(&t->optimizer, &t->lm.params, &j->engine, LEARNING_RATE,
                   norm > CLIP ? CLIP / norm : 1);
    lm_build_tables(&t->lm, &j->engine);
}

static double flop_grad(const struct job *j)
{
    return lm_grad_flop(&j->lm.lm, j->shape.B, j->shape.L, j->shape.M) +
           2 * sublayers_attentions(&j->lm.lm.sublayers) *
               job_tables_flop(j, j->shape.L + j->shape.M);
}

/* The whole embedding: the optimiser reads all of it. */
static double train_bytes(const struct job *j)
{
    return job_bytes_of_weights(j) + 4.0 * (double)j->n_out;
}

const struct workload_ops workload_train = {
    .err_limit = 1e-4,
    .declare = declare,
    .bind = bind_training,
    .bind_grad = bind_grad,
    .fill = fill,
    .fill_grad = fill_grad,
    .forward = forward,
    .backward = backward,
    .finish = optimise,
    .flop = flop,
    .flop_grad = flop_grad,
    .bytes = train_bytes,
    .predicted_bytes = predicted_bytes,
    .impl = impl,
    .close = close_model,
};

/* ---- encdec -------------------------------------------------------------------------------- */

static enum status declare_encdec(struct job *j, struct err *e)
{
    TRY(declare(j, e));
    j->list[1] = j->lm.lm.drive->layers(&j->lm.lm);
    return OK;
}

static enum status bind_encdec(struct job *j, struct err *e)
{
    struct lm_job *t = &j->lm;
    const size_t n = job_elements(j->shape.B, j->shape.M, 1);

    t->source = arena_take(&j->arena, PART_ACTIVATIONS, n * sizeof(int32_t));
    t->lm.source = t->source;
    return job_goes_backward(j) ? bind_training(j, e) : bind_evaluation(j, e);
}

static void fill_encdec(struct job *j)
{
    fill(j);
    job_draw_tokens(j, "source", j->lm.source, job_elements(j->shape.B, j->shape.M, 1));
}

static enum status bind_encdec_grad(struct job *j, struct err *e)
{
    return lm_bind_grad(&j->lm.lm, &j->engine, &j->arena, e);
}

static double encdec_bytes(const struct job *j)
{
    return job_bytes_of_weights(j) + 4.0 * (double)j->n_out -
           lm_unread_bytes(&j->lm.lm, j->shape.B * (j->shape.L + j->shape.M));
}

static double encdec_flop_grad(const struct job *j)
{
    return lm_grad_flop(&j->lm.lm, j->shape.B, j->shape.L, j->shape.M) +
           sublayers_attentions(&j->lm.lm.sublayers) * job_tables_flop(j, j->shape.L) +
           sublayers_attentions(j->list[1]) * job_tables_flop(j, j->shape.M);
}

const struct workload_ops workload_encdec = {
    .err_limit = 1e-4,
    .declare = declare_encdec,
    .bind = bind_encdec,
    .bind_grad = bind_encdec_grad,
    .fill = fill_encdec,
    .forward = forward,
    .backward = backward,
    .flop = flop,
    .flop_grad = encdec_flop_grad,
    .bytes = encdec_bytes,
    .predicted_bytes = predicted_bytes,
    .impl = impl,
    .close = close_model,
};
