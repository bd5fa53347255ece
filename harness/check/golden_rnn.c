/* SPDX-License-Identifier: MIT
 *
 * Golden files of the bare LocalRNN (kind = local_rnn), forward and backward, behind the last rows
 * of an earlier segment where the file has some. */
#include "golden_inner.h"

#include "variants/model/checkpoint.h"

#include <string.h>

enum { WIDE = 1 << 12 };

struct rnn_run {
    struct config c;
    struct params params;
    struct sublayers sublayers; /* one sub-layer, without wiring */
    struct extent max;
    struct arena arena;
    float *y, *d_x;
};

static enum status read_config(const struct run *r, struct rnn_run *o, struct err *e)
{
    const char *variant = safetensors_meta(r->s, "variant");
    const struct variant *v = variant ? variant_find(variant) : NULL;
    int D = 0;
    enum status st;

    if (!v)
        return fail(e, E_IO, "%s: unknown variant \"%s\"  -> see: bench list variants", r->s->path,
                    variant ? variant : "");
    if ((st = safetensors_int(r->s, "d_model", 0, 1, WIDE, &D, e)) != OK)
        return st;
    o->c = config_default(v, D, 1, D, D, 1, 0);
    if ((st = checkpoint_parts(r->s, "param.", &o->c, e)) != OK ||
        (st = golden_whole(r, "batch", &o->max.B, e)) != OK ||
        (st = golden_whole(r, "seq", &o->max.L, e)) != OK)
        return st;
    if (o->max.B < 1 || o->max.L < 1 || o->c.rnn_window < 1 || o->c.rnn_window > WIDE)
        return fail(e, E_IO, "%s: batch %d, seq %d, rnn_window %d  -> all from 1 to %d", r->s->path,
                    o->max.B, o->max.L, o->c.rnn_window, (int)WIDE);
    return OK;
}

static enum status bind_rnn(void *arg, const struct engine *g, struct err *e)
{
    struct rnn_run *o = arg;
    struct arena *a = &o->arena;
    const size_t n = (size_t)o->max.B * (size_t)o->max.L * (size_t)o->c.D;

    params_place(&o->params, a);
    enum status st = sublayers_bind(&o->sublayers, g, &o->params, MEM_HIDDEN, o->max, a, e);
    if (st == OK)
        st = sublayers_bind_grad(&o->sublayers, g, a, e);
    params_place_grad(&o->params, a);
    o->y = arena_f32(a, PART_ACTIVATIONS, n);
    o->d_x = arena_f32(a, PART_ACTIVATIONS, n);
    return st;
}

static void run_rnn(struct run *r, struct rnn_run *o, const float *x, const float *dy, size_t n)
{
    struct sublayer *const s = o->sublayers.at;
    struct work *const w = o->sublayers.work;

    memcpy(w->x, x, n * sizeof(float));
    const struct sublayer_input from = sublayer_source(r->g, s, w, w->x, o->max.B, o->max.L);
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
    if (st != OK || (st = sublayers_init_bare(&o->sublayers, &o->c, 'r', &o->params, 0, e)) != OK ||
        (st = golden_place(r, bind_rnn, o, &o->arena, &o->params, e)) != OK)
        return st;
    params_pack(&o->params, r->g);
    if (tail)
        golden_remember(r, &o->sublayers, o->max, o->sublayers.work->x, tail->data);
    run_rnn(r, o, x->data, dy ? dy->data : NULL, n);
    return OK;
}

enum status golden_rnn(struct run *r, struct err *e)
{
    struct rnn_run o = {0};
    const enum status st = run_file(r, &o, e);

    sublayers_free(&o.sublayers);
    params_free(&o.params);
    arena_release(&o.arena);
    return st;
}
