/* SPDX-License-Identifier: MIT
 *
 * Rotary positions: the rotation against complex products in double, in any layout and by any number of
 * threads, and backward, with every scaling for longer contexts and far beyond the table of angles: every
 * backend rotates by this code, so none of them can judge it. That models stream, with keys remembered and
 * with hidden states: tests/model/test_lm.c, test_properties.c. */
#include "tests/support/model.h"

#include <complex.h>

/* ---- a head in double ----------------------------------------------------------------------- */

static const int64_t far[] = {0, 1, 77, 127, 128, 129, 4095, 4096, 65535, 65536};

struct rotary_form {
    const char *scaling, *pairs;
    int dim;
    double base, factor, original;
    double fast, slow; /* turns in the original context: yarn's betas, or llama3's high and low */
    double mscale;
    int tokens; /* of the text; 0 = those of a call */
};

static const struct rotary_form rotary_forms[] = {
    {"none", "half", 64, 10000, 1, 4096, 32, 1, 0, 0},
    {"none", "interleaved", 262, 500000, 1, 4096, 32, 1, 0, 0}, /* pairs of three tables */
    {"linear", "half", 64, 10000, 4, 4096, 32, 1, 0, 0},
    {"linear", "interleaved", 6, 10000, 2.5, 4096, 32, 1, 0, 0},
    {"ntk", "half", 64, 10000, 8, 4096, 32, 1, 0, 0},
    {"ntk", "interleaved", 4, 10000, 3, 4096, 32, 1, 0, 0},
    {"dynamic", "half", 64, 10000, 8, 512, 32, 1, 0, 1300},
    {"dynamic", "interleaved", 150, 5000, 3, 2048, 32, 1, 0, 2049},
    {"dynamic", "half", 64, 10000, 8, 512, 32, 1, 0, 512},
    {"dynamic", "half", 64, 10000, 8, 512, 32, 1, 0, 0},
    {"yarn", "half", 64, 10000, 8, 512, 32, 1, 0, 0},
    {"yarn", "half", 128, 10000, 16, 4096, 32, 1, 0.75, 0},
    {"yarn", "interleaved", 150, 1000000, 4, 2048, 16, 2, 0, 0},
    {"llama3", "half", 64, 500000, 8, 8192, 4, 1, 0, 0},
    {"llama3", "half", 64, 10000, 8, 512, 4, 1, 0, 0},
    {"llama3", "interleaved", 150, 10000, 32, 512, 8, 2, 0, 0},
};

static double between(double x, double lo, double hi) { return x < lo ? lo : x > hi ? hi : x; }

/* The pair that makes so many turns in the original context: original base^(-2f/dim) = 2 pi turns.
 */
static double pair_of_turns(const struct rotary_form *r, double turns)
{
    return r->dim / 2. * log(r->original / (2 * M_PI * turns)) / log(r->base);
}

/* How much of its frequency a pair keeps, the rest of it being divided by the factor. */
static double kept_part(const struct rotary_form *r, int f, double w)
{
    if (strcmp(r->scaling, "none") == 0)
        return 1;
    if (strcmp(r->scaling, "linear") == 0)
        return 0;
    if (strcmp(r->scaling, "llama3") == 0) /* linearly with the turns */
        return between((r->original * w / (2 * M_PI) - r->slow) / (r->fast - r->slow), 0, 1);
    const double lo = fmax(floor(pair_of_turns(r, r->fast)), 0),
                 hi = fmin(ceil(pair_of_turns(r, r->slow)), r->dim - 1);
    return 1 - between((f - lo) / (hi - lo), 0, 1);
}

/* Radians per position. */
static double frequency(const struct rotary_form *r, int f)
{
    const double d = r->dim, w = 1 / pow(r->base, 2 * f / d), k = kept_part(r, f, w);

    if (strcmp(r->scaling, "ntk") == 0)
        return 1 / pow(r->base * pow(r->factor, d / (d - 2)), 2 * f / d);
    if (strcmp(r->scaling, "dynamic") == 0) {
        const double times = fmax(r->tokens, r->original) / r->original;
        const double by = r->factor * times - (r->factor - 1);
        return 1 / pow(r->base * pow(by, d / (d - 2)), 2 * f / d);
    }
    return k * w + (1 - k) * w / r->factor;
}

