/* SPDX-License-Identifier: MIT
 *
 * Cells with a backward pass: attn and layer forward and backward, and one training step of a
 * model. A run starts its gradients from zero, because backward passes add to them, and leaves
 * everything else as it found it: the training step is taken with a learning rate of 0, so AdamW
 * reads and writes every moment and every weight, and the weights keep their bits. Thousands of
 * timed steps are thus the same step, and nothing can drift away or become NaN. */
#include "job_inner.h"

#include <string.h>

static const double CLIP = 0.25, LEARNING_RATE = 0, WEIGHT_DECAY = 0.01;

/* ---- attn --------------------------------------------------------------------------------- */

/* Floats of a table of `a` that is as far apart from head to head as `head` says. */
static size_t table_floats(const struct attn *a, ptrdiff_t head, int width)
{
    const ptrdiff_t rows = (ptrdiff_t)(a->R + a->Rf) * width;

    return (size_t)(head ? (a->H - 1) * head + rows : rows);
}

/* From the first entry of its dense term to the last. */
static size_t dense_floats(const struct attn *a)
{
    return (size_t)(attn_dense_at(&a->add, a->B - 1, a->H - 1, a->L - 1) + a->M + a->L);
}

void job_operands(struct operand out[ATTN_OPERANDS], struct attn_job *t)
{
    const struct attn *a = &t->attn;
    struct attn_grad *d = &t->d;
    const size_t row = (size_t)a->H * (size_t)a->dh, B = (size_t)a->B;
    const size_t queries = B * (size_t)a->L * row,
                 keys = B * (size_t)(a->L + a->M) * (size_t)a->Hkv * (size_t)a->dh;
    const size_t mix = (size_t)a->H * (size_t)a->H;
    const struct operand all[ATTN_OPERANDS] = {
        {"d_q", &d->d_q, queries},
        {"d_k", &d->d_k, keys},
        {"d_v", &d->d_v, keys},
        {"d_u", &d->d_u, a->u ? row : 0},
        {"d_w", &d->d_w, a->w ? row : 0},
        {"d_rel_k", &d->d_rel_k, a->rel_k ? table_floats(a, a->rel_head, a->dh) : 0},
        {"d_rel_v", &d->d_rel_v, a->rel_v ? table_floats(a, a->rel_head, a->dh) : 0},
        {"d_bias", &d->d_bias, a->bias && t->trained ? table_floats(a, a->bias_head, 1) : 0},
        {"d_rel_q", &d->d_rel_q, a->rel_q ? table_floats(a, a->rel_head, a->dh) : 0},
        {"d_add", &d->d_add, a->add.at ? dense_floats(a) : 0},
        {"d_mix_logits", &d->d_mix_logits, a->mix_logits ? mix : 0},
        {"d_mix_probs", &d->d_mix_probs, a->mix_probs ? mix : 0},
        {"d_sink_k", &d->d_sink_k, row * (size_t)a->sinks},
        {"d_sink_v", &d->d_sink_v, row * (size_t)a->sinks},
    };

    memcpy(out, all, sizeof(all));
}

static enum status bind_attn(struct job *j, struct err *e)
{
    struct attn_job *t = &j->attn;
    struct arena *a = &j->arena;
    struct operand list[ATTN_OPERANDS];
    const enum status st = engine_attn_backward(&j->engine, t->impl, e);

    if (st != OK)
        return st;
    job_operands(list, t);
    for (int i = 0; i < ATTN_OPERANDS; i++)
        *list[i].at = list[i].n ? arena_f32(a, PART_GRADIENTS, list[i].n) : NULL;
    t->d_o = arena_f32(a, PART_GRADIENTS, j->n_out);
    t->d.d_o = t->d_o;
    const struct attn_need need = t->impl->need_backward(&t->attn, j->engine.threads);
    t->scratch_grad = arena_take(a, PART_SCORES, need.scores_bytes + need.scratch_bytes);
    a->part[PART_SCORES] -= need.scratch_bytes;
    a->part[PART_SCRATCH] += need.scratch_bytes;
    j->predicted_bytes = (size_t)(attn_bytes(&t->attn) + job_grad_bytes(j));
    return OK;
}

void job_attn_backward(struct attn_job *t, const struct attn_impl *impl, const struct engine *g,
                       void *scratch)
{
    struct operand list[ATTN_OPERANDS];

    job_operands(list, t);
    for (int i = ATTN_WRITTEN; i < ATTN_OPERANDS; i++)
        if (list[i].n)
            memset(*list[i].at, 0, list[i].n * sizeof(float));
    impl->backward(g, &t->attn, &t->d, scratch);
}

