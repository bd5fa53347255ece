/* SPDX-License-Identifier: MIT
 *
 * A step that rotates pairs of columns by their position in the stream (parts/rotary.h). */
#include "steps.h"
#include "variants/parts/rotary.h"

enum { WIDTH, HALVES }; /* numbers */
enum { BASE };

/* In place: all rows of a value of its own, which lie one after the other. */
static void turn(const struct step_call *c, const struct matrix *m, bool back)
{
    enum { STRETCH = 16 };
    float cosines[STRETCH * ROTARY_PAIRS], sines[STRETCH * ROTARY_PAIRS];
    const struct rotary_table table = {cosines, sines, ROTARY_PAIRS, STRETCH};
    const struct rotary r = {.x = m->at,
                             .stride = (ptrdiff_t)c->L * m->n,
                             .B = c->B,
                             .rows = c->L,
                             .heads = m->n / c->s->n[WIDTH],
                             .width = c->s->n[WIDTH],
                             .pairs = c->s->n[WIDTH] / 2,
                             .position = c->position,
                             .halves = c->s->n[HALVES],
                             .back = back};

    CHECK(m->row == m->n);
    for (int f0 = 0; f0 < r.pairs; f0 += ROTARY_PAIRS) {
        const int n = min_int(ROTARY_PAIRS, r.pairs - f0);
        double w[ROTARY_PAIRS];
        rotary_series(w, (double)c->s->x[BASE], r.pairs, f0, n);
        for (int i = 0; i < min_int(c->L, STRETCH); i++) /* those that occur */
            rotary_row(&table, (int)((c->position + i) % STRETCH), w, n);
        rotary_turn(c->g, &r, &table, w, 1, f0, n);
    }
}

static void forward(const struct step_call *c)
{
#pragma omp parallel for num_threads(step_team(c))
    for (int i = 0; i < c->B * c->L; i++)
        memcpy(matrix_row(&c->out[0], i), matrix_row(&c->in[0], i),
               sizeof(float) * (size_t)c->in->n);
    turn(c, &c->out[0], false);
}

/* The output's gradient becomes that of the input. */
static void backward(const struct step_call *c)
{
    turn(c, &c->d_out[0], true);
#pragma omp parallel for num_threads(step_team(c))
    for (int i = 0; i < c->B * c->L; i++) {
        const float *const d = matrix_row(&c->d_out[0], i);
        float *const to = matrix_row(&c->d_in[0], i);
        for (int e = 0; e < c->in->n; e++)
            to[e] += d[e];
    }
}

int step_rotate(struct steps *t, int x, int width, double base, bool halves)
{
    static const struct step_kind rotate = {
        .name = "rotate", .forward = forward, .backward = backward};
    struct step *const s = STEP_READING(t, &rotate, x);

    steps_need(t, t->value[x].width % width == 0,
               "step_rotate() of other than whole heads  -> a width that divides it");
    t->positions = "position";
    s->n[WIDTH] = width;
    s->n[HALVES] = halves;
    s->x[BASE] = (float)base;
    return step_writes(t, s, t->value[x].width);
}
