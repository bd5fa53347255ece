/* SPDX-License-Identifier: MIT
 *
 * Sub-layers over cells of several tokens: the same numbers and gradients as the causal form of the
 * network that golden files check, rows that do not depend on what follows, lengths that leave no
 * cell at all, orders without sense. */
#include "tests/support/ffn_case.h"
#include "variants/model/funnel_net.h"
#include "variants/parts/parts.h"

enum { B = 2, MOST = 21 };

/* An order, and the blocks of layers that the network calls it. */
static const struct form_of_cells {
    const char *order;
    int layers[3], blocks, behind;
} forms[] = {
    {"sfpfuf", {1, 1}, 2, 1},
    {"sfsfpfsfufsf", {2, 2}, 2, 2},
    {"sfpfpfsfuf", {1, 1, 2}, 3, 1},
};
enum { FORMS = ARRAY_LEN(forms) };

static struct config pool_config(const struct form_of_cells *form)
{
    struct config c = config_default(variant_find("vanilla"), 12, 2, 5, 14, 1, 7);

    c.pos = &pos_xl;
    c.ffn = &ffn_gelu_tanh;
    c.attn_bias = c.uv_per_layer = true;
    snprintf(c.order, sizeof(c.order), "%s", form->order);
    return c;
}

/* ---- both of them --------------------------------------------------------------------------- */

struct pool_case {
    struct engine g;
    struct config c;
    struct params params;
    struct sublayers sublayers;
    struct arena arena;
    float *x, *z;
};

static void pool_bind(struct pool_case *t, int sequences, int T, bool trains)
{
    const struct extent max = {sequences, T, 0};
    struct arena *a = &t->arena;
    const size_t n = (size_t)(sequences * T * t->c.D);

    params_place(&t->params, a);
    cr_assert_eq(sublayers_bind(&t->sublayers, &t->g, &t->params, MEM_RECOMPUTE, max, a, NULL), OK);
    if (trains) {
        cr_assert_eq(sublayers_bind_grad(&t->sublayers, &t->g, a, NULL), OK);
        params_place_grad(&t->params, a);
    }
    t->x = arena_f32(a, PART_ACTIVATIONS, n);
    t->z = arena_f32(a, PART_ACTIVATIONS, n);
}

static void pool_open(struct pool_case *t, const struct form_of_cells *form, const char *backend,
                      int threads, int sequences, int T, bool trains)
{
    struct err e = {""};

    *t = (struct pool_case){.g = open_engine(backend, threads), .c = pool_config(form)};
    cr_assert_eq(config_check(&t->c, &e), OK, "%s", e.msg);
    cr_assert_eq(sublayers_init(&t->sublayers, &t->c, &t->params, 0, NULL), OK);
    pool_bind(t, sequences, T, trains);
    cr_assert_eq(arena_place(&t->arena, HUGE_NEVER, NULL, NULL, NULL), OK);
    memset(t->arena.base, 0xff, t->arena.size);
    pool_bind(t, sequences, T, trains);
    params_init(&t->params, SEED);
    for (int b = 0; b < sequences; b++) /* the same beginning for every T */
        rng_normal(t->x + b * T * t->c.D, (size_t)(T * t->c.D), SEED + (uint64_t)b, rng_stream("x"),
                   0, 1);
}

static void pool_lower(struct pool_case *t)
{
    t->c.pos->pos_encoding(&t->c, t->sublayers.max.L, t->sublayers.pos_encoding);
    sublayers_build_tables(&t->sublayers, &t->g);
}

/* z [rows of T tokens] from x, which may be shorter than what it was bound for. */
static const float *pool_forward(struct pool_case *t, int sequences, int T)
{
    float *const to = sublayers_input(&t->sublayers, t->z);

    memcpy(to, t->x, sizeof(float) * (size_t)(sequences * T * t->c.D));
    sublayers_forward(&t->sublayers, &t->g, t->z, to, sequences, T);
    return t->z;
}

static void pool_close(struct pool_case *t)
{
    sublayers_free(&t->sublayers);
    params_free(&t->params);
    arena_release(&t->arena);
}

static void network_open(struct funnel *f, struct arena *a, const struct engine *g,
                         const struct form_of_cells *form, int T)
{
    const struct config c = pool_config(form);

    cr_assert_eq(funnel_init(f, &c, form->layers, form->blocks, form->behind, NULL), OK);
    cr_assert_eq(funnel_bind(f, g, B, T, a, NULL), OK);
    cr_assert_eq(arena_place(a, HUGE_NEVER, NULL, NULL, NULL), OK);
    memset(a->base, 0xff, a->size);
    cr_assert_eq(funnel_bind(f, g, B, T, a, NULL), OK);
}

