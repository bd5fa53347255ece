/* SPDX-License-Identifier: MIT
 *
 * A step that rotates pairs of columns by their position in the stream (parts/pos_rope.c has the
 * equations, and the tables that long contexts of attention need). Angles are double: a float one
 * is off by 2e-4 at position 4000. */
#include "steps.h"

#include <math.h>

enum { WIDTH, HALVES }; /* numbers */
enum { BASE };

enum { PAIRS = 64 };

static void turn(const struct step_call *c, int i, bool back)
{
    const int width = c->s->n[WIDTH], pairs = width / 2;
    const int64_t position = c->position + i % c->L;
    const bool halves = c->s->n[HALVES];
    const struct matrix *const from = back ? &c->d_out[0] : &c->in[0];
    const struct matrix *const to = back ? &c->d_in[0] : &c->out[0];
    float co[PAIRS], si[PAIRS];

    for (int f0 = 0; f0 < pairs; f0 += PAIRS) {
        const int n = min_int(PAIRS, pairs - f0);
        for (int f = 0; f < n; f++) {
            const double w = pow((double)c->s->x[BASE], -2.0 * (f0 + f) / (2 * pairs));
            co[f] = (float)cos((double)position * w);
            si[f] = (float)sin((double)position * w) * (back ? -1 : 1);
        }
        for (int at = 0; at < from->n; at += width) {
            const float *const x = matrix_row(from, i) + at;
            float *const y = matrix_row(to, i) + at;
            for (int f = 0; f < n; f++) {
                const int p = halves ? f0 + f : 2 * (f0 + f), q = halves ? p + pairs : p + 1;
                const float a = x[p] * co[f] - x[q] * si[f], b = x[p] * si[f] + x[q] * co[f];
                y[p] = back ? y[p] + a : a;
                y[q] = back ? y[q] + b : b;
            }
            if (width % 2 && f0 + n == pairs)
                y[width - 1] = back ? y[width - 1] + x[width - 1] : x[width - 1];
        }
    }
}

static void forward(const struct step_call *c)
{
#pragma omp parallel for num_threads(c->B * c->L > 1 ? c->g->threads : 1)
    for (int i = 0; i < c->B * c->L; i++)
        turn(c, i, false);
}

static void backward(const struct step_call *c)
{
#pragma omp parallel for num_threads(c->B * c->L > 1 ? c->g->threads : 1)
    for (int i = 0; i < c->B * c->L; i++)
        turn(c, i, true);
}

int step_rotate(struct steps *t, int x, int width, double base, bool halves)
{
    static const struct step_kind rotate = {
        .name = "rotate", .forward = forward, .backward = backward};
    struct step *const s = steps_add(t, &rotate);

    CHECK(t->value[x].width % width == 0);
    t->positions = true;
    s->n[WIDTH] = width;
    s->n[HALVES] = halves;
    s->x[BASE] = (float)base;
    step_reads(t, s, x);
    return step_writes(t, s, t->value[x].width);
}
