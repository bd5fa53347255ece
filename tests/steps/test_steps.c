/* SPDX-License-Identifier: MIT
 *
 * Lists of steps: each kind's gradients against finite differences, with segments that carry on;
 * what the builder refuses; where values lie. What the kinds compute is in golden files of mixers.
 */
#include "tests/support/every_backend.h"
#include "tests/support/gradients.h"
#include "tests/support/kernel/fenced.h"
#include "tests/support/open_engine.h"
#include "variants/backends/recur.h"
#include "variants/steps/mix.h"

enum { B = 2, L = 7, D = 12, ROWS = B * L };

/* ---- lists of one kind ----------------------------------------------------------------------- */

static void build_linear(struct steps *t)
{
    const int to = steps_value(t, 9);

    step_linear_to(t, steps_columns(t, to, 0, 5), STEPS_INPUT, "a");
    step_linear_to(t, steps_columns(t, to, 5, 4), steps_columns(t, STEPS_INPUT, 3, 6), "b");
    t->result = step_affine(t, to, 5, "c");
}

/* Functions behind maps: with a bias of the map, one of their own, or both; of columns of a map. */
static void build_ends(struct steps *t)
{
    const int a = step_apply(t, step_affine(t, STEPS_INPUT, 5, "a"), CURVE_RELU, 1);
    const int b = step_apply(t, step_affine(t, a, 6, "b"), CURVE_SIGMOID, 2);
    const int c = step_curve(t, step_linear(t, b, 6, "c"), CURVE_SOFTPLUS, 1, "c1", INIT_NORMAL, 1);
    const int d = step_curve(t, step_affine(t, c, 6, "d"), CURVE_TANH, 1, "d1", INIT_NORMAL, 1);
    const int e = step_apply(t, step_affine(t, d, 6, "e"), CURVE_RELU, -1);
    const int two = step_linear(t, STEPS_INPUT, 6, "f"); /* read by two */
    const int f = step_times(t, step_apply(t, two, CURVE_SILU, 1), two);
    const int to = steps_value(t, 9);

    step_affine_to(t, steps_columns(t, to, 3, 6), e, "g");
    step_linear_to(t, steps_columns(t, to, 0, 3), e, "h");
    const int g = step_apply(t, steps_columns(t, to, 3, 6), CURVE_EXP, 0.5f);
    t->result = step_plus(t, f, g);
}

static void build_conv(struct steps *t) { t->result = step_conv(t, STEPS_INPUT, 4, true, true); }
static void build_conv_of_one(struct steps *t)
{
    t->result = step_conv(t, steps_columns(t, STEPS_INPUT, 2, 5), 1, false, false);
}

/* The result lies outside, or a map reads it. */
static void build_taps(struct steps *t)
{
    t->result = step_taps(t, 4, "w", "b");
    t->last = NULL;
}
static void build_taps_inside(struct steps *t)
{
    t->result = step_linear(t, step_taps(t, L + 2, "w", NULL), 5, "a");
}

static void build_mean(struct steps *t)
{
    const int mean = step_mean(t, steps_columns(t, STEPS_INPUT, 3, 8), "sum", "count");
    const int large = step_apply(t, mean, CURVE_NONE, 500); /* of a thousand rows */
    const int y = step_linear(t, STEPS_INPUT, 8, "y"), both = steps_value(t, 16);

    step_copy_to(t, steps_columns(t, both, 8, 8), y);
    step_linear_to(t, steps_columns(t, both, 0, 8), STEPS_INPUT, "z");
    t->result = step_blend(t, large, steps_columns(t, both, 0, 8), y, steps_columns(t, both, 8, 8));
}

static void build_shift(struct steps *t) { t->result = step_shift(t, STEPS_INPUT, "shift"); }

static void build_mixes(struct steps *t)
{
    const int w = steps_tensor(t, INIT_NORMAL, 0.5f, 2, (const int[]){3, 6}, "w");
    const int x = steps_columns(t, STEPS_INPUT, 0, 6), d = steps_columns(t, STEPS_INPUT, 6, 6);
    const int m = step_mixes(t, x, d, NO_VALUE, (struct mix_weights){w, 0, 2});

    t->result = step_mixes(t, x, d, m, (struct mix_weights){w, 1, 2});
}

