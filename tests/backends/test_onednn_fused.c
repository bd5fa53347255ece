/* SPDX-License-Identifier: MIT
 *
 * oneDNN's products with an epilogue, and its layer norm: against the reference, on every overlap
 * of operands that the contract allows, and by the primitive only where it should be. */
#include "tests/support/attn_case.h"
#include "variants/backends/backend.h"

#include <omp.h>

#if HAVE_ONEDNN

/* ---- products with an epilogue ------------------------------------------------------------ */

enum { RELU = 1, BIASED = 2, ADDED = 4, OLD = 8, PACKED = 16, ALL_FORMS = 32 };
enum place { IN_C, ELSEWHERE, IN_ADD, PLACES };

struct fused {
    int m, n, k;
    float *a, *b, *bias, *add, *c, *y, *packed;
};

static struct fused make_fused(const int *shape)
{
    struct fused x = {.m = shape[0], .n = shape[1], .k = shape[2]};
    const size_t out = (size_t)(x.m * x.n);

    x.a = normal((size_t)(x.m * x.k), "a", 0, 1);
    x.b = normal((size_t)(x.n * x.k), "b", 0, 1);
    x.bias = normal((size_t)x.n, "bias", 0, 3);
    x.add = normal(out, "add", 0, 3);
    x.c = normal(out, "c", 0, 3);
    x.y = guarded(out);
    return x;
}

static void release_fused(struct fused *x)
{
    release(x->a), release(x->b), release(x->bias), release(x->add), release(x->c), release(x->y);
    free(x->packed);
}

/* y, in the requested place. */
static const float *run(const struct engine *g, struct fused *x, int form, enum place place)
{
    const struct gemm p = {.tb = true,
                           .m = x->m,
                           .n = x->n,
                           .k = x->k,
                           .alpha = 1,
                           .beta = form & OLD ? 1 : 0,
                           .a = x->a,
                           .lda = x->k,
                           .b = x->b,
                           .ldb = x->k,
                           .b_packed = x->packed,
                           .c = x->c,
                           .ldc = x->n,
                           .threads = g->threads};
    const struct act after = {.kind = form & RELU ? ACT_RELU : ACT_NONE,
                              .y = place == IN_C     ? x->c
                                   : place == IN_ADD ? x->add
                                                     : x->y,
                              .x = x->c,
                              .bias = form & BIASED ? x->bias : NULL,
                              .add = form & ADDED ? x->add : NULL,
                              .rows = x->m,
                              .n = x->n,
                              .threads = g->threads};

    engine_gemm_act(g, &p, &after);
    return after.y;
}

/* In units of the rounding error: a sum of k products is off by k U sum |a||b|, and each of the
 * three additions rounds a number no larger than all of them. */
static double fused_error(struct fused *x, struct fused *ref, const float *got, const float *want)
{
    double worst = 0;

    for (int i = 0; i < x->m; i++)
        for (int j = 0; j < x->n; j++) {
            const ptrdiff_t at = (ptrdiff_t)i * x->n + j;
            double sum = 0;
            for (int p = 0; p < x->k; p++)
                sum += fabs((double)x->a[i * x->k + p] * (double)x->b[j * x->k + p]);
            /* c, bias and add are below 20: six standard deviations of 3 and more */
            worst = fmax(worst, in_bounds(got[at], want[at], U * ((x->k + 4) * sum + 4 * 60)));
        }
    cr_expect(guards_intact(x->c, (size_t)(x->m * x->n)));
    cr_expect(guards_intact(x->y, (size_t)(x->m * x->n)));
    cr_expect(guards_intact(ref->add, (size_t)(x->m * x->n)));
    return worst;
}

static void expect_fused(const struct engine *g, const struct engine *reference, const int *shape,
                         int form, enum place place)
{
    struct fused x = make_fused(shape), ref = make_fused(shape);
    const struct gemm like = {.tb = true, .n = x.n, .k = x.k, .b = x.b, .ldb = x.k};
    const size_t floats = form & PACKED ? g->packed_floats(&like) : 0;

    if (floats) {
        x.packed = aligned_alloc(64, round_up(floats * sizeof(float), 64));
        g->pack(x.packed, &like);
    }
    const float *got = run(g, &x, form, place), *want = run(reference, &ref, form, place);
    const double error = fused_error(&x, &ref, got, want);
    cr_expect_lt(error, 1.0, "%d x %d x %d, form %d, place %d, %d threads: %.2f x its bound", x.m,
                 x.n, x.k, form, (int)place, g->threads, error);
    release_fused(&x);
    release_fused(&ref);
}