/* What the network calls tensor `name` of a model; false where it has none such. */
static bool its_name(char out[64], const struct form_of_cells *form, const char *name)
{
    int sublayer, used = 0, layer = 0, block = 0;

    cr_assert(sscanf(name, "sub.%d.%n", &sublayer, &used) == 1 && used > 0, "%s", name);
    const char *const rest = name + used;
    if (strcmp(rest, "attn.q.bias") == 0)
        return false;
    for (layer = sublayer / 2; block < form->blocks && layer >= form->layers[block]; block++)
        layer -= form->layers[block];
    const int n = block < form->blocks ? snprintf(out, 64, "enc.%d.%d.", block, layer)
                                       : snprintf(out, 64, "dec.%d.", layer);
    if (strncmp(rest, "ln.", 3) == 0)
        snprintf(out + n, 64 - (size_t)n, "ln%d.%s", 1 + sublayer % 2, rest + 3);
    else
        snprintf(out + n, 64 - (size_t)n, "%s", rest);
    return true;
}

/* The network's tensor for the i-th of `t`; NULL for what it does not have, which must be zero. */
static const struct param *pair(const struct pool_case *t, const struct funnel *f,
                                const struct form_of_cells *form, int i)
{
    const struct param *const w = &t->params.v[i];
    char name[64];

    if (!its_name(name, form, w->name))
        return NULL;
    const struct param *const theirs = params_find(&f->params, name);
    cr_assert(theirs && theirs->n == w->n, "no \"%s\"", name);
    return theirs;
}

/* ---- what must be the same ------------------------------------------------------------------ */

static double largest_of(const float *x, size_t n)
{
    double largest = 0;

    for (size_t i = 0; i < n; i++)
        largest = fmax(largest, fabs((double)x[i]));
    return largest;
}

/* Within 1e-4 of the largest, or of `floor`: what is left of sums that cancel, such as the gradient
 * of queries who see one key. */
static void expect_near(const float *got, const float *want, size_t n, double floor,
                        const char *what)
{
    const double largest = fmax(floor, largest_of(want, n));

    for (size_t i = 0; i < n; i++)
        cr_assert_leq(fabs((double)got[i] - (double)want[i]), 1e-4 * largest, "%s[%zu]: %g, not %g",
                      what, i, (double)got[i], (double)want[i]);
}

static void as_the_network(const struct form_of_cells *form, const char *backend, int T)
{
    struct pool_case t;
    struct funnel f;
    struct arena a = {0};
    const struct engine ref = open_engine("ref", 1);
    const size_t n = (size_t)(B * T * 12);
    float *const d = normal(n, "d", 0, 1), *const d_z = normal(n, "d", 0, 1);

    pool_open(&t, form, backend, 1 + T % 2, B, T, true);
    network_open(&f, &a, &ref, form, T);
    for (int i = 0; i < t.params.n; i++) {
        const struct param *const w = pair(&t, &f, form, i);
        if (w)
            memcpy(w->data, t.params.v[i].data, w->n * sizeof(float));
        else
            memset(t.params.v[i].data, 0, t.params.v[i].n * sizeof(float));
    }
    memcpy(f.x, t.x, n * sizeof(float));
    pool_lower(&t), funnel_build_tables(&f, &ref);
    params_zero_grad(&t.params), params_zero_grad(&f.params);
    cr_expect_lt(cell_error(pool_forward(&t, B, T), funnel_forward(&f, &ref), n), 1,
                 "%s, %s, %d tokens", backend, form->order, T);
    sublayers_poison(&t.sublayers);
    sublayers_backward(&t.sublayers, &t.g, d, B, T);
    const float *const d_x = funnel_backward(&f, &ref, d_z);
    const double floor = largest_of(d_x, n) / 10;
    expect_near(d, d_x, n, 0, "d_x");
    for (int i = 0; i < t.params.n; i++) {
        const struct param *const w = pair(&t, &f, form, i);
        if (w)
            expect_near(t.params.v[i].grad, w->grad, w->n, floor, t.params.v[i].name);
    }
    release(d), release(d_z);
    pool_close(&t), funnel_free(&f), arena_release(&a);
}

ParameterizedTestParameters(cells, as_the_causal_network) { return every_backend(); }
ParameterizedTest(int *b, cells, as_the_causal_network, .timeout = 60)
{
    static const int lengths[] = {1, 2, 3, 4, 7, 8, MOST};

    if (backend_usable(backends[*b], NULL) != OK)
        cr_skip_test("%s cannot run here", backends[*b]->name);
    for (int i = 0; i < FORMS; i++)
        for (size_t k = 0; k < ARRAY_LEN(lengths); k++)
            as_the_network(&forms[i], backends[*b]->name, lengths[k]);
}

