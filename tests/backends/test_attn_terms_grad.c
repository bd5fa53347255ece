/* SPDX-License-Identifier: MIT
 *
 * Attention with all of its terms, backward: the reference against finite differences of its
 * forward for every operand, every implementation against the reference, and that pairs which
 * nobody sees are neither read nor written. */
#include "harness/check/op_cases.h"
#include "tests/support/every_backend.h"
#include "tests/support/finite.h"
#include "tests/support/kernel/attn_terms.h"

/* ---- operands and gradients ----------------------------------------------------------------- */

/* An operand, its gradient, and the bound of one pair's contribution to it. */
struct operand {
    const char *name;
    float *x, *d;
    size_t n;
    double one;
};
enum { OPERANDS = 16 };

struct problem {
    struct wide w;
    struct attn_grad d;
    float *d_o, *d_scores, *d_fade;
    struct operand operands[OPERANDS];
    int n;
};

static float *filled(size_t n, float value)
{
    float *x = guarded(n);

    for (size_t i = 0; i < n; i++)
        x[i] = value;
    return x;
}

/* Terms start at 0 and are added to; q, k and v at the guard's value and are written. */
static float *operand(struct problem *p, const char *name, float *x, size_t n, bool wanted,
                      bool added, double one)
{
    if (!wanted)
        return NULL;
    float *d = filled(n, added ? 0 : GUARD_VALUE);
    p->operands[p->n++] = (struct operand){name, x, d, n, one};
    quantise(x, n);
    return d;
}

/* A query's probabilities sum to 1, so its G sums to at most 2 |dO| |v| times the factors of mixing
 * and gain, plus what arrives; scale G multiplies keys or queries. */
static void list_operands(struct problem *p, const struct shape *s)
{
    struct operands *x = &p->w.x;
    const struct attn *a = &x->a;
    const int dh = a->dh, tables = a->rel_head ? a->H : 1, rows = a->R + a->Rf;
    const size_t uw = (size_t)(a->H * dh), rel = (size_t)(tables * rows * dh);
    const size_t bias = (size_t)((a->bias_head ? a->H : 1) * rows);
    const double d_o = widest(p->d_o, s->B, s->L, a->o_at, a->H * attn_dv(a));
    const double length = sqrt(max_int(dh, attn_dv(a))) * 6;
    const double dA = 2 * d_o * length * widest_mix(a->mix_probs, a->H);
    const double G = (dA + 4) * fmax(1, widest_mix(a->mix_logits, a->H));
    const double q = fabs((double)a->scale) * G * length;

    p->d.d_q = operand(p, "d_q", x->q, (size_t)(s->B * a->q_at.batch), a->q, false, q);
    p->d.d_k = operand(p, "d_k", x->k, (size_t)(s->B * a->k_at.batch), a->k, false, q);
    p->d.d_v = operand(p, "d_v", x->v, (size_t)(s->B * a->v_at.batch), true, false, d_o);
    p->d.d_u = operand(p, "d_u", x->u, uw, a->u, true, q);
    p->d.d_w = operand(p, "d_w", x->w, uw, a->w && a->rel_k, true, q);
    p->d.d_rel_k = operand(p, "d_rel_k", x->rel_k, rel, a->rel_k, true, q);
    p->d.d_rel_v = operand(p, "d_rel_v", x->rel_v, rel, a->rel_v, true, d_o);
    p->d.d_rel_q = operand(p, "d_rel_q", p->w.rel_q, rel, a->rel_q, true, q);
    p->d.d_bias = operand(p, "d_bias", x->bias, bias, a->bias, true, G);
    p->d.d_add = operand(p, "d_add", p->w.add, p->w.add_n, a->add.at, true, G);
    p->d_fade = operand(p, "d_fade", p->w.fade, p->w.fade_n, a->fade.at, true, G);
    p->d.d_fade = p->d_fade ? calloc(p->w.fade_n, sizeof(double)) : NULL;
    set_fade(&p->w); /* of what `operand` has rounded */
    p->d.d_mix_logits = operand(p, "d_mix_logits", p->w.mix_logits, p->w.mix_n, a->mix_logits, true,
                                G * widest_score(&p->w));
    p->d.d_mix_probs =
        operand(p, "d_mix_probs", p->w.mix_probs, p->w.mix_n, a->mix_probs, true, dA);
    p->d.d_sink_k = operand(p, "d_sink_k", p->w.sink_k, p->w.sink_n, a->sink_k, true, q);
    p->d.d_sink_v = operand(p, "d_sink_v", p->w.sink_v, p->w.sink_v_n, a->sink_v, true, d_o);
    p->d.d_sink_logit = operand(p, "d_sink_logit", x->sink_logit, (size_t)(a->H * SINK_LOGITS),
                                a->sink_logit, true, G);
}