Test(onednn_fused, epilogues_are_those_of_the_reference, .timeout = 120)
{
    static const int shapes[][3] = {{1, 1, 1},   {1, 37, 5},   {3, 1, 17},
                                    {7, 64, 33}, {31, 130, 9}, {64, 96, 64}};
    const struct engine reference = open_engine("ref", 1);
    char names[128];
    struct err e;

    for (int threads = 1; threads <= 2; threads++) {
        const struct engine g = open_engine("onednn", threads);
        for (size_t s = 0; s < ARRAY_LEN(shapes); s++)
            for (int form = 0; form < ALL_FORMS; form++)
                for (int place = 0; place < PLACES; place++)
                    if (place != IN_ADD || form & ADDED)
                        expect_fused(&g, &reference, shapes[s], form, (enum place)place);
        cr_expect_eq(g.backend->ran(names, sizeof(names), &e), OK, "%s", e.msg);
        cr_expect(names[0] && !strstr(names, "ref"), "%s", names);
    }
}

/* One primitive does all of it: a part left out would need a second one of the same shape. */
Test(onednn_fused, bias_and_relu_are_in_the_primitive)
{
    const struct engine g = open_engine("onednn", 1);
    struct fused x = make_fused((const int[]){30, 40, 50});

    run(&g, &x, RELU | BIASED, IN_C);
    const size_t fused = g.backend->held_bytes();
    run(&g, &x, RELU | BIASED, ELSEWHERE);
    cr_expect_eq(g.backend->held_bytes(), fused, "the destination is not a part of the key");
    run(&g, &x, ADDED, IN_C);
    const size_t both = g.backend->held_bytes();
    cr_expect_gt(both, fused, "the plain product had not been made");
    run(&g, &x, BIASED, IN_C);
    cr_expect_gt(g.backend->held_bytes(), both, "without ReLU it is another primitive");
    release_fused(&x);
}

/* Two threads of one region, each with its own products. */
Test(onednn_fused, threads_share_a_primitive)
{
    const int shape[] = {20, 48, 30};
    const struct engine g = open_engine("onednn", 2), reference = open_engine("ref", 1);
    struct fused x[2] = {make_fused(shape), make_fused(shape)}, ref = make_fused(shape);
    struct engine single = g;
    const float *got[2];

    single.threads = 1;
#pragma omp parallel num_threads(2)
    got[omp_get_thread_num()] = run(&single, &x[omp_get_thread_num()], RELU | BIASED, ELSEWHERE);
    const float *want = run(&reference, &ref, RELU | BIASED, ELSEWHERE);
    for (int t = 0; t < 2; t++) {
        cr_expect_lt(fused_error(&x[t], &ref, got[t], want), 1.0);
        release_fused(&x[t]);
    }
    release_fused(&ref);
}

/* ---- layer norm --------------------------------------------------------------------------- */

struct rows {
    int rows, n;
    float mean;
    bool add, in_place;
};

/* T is the largest |x + add|, D the largest deviation, s the root. The mean of n numbers is off by
 * n U T, and with it each deviation: dd = U ((n+2) T + (n+4) D). The root's relative error is dd/s
 * from them, (n+3)/2 U from its sum, 3 U from the rest. */
static double norm_bound(const struct norm *o, int i, double *root)
{
    const ptrdiff_t at = (ptrdiff_t)i * o->n;
    double mean = 0, var = 0, T = 0, D = 0;

    for (int k = 0; k < o->n; k++) {
        const double t = (double)o->x[at + k] + (o->add ? (double)o->add[at + k] : 0.0);
        mean += t / o->n;
        T = fmax(T, fabs(t));
    }
    for (int k = 0; k < o->n; k++) {
        const double d = (double)o->x[at + k] + (o->add ? (double)o->add[at + k] : 0.0) - mean;
        var += d * d / o->n;
        D = fmax(D, fabs(d));
    }
    *root = sqrt(var + (double)o->eps);
    const double dd = U * ((o->n + 2) * T + (o->n + 4) * D);
    return (dd + D * (dd / *root + U * ((o->n + 3) / 2.0 + 6))) / *root;
}