static double length_of(const struct rotary_form *r)
{
    if (strcmp(r->scaling, "yarn") != 0)
        return 1;
    return r->mscale > 0 ? r->mscale : 1 + log(r->factor) / 10;
}

/* A head, by (a + bi) m e^(i p w). The two factors of an angle and their product are 3 U, the
 * coordinate another 3 U and m one. The program's frequencies are off by some 2^-46, as each of a
 * table's follows from the one before: 1e-9 at the farthest position. */
static void expect_head(const struct rotary_form *r, const float *got, const float *x, int dh,
                        int64_t p)
{
    const bool half = strcmp(r->pairs, "half") == 0;

    for (int f = 0; f < r->dim / 2; f++) {
        const int a = half ? f : 2 * f, b = half ? r->dim / 2 + f : 2 * f + 1;
        const double complex want = ((double)x[a] + (double)x[b] * I) * length_of(r) *
                                    cexp((double)p * frequency(r, f) * I);
        const double bound = ((length_of(r) == 1 ? 8 : 10) * U + 1e-9) * cabs(want);
        cr_expect_leq(in_bounds((double)got[a], creal(want), bound), 1, "%s, position %d, pair %d",
                      r->scaling, (int)p, f);
        cr_expect_leq(in_bounds((double)got[b], cimag(want), bound), 1, "%s, position %d, pair %d",
                      r->scaling, (int)p, f);
    }
    for (int e = r->dim; e < dh; e++)
        cr_expect_eq(got[e], x[e], "%s: coordinate %d is not rotated", r->scaling, e);
}

/* ---- the rotation -------------------------------------------------------------------------- */

struct turn {
    int dh, dim;
    const char *pairs;
    int heads, B, rows, gap, threads;
    int64_t position;
};

static const struct turn turns[] = {
    {2, 2, "half", 1, 1, 1, 0, 1, 0},
    {8, 8, "half", 3, 2, 5, 3, 1, 0},
    {8, 8, "interleaved", 3, 2, 5, 3, 1, 7},
    {9, 6, "half", 2, 2, 7, 0, 2, 1000},
    {9, 6, "interleaved", 2, 2, 7, 1, 2, 999999},
    {64, 64, "half", 8, 2, 33, 0, 2, 511},
    {300, 298, "half", 2, 1, 3, 5, 1, 12345},
    {300, 262, "interleaved", 2, 1, 3, 5, 1, 12345},
};

struct rotated {
    struct config c;
    struct engine g;
    float *x, *pos_encoding;
    ptrdiff_t stride;
};

static struct rotated open_rotated(const struct turn *t)
{
    const ptrdiff_t stride = (ptrdiff_t)t->rows * t->heads * t->dh + t->gap;
    struct rotated r = {.c = config_default(variant_find("rope"), 12, t->heads, t->dh, 8, 1, 0),
                        .g = {.threads = t->threads},
                        .stride = stride};

    set_number(&r.c, "rope_dim", t->dim);
    set_choice(&r.c, "rope_pairs", t->pairs);
    MUST(config_check(&r.c, &failure));
    r.x = normals((size_t)(t->B * stride), "rope.x", 0, 1);
    r.pos_encoding = fenced(pos_rope.n_pos_encoding(&r.c, t->rows));
    pos_rope.pos_encoding(&r.c, 0, t->rows, r.pos_encoding);
    cr_expect(guards_intact(r.pos_encoding, pos_rope.n_pos_encoding(&r.c, t->rows)));
    return r;
}

static void rotate(const struct rotated *r, const struct turn *t, int64_t position, bool back)
{
    pos_rope.rotate(&r->g, &r->c, r->pos_encoding,
                    &(struct rotation){.x = r->x,
                                       .stride = r->stride,
                                       MEMBERS(t->, B, rows, heads),
                                       .width = t->dh,
                                       .position = position,
                                       .back = back});
}

