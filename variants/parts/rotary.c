/* SPDX-License-Identifier: MIT
 *
 * Rotation of pairs of coordinates. Angles stay in double: a float one is off by 2e-4 at position
 * 4000. The cosine of a double is reduced exactly, for any number of turns. */
#include "rotary.h"

/* Cosine and sine of some angles. */
struct phases {
    float c[ROTARY_PAIRS], s[ROTARY_PAIRS];
};

void rotary_row(const struct rotary_table *table, int t, const double *w, int n)
{
    for (int f = 0; f < n; f++) {
        table->c[t * table->row + f] = (float)cos(t * w[f]);
        table->s[t * table->row + f] = (float)sin(t * w[f]);
    }
}

void rotary_series(double *w, double base, int pairs, int f0, int n)
{
    const double ratio = pow(base, -1.0 / pairs);

    CHECK(n <= ROTARY_PAIRS);
    w[0] = pow(base, -(double)f0 / pairs);
    for (int f = 1; f < n; f++)
        w[f] = w[f - 1] * ratio;
}

/* The angles of a row: those of its stretch plus the table's; negated when rotating back. */
static void row_phases(struct phases *p, const struct phases *first,
                       const struct rotary_table *table, ptrdiff_t t, int n, bool back)
{
    const float *const c = table->c + t * table->row, *const s = table->s + t * table->row;
    const float sign = back ? -1 : 1;

#pragma omp simd
    for (int f = 0; f < n; f++) {
        p->c[f] = first->c[f] * c[f] - first->s[f] * s[f];
        p->s[f] = sign * (first->s[f] * c[f] + first->c[f] * s[f]);
    }
}

static void rotate_halves(float *a, float *b, const struct phases *p, int n)
{
#pragma omp simd
    for (int f = 0; f < n; f++) {
        const float x = a[f], y = b[f];
        a[f] = x * p->c[f] - y * p->s[f];
        b[f] = x * p->s[f] + y * p->c[f];
    }
}

static void rotate_adjacent(float *a, const struct phases *p, int n)
{
#pragma omp simd
    for (int f = 0; f < n; f++) {
        const float x = a[2 * f], y = a[2 * f + 1];
        a[2 * f] = x * p->c[f] - y * p->s[f];
        a[2 * f + 1] = x * p->s[f] + y * p->c[f];
    }
}

/* Rows row0 .. of every sequence, whose positions lie in one stretch, from its position t0 on. */
static void turn_stretch(const struct engine *g, const struct rotary *r,
                         const struct rotary_table *table, const struct phases *first, int row0,
                         int rows, int t0, int f0, int n)
{
    const ptrdiff_t all = (ptrdiff_t)r->B * rows, width = (ptrdiff_t)r->heads * r->width;

#pragma omp parallel for num_threads(team_for(g->threads, all *width))
    for (ptrdiff_t i = 0; i < all; i++) {
        const ptrdiff_t row = i % rows;
        float *x = r->x + i / rows * r->stride + (row0 + row) * width;
        struct phases p;
        row_phases(&p, first, table, t0 + row, n, r->back);
        for (int h = 0; h < r->heads; h++, x += r->width) {
            if (r->halves)
                rotate_halves(x + f0, x + r->pairs + f0, &p, n);
            else
                rotate_adjacent(x + 2 * f0, &p, n);
        }
    }
}

void rotary_turn(const struct engine *g, const struct rotary *r, const struct rotary_table *table,
                 const double *w, double magnitude, int f0, int n)
{
    for (int row = 0, rows; row < r->rows; row += rows) {
        const int t0 = (int)((r->position + row) % table->positions);
        const double start = (double)(r->position + row - t0);
        struct phases first;
        for (int f = 0; f < n; f++) {
            first.c[f] = (float)(magnitude * cos(start * w[f]));
            first.s[f] = (float)(magnitude * sin(start * w[f]));
        }
        rows = min_int(table->positions - t0, r->rows - row);
        turn_stretch(g, r, table, &first, row, rows, t0, f0, n);
    }
}