static void make_problem(struct problem *p, const struct shape *s, const struct scheme *t,
                         const struct more *m)
{
    *p = (struct problem){.n = 0};
    make_wide(&p->w, s, t, m);
    struct attn *a = &p->w.x.a;
    a->lse = p->w.x.lse;
    p->d_o = normal(p->w.x.o_size, "d_o", 0, 1);
    quantise(p->d_o, p->w.x.o_size);
    p->d.d_o = p->d_o;
    p->d_scores = normal(p->w.scores_n, "d_scores", 0, 1);
    quantise(p->d_scores, p->w.scores_n);
    for (size_t x = 0; x < p->w.scores_n; x++) {
        const int j = (int)x % (s->L + s->M), row = (int)x / (s->L + s->M);
        if (!loop_sees(a, row / s->L % s->H, row % s->L, j))
            p->d_scores[x] = NAN; /* must not be read */
    }
    p->d.d_scores_out = a->scores_out ? p->d_scores : NULL;
    list_operands(p, s);
}

static void free_problem(struct problem *p)
{
    for (int n = 0; n < p->n; n++)
        release(p->operands[n].d);
    release(p->d_o), release(p->d_scores), free(p->d.d_fade);
    free_wide(&p->w);
}

/* Scratch of exactly the size asked for, full of NaN. */
static void backward(const struct engine *g, const struct problem *p)
{
    const struct attn *a = &p->w.x.a;
    const struct attn_impl *impl;

    MUST(engine_attn(g, a, &impl, &failure));
    const struct attn_need need = impl->need_backward(a, g->threads);
    const size_t size = need.scores_bytes + need.scratch_bytes;
    unsigned char *scratch = aligned_alloc(64, round_up(size + 64, 64));
    cr_assert_not_null(scratch);
    memset(scratch, 0xff, round_up(size + 64, 64));
    impl->backward(g, a, &p->d, scratch);
    for (int i = 0; i < 64; i++)
        cr_expect_eq(scratch[size + (size_t)i], 0xff, "scratch overrun");
    free(scratch);
    for (size_t x = 0; p->d_fade && x < p->w.fade_n; x++)
        p->d_fade[x] = (float)p->d.d_fade[x];
    for (int n = 0; n < p->n; n++)
        cr_expect(guards_intact(p->operands[n].d, p->operands[n].n), "%s", p->operands[n].name);
    cr_expect(guards_intact(p->w.scores_out, p->w.scores_n));
}

static void run(const struct engine *g, const struct problem *p)
{
    attend(g, &p->w.x.a);
    backward(g, p);
}

static const struct shape shapes[] = {
    {1, 1, 1, 1, 0, 1},   {2, 3, 3, 5, 0, 7},    {2, 4, 2, 6, 5, 3},
    {1, 6, 1, 9, 2, 5},   {1, 1, 1, 17, 31, 8},  {1, 2, 1, 70, 21, 9},
    {3, 2, 2, 33, 0, 17}, {1, 2, 1, 131, 21, 9}, {1, 2, 2, 140, 170, 40},
};
enum { SMALL = 5 }; /* shapes for finite differences come first */
static const struct scheme schemes[] = {
    {0, 0, 0, 0},
    {HAS_U | HAS_W | REL_K | PER_HEAD, ALL_KEYS, 0, 0},
    {REL_K | REL_V | BIAS, 3, 0, 0},
    {HAS_U | REL_V | BIAS | PER_HEAD | FULL, 4, 3, 6},
    {HAS_U | HAS_W | REL_K, 5, 0, 0},
    /* without further terms, too */
    {HAS_U | HAS_W | REL_K | PER_HEAD, 4, 0, 3},
    {REL_K | REL_V | FULL, 3, 2, 0},
    {REL_V, 1, 0, 0},
    {REL_K | REL_V | PER_HEAD, 200, 4, 0},
    {BIAS, 6, 0, 4},
    {BIAS | PER_HEAD | HAS_U | FULL, 9, 7, 0},
    {HAS_U | HAS_W | REL_K | REL_V | BIAS | FULL, ALL_KEYS, 11, 7},
    {REL_K | REL_V | BIAS, 200, 4, 0},
};
enum { WITH_EACH = 5, LONG_TABLES = ARRAY_LEN(schemes) - 1 };

struct where {
    int s, t, m; /* shape, scheme, more */
};

static void make(struct problem *p, const struct where *c)
{
    make_problem(p, &shapes[c->s], &schemes[c->t], &mores[c->m]);
}