static void build_blocks(struct steps *t) { t->result = step_blocks(t, STEPS_INPUT, 3, 5, "w"); }

static void build_curves(struct steps *t)
{
    const int a = step_curve(t, STEPS_INPUT, CURVE_SILU, 1.5f, "b0", INIT_NORMAL, 1);
    const int b = step_apply(t, a, CURVE_CAP, 2);
    const int c = step_curve(t, b, CURVE_LOG_SIGMOID, 0.5f, "b1", INIT_NORMAL, 1);
    const int d = step_apply(t, c, CURVE_SOFTPLUS, -2);
    const int e = step_apply(t, d, CURVE_EXP, -1);
    const int f = step_apply(t, e, CURVE_SIGMOID, 2);
    const int g = step_curve(t, f, CURVE_RELU_SQUARED, 1, "b2", INIT_CONST, 1);

    t->result = step_plus(t, step_apply(t, g, CURVE_TANH, 3), step_apply(t, a, CURVE_NONE, -1));
}

static void build_products(struct steps *t)
{
    const int x = step_linear(t, STEPS_INPUT, 4, "x"), y = step_linear(t, STEPS_INPUT, 12, "y");
    const int wide = step_times(t, y, x), same = step_times(t, wide, step_copy(t, y));
    const int skip = step_skip(t, same, y, 3, "s"), scaled = step_scale(t, skip, "w", 0.7f);
    const int narrow = step_rate(t, scaled, 4, false, "r");

    t->result = step_plus(t, narrow, step_rate(t, x, 3, true, "q"));
}

static void build_units(struct steps *t)
{
    const int a = step_unit(t, STEPS_INPUT, 4, 1e-6f, false);

    t->result = step_unit(t, step_linear(t, a, 6, "w"), 3, 1e-12f, true);
}

static void build_norms(struct steps *t)
{
    const struct head_norm one = {.width = 4, .eps = 1e-5f};
    const struct head_norm all = {
        .width = 6, .layer = true, .each = true, .bias = true, .eps = 1e-3f};

    t->result = step_norm(t, step_norm(t, STEPS_INPUT, one), all);
}

static void build_rotations(struct steps *t)
{
    t->result = step_rotate(t, step_rotate(t, STEPS_INPUT, 4, 10000, false), 3, 50, true);
}

/* Every operand of a recurrence, two heads. */
static void build_recurrence(struct steps *t)
{
    const int q = step_linear(t, STEPS_INPUT, 3, "q"), k = step_linear(t, STEPS_INPUT, 6, "k");
    const int z = step_linear(t, STEPS_INPUT, 6, "g");
    struct recurrence r = {
        .heads = 2, .dk = 3, .dv = 4, .scale = 0.6f, .q = q, .q_heads = 1, .k = k};

    r.v = step_linear(t, STEPS_INPUT, 8, "v");
    r.g = step_apply(t, z, CURVE_LOG_SIGMOID, 1);
    r.beta = NO_VALUE;
    r.a = step_unit(t, step_linear(t, STEPS_INPUT, 6, "a"), 3, 1e-6f, false);
    r.b = step_linear(t, STEPS_INPUT, 6, "b");
    r.i = NO_VALUE;
    r.bonus = "u";
    t->result = step_recur(t, r);
}

static void build_normalised(struct steps *t)
{
    const int k = step_linear(t, STEPS_INPUT, 6, "k"), z = step_linear(t, STEPS_INPUT, 2, "g");
    struct recurrence r = {.heads = 2, .dk = 3, .dv = 4, .scale = 0.6f, .k = k};

    r.q = step_linear(t, STEPS_INPUT, 6, "q");
    r.v = step_linear(t, STEPS_INPUT, 8, "v");
    r.g = step_apply(t, z, CURVE_LOG_SIGMOID, 1);
    r.beta = r.a = r.b = NO_VALUE;
    r.i = step_linear(t, STEPS_INPUT, 2, "i");
    r.norm = RECUR_MLSTM;
    t->result = step_recur(t, r);
}

struct list {
    char name[16];
    steps_build *build;
    const char *mixer; /* whose numbers it has; NULL = none */
};

