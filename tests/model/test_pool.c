/* SPDX-License-Identifier: MIT
 *
 * Sub-layers over pools of several tokens, whose numbers golden files check: gradients, equality on
 * every backend, rows that do not depend on what follows, lengths that leave no pool at all,
 * invalid orders. */
#include "tests/support/alone.h"
#include "tests/support/kernel/ffn_case.h"

enum { B = 2, MOST = 21 };

static const char *const forms[] = {"sfpfuf", "sfsfpfsfufsf", "sfpfpfsfuf"};
enum { FORMS = ARRAY_LEN(forms) };

static struct config pool_config(const char *order, bool causal)
{
    struct config c = config_default(variant_find("vanilla"), 12, 2, 5, 14, 1, 7);

    c.pos = &pos_xl;
    c.ffn = &ffn_gelu_tanh;
    c.attn_bias = ATTN_BIASED;
    c.uv_per_layer = UV_PER_LAYER;
    c.causal = causal;
    snprintf(c.order, sizeof(c.order), "%s", order);
    return c;
}

/* ---- a list of sub-layers ------------------------------------------------------------------ */

struct pool_case {
    struct alone l;
    float *x, *z;
};

static void pool_open(struct pool_case *t, const char *order, bool causal, const char *backend,
                      int threads, int sequences, int T, bool trains)
{
    *t = (struct pool_case){.l = {.g = open_engine(backend, threads),
                                  .c = pool_config(order, causal),
                                  .max = {sequences, T, 0},
                                  .kind = MEM_RECOMPUTE,
                                  .trains = trains}};
    MUST(config_check(&t->l.c, &failure));
    sublayers_init(&t->l.list, &t->l.c, &t->l.p, 0);
    alone_place(&t->l);
    t->x = fenced((size_t)(sequences * T * t->l.c.D)),
    t->z = fenced((size_t)(sequences * T * t->l.c.D));
    for (int b = 0; b < sequences; b++) /* the same beginning for every T */
        rng_normal(t->x + b * T * t->l.c.D, (size_t)(T * t->l.c.D), SEED + (uint64_t)b,
                   rng_stream("x"), 0, 1);
}

static void pool_lower(struct pool_case *t)
{
    t->l.c.pos->pos_encoding(&t->l.c, 0, t->l.list.max.L, t->l.list.pos_encoding);
    sublayers_build_tables(&t->l.list, &t->l.g);
}

/* z [rows of T tokens] from x, which may be shorter than the bound length. */
static const float *pool_forward(struct pool_case *t, int sequences, int T)
{
    float *const to = sublayers_input(&t->l.list, t->z);

    memcpy(to, t->x, sizeof(float) * (size_t)(sequences * T * t->l.c.D));
    sublayers_forward(&t->l.list, &t->l.g, t->z, to, sequences, T);
    return t->z;
}

/* ---- what must be the same ------------------------------------------------------------------ */

/* Within 1e-4 of the largest, or of `floor`: the rest of sums that cancel, such as the gradient of
 * queries that see one key. */
static void expect_near(const float *got, const float *want, size_t n, double floor,
                        const char *what)
{
    const double size = fmax(floor, largest(want, n));

    for (size_t i = 0; i < n; i++)
        cr_assert_leq(fabs((double)got[i] - (double)want[i]), 1e-4 * size, "%s[%zu]: %g, not %g",
                      what, i, (double)got[i], (double)want[i]);
}

static void as_the_reference(const char *order, bool causal, const char *backend, int T)
{
    struct pool_case got, want;
    const size_t n = (size_t)(B * T * 12);
    float *const d = normals(n, "d", 0, 1), *const d_want = normals(n, "d", 0, 1);

    pool_open(&got, order, causal, backend, 1 + T % 2, B, T, true);
    pool_open(&want, order, causal, "ref", 1, B, T, true);
    pool_lower(&got), pool_lower(&want);
    params_zero_grad(&got.l.p), params_zero_grad(&want.l.p);
    cr_expect_lt(case_error(pool_forward(&got, B, T), pool_forward(&want, B, T), n), 1,
                 "%s, %s, %d tokens", backend, order, T);
    sublayers_poison(&got.l.list), sublayers_poison(&want.l.list);
    sublayers_backward(&got.l.list, &got.l.g, d, B, T);
    sublayers_backward(&want.l.list, &want.l.g, d_want, B, T);
    expect_near(d, d_want, n, 0, "d_x");
    for (int i = 0; i < got.l.p.n; i++)
        expect_near(got.l.p.v[i].grad, want.l.p.v[i].grad, want.l.p.v[i].n, largest(d_want, n) / 10,
                    want.l.p.v[i].name);
}

