/* SPDX-License-Identifier: MIT
 *
 * Position schemes that add a number per head and distance to the scores: the numbers against their
 * definitions, in the table that attention reads, for any number of keys and after truncation; and
 * backward from the table's gradient to the weights. */
#include "tests/support/gradients.h"
#include "tests/support/laid.h"
#include "tests/support/loaded.h"
#include "tests/support/set_choice.h"
#include "variants/model/optimise/optimizer.h"

/* ---- slopes of ALiBi ----------------------------------------------------------------------- */

/* As published for a power of two: a geometric sequence that starts at its own ratio. */
static double power_slope(int h, int P)
{
    const double ratio = pow(2, -pow(2, -(log2(P) - 3)));

    return pow(ratio, h + 1);
}

/* The rest are the slopes 0, 2, 4 .. of twice as many heads. */
Test(pos_bias, slopes_between_powers_of_two)
{
    for (int H = 1; H <= 300; H++) {
        int P = 1;
        while (2 * P <= H)
            P *= 2;
        for (int h = 0; h < H; h++) {
            const double want = h < P ? power_slope(h, P) : power_slope(2 * (h - P), 2 * P);
            cr_expect_leq(in_bounds(alibi_slope(h, H), want, 1e-12 * want), 1, "head %d of %d", h,
                          H);
        }
    }
}

/* ---- buckets of T5 ------------------------------------------------------------------------- */

enum { LIMBS = 40 };

/* x *= a^n, exactly. */
static void multiply(uint32_t x[LIMBS], uint32_t a, int n)
{
    while (n-- > 0) {
        uint64_t score_residual = 0;
        for (int i = 0; i < LIMBS; i++) {
            score_residual += (uint64_t)x[i] * a;
            x[i] = (uint32_t)score_residual;
            score_residual >>= 32;
        }
        cr_assert_eq(score_residual, 0, "more than %d limbs", LIMBS);
    }
}

static bool at_least(const uint32_t x[LIMBS], const uint32_t y[LIMBS])
{
    for (int i = LIMBS - 1; i >= 0; i--)
        if (x[i] != y[i])
            return x[i] > y[i];
    return true;
}

/* floor(log(n/e) / log(m/e) (b-e)) is the largest j with (n/e)^(b-e) >= (m/e)^j: in integers
 * n^(b-e) e^j >= m^j e^(b-e). */
static int exact_bucket(int n, int buckets, int most)
{
    const int e = buckets / 2, far = buckets - e;

    if (n < e)
        return n;
    for (int j = far - 1; j > 0; j--) {
        uint32_t left[LIMBS] = {1}, right[LIMBS] = {1};
        multiply(left, (uint32_t)n, far);
        multiply(left, (uint32_t)e, j);
        multiply(right, (uint32_t)most, j);
        multiply(right, (uint32_t)e, far);
        if (at_least(left, right))
            return e + j;
    }
    return e;
}

static const int far[] = {127, 128, 129, 4095, 4096, 4097, 65535, 65536};
enum { FARTHEST = 65536 };

/* Also at distances of long contexts, where the last buckets begin and where all share the last. */
Test(pos_bias, buckets_in_exact_arithmetic)
{
    static const int sizes[][2] = {
        {32, 128},   {32, 256},  {16, 64},    {8, 16},      {8, 12},    {2, 2},
        {3, 9},      {7, 50},    {20, 1000},  {6, 81},      {10, 1215}, {14, 7 * 78125},
        {20, 10240}, {32, 4096}, {40, 65536}, {33, 100000}, {16, 65535}};

    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        const int b = sizes[i][0], most = sizes[i][1];
        for (int k = 0; k < 2200 + (int)ARRAY_LEN(far); k++) {
            const int n = k < 2200 ? k : far[k - 2200];
            cr_assert_eq(t5_bucket(n, b, most), exact_bucket(n, b, most),
                         "distance %d, %d buckets to %d", n, b, most);
        }
    }
}

/* ---- the table ----------------------------------------------------------------------------- */

enum { HEADS = 6, MAX_KEYS = 300 };

static void open_bias(struct laid *t, const struct pos *pos, bool per_layer, int K)
{
    struct config c = config_default(variant_find("alibi"), 24, HEADS, 4, 8, 1, 0);

    c.pos = pos;
    config_numbers_reset(&c);
    if (pos == &pos_t5) {
        set_number(&c, "t5_buckets", 8);
        set_number(&c, "t5_max_distance", 20);
        set_choice(&c, "share_attn_bias", per_layer ? "0" : "1");
    }
    open_laid(t, c, 1, K - 1);
}

/* What is added to the score of a key at distance n. */
static float read_bias(const struct attn *a, int h, int n)
{
    return a->bias[h * a->bias_head + a->R - 1 - min_int(n, a->R - 1)];
}

static double want_bias(const struct laid *t, int h, int n)
{
    const struct param *p = t->params.v;

    if (t->c.pos == &pos_alibi)
        return -alibi_slope(h, HEADS) * n;
    if (t->c.pos == &pos_kerple)
        return -(double)p[0].data[h] * log1p((double)p[1].data[h] * n);
    return (double)p[0].data[exact_bucket(n, 8, 20) * HEADS + h];
}

/* One rounding of the result. */
static void expect_distance(const struct laid *t, int n)
{
    for (int h = 0; h < HEADS; h++) {
        const double want = want_bias(t, h, n);
        cr_expect_leq(in_bounds((double)read_bias(&t->a, h, n), want, U * fabs(want)), 1,
                      "%s, head %d, distance %d of %d", t->c.pos->name, h, n, t->a.M + t->a.L);
    }
}