static const struct list lists[] = {
    {"linear", build_linear, NULL},
    {"ends", build_ends, NULL},
    {"conv", build_conv, NULL},
    {"conv of one", build_conv_of_one, NULL},
    {"taps", build_taps, NULL},
    {"taps inside", build_taps_inside, NULL},
    {"mean", build_mean, NULL},
    {"shift", build_shift, NULL},
    {"mixes", build_mixes, NULL},
    {"blocks", build_blocks, NULL},
    {"curves", build_curves, NULL},
    {"products", build_products, NULL},
    {"units", build_units, NULL},
    {"norms", build_norms, NULL},
    {"rotations", build_rotations, NULL},
    {"recurrence", build_recurrence, NULL},
    {"normalised", build_normalised, NULL},
    {"elu", mix_linear, "linear_elu"},
    {"exp", mix_linear, "favor"},
    {"cosh", mix_linear, "favor_hyp"},
    {"relu", mix_linear, "favor_relu"},
};

/* ---- one run --------------------------------------------------------------------------------- */

struct problem {
    struct engine g;
    struct config c;
    struct steps t;
    struct params p;
    struct arena a;
    struct steps_run r;
    float *x, *weights; /* the scalar is sum weights (.) result */
    float *d_x, *values, *d_values, *result, *d_result;
    void *scratch;
};

/* Pairs of heads that share keys. */
static struct config config_of(const char *mixer)
{
    struct config c = config_default(variant_find("linear"), D, 4, 3, 1, 1, 0);

    c.mixer = mixer_find(mixer);
    c.kv_heads = 2;
    c.attn_bias = true;
    config_numbers_reset(&c);
    return c;
}

/* A past. Divisors of positive features are kept off 0. */
static void begin_states(struct problem *p)
{
    for (int i = 0; i < p->t.n_states; i++) {
        const struct state *const s = &p->t.state[i];
        const int least = strcmp(s->name, "state_z") == 0 ? 0 : -3;
        for (int e = 0; e < B * s->n; e++)
            p->r.before[i][e] = 0.1f * (float)(e % 7 + least);
        if (s->draw)
            s->draw(&p->c, p->r.before[i]);
    }
    if (p->t.tables)
        p->t.tables(&p->t, NULL, p->r.before);
}

static void open_in(struct problem *p, const struct list *list, const char *backend,
                    enum elem dtype)
{
    memset(p, 0, sizeof(*p));
    p->c = list->mixer ? config_of(list->mixer) : (struct config){.D = D};
    p->c.dtype = dtype;
    p->g = open_engine(backend, 2);
    steps_make(&p->t, list->build, &p->c, 0, false, "", &p->p);
    for (int twice = 0; twice < 2; twice++) {
        params_place(&p->p, &p->a);
        params_place_grad(&p->p, &p->a);
        for (int i = 0; i < p->t.n_states; i++) {
            p->r.before[i] = arena_f32(&p->a, PART_MEMORY, (size_t)(B * p->t.state[i].n));
            p->r.after[i] = arena_f32(&p->a, PART_MEMORY, (size_t)(B * p->t.state[i].n));
        }
        p->scratch = arena_take(&p->a, PART_SCRATCH,
                                steps_scratch(&p->t, &p->g, (struct extent){B, L, 0}, true) +
                                    steps_scratch(&p->t, &p->g, (struct extent){B, L, 0}, false));
        if (!twice)
            MUST(arena_place(&p->a, HUGE_NEVER, NULL, NULL, &failure));
    }
    params_init(&p->p, SEED, 1);
    for (int i = 0; i < p->p.n; i++)
        quantise(p->p.v[i].data, p->p.v[i].n);
    p->x = normals(ROWS * D, "x", 0, 0.7f);
    quantise(p->x, ROWS * D);
    p->d_x = fenced(ROWS * D);
    p->values = fenced(steps_floats(&p->t, (struct extent){B, L, 0}, true));
    p->d_values = fenced(steps_floats(&p->t, (struct extent){B, L, 0}, false));
    p->result = fenced(ROWS * D), p->d_result = fenced(ROWS * D);
    p->r.result = p->result, p->r.d_result = p->d_result;
    p->r.front = p->r.d_front = (struct rows_in_front){0, L * D};
    p->r.kept = true;
    p->weights = normals((size_t)(ROWS * p->t.value[p->t.result].width), "weights", 0, 1);
    begin_states(p);
    p->r.g = &p->g;
    p->r.params = p->p.v;
    p->r.B = B, p->r.L = L, p->r.position = 1000;
    p->r.x = p->x;
    p->r.values = p->values;
    p->r.d_x = p->d_x;
    p->r.d_values = p->d_values;
    p->r.scratch = p->scratch;
    kept_copy(p, sizeof(*p));
}

