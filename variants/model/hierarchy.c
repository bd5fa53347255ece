/* SPDX-License-Identifier: MIT
 *
 * Two levels of layers: equations in hierarchy.h. */
#include "hierarchy.h"
#include "variants/parts/linear.h"

#include <string.h>

const char *const fold_name[FOLDS + 1] = {"linear", "first", NULL};

enum status hierarchy_init(struct hierarchy *t, const struct config *c, int chunk, bool folds,
                           struct params *p, struct err *e)
{
    struct sublayers *const levels[] = {&t->inner, &t->outer};
    static const char *const names[] = {"inner.", "outer."};

    *t = (struct hierarchy){.c = *c, .chunk = chunk, .folds = folds, .at_fold = -1};
    for (int i = 0; i < 2; i++) {
        const int first = p->n;
        const enum status st = sublayers_init(levels[i], &t->c, p, 0, e);
        if (st != OK)
            return st;
        params_rename(p, first, "layers.0.", names[i]);
    }
    if (!folds)
        return OK;
    t->at_fold = params_map(p, c->D, chunk * c->D, "fold.", "weight");
    params_vector(p, INIT_ZERO, 0, c->D, "fold.", "bias");
    return OK;
}

static struct extent inner_extent(const struct hierarchy *t)
{
    return (struct extent){t->max.B * (t->max.L / t->chunk), t->chunk, 0};
}

static struct extent outer_extent(const struct hierarchy *t)
{
    return (struct extent){t->max.B, t->max.L / t->chunk, 0};
}

enum status hierarchy_bind(struct hierarchy *t, const struct engine *g, const struct params *p,
                           struct extent max, bool backward, struct arena *a, struct err *e)
{
    const size_t D = (size_t)t->c.D, rows = (size_t)max.B * (size_t)max.L;
    const size_t chunks = rows / (size_t)t->chunk;
    enum status st;

    t->max = max;
    t->fold = t->folds ? &p->v[t->at_fold] : NULL;
    if ((st = sublayers_bind(&t->inner, g, p, MEM_NONE, inner_extent(t), a, e)) != OK ||
        (st = sublayers_bind(&t->outer, g, p, MEM_NONE, outer_extent(t), a, e)) != OK)
        return st;
    if (backward && ((st = sublayers_bind_grad(&t->inner, g, a, e)) != OK ||
                     (st = sublayers_bind_grad(&t->outer, g, a, e)) != OK))
        return st;
    t->x = arena_f32(a, PART_ACTIVATIONS, rows * D);
    t->in = arena_f32(a, PART_ACTIVATIONS, rows * D);
    t->z = arena_f32(a, PART_ACTIVATIONS, chunks * D);
    t->top = arena_f32(a, PART_ACTIVATIONS, chunks * D);
    t->d_top = backward ? arena_f32(a, PART_ACTIVATIONS, chunks * D) : NULL;
    return OK;
}

void hierarchy_free(struct hierarchy *t)
{
    sublayers_free(&t->inner);
    sublayers_free(&t->outer);
}

static void run(struct sublayers *s, const struct engine *g, float *z, float *x, const float *from,
                struct extent of)
{
    float *const in = s->kept ? sublayers_input(s, NULL) : x;

    memcpy(in, from, sizeof(float) * (size_t)(of.B * of.L) * (size_t)s->at->c->D);
    sublayers_build_tables(s, g);
    sublayers_forward(s, g, z, in, of.B, of.L);
}

void hierarchy_forward(struct hierarchy *t, const struct engine *g, float *y, const float *x)
{
    const ptrdiff_t D = t->c.D, C = t->chunk;
    const int rows = t->max.B * t->max.L, chunks = rows / t->chunk;

    run(&t->inner, g, t->in, t->x, x, inner_extent(t));
    if (t->folds)
        linear_forward(g, &t->fold[0], &t->fold[1], t->z, t->in, chunks, (struct act){.y = t->z});
    for (int k = 0; !t->folds && k < chunks; k++)
        memcpy(t->z + k * D, t->in + k * C * D, sizeof(float) * (size_t)D);
    run(&t->outer, g, t->top, t->top, t->z, outer_extent(t));
    for (int r = 0; r < rows; r++)
        for (int e = 0; e < D; e++)
            y[r * D + e] = t->in[r * D + e] + t->top[r / C * D + e];
}

void hierarchy_backward(struct hierarchy *t, const struct engine *g, float *d_x, const float *d_y)
{
    const ptrdiff_t D = t->c.D, C = t->chunk;
    const int rows = t->max.B * t->max.L, chunks = rows / t->chunk;
    const struct extent inner = inner_extent(t), outer = outer_extent(t);

    memset(t->d_top, 0, sizeof(float) * (size_t)chunks * (size_t)D);
    for (int r = 0; r < rows; r++)
        for (int e = 0; e < D; e++)
            t->d_top[r / C * D + e] += d_y[r * D + e];
    sublayers_backward(&t->outer, g, t->d_top, outer.B, outer.L);
    memcpy(d_x, d_y, sizeof(float) * (size_t)rows * (size_t)D);
    if (t->folds) {
        linear_bias_grad(g, &t->fold[1], t->d_top, chunks);
        linear_weight_grad(g, &t->fold[0], t->d_top, t->in, chunks);
        linear_input_grad(g, &t->fold[0], d_x, t->d_top, chunks, 1);
    }
    for (int k = 0; !t->folds && k < chunks; k++)
        for (int e = 0; e < D; e++)
            d_x[k * C * D + e] += t->d_top[k * D + e];
    sublayers_backward(&t->inner, g, d_x, inner.B, inner.L);
}
