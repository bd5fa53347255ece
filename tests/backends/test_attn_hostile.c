/* SPDX-License-Identifier: MIT
 *
 * Attention over extreme values, where the answer is known without a reference: scores of 1e4, all
 * scores equal, denormal operands, and a NaN key, which must reach every query that sees it and no
 * other. */
#include "tests/support/each.h"
#include "tests/support/kernel/attn_case.h"

struct who {
    int backend, threads;
};
static struct criterion_test_params everybody(void)
{
    static struct who list[32];
    size_t n = 0;

    for (int i = 0; backends[i] && n + 1 < ARRAY_LEN(list); i++)
        for (int threads = 1; threads <= 2 && backends[i]->adds == ELEM_F32; threads++)
            list[n++] = (struct who){i, threads};
    return cr_make_param_array(struct who, list, n);
}

static const struct shape shapes[] = {
    {1, 1, 1, 1, 0, 8},  {2, 2, 1, 1, 70, 40},   {1, 2, 2, 7, 19, 5},
    {1, 4, 2, 9, 0, 64}, {2, 2, 2, 37, 130, 20}, {1, 2, 1, 130, 19, 33},
};
static const struct scheme schemes[] = {
    {LSE, 0, 0, 0},
    {LSE, 0, 0, 5},
    {FULL | LSE, 0, 0, 0},
    {HAS_U | HAS_W | REL_K | PER_HEAD | LSE, ALL_KEYS, 0, 0},
    {REL_K | REL_V | LSE, 5, 0, 0},
    {REL_K | REL_V | FULL | LSE, 4, 3, 0},
    {BIAS | PER_HEAD | LSE, ALL_KEYS, 0, 7},
};
enum { PLAIN = 3 }; /* schemes without optional terms come first */

static bool sees(const struct attn *a, int i, int j)
{
    const int dist = a->M + i - j;

    return (!a->causal || dist >= 0) && (a->window == 0 || dist < a->window);
}

static float *key(const struct operands *x, int b, int j, int kv)
{
    return x->k + b * x->a.k_at.batch + j * x->a.k_at.row + kv * x->a.dh;
}

static void fill_rows(float *x, struct stride at, int B, int rows, int n, float value)
{
    for (int b = 0; b < B; b++)
        for (int r = 0; r < rows; r++)
            for (int e = 0; e < n; e++)
                x[b * at.batch + r * at.row + e] = value;
}

/* Element e of the mean of v over the keys of query i that `winner` leaves: the winner alone where
 * it is seen, all that are seen otherwise (-1: always all). */
static double mean_value(const struct attn *a, int b, int h, int i, int e, int winner)
{
    const int kv = h / (a->H / a->Hkv);
    double sum = 0, n = 0;

    for (int j = 0; j < attn_keys(a); j++)
        if (sees(a, i, j) && (winner < 0 || !sees(a, i, winner) || j == winner)) {
            sum += (double)a->v[b * a->v_at.batch + j * a->v_at.row + kv * a->dh + e];
            n++;
        }
    return sum / n;
}

/* All weights that matter are equal: n additions, one division, and p itself off by a few U.
 * Flushing denormals costs `smallest` in addition. */
static void expect_means(const struct engine *g, const struct operands *x, int winner,
                         double smallest)
{
    const struct attn *a = &x->a;
    const double v = widest(a->v, a->B, attn_keys(a), a->v_at, a->Hkv * a->dh);
    const double bound = U * (attn_keys(a) + 16) * v + smallest;

    for (int b = 0; b < a->B; b++)
        for (int h = 0; h < a->H; h++)
            for (int i = 0; i < a->L; i++)
                for (int e = 0; e < a->dh; e++) {
                    const float *o = a->o + b * a->o_at.batch + i * a->o_at.row + h * a->dh;
                    const double want = mean_value(a, b, h, i, e, winner);
                    cr_assert(in_bounds((double)o[e], want, bound) < 1.0,
                              "%s, L %d M %d dh %d, winner %d: query %d is %g, not %g",
                              g->backend->name, a->L, a->M, a->dh, winner, i, (double)o[e], want);
                }
}

/* Queries and keys along one axis: 100 times 100, and a scale of 1. */
static void check_huge(const struct engine *g, const struct shape *s, const struct scheme *t,
                       int winner)
{
    const int K = s->M + s->L;
    struct operands x;

    make_operands(&x, s, t);
    fill_rows(x.q, x.a.q_at, s->B, s->L, s->H * s->dh, 0);
    fill_rows(x.k, x.a.k_at, s->B, K, s->Hkv * s->dh, 0);
    for (int b = 0; b < s->B; b++) {
        for (int i = 0; i < s->L * s->H; i++)
            x.q[b * x.a.q_at.batch + i / s->H * x.a.q_at.row + i % s->H * s->dh] = 100;
        for (int j = 0; j < K * s->Hkv; j++)
            *key(&x, b, j / s->Hkv, j % s->Hkv) = j / s->Hkv == winner ? 100 : -100;
    }
    x.a.scale = 1;
    attend(g, &x.a);
    expect_means(g, &x, winner, 0);
    for (size_t row = 0; row < x.lse_size; row++) { /* log of a count, added to 1e4 */
        const bool seen = sees(&x.a, (int)(row % (size_t)s->L), winner);
        cr_assert_float_eq(x.lse[row], seen ? 1e4f : -1e4f, logf((float)K) + 0.01f);
    }
    free_operands(&x);
}