/* The first WITH_EACH of them with all further terms. */
static int schemes_with(int m) { return m == PLAIN_MORE ? (int)ARRAY_LEN(schemes) : WITH_EACH; }

/* ---- finite differences ------------------------------------------------------------------- */

/* The number whose gradient is taken; `size` adds up magnitudes instead. */
static double number(const struct problem *p, bool size)
{
    const struct attn *a = &p->w.x.a;
    double sum = 0;

    for (int b = 0; b < a->B; b++)
        for (int i = 0; i < a->L; i++)
            for (int e = 0; e < a->H * attn_dv(a); e++) {
                const ptrdiff_t at = b * a->o_at.batch + i * a->o_at.row + e;
                const double x = (double)a->o[at] * (double)p->d_o[at];
                sum += size ? fabs(x) : x;
            }
    for (size_t x = 0; p->d.d_scores_out && x < p->w.scores_n; x++) {
        const double y = (double)p->w.scores_out[x] * (double)p->d_scores[x];
        if (!isnan(y))
            sum += size ? fabs(y) : y;
    }
    return sum;
}

static double value(void *ctx)
{
    struct problem *p = ctx;
    const struct engine g = open_engine("ref", 1);

    set_fade(&p->w);
    attend(&g, &p->w.x.a);
    return number(p, false);
}

/* Gaps between rows are not operands. */
static void clear_gaps(const struct operand *o)
{
    for (size_t i = 0; i < o->n; i++)
        if (o->d[i] == GUARD_VALUE)
            o->d[i] = 0;
}

/* Outputs are stored once, U relative; gradients too, and 64 U for earlier cancellation. An entry
 * that several sequences or rows add to in turn is rounded each time. */
static void differentiate(const struct where *c)
{
    const struct engine g = open_engine("ref", 1);
    struct problem p;

    make(&p, c);
    run(&g, &p);
    const struct scalar f = {value, &p, U * number(&p, true), 0};
    for (int n = 0; n < p.n; n++) {
        const char *const what =
            kept_text("%s of shape %d, scheme %d, more %d", p.operands[n].name, c->s, c->t, c->m);
        clear_gaps(&p.operands[n]);
        expect_gradient(&f, what, p.operands[n].x, p.operands[n].d, p.operands[n].n, 64 * U,
                        2 * f.noise / FINITE_STEP);
    }
    free_problem(&p);
}

static struct criterion_test_params every_more(void) { return every_number(MORES); }

TEST_EACH(int *m, attn_terms_grad, ref_is_the_derivative, every_more(), .timeout = 240)
{
    for (int s = 0; s < SMALL; s++)
        for (int t = 0; t < schemes_with(*m); t++)
            differentiate(&(struct where){s, t, *m});
}

/* ---- every implementation and the reference ----------------------------------------------- */

/* As for a case: 4e-5 of the largest, for two numbers good to 2e-5 each; where contributions cancel
 * the error is their rounding, 16 U of the largest. */
static double near(const float *got, const float *want, size_t n, double one)
{
    double worst = 0, largest = 0;

    for (size_t i = 0; i < n; i++)
        if (want[i] != GUARD_VALUE)
            largest = fmax(largest, fabs((double)want[i]));
    for (size_t i = 0; i < n; i++)
        worst =
            fmax(worst, in_bounds((double)got[i], (double)want[i], 4e-5 * largest + 16 * U * one));
    return worst;
}

static void compare(const struct engine *g, const struct where *c, const struct problem *got,
                    const struct problem *want)
{
    for (int n = 0; n < want->n; n++) {
        const struct operand *o = &want->operands[n];
        const double worst = near(got->operands[n].d, o->d, o->n, o->one);
        cr_expect(worst <= 1, "%s/%s, shape %d, scheme %d, more %d: %s %.2g x its bound",
                  g->backend->name, g->impl, c->s, c->t, c->m, o->name, worst);
    }
}

/* The number of threads changes nothing; if a library sums in another order, two results are as
 * close to each other as to the reference. */
static void expect_same(const struct engine *g, const struct where *c, const struct problem *x)
{
    struct engine three = open_engine(g->backend->name, 3);
    struct problem y;

    three.impl = g->impl;
    make(&y, c);
    run(&three, &y);
    for (int n = 0; n < x->n; n++) {
        const struct operand *o = &x->operands[n];
        const float *other = y.operands[n].d;
        cr_expect(library_adds(g, -1) ? near(other, o->d, o->n, o->one) <= 1
                                      : memcmp(other, o->d, o->n * sizeof(float)) == 0,
                  "%s/%s: threads change %s", g->backend->name, g->impl, o->name);
    }
    free_problem(&y);
}

