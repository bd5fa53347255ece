/* SPDX-License-Identifier: MIT
 *
 * Rotary positions: the rotation against complex products in double, that scores depend on
 * differences of positions only, backward, and models that stream far beyond the table of angles.
 */
#include "tests/support/model.h"
#include "tests/support/set_choice.h"
#include "variants/parts/parts.h"

#include <complex.h>
#include <criterion/parameterized.h>

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
    struct err e = {""};

    set_number(&r.c, "rope_dim", t->dim);
    set_choice(&r.c, "rope_pairs", pairs_name[t->pairs]);
    cr_assert_eq(config_check(&r.c, &e), OK, "%s", e.msg);
    r.x = normal((size_t)(t->B * stride), "rope.x", 0, 1);
    r.pos_encoding = guarded(pos_rope.n_pos_encoding(&r.c, t->rows));
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

static void close_rotated(struct rotated *r)
{
    release(r->x);
    release(r->pos_encoding);
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
    float *copy = guarded((size_t)(t->B * r->stride));

    memcpy(copy, r->x, sizeof(float) * (size_t)(t->B * r->stride));
    return copy;
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
        release(before);
        close_rotated(&r);
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
    close_rotated(&one);
    close_rotated(&three);
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
        release(before);
        close_rotated(&r);
    }
}

static double product(const float *q, const float *k, int n)
{
    double sum = 0;

    for (int e = 0; e < n; e++)
        sum += (double)q[e] * (double)k[e];
    return sum;
}

/* q at position p + s, k at position s, for any s. Each coordinate of each row is off by 8 U of
 * its pair's length; over a whole row that is 8 U |q| |k| for either. */
Test(rope, only_differences_matter)
{
    static const int64_t starts[] = {1, 5, 100, 4096, 1000003};

    for (int pairs = ROPE_NEIGHBOURS; pairs <= ROPE_HALVES; pairs++)
        for (int apart = 0; apart < 40; apart += 13) {
            const struct turn t = {32, 24, pairs, 1, 1, 1, 0, 1, 0};
            struct rotated q = open_rotated(&t), k = open_rotated(&t);
            float *k0 = normal(32, "rope.k", 0, 1), *q0 = copy_of(&q, &t);
            memcpy(k.x, k0, sizeof(float) * 32);
            rotate(&q, &t, apart, false);
            const double want = product(q.x, k0, 32);
            const double bound = (16 * U + 2e-9) * sqrt(product(q0, q0, 32) * product(k0, k0, 32));
            for (size_t i = 0; i < ARRAY_LEN(starts); i++) {
                memcpy(q.x, q0, sizeof(float) * 32);
                memcpy(k.x, k0, sizeof(float) * 32);
                rotate(&q, &t, starts[i] + apart, false);
                rotate(&k, &t, starts[i], false);
                cr_expect_leq(in_bounds(product(q.x, k.x, 32), want, 2 * bound), 1,
                              "%d apart from %d", apart, (int)starts[i]);
            }
            release(k0);
            release(q0);
            close_rotated(&q);
            close_rotated(&k);
        }
}

Test(rope, choices_that_make_no_sense)
{
    struct config c = config_default(variant_find("rope"), 24, 3, 7, 8, 1, 0);
    struct err e = {""};

    cr_expect_eq(config_check(&c, &e), OK, "%s", e.msg);
    cr_expect_eq(pos_rope.n_pos_encoding(&c, 1) % 6, 0); /* dim */
    set_number(&c, "rope_dim", 5);
    cr_expect_eq(config_check(&c, &e), E_USAGE);
    cr_expect_str_eq(
        e.msg, "rope: 5 coordinates to rotate  -> use an even number from 2 to the head width 7");
    set_number(&c, "rope_dim", 8);
    cr_expect_eq(config_check(&c, &e), E_USAGE);
    set_number(&c, "rope_dim", 6);
    set_number(&c, "rope_base", 1);
    cr_expect_eq(config_check(&c, &e), E_USAGE);
    c = config_default(variant_find("rope"), 24, 3, 1, 8, 1, 0);
    cr_expect_eq(config_check(&c, &e), E_USAGE);
    cr_expect_str_eq(e.msg, "rope: a head of width 1 has no pair to rotate  -> use 2 or more");
}

