/* SPDX-License-Identifier: MIT
 *
 * Requirements on oneDNN beyond those on every backend: its generated kernels run and never its
 * plain C fallback, primitives are made once, weights in its own order give the same products, and
 * it uses the existing threads. */
#include "tests/support/kernel/attn_case.h"
#include "tests/support/kernel/fenced.h"
#if HAVE_ONEDNN
#include "variants/backends/onednn/compat.h"
#endif

#include <dirent.h>

#if HAVE_ONEDNN

/* m, n, k: dense and padded, one row, one column, no multiples of any block. */
static const int shapes[][3] = {{1, 1, 1},     {1, 37, 5},    {3, 1, 17},    {5, 64, 33},
                                {12, 65, 100}, {31, 130, 64}, {64, 48, 257}, {128, 64, 64},
                                {100, 96, 48}, {1, 512, 512}, {70, 512, 512}};

static struct gemm random_product(const int *shape, int threads)
{
    const int m = shape[0], n = shape[1], k = shape[2];

    return (struct gemm){MEMBERS(, m, n, k),
                         .alpha = 1,
                         .a = normals((size_t)(m * k), "a", 0, 1),
                         .b = normals((size_t)(k * n), "b", 0, 1),
                         .c = fenced((size_t)(m * n)),
                         .lda = k,
                         .ldb = n,
                         .ldc = n,
                         .threads = threads};
}

/* Largest difference from the reference, in units of the rounding error: a sum of k products in any
 * order is off by k U sum |a||b|; alpha, beta, their sum and the reference's store by 4 U. */
static double product_error(const struct gemm *g, const float *old)
{
    struct gemm ref = *g;
    double worst = 0;

    ref.c = fenced((size_t)g->m * (size_t)g->ldc);
    memcpy(ref.c, old, sizeof(float) * (size_t)(g->m * g->ldc));
    backend_ref.ops.gemm(&ref);
    for (int i = 0; i < g->m; i++)
        for (int j = 0; j < g->n; j++) {
            const ptrdiff_t at = i * g->ldc + j;
            double sum = 0;
            for (int p = 0; p < g->k; p++)
                sum += fabs((double)g->a[g->ta ? p * g->lda + i : i * g->lda + p] *
                            (double)g->b[g->tb ? j * g->ldb + p : p * g->ldb + j]);
            const double bound = U * ((g->k + 4) * fabs((double)g->alpha) * sum +
                                      4 * fabs((double)(g->beta * old[at])));
            worst = fmax(worst, in_bounds(g->c[at], ref.c[at], bound));
        }
    return worst;
}

/* ---- what runs ---------------------------------------------------------------------------- */

Test(onednn, never_the_plain_c_fallback, .timeout = 240)
{
    struct engine g = open_engine("onednn", 1);
    char names[128];

    for (size_t s = 0; s < ARRAY_LEN(shapes); s++)
        for (int form = 0; form < 16; form++) {
            struct gemm x = random_product(shapes[s], 1);
            x.ta = form & 1;
            x.tb = form & 2;
            x.lda = x.ta ? x.m : x.k;
            x.ldb = x.tb ? x.k : x.n;
            x.alpha = form & 4 ? 0.125f : 1;
            x.beta = form & 8 ? 1.0f : 0;
            g.ops.gemm(&x);
            cr_expect_eq(g.backend->ran(names, sizeof(names), &failure), OK, "%s", failure.msg);
            cr_expect(names[0] && !strstr(names, "ref"), "%d x %d x %d form %d: %s", x.m, x.n, x.k,
                      form, names);
        }
}

/* One row or one column of wider matrices: the library mistakes it for dense. */
Test(onednn, vectors_inside_wider_matrices, .timeout = 240)
{
    static const int sizes[][3] = {{1, 16, 37}, {16, 1, 37}, {1, 1, 9}, {1, 64, 128},
                                   {37, 1, 16}, {7, 1, 1},   {1, 7, 1}, {2, 16, 9}};
    struct engine g = open_engine("onednn", 1);
    char names[128];

    for (size_t s = 0; s < ARRAY_LEN(sizes); s++)
        for (int form = 0; form < 128; form++) {
            const int m = sizes[s][0], n = sizes[s][1], k = sizes[s][2];
            struct gemm x = {.ta = form & 1, .tb = form & 2, .m = m, .n = n, .k = k, .threads = 1};
            x.alpha = form & 4 ? 0.5f : 1;
            x.beta = form & 8 ? 1 : 0;
            x.lda = (x.ta ? m : k) + (form & 16 ? 5 : 0);
            x.ldb = (x.tb ? k : n) + (form & 32 ? 3 : 0);
            x.ldc = n + (form & 64 ? 7 : 0);
            x.a = normals((size_t)((x.ta ? k : m) * x.lda), "a", 0, 1);
            x.b = normals((size_t)((x.tb ? n : k) * x.ldb), "b", 0, 1);
            x.c = normals((size_t)(m * x.ldc), "c", 0, 1);
            float *old = normals((size_t)(m * x.ldc), "c", 0, 1);
            g.ops.gemm(&x);
            const double error = product_error(&x, old);
            cr_expect_eq(g.backend->ran(names, sizeof(names), &failure), OK, "%s", failure.msg);
            cr_expect_lt(error, 1.0, "%d x %d x %d form %d by %s: %.2f x its bound", m, n, k, form,
                         names, error);
            for (int i = 0; i < m; i++)
                for (ptrdiff_t j = n; j < x.ldc; j++)
                    cr_assert_eq(x.c[i * x.ldc + j], old[i * x.ldc + j], "between the rows of c");
        }
}