static void compare_all(const struct backend *b, const struct where *c, const struct problem *want)
{
    struct engine g = open_engine(b->name, 1);
    struct problem got;

    for (int i = 0; g.attn[i]; i++) {
        const char *why;
        g.impl = g.attn[i]->name;
        if (!g.attn[i]->backward || !g.attn[i]->accepts(&want->w.x.a, &why))
            continue;
        open_engine(b->name, 1); /* expect_same told the library another number of threads */
        make(&got, c);
        run(&g, &got);
        compare(&g, c, &got, want);
        expect_same(&g, c, &got);
        free_problem(&got);
    }
}

TEST_EACH(int *m, attn_terms_grad, implementations_match_ref, every_more(), .timeout = 120)
{
    struct engine ref = open_engine("ref", 1);

    ref.impl = "ref";
    for (int s = 0; s < (int)ARRAY_LEN(shapes); s++)
        for (int t = 0; t < schemes_with(*m); t++) {
            const struct where c = {s, t, *m};
            struct problem want;
            if (*m != PLAIN_MORE && !in_turn(&shapes[s], t, *m))
                continue;
            make(&want, &c);
            run(&ref, &want);
            if (ref_shares(s, t, *m))
                expect_same(&ref, &c, &want);
            for (int i = 0; backends[i]; i++)
                if (backends[i] != &backend_ref && backend_usable(backends[i], NULL) == OK)
                    compare_all(backends[i], &c, &want);
            free_problem(&want);
        }
}

/* ---- long sums ---------------------------------------------------------------------------- */

/* From sums over the keys to the terms that they are made of: d log f_t = sum of d_fade from t on.
 * G sums to 0 along a row, so all pairs cancel but those on either side of t. Each of those is off
 * by 16 U of its bound, and a gate of a half leaves some 2^4 on each side; what is off must not add
 * up over the 2^11 rows, of whose bounds 2^8 are allowed. */
TEST_EACH(int *b, attn_terms_grad, sums_of_what_fades_do_not_drift, every_backend(), .timeout = 240)
{
    enum { ROWS = 1 << 11, PAIRS = 1 << 8 };
    const struct shape s = {1, 1, 1, ROWS, 0, 8};
    SKIP_SANITIZED("its numbers are those of the other build");
    const struct engine g = open_engine(backends[*b]->name, 1), ref = open_engine("ref", 1);
    struct problem got, want;

    for (int i = 0; i < 2; i++) {
        struct problem *const p = i ? &want : &got;
        make_problem(p, &s, &schemes[0], &(struct more){T_FADE, 0});
        for (int j = 0; j < ROWS; j++)
            p->w.fade_sums[j] = -log(2) * j;
        run(i ? &ref : &g, p);
    }
    double off = 0, worst = 0;
    for (int t = ROWS - 1; t >= 0; t--) {
        off += got.d.d_fade[t] - want.d.d_fade[t];
        worst = fmax(worst, fabs(off));
    }
    double one = 0;
    for (int n = 0; n < want.n; n++)
        one = strcmp(want.operands[n].name, "d_fade") == 0 ? want.operands[n].one : one;
    cr_expect_leq(worst, 16 * U * one * PAIRS, "%s: %.3g", g.backend->name, worst);
    free_problem(&got), free_problem(&want);
}

/* ---- what may not be touched, and what is added to ---------------------------------------- */

/* Only forward passes scores on. */
TEST_EACH(int *b, attn_terms_grad, backward_hands_out_no_scores, every_backend())
{
    const struct engine g = open_engine(backends[*b]->name, 1);
    struct problem p;

    make(&p, &(struct where){2, 0, SCORES_MORE});
    attend(&g, &p.w.x.a);
    for (size_t x = 0; x < p.w.scores_n; x++)
        p.w.scores_out[x] = -3;
    backward(&g, &p);
    for (size_t x = 0; x < p.w.scores_n; x++)
        cr_expect_eq(p.w.scores_out[x], -3);
    free_problem(&p);
}

/* Keys and values that no query sees are no numbers, and no gradient notices. */
TEST_EACH(int *b, attn_terms_grad, unseen_keys_do_not_matter, every_backend(), .timeout = 120)
{
    const struct engine g = open_engine(backends[*b]->name, 1);

    for (int s = 0; s < (int)ARRAY_LEN(shapes); s++)
        for (int m = 0; m < MORES; m++) {
            const struct where c = {s, m % WITH_EACH, m};
            if (!sampled((size_t)(s + m), 3))
                continue;
            struct problem clean, poisoned;
            make(&clean, &c), make(&poisoned, &c);
            poison_unseen(&poisoned.w);
            run(&g, &clean), run(&g, &poisoned);
            compare(&g, &c, &poisoned, &clean);
            free_problem(&clean), free_problem(&poisoned);
        }
}