TEST_EACH(struct who *w, attn_hostile, huge_scores, everybody(), .timeout = 240)
{
    const struct engine g = open_engine(backends[w->backend]->name, w->threads);

    for (size_t s = 0; s < ARRAY_LEN(shapes); s++)
        for (int t = 0; t < PLAIN; t++) {
            const int K = shapes[s].M + shapes[s].L;
            check_huge(&g, &shapes[s], &schemes[t], 0);
            check_huge(&g, &shapes[s], &schemes[t], K / 2);
            check_huge(&g, &shapes[s], &schemes[t], K - 1);
        }
}

TEST_EACH(struct who *w, attn_hostile, equal_and_denormal_scores, everybody(), .timeout = 240)
{
    static const float values[] = {0, 1e-40f, 1e-30f, 1};
    const struct engine g = open_engine(backends[w->backend]->name, w->threads);

    for (size_t s = 0; s < ARRAY_LEN(shapes); s++)
        for (int t = 0; t < PLAIN; t++)
            for (size_t v = 0; v < ARRAY_LEN(values); v++) {
                const struct shape *p = &shapes[s];
                struct operands x;
                make_operands(&x, p, &schemes[t]);
                fill_rows(x.q, x.a.q_at, p->B, p->L, p->H * p->dh, values[v]);
                fill_rows(x.k, x.a.k_at, p->B, p->M + p->L, p->Hkv * p->dh, values[v]);
                attend(&g, &x.a);
                expect_means(&g, &x, -1, 0);
                /* Denormal values: each product may be flushed, so each key may cost one. */
                fill_rows(x.v, x.a.v_at, p->B, p->M + p->L, p->Hkv * p->dh, 1e-40f);
                attend(&g, &x.a);
                expect_means(&g, &x, -1, SMALLEST * (p->M + p->L));
                free_operands(&x);
            }
}

/* ---- NaN ---------------------------------------------------------------------------------- */

/* Row (b, h, i) is unchanged by the NaN, or all NaN. */
static void expect_row(const struct engine *g, const struct operands *got,
                       const struct operands *clean, int b, int h, int i, bool nan)
{
    const struct attn *a = &got->a;
    const ptrdiff_t at = b * a->o_at.batch + i * a->o_at.row + h * a->dh;
    const size_t lse = (size_t)((b * a->H + h) * a->L + i);

    for (int e = 0; e < a->dh; e++) {
        const float x = got->o[at + e], y = clean->o[at + e];
        cr_assert(nan ? isnan(x) : x == y, "%s: L %d M %d dh %d R %d: query %d of head %d is %g",
                  g->backend->name, a->L, a->M, a->dh, a->R, i, h, (double)x);
    }
    cr_assert(nan ? isnan(got->lse[lse]) : got->lse[lse] == clean->lse[lse],
              "%s: log-sum-exp of query %d of head %d is %g", g->backend->name, i, h,
              (double)got->lse[lse]);
}

/* One element of one key of sequence 0 and the last key head is NaN. */
static void check_nan(const struct engine *g, const struct shape *s, const struct scheme *t, int j)
{
    struct operands clean, x;
    const int shared = s->H / s->Hkv;

    make_operands(&clean, s, t);
    make_operands(&x, s, t);
    key(&x, 0, j, s->Hkv - 1)[s->dh / 2] = NAN;
    attend(g, &clean.a);
    attend(g, &x.a);
    for (int b = 0; b < s->B; b++)
        for (int h = 0; h < s->H; h++)
            for (int i = 0; i < s->L; i++)
                expect_row(g, &x, &clean, b, h, i,
                           b == 0 && h / shared == s->Hkv - 1 && sees(&x.a, i, j));
    free_operands(&clean), free_operands(&x);
}

TEST_EACH(struct who *w, attn_hostile, nan_key_reaches_those_who_see_it, everybody(),
          .timeout = 240)
{
    const struct engine g = open_engine(backends[w->backend]->name, w->threads);

    for (size_t s = 0; s < ARRAY_LEN(shapes); s++)
        for (size_t t = 0; t < ARRAY_LEN(schemes); t++) {
            const int K = shapes[s].M + shapes[s].L;
            check_nan(&g, &shapes[s], &schemes[t], 0);
            check_nan(&g, &shapes[s], &schemes[t], K / 2);
            check_nan(&g, &shapes[s], &schemes[t], K - 1);
        }
}
