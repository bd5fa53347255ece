/* SPDX-License-Identifier: MIT
 *
 * Golden files of what stands in attention's place (kind = attention with a mixer): the bare
 * operator with what it carries in and out, forward and backward. */
#include "golden_inner.h"

#include "variants/model/checkpoint.h"

#include <stdio.h>
#include <string.h>

struct mixer_run {
    struct config c;
    struct params params;
    struct sublayers sublayers; /* one sub-layer, without wiring */
    struct extent max;
    struct arena arena;
    float *x, *y, *d_x;
    bool grad; /* the file has gradients and the backend can compute them */
};

static enum status bind_mixer(void *arg, const struct engine *g, struct err *e)
{
    struct mixer_run *o = arg;
    struct arena *a = &o->arena;
    const size_t n = (size_t)o->max.B * (size_t)o->max.L * (size_t)o->c.D;
    const enum mem_kind kind = o->max.M ? MEM_HIDDEN : MEM_STATE;

    params_place(&o->params, a);
    enum status st = sublayers_bind(&o->sublayers, g, &o->params, kind, o->max, a, e);
    if (st != OK)
        return st;
    o->grad = o->grad && sublayers_can_grad(&o->sublayers, g, NULL) == OK;
    if (o->grad) {
        st = sublayers_bind_grad(&o->sublayers, g, a, e);
        params_place_grad(&o->params, a);
        o->d_x = arena_f32(a, PART_ACTIVATIONS, n);
    }
    o->x = arena_f32(a, PART_ACTIVATIONS, n);
    o->y = arena_f32(a, PART_ACTIVATIONS, n);
    return st;
}

/* The i-th array of the sub-layer, with the name of its tensor in the file. */
static bool carried(const struct mixer_run *o, int i, const char *prefix, struct carried *out,
                    char name[TENSOR_NAME])
{
    const struct sublayer *const s = o->sublayers.at;

    if (!s->kind->carries || !s->kind->carries(s, i, out))
        return false;
    snprintf(name, TENSOR_NAME, "%s%s", prefix, out->name);
    return true;
}

/* Every input is one that is read. */
static enum status known_inputs(const struct run *r, const struct mixer_run *o, struct err *e)
{
    enum { MAX_CARRIED = 8 };
    const char *known[3 + MAX_CARRIED + 1] = {"in.x", "in.mem", "in.dy"};
    char name[MAX_CARRIED][TENSOR_NAME];
    struct carried c;

    for (int i = 0; i < MAX_CARRIED && carried(o, i, "in.", &c, name[i]); i++)
        known[3 + i] = name[i];
    return golden_known_inputs(r, known, e);
}

static enum status load_carried(const struct run *r, struct mixer_run *o, struct err *e)
{
    enum status st = OK;
    struct carried c;
    char name[TENSOR_NAME];

    for (int i = 0; st == OK && carried(o, i, "in.", &c, name); i++)
        if (safetensors_find(r->s, name)) {
            const struct tensor *t = golden_need(r, name, DTYPE_F32, c.n, &st, e);
            if (st == OK)
                memcpy(c.at, t->data, c.n * sizeof(float));
        }
    return st;
}

static void run_gradients(struct run *r, struct mixer_run *o, const struct tensor *dy)
{
    struct sublayer *const s = o->sublayers.at;
    const struct extent m = o->max;

    if (!o->grad) {
        golden_skip_grad(r, "no backward pass");
        return;
    }
    params_zero_grad(&o->params);
    s->kind->backward(r->g, s, o->sublayers.work,
                      sublayer_source_again(s, o->sublayers.work, m.B, m.L), o->d_x, dy->data, m.M);
    golden_compare(r, GRADIENT "x", o->d_x, dy->n);
    golden_compare_grad(r, &o->params);
}

static void run_mixer(struct run *r, struct mixer_run *o, const struct tensor *x,
                      const struct tensor *mem, const struct tensor *dy)
{
    const struct extent m = o->max;
    struct sublayer *const s = o->sublayers.at;
    struct work *const w = o->sublayers.work;
    struct carried c;
    char name[TENSOR_NAME];

    if (mem)
        golden_remember(r, &o->sublayers, m, o->x, mem->data);
    float *const in = sublayers_input(&o->sublayers, o->x);
    memcpy(in, x->data, x->n * sizeof(float));
    s->kind->forward(r->g, s, w, sublayer_source(r->g, s, w, in, m.B, m.L),
                     (struct act){.y = o->y});
    golden_compare(r, "out.y", o->y, x->n);
    if (dy)
        run_gradients(r, o, dy);
    if (s->kind->ends_in)
        golden_probs(r, s->kind->ends_in(s, w, m.B, m.L), s->of.attention.impl, w->scratch);
    sublayer_commit(s, m.L);
    for (int i = 0; carried(o, i, "out.", &c, name); i++)
        if (!c.given)
            golden_compare(r, name, c.at, c.n);
}

static enum status golden_mixer_run(struct run *r, struct mixer_run *o, struct err *e)
{
    struct extent *m = &o->max;
    enum status st = checkpoint_config(r->s, "param.", &o->c, e);

    if (st != OK || (st = golden_whole(r, "batch", &m->B, e)) != OK ||
        (st = golden_whole(r, "seq", &m->L, e)) != OK ||
        (st = golden_whole(r, "mem", &m->M, e)) != OK)
        return st;
    const size_t row = (size_t)m->B * (size_t)o->c.D;
    const struct tensor *mem = NULL, *dy = NULL;
    const struct tensor *x = golden_need(r, "in.x", DTYPE_F32, row * (size_t)m->L, &st, e);
    if (m->M)
        mem = golden_need(r, "in.mem", DTYPE_F32, row * (size_t)m->M, &st, e);
    if (golden_has_grad(r)) {
        dy = golden_need(r, "in.dy", DTYPE_F32, row * (size_t)m->L, &st, e);
        o->grad = true;
    }
    if (st != OK || (st = sublayers_init_operator(&o->sublayers, &o->c, &o->params, 0, e)) != OK ||
        (st = golden_place(r, bind_mixer, o, &o->arena, &o->params, e)) != OK ||
        (st = known_inputs(r, o, e)) != OK)
        return st;
    sublayers_build_tables(&o->sublayers, r->g);
    if ((st = load_carried(r, o, e)) != OK)
        return st;
    sublayers_build_tables(&o->sublayers, r->g); /* what is given may have tables of its own */
    run_mixer(r, o, x, mem, dy);
    return OK;
}

enum status golden_mixer(struct run *r, struct err *e)
{
    struct mixer_run o = {0};
    const enum status st = golden_mixer_run(r, &o, e);

    params_free(&o.params);
    sublayers_free(&o.sublayers);
    arena_release(&o.arena);
    return st;
}