/* Each row as its own position says. */
static void expect_turned(const struct rotated *r, const float *before, const struct turn *t)
{
    const struct rotary_form plain = {"none", t->pairs, t->dim, 10000, 1, 4096, 32, 1, 0, 0};

    for (int i = 0; i < t->B * t->rows * t->heads; i++) {
        const int row = i / t->heads % t->rows, b = i / t->heads / t->rows;
        const ptrdiff_t at = b * r->stride + ((ptrdiff_t)row * t->heads + i % t->heads) * t->dh;
        expect_head(&plain, r->x + at, before + at, t->dh, t->position + row);
    }
}

static float *copy_of(const struct rotated *r, const struct turn *t)
{
    return copied(r->x, (size_t)(t->B * r->stride));
}

Test(rope, is_a_complex_product)
{
    for (size_t i = 0; i < ARRAY_LEN(turns); i++) {
        struct rotated r = open_rotated(&turns[i]);
        float *before = copy_of(&r, &turns[i]);
        rotate(&r, &turns[i], turns[i].position, false);
        expect_turned(&r, before, &turns[i]);
        cr_expect(guards_intact(r.x, (size_t)(turns[i].B * r.stride)));
        for (int b = 0; b < turns[i].B; b++) /* gaps between sequences */
            for (int k = 0; k < turns[i].gap; k++) {
                const ptrdiff_t at = (b + 1) * r.stride - 1 - k;
                cr_expect_eq(r.x[at], before[at]);
            }
    }
}

/* Threads divide the rows, and the result does not depend on how. */
Test(rope, same_bits_for_any_number_of_threads)
{
    struct turn t = {64, 64, "half", 8, 3, 50, 4, 1, 77};
    struct rotated one = open_rotated(&t), three = open_rotated(&t);

    three.g.threads = 3;
    rotate(&one, &t, t.position, false);
    rotate(&three, &t, t.position, false);
    cr_expect_eq(memcmp(one.x, three.x, sizeof(float) * (size_t)(t.B * one.stride)), 0);
}

/* Backward is the transposed map: y . Rot x = Rot^-1 y . x, here with y = Rot x. Both ways are off
 * by 8 U of a pair's length. */
Test(rope, back_is_the_way_back)
{
    for (size_t i = 0; i < ARRAY_LEN(turns); i++) {
        const struct turn *t = &turns[i];
        struct rotated r = open_rotated(t);
        float *before = copy_of(&r, t);
        rotate(&r, t, t->position, false);
        rotate(&r, t, t->position, true);
        for (ptrdiff_t e = 0; e < t->B * r.stride; e++)
            cr_expect_leq(in_bounds((double)r.x[e], (double)before[e], 16 * U * 6), 1);
    }
}

/* What makes no sense: test_refusals.c. */
Test(rope, all_pairs_of_a_head_turn)
{
    const struct config c = config_default(variant_find("rope"), 24, 3, 7, 8, 1, 0);

    cr_expect_eq(config_check(&c, &failure), OK, "%s", failure.msg);
    cr_expect_eq(pos_rope.n_pos_encoding(&c, 1) % 6, 0);
}

/* ---- far positions and scalings ------------------------------------------------------------- */

static struct config rotary_config(const struct rotary_form *r)
{
    struct config c = config_default(variant_find("rope"), 12, 2, r->dim + 3, 8, 1, 0);
    const bool yarn = strcmp(r->scaling, "yarn") == 0;

    set_number(&c, "rope_dim", r->dim);
    set_number(&c, "rope_base", r->base);
    set_choice(&c, "rope_pairs", r->pairs);
    set_choice(&c, "rope_scaling", r->scaling);
    set_number(&c, "rope_factor", r->factor);
    set_number(&c, "rope_original", r->original);
    set_number(&c, yarn ? "rope_beta_fast" : "rope_high", r->fast);
    set_number(&c, yarn ? "rope_beta_slow" : "rope_low", r->slow);
    set_number(&c, "rope_mscale", r->mscale);
    c.text_len = r->tokens;
    MUST(config_check(&c, &failure));
    return c;
}

