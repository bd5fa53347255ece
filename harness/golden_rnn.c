/* SPDX-License-Identifier: MIT
 *
 * Golden files of the bare LocalRNN (kind = local_rnn), forward and backward, behind the last rows
 * of an earlier segment where the file has some. */
#include "golden_inner.h"

#include "../variants/checkpoint.h"
#include "../variants/sub_list.h"

#include <string.h>

enum { WIDE = 1 << 12 };

struct rnn_run {
    struct config c;
    struct params params;
    struct subs subs; /* one sub-layer, without wiring */
    struct extent max;
    struct arena arena;
    float *y, *d_x;
};

static enum status read_config(const struct run *r, struct rnn_run *o, struct err *e)
{
    const char *variant = safetensors_meta(r->s, "variant"), *cell;
    const struct variant *v = variant ? variant_find(variant) : NULL;
    int D = 0, kind = 0;
    enum status st;

    if (!v)
        return fail(e, E_IO, "%s: unknown variant \"%s\"  -> see: bench list variants", r->s->path,
                    variant ? variant : "");
    if ((st = safetensors_int(r->s, "d_model", 0, 1, WIDE, &D, e)) != OK)
        return st;
    o->c = config_default(v, D, 1, D, D, 1, 0);
    cell = safetensors_meta(r->s, "rnn_cell");
    while (kind < CELL_KINDS && (!cell || strcmp(cell, cell_name[kind]) != 0))
        kind++;
    if (kind == CELL_KINDS)
        return fail(e, E_IO, "%s: unknown rnn_cell \"%s\"  -> is it made for a newer program?",
                    r->s->path, cell ? cell : "");
    o->c.rnn_cell = (enum cell_kind)kind;
    if ((st = golden_whole(r, "batch", &o->max.B, e)) != OK ||
        (st = golden_whole(r, "seq", &o->max.L, e)) != OK)
        return st;
    if (o->max.B < 1 || o->max.L < 1)
        return fail(e, E_IO, "%s: batch %d, seq %d  -> both must be 1 or more", r->s->path,
                    o->max.B, o->max.L);
    return safetensors_int(r->s, "rnn_window", 0, 1, WIDE, &o->c.rnn_window, e);
}

static enum status bind_rnn(struct rnn_run *o, const struct engine *g, struct err *e)
{
    struct arena *a = &o->arena;
    const size_t n = (size_t)o->max.B * (size_t)o->max.L * (size_t)o->c.D;

    params_place(&o->params, a);
    enum status st = subs_bind(&o->subs, g, &o->params, MEM_HIDDEN, o->max, a, e);
    if (st == OK)
        st = subs_bind_grad(&o->subs, g, a, e);
    params_place_grad(&o->params, a);
    o->y = arena_f32(a, PART_ACTIVATIONS, n);
    o->d_x = arena_f32(a, PART_ACTIVATIONS, n);
    return st;
}

static void remember(struct rnn_run *o, const struct engine *g, const float *tail)
{
    const struct extent m = o->max;
    const size_t D = (size_t)o->c.D;
    float *const x = o->subs.work->x;

    for (int done = 0; done < m.M; done += m.L) {
        const int rows = min_int(m.L, m.M - done);
        for (int b = 0; b < m.B; b++)
            memcpy(x + (size_t)(b * rows) * D, tail + (size_t)(b * m.M + done) * D,
                   sizeof(float) * (size_t)rows * D);
        sub_remember(g, o->subs.at, o->subs.work, x, m.B, rows);
    }
}

static void run_rnn(struct run *r, struct rnn_run *o, const float *x, const float *dy, size_t n)
{
    struct sub *const s = o->subs.at;
    struct work *const w = o->subs.work;

    memcpy(w->x, x, n * sizeof(float));
    const struct sub_input from = sub_source(r->g, s, w, w->x, o->max.B, o->max.L);
    s->kind->forward(r->g, s, w, from, (struct act){.y = o->y});
    golden_compare(r, "out.y", o->y, n);
    if (!dy)
        return;
    params_zero_grad(&o->params);
    s->kind->backward(r->g, s, w, from, o->d_x, dy, from.M);
    golden_compare(r, GRADIENT "x", o->d_x, n);
    golden_compare_grad(r, &o->params);
}

static enum status run_file(struct run *r, struct rnn_run *o, struct err *e)
{
    enum status st = read_config(r, o, e);

    if (st != OK)
        return st;
    const size_t row = (size_t)o->max.B * (size_t)o->c.D, n = row * (size_t)o->max.L;
    const struct tensor *dy = NULL, *tail = safetensors_find(r->s, "in.tail");
    const struct tensor *x = golden_need(r, "in.x", DTYPE_F32, n, &st, e);
    if (tail)
        tail = golden_need(r, "in.tail", DTYPE_F32, row * (size_t)(o->c.rnn_window - 1), &st, e);
    if (golden_has_grad(r))
        dy = golden_need(r, "in.dy", DTYPE_F32, n, &st, e);
    o->c.rnn_carry = tail != NULL;
    o->max.M = tail ? o->c.rnn_window - 1 : 0;
    if (st != OK || (st = subs_init_bare(&o->subs, &o->c, 'r', &o->params, 0, e)) != OK ||
        (st = bind_rnn(o, r->g, e)) != OK ||
        (st = arena_place(&o->arena, HUGE_NEVER, NULL, NULL, e)) != OK ||
        (st = bind_rnn(o, r->g, e)) != OK ||
        (st = checkpoint_load(r->s, "param.", &o->params, e)) != OK ||
        (st = golden_no_strangers(r, &o->params, e)) != OK)
        return st;
    params_pack(&o->params, r->g);
    if (tail)
        remember(o, r->g, tail->data);
    run_rnn(r, o, x->data, dy ? dy->data : NULL, n);
    return OK;
}

enum status golden_rnn(struct run *r, struct err *e)
{
    struct rnn_run o = {0};
    const enum status st = run_file(r, &o, e);

    subs_free(&o.subs);
    params_free(&o.params);
    arena_release(&o.arena);
    return st;
}
