/* SPDX-License-Identifier: MIT
 *
 * Rotary positions (Su et al. 2021, "RoFormer", section 3.2): the first rope_dim coordinates of a
 * query or key are rotated pairwise by position * rope_base^(-2f/rope_dim). A product of two rows
 * then depends on the difference of their positions only. Pairs are adjacent, as in the paper, or
 * coordinate f of the first half with f of the second. Layers may have bases of their own, 0 for no
 * rotation (Kazemnejad et al. 2023, "NoPE").
 *
 * Longer contexts than trained on, by a factor s: `linear` divides frequencies by s (Chen et al.
 * 2023, arXiv:2306.15595), `ntk` takes base s^(r/(r-2)), and `yarn` (Peng et al. 2023,
 * arXiv:2309.00071) divides those that turn less than beta_slow times in the original context,
 * keeps those that turn more than beta_fast times, goes linearly between the two, and multiplies
 * cosines and sines by 0.1 ln s + 1. */
#include "parts.h"

#include <math.h>

enum {
    PAIRS = 64,    /* rotated together: their cosines and sines stay in L1 */
    STRETCH = 128, /* positions in the table; the angles of others are sums of two */
    PARALLEL_MIN = 16384,
};

#define PI 3.14159265358979323846

enum { ADJACENT, HALVES };
static const char *const pairs_name[] = {[ADJACENT] = "interleaved", [HALVES] = "half", NULL};

struct rope {
    int dim; /* coordinates of a head that are rotated */
    double base;
    int pairs;
    int original;               /* tokens of the original context; yarn */
    float beta_fast, beta_slow; /* turns in it */
    float mscale;               /* of cosines and sines; 0 = 0.1 ln factor + 1 */
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
    {.name = "rope_original",
     .help = "tokens of the original context",
     .codec = CODEC_INT,
     .at = offsetof(struct rope, original),
     .least = 1,
     .most = 1 << 28,
     .absent = "4096"},
    {.name = "rope_beta_fast",
     .help = "turns in the original context, of frequencies that stay",
     .codec = CODEC_REAL,
     .at = offsetof(struct rope, beta_fast),
     .most = 1 << 20,
     .absent = "32"},
    {.name = "rope_beta_slow",
     .help = "turns in the original context, of frequencies that are divided",
     .codec = CODEC_REAL,
     .at = offsetof(struct rope, beta_slow),
     .most = 1 << 20,
     .absent = "1"},
    {.name = "rope_mscale",
     .help = "of cosines and sines, 0 = by the factor",
     .codec = CODEC_REAL,
     .at = offsetof(struct rope, mscale),
     .most = 1 << 20,
     .absent = "0"},
    {0},
};

static void rope_usual(const struct config *c, void *own)
{
    *(struct rope *)own = (struct rope){.dim = c->dh - c->dh % 2,
                                        .base = 10000,
                                        .pairs = HALVES,
                                        .original = 4096,
                                        .beta_fast = 32,
                                        .beta_slow = 1};
}

static const struct own rope_own = {rope_choices, OWN_SIZE(struct rope), rope_usual, NULL};

static const struct rope *rope_of(const struct config *c) { return config_own(c, SLOT_POS); }

static int pairs_of(const struct config *c) { return rope_of(c)->dim / 2; }

/* Each base has a table of its own; layer l has the table l % tables_of. */
static int tables_of(const struct config *c) { return max_int(1, c->layer_rope_base.n); }

static double base_of(const struct config *c, int table)
{
    return c->layer_rope_base.n ? c->layer_rope_base.at[table] : rope_of(c)->base;
}

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
    for (int k = 0; k < tables_of(c); k++)
        if (base_of(c, k) != 0 && !(base_of(c, k) > 1))
            return fail(e, E_USAGE, "rope: base %g  -> use more than 1", base_of(c, k));
    if (!c->layer_rope_base.n && rope_of(c)->base == 0)
        return fail(e, E_USAGE, "rope: base 0  -> use more than 1");
    if (c->rope_scaling == ROPE_NTK && rope_of(c)->dim < 4)
        return fail(e, E_USAGE, "rope: ntk scaling of %d coordinates  -> 4 or more",
                    rope_of(c)->dim);
    if (c->rope_scaling == ROPE_YARN &&
        !(rope_of(c)->beta_slow > 0 && rope_of(c)->beta_fast > rope_of(c)->beta_slow))
        return fail(e, E_USAGE, "rope: %g to %g turns  -> more than 0, the fast ones more",
                    (double)rope_of(c)->beta_slow, (double)rope_of(c)->beta_fast);
    return OK;
}

