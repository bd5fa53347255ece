/* SPDX-License-Identifier: MIT
 *
 * Golden files of a whole funnel (those that have blocks of layers), forward and backward. */
#include "golden_inner.h"

#include "variants/model/funnel_net.h"

#include <stdlib.h>
#include <string.h>

enum { WIDE = 1 << 16 };

struct funnel_run {
    struct funnel f;
    struct arena arena;
    int B, T;
};

static enum status bind(void *arg, const struct engine *g, struct err *e)
{
    struct funnel_run *o = arg;

    return funnel_bind(&o->f, g, o->B, o->T, &o->arena, e);
}

/* "1,2,1" */
static enum status read_blocks(const struct run *r, int layers[FUNNEL_BLOCKS], int *n,
                               struct err *e)
{
    const char *text = safetensors_meta(r->s, "blocks"), *at = text;

    for (*n = 0; at && *n < FUNNEL_BLOCKS; (*n)++) {
        char *end;
        const long value = strtol(at, &end, 10);
        if (end == at || value < 1 || value > FUNNEL_LAYERS || (*end != ',' && *end != '\0'))
            break;
        layers[*n] = (int)value;
        if (*end == '\0') {
            (*n)++;
            return OK;
        }
        at = end + 1;
    }
    return fail(e, E_IO, "%s: blocks \"%s\" is no list of numbers of layers  -> such as 1,2,1",
                r->s->path, text ? text : "");
}

static enum status read_funnel(struct run *r, struct funnel *f, int *B, int *T, struct err *e)
{
    int layers[FUNNEL_BLOCKS], blocks = 0, decoder = 0, causal = 0;
    struct config c = {0};
    double eps = 0, scale = 0;
    const char *const ffn = safetensors_meta(r->s, "ffn");
    enum status st;

    if ((st = golden_whole(r, "batch", B, e)) != OK || (st = golden_whole(r, "seq", T, e)) != OK ||
        (st = safetensors_int(r->s, "d_model", 0, 1, WIDE, &c.D, e)) != OK ||
        (st = safetensors_int(r->s, "n_head", 0, 1, WIDE, &c.H, e)) != OK ||
        (st = safetensors_int(r->s, "d_head", 0, 1, WIDE, &c.dh, e)) != OK ||
        (st = safetensors_int(r->s, "d_inner", 0, 1, WIDE, &c.F, e)) != OK ||
        (st = safetensors_int(r->s, "dec_layers", 0, 0, FUNNEL_LAYERS, &decoder, e)) != OK ||
        (st = safetensors_int(r->s, "causal", 0, 0, 1, &causal, e)) != OK ||
        (st = safetensors_real(r->s, "ln_eps", 1e-5, &eps, e)) != OK ||
        (st = safetensors_real(r->s, "scale", 1, &scale, e)) != OK ||
        (st = read_blocks(r, layers, &blocks, e)) != OK)
        return st;
    c.ffn = ffn ? ffn_find(ffn) : NULL;
    c.ffn_bias = true;
    c.causal = causal;
    c.ln_eps = (float)eps;
    c.scale = (float)scale;
    if (!c.ffn || *B < 1 || *T < 1)
        return fail(e, E_IO, "%s: ffn \"%s\", batch %d, seq %d  -> is it made for a newer program?",
                    r->s->path, ffn ? ffn : "", *B, *T);
    return funnel_init(f, &c, layers, blocks, decoder, e);
}

static enum status run_funnel(struct run *r, struct funnel_run *o, struct err *e)
{
    struct funnel *f = &o->f;
    const struct tensor *dy = NULL;
    enum status st = read_funnel(r, f, &o->B, &o->T, e);

    if (st != OK)
        return st;
    const size_t n = (size_t)o->B * (size_t)o->T * (size_t)f->c.D;
    const struct tensor *x = golden_need(r, "in.x", DTYPE_F32, n, &st, e);
    if (golden_has_grad(r))
        dy = golden_need(r, "in.dy", DTYPE_F32, n, &st, e);
    if (st != OK || (st = golden_place(r, bind, o, &o->arena, &f->params, e)) != OK)
        return st;
    funnel_build_tables(f, r->g);
    params_zero_grad(&f->params);
    memcpy(f->x, x->data, n * sizeof(float));
    golden_compare(r, "out.y", funnel_forward(f, r->g), n);
    const int cases = funnel_groups(f);
    golden_compare(r, "out.top", f->top, (size_t)o->B * (size_t)cases * (size_t)f->c.D);
    if (!dy)
        return OK;
    golden_compare(r, GRADIENT "x", funnel_backward(f, r->g, dy->data), n);
    golden_compare_grad(r, &f->params);
    return OK;
}

enum status golden_funnel(struct run *r, struct err *e)
{
    struct funnel_run o = {0};
    const enum status st = run_funnel(r, &o, e);

    funnel_free(&o.f);
    arena_release(&o.arena);
    return st;
}