static void open_problem(struct problem *p, const struct list *list, const char *backend)
{
    open_in(p, list, backend, ELEM_F32);
}

static double scalar_of(void *ctx)
{
    struct problem *const p = ctx;
    const size_t n = (size_t)(ROWS * p->t.value[p->t.result].width);
    double sum = 0;

    steps_forward(&p->t, &p->r);
    const float *const y = steps_matrix(&p->t, &p->r, p->t.result).at;
    for (size_t i = 0; i < n; i++)
        sum += (double)p->weights[i] * (double)y[i];
    return sum;
}

static void build_rate(struct steps *t) { t->result = step_rate(t, STEPS_INPUT, 1, false, "r"); }

/* e^w beyond float: an input of 0 forgets nothing, any other all, and where what is forgotten has no
 * gradient nothing has one. NaN stays. */
Test(steps, rates_beyond_float)
{
    static const struct list list = {"rate", build_rate, NULL};
    struct problem p;

    open_problem(&p, &list, "ref");
    for (size_t i = 0; i < p.p.v[0].n; i++)
        p.p.v[0].data[i] = 3000;
    for (int i = 0; i < ROWS * D; i++)
        p.x[i] = i % 3 == 0 ? 0 : i % 3 == 1 ? 1e-3f : 5;
    p.x[7] = NAN;
    steps_forward(&p.t, &p.r);
    const float *const y = steps_matrix(&p.t, &p.r, p.t.result).at;
    for (int i = 0; i < ROWS * D; i++)
        cr_expect(i == 7       ? isnan(y[i])
                  : i % 3 == 0 ? y[i] == 0
                               : isfinite(y[i]) && expf(y[i]) == 0,
                  "%d: %g", i, (double)y[i]);
    p.x[7] = 5;
    steps_forward(&p.t, &p.r);
    params_zero_grad(&p.p);
    memset(steps_gradient(&p.t, &p.r, p.t.result).at, 0, sizeof(float) * (size_t)(ROWS * D));
    steps_backward(&p.t, &p.r);
    for (int i = 0; i < ROWS * D; i++)
        cr_expect_eq(p.d_x[i], 0, "%d: %g", i, (double)p.d_x[i]);
    for (size_t i = 0; i < p.p.v[0].n; i++)
        cr_expect_eq(p.p.v[0].grad[i], 0);
}

TEST_EACH(int *b, steps, gradients, every_backend(), .timeout = 120)
{
    for (size_t k = 0; k < ARRAY_LEN(lists); k++) {
        struct problem p;
        open_problem(&p, &lists[k], backends[*b]->name);
        /* A hundred numbers near 1, each good to some ten roundings. */
        const struct scalar f = {scalar_of, &p, 64 * U, 0x1p-6};
        const size_t n = (size_t)(ROWS * p.t.value[p.t.result].width);
        scalar_of(&p);
        params_zero_grad(&p.p);
        memcpy(steps_gradient(&p.t, &p.r, p.t.result).at, p.weights, n * sizeof(float));
        steps_backward(&p.t, &p.r);
        const char *const what = kept_text("%s, %s", backends[*b]->name, lists[k].name);
        expect_gradient_aside(&f, what, p.x, p.d_x, ROWS * D, 256 * U, 2 * f.noise / f.step,
                              DIRECTIONS);
        expect_gradients_aside(&f, what, &p.p, 256 * U);
    }
}

