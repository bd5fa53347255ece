/* SPDX-License-Identifier: MIT
 *
 * A job from opening to closing, its run, and what that costs. The same bind code (job_bind.c) runs
 * twice, over a counting and over a placed arena. */
#include "job_inner.h"

#include <stdio.h>

/* ---- the job ------------------------------------------------------------------------------ */

static enum status bind_all(struct job *j, struct err *e)
{
    const enum status st = job_bind_forward(j, e);

    return st == OK && j->bcase->phase == PHASE_FWD_BWD ? job_bind_grad(j, e) : st;
}

static struct params *params_of(struct job *j)
{
    return j->bcase->workload == WORK_ATTN    ? &j->attn.params
           : j->bcase->workload == WORK_LAYER ? &j->layer.params
                                              : &j->lm.lm.params;
}

static void name_impl(struct job *j)
{
    const char *forward, *backward;

    if (j->bcase->workload == WORK_ATTN)
        forward = j->attn.impl->name, backward = j->attn.impl->backward_by;
    else
        sublayers_impl(job_sublayers(j), &forward, &backward);
    const bool both = j->bcase->phase == PHASE_FWD_BWD && backward;
    snprintf(j->impl, sizeof(j->impl), "%s%s%s", forward, both ? "/" : "", both ? backward : "");
}

enum status job_open(struct job *j, const struct bench_case *c, struct err *e)
{
    const bool recompute = c->mem_kind == MEM_RECOMPUTE;

    *j = (struct job){.bcase = c, .config = c->config, .kind = c->mem_kind};
    j->shape =
        (struct extent){c->batch, recompute ? c->seq + c->mem : c->seq, recompute ? 0 : c->mem};
    /* The reference judges the others: --impl is not meant for it. */
    const char *impl = c->backend == &backend_ref ? NULL : c->opt->impl;
    enum status st = engine_open(&j->engine, c->backend->name, c->threads, impl, e);
    if (st == OK)
        st = job_declare(j, e);
    if (st == OK)
        st = bind_all(j, e);
    if (st == OK)
        name_impl(j);
    return st;
}

enum status job_place(struct job *j,
                      enum status (*bind)(void *arg, void *base, size_t size, struct err *e),
                      void *arg, struct err *e)
{
    enum status st =
        arena_place(&j->arena, (enum huge_pages)j->bcase->opt->huge_pages, bind, arg, e);

    if (st == OK)
        st = bind_all(j, e);
    if (st != OK)
        return st;
    params_init(params_of(j), j->bcase->opt->seed);
    job_fill_forward(j);
    if (j->bcase->phase == PHASE_FWD_BWD)
        job_fill_grad(j);
    if (j->engine.backend->makes_kernels)
        job_run(j);
    return OK;
}

void job_run_forward(struct job *j)
{
    const struct extent s = j->shape;

    switch (j->bcase->workload) {
    case WORK_ATTN:
        j->attn.impl->forward(&j->engine, &j->attn.attn, j->attn.scratch);
        break;
    case WORK_LAYER:
        sublayers_forward(&j->layer.sublayers, &j->engine, j->layer.z, j->layer.x, s.B, s.L);
        break;
    default:
        lm_forward(&j->lm.lm, &j->engine, j->lm.tokens, s.B, s.L, j->lm.n_scored, j->lm.targets,
                   j->lm.nll);
    }
}

void job_run(struct job *j)
{
    job_run_forward(j);
    if (j->bcase->phase == PHASE_FWD_BWD)
        job_run_grad(j);
}

void job_close(struct job *j)
{
    adam_free(&j->lm.adam);
    arena_release(&j->arena);
    params_free(&j->attn.params);
    params_free(&j->layer.params);
    sublayers_free(&j->layer.sublayers);
    lm_free(&j->lm.lm);
}

/* ---- what it costs ------------------------------------------------------------------------ */

const char *job_impl(const struct job *j) { return j->impl; }

static double forward_flop(const struct job *j)
{
    const struct extent s = j->shape;

    switch (j->bcase->workload) {
    case WORK_ATTN:
        return attn_flop(&j->attn.attn);
    case WORK_LAYER:
        return sublayers_flop(&j->layer.sublayers, s.B, s.L, s.M);
    default:
        return lm_flop(&j->lm.lm, s.B, s.L, s.M, j->lm.n_scored);
    }
}

double job_flop(const struct job *j)
{
    return forward_flop(j) + (j->bcase->phase == PHASE_FWD_BWD ? job_grad_flop(j) : 0);
}

/* Operands once: q, k, v, o and tables of the core; of a model its weights (of an embedding that is
 * not also the output only the rows that are read), position tables, memory, input and output. */
static double forward_bytes(const struct job *j)
{
    const struct config *c = &j->config;
    const double rows = (double)j->shape.B * j->shape.L;

    if (j->bcase->workload == WORK_ATTN)
        return attn_bytes(&j->attn.attn);
    double bytes = (double)j->arena.part[PART_WEIGHTS] + (double)j->arena.part[PART_REL_POS] +
                   (double)j->arena.part[PART_MEMORY];
    if (j->bcase->workload == WORK_LAYER)
        return bytes + 2 * 4 * rows * c->D;
    if (!c->tied && j->bcase->workload != WORK_TRAIN) /* the optimiser reads all of it */
        bytes -= 4.0 * c->D * (c->V - rows < 0 ? 0 : c->V - rows);
    return bytes + 4.0 * (double)j->n_out;
}

double job_bytes(const struct job *j)
{
    return forward_bytes(j) + (j->bcase->phase == PHASE_FWD_BWD ? job_grad_bytes(j) : 0);
}

double job_tokens(const struct job *j) { return (double)j->bcase->batch * j->bcase->seq; }

double job_err_limit(const struct bench_case *c) { return c->workload == WORK_ATTN ? 2e-5 : 1e-4; }
