/* SPDX-License-Identifier: MIT
 *
 * Gradients of all parameters of a list but buffers, whose are steps, against finite differences. */
#pragma once

#include "finite.h"
#include "variants/parts/params.h"

/* Of the parameters one after the other. */
static inline float *copy_gradients(const struct params *p, size_t *n)
{
    *n = 0;
    for (int i = 0; i < p->n; i++)
        *n += p->v[i].n;
    float *const all = room(*n, sizeof(*all)), *to = all;
    for (int i = 0; i < p->n; to += p->v[i++].n)
        memcpy(to, p->v[i].grad, p->v[i].n * sizeof(*all));
    return all;
}

/* The directions follow from the names: `what` and that of the parameter. */
static inline void expect_gradients(const struct scalar *f, const char *what,
                                    const struct params *p, double relative, double absolute)
{
    for (const struct param *w = p->v; w < p->v + p->n; w++) {
        const char *const name = kept_text("%.96s%s%.93s", what, *what ? ": " : "", w->name);
        if (!w->buffer)
            expect_gradient(f, name, w->data, w->grad, w->n, relative, absolute);
    }
}

/* Along directions that no corner is near; false if there are too few of one parameter. Values of f may
 * change the gradients. */
static inline bool expect_gradients_along(const struct scalar *f, const char *what,
                                          const struct params *p, double relative, int directions)
{
    bool smooth = true;
    size_t n;
    const float *grad = copy_gradients(p, &n);

    for (const struct param *w = p->v; w < p->v + p->n; grad += w++->n) {
        const char *const name = kept_text("%.96s: %.93s", what, w->name);
        if (!w->buffer)
            smooth &= expect_gradient_aside(f, name, w->data, grad, w->n, relative,
                                            2 * f->noise / f->step, directions);
    }
    return smooth;
}

static inline bool expect_gradients_aside(const struct scalar *f, const char *what,
                                          const struct params *p, double relative)
{
    return expect_gradients_along(f, what, p, relative, DIRECTIONS);
}