TEST_EACH(int *b, pools, on_every_backend, every_backend(), .timeout = 240)
{
    static const int lengths[] = {1, 2, 3, 4, 7, 8, MOST};

    for (int i = 0; i < FORMS; i++)
        for (size_t k = 0; k < ARRAY_LEN(lengths); k++)
            for (int causal = 0; causal < 2; causal++)
                as_the_reference(forms[i], causal, backends[*b]->name, lengths[k]);
}

struct derived {
    struct pool_case *t;
    const float *d_z;
    int T;
};

static double pools_value(void *ctx)
{
    const struct derived *f = ctx;
    double sum = 0;

    pool_lower(f->t);
    const float *z = pool_forward(f->t, 1, f->T);
    for (int i = 0; i < f->T * f->t->l.c.D; i++)
        sum += (double)z[i] * (double)f->d_z[i];
    return sum;
}

/* The value is a sum of T D products of numbers near 1 that went through up to 6 layers, some 64
 * roundings each that are not of one sign. A bias of keys shifts all scores of a row alike but for
 * the term of distances, whose part may cancel: hence the absolute bound. */
static void expect_derived(const char *order, bool causal, int T)
{
    struct pool_case t;
    const size_t n = (size_t)(T * 12);
    float *const d_z = normals(n, "d", 0, 1), *const d = copied(d_z, n);
    struct derived of = {&t, d_z, T};

    pool_open(&t, order, causal, "ref", 1, 1, T, true);
    quantise(t.x, n);
    for (int i = 0; i < t.l.p.n; i++)
        quantise(t.l.p.v[i].data, t.l.p.v[i].n);
    const struct scalar f = {pools_value, &of, 64 * U * 2 * sqrt((double)n), 0x1p-7};
    pools_value(&of);
    params_zero_grad(&t.l.p);
    sublayers_backward(&t.l.list, &t.l.g, d, 1, T);
    const char *const what = kept_text("%s %d", order, causal);
    expect_gradient(&f, what, t.x, d, n, 512 * U, 4 * f.noise / f.step);
    expect_gradients(&f, what, &t.l.p, 512 * U, 4 * f.noise / f.step);
}

/* 7 tokens leave one without a pool, at either level. */
Test(pools, are_differentiated, .timeout = 120)
{
    for (int i = 0; i < FORMS; i++)
        for (int causal = 0; causal < 2; causal++)
            expect_derived(forms[i], causal, 7);
}

/* The published form sees both directions: the first row depends on the last. */
Test(pools, published_rows_see_both_ways)
{
    for (int i = 0; i < FORMS; i++)
        for (int causal = 0; causal < 2; causal++) {
            struct pool_case t;
            pool_open(&t, forms[i], causal, "ref", 1, 1, 8, false);
            pool_lower(&t);
            const float before = pool_forward(&t, 1, 8)[0];
            t.x[8 * t.l.c.D - 1] += 1;
            cr_expect_eq(pool_forward(&t, 1, 8)[0] == before, causal, "%s", forms[i]);
        }
}

/* On the reference a row does not depend on the number of its neighbours, so it is the same to the
 * last bit; kept for training or not, and bound for more tokens or not. */
Test(pools, rows_do_not_see_what_follows)
{
    for (int i = 0; i < FORMS; i++) {
        struct pool_case all;
        pool_open(&all, forms[i], true, "ref", 1, 1, MOST, false);
        pool_lower(&all);
        const float *const want = copied(pool_forward(&all, 1, MOST), (size_t)(MOST * all.l.c.D));
        for (int cut = 1; cut < MOST; cut++)
            for (int how = 0; how < 3; how++) {
                struct pool_case t;
                pool_open(&t, forms[i], true, "ref", 1, 1, how == 2 ? MOST : cut, how == 1);
                pool_lower(&t);
                const float *const got = pool_forward(&t, 1, cut);
                for (int k = 0; k < cut * all.l.c.D; k++)
                    cr_assert(got[k] == want[k], "%s, cut %d: number %d is %.9g, not %.9g",
                              forms[i], cut, k, (double)got[k], (double)want[k]);
            }
    }
}

/* ---- which tokens meet ---------------------------------------------------------------------- */

enum { WIDTH = 12 };

struct rows_by_hand {
    double at[MOST][WIDTH];
    int n;
};

/* Means of pairs: a last row without a partner is in none, or alone where the future is seen. */
static void pool_by_hand(struct rows_by_hand *r, bool causal)
{
    const int rows = r->n;

    r->n = (rows + !causal) / 2;
    for (int i = 0; i < r->n; i++)
        for (int e = 0; e < WIDTH; e++)
            r->at[i][e] =
                2 * i + 1 < rows ? 0.5 * (r->at[2 * i][e] + r->at[2 * i + 1][e]) : r->at[2 * i][e];
}

/* Token t has the group of `size` that it is in; causal: the last group whose
 * tokens are all at t or before it. */
