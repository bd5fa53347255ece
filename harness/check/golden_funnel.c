/* SPDX-License-Identifier: MIT
 *
 * Golden files of a whole funnel (those that have blocks of layers), forward and backward, without
 * embedding and head: sub-layers in an order of their own, causal or not
 * (variants/model/sublayer_pool.c). */
#include "golden_inner.h"

#include "variants/model/checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDE = 1 << 16, SUBS_MOST = MAX_ORDER - 1 };

struct funnel_run {
    struct config c;
    struct params params;
    struct params file; /* those that the file has, under its names */
    struct sublayers sublayers;
    char prefix[SUBS_MOST / 2][32]; /* "enc.B.L." or "dec.L.", what the file calls each layer */
    int joins;                      /* the sub-layer in front of which tokens have rows again */
    struct extent max;
    struct arena arena;
    float *z, *d;
    bool grad; /* the file has gradients and the backend can compute them */
};

/* What the file calls a parameter "sub.I.REST"; false where it has none such: biases of queries. */
static bool file_name(const struct funnel_run *o, const char *name, char out[64])
{
    int sublayer = 0, used = 0;

    CHECK(sscanf(name, "sub.%d.%n", &sublayer, &used) == 1 && used > 0);
    const char *rest = name + used, *const prefix = o->prefix[sublayer / 2];
    if (strcmp(rest, "attn.q.bias") == 0)
        return false;
    if (strncmp(rest, "ln.", 3) == 0)
        snprintf(out, 64, "%sln%d.%s", prefix, 1 + sublayer % 2, rest + 3);
    else
        snprintf(out, 64, "%s%s", prefix, rest);
    return true;
}

static void name_params(struct funnel_run *o)
{
    o->file.n = 0;
    for (int i = 0; i < o->params.n; i++) {
        struct param *const to = &o->file.v[o->file.n];
        *to = o->params.v[i];
        o->file.n += file_name(o, o->params.v[i].name, to->name);
    }
}

/* What the file has not. */
static void zero_others(const struct funnel_run *o)
{
    char name[64];

    for (int i = 0; i < o->params.n; i++)
        if (!file_name(o, o->params.v[i].name, name))
            memset(o->params.v[i].data, 0, o->params.v[i].n * sizeof(float));
}

static enum status bind(void *arg, const struct engine *g, struct err *e)
{
    struct funnel_run *o = arg;
    struct arena *a = &o->arena;
    const size_t n = (size_t)o->max.B * (size_t)o->max.L * (size_t)o->c.D;

    params_place(&o->params, a);
    enum status st = sublayers_bind(&o->sublayers, g, &o->params, MEM_NONE, o->max, a, e);
    if (st != OK)
        return st;
    o->grad = o->grad && sublayers_can_grad(&o->sublayers, g, NULL) == OK;
    if (o->grad) {
        st = sublayers_bind_grad(&o->sublayers, g, a, e);
        params_place_grad(&o->params, a);
        o->d = arena_f32(a, PART_ACTIVATIONS, n);
    }
    o->z = arena_f32(a, PART_ACTIVATIONS, n);
    name_params(o);
    return st;
}

/* Attention by this letter and a feed-forward network. False where there is no room for them. */
static bool add_layer(struct funnel_run *o, char letter)
{
    const size_t n = strlen(o->c.order);

    if (n + 2 >= MAX_ORDER)
        return false;
    o->c.order[n] = letter;
    o->c.order[n + 1] = 'f';
    o->c.order[n + 2] = '\0';
    return true;
}

/* Layers of each block, "1,2,1", and those behind the blocks. */
static enum status read_order(const struct run *r, struct funnel_run *o, int behind, struct err *e)
{
    const char *const text = safetensors_meta(r->s, "blocks"), *at = text;
    bool fits = true;

    *o->c.order = '\0';
    for (int b = 0; at && fits; b++) {
        char *end;
        const long layers = strtol(at, &end, 10);
        if (end == at || layers < 1 || (*end != ',' && *end != '\0'))
            break;
        for (int l = 0; l < layers && fits; l++) {
            const size_t layer = strlen(o->c.order) / 2;
            fits = add_layer(o, b && l == 0 ? 'p' : 's');
            if (fits)
                snprintf(o->prefix[layer], sizeof(o->prefix[layer]), "enc.%d.%d.", b, l);
        }
        if (*end == '\0') {
            o->joins = (int)strlen(o->c.order);
            for (int l = 0; l < behind && fits; l++) {
                const size_t layer = strlen(o->c.order) / 2;
                fits = add_layer(o, l == 0 ? 'u' : 's');
                if (fits)
                    snprintf(o->prefix[layer], sizeof(o->prefix[layer]), "dec.%d.", l);
            }
            if (fits)
                return OK;
        }
        at = end + 1;
    }
    return fail(e, E_IO,
                "%s: blocks \"%s\" and %d layers behind them  -> numbers of layers such as 1,2,1, "
                "at most %d in all",
                r->s->path, text ? text : "", behind, (int)SUBS_MOST / 2);
}