/* Rows from `position` on, of a layer, in place. */
static void turn(const struct config *c, float *x, int rows, int64_t position, int layer)
{
    const struct engine g = {.threads = 1};
    float *const table = fenced(pos_rope.n_pos_encoding(c, rows));

    pos_rope.pos_encoding(c, 0, rows, table);
    pos_rope.rotate(&g, c, table,
                    &(struct rotation){MEMBERS(, x, rows, position, layer),
                                       .stride = (ptrdiff_t)rows * c->H * c->dh, .B = 1,
                                       .heads = c->H, .width = c->dh});
}

/* A segment that begins at each place, and the same rows one by one, as they are decoded. */
Test(rope_far, angles, .timeout = 240)
{
    enum { ROWS = 3 };

    for (size_t i = 0; i < ARRAY_LEN(rotary_forms); i++) {
        const struct rotary_form *const r = &rotary_forms[i];
        const struct config c = rotary_config(r);
        const int row = c.H * c.dh;
        const size_t bytes = sizeof(float) * (size_t)(ROWS * row);
        float *const x = normals((size_t)(ROWS * row), "x", 0, 1);
        float *const got = fenced((size_t)(ROWS * row)), *const one = fenced((size_t)row);
        for (size_t k = 0; k < ARRAY_LEN(far); k++) {
            memcpy(got, x, bytes);
            turn(&c, got, ROWS, far[k], 0);
            for (int t = 0; t < ROWS; t++) {
                memcpy(one, x + t * row, sizeof(float) * (size_t)row);
                turn(&c, one, 1, far[k] + t, 0);
                cr_expect_eq(memcmp(one, got + t * row, sizeof(float) * (size_t)row), 0,
                             "%s: position %d decoded", r->scaling, (int)far[k] + t);
                for (int h = 0; h < c.H; h++)
                    expect_head(r, got + t * row + h * c.dh, x + t * row + h * c.dh, c.dh,
                                far[k] + t);
            }
        }
    }
}

/* Layers take the bases in turn; 0 is no rotation. */
Test(rope_far, bases_of_layers)
{
    static const double bases[] = {10000, 0, 500};
    struct rotary_form r = rotary_forms[0];
    struct config c = rotary_config(&r);
    const size_t row = (size_t)(c.H * c.dh);
    float *const x = normals(row, "x", 0, 1), *const got = fenced(row);

    c.layer_rope_base = (struct layer_list){.n = ARRAY_LEN(bases)};
    memcpy(c.layer_rope_base.at, bases, sizeof(bases));
    for (int layer = 0; layer < 7; layer++)
        for (size_t k = 0; k < ARRAY_LEN(far); k++) {
            memcpy(got, x, sizeof(float) * row);
            turn(&c, got, 1, far[k], layer);
            r.base = bases[layer % 3];
            if (r.base > 0)
                expect_head(&r, got, x, c.dh, far[k]);
            else
                cr_expect_eq(memcmp(got, x, sizeof(float) * row), 0, "layer %d", layer);
        }
}

/* ---- models -------------------------------------------------------------------------------- */

/* Without positions it would be another model: the table is not an encoding that is added. */
Test(rope, angles_are_not_dropped)
{
    const struct config c = config_default(variant_find("rope"), 12, 4, 6, 17, 2, 11);
    struct model m;

    model_open(&m, &c, "ref", 1, MEM_NONE, (struct extent){1, 20, 0});
    const size_t n = pos_rope.n_pos_encoding(&m.lm.c, 20);
    float *pos_encoding = fenced(n);
    pos_rope.pos_encoding(&m.lm.c, 0, 20, pos_encoding);
    m.lm.drop = (struct dropout){.p = 0.5f, .seed = 3};
    lm_build_tables(&m.lm, &m.g);
    cr_expect_eq(memcmp(m.lm.sublayers.pos_encoding, pos_encoding, sizeof(float) * n), 0);
}
