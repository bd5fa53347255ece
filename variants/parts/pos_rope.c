/* SPDX-License-Identifier: MIT
 *
 * Rotary positions (Su et al. 2021, "RoFormer", section 3.2): the first rope_dim coordinates of a
 * query or key are rotated pairwise by position * rope_base^(-2f/rope_dim). A product of two rows
 * then depends on the difference of their positions only. Pairs are adjacent, as in the paper, or
 * coordinate f of the first half with f of the second. */
#include "parts.h"

#include <math.h>

enum {
    PAIRS = 64,    /* rotated together: their cosines and sines stay in L1 */
    STRETCH = 128, /* positions in the table; the angles of others are sums of two */
    PARALLEL_MIN = 16384,
};

enum { ADJACENT, HALVES };
static const char *const pairs_name[] = {[ADJACENT] = "interleaved", [HALVES] = "half", NULL};

struct rope {
    int dim; /* coordinates of a head that are rotated */
    double base;
    int pairs;
};

static const struct choice rope_choices[] = {
    {.name = "rope_dim",
     .help = "coordinates of a head that are rotated",
     .codec = CODEC_INT,
     .at = offsetof(struct rope, dim),
     .most = 1 << 20,
     .zero_is_absent = true},
    {.name = "rope_base",
     .help = "of the frequencies",
     .codec = CODEC_WIDE,
     .at = offsetof(struct rope, base),
     .most = INFINITY},
    {.name = "rope_pairs",
     .help = "which coordinates are rotated together",
     .codec = CODEC_WORD,
     .at = offsetof(struct rope, pairs),
     .words = pairs_name,
     .absent = "interleaved"},
    {0},
};

static void rope_usual(const struct config *c, void *own)
{
    *(struct rope *)own = (struct rope){.dim = c->dh - c->dh % 2, .base = 10000, .pairs = HALVES};
}

static const struct own rope_own = {rope_choices, OWN_SIZE(struct rope), rope_usual, NULL};

static const struct rope *rope_of(const struct config *c) { return config_own(c, SLOT_POS); }

static int pairs_of(const struct config *c) { return rope_of(c)->dim / 2; }

static enum status rope_check(const struct config *c, struct err *e)
{
    if (c->dh < 2)
        return fail(e, E_USAGE, "rope: a head of width %d has no pair to rotate  -> use 2 or more",
                    c->dh);
    if (rope_of(c)->dim < 2 || rope_of(c)->dim > c->dh || rope_of(c)->dim % 2)
        return fail(
            e, E_USAGE,
            "rope: %d coordinates to rotate  -> use an even number from 2 to the head width %d",
            rope_of(c)->dim, c->dh);
    if (!(rope_of(c)->base > 1))
        return fail(e, E_USAGE, "rope: base %g  -> use more than 1", rope_of(c)->base);
    return OK;
}

/* Radians per position of pair f. Angles stay in double: a float one is off by 2e-4 at position
 * 4000. The cosine of a double is reduced exactly, for any number of turns. */
static double frequency(const struct config *c, int f)
{
    return pow(rope_of(c)->base, -2.0 * f / rope_of(c)->dim);
}

/* Row t: cosines, then sines, of position t. The table is the same for every window length, so the
 * rounding of a position's angles depends on the position only. */
static size_t rope_n_pos_encoding(const struct config *c, int K)
{
    (void)K;
    return (size_t)STRETCH * (size_t)rope_of(c)->dim;
}

static void rope_pos_encoding(const struct config *c, int K, float *pos_encoding)
{
    const int n = pairs_of(c);

    (void)K;
    for (int f = 0; f < n; f++) {
        const double w = frequency(c, f);
        for (int t = 0; t < STRETCH; t++) {
            pos_encoding[(ptrdiff_t)t * rope_of(c)->dim + f] = (float)cos(t * w);
            pos_encoding[(ptrdiff_t)t * rope_of(c)->dim + n + f] = (float)sin(t * w);
        }
    }
}

/* Cosine and sine of up to PAIRS angles. */
struct phases {
    float c[PAIRS], s[PAIRS];
};

/* The angles of pairs f0.. at the first position of a stretch. */
static void first_phases(struct phases *p, const struct config *c, int64_t position, int f0, int n)
{
    const double ratio = frequency(c, 1);
    double w = frequency(c, f0);

    for (int f = 0; f < n; f++, w *= ratio) {
        p->c[f] = (float)cos((double)position * w);
        p->s[f] = (float)sin((double)position * w);
    }
}

/* The angles of a row: those of its stretch plus the table's; negated when rotating back. */
static void row_phases(struct phases *p, const struct phases *first, const float *c, const float *s,
                       int n, bool back)
{
    const float sign = back ? -1 : 1;

#pragma omp simd
    for (int f = 0; f < n; f++) {
        p->c[f] = first->c[f] * c[f] - first->s[f] * s[f];
        p->s[f] = sign * (first->s[f] * c[f] + first->c[f] * s[f]);
    }
}

/* (a, b) -> (a cos - b sin, a sin + b cos) */
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

/* Rotate pairs f0 .. f0+n-1 of rows row0 .. of every sequence; their positions lie in one stretch,
 * from its position t0 on. */
static void rotate_pairs(const struct engine *g, const struct config *c, const float *pos_encoding,
                         const struct rotation *t, int row0, int rows, int t0, int f0, int n)
{
    const ptrdiff_t all = (ptrdiff_t)t->B * rows, width = (ptrdiff_t)t->heads * c->dh;
    const int half = pairs_of(c);
    struct phases first;

    first_phases(&first, c, t->position + row0 - t0, f0, n);
#pragma omp parallel for num_threads(all *width > PARALLEL_MIN ? g->threads : 1)
    for (ptrdiff_t i = 0; i < all; i++) {
        const ptrdiff_t row = i % rows;
        const float *code = pos_encoding + (t0 + row) * rope_of(c)->dim + f0;
        float *x = t->x + i / rows * t->stride + (row0 + row) * width;
        struct phases p;
        row_phases(&p, &first, code, code + half, n, t->back);
        for (int h = 0; h < t->heads; h++, x += c->dh) {
            if (rope_of(c)->pairs == HALVES)
                rotate_halves(x + f0, x + half + f0, &p, n);
            else
                rotate_adjacent(x + 2 * f0, &p, n);
        }
    }
}

static void rope_rotate(const struct engine *g, const struct config *c, const float *pos_encoding,
                        const struct rotation *t)
{
    const int n = pairs_of(c);

    for (int row = 0, rows; row < t->rows; row += rows) {
        const int t0 = (int)((t->position + row) % STRETCH);
        rows = min_int(STRETCH - t0, t->rows - row);
        for (int f0 = 0; f0 < n; f0 += PAIRS)
            rotate_pairs(g, c, pos_encoding, t, row, rows, t0, f0, min_int(PAIRS, n - f0));
    }
}

const struct pos pos_rope = {
    .name = "rope",
    .own = &rope_own,
    .check = rope_check,
    .n_pos_encoding = rope_n_pos_encoding,
    .pos_encoding = rope_pos_encoding,
    .rotate = rope_rotate,
};
