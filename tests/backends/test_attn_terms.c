/* SPDX-License-Identifier: MIT
 *
 * Attention with all of its terms, forward: the reference against a plain loop, every
 * implementation that accepts a case against the reference, hidden pairs without influence. Neutral
 * forms of each term: library/test_members.c. */
#include "tests/support/every_backend.h"
#include "tests/support/kernel/attn_terms.h"

static const struct shape shapes[] = {
    {1, 1, 1, 1, 0, 1},   {2, 3, 3, 5, 0, 7},     {1, 2, 2, 1, 9, 4},      {2, 4, 2, 6, 5, 3},
    {1, 6, 1, 9, 2, 16},  {1, 2, 1, 131, 21, 9},  {2, 2, 2, 37, 40, 8},    {1, 4, 4, 33, 0, 20},
    {2, 8, 4, 3, 300, 8}, {1, 8, 8, 20, 290, 24}, {1, 2, 1, 150, 330, 40}, {1, 2, 1, 2, 400, 8},
    {2, 4, 1, 9, 19, 64}, {1, 4, 2, 37, 64, 96},
};
static const struct scheme schemes[] = {
    {LSE, 0, 0, 0},
    {HAS_U | HAS_W | REL_K | PER_HEAD | LSE, ALL_KEYS, 0, 0},
    {REL_K | REL_V | LSE, 3, 0, 0},
    {REL_K | REL_V | BIAS | PER_HEAD | FULL | LSE, 4, 3, 6},
    {HAS_U | BIAS | FULL, ALL_KEYS, 9, 0},
    {HAS_U | HAS_W | REL_K | LSE, 5, 0, 0},
    /* without further terms, too */
    {BIAS | PER_HEAD | LSE, ALL_KEYS, 0, 0},
    {REL_K | REL_V | PER_HEAD | LSE, 9, 8, 5},
    {REL_K | REL_V | BIAS | FULL, 33, 200, 50},
    {HAS_U | HAS_W | REL_K | REL_V | BIAS | PER_HEAD | LSE, 2, 1, 0},
    {HAS_W | REL_K | LSE, 1, 0, 1},
    {REL_V, 1, 200, 0},
    {BIAS | FULL | PER_HEAD | LSE, 9, 200, 0},
};
enum { WITH_EACH = 6 }; /* schemes that all further terms have a turn with */

struct where {
    int s, t, m; /* shape, scheme, more */
};

/* The bias may be shared though tables are not, and the scale need not be 1/sqrt(dh). */
static void make(struct wide *w, const struct where *c)
{
    static const float scales[] = {1, 1, 2, -1};

    make_wide(w, &shapes[c->s], &schemes[c->t], &mores[c->m]);
    w->x.a.scale *= scales[(c->s + c->t + c->m) % (int)ARRAY_LEN(scales)];
    if ((c->s + c->m) % 2)
        w->x.a.bias_head = 0;
}

/* Every case of a `more`. */
static void each_case(int m, void (*test)(const struct where *))
{
    for (int s = 0; s < (int)ARRAY_LEN(shapes); s++)
        for (int t = 0; t < (m == PLAIN_MORE ? (int)ARRAY_LEN(schemes) : WITH_EACH); t++)
            if (m == PLAIN_MORE || in_turn(&shapes[s], t, m))
                test(&(struct where){s, t, m});
}

/* ---- the reference and the equation ------------------------------------------------------- */

/* Both work in double from the same floats: the difference is the rounding to float, and a few
 * thousand roundings to double. What is no number in `want`, as hidden pairs, is not written. */
static double error_of(const float *got, const double *want, size_t n)
{
    double worst = 0;

    for (size_t x = 0; x < n; x++)
        if (isnan(want[x]))
            cr_expect_eq(got[x], GUARD_VALUE, "%zu was written", x);
        else
            worst = fmax(worst, in_bounds((double)got[x], want[x], U * fabs(want[x]) + 1e-11));
    return worst;
}

static double *nothing(size_t n)
{
    double *const x = calloc(n, sizeof(*x));

    for (size_t i = 0; i < n; i++)
        x[i] = NAN;
    return x;
}

static void check_loop(const struct where *c)
{
    const struct engine ref = open_engine("ref", 1);
    struct ba_mask masks[3];
    struct wide w;

    make(&w, c);
    const struct attn *a = &w.x.a;
    const struct ba_attention same = same_call(a, masks);
    double *const o = nothing(w.x.o_size), *const lse = nothing(w.x.lse_size);
    double *const scores = nothing(w.scores_n);
    attend(&ref, a);
    judge_attention(&same, o, lse, scores);
    double worst = error_of(w.x.o, o, w.x.o_size);
    if (a->lse)
        worst = fmax(worst, error_of(w.x.lse, lse, w.x.lse_size));
    if (a->scores_out)
        worst = fmax(worst, error_of(w.scores_out, scores, w.scores_n));
    cr_expect(worst <= 1.0, "shape %d, scheme %d, more %d: %.3g x its bound", c->s, c->t, c->m,
              worst);
    cr_expect(guards_intact(w.x.o, w.x.o_size) && guards_intact(w.x.lse, w.x.lse_size) &&
              guards_intact(w.scores_out, w.scores_n));
    free(o), free(lse), free(scores);
    free_wide(&w);
}