static void join_by_hand(struct rows_by_hand *r, const struct rows_by_hand *tokens, int size,
                         bool causal)
{
    const struct rows_by_hand groups = *r;

    *r = *tokens;
    for (int t = 0; t < r->n; t++)
        for (int g = 0; g < groups.n; g++) {
            const int first = g * size, last = first + size - 1;
            const bool reads = causal ? last <= t && last + size > t : first <= t && t <= last;
            for (int e = 0; e < WIDTH && reads; e++)
                r->at[t][e] += groups.at[g][e];
        }
}

static struct rows_by_hand means_by_hand(const struct pool_case *t, int T)
{
    struct rows_by_hand r = {.n = T}, tokens = r;
    int size = 1;

    for (int i = 0; i < T * WIDTH; i++)
        r.at[i / WIDTH][i % WIDTH] = (double)t->x[i];
    for (const char *letter = t->l.c.order; *letter; letter++) {
        if (*letter == 'p' && size == 1)
            tokens = r;
        if (*letter == 'p')
            pool_by_hand(&r, t->l.c.causal), size *= 2;
        if (*letter == 'u')
            join_by_hand(&r, &tokens, size, t->l.c.causal);
        for (int i = 0; i < r.n; i++)
            layer_norm(r.at[i], WIDTH, NULL, NULL, (double)t->l.c.ln_eps);
    }
    return r;
}

/* Where all maps are 0, a sub-layer is its norm, and what is left are the means: of every length,
 * so that groups are cut short by the end everywhere. Twelve norms of numbers of up to 3, of means
 * that vary by a third or more of that. */
Test(pools, means_by_hand, .timeout = 240)
{
    for (int i = 0; i < FORMS; i++)
        for (int causal = 0; causal < 2; causal++)
            for (int T = 1; T <= MOST; T++) {
                struct pool_case t;
                pool_open(&t, forms[i], causal, "ref", 1, 1, T, false);
                for (int k = 0; k < t.l.p.n; k++)
                    for (size_t e = 0; e < t.l.p.v[k].n; e++)
                        t.l.p.v[k].data[e] = t.l.p.v[k].group == PARAM_NORMS;
                pool_lower(&t);
                const float *const got = pool_forward(&t, 1, T);
                const struct rows_by_hand want = means_by_hand(&t, T);
                for (int k = 0; k < T * WIDTH; k++)
                    cr_assert_leq(fabs((double)got[k] - want.at[k / WIDTH][k % WIDTH]), 256 * U,
                                  "%s, causal %d, %d tokens: token %d is %g, not %g", forms[i],
                                  causal, T, k / WIDTH, (double)got[k],
                                  want.at[k / WIDTH][k % WIDTH]);
            }
}

/* Layers on pools do a half or a quarter of the work on rows. */
Test(pools, fewer_rows_cost_less)
{
    struct pool_case t, whole;

    pool_open(&t, forms[0], true, "ref", 1, B, 8, true);
    pool_open(&whole, "sfsfsf", true, "ref", 1, B, 8, true);
    const double ffn = sublayer_flop(&whole.l.list.at[1], B, 8, 0);
    cr_expect_eq(sublayer_flop(&t.l.list.at[3], B, 4, 0), ffn / 2);
    const double all = sublayers_flop(&whole.l.list, B, 8, 0),
                 some = sublayers_flop(&t.l.list, B, 8, 0);
    /* q and o of half the rows, half of the feed-forward, and less than half of the pairs. */
    const double rows = 2.0 * B * 4 * 2 * 12 * 10;
    cr_expect(all - some > ffn / 2 + rows &&
              all - some < ffn / 2 + sublayer_flop(&whole.l.list.at[2], B, 8, 0));
}

/* ---- orders --------------------------------------------------------------------------------- */

Test(pools, order_of_the_variant)
{
    static const char *const orders[] = {"sf",         "pfuf",         "sfpfuf",        "sfpfpfuf",
                                         "sfsfpfpfuf", "sfsfpfsfpfuf", "sfsfpfsfpfsfuf"};

    for (int N = 1; N <= (int)ARRAY_LEN(orders); N++) {
        const struct config c = config_default(variant_find("funnel"), 8, 2, 4, 16, N, 7);
        cr_expect_str_eq(c.order, orders[N - 1]);
        cr_expect_eq(config_check(&c, NULL), OK);
    }
    const struct config published = config_default(variant_find("funnel"), 8, 2, 4, 16, 14, 7);
    cr_expect_str_eq(published.order, "sfsfsfsfpfsfsfsfpfsfsfsfufsf"); /* B4-4-4, two on top */
}

Test(pools, invalid_orders_are_refused)
{
    EACH_TEXT (order, "pf", "sfpf", "uf", "sfuf", "pfufuf", "pfufpf", "sfufpf",
               "pfpfpfpfpfpfpfpfpfuf") {
        const struct config c = pool_config(order, true);
        cr_expect_eq(config_check(&c, &failure), E_USAGE, "%s", order);
        HAS(failure.msg, "  -> use 1 to 8 times p, behind them one u");
    }
}
