/* SPDX-License-Identifier: MIT
 *
 * The map before q, k and v: DExTra against its definition in double on every backend, its
 * gradients against finite differences and the reference's; its sizes against those of the authors'
 * program; and models that have it: widths, cost. Checkpoints: test_keys.c. */
#include "tests/support/command_line.h"
#include "tests/support/kernel/ffn_case.h"
#include "variants/parts/dextra.h"

/* A map with its parameters and work space in an arena that starts as NaN. */
struct map_case {
    struct engine g;
    const struct config *c;
    int rows, width;
    struct params p;
    struct arena a;
    float *x, *d_x, *d_y, *spent, *work, *more;
};

static void map_bind(struct map_case *t)
{
    const struct config *c = t->c;
    const size_t n = (size_t)(t->rows * c->D), n_y = (size_t)(t->rows * t->width);

    params_place(&t->p, &t->a);
    params_place_grad(&t->p, &t->a);
    t->x = arena_f32(&t->a, PART_ACTIVATIONS, n), t->d_x = arena_f32(&t->a, PART_ACTIVATIONS, n);
    t->d_y = arena_f32(&t->a, PART_ACTIVATIONS, n_y);
    t->spent = arena_f32(&t->a, PART_ACTIVATIONS, n_y);
    t->work = arena_f32(&t->a, PART_ACTIVATIONS, c->qkv_map->work(c, 0, t->rows));
    t->more = arena_f32(&t->a, PART_SCRATCH, c->qkv_map->work_grad(c, 0, t->rows));
}

static void map_open(struct map_case *t, const struct config *c, const char *backend, int threads,
                     int rows)
{
    *t = (struct map_case){.g = open_engine(backend, threads), .c = c, .rows = rows};
    t->width = c->qkv_map->width(c);
    c->qkv_map->params(c, 0, "", &t->p);
    map_bind(t);
    const size_t counted = t->a.used;
    cr_assert_eq(arena_place(&t->a, HUGE_NEVER, NULL, NULL, NULL), OK);
    memset(t->a.base, 0xff, t->a.size);
    map_bind(t);
    cr_assert_eq(t->a.used, counted);
    params_init(&t->p, SEED, 1);
    for (int i = 0; i < t->p.n; i++)
        quantise(t->p.v[i].data, t->p.v[i].n);
    rng_normal(t->x, (size_t)(rows * c->D), SEED, rng_stream("x"), 0, 1);
    rng_normal(t->d_y, (size_t)(rows * t->width), SEED, rng_stream("d_y"), 0, 1);
    quantise(t->x, (size_t)(rows * c->D));
    kept_copy(t, sizeof(*t));
}

static void map_forward(struct map_case *t)
{
    t->c->qkv_map->forward(&t->g, t->c, 0, t->p.v, t->x, t->rows, t->work);
}

static void map_backward(struct map_case *t)
{
    params_zero_grad(&t->p);
    memcpy(t->spent, t->d_y, sizeof(float) * (size_t)(t->rows * t->width));
    t->c->qkv_map->backward(&t->g, t->c, 0, t->p.v, t->d_x, t->spent, t->x, t->rows, t->work,
                            t->more);
}

/* Forms of the map: either form, with and without shuffle, norms and groups, few and many stages.
 */
enum { FORMS = 12 };
static struct config form_of(int form, int D, int H, int dh)
{
    static const char *const act[] = {"gelu", "swish", "gelu_tanh"};
    struct config c = config_default(variant_find("delight"), D, H, dh, 9, 1, 7);

    set_choice(&c, "dextra", form & 1 ? "code" : "paper");
    set_number(&c, "glt_norm", form & 1 ? !(form & 4) : form % 3 == 2);
    set_number(&c, "glt_shuffle", !(form & 2));
    set_number(&c, "glt_max_groups", form % 5 ? 4 : 1);
    set_number(&c, "dextra_depth", 1 + form % 6);
    set_number(&c, "dextra_width", 1.5 + form % 2);
    set_choice(&c, "glt_act", act[form % 3]);
    return c;
}

/* ---- the definition ------------------------------------------------------------------------- */

enum { WIDEST = 512 };

static double curve(enum act_kind kind, double x)
{
    if (kind == ACT_GELU)
        return x * (1 + erf(x / sqrt(2))) / 2;
    if (kind == ACT_GELU_TANH)
        return x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))) / 2;
    return kind == ACT_SWISH ? x / (1 + exp(-x)) : x;
}

static const struct param *named(const struct map_case *t, const char *stage, const char *what)
{
    return params_find(&t->p, kept_text("dextra.%s.%s", stage, what));
}