TEST_EACH(int *m, attn_terms, ref_is_the_equation, every_number(MORES), .timeout = 240)
{
    each_case(*m, check_loop);
}

/* ---- every implementation and the reference ----------------------------------------------- */

static double worst_of(const float *got, const float *want, size_t n, double bound)
{
    double worst = 0;

    for (size_t i = 0; i < n; i++)
        worst = fmax(worst, in_bounds((double)got[i], (double)want[i], bound));
    return worst;
}

static void compare(const struct where *c, const struct engine *g, const struct wide *want,
                    const struct wide_bound *bound)
{
    struct wide got = of_same_operands(want);
    double error = 0, power = 1e-30;

    attend(g, &got.x.a);
    const double out = worst_of(got.x.o, want->x.o, got.x.o_size, bound->out);
    const double lse = worst_of(got.x.lse, want->x.lse, got.x.lse_size, bound->lse);
    const double scores = worst_of(got.scores_out, want->scores_out, got.scores_n, bound->scores);
    for (size_t i = 0; i < got.x.o_size; i++)
        if (want->x.o[i] != GUARD_VALUE) {
            error += pow((double)got.x.o[i] - (double)want->x.o[i], 2);
            power += pow((double)want->x.o[i], 2);
        }
    cr_expect(out < 1 && lse < 1 && scores < 1 && error < 1e-10 * power,
              "%s/%s, %d threads, shape %d, scheme %d, more %d: out %.2g, lse %.2g, scores %.2g x "
              "their bounds, normalised mean-square error %.2g",
              g->backend->name, g->impl, g->threads, c->s, c->t, c->m, out, lse, scores,
              error / power);
    cr_expect(guards_intact(got.x.o, got.x.o_size) && guards_intact(got.x.lse, got.x.lse_size) &&
              guards_intact(got.scores_out, got.scores_n));
    free_results(&got);
}

/* Returns how many implementations of the backend accepted. */
static int compare_all(const struct where *c, const struct backend *b, const struct wide *want,
                       const struct wide_bound *bound)
{
    int accepted = 0;

    for (int threads = 1; threads <= 3; threads += 2) {
        struct engine g = open_engine(b->name, threads);
        for (int i = 0; g.attn[i]; i++) {
            const char *why = NULL;
            g.impl = g.attn[i]->name;
            if (g.attn[i]->accepts(&want->x.a, &why)) {
                compare(c, &g, want, bound);
                accepted++;
            } else {
                cr_expect(why && *why, "%s/%s refuses without a reason", b->name, g.impl);
            }
        }
    }
    return accepted;
}

static void compare_backends(const struct where *c)
{
    const struct engine one = open_engine("ref", 1), three = open_engine("ref", 3);
    struct wide x;

    make(&x, c);
    attend(&one, &x.x.a);
    if (ref_shares(c->s, c->t, c->m)) {
        struct wide y = of_same_operands(&x);
        attend(&three, &y.x.a);
        cr_expect_arr_eq(x.x.o, y.x.o, x.x.o_size * sizeof(float), "threads change ref");
        cr_expect_arr_eq(x.x.lse, y.x.lse, x.x.lse_size * sizeof(float), "threads change ref");
        free_results(&y);
    }
    const struct wide_bound bound = wide_bound(&x);
    for (int i = 0; backends[i]; i++)
        if (backends[i] != &backend_ref && backend_usable(backends[i], NULL) == OK)
            cr_expect_geq(compare_all(c, backends[i], &x, &bound), 2,
                          "%s cannot run scheme %d, more %d", backends[i]->name, c->t, c->m);
    free_wide(&x);
}

TEST_EACH(int *m, attn_terms, implementations_match_ref, every_number(MORES), .timeout = 120)
{
    each_case(*m, compare_backends);
}

/* With few items for each thread the fused kernels' blocks of queries are lower. Not a bit changes,
 * also with windows of more than a block of keys, whose first keys differ from item to item. */
