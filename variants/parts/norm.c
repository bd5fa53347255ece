/* SPDX-License-Identifier: MIT
 *
 * Norms by kind. Kinds differ in their parameters; the backend computes them. */
#include "norm.h"

#include <math.h>

const char *const norm_kind_name[NORM_KIND_COUNT + 1] = {"layer", "rms", "scale", "unbiased", NULL};

static bool has_bias(enum norm_kind kind) { return kind == NORM_LAYER || kind == NORM_UNBIASED; }

void norm_params(const struct config *c, const char *prefix, const char *name, struct params *p)
{
    const int one = 1;

    if (c->norm_kind == NORM_SCALE) {
        params_add(p, INIT_CONST, sqrtf((float)c->D), 1, &one, "%s%s.g", prefix, name);
        return;
    }
    params_add(p, INIT_ONE, 0, 1, &c->D, "%s%s.weight", prefix, name);
    if (has_bias(c->norm_kind))
        params_add(p, INIT_ZERO, 0, 1, &c->D, "%s%s.bias", prefix, name);
}

void norm_apply(const struct engine *g, const struct config *c, const struct param *w, float *y,
                const float *x, const float *add, int rows)
{
    g->ops.norm(&(struct norm){.kind = c->norm_kind,
                               .y = y,
                               .x = x,
                               .add = add,
                               .weight = w[0].data,
                               .bias = has_bias(c->norm_kind) ? w[1].data : NULL,
                               .rows = rows,
                               .n = c->D,
                               .eps = c->ln_eps,
                               .threads = g->threads});
}

void norm_backward(const struct engine *g, const struct config *c, const struct param *w,
                   float *d_x, const float *d_y, const float *x, float *stats, int rows)
{
    g->ops.norm_grad(&(struct norm_grad){.kind = c->norm_kind,
                                         .d_x = d_x,
                                         .d_weight = w[0].grad,
                                         .d_bias = has_bias(c->norm_kind) ? w[1].grad : NULL,
                                         .d_y = d_y,
                                         .x = x,
                                         .weight = w[0].data,
                                         .stats = stats,
                                         .rows = rows,
                                         .n = c->D,
                                         .eps = c->ln_eps,
                                         .threads = g->threads});
}