/* On the reference a row does not depend on its neighbours' number, so that it is the same to the
 * last bit; kept for training or not, and bound for more tokens or not. */
Test(cells, rows_do_not_see_what_follows)
{
    for (int i = 0; i < FORMS; i++) {
        struct pool_case all;
        pool_open(&all, &forms[i], "ref", 1, 1, MOST, false);
        pool_lower(&all);
        float *const want = guarded((size_t)(MOST * all.c.D));
        memcpy(want, pool_forward(&all, 1, MOST), sizeof(float) * (size_t)(MOST * all.c.D));
        for (int cut = 1; cut < MOST; cut++)
            for (int how = 0; how < 3; how++) {
                struct pool_case t;
                pool_open(&t, &forms[i], "ref", 1, 1, how == 2 ? MOST : cut, how == 1);
                pool_lower(&t);
                const float *const got = pool_forward(&t, 1, cut);
                for (int k = 0; k < cut * all.c.D; k++)
                    cr_assert(got[k] == want[k], "%s, cut %d: number %d is %.9g, not %.9g",
                              forms[i].order, cut, k, (double)got[k], (double)want[k]);
                pool_close(&t);
            }
        release(want);
        pool_close(&all);
    }
}

/* Layers on cells do a half or a quarter of the work on rows. */
Test(cells, fewer_rows_cost_less)
{
    const struct form_of_cells plain = {.order = "sfsfsf"};
    struct pool_case t, whole;

    pool_open(&t, &forms[0], "ref", 1, B, 8, true);
    pool_open(&whole, &plain, "ref", 1, B, 8, true);
    const double ffn = sublayer_flop(&whole.sublayers.at[1], B, 8, 0);
    cr_expect_eq(sublayer_flop(&t.sublayers.at[3], B, 4, 0), ffn / 2);
    const double all = sublayers_flop(&whole.sublayers, B, 8, 0),
                 some = sublayers_flop(&t.sublayers, B, 8, 0);
    /* q and o of half the rows, half of the feed-forward, and less than half of the pairs. */
    const double rows = 2.0 * B * 4 * 2 * 12 * 10;
    cr_expect(all - some > ffn / 2 + rows &&
              all - some < ffn / 2 + sublayer_flop(&whole.sublayers.at[2], B, 8, 0));
    pool_close(&t), pool_close(&whole);
}

/* ---- orders --------------------------------------------------------------------------------- */

Test(cells, order_of_the_variant)
{
    static const char *const orders[] = {"sf",         "pfuf",         "sfpfuf",        "sfpfsfuf",
                                         "sfpfsfsfuf", "sfpfsfpfsfuf", "sfpfsfpfsfsfuf"};

    for (int N = 1; N <= (int)ARRAY_LEN(orders); N++) {
        const struct config c = config_default(variant_find("funnel"), 8, 2, 4, 16, N, 7);
        cr_expect_str_eq(c.order, orders[N - 1]);
        cr_expect_eq(config_check(&c, NULL), OK);
    }
}

Test(cells, orders_without_sense_are_refused)
{
    static const char *const orders[] = {"pf",     "sfpf",   "uf",     "sfuf",
                                         "pfufuf", "pfufpf", "sfufpf", "pfpfpfpfpfpfpfpfpfuf"};
    struct err e = {""};

    for (size_t i = 0; i < ARRAY_LEN(orders); i++) {
        const struct form_of_cells form = {.order = orders[i]};
        const struct config c = pool_config(&form);
        cr_expect_eq(config_check(&c, &e), E_USAGE, "%s", orders[i]);
        cr_expect(strstr(e.msg, "  -> 1 to 8 times p, behind them one u"), "%s", e.msg);
    }
}

Test(cells, what_knows_no_cells_is_refused)
{
    struct config c[9];
    struct err e = {""};

    for (size_t i = 0; i < ARRAY_LEN(c); i++) {
        c[i] = pool_config(&forms[0]);
        cr_assert_eq(config_check(&c[i], &e), OK, "%s", e.msg);
    }
    c[0].wiring = WIRING_PRE, c[1].causal = false, c[2].window = 4, c[3].same_length = true;
    c[4].pos = &pos_rope, c[5].pos = &pos_none, c[6].score_residual = SCORE_RESIDUAL_SUM;
    c[7].variant = variant_find("xl"), c[8].mixer = mixers[0];
    for (size_t i = 0; i < ARRAY_LEN(c); i++)
        cr_expect_eq(config_check(&c[i], &e), E_USAGE, "%zu", i);
}
