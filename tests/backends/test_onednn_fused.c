/* SPDX-License-Identifier: MIT
 *
 * oneDNN's products with an epilogue, and its layer norm: by the primitive only where it should be,
 * and by one for several threads. Their numbers: tests/check/test_op_cases.c. */
#include "tests/support/kernel/attn_case.h"
#include "tests/support/kernel/by_weights.h"
#include "tests/support/kernel/fenced.h"

#if HAVE_ONEDNN

/* ---- products with an epilogue ------------------------------------------------------------ */

enum { RELU = 1, BIASED = 2, ADDED = 4 };

struct fused {
    int m, n, k;
    float *a, *b, *bias, *add, *c, *y;
};

static struct fused make_fused(const int *shape)
{
    struct fused x = {.m = shape[0], .n = shape[1], .k = shape[2]};
    const size_t out = (size_t)(x.m * x.n);

    x.a = normals((size_t)(x.m * x.k), "a", 0, 1);
    x.b = normals((size_t)(x.n * x.k), "b", 0, 1);
    x.bias = normals((size_t)x.n, "bias", 0, 3);
    x.add = normals(out, "add", 0, 3);
    x.c = normals(out, "c", 0, 3);
    x.y = fenced(out);
    return x;
}

/* y, in c or elsewhere. */
static const float *run(const struct engine *g, struct fused *x, int form, bool in_c)
{
    struct gemm p = by_weights(g, x->m, x->n, x->k, x->a, x->c);
    const struct act after = {.kind = form & RELU ? ACT_RELU : ACT_NONE,
                              .y = in_c ? x->c : x->y,
                              .x = x->c,
                              .bias = form & BIASED ? x->bias : NULL,
                              .add = form & ADDED ? x->add : NULL,
                              .rows = x->m,
                              .n = x->n,
                              .threads = g->threads};

    p.b = x->b;
    engine_gemm_act(g, &p, &after);
    return after.y;
}

/* One primitive does all of it: a part left out would need a second one of the same shape. */
Test(onednn_fused, bias_and_relu_are_in_the_primitive)
{
    const struct engine g = open_engine("onednn", 1);
    struct fused x = make_fused((const int[]){30, 40, 50});
    char names[128];

    run(&g, &x, RELU | BIASED, true);
    cr_expect_eq(g.backend->ran(names, sizeof(names), &failure), OK, "%s", failure.msg);
    cr_expect(names[0] && !strstr(names, "ref"), "%s", names);
    const size_t fused = g.backend->held_bytes();
    run(&g, &x, RELU | BIASED, false);
    cr_expect_eq(g.backend->held_bytes(), fused, "the destination is not a part of the key");
    run(&g, &x, ADDED, true);
    const size_t both = g.backend->held_bytes();
    cr_expect_gt(both, fused, "the plain product had not been made");
    run(&g, &x, BIASED, true);
    cr_expect_gt(g.backend->held_bytes(), both, "without ReLU it is another primitive");
}

/* Two threads of one region, each with its own products: the bits of one alone. */
Test(onednn_fused, threads_share_a_primitive)
{
    const int shape[] = {20, 48, 30};
    const struct engine g = open_engine("onednn", 2);
    struct fused x[2] = {make_fused(shape), make_fused(shape)}, alone = make_fused(shape);
    struct engine single = g;

    single.threads = 1;
#pragma omp parallel num_threads(2)
    run(&single, &x[omp_get_thread_num()], RELU | BIASED, false);
    run(&single, &alone, RELU | BIASED, false);
    for (int t = 0; t < 2; t++) {
        cr_expect_arr_eq(x[t].y, alone.y, sizeof(float[20 * 48]));
        cr_expect(guards_intact(x[t].y, 20 * 48) && guards_intact(x[t].c, 20 * 48));
    }
}

/* ---- layer norm --------------------------------------------------------------------------- */

static void run_norm(const struct engine *g, int rows, int n, bool add)
{
    const size_t size = (size_t)(rows * n);
    float *x = normals(size, "x", 0, 1), *plus = normals(size, "add", 0, 1), *y = fenced(size);
    float *weight = normals((size_t)n, "weight", 1, 1), *bias = normals((size_t)n, "bias", 0, 1);

    g->ops.norm(&(struct norm){MEMBERS(, y, x, weight, bias, rows, n), .add = add ? plus : NULL,
                               .eps = 1e-5f, .threads = g->threads});
    cr_expect(guards_intact(y, size));
}

/* The primitive runs for many rows, and only then; `ran` shows it. */
Test(onednn_fused, norms_of_few_rows_or_with_a_residual_are_inherited)
{
    const struct engine g = open_engine("onednn", 1);
    char names[128];

    g.backend->ran(names, sizeof(names), NULL);
    run_norm(&g, 4, 256, false);
    run_norm(&g, 128, 256, true);
    cr_expect_eq(g.backend->ran(names, sizeof(names), NULL), OK);
    cr_expect_str_eq(names, "");
    run_norm(&g, 128, 256, false);
    cr_expect_eq(g.backend->ran(names, sizeof(names), NULL), OK);
    cr_expect(names[0] && !strstr(names, "ref"), "%s", names);
}

/* eps is a part of the key. */
Test(onednn_fused, each_eps_has_its_own_primitive)
{
    enum { ROWS = 128, N = 128 };
    const struct engine g = open_engine("onednn", 1);
    float *x = normals(ROWS * N, "x", 0, 1e-3f), *y = fenced(ROWS * N);
    float *one = normals(N, "one", 1, 0), *zero = normals(N, "zero", 0, 0);
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
}

#endif