/* ---- models -------------------------------------------------------------------------------- */

enum { BATCH = 2, TOKENS = 700, SEGMENT = 7, MEMORY = 20, VOCAB = 11 };

static struct config rotary(int pairs, int dim, int kv_heads)
{
    struct config c = config_default(variant_find("rope"), 12, 4, 6, 17, 2, VOCAB);

    set_choice(&c, "rope_pairs", pairs_name[pairs]);
    set_number(&c, "rope_dim", dim);
    c.kv_heads = kv_heads;
    return c;
}

/* Keys are remembered as they were rotated, hidden states are rotated anew each time. The caches
 * move many times, and positions go on far beyond the table. */
Test(rope, remembered_keys_stay_right, .timeout = 240)
{
    static const int choices[][3] = {{ROPE_HALVES, 6, 4}, {ROPE_NEIGHBOURS, 4, 2}};
    const struct extent max = {BATCH, SEGMENT, MEMORY};

    for (size_t i = 0; i < ARRAY_LEN(choices); i++) {
        const struct config c = rotary(choices[i][0], choices[i][1], choices[i][2]);
        struct model hidden, kv;
        model_open(&hidden, &c, "ref", 1, MEM_HIDDEN, max);
        model_open(&kv, &c, "ref", 1, MEM_KV, max);
        float *want = model_stream(&hidden, 0, BATCH, TOKENS, SEGMENT);
        float *got = model_stream(&kv, 0, BATCH, TOKENS, SEGMENT);
        cr_expect_lt(case_error(got, want, BATCH * TOKENS * VOCAB), 1);
        free(want);
        free(got);
        model_close(&hidden);
        model_close(&kv);
    }
}

/* With memory for all of the past, segments equal one long pass, in which positions begin at 0. */
Test(rope, streaming_is_one_pass, .timeout = 240)
{
    enum { ALL = 90 };
    const struct config c = rotary(ROPE_HALVES, 6, 4);
    struct model whole;

    model_open(&whole, &c, "ref", 1, MEM_NONE, (struct extent){BATCH, ALL, 0});
    float *want = model_stream(&whole, 0, BATCH, ALL, ALL);
    for (int kind = MEM_HIDDEN; kind <= MEM_KV; kind++)
        for (int L = 1; L <= 13; L += 4) {
            struct model m;
            model_open(&m, &c, "ref", 1, (enum mem_kind)kind, (struct extent){BATCH, L, ALL});
            float *got = model_stream(&m, 0, BATCH, ALL, L);
            cr_expect_lt(case_error(got, want, BATCH * ALL * VOCAB), 1, "segments of %d", L);
            free(got);
            model_close(&m);
        }
    free(want);
    model_close(&whole);
}

/* The two pairings are the same model if the rows of W_q and W_k are permuted accordingly. */
Test(rope, pairings_differ_by_a_permutation, .timeout = 240)
{
    enum { ALL = 30, D = 12, DH = 6 };
    const struct extent max = {1, ALL, 0};
    const struct config halves = rotary(ROPE_HALVES, DH, 4);
    const struct config neighbours = rotary(ROPE_NEIGHBOURS, DH, 4);
    struct model a, b;

    model_open(&a, &halves, "ref", 1, MEM_NONE, max);
    model_open(&b, &neighbours, "ref", 1, MEM_NONE, max);
    for (int i = 0; i < b.lm.params.n; i++) {
        const struct param *from = &a.lm.params.v[i], *to = &b.lm.params.v[i];
        const bool turned = strstr(to->name, "attn.q.weight") || strstr(to->name, "attn.k.weight");
        for (int r = 0; turned && r < to->shape[0]; r++) {
            const int e = r % DH, f = e / 2, synthetic = r - e + (e % 2 ? DH / 2 + f : f);
            memcpy(to->data + r * D, from->data + synthetic * D, sizeof(float) * D);
        }
    }
    float *want = model_stream(&a, 0, 1, ALL, ALL), *plain = model_stream(&b, 0, 1, ALL, ALL);
    cr_expect_lt(case_error(plain, want, ALL * VOCAB), 1);
    free(want);
    free(plain);
    model_close(&a);
    model_close(&b);
}

