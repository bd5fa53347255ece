/* SPDX-License-Identifier: MIT
 *
 * Rotary positions: the rotation against complex products in double, in any layout and by any number of
 * threads, and backward. Scalings and far positions: test_rope_far.c. That models stream, with keys
 * remembered and with hidden states: tests/model/test_lm.c, test_properties.c. */
#include "tests/support/model.h"

#include <complex.h>

enum { ROPE_NEIGHBOURS, ROPE_HALVES };
static const char *const pairs_name[] = {"interleaved", "half"};

/* ---- the rotation -------------------------------------------------------------------------- */

struct turn {
    int dh, dim, pairs, heads, B, rows, gap, threads;
    int64_t position;
};

static const struct turn turns[] = {
    {2, 2, ROPE_HALVES, 1, 1, 1, 0, 1, 0},
    {8, 8, ROPE_HALVES, 3, 2, 5, 3, 1, 0},
    {8, 8, ROPE_NEIGHBOURS, 3, 2, 5, 3, 1, 7},
    {9, 6, ROPE_HALVES, 2, 2, 7, 0, 2, 1000},
    {9, 6, ROPE_NEIGHBOURS, 2, 2, 7, 1, 2, 999999},
    {64, 64, ROPE_HALVES, 8, 2, 33, 0, 2, 511},
    {300, 298, ROPE_HALVES, 2, 1, 3, 5, 1, 12345},
    {300, 262, ROPE_NEIGHBOURS, 2, 1, 3, 5, 1, 12345},
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
    set_choice(&r.c, "rope_pairs", pairs_name[t->pairs]);
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
                                       .B = t->B,
                                       .rows = t->rows,
                                       .heads = t->heads,
                                       .width = t->dh,
                                       .position = position,
                                       .back = back});
}

/* (a + bi) e^(i position w_f) */
static double complex turned(double a, double b, int64_t position, int f, const struct turn *t)
{
    const double angle = (double)position * pow(10000, -2.0 * f / t->dim);

    return (a + b * I) * cexp(angle * I);
}

/* An angle's cosine and sine are each two products of rounded ones (3 U in all), a coordinate two
 * more products and a sum: 6 U of the pair's length, with room for the frequency's own error, which
 * a position of a million makes 1e-9. */
static void expect_turned(const struct rotated *r, const float *before, const struct turn *t)
{
    const int half = t->dim / 2;

    for (int i = 0; i < t->B * t->rows * t->heads; i++) {
        const int row = i / t->heads % t->rows, b = i / t->heads / t->rows;
        const ptrdiff_t at = b * r->stride + ((ptrdiff_t)row * t->heads + i % t->heads) * t->dh;
        for (int f = 0; f < half; f++) {
            const bool halves = t->pairs == ROPE_HALVES;
            const ptrdiff_t x = at + (halves ? f : 2 * f), y = at + (halves ? half + f : 2 * f + 1);
            const double complex want =
                turned((double)before[x], (double)before[y], t->position + row, f, t);
            const double bound = (8 * U + 1e-9) * cabs(want);
            cr_expect_leq(in_bounds((double)r->x[x], creal(want), bound), 1, "row %d pair %d", row,
                          f);
            cr_expect_leq(in_bounds((double)r->x[y], cimag(want), bound), 1, "row %d pair %d", row,
                          f);
        }
        for (int e = t->dim; e < t->dh; e++)
            cr_expect_eq(r->x[at + e], before[at + e], "coordinate %d is not rotated", e);
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
    struct turn t = {64, 64, ROPE_HALVES, 8, 3, 50, 4, 1, 77};
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