/* y [n] of one transform: parts, their products, the shuffle, the norm of each new group. */
static int transform(const struct map_case *t, const char *stage, const double *in, double *y,
                     bool last)
{
    const struct config *c = t->c;
    const struct param *W = named(t, stage, "weight"), *b = named(t, stage, "bias");
    const struct param *ln = named(t, stage, "ln.weight"), *ln_b = named(t, stage, "ln.bias");
    const int groups = W->rank == 3 ? W->shape[0] : 1;
    const int n = W->shape[W->rank - 2], k = W->shape[W->rank - 1];

    for (int p = 0; p < groups; p++)
        for (int q = 0; q < n; q++) {
            double sum = (double)b->data[p * n + q];
            for (int e = 0; e < k; e++)
                sum += (double)W->data[(p * n + q) * k + e] * in[p * k + e];
            y[dextra_of(c)->shuffle ? q * groups + p : p * n + q] = sum;
        }
    for (int p = 0; ln && p < groups; p++)
        layer_norm(y + p * n, n, ln->data, ln_b->data, (double)c->ln_eps);
    for (int i = 0; !last && i < groups * n; i++)
        y[i] = curve(dextra_act(c), y[i]);
    return groups * n;
}

/* [x_1, y_1, x_2, y_2, ..] by parts, for a transform of so many groups. */
static void mix(double *in, const double *x, int n_x, const double *y, int n_y, int groups)
{
    for (int p = 0; p < groups; p++) {
        for (int e = 0; e < n_x / groups; e++)
            *in++ = x[p * (n_x / groups) + e];
        for (int e = 0; e < n_y / groups; e++)
            *in++ = y[p * (n_y / groups) + e];
    }
}

static void by_hand(const struct map_case *t, int row, float *out)
{
    const struct config *c = t->c;
    double x[WIDEST], in[2 * WIDEST], y[WIDEST], next[WIDEST];
    int n_x = c->D, n_y = 0;

    to_doubles(x, t->x + row * c->D, c->D);
    if ((dextra_of(c)->form == DEXTRA_CODE)) {
        n_x = transform(t, "in", x, next, false);
        memcpy(x, next, sizeof(x));
    }
    for (int i = 0; i < dextra_of(c)->depth[0]; i++) {
        const char *const name = kept_text("glt.%d", i);
        mix(in, x, n_x, y, n_y, named(t, name, "weight")->shape[0]);
        n_y = transform(t, name, in, next,
                        !(dextra_of(c)->form == DEXTRA_CODE) && i == dextra_of(c)->depth[0] - 1);
        cr_assert_leq(n_y, (int)WIDEST);
        memcpy(y, next, sizeof(y));
    }
    if ((dextra_of(c)->form == DEXTRA_CODE)) {
        mix(in, x, n_x, y, n_y, 1);
        transform(t, "out", in, y, false);
    }
    to_floats(out, y, t->width);
}

TEST_EACH(int *b, delight, map_is_its_definition, every_backend(), .timeout = 240)
{
    static const int shapes[][4] = {
        {1, 8, 1, 4}, {5, 16, 1, 8}, {33, 20, 3, 4}, {7, 9, 2, 5}}; /* rows D H dh */

    for (size_t s = 0; s < ARRAY_LEN(shapes); s++)
        for (int form = 0; form < FORMS; form++) {
            const struct config c = form_of(form, shapes[s][1], shapes[s][2], shapes[s][3]);
            struct map_case t;
            map_open(&t, &c, backends[*b]->name, 1 + form % 2, shapes[s][0]);
            const size_t n = (size_t)(t.rows * t.width);
            float *want = fenced(n);
            for (int row = 0; row < t.rows; row++)
                by_hand(&t, row, want + row * t.width);
            map_forward(&t);
            cr_expect_lt(case_error(t.work, want, n), 1, "%s, form %d, shape %zu",
                         backends[*b]->name, form, s);
        }
}

/* ---- gradients ------------------------------------------------------------------------------ */

static double map_value(void *ctx)
{
    struct map_case *t = ctx;
    double sum = 0;

    map_forward(t);
    for (int i = 0; i < t->rows * t->width; i++)
        sum += (double)t->work[i] * (double)t->d_y[i];
    return sum;
}

/* The value is a sum of rows dh products of factors near 1 that went through up to 7 stages of a
 * product, a norm and an activation each: 8 U of error per stage, not of one sign. Norms of small
 * groups amplify most. */
Test(delight, map_is_differentiated, .timeout = 120)
{
    for (int form = 0; form < FORMS; form++) {
        const struct config c = form_of(form, form & 1 ? 32 : 16, 1, form & 1 ? 16 : 8);
        struct map_case t;
        map_open(&t, &c, "ref", 1, 3);
        const size_t n = (size_t)(t.rows * c.D);
        const double noise = 8 * 7 * U * 2 * sqrt((double)(t.rows * t.width));
        const struct scalar f = {map_value, &t, noise, dextra_of(&c)->norm ? 0x1p-10 : 0x1p-7};
        const char *const what = kept_text("form %d", form);
        map_forward(&t), map_backward(&t);
        expect_gradient(&f, what, t.x, copied(t.d_x, n), n, 512 * U, 2 * f.noise / f.step);
        expect_gradients(&f, what, &t.p, 512 * U, 2 * f.noise / f.step);
    }
}