/* ---- layer -------------------------------------------------------------------------------- */

static enum status bind_layer(struct job *j, struct err *e)
{
    struct layer_job *t = &j->layer;
    const enum status st = sublayers_bind_grad(&t->sublayers, &j->engine, &j->arena, e);

    if (st != OK)
        return st;
    params_place_grad(&t->params, &j->arena);
    t->x = sublayers_input(&t->sublayers, NULL);
    t->d_z = arena_f32(&j->arena, PART_GRADIENTS, j->n_out);
    t->d = arena_f32(&j->arena, PART_GRADIENTS, j->n_out);
    return OK;
}

static void layer_backward(struct job *j, const struct engine *g)
{
    struct layer_job *t = &j->layer;

    params_zero_grad(&t->params);
    memcpy(t->d, t->d_z, j->n_out * sizeof(float));
    sublayers_backward(&t->sublayers, g, t->d, j->shape.B, j->shape.L);
}

/* ---- train -------------------------------------------------------------------------------- */

static enum status bind_train(struct job *j, struct err *e)
{
    struct lm_job *t = &j->lm;
    const enum status st = lm_bind_grad(&t->lm, &j->engine, &j->arena, e);

    if (st != OK)
        return st;
    t->adam.weight_decay = WEIGHT_DECAY;
    adam_bind(&t->adam, &t->lm.params, &j->arena);
    return OK;
}

static void train_backward(struct job *j, const struct engine *g)
{
    struct lm_job *t = &j->lm;

    params_zero_grad(&t->lm.params);
    lm_backward(&t->lm, g, t->tokens, t->targets, j->shape.B, j->shape.L);
}

/* What a trainer does with the gradients; see the head of this file for the learning rate. Memory
 * is not committed: the next step finds it as this one did. */
static void optimise(struct job *j)
{
    struct lm_job *t = &j->lm;
    const double norm = grad_norm(&t->lm.params, j->engine.threads);

    adam_step(&t->adam, &t->lm.params, LEARNING_RATE, norm > CLIP ? CLIP / norm : 1,
              j->engine.threads);
    lm_build_tables(&t->lm, &j->engine);
}

/* ---- all three ---------------------------------------------------------------------------- */

enum status job_bind_grad(struct job *j, struct err *e)
{
    switch (j->bcase->workload) {
    case WORK_ATTN:
        return bind_attn(j, e);
    case WORK_LAYER:
        return bind_layer(j, e);
    default:
        return bind_train(j, e);
    }
}

void job_fill_grad(struct job *j)
{
    if (j->bcase->workload == WORK_ATTN)
        job_draw(j, "d_o", j->attn.d_o, j->n_out);
    else if (j->bcase->workload == WORK_LAYER)
        job_draw(j, "d_z", j->layer.d_z, j->n_out);
    else
        adam_reset(&j->lm.adam, &j->lm.lm.params);
}

void job_backward(struct job *j, const struct engine *g)
{
    switch (j->bcase->workload) {
    case WORK_ATTN:
        job_attn_backward(&j->attn, j->attn.impl, g, j->attn.scratch_grad);
        break;
    case WORK_LAYER:
        layer_backward(j, g);
        break;
    default:
        train_backward(j, g);
    }
}

void job_run_grad(struct job *j)
{
    job_backward(j, &j->engine);
    if (j->bcase->workload == WORK_TRAIN)
        optimise(j);
}

/* W_r R is made again in every training step, and its gradient goes through it in a layer too. */
static double lowering(const struct job *j)
{
    const struct pos *pos = j->config.pos;

    return pos->build_tables_flop ? pos->build_tables_flop(&j->config, j->shape.L + j->shape.M) : 0;
}

double job_grad_flop(const struct job *j)
{
    const struct extent s = j->shape;

    switch (j->bcase->workload) {
    case WORK_ATTN:
        return attn_grad_flop(&j->attn.attn);
    case WORK_LAYER:
        return sublayers_grad_flop(&j->layer.sublayers, s.B, s.L, s.M) + lowering(j);
    default:
        return lm_grad_flop(&j->lm.lm, s.B, s.L, s.M) +
               2 * sublayers_attentions(job_sublayers(j)) * lowering(j);
    }
}

/* Each once, as of forward: the gradients of all that forward read and wrote, and both moments. */
double job_grad_bytes(const struct job *j)
{
    if (j->bcase->workload == WORK_ATTN)
        return attn_bytes(&j->attn.attn);
    return (double)j->arena.part[PART_GRADIENTS] + (double)j->arena.part[PART_OPTIMIZER];
}
