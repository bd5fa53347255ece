/* SPDX-License-Identifier: MIT
 *
 * A job from opening to closing, its run, and its cost; the workload does the work. The same bind
 * functions run twice, over a counting and over a placed arena. */
#include "workload.h"

#include "variants/base/rng.h"

const struct workload_ops *workload_ops(enum workload w)
{
#define X(id, name, ...) &workload_##name,
    static const struct workload_ops *const all[WORK_COUNT] = {WORKLOADS(X)};
#undef X

    return all[w];
}

/* ---- the job ------------------------------------------------------------------------------ */

bool job_goes_backward(const struct job *j) { return j->bcase->phase == PHASE_FWD_BWD; }

static enum status bind_all(struct job *j, struct err *e)
{
    engine_bind(&j->engine, &j->arena);
    TRY(j->ops->bind(j, e));
    return job_goes_backward(j) ? j->ops->bind_grad(j, e) : OK;
}

enum status job_open(struct job *j, const struct bench_case *c, struct err *e)
{
    const bool recompute = c->mem_kind == MEM_RECOMPUTE;

    *j = (struct job){
        .bcase = c, .ops = workload_ops(c->workload), .config = c->config, .kind = c->mem_kind};
    j->shape = (struct extent){c->batch, recompute ? c->seq + c->mem : c->seq,
                               recompute ? 0 : case_past(c)};
    /* Cases are compared with the reference, to which --impl does not apply. */
    const char *impl = c->backend == &backend_ref ? NULL : c->opt->impl;
    const bool trains = job_goes_backward(j);

    TRY(engine_open(&j->engine, backend_acting(c->backend, c->config.dtype)->name, c->threads, impl,
                    e));
    if (trains)
        TRY(engine_train_in(&j->engine, c->config.dtype, e));
    TRY(j->ops->declare(j, e));
    TRY(params_hold(j->params, trains ? ELEM_F32 : c->config.dtype, c->config.act_dtype, &j->engine,
                    e));
    j->engine.isa = engine_isa(&j->engine, c->config.dtype);
    TRY(bind_all(j, e));
    j->ops->impl(j, j->impl);
    return OK;
}

enum status job_place(struct job *j,
                      enum status (*bind)(void *arg, void *base, size_t size, struct err *e),
                      void *arg, struct err *e)
{
    TRY(arena_place(&j->arena, (enum huge_pages)j->bcase->opt->huge_pages, bind, arg, e));
    TRY(bind_all(j, e));
    params_init(j->params, j->bcase->opt->seed, j->engine.threads);
    j->ops->fill(j);
    if (job_goes_backward(j) && j->ops->fill_grad)
        j->ops->fill_grad(j);
    if (j->engine.backend->makes_kernels)
        job_run(j);
    return OK;
}

enum status job_map(struct job *j, struct err *e)
{
    TRY(arena_place(&j->arena, HUGE_NEVER, NULL, NULL, e));
    return bind_all(j, e);
}

void job_run_forward(struct job *j) { j->ops->forward(j); }

void job_run(struct job *j)
{
    j->ops->forward(j);
    if (!job_goes_backward(j))
        return;
    j->ops->backward(j, &j->engine);
    if (j->ops->finish)
        j->ops->finish(j);
}

void job_close(struct job *j)
{
    if (j->ops)
        j->ops->close(j);
    free(j->wanted);
    arena_release(&j->arena);
}

/* ---- for the workloads --------------------------------------------------------------------- */

size_t job_elements(int a, int b, int c) { return (size_t)a * (size_t)b * (size_t)c; }

void job_draw(const struct job *j, const char *name, float *x, size_t n)
{
    rng_normal(x, n, j->bcase->opt->seed, rng_stream(name), 0, 1);
}

void job_draw_tokens(const struct job *j, const char *name, int32_t *x, size_t n)
{
    const uint64_t stream = rng_stream(name);

    for (size_t i = 0; i < n; i++)
        x[i] = (int32_t)(rng_u32(j->bcase->opt->seed, stream, i) % (uint32_t)j->config.V);
}

void job_move_weights(struct job *j)
{
    const struct params *const all = j->params;

    for (int i = 0; i < all->n; i++) {
        const struct param *const p = &all->v[i];
        float *const step = need_room(p->n, sizeof(*step));
        job_draw(j, p->name, step, p->n);
        for (size_t k = 0; k < p->n; k++)
            p->data[k] += 0.03f * step[k];
        free(step);
    }
    j->ops->fill(j);
    if (job_goes_backward(j) && j->ops->fill_grad)
        j->ops->fill_grad(j);
}

bool job_outputs_differ(const struct job *a, const struct job *b)
{
    double largest = 0, most = 0;

    if (a->n_out != b->n_out)
        return true;
    for (size_t i = 0; i < a->n_out; i++) {
        most = fmax(most, fabs((double)a->out[i] - (double)b->out[i]));
        largest = fmax(largest, fabs((double)b->out[i]));
    }
    return most > 1e-5 * largest;
}

void job_set_output(struct job *j, const float *out, int rows, int width)
{
    j->out = out;
    j->n_out = job_elements(j->shape.B, rows, width);
    memcpy(j->out_shape, (const int[]){j->shape.B, rows, width}, sizeof(j->out_shape));
}

double job_bytes_of_weights(const struct job *j)
{
    return (double)j->arena.part[PART_WEIGHTS] + (double)j->arena.part[PART_REL_POS] +
           (double)j->arena.part[PART_MEMORY];
}

double job_tables_flop(const struct job *j, int keys)
{
    const struct pos *pos = j->config.pos;

    return pos->build_tables_flop ? pos->build_tables_flop(&j->config, keys) : 0;
}

/* ---- what it costs ------------------------------------------------------------------------ */

const char *job_impl(const struct job *j) { return j->impl; }

double job_flop(const struct job *j)
{
    return j->ops->flop(j) + (job_goes_backward(j) ? j->ops->flop_grad(j) : 0);
}

struct flop_shares job_shares(struct job *j)
{
    const struct sublayers *const s = j->list[0];

    return s ? sublayers_shares(s, j->shape.B, j->shape.L, j->shape.M)
             : (struct flop_shares){NAN, NAN};
}

/* Backward gathers queries, keys and values again, outputs and their gradients, and scatters those
 * of queries, keys and values: twice as much as forward. */
double job_moved_bytes(struct job *j)
{
    const struct sublayers *const s = j->list[0];

    return s ? (job_goes_backward(j) ? 3 : 1) *
                   sublayers_moves(s, j->shape.B, j->shape.L, j->shape.M)
             : 0;
}

bool job_gather(struct job *j)
{
    return j->list[0] && sublayers_gather(j->list[0], &j->engine, j->shape.B, j->shape.L);
}

static double bytes_grad(const struct job *j)
{
    return j->ops->bytes_grad
               ? j->ops->bytes_grad(j)
               : (double)j->arena.part[PART_GRADIENTS] + (double)j->arena.part[PART_OPTIMIZER];
}

double job_bytes(struct job *j)
{
    return j->ops->bytes(j) + (job_goes_backward(j) ? bytes_grad(j) : 0) + job_moved_bytes(j);
}

size_t job_predicted_bytes(const struct job *j) { return j->ops->predicted_bytes(j); }

double job_tokens(const struct job *j) { return (double)j->bcase->batch * j->bcase->seq; }