TEST_EACH(int *b, delight, map_backward_as_the_reference, every_backend(), .timeout = 240)
{
    for (int form = 0; form < FORMS; form++) {
        const struct config c = form_of(form, 20, 3, 4);
        struct map_case got, want;
        map_open(&got, &c, backends[*b]->name, 1 + form % 2, 37);
        map_open(&want, &c, "ref", 1, 37);
        map_forward(&got), map_backward(&got);
        map_forward(&want), map_backward(&want);
        cr_expect_lt(ffn_error(got.d_x, want.d_x, 37 * 20), 1, "%s, form %d: d_x",
                     backends[*b]->name, form);
        for (int i = 0; i < got.p.n; i++)
            cr_expect_lt(ffn_error(got.p.v[i].grad, want.p.v[i].grad, got.p.v[i].n), 1,
                         "%s, form %d: %s", backends[*b]->name, form, got.p.v[i].name);
    }
}

/* ---- sizes ---------------------------------------------------------------------------------- */

/* D 16, rows of 8, twice as wide in the middle, at most four groups: in the paper's form and in the
 * program's. */
Test(delight, stages_have_published_sizes)
{
    static const int want[2][6][4] = {
        {{1, 16, 0, 16}, {2, 16, 16, 32}, {2, 16, 32, 32}, {1, 16, 32, 8}},
        {{1, 16, 0, 8}, {2, 8, 0, 8}, {4, 8, 8, 32}, {4, 8, 32, 32}, {2, 8, 32, 8}, {1, 8, 8, 8}}};
    struct config c = form_of(0, 16, 1, 8);

    set_number(&c, "glt_max_groups", 4);
    set_number(&c, "dextra_depth", 4);
    set_number(&c, "dextra_width", 2);
    for (int code = 0; code < 2; code++) {
        set_choice(&c, "dextra", code ? "code" : "paper");
        const struct stages s = dextra_stages(&c, 0);
        cr_assert_eq(s.n, code ? 6 : 4);
        for (int i = 0; i < s.n; i++) {
            const struct stage *t = &s.at[i];
            const int got[4] = {t->groups, t->a, t->b, t->out};
            cr_expect_arr_eq(got, want[code][i], sizeof(got), "form %d, stage %d", code, i);
        }
    }
}

/* Groups divide their operand, for any sizes; deeper layers are deeper. */
Test(delight, stages_fit_any_sizes)
{
    for (int D = 1; D < 40; D++)
        for (int dh = 1; dh < 12; dh += 3)
            for (int code = 0; code < 2; code++)
                for (int nth = 0; nth < 5; nth++) {
                    struct config c = config_default(variant_find("delight"), D, 2, dh, 4, 5, 7);
                    set_choice(&c, "dextra", code ? "code" : "paper");
                    const struct stages s = dextra_stages(&c, nth);
                    NUMBERS({s.n, 4 + nth + 2 * code}, {s.at[s.n - 1].out, 2 * dh});
                    for (int i = 0; i < s.n; i++) {
                        const struct stage *t = &s.at[i];
                        cr_expect(t->a % t->groups == 0 && t->b % t->groups == 0 &&
                                  t->out % t->groups == 0 && t->groups <= dextra_of(&c)->groups);
                    }
                }
}

/* ---- models --------------------------------------------------------------------------------- */

Test(delight, widths_are_its_own_unless_given)
{
    struct plan p = planned("-V delight,xl -b ref -w layer --seq 8 --mem 0 --d-model 64 --heads 2");
    cr_assert_eq(p.n, 2);
    for (int i = 0; i < p.n; i++) {
        const bool narrow = p.cases[i].variant->qkv_map;
        NUMBERS({p.cases[i].config.dh, narrow ? 16 : 32}, {p.cases[i].config.F, narrow ? 16 : 256},
                {strstr(p.cases[i].repro, "--d-head 16 --d-inner 16") != NULL, narrow});
    }
    p = planned("-V delight -b ref -w layer --seq 8 --mem 0 --d-head 8 --d-inner 100");
    cr_expect(p.n == 1 && p.cases[0].config.dh == 8 && p.cases[0].config.F == 100);
}

/* The useful work of a row: every product of every stage, once. */
Test(delight, cost_counts_every_product)
{
    struct config c = form_of(0, 16, 1, 8);
    double want = 0;
    struct params p = {0};

    c.qkv_map->params(&c, 0, "", &p);
    for (int i = 0; i < p.n; i++)
        want += strstr(p.v[i].name, "glt") && p.v[i].rank > 1 ? 2.0 * 5 * (double)p.v[i].n : 0;
    cr_expect_eq(c.qkv_map->flop(&c, 0, 5), want);
    params_free(&p);
}