Test(onednn, names_are_of_the_last_products, .timeout = 240)
{
    struct engine g = open_engine("onednn", 1);
    struct gemm x = random_product(shapes[7], 1);
    char names[128];

    cr_expect_eq(g.backend->ran(names, sizeof(names), NULL), OK);
    cr_expect_str_eq(names, "");
    g.ops.gemm(&x);
    g.ops.gemm(&x);
    cr_expect_eq(g.backend->ran(names, sizeof(names), NULL), OK);
    cr_expect(names[0] && !strchr(names, '+'), "%s", names);
    cr_expect_eq(g.backend->ran(names, sizeof(names), NULL), OK);
    cr_expect_str_eq(names, "");
}

/* One row for all, rows that overlap: no matrices for the library. */
Test(onednn, rows_may_overlap, .timeout = 240)
{
    struct engine g = open_engine("onednn", 1);

    for (int form = 0; form < 4; form++)
        for (int ld = 0; ld < 2; ld++) {
            struct gemm x = random_product(shapes[7], 1);
            x.tb = form & 1;
            *(form & 2 ? &x.ldb : &x.lda) = ld;
            g.ops.gemm(&x);
            cr_expect_lt(product_error(&x, x.c), 1.0, "form %d, %d", form, ld);
            cr_expect(guards_intact(x.c, (size_t)(x.m * x.n)));
        }
}

Test(onednn, primitives_are_made_once, .timeout = 240)
{
    struct engine g = open_engine("onednn", 2);
    struct gemm x = random_product(shapes[10], 2);

    g.ops.gemm(&x);
    const size_t held = g.backend->held_bytes();
    cr_expect_gt(held, 0);
    for (int i = 0; i < 10; i++)
        g.ops.gemm(&x);
    cr_expect_eq(g.backend->held_bytes(), held);
    x.m--;
    g.ops.gemm(&x);
    cr_expect_gt(g.backend->held_bytes(), held);
}

/* ---- weights in the library's order ------------------------------------------------------- */

static float *packed(const struct engine *g, const struct gemm *like)
{
    const size_t n = g->packed_floats(like);
    float *p = n ? kept(aligned_alloc(64, round_up(n * sizeof(float), 64))) : NULL;

    if (p)
        g->pack(p, like);
    return p;
}

/* The order may not depend on the rows of a: weights are packed once for all their products. */
Test(onednn, packed_weights_serve_any_number_of_rows, .timeout = 240)
{
    const struct engine g = open_engine("onednn", 1);
    struct gemm x = random_product((const int[]){130, 96, 80}, 1);
    float *old = fenced((size_t)(x.m * x.n));
    const struct gemm like = {.m = 0, .n = x.n, .k = x.k, .b = x.b, .ldb = x.ldb};
    float *b = packed(&g, &like);

    if (generates(dnnl_cpu_isa_avx512_core))
        cr_expect_not_null(b);
    x.b_packed = b;
    for (int m = 1; m <= 130; m += 43) {
        x.m = m;
        g.ops.gemm(&x);
        const double error = product_error(&x, old);
        cr_expect_lt(error, 1.0, "%d rows: %.2f x its bound", m, error);
    }
    x.m = 130;
}

/* ---- threads ------------------------------------------------------------------------------ */

static int count_threads(void)
{
    DIR *d = opendir("/proc/self/task");
    int n = 0;

    cr_assert_not_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n - 2; /* . and .. */
}

/* Products on two threads, then attention whose region calls products: by every backend in turn. */
Test(onednn, shares_one_pool_with_the_others, .timeout = 240)
{
    const struct scheme xl = {HAS_U | HAS_W | REL_K | PER_HEAD, ALL_KEYS, 0, 0};
    const struct shape shape = {1, 2, 2, 200, 60, 16};
    const int before = count_threads();

    for (int i = 0; backends[i]; i++) {
        struct engine g;
        if (backend_usable(backends[i], NULL) != OK)
            continue;
        g = open_engine(backends[i]->name, 2);
        struct gemm x = random_product(shapes[10], 2);
        x.room = g.room;
        struct operands o;
        make_operands(&o, &shape, &xl);
        for (int run = 0; run < 3; run++) {
            g.ops.gemm(&x);
            attend(&g, &o.a);
        }
        NUMBERS_OF(backends[i]->name, {omp_get_max_threads(), 2});
        free_operands(&o);
    }
    cr_expect_eq(count_threads(), before + 1, "%d threads before, %d after", before,
                 count_threads());
}

/* Both threads use every shape for the first time at the same moment. */
Test(onednn, threads_may_meet_a_shape_together, .timeout = 240)
{
    const struct engine g = open_engine("onednn", 2);
    double worst = 0;

    for (int m = 1; m < 60; m++) {
        struct gemm x[2];
        for (int t = 0; t < 2; t++)
            x[t] = random_product((const int[]){m, 40, 24}, 1);
#pragma omp parallel num_threads(2)
        g.ops.gemm(&x[omp_get_thread_num()]);
        for (int t = 0; t < 2; t++)
            worst = fmax(worst, product_error(&x[t], x[t].c));
    }
    cr_expect_lt(worst, 1.0, "%.2f x its bound", worst);
}

#endif