/* Two halves, with the states of the first, are the whole. */
Test(steps, segments)
{
    for (size_t k = 0; k < ARRAY_LEN(lists); k++) {
        struct problem whole, half;
        enum { FIRST = 3 };
        open_problem(&whole, &lists[k], "ref");
        open_problem(&half, &lists[k], "ref");
        const int n = whole.t.value[whole.t.result].width;
        scalar_of(&whole);
        const float *const want = steps_matrix(&whole.t, &whole.r, whole.t.result).at;
        for (int part = 0, from = 0; part < 2; part++) {
            const int rows = part ? L - FIRST : FIRST;
            float *const x = normals((size_t)(B * rows * D), "x", 0, 1);
            for (int b = 0; b < B; b++)
                memcpy(x + (ptrdiff_t)b * rows * D, whole.x + ((ptrdiff_t)b * L + from) * D,
                       sizeof(float) * (size_t)(rows * D));
            half.r.x = x;
            half.r.L = rows;
            if (half.t.reads_front) {
                half.r.x = whole.x + (ptrdiff_t)from * D;
                half.r.front.n = from;
            }
            steps_forward(&half.t, &half.r);
            const float *const got = steps_matrix(&half.t, &half.r, half.t.result).at;
            for (int b = 0; b < B; b++)
                for (int e = 0; e < rows * n; e++) {
                    const float w = want[((ptrdiff_t)b * L + from) * n + e];
                    cr_expect_float_eq(got[(ptrdiff_t)b * rows * n + e], w,
                                       1e-5f * fmaxf(1, fabsf(w)), "%s, part %d: %g, not %g",
                                       lists[k].name, part,
                                       (double)got[(ptrdiff_t)b * rows * n + e], (double)w);
                }
            for (int i = 0; i < half.t.n_states; i++) {
                if (half.t.state[i].given)
                    continue;
                float *const old = half.r.before[i];
                half.r.before[i] = half.r.after[i];
                half.r.after[i] = old;
            }
            half.r.position += rows;
            from += rows;
        }
    }
}

/* Without a backward pass the same steps run in less room, and have the same bits: functions behind
 * maps are the same function of the same sums. */
TEST_EACH(int *b, steps, need_no_more_room_than_they_say, every_backend())
{
    for (size_t k = 0; k < ARRAY_LEN(lists); k++) {
        struct problem kept, live;
        open_problem(&kept, &lists[k], backends[*b]->name);
        open_problem(&live, &lists[k], backends[*b]->name);
        const size_t n = steps_floats(&live.t, (struct extent){B, L, 0}, false);
        const size_t result = sizeof(float) * (size_t)(ROWS * kept.t.value[kept.t.result].width);
        cr_expect_leq(n, steps_floats(&live.t, (struct extent){B, L, 0}, true), "%s",
                      lists[k].name);
        live.r.values = fenced(n);
        live.r.kept = false;
        scalar_of(&kept);
        scalar_of(&live);
        cr_expect_arr_eq(steps_matrix(&live.t, &live.r, live.t.result).at,
                         steps_matrix(&kept.t, &kept.r, kept.t.result).at, result, "%s, %s",
                         backends[*b]->name, lists[k].name);
        cr_expect(guards_intact(live.r.values, n), "%s", lists[k].name);
        for (int i = 0; i < live.t.n_states; i++) {
            const size_t state = sizeof(float) * (size_t)(B * live.t.state[i].n);
            if (live.t.state[i].given)
                continue;
            float *const want = room(1, state);
            memcpy(want, live.r.after[i], state);
            memset(live.r.after[i], 0xff, state);
            steps_remember(&live.t, &live.r);
            cr_expect_arr_eq(live.r.after[i], want, state, "%s, %s", lists[k].name,
                             live.t.state[i].name);
        }
    }
}

/* A chain has the room of two of its values; what only backward reads has none. */
static void build_chain(struct steps *t)
{
    int x = STEPS_INPUT;

    for (int i = 0; i < 6; i++) {
        const char name[] = {(char)('a' + i), '\0'};
        x = step_apply(t, step_affine(t, x, 5 + i, name), CURVE_SIGMOID, 1);
    }
    t->result = x;
}

Test(steps, room_goes_to_later_values)
{
    const struct config c = {.D = D};
    struct params p = {0};
    struct steps t;

    steps_make(&t, build_chain, &c, 0, false, "", &p);
    cr_expect_eq(t.n, 6);
    cr_expect_eq(steps_floats(&t, (struct extent){1, 1, 0}, true), 2 * (5 + 6 + 7 + 8 + 9 + 10));
    cr_expect_eq(steps_floats(&t, (struct extent){1, 1, 0}, false), 9 + 10);
    params_free(&p);
}

