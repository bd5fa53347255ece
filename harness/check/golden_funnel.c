/* SPDX-License-Identifier: MIT
 *
 * Golden files of a whole funnel (those that have blocks of layers), forward and backward. */
#include "golden_inner.h"

#include "variants/model/funnel_net.h"

#include <stdlib.h>
#include <string.h>

static enum status bind(struct run *r, struct err *e)
{
    return funnel_bind(r->own, r->g, r->max.B, r->max.L, &r->arena, e);
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

static enum status read(struct run *r, struct err *e)
{
    int layers[FUNNEL_BLOCKS], blocks = 0, decoder = 0, causal = 0;
    struct funnel *f = r->own;
    struct config c = {0};
    double eps = 0, scale = 0;
    const char *const ffn = safetensors_meta(r->s, "ffn");
    enum status st;

    if ((st = golden_extent(r, e)) != OK ||
        (st = safetensors_int(r->s, "d_model", 0, 1, GOLDEN_WIDE, &c.D, e)) != OK ||
        (st = safetensors_int(r->s, "n_head", 0, 1, GOLDEN_WIDE, &c.H, e)) != OK ||
        (st = safetensors_int(r->s, "d_head", 0, 1, GOLDEN_WIDE, &c.dh, e)) != OK ||
        (st = safetensors_int(r->s, "d_inner", 0, 1, GOLDEN_WIDE, &c.F, e)) != OK ||
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
    if (!c.ffn || r->max.B < 1 || r->max.L < 1)
        return fail(e, E_IO, "%s: ffn \"%s\", batch %d, seq %d  -> is it made for a newer program?",
                    r->s->path, ffn ? ffn : "", r->max.B, r->max.L);
    if ((st = funnel_init(f, &c, layers, blocks, decoder, e)) != OK)
        return st;
    r->c = c;
    r->weights = &f->params;
    return golden_inputs(r, c.D, e);
}

static enum status forward(struct run *r, struct err *e)
{
    struct funnel *f = r->own;

    funnel_build_tables(f, r->g);
    memcpy(f->x, r->x->data, r->x->n * sizeof(float));
    r->y = (float *)funnel_forward(f, r->g);
    golden_compare(r, "out.top", f->top,
                   (size_t)r->max.B * (size_t)funnel_cells(f) * (size_t)f->c.D);
    (void)e;
    return OK;
}

static void backward(struct run *r)
{
    r->d_x = (float *)funnel_backward(r->own, r->g, r->dy->data);
}

static void release(struct run *r) { funnel_free(r->own); }

static bool claims(const struct safetensors *s) { return safetensors_meta(s, "blocks"); }

const struct golden_kind golden_funnel = {
    .claims = claims,
    .size = sizeof(struct funnel),
    .read = read,
    .bind = bind,
    .forward = forward,
    .backward = backward,
    .release = release,
};
