/* SPDX-License-Identifier: MIT
 *
 * Attention. The reference against the papers' own formulas; every implementation of every usable
 * backend against the reference over random cases of the whole parameter space.
 * tests/check/test_op_cases.c walks a fixed grid of the same kind, test_attn_hostile.c has extreme
 * values. */
#include "tests/support/attn_case.h"
#include "tests/support/naive.h"

#include <criterion/parameterized.h>

/* ---- the reference and the papers --------------------------------------------------------- */

/* Schemes as named in papers; `number` is the clip or clamp_len. */
enum paper { PLAIN, SHAW, SHAW_FULL, SHAW_BOTH_WAYS, XL, XL_CLAMP, ALIBI, PAPERS };

struct paper_case {
    enum paper paper;
    int number, B, H, Hkv, L, M, dh, window;
};

static double *doubles(const float *x, size_t n)
{
    double *y = calloc(n + 1, sizeof(*y));

    for (size_t i = 0; i < n; i++)
        y[i] = (double)x[i];
    return y;
}

/* Rows of head h in sequence b. */
static double *head_rows(const float *x, struct stride at, int b, int rows, int h, int d)
{
    double *y = calloc((size_t)(rows * d), sizeof(*y));

    for (int i = 0; i < rows; i++)
        for (int e = 0; e < d; e++)
            y[i * d + e] = (double)x[b * at.batch + i * at.row + h * d + e];
    return y;
}

/* The contract's table from rows by ascending distance: farthest first. */
static struct scheme scheme_of(const struct paper_case *c)
{
    const int K = c->M + c->L, clip = c->number;

    switch (c->paper) {
    case SHAW:
        return (struct scheme){REL_K | REL_V | LSE, clip + 1, 0, c->window};
    case SHAW_FULL:
        return (struct scheme){REL_K | REL_V | PER_HEAD | LSE, clip + 1, clip, c->window};
    case SHAW_BOTH_WAYS:
        return (struct scheme){REL_K | REL_V | FULL | LSE, clip + 1, clip, c->window};
    case XL:
        return (struct scheme){HAS_U | HAS_W | REL_K | PER_HEAD | LSE, K, 0, c->window};
    case XL_CLAMP:
        return (struct scheme){HAS_U | HAS_W | REL_K | PER_HEAD | LSE,
                               c->number + 1 < K ? c->number + 1 : K, 0, c->window};
    case ALIBI:
        return (struct scheme){BIAS | PER_HEAD | LSE, K, 0, c->window};
    default:
        return (struct scheme){LSE, 0, 0, c->window};
    }
}

/* Head h of sequence b by the papers' formulas: o [L,d], lse [L]. */
static void by_paper(const struct paper_case *c, const struct operands *x, int b, int h, double *o,
                     double *lse)
{
    const struct attn *a = &x->a;
    const int K = c->M + c->L, d = c->dh, kv = h / (c->H / c->Hkv);
    const ptrdiff_t table = h * a->rel_head;
    const size_t rows = (size_t)(a->R + a->Rf);
    double *q = head_rows(a->q, a->q_at, b, c->L, h, d);
    double *k = head_rows(a->k, a->k_at, b, K, kv, d), *v = head_rows(a->v, a->v_at, b, K, kv, d);
    double *rel_k = doubles(x->rel_k + table, rows * (size_t)d);
    double *rel_v = doubles(x->rel_v + table, rows * (size_t)d);
    double *u = doubles(x->u + h * d, (size_t)d), *w = doubles(x->w + h * d, (size_t)d);
    double *rho = calloc((size_t)(K * d), sizeof(*rho)), *slope = calloc((size_t)K, sizeof(*slope));
    struct naive n = {.L = c->L, .M = c->M, .d = d, .window = c->window, .causal = a->causal};

    n.scale = (double)a->scale, n.q = q, n.k = k, n.v = v;
    if (c->paper == SHAW || c->paper == SHAW_FULL || c->paper == SHAW_BOTH_WAYS)
        n.clip = c->number, n.rows = (int)rows, n.rel_k = rel_k, n.rel_v = rel_v;
    for (int dist = 0; dist < K && (c->paper == XL || c->paper == XL_CLAMP); dist++) {
        const int code = c->paper == XL_CLAMP ? min_int(dist, c->number) : dist;
        memcpy(rho + dist * d, rel_k + (a->R - 1 - code) * d, sizeof(*rho) * (size_t)d);
        n.u = u, n.w = w, n.rho = rho;
    }
    for (int dist = 0; dist < K && c->paper == ALIBI; dist++) {
        slope[dist] = (double)x->bias[h * a->bias_head + K - 1 - dist];
        n.bias = slope;
    }
    naive_attend(&n, o, lse, NULL);
    free(q), free(k), free(v), free(rel_k), free(rel_v), free(u), free(w), free(rho), free(slope);
}

