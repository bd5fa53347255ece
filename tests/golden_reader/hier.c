/* SPDX-License-Identifier: MIT
 *
 * Golden files of two levels of bidirectional layers (kind = hier), forward and backward, as in HIBERT
 * (Zhang et al. 2019, arXiv:1905.06566), TNT (Han et al. 2021, arXiv:2103.00112) and Hi-Transformer (Wu
 * et al. 2021, arXiv:2106.01040): a layer within each chunk of C rows, one vector for a chunk, a layer
 * over these vectors, and each of them added to the rows of its chunk:
 *
 *   i   = inner(x by chunks)
 *   z_k = W [i_kC; ..; i_(k+1)C-1] + b, or i_kC
 *   t   = outer(z)
 *   y_r = i_r + t_(r/C)
 *
 * Both are ordinary layers with other numbers of sequences and rows. */
#include "reader.h"

#include "variants/model/checkpoint/checkpoint.h"
#include "variants/parts/linear.h"

enum { INNER, OUTER, LEVELS };

struct hier_run {
    struct sublayers level[LEVELS];
    struct extent of[LEVELS];
    int chunk, at_fold; /* at_fold: index of W, -1 = the first row of a chunk is its vector */
    float *x, *in;      /* [B,L,D] inner's input and output */
    float *z, *top;     /* [B,L/C,D] outer's */
    float *d_top;
};

static enum status bind(struct run *r, struct err *e)
{
    struct hier_run *const o = r->data;
    struct arena *const a = &r->arena;
    const size_t chunks = r->n_y / (size_t)o->chunk;

    golden_bind_part(r, r->n_y);
    params_place_packed(&r->params, r->g, r->max.B * r->max.L, a);
    for (int i = 0; i < LEVELS; i++)
        TRY(sublayers_bind(&o->level[i], r->g, &r->params, MEM_NONE, o->of[i], a, e));
    r->grad = r->grad && sublayers_can_grad(o->level, r->g, NULL) == OK;
    for (int i = 0; r->grad && i < LEVELS; i++)
        TRY(sublayers_bind_grad(&o->level[i], r->g, a, e));
    o->x = arena_f32(a, PART_ACTIVATIONS, r->n_y);
    o->in = arena_f32(a, PART_ACTIVATIONS, r->n_y);
    o->z = arena_f32(a, PART_ACTIVATIONS, chunks);
    o->top = arena_f32(a, PART_ACTIVATIONS, chunks);
    o->d_top = arena_f32(a, PART_ACTIVATIONS, chunks);
    return OK;
}

/* The parameters of both layers, and of what makes one vector of a chunk. */
static enum status declare(struct run *r, bool folds, struct err *e)
{
    static const char *const names[] = {"inner.", "outer."};
    struct hier_run *const o = r->data;
    struct params *const p = &r->params;

    for (int i = 0; i < LEVELS; i++) {
        const int first = p->n;
        sublayers_init(&o->level[i], &r->c, p, 0);
        params_rename(p, first, "layers.0.", names[i]);
    }
    o->at_fold = folds ? params_map(p, r->c.D, o->chunk * r->c.D, "fold.", "weight") : -1;
    if (folds)
        params_vector(p, INIT_ZERO, 0, r->c.D, "fold.", "bias");
    return OK;
}

static enum status read(struct run *r, struct err *e)
{
    struct hier_run *const o = r->data;
    struct config *const c = &r->c;
    const char *const fold = safetensors_meta(r->s, "hier_fold");

