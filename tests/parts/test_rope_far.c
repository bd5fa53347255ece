/* SPDX-License-Identifier: MIT
 *
 * Rotary positions far beyond the table of angles, with every scaling for longer contexts, against
 * the equations in double: every backend rotates by this code, so none of them can judge it. */
#include "tests/support/kernel/fenced.h"
#include "tests/support/set_choice.h"

#include <complex.h>

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
                    &(struct rotation){.x = x,
                                       .stride = (ptrdiff_t)rows * c->H * c->dh,
                                       .B = 1,
                                       .rows = rows,
                                       .heads = c->H,
                                       .width = c->dh,
                                       .position = position,
                                       .layer = layer});
}

/* A head, by (a + bi) m e^(i p w). The two factors of an angle and their product are 3 U, the
 * coordinate another 3 U and m one. The program's frequencies are off by some 2^-46, as each of a
 * table's follows from the one before: 1e-9 at the farthest position. */
static void expect_head(const struct rotary_form *r, const float *got, const float *x, int64_t p)
{
    const bool half = strcmp(r->pairs, "half") == 0;

    for (int f = 0; f < r->dim / 2; f++) {
        const int a = half ? f : 2 * f, b = half ? r->dim / 2 + f : 2 * f + 1;
        const double complex want = ((double)x[a] + (double)x[b] * I) * length_of(r) *
                                    cexp((double)p * frequency(r, f) * I);
        const double bound = (10 * U + 1e-9) * cabs(want);
        cr_expect_leq(in_bounds((double)got[a], creal(want), bound), 1, "%s, position %d, pair %d",
                      r->scaling, (int)p, f);
        cr_expect_leq(in_bounds((double)got[b], cimag(want), bound), 1, "%s, position %d, pair %d",
                      r->scaling, (int)p, f);
    }
    for (int e = r->dim; e < r->dim + 3; e++)
        cr_expect_eq(got[e], x[e], "%s: coordinate %d is not rotated", r->scaling, e);
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
                    expect_head(r, got + t * row + h * c.dh, x + t * row + h * c.dh, far[k] + t);
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
                expect_head(&r, got, x, far[k]);
            else
                cr_expect_eq(memcmp(got, x, sizeof(float) * row), 0, "layer %d", layer);
        }
}