/* Both work in double from the same floats; the difference is the final rounding to float, and a
 * few hundred roundings to double. */
static void check_paper(const struct paper_case *c)
{
    const struct engine ref = open_engine("ref", 1);
    const struct shape s = {c->B, c->H, c->Hkv, c->L, c->M, c->dh};
    const struct scheme t = scheme_of(c);
    struct operands x;
    double worst = 0;

    make_operands(&x, &s, &t);
    attend(&ref, &x.a);
    double *o = calloc((size_t)(c->L * c->dh), sizeof(*o));
    double *lse = calloc((size_t)c->L, sizeof(*lse));
    for (int b = 0; b < c->B; b++)
        for (int h = 0; h < c->H; h++) {
            by_paper(c, &x, b, h, o, lse);
            for (int i = 0; i < c->L; i++) {
                const float *got = x.o + b * x.a.o_at.batch + i * x.a.o_at.row + h * c->dh;
                for (int e = 0; e < c->dh; e++)
                    worst = fmax(worst, in_bounds((double)got[e], o[i * c->dh + e],
                                                  U * fabs(o[i * c->dh + e]) + 1e-12));
                worst = fmax(worst, in_bounds((double)x.lse[(b * c->H + h) * c->L + i], lse[i],
                                              U * fabs(lse[i]) + 1e-12));
            }
        }
    cr_assert(worst <= 1.0,
              "paper %d, number %d: B %d H %d Hkv %d L %d M %d dh %d window %d: %.3g x its bound",
              c->paper, c->number, c->B, c->H, c->Hkv, c->L, c->M, c->dh, c->window, worst);
    cr_assert(guards_intact(x.o, x.o_size) && guards_intact(x.lse, x.lse_size));
    free(o), free(lse);
    free_operands(&x);
}

ParameterizedTestParameters(attn, ref_is_the_papers_formula)
{
    static int papers[PAPERS];

    for (int p = 0; p < PAPERS; p++)
        papers[p] = p;
    return cr_make_param_array(int, papers, PAPERS);
}
ParameterizedTest(int *paper, attn, ref_is_the_papers_formula, .timeout = 240)
{
    static const int L[] = {1, 2, 7, 23}, M[] = {0, 5, 40}, numbers[] = {0, 1, 4, 17, 200};
    static const int windows[] = {0, 1, 5, 100};
    int turn = 0;

    for (size_t l = 0; l < ARRAY_LEN(L); l++)
        for (size_t m = 0; m < ARRAY_LEN(M); m++)
            for (size_t n = 0; n < ARRAY_LEN(numbers); n++)
                for (size_t w = 0; w < ARRAY_LEN(windows); w++, turn++)
                    check_paper(&(struct paper_case){.paper = (enum paper) * paper,
                                                     .number = numbers[n],
                                                     .B = 1 + turn % 2,
                                                     .H = 4,
                                                     .Hkv = 1 << turn % 3,
                                                     .L = L[l],
                                                     .M = M[m],
                                                     .dh = 1 + turn % 8,
                                                     .window = windows[w]});
}

/* ---- every implementation and the reference ----------------------------------------------- */

enum { CHUNKS = 8, CASES = 40 }; /* of each: random cases */

static int draw(uint64_t n, const char *what, const int *from, size_t count)
{
    return from[rng_u32(SEED, rng_stream(what), n) % count];
}
#define DRAW(n, what, ...)                                                                         \
    draw(n, what, (const int[]){__VA_ARGS__}, sizeof((int[]){__VA_ARGS__}) / sizeof(int))