/* Hidden pairs keep their contents; visible ones are added to. */
TEST_EACH(int *b, attn_terms_grad, hidden_pairs_keep_what_they_held, every_backend())
{
    const struct engine g = open_engine(backends[*b]->name, 1);
    struct problem p, once;

    make(&p, &(struct where){2, 0, SCORES_MORE}), make(&once, &(struct where){2, 0, SCORES_MORE});
    const struct attn *a = &p.w.x.a;
    for (size_t x = 0; x < p.w.add_n; x++)
        p.d.d_add[x] = 1000;
    run(&g, &p), run(&g, &once);
    for (int row = 0; row < a->B * a->H * a->L; row++)
        for (int j = 0; j < attn_keys(a); j++) {
            const int h = row / a->L % a->H, i = row % a->L;
            const ptrdiff_t at = attn_dense_at(&a->add, row / a->L / a->H, h, i) + j;
            if (loop_sees(a, h, i, j))
                cr_expect_float_eq(p.d.d_add[at], 1000 + once.d.d_add[at], 1e-4);
            else
                cr_expect_eq(p.d.d_add[at], 1000);
        }
    free_problem(&p), free_problem(&once);
}

/* The gradient that arrives at the scores may be overwritten by the one of what was added to them.
 */
static void share(const struct engine *g, int more)
{
    const struct where c = {2, 0, more};
    struct problem two, one;

    make(&two, &c), make(&one, &c);
    const ptrdiff_t row = two.w.x.a.M + two.w.x.a.L, head = two.w.x.a.L * row;
    const struct dense dense = {two.w.add, two.w.x.a.H * head, head, row};
    float *own = one.d.d_add;
    two.w.x.a.add = one.w.x.a.add = dense;
    one.d.d_add = one.d_scores;
    run(g, &two), run(g, &one);
    for (size_t x = 0; x < one.w.scores_n; x++)
        cr_expect(isnan(one.d_scores[x]) || one.d_scores[x] == two.d.d_add[x], "%zu: %g, not %g", x,
                  (double)one.d_scores[x], (double)two.d.d_add[x]);
    one.d.d_add = own;
    free_problem(&two), free_problem(&one);
}
TEST_EACH(int *b, attn_terms_grad, scores_and_added_may_share, every_backend())
{
    const struct engine g = open_engine(backends[*b]->name, 1);

    share(&g, SCORES_MORE);
    share(&g, MIXED_MORE);
}

/* Distances of 0 to M + L - 1 exist: rows of others keep their bits. */
static void expect_unread_rows(const struct problem *p)
{
    const struct attn *a = &p->w.x.a;

    for (int r = 0; r < a->R + a->Rf; r++) {
        const bool read = r < a->R && r >= a->R - attn_keys(a);
        cr_expect_eq(p->d.d_bias[r] != 0, read, "bias %d", r);
        for (int at = r * a->dh; at < (r + 1) * a->dh; at++)
            cr_expect((p->d.d_rel_k[at] != 0) == read && (p->d.d_rel_v[at] != 0) == read, "%d", r);
    }
}

/* A second backward pass doubles every term exactly. */
static void expect_doubled(const struct engine *g, const struct where *c)
{
    struct problem once, twice;

    make(&once, c), make(&twice, c);
    run(g, &once), run(g, &twice), run(g, &twice);
    for (int n = 0; n < once.n; n++) {
        const struct operand *o = &once.operands[n], *t = &twice.operands[n];
        const bool term = n > 2; /* q, k, v come first */
        double largest = 0;
        for (size_t x = 0; x < o->n; x++) {
            cr_expect_eq(t->d[x], (term ? 2 : 1) * o->d[x], "%s", o->name);
            largest = fmax(largest, fabs((double)o->d[x]));
        }
        cr_expect_gt(largest, 0, "%s", o->name);
    }
    if (c->t == LONG_TABLES)
        expect_unread_rows(&once);
    free_problem(&once), free_problem(&twice);
}

TEST_EACH(int *b, attn_terms_grad, terms_are_added, every_backend())
{
    const struct engine g = open_engine(backends[*b]->name, 2);

    expect_doubled(&g, &(struct where){2, 3, MANY_MORE});
    expect_doubled(&g, &(struct where){2, LONG_TABLES, PLAIN_MORE});
}