static void expect_norm(const struct engine *g, const struct rows *r)
{
    const size_t size = (size_t)(r->rows * r->n);
    float *x = normal(size, "x", r->mean, 1), *plus = normal(size, "add", 0, 1);
    float *weight = normal((size_t)r->n, "weight", 1, 1),
          *bias = normal((size_t)r->n, "bias", 0, 1);
    float *got = normal(size, "x", r->mean, 1), *want = guarded(size);
    struct norm o = {.y = want,
                     .x = x,
                     .add = r->add ? plus : NULL,
                     .weight = weight,
                     .bias = bias,
                     .rows = r->rows,
                     .n = r->n,
                     .eps = 1e-5f,
                     .threads = g->threads};
    struct norm mine = o;
    double worst = 0, root;

    mine.y = got;
    mine.x = r->in_place ? got : x;
    backend_ref.ops.norm(&o);
    g->ops.norm(&mine);
    for (int i = 0; i < r->rows; i++) {
        const double bound = norm_bound(&o, i, &root);
        for (int j = 0; j < r->n; j++) {
            const ptrdiff_t at = (ptrdiff_t)i * r->n + j;
            worst = fmax(worst, in_bounds(got[at], want[at],
                                          fabs((double)weight[j]) * bound +
                                              2 * U * (fabs((double)want[at]) + fabs(bias[j]))));
        }
    }
    cr_expect_lt(worst, 1.0, "%d x %d, mean %g, add %d, in place %d, %d threads: %.2f x its bound",
                 r->rows, r->n, (double)r->mean, r->add, r->in_place, g->threads, worst);
    cr_expect(guards_intact(got, size));
    release(x), release(plus), release(weight), release(bias), release(got), release(want);
}

Test(onednn_fused, norms_are_those_of_the_reference, .timeout = 240)
{
    static const int shapes[][2] = {{1, 256},   {5, 100},   {64, 256},
                                    {129, 129}, {17, 1000}, {33, 512}};

    for (int threads = 1; threads <= 2; threads++) {
        const struct engine g = open_engine("onednn", threads);
        for (size_t s = 0; s < ARRAY_LEN(shapes); s++)
            for (int mode = 0; mode < 12; mode++)
                expect_norm(&g, &(struct rows){.rows = shapes[s][0],
                                               .n = shapes[s][1],
                                               .mean = mode < 4   ? 0.0f
                                                       : mode < 8 ? 30.0f
                                                                  : 1e3f,
                                               .add = mode & 1,
                                               .in_place = mode & 2});
    }
}

/* The primitive runs for many rows, and only then; `ran` shows it. */
Test(onednn_fused, norms_of_few_rows_or_with_a_residual_are_inherited)
{
    const struct engine g = open_engine("onednn", 1);
    char names[128];

    g.backend->ran(names, sizeof(names), NULL);
    expect_norm(&g, &(struct rows){.rows = 4, .n = 256});
    expect_norm(&g, &(struct rows){.rows = 128, .n = 256, .add = true});
    cr_expect_eq(g.backend->ran(names, sizeof(names), NULL), OK);
    cr_expect_str_eq(names, "");
    expect_norm(&g, &(struct rows){.rows = 128, .n = 256});
    cr_expect_eq(g.backend->ran(names, sizeof(names), NULL), OK);
    cr_expect(names[0] && !strstr(names, "ref"), "%s", names);
}

/* eps is a part of the key. */
Test(onednn_fused, each_eps_has_its_own_primitive)
{
    enum { ROWS = 128, N = 128 };
    const struct engine g = open_engine("onednn", 1);
    float *x = normal(ROWS * N, "x", 0, 1e-3f), *y = guarded(ROWS * N);
    float *one = normal(N, "one", 1, 0), *zero = normal(N, "zero", 0, 0);
    float first[2];

    for (int i = 0; i < 2; i++) {
        g.ops.norm(&(struct norm){.y = y,
                                  .x = x,
                                  .weight = one,
                                  .bias = zero,
                                  .rows = ROWS,
                                  .n = N,
                                  .eps = i ? 1 : 1e-12f,
                                  .threads = 1});
        first[i] = y[0];
    }
    cr_expect_gt(fabsf(first[0]), 100 * fabsf(first[1]));
    release(x), release(y), release(one), release(zero);
}

#endif