static void draw_case(uint64_t n, struct shape *s, struct scheme *t)
{
    *s = (struct shape){.B = DRAW(n, "B", 1, 1, 2, 3),
                        .H = 4,
                        .Hkv = DRAW(n, "Hkv", 1, 2, 4),
                        .L = DRAW(n, "L", 1, 2, 4, 7, 8, 9, 37, 130),
                        .M = DRAW(n, "M", 0, 19, 64, 300),
                        .dh = DRAW(n, "dh", 1, 5, 8, 20, 40, 64, 96)};
    const int K = s->L + s->M;
    *t = (struct scheme){.terms = DRAW(n, "u", 0, HAS_U) | DRAW(n, "w", 0, HAS_W) |
                                  DRAW(n, "rel_k", 0, REL_K) | DRAW(n, "rel_v", 0, 0, REL_V) |
                                  DRAW(n, "bias", 0, 0, BIAS) | DRAW(n, "head", 0, PER_HEAD) |
                                  DRAW(n, "lse", 0, LSE) | DRAW(n, "causal", 0, 0, 0, FULL),
                         .R = DRAW(n, "R", 1, 2, 9, 33, K, K, K, K + 20),
                         .Rf = DRAW(n, "Rf", 0, 0, 1, 8, 200),
                         .window = DRAW(n, "window", 0, 0, 0, 1, 5, 50, K + 1)};
}

/* The tables and the bias may be shared differently, and the scale need not be 1/sqrt(dh). */
static void make_case(uint64_t n, struct operands *x)
{
    struct shape s;
    struct scheme t;

    draw_case(n, &s, &t);
    make_operands(x, &s, &t);
    if (DRAW(n, "shared bias", 0, 1))
        x->a.bias_head = 0;
    x->a.scale *= (float)DRAW(n, "scale", 1, 1, 2, -1);
}

static void compare(uint64_t n, const struct engine *g, const struct operands *want)
{
    const struct bound bound = attn_bound(want);
    struct operands got;
    double worst = 0, error = 0, power = 0;

    make_case(n, &got);
    attend(g, &got.a);
    for (size_t i = 0; i < got.o_size; i++) {
        const double d = (double)got.o[i] - (double)want->o[i];
        worst = fmax(worst, in_bounds((double)got.o[i], (double)want->o[i], bound.out));
        error += d * d;
        if (want->o[i] != GUARD_VALUE)
            power += (double)want->o[i] * (double)want->o[i];
    }
    for (size_t i = 0; i < got.lse_size; i++)
        worst = fmax(worst, in_bounds((double)got.lse[i], (double)want->lse[i], bound.lse));
    const struct attn *a = &got.a;
    cr_expect(worst < 1.0 && error < 1e-10 * power,
              "%s/%s, %d threads, case %d: B %d Hkv %d L %d M %d dh %d window %d R %d Rf %d%s: "
              "%.2g x its bound, normalised mean-square error %.2g",
              g->backend->name, g->impl, g->threads, (int)n, a->B, a->Hkv, a->L, a->M, a->dh,
              a->window, a->R, a->Rf, a->causal ? " causal" : "", worst, error / power);
    cr_expect(guards_intact(got.o, got.o_size) && guards_intact(got.lse, got.lse_size));
    free_operands(&got);
}

/* Each implementation of a backend that accepts the case, on one thread and on two. */
static void compare_all(uint64_t n, const struct backend *b, const struct operands *want)
{
    for (int threads = 1; threads <= 2; threads++) {
        struct engine g = open_engine(b->name, threads);
        for (int i = 0; g.attn[i]; i++) {
            const char *why;
            g.impl = g.attn[i]->name;
            if (g.attn[i]->accepts(&want->a, &why))
                compare(n, &g, want);
        }
    }
}

ParameterizedTestParameters(attn, implementations_match_ref)
{
    static int chunks[CHUNKS];

    for (int c = 0; c < CHUNKS; c++)
        chunks[c] = c;
    return cr_make_param_array(int, chunks, CHUNKS);
}
ParameterizedTest(int *chunk, attn, implementations_match_ref, .timeout = 120)
{
    const struct engine one = open_engine("ref", 1), two = open_engine("ref", 2);

    for (int c = 0; c < CASES; c++) {
        const uint64_t n = (uint64_t)(*chunk * CASES + c);
        struct operands x, y;
        make_case(n, &x);
        make_case(n, &y);
        attend(&one, &x.a);
        attend(&two, &y.a);
        cr_expect_arr_eq(x.o, y.o, x.o_size * sizeof(float), "threads change ref in case %d", c);
        cr_expect_arr_eq(x.lse, y.lse, x.lse_size * sizeof(float));
        free_operands(&y);
        for (int i = 0; backends[i]; i++)
            if (backends[i] != &backend_ref && backend_usable(backends[i], NULL) == OK)
                compare_all(n, backends[i], &x);
        free_operands(&x);
    }
}