TEST_EACH(int *m, attn_terms, lower_blocks_change_no_bit, every_number(MORES), .timeout = 120)
{
    static const struct shape shape = {1, 2, 2, 131, 203, 24};
    static const struct scheme own[] = {{LSE, 0, 0, 230},
                                        {HAS_U | HAS_W | REL_K | BIAS | LSE, ALL_KEYS, 0, 0},
                                        {REL_K | LSE, 5, 0, 210}};
    enum { FEWEST = 5, MOST = 12 }; /* blocks of 32 queries, and of 16 */

    for (int level = 1; level <= (int)cpu_isa_unmasked(); level++)
        for (size_t t = 0; t < ARRAY_LEN(own); t++)
            for (int threads = FEWEST; threads <= MOST && sampled(t + (size_t)*m, ARRAY_LEN(own));
                 threads += MOST - FEWEST) {
                const struct engine one = open_engine(isa_name[level], 1),
                                    many = open_engine(isa_name[level], threads);
                struct wide x, y;
                make_wide(&x, &shape, &own[t], &mores[*m]);
                make_wide(&y, &shape, &own[t], &mores[*m]);
                attend(&one, &x.x.a), attend(&many, &y.x.a);
                cr_expect_arr_eq(x.x.o, y.x.o, x.x.o_size * sizeof(float),
                                 "%s: %d threads change scheme %zu, more %d", isa_name[level],
                                 threads, t, *m);
                cr_expect_arr_eq(x.x.lse, y.x.lse, x.x.lse_size * sizeof(float));
                free_wide(&x), free_wide(&y);
            }
}

/* ---- what is hidden ----------------------------------------------------------------------- */

/* No numbers in keys and values where no query looks, and in what is added to pairs that no head
 * sees. */
static void poison(struct wide *w)
{
    struct attn *a = &w->x.a;

    poison_unseen(w);
    for (int x = 0; a->add.at && x < a->B * a->H * a->L; x++) {
        const int b = x / a->L / a->H, i = x % a->L;
        float *row = w->add + attn_dense_at(&a->add, b, x / a->L % a->H, i);
        for (int j = 0; a->add.row && j < attn_keys(a); j++) {
            bool seen = false;
            for (int h = 0; h < a->H; h++)
                seen = seen || loop_sees(a, h, i, j);
            if (!seen)
                row[j] = NAN;
        }
    }
}

static void expect_no_influence(const struct engine *g, const struct where *c)
{
    struct wide clean, poisoned;

    make(&clean, c), make(&poisoned, c);
    poison(&poisoned);
    attend(g, &clean.x.a), attend(g, &poisoned.x.a);
    const struct attn_impl *impl;
    cr_assert_eq(engine_attn(g, &clean.x.a, &impl, NULL), OK);
    /* Products of composed attention are then cut elsewhere. */
    const double bound = strcmp(impl->name, "composed") == 0 ? wide_bound(&clean).out : 0;
    for (size_t x = 0; x < clean.x.o_size; x++)
        cr_expect(fabs((double)clean.x.o[x] - (double)poisoned.x.o[x]) <= bound,
                  "%s: shape %d, scheme %d, more %d: hidden pairs matter: %g, not %g",
                  g->backend->name, c->s, c->t, c->m, (double)poisoned.x.o[x],
                  (double)clean.x.o[x]);
    cr_expect_arr_eq(clean.scores_out, poisoned.scores_out, clean.scores_n * sizeof(float));
    free_wide(&clean), free_wide(&poisoned);
}

TEST_EACH(int *b, attn_terms, hidden_pairs_do_not_matter, every_backend(), .timeout = 240)
{
    const struct engine g = open_engine(backends[*b]->name, 1);

    for (int s = 0; s < (int)ARRAY_LEN(shapes); s++)
        for (int m = 0; m < MORES; m++)
            if (sampled((size_t)(s + m), 3))
                expect_no_influence(&g, &(struct where){s, m % (int)ARRAY_LEN(schemes), m});
}

/* ---- in place ----------------------------------------------------------------------------- */

/* Passing the scores on in place of what is added: one matrix for a stack of layers. */
Test(attn_terms, scores_may_replace_what_is_added)
{
    const struct shape s = {2, 2, 2, 37, 20, 8};
    const struct more m = {T_SCORES_OUT, 0};

    for (int i = 0; backends[i]; i++) {
        struct wide two, one;
        if (backend_usable(backends[i], NULL) != OK)
            continue;
        const struct engine g = open_engine(backends[i]->name, 1);
        make_wide(&two, &s, &schemes[0], &m), make_wide(&one, &s, &schemes[0], &m);
        const ptrdiff_t row = s.L + s.M, head = s.L * row;
        for (size_t x = 0; x < one.scores_n; x++)
            one.scores_out[x] = two.add[x % two.add_n];
        float *before = normal(one.scores_n, "before", 0, 1);
        memcpy(before, one.scores_out, one.scores_n * sizeof(float));
        two.x.a.add = (struct dense){before, s.H * head, head, row};
        one.x.a.add = (struct dense){one.scores_out, s.H * head, head, row};
        attend(&g, &two.x.a), attend(&g, &one.x.a);
        cr_expect_arr_eq(one.x.o, two.x.o, one.x.o_size * sizeof(float), "%s", backends[i]->name);
        release(before);
        free_wide(&two), free_wide(&one);
    }
}
