/* SPDX-License-Identifier: MIT
 *
 * Cells with a backward pass: attn and layer forward and backward, and one training step of a
 * model. A run starts its gradients from zero, because backward passes add to them, and leaves
 * everything else as it found it: the training step is taken with a learning rate of 0, so AdamW
 * reads and writes every moment and every weight, and the weights keep their bits. Thousands of
 * timed steps are thus the same step, and nothing can drift away or become NaN. */
#include "job_inner.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Gradients that are not a parameter's; of attention's the first are written, others added to. */
enum { LAYER_INPUT = 1, ATTN_OPERANDS = 8, ATTN_WRITTEN = 3 };
static const double CLIP = 0.25, LEARNING_RATE = 0, WEIGHT_DECAY = 0.01;

/* ---- attn --------------------------------------------------------------------------------- */

/* Floats of a table of `a` that is as far apart from head to head as `head` says. */
static size_t table_floats(const struct attn *a, ptrdiff_t head, int width)
{
    const ptrdiff_t rows = (ptrdiff_t)(a->R + a->Rf) * width;

    return (size_t)(head ? (a->H - 1) * head + rows : rows);
}

/* The gradients of one attention call, each with its name and its length; 0 = no such term. */
struct operand {
    const char *name;
    float **at;
    size_t n;
};