    TRY(golden_part(r, NULL, "DHdF", e));
    TRY(golden_size(r, "chunk", GOLDEN_WIDE, &o->chunk, e));
    const int B = r->max.B, chunks = r->max.L / o->chunk;
    if (r->max.M || r->max.L % o->chunk || (double)o->chunk * c->D > GOLDEN_WIDE)
        return safetensors_fail(r->s, e,
                                "seq %d, mem %d in chunks of %d  -> use whole chunks and mem 0",
                                r->max.L, r->max.M, o->chunk);
    if (!fold || (strcmp(fold, "linear") != 0 && strcmp(fold, "first") != 0))
        return safetensors_fail(r->s, e, "unknown hier_fold \"%.64s\"  -> use linear or first",
                                fold ? fold : "");
    o->of[INNER] = (struct extent){B * chunks, o->chunk, 0};
    o->of[OUTER] = (struct extent){B, chunks, 0};
    TRY(checkpoint_parts(r->s, "param.inner.", c, e));
    c->wiring = WIRING_POST;
    c->causal = DIRECTION_BOTH;
    c->attn_bias = safetensors_find(r->s, "param.inner.attn.q.bias") != NULL;
    TRY(checkpoint_check(r->s, c, e));
    TRY(golden_inputs(r, c->D, e));
    return declare(r, strcmp(fold, "linear") == 0, e);
}

static void run_level(const struct run *r, int level, float *z, float *x, const float *from)
{
    struct hier_run *const o = r->data;
    struct sublayers *const s = &o->level[level];
    const struct extent of = o->of[level];
    float *const in = s->kept ? sublayers_input(s, NULL) : x;

    memcpy(in, from, sizeof(float) * (size_t)(of.B * of.L) * (size_t)r->c.D);
    sublayers_build_tables(s, r->g);
    sublayers_forward(s, r->g, z, in, of.B, of.L);
}

static enum status forward(struct run *r, struct err *e)
{
    struct hier_run *const o = r->data;
    const ptrdiff_t D = r->c.D, C = o->chunk;
    const int rows = r->max.B * r->max.L, chunks = rows / o->chunk;

    params_pack(&r->params, r->g);
    run_level(r, INNER, o->in, o->x, r->x->data);
    if (o->at_fold >= 0)
        linear_forward(r->g, &r->params.v[o->at_fold], &r->params.v[o->at_fold + 1], o->z, o->in,
                       chunks, (struct act){.y = o->z});
    for (int k = 0; o->at_fold < 0 && k < chunks; k++)
        memcpy(o->z + k * D, o->in + k * C * D, sizeof(float) * (size_t)D);
    run_level(r, OUTER, o->top, o->top, o->z);
    for (int row = 0; row < rows; row++)
        for (int i = 0; i < D; i++)
            r->y[row * D + i] = o->in[row * D + i] + o->top[row / C * D + i];
    golden_compare(r, "out.top", o->top, (size_t)chunks * (size_t)D);
    return OK;
}

static void backward(struct run *r)
{
    struct hier_run *const o = r->data;
    const ptrdiff_t D = r->c.D, C = o->chunk;
    const int rows = r->max.B * r->max.L, chunks = rows / o->chunk;
    const struct param *const fold = &r->params.v[max_int(0, o->at_fold)];
    const float *const d_y = r->dy->data;

    memset(o->d_top, 0, sizeof(float) * (size_t)chunks * (size_t)D);
    for (int row = 0; row < rows; row++)
        for (int i = 0; i < D; i++)
            o->d_top[row / C * D + i] += d_y[row * D + i];
    sublayers_backward(&o->level[OUTER], r->g, o->d_top, o->of[OUTER].B, o->of[OUTER].L);
    memcpy(r->d_x, d_y, sizeof(float) * (size_t)rows * (size_t)D);
    if (o->at_fold >= 0) {
        linear_bias_grad(r->g, &fold[1], o->d_top, chunks);
        linear_weight_grad(r->g, &fold[0], o->d_top, o->in, chunks);
        linear_input_grad(r->g, &fold[0], r->d_x, o->d_top, chunks, 1);
    }
    for (int k = 0; o->at_fold < 0 && k < chunks; k++)
        for (int i = 0; i < D; i++)
            r->d_x[k * C * D + i] += o->d_top[k * D + i];
    sublayers_backward(&o->level[INNER], r->g, r->d_x, o->of[INNER].B, o->of[INNER].L);
}

static void release(struct run *r)
{
    struct hier_run *const o = r->data;

    for (int i = 0; i < LEVELS; i++)
        sublayers_free(&o->level[i]);
}

const struct golden_kind golden_hier = {
    .name = "hier",
    .size = sizeof(struct hier_run),
    MEMBERS(, read, bind, forward, backward, release),
};