/* ---- element types --------------------------------------------------------------------------- */

enum { OPERANDS = 9 }; /* columns that are q, k or v; the others are decays */

/* Values from a column of the input on, and a decay of each of 3 channels. */
static struct recurrence decaying(struct steps *t, int heads, int width, int values)
{
    return (struct recurrence){.heads = heads,
                               .dk = width,
                               .dv = width,
                               .scale = 0.6f,
                               .q = NO_VALUE,
                               .k = NO_VALUE,
                               .v = steps_columns(t, STEPS_INPUT, values, 3),
                               .g = steps_columns(t, STEPS_INPUT, OPERANDS, 3),
                               .beta = NO_VALUE,
                               .a = NO_VALUE,
                               .b = NO_VALUE,
                               .i = NO_VALUE};
}

static void build_vectors(struct steps *t)
{
    struct recurrence r = decaying(t, 1, 3, 6);

    r.q = steps_columns(t, STEPS_INPUT, 0, 3);
    r.k = steps_columns(t, STEPS_INPUT, 3, 3);
    t->result = step_recur(t, r);
}

static void build_numbers(struct steps *t) { t->result = step_recur(t, decaying(t, 3, 1, 0)); }

/* In a model in bf16 a recurrence has the bits of rounded operands; where states are numbers, or a
 * model is trained, those of the operands as they are. */
TEST_EACH(int *b, steps, recurrences_round, every_backend())
{
    static const struct {
        steps_build *build;
        bool trains, rounds;
    } cases[] = {
        {build_vectors, false, true}, {build_vectors, true, false}, {build_numbers, false, false}};

    for (size_t k = 0; k < ARRAY_LEN(cases); k++) {
        const struct list list = {"", cases[k].build, NULL};
        struct problem got, want;
        open_in(&got, &list, backends[*b]->name, ELEM_BF16);
        open_problem(&want, &list, backends[*b]->name);
        got.g.rounds = cases[k].trains;
        for (int i = 0; i < ROWS * D; i++)
            got.x[i] = want.x[i] = i % D < OPERANDS ? 1 + 0.001f * (float)i : -0.001f * (float)i;
        for (int i = 0; cases[k].rounds && i < ROWS; i++)
            bf16_round(want.x + (ptrdiff_t)i * D, OPERANDS);
        scalar_of(&got);
        scalar_of(&want);
        cr_expect_arr_eq(steps_matrix(&got.t, &got.r, got.t.result).at,
                         steps_matrix(&want.t, &want.r, want.t.result).at,
                         sizeof(float) * (size_t)(ROWS * want.t.value[want.t.result].width),
                         "%s, case %zu", backends[*b]->name, k);
    }
}

/* ---- building -------------------------------------------------------------------------------- */

static void build_places(struct steps *t)
{
    const int a = steps_value(t, 5), first = steps_first(t, 7);
    const int part = steps_columns(t, a, 1, 3), inner = steps_columns(t, part, 1, 2);

    step_linear_to(t, a, STEPS_INPUT, "a");
    step_linear_to(t, first, STEPS_INPUT, "b");
    t->result = step_linear(t, inner, 4, "c");
    t->last = NULL;
}

Test(steps, values_lie_one_after_the_other)
{
    const struct config c = {.D = D};
    float x[3 * D], values[3 * 9], first[3 * 7];
    struct params p = {0};
    struct steps t;

    steps_make(&t, build_places, &c, 1, false, "layers.1.attn.", &p);
    const struct steps_run r = {
        .B = 1, .L = 3, .x = x, .values = values, .first = first, .kept = true};
    cr_expect_eq(steps_floats(&t, (struct extent){1, 3, 0}, true),
                 3 * 9); /* neither the input nor what layers share */
    const struct matrix inner = steps_matrix(&t, &r, 4);
    cr_expect(inner.at == values + 2 && inner.row == 5 && inner.n == 2);
    cr_expect_eq(steps_matrix(&t, &r, 2).at, first);
    cr_expect_eq(steps_matrix(&t, &r, t.result).at, values + 3 * 5);
    cr_expect_eq(matrix_row(&inner, 2), values + 12);
    cr_expect_eq(p.n, 3);
    cr_expect_str_eq(p.v[2].name, "layers.1.attn.c.weight");
    params_free(&p);
}