static void expect_table(const struct laid *t)
{
    const int K = t->a.M + t->a.L;

    cr_expect_leq(t->a.R, K);
    for (int n = 0; n < K; n++)
        expect_distance(t, n);
}

static const struct pos *const schemes[] = {&pos_alibi, &pos_t5, &pos_kerple};

Test(pos_bias, table_has_every_distance)
{
    static const int keys[] = {1, 2, 5, 15, 40, MAX_KEYS};

    for (size_t i = 0; i < ARRAY_LEN(schemes); i++)
        for (size_t k = 0; k < ARRAY_LEN(keys); k++)
            for (int per_layer = 0; per_layer <= 1; per_layer++) {
                struct laid t;
                open_bias(&t, schemes[i], per_layer, keys[k]);
                expect_table(&t);
            }
}

Test(pos_bias, table_of_a_long_context)
{
    for (size_t i = 0; i < ARRAY_LEN(schemes); i++) {
        struct laid t;
        open_bias(&t, schemes[i], true, FARTHEST + 1);
        for (size_t k = 0; k < ARRAY_LEN(far); k++)
            expect_distance(&t, far[k]);
    }
}

Test(pos_bias, table_can_be_cut)
{
    static const int shapes[][2] = {{1, 0}, {1, 7}, {12, 0}, {12, 30}, {100, 200}};

    for (size_t i = 0; i < ARRAY_LEN(schemes); i++)
        for (size_t k = 0; k < ARRAY_LEN(shapes); k++) {
            struct laid t;
            open_bias(&t, schemes[i], false, MAX_KEYS);
            attn_resize(&t.a, shapes[k][0], shapes[k][1]);
            expect_table(&t);
        }
}

/* Far distances of T5 share the last bucket, so its table ends where that begins. */
Test(pos_bias, far_distances_share_an_entry)
{
    struct laid t;

    open_bias(&t, &pos_t5, false, MAX_KEYS);
    int first = 0;
    while (exact_bucket(first, 8, 20) < 7)
        first++;
    cr_expect_eq(t.a.R, first + 1);
}

/* ---- backward ------------------------------------------------------------------------------ */

/* sum of weight (.) bias over heads and distances, so that the weights are the table's gradient. */
static double weight(int h, int n)
{
    return 0.25 + (double)(rng_u32(SEED, 5, (uint64_t)(h * MAX_KEYS + n)) % 1024) / 1024;
}

static double weighed(void *ctx)
{
    struct laid *t = ctx;
    double sum = 0;

    for (int h = 0; h < HEADS; h++)
        for (int n = 0; n < t->a.M + t->a.L; n++)
            sum += weight(h, n) * want_bias(t, h, n);
    return sum;
}

static void backward(struct laid *t)
{
    const struct pos *pos = t->c.pos;
    struct attn_grad d = {0};
    struct pos_call call = call_of(t);

    call.d = &d;
    pos->terms_grad(&call);
    for (int h = 0; h < HEADS; h++)
        for (int n = 0; n < t->a.M + t->a.L; n++)
            d.d_bias[h * t->a.bias_head + t->a.R - 1 - min_int(n, t->a.R - 1)] +=
                (float)weight(h, n);
    pos->build_tables_grad(&call);
}

Test(pos_bias, gradient_is_the_derivative)
{
    for (size_t i = 0; i < ARRAY_LEN(schemes); i++)
        for (int per_layer = 0; per_layer <= 1; per_layer++)
            for (int cut = 0; cut <= 1; cut++) {
                struct laid t;
                if (!schemes[i]->build_tables_grad) {
                    cr_expect(!schemes[i]->layer_params && !schemes[i]->model_params);
                    continue;
                }
                open_bias(&t, schemes[i], per_layer, 40);
                for (int p = 0; p < t.params.n; p++)
                    quantise(t.params.v[p].data, t.params.v[p].n);
                if (cut)
                    attn_resize(&t.a, 5, 9);
                backward(&t);
                const struct scalar f = {weighed, &t, 1e-10, 0x1p-12};
                expect_gradients(&f, schemes[i]->name, &t.params, 64 * U, 1e-6);
            }
}

/* Layers that share a table add to it. */
Test(pos_bias, gradients_are_added)
{
    struct laid t;

    open_bias(&t, &pos_t5, false, 40);
    backward(&t);
    const float once = t.params.v[0].grad[3];
    backward(&t);
    cr_expect(once > 0 && t.params.v[0].grad[3] == 2 * once);
}

/* ---- bounds -------------------------------------------------------------------------------- */

Test(pos_bias, trained_rates_stay_positive)
{
    struct laid t;
    struct arena moments = {0};
    struct optimizer optimizer = {0};

    open_bias(&t, &pos_kerple, true, 40);
    optimizer_bind(&optimizer, &t.params, &moments);
    MUST(arena_place(&moments, HUGE_NEVER, NULL, NULL, &failure));
    optimizer_bind(&optimizer, &t.params, &moments);
    optimizer_reset(&optimizer, &t.params);
    for (int p = 0; p < t.params.n; p++)
        for (int h = 0; h < HEADS; h++) {
            cr_expect(t.params.v[p].data[h] >= 0.01f && t.params.v[p].data[h] < 2);
            t.params.v[p].grad[h] = h % 2 ? 1 : -1;
        }
    t.params.v[1].data[0] = NAN;
    optimizer_step(&optimizer, &t.params, &(struct engine){.threads = 1}, 100, 1);
    for (int p = 0; p < t.params.n; p++)
        for (int h = 1; h < HEADS; h++)
            cr_expect(h % 2 ? t.params.v[p].data[h] == 0.01f : t.params.v[p].data[h] > 50);
    cr_expect(isnan(t.params.v[1].data[0]), "a bound hides nothing");
    optimizer_free(&optimizer);
    arena_release(&moments);
}