static void operands(struct operand out[ATTN_OPERANDS], struct attn_job *t)
{
    const struct attn *a = &t->attn;
    struct attn_grad *d = &t->d;
    const size_t row = (size_t)a->H * (size_t)a->dh, B = (size_t)a->B;
    const size_t queries = B * (size_t)a->L * row, keys = B * (size_t)(a->L + a->M) * row;
    const struct operand all[ATTN_OPERANDS] = {
        {"d_q", &d->d_q, queries},
        {"d_k", &d->d_k, keys},
        {"d_v", &d->d_v, keys},
        {"d_u", &d->d_u, a->u ? row : 0},
        {"d_w", &d->d_w, a->w ? row : 0},
        {"d_rel_k", &d->d_rel_k, a->rel_k ? table_floats(a, a->rel_head, a->dh) : 0},
        {"d_rel_v", &d->d_rel_v, a->rel_v ? table_floats(a, a->rel_head, a->dh) : 0},
        {"d_bias", &d->d_bias, a->bias ? table_floats(a, a->bias_head, 1) : 0},
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
    operands(list, t);
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

/* d_q, d_k and d_v are written, terms are added to. */
static void attn_backward(struct attn_job *t, const struct attn_impl *impl, const struct engine *g,
                          void *scratch)
{
    struct operand list[ATTN_OPERANDS];

    operands(list, t);
    for (int i = ATTN_WRITTEN; i < ATTN_OPERANDS; i++)
        if (list[i].n)
            memset(*list[i].at, 0, list[i].n * sizeof(float));
    impl->backward(g, &t->attn, &t->d, scratch);
}

/* ---- layer -------------------------------------------------------------------------------- */

static enum status bind_layer(struct job *j, struct err *e)
{
    struct layer_job *t = &j->layer;
    const enum status st =
        work_grad_bind(&t->d_work, &j->engine, &t->block, j->shape, &j->arena, e);

    if (st != OK)
        return st;
    params_place_grad(&t->params, &j->arena);
    work_bind_kept(&t->kept, &t->work, true, &t->block, j->kind, j->shape, &j->arena);
    t->x = t->kept.x;
    t->d_z = arena_f32(&j->arena, PART_GRADIENTS, j->n_out);
    t->d = arena_f32(&j->arena, PART_GRADIENTS, j->n_out);
    return OK;
}

static void layer_backward(struct job *j, struct block *b, struct work_grad *d_w,
                           const struct engine *g)
{
    struct layer_job *t = &j->layer;

    params_zero_grad(&t->params);
    memcpy(t->d, t->d_z, j->n_out * sizeof(float));
    block_backward(g, b, j->kind, &t->kept, d_w, t->d, j->shape.B, j->shape.L);
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
    lm_lower(&t->lm, &j->engine);
}

/* ---- all three ---------------------------------------------------------------------------- */

enum status job_bind_grad(struct job *j, struct err *e)
{
    switch (j->cell->workload) {
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
    if (j->cell->workload == WORK_ATTN)
        job_draw(j, "d_o", j->attn.d_o, j->n_out);
    else if (j->cell->workload == WORK_LAYER)
        job_draw(j, "d_z", j->layer.d_z, j->n_out);
    else
        adam_reset(&j->lm.adam, &j->lm.lm.params);
}

void job_backward(struct job *j, const struct engine *g)
{
    switch (j->cell->workload) {
    case WORK_ATTN:
        attn_backward(&j->attn, j->attn.impl, g, j->attn.scratch_grad);
        break;
    case WORK_LAYER:
        layer_backward(j, &j->layer.block, &j->layer.d_work, g);
        break;
    default:
        train_backward(j, g);
    }
}

void job_run_grad(struct job *j)
{
    job_backward(j, &j->engine);
    if (j->cell->workload == WORK_TRAIN)
        optimise(j);
}

/* W_r R is made again in every training step, and its gradient goes through it in a layer too. */
static double lowering(const struct job *j)
{
    const struct pos *pos = j->config.pos;

    return pos->lower_flop ? pos->lower_flop(&j->config, j->shape.L + j->shape.M) : 0;
}

double job_grad_flop(const struct job *j)
{
    const struct extent s = j->shape;

    switch (j->cell->workload) {
    case WORK_ATTN:
        return attn_grad_flop(&j->attn.attn);
    case WORK_LAYER:
        return block_grad_flop(&j->layer.block, j->kind, s.B, s.L, s.M) + lowering(j);
    default:
        return lm_grad_flop(&j->lm.lm, s.B, s.L, s.M) + 2 * j->config.N * lowering(j);
    }
}

/* Each once, as of forward: the gradients of all that forward read and wrote, and both moments. */
double job_grad_bytes(const struct job *j)
{
    if (j->cell->workload == WORK_ATTN)
        return attn_bytes(&j->attn.attn);
    return (double)j->arena.part[PART_GRADIENTS] + (double)j->arena.part[PART_OPTIMIZER];
}

/* ---- the judge ---------------------------------------------------------------------------- */

static const struct params *params_of(const struct job *j)
{
    return j->cell->workload == WORK_LAYER ? &j->layer.params : &j->lm.lm.params;
}

/* The i-th gradient; false behind the last. */
static bool gradient(const struct job *j, int i, const char **name, const float **at, size_t *n)
{
    struct attn_job attn = j->attn;
    struct operand list[ATTN_OPERANDS];
    const struct params *p = params_of(j);

    if (j->cell->workload == WORK_ATTN) {
        if (i >= ATTN_OPERANDS)
            return false;
        operands(list, &attn);
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
    return j->cell->workload == WORK_LAYER && i < p->n + LAYER_INPUT;
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

/* Backward once by `ref`, with scratch as its attention wants it. */
static enum status backward_by(struct job *j, const struct engine *ref, struct err *e)
{
    const struct block *first = j->cell->workload == WORK_LAYER ? &j->layer.block : j->lm.lm.blocks;
    const struct attn like = j->cell->workload == WORK_ATTN ? j->attn.attn : first->lowered;
    const struct attn_impl *impl = NULL;
    enum status st = engine_attn(ref, &like, &impl, e);

    if (st == OK)
        st = engine_attn_backward(ref, impl, e);
    if (st != OK)
        return st;
    const struct attn_need need = impl->need_backward(&like, ref->threads);
    const size_t room = need.scores_bytes + need.scratch_bytes + ARENA_ALIGN;
    void *scratch = aligned_alloc(ARENA_ALIGN, room / ARENA_ALIGN * ARENA_ALIGN);
    if (!scratch)
        return fail(e, E_NOMEM, "no %zu bytes to judge gradients in  -> --no-check", room);
    if (j->cell->workload == WORK_ATTN) {
        attn_backward(&j->attn, impl, ref, scratch);
    } else if (j->cell->workload == WORK_LAYER) {
        struct block b = j->layer.block;
        struct work_grad d_w = j->layer.d_work;
        b.impl = impl;
        d_w.attn = scratch;
        layer_backward(j, &b, &d_w, ref);
    } else {
        struct lm *m = &j->lm.lm;
        const struct attn_impl *own = m->blocks[0].impl;
        void *const own_scratch = m->d_work.attn;
        m->d_work.attn = scratch;
        for (int l = 0; l < m->c.N; l++)
            m->blocks[l].impl = impl;
        train_backward(j, ref);
        m->d_work.attn = own_scratch;
        for (int l = 0; l < m->c.N; l++)
            m->blocks[l].impl = own;
    }
    free(scratch);
    return OK;
}

/* NaN for all that a backward pass writes; what it adds to starts from zero in each run. */
static void spoil(struct job *j)
{
    struct operand list[ATTN_OPERANDS];

    if (j->cell->workload == WORK_LAYER)
        work_grad_spoil(&j->layer.d_work, &j->layer.block, j->shape);
    if (j->cell->workload == WORK_TRAIN)
        work_grad_spoil(&j->lm.lm.d_work, j->lm.lm.blocks, j->lm.lm.max);
    if (j->cell->workload != WORK_ATTN)
        return;
    operands(list, &j->attn);
    for (int i = 0; i < ATTN_WRITTEN; i++)
        for (size_t n = 0; n < list[i].n; n++)
            (*list[i].at)[n] = NAN;
}

enum status job_expect_gradients(struct job *j, float **want, struct err *e)
{
    struct engine ref;

    *want = NULL;
    if (j->cell->phase == PHASE_FWD)
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
    spoil(j); /* the reference wrote where the cell will */
    return OK;
}

/* One gradient: its largest error, in units of its own largest entry or of `floor`. */
static void judge_one(struct agreement *a, const char *name, const float *got, const float *want,
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
    if (!(nmse <= a->nmse) && !isnan(a->nmse)) /* not a number stays */
        a->nmse = nmse;
    if (rel <= a->max_rel || isnan(a->max_rel))
        return;
    a->max_rel = rel;
    a->max_abs = worst;
    snprintf(a->at, sizeof(a->at), "gradient of %s[%zu]", name, at);
}

void job_judge_gradients(const struct job *j, const float *want, struct agreement *a)
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
    for (int i = 0; gradient(j, i, &name, &got, &n); want += n, i++)
        judge_one(a, name, got, want, n, largest / NEGLIGIBLE);
}