/* Without positions it would be another model: the table is not an encoding that is added. */
Test(rope, angles_are_not_dropped)
{
    const struct config c = rotary(ROPE_HALVES, 6, 4);
    struct model m;

    model_open(&m, &c, "ref", 1, MEM_NONE, (struct extent){1, 20, 0});
    const size_t n = pos_rope.n_pos_encoding(&m.lm.c, 20);
    float *pos_encoding = guarded(n);
    pos_rope.pos_encoding(&m.lm.c, 0, 20, pos_encoding);
    m.lm.drop = (struct dropout){.p = 0.5f, .seed = 3};
    lm_build_tables(&m.lm, &m.g);
    cr_expect_eq(memcmp(m.lm.sublayers.pos_encoding, pos_encoding, sizeof(float) * n), 0);
    release(pos_encoding);
    model_close(&m);
}

/* Linear scaling divides positions: by 2, position 2 p turns as p did. */
Test(rope, linear_scaling_divides_positions)
{
    const struct turn t = {8, 8, ROPE_HALVES, 3, 2, 1, 0, 1, 0};
    struct rotated plain = open_rotated(&t), linear = open_rotated(&t);

    set_choice(&linear.c, "rope_scaling", "linear");
    set_number(&linear.c, "rope_factor", 2);
    pos_rope.pos_encoding(&linear.c, 0, 1, linear.pos_encoding);
    rotate(&plain, &t, 301, false);
    rotate(&linear, &t, 602, false);
    for (size_t i = 0; i < (size_t)(t.B * plain.stride); i++)
        cr_expect_float_eq(linear.x[i], plain.x[i], 1e-5f);
    close_rotated(&plain), close_rotated(&linear);
}

/* Radians per position by the wavelength m = 2 pi / w, as published: w below C/high, w/s above
 * C/low, between them a mean of the two. */
static double llama3_frequency(double w, double s, double low, double high, double C)
{
    const double m = 2 * acos(-1) / w, t = (C / m - low) / (high - low);

    if (m < C / high)
        return w;
    return m > C / low ? w / s : (1 - t) * w / s + t * w;
}

/* Each pair by its own frequency; some of all three kinds. */
Test(rope, llama3_scaling)
{
    const struct turn t = {64, 64, ROPE_HALVES, 1, 1, 1, 0, 1, 77};
    struct rotated r = open_rotated(&t);
    float *const before = copy_of(&r, &t);
    int kinds[3] = {0};

    set_choice(&r.c, "rope_scaling", "llama3");
    set_number(&r.c, "rope_factor", 8);
    set_number(&r.c, "rope_original", 512);
    set_number(&r.c, "rope_low", 1);
    set_number(&r.c, "rope_high", 4);
    pos_rope.pos_encoding(&r.c, 0, 1, r.pos_encoding);
    rotate(&r, &t, t.position, false);
    for (int f = 0; f < 32; f++) {
        const double w = pow(10000, -f / 32.), scaled = llama3_frequency(w, 8, 1, 4, 512);
        const double complex want = ((double)before[f] + (double)before[32 + f] * I) *
                                    cexp((double)t.position * scaled * I);
        kinds[scaled == w ? 0 : scaled == w / 8 ? 1 : 2]++;
        const double bound = (8 * U + 1e-9) * cabs(want);
        cr_expect_leq(in_bounds((double)r.x[f], creal(want), bound), 1, "pair %d", f);
        cr_expect_leq(in_bounds((double)r.x[32 + f], cimag(want), bound), 1, "pair %d", f);
    }
    cr_expect(kinds[0] > 1 && kinds[1] > 1 && kinds[2] > 1, "%d %d %d", kinds[0], kinds[1],
              kinds[2]);
    set_number(&r.c, "rope_high", 1);
    cr_expect_eq(config_check(&r.c, NULL), E_USAGE, "nothing is between 1 and 1");
    release(before);
    close_rotated(&r);
}