static enum status read_funnel(const struct run *r, struct funnel_run *o, struct err *e)
{
    const char *const variant = safetensors_meta(r->s, "variant");
    const struct variant *const v = variant ? variant_find(variant) : NULL;
    int D = 0, H = 0, dh = 0, F = 0, behind = 0, causal = 0;
    double scale = 0;
    enum status st;

    if (!v)
        return fail(e, E_IO, "%s: unknown variant \"%s\"  -> see: bench list variants", r->s->path,
                    variant ? variant : "");
    if ((st = golden_whole(r, "batch", &o->max.B, e)) != OK ||
        (st = golden_whole(r, "seq", &o->max.L, e)) != OK ||
        (st = safetensors_int(r->s, "d_model", 0, 1, WIDE, &D, e)) != OK ||
        (st = safetensors_int(r->s, "n_head", 0, 1, WIDE, &H, e)) != OK ||
        (st = safetensors_int(r->s, "d_head", 0, 1, WIDE, &dh, e)) != OK ||
        (st = safetensors_int(r->s, "d_inner", 0, 1, WIDE, &F, e)) != OK ||
        (st = safetensors_int(r->s, "dec_layers", 0, 0, SUBS_MOST, &behind, e)) != OK ||
        (st = safetensors_int(r->s, "causal", 0, 0, 1, &causal, e)) != OK ||
        (st = safetensors_real(r->s, "scale", 1, &scale, e)) != OK)
        return st;
    if (o->max.B < 1 || o->max.L < 1)
        return fail(e, E_IO, "%s: batch %d, seq %d  -> both must be 1 or more", r->s->path,
                    o->max.B, o->max.L);
    o->c = config_default(v, D, H, dh, F, 1, 1);
    o->c.uv_per_layer = true;
    o->c.causal = causal;
    o->c.scale = (float)scale;
    if ((st = checkpoint_parts(r->s, "param.", &o->c, e)) != OK ||
        (st = read_order(r, o, behind, e)) != OK)
        return st;
    return config_check(&o->c, e);
}

/* What the last block gave is looked at before the sub-layers behind it run. */
static void run_funnel(struct run *r, struct funnel_run *o, const struct tensor *x,
                       const struct tensor *dy)
{
    struct sublayers *const s = &o->sublayers;
    const int B = o->max.B, L = o->max.L, last = o->joins - 1;
    const size_t width = (size_t)o->c.D;

    o->c.pos->pos_encoding(&o->c, L, s->pos_encoding);
    sublayers_build_tables(s, r->g);
    float *in = sublayers_part_input(s, 0, o->joins, o->z);
    memcpy(in, x->data, x->n * sizeof(float));
    sublayers_part_forward(s, r->g, 0, o->joins, o->z, in, B, L);
    const size_t top = (size_t)(L >> s->at[last].level) * width;
    golden_compare_first(r, "out.top", o->z, (size_t)B, top);
    in = sublayers_part_input(s, o->joins, s->n - o->joins, o->z);
    if (in != o->z)
        memcpy(in, o->z, (size_t)B * top * sizeof(float));
    sublayers_part_forward(s, r->g, o->joins, s->n - o->joins, o->z, in, B, L);
    golden_compare(r, "out.y", o->z, x->n);
    if (!dy)
        return;
    if (!o->grad) {
        golden_skip_grad(r, "no backward pass");
        return;
    }
    params_zero_grad(&o->params);
    memcpy(o->d, dy->data, dy->n * sizeof(float));
    sublayers_backward(s, r->g, o->d, B, L);
    golden_compare(r, GRADIENT "x", o->d, x->n);
    golden_compare_grad(r, &o->file);
}

static enum status run_file(struct run *r, struct funnel_run *o, struct err *e)
{
    enum status st = read_funnel(r, o, e);

    if (st != OK)
        return st;
    const size_t n = (size_t)o->max.B * (size_t)o->max.L * (size_t)o->c.D;
    const struct tensor *dy = NULL;
    const struct tensor *const x = golden_need(r, "in.x", DTYPE_F32, n, &st, e);
    if (golden_has_grad(r)) {
        dy = golden_need(r, "in.dy", DTYPE_F32, n, &st, e);
        o->grad = true;
    }
    if (st != OK || (st = sublayers_init(&o->sublayers, &o->c, &o->params, 0, e)) != OK)
        return st;
    if (!(o->file.v = calloc((size_t)o->params.n + 1, sizeof(*o->file.v))))
        return fail(e, E_NOMEM, "no memory for %d parameters", o->params.n);
    if ((st = golden_place(r, bind, o, &o->arena, &o->file, e)) != OK)
        return st;
    zero_others(o);
    run_funnel(r, o, x, dy);
    return OK;
}

enum status golden_funnel(struct run *r, struct err *e)
{
    struct funnel_run o = {0};
    const enum status st = run_file(r, &o, e);

    sublayers_free(&o.sublayers);
    free(o.file.v);
    params_free(&o.params);
    arena_release(&o.arena);
    return st;
}