/* The pair that turns so often in the original context. */
static double pair_of(const struct rope *r, double base, double turns)
{
    return r->dim * log(r->original / (turns * 2 * PI)) / (2 * log(base));
}

/* How far the frequency of pair f is on the way to being divided, 0 to 1. */
static double yarn_ramp(const struct rope *r, double base, int f)
{
    const double lo = fmax(floor(pair_of(r, base, (double)r->beta_fast)), 0);
    const double hi = fmin(ceil(pair_of(r, base, (double)r->beta_slow)), r->dim - 1);

    return fmin(fmax((f - lo) / (hi != lo ? hi - lo : 0.001), 0), 1);
}

/* Radians per position of pair f. Angles stay in double: a float one is off by 2e-4 at position
 * 4000. The cosine of a double is reduced exactly, for any number of turns. */
static double frequency(const struct config *c, int table, int f)
{
    const struct rope *const r = rope_of(c);
    const double s = (double)c->rope_factor, dim = r->dim, base = base_of(c, table);
    const double w = pow(base, -2.0 * f / dim);

    switch (c->rope_scaling) {
    case ROPE_LINEAR:
        return w / s;
    case ROPE_NTK:
        return pow(base * pow(s, dim / (dim - 2)), -2.0 * f / dim);
    case ROPE_YARN: {
        const double ramp = yarn_ramp(r, base, f);
        return w / s * ramp + w * (1 - ramp);
    }
    default:
        return w;
    }
}

/* What cosines and sines are multiplied by. */
static double magnitude(const struct config *c)
{
    const struct rope *const r = rope_of(c);

    if (c->rope_scaling != ROPE_YARN)
        return 1;
    return r->mscale != 0 ? (double)r->mscale : 0.1 * log((double)c->rope_factor) + 1;
}

/* Row t: cosines, then sines, of position t. The table is the same for every window length, so the
 * rounding of a position's angles depends on the position only. */
static size_t table_floats(const struct config *c)
{
    return (size_t)STRETCH * (size_t)rope_of(c)->dim;
}

static size_t rope_n_pos_encoding(const struct config *c, int K)
{
    (void)K;
    return (size_t)tables_of(c) * table_floats(c);
}

static void rope_pos_encoding(const struct config *c, int K, float *pos_encoding)
{
    const int n = pairs_of(c);

    (void)K;
    for (int x = 0; x < tables_of(c) * n; x++) {
        const int table = x / n, f = x % n;
        const double w = base_of(c, table) != 0 ? frequency(c, table, f) : 0;
        float *const at = pos_encoding + (size_t)table * table_floats(c) + f;
        for (int t = 0; t < STRETCH; t++) {
            at[(ptrdiff_t)t * rope_of(c)->dim] = (float)cos(t * w);
            at[(ptrdiff_t)t * rope_of(c)->dim + n] = (float)sin(t * w);
        }
    }
}

/* Cosine and sine of up to PAIRS angles. */
struct phases {
    float c[PAIRS], s[PAIRS];
};

/* The angles of pairs f0.. at the first position of a stretch, with the magnitude of all. */
static void first_phases(struct phases *p, const struct config *c, int table, int64_t position,
                         int f0, int n)
{
    const double m = magnitude(c), ratio = frequency(c, table, 1) / frequency(c, table, 0);
    double w = frequency(c, table, f0);

    for (int f = 0; f < n; f++, w *= ratio) {
        if (c->rope_scaling == ROPE_YARN) /* the only one that is no geometric series */
            w = frequency(c, table, f0 + f);
        p->c[f] = (float)(m * cos((double)position * w));
        p->s[f] = (float)(m * sin((double)position * w));
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

    const int table = t->layer % tables_of(c);
    first_phases(&first, c, table, t->position + row0 - t0, f0, n);
    pos_encoding += (size_t)table * table_floats(c);
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

    if (base_of(c, t->layer % tables_of(c)) == 0)
        return;
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
