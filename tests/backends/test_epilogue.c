/* SPDX-License-Identifier: MIT
 *
 * Products with what follows them, of every backend, against the reference's product and row
 * operation one after the other: shapes around tiles, steps of k and few rows, every placing of the
 * result that is allowed, constant operands as they are and packed. Bounds in units of U = 2^-24.
 */
#include "tests/support/attn_case.h"
#include "tests/support/product.h"

#include <criterion/parameterized.h>

/* Criterion copies parameters into other processes: an index, no pointers. */
struct who {
    int backend, threads;
};
static struct criterion_test_params everyone(void)
{
    static struct who list[32];
    size_t n = 0;

    for (int i = 0; backends[i] && n + 1 < ARRAY_LEN(list); i++)
        for (int threads = 1; threads <= 2; threads++)
            list[n++] = (struct who){i, threads};
    return cr_make_param_array(struct who, list, n);
}

/* m, n, k; the last two are worth a second thread. */
static const int shapes[][3] = {
    {1, 1, 1},    {1, 37, 5},   {2, 8, 64},    {3, 17, 257},  {4, 31, 16},  {5, 32, 255},
    {6, 33, 9},   {7, 15, 256}, {8, 65, 33},   {9, 16, 16},   {10, 47, 19}, {11, 7, 30},
    {12, 24, 2},  {13, 48, 12}, {14, 32, 8},   {15, 30, 0},   {16, 63, 21}, {17, 33, 520},
    {115, 40, 3}, {9, 530, 6},  {40, 70, 258}, {3, 600, 300},
};

/* op(a) op(b) with packed b where the backend has a packed form and `packed` asks for it. */
struct product {
    struct gemm g;
    float *a, *b, *packed;
};

static void make_product(struct product *p, const struct engine *e, const int *shape, int mode)
{
    const bool plain = mode & 2; /* neither operand transposed */
    const int m = shape[0], n = shape[1], k = shape[2];

    *p = (struct product){.a = normal((size_t)(m * k + 1), "a", 0, 1),
                          .b = normal((size_t)(n * k + 1), "b", 0, 1)};
    p->g = (struct gemm){.tb = !plain,
                         .m = m,
                         .n = n,
                         .k = k,
                         .alpha = mode & 1 ? 0.5f : 1.0f,
                         .beta = mode & 1 ? -0.75f : 0.0f,
                         .a = p->a,
                         .b = p->b,
                         .lda = k,
                         .ldb = plain ? n : k,
                         .threads = 1};
    const size_t floats = mode & 4 && e->packed_floats ? e->packed_floats(&p->g) : 0;
    if (floats) {
        p->packed = guarded(floats);
        e->pack(p->packed, &p->g);
    }
}
enum { PRODUCT_MODES = 8, N_GATES = GATE_UPDATE + 1 };

/* Every mode of the product meets every shape and every ending, not each pair of those. */
static int product_of(size_t shape, int ending)
{
    return (int)(5 * shape + 3 * (size_t)ending) % PRODUCT_MODES;
}

static void drop_product(struct product *p)
{
    release(p->a), release(p->b);
    if (p->packed)
        release(p->packed);
}

/* The engine's product on `c`, threads and packed operand included. */
static struct gemm on(const struct product *p, const struct engine *e, float *c, ptrdiff_t ldc)
{
    struct gemm g = p->g;

    g.c = c;
    g.ldc = ldc;
    g.threads = e->threads;
    g.b_packed = p->packed;
    return g;
}

/* ---- act ---------------------------------------------------------------------------------- */

enum { WITH_BIAS = 1, WITH_ADD = 2, WITH_RELU = 4, ACT_MODES = 8 };
enum place { OVER_C, OVER_ADD, APART, PLACES };

/* The product's bound; bias, add and the reference's two stores round once each. */
static double act_bound(const struct gemm *g, const struct act *o, double old, ptrdiff_t at)
{
    const int i = (int)(at / g->n), j = (int)(at % g->n);
    const double bias = o->bias ? fabs((double)o->bias[j]) : 0;
    double product = fabs((double)g->beta * old);

    for (int p = 0; p < g->k; p++)
        product += fabs((double)g->alpha * (double)g->a[i * g->lda + p] *
                        (double)g->b[g->tb ? j * g->ldb + p : p * g->ldb + j]);
    return product_bound(g, old, i, j) + 4 * U * (product + bias + fabs((double)o->add[at]));
}

static double act_error(const struct engine *e, const int *shape, int product, int mode, int place)
{
    const size_t size = (size_t)(shape[0] * shape[1]), n = (size_t)shape[1];
    float *old = normal(size, "old", 0, 1), *add = normal(size, "add", 0, 1);
    float *bias = normal(n, "bias", 0, 1), *c = guarded(size), *want = guarded(size);
    float *over = normal(size, "add", 0, 1), *apart = guarded(size);
    float *const y[PLACES] = {c, over, apart};
    struct product p;
    double worst = 0;

    make_product(&p, e, shape, product);
    bias[n / 2] = NAN;
    for (size_t i = 0; i < size; i++)
        c[i] = want[i] = p.g.beta != 0 ? old[i] : NAN;
    const struct gemm by_ref = on(&p, &(struct engine){.threads = 1}, want, shape[1]);
    const struct gemm g = on(&p, e, c, shape[1]);
    struct act o = {.kind = mode & WITH_RELU ? ACT_RELU : ACT_NONE,
                    .y = want,
                    .x = want,
                    .bias = mode & WITH_BIAS ? bias : NULL,
                    .add = mode & WITH_ADD ? add : NULL,
                    .rows = shape[0],
                    .n = shape[1],
                    .threads = 1};
    struct gemm unpacked = by_ref;
    unpacked.b_packed = NULL;
    backend_ref.ops.gemm(&unpacked);
    backend_ref.ops.act(&o);
    o.x = c;
    o.y = y[place];
    o.add = mode & WITH_ADD ? (place == OVER_ADD ? over : add) : NULL;
    o.threads = e->threads;
    engine_gemm_act(e, &g, &o);
    o.add = add;                             /* its size enters the bound, used or not */
    const bool library = e->backend->config; /* its ReLU may make 0 of a NaN */
    for (size_t i = 0; i < size; i++) {
        if (library && o.kind == ACT_RELU && isnan(want[i]) && y[place][i] == 0)
            continue;
        worst = fmax(worst, in_bounds(y[place][i], want[i],
                                      act_bound(&g, &o, (double)old[i], (ptrdiff_t)i)));
    }
    cr_expect(guards_intact(c, size) && guards_intact(over, size) && guards_intact(apart, size));
    release(old), release(add), release(bias), release(c), release(want), release(over);
    release(apart), drop_product(&p);
    return worst;
}

ParameterizedTestParameters(epilogue, act) { return everyone(); }
ParameterizedTest(struct who *w, epilogue, act, .timeout = 60)
{
    const struct engine g = open_engine(backends[w->backend]->name, w->threads);

    for (size_t s = 0; s < ARRAY_LEN(shapes); s++)
        for (int mode = 0; mode < ACT_MODES * PLACES; mode++) {
            const int *n = shapes[s], product = product_of(s, mode);
            const double e = act_error(&g, n, product, mode % ACT_MODES, mode / ACT_MODES);
            cr_assert_lt(e, 1.0,
                         "%s: m, n, k = %d, %d, %d, product %d, act and place %d: %.2f x its bound",
                         g.backend->name, n[0], n[1], n[2], product, mode, e);
        }
}

/* ---- gate --------------------------------------------------------------------------------- */

static bool has_c(enum gate_kind k) { return k == GATE_SIGTANH || k == GATE_UPDATE; }

/* Pre-activations [m, ld]: a in front, c behind it where the kind has one, then a gap. The product
 * fills the last of them; where that is a, it has a few columns more than the gate. */
enum { GAP = 3, MORE = 5 };

/* What the product may be off by, the gate passes on at most (|x| + |y| + 1)-fold, the slopes of
 * sigma and tanh being 1/4 and 1; its own rounding is that of the row operation. */
static double gate_bound(double pre, double arg, double x, double y)
{
    return (pre + U * (arg + 18)) * (fabs(x) + fabs(y) + 1);
}

static void compare_gate(const struct gemm *g, const struct gate_op *o, const float *want,
                         const float *x, const float *old, double *worst)
{
    const ptrdiff_t at_c = g->c - (float *)o->a; /* of the product in the pre-activations */

    for (int i = 0; i < g->m; i++)
        for (int j = 0; j < o->n; j++) {
            const ptrdiff_t at = (ptrdiff_t)i * o->n + j;
            const double arg = fabs((double)o->a[i * o->ld + j]) + fabs((double)o->b[j]);
            const double pre = product_bound(g, (double)old[i * o->ld + j + at_c], i, j);
            *worst = fmax(*worst, in_bounds(o->out[at], want[at],
                                            gate_bound(pre, arg, (double)x[at], (double)o->y[at])));
        }
}

static double gate_error(const struct engine *e, const int *shape, int product, enum gate_kind kind,
                         bool in_place)
{
    const int m = shape[0], n = shape[1], more = has_c(kind) ? 0 : MORE;
    const int wide[] = {m, n + more, shape[2]};
    const ptrdiff_t ld = has_c(kind) ? 2 * n + GAP : n + more + GAP, at = has_c(kind) ? n : 0;
    const size_t size = (size_t)(m * n), pre_size = (size_t)(m * ld);
    float *x = normal(size, "x", 0, 1), *y = normal(size, "y", 0, 1);
    float *x_in = normal(size, "x", 0, 1), *bias = normal((size_t)n, "bias", 0, 1);
    float *old = normal(pre_size, "pre", 0, 1), *pre = normal(pre_size, "pre", 0, 1);
    float *kept = normal(pre_size, "pre", 0, 1), *out = guarded(size), *want = guarded(size);
    struct product p;
    double worst = 0;

    make_product(&p, e, wide, product);
    struct gemm ref = on(&p, &(struct engine){.threads = 1}, kept + at, ld);
    const struct gemm g = on(&p, e, pre + at, ld);
    ref.b_packed = NULL;
    struct gate_op o = {.kind = kind,
                        .out = want,
                        .x = x,
                        .y = y,
                        .a = kept,
                        .c = has_c(kind) ? kept + n : NULL,
                        .b = bias,
                        .ld = ld,
                        .rows = m,
                        .n = n,
                        .threads = 1};
    backend_ref.ops.gemm(&ref);
    backend_ref.ops.gate(&o);
    o.out = in_place ? x_in : out;
    o.x = x_in;
    o.a = pre;
    o.c = has_c(kind) ? pre + n : NULL;
    o.threads = e->threads;
    engine_gemm_gate(e, &g, &o);
    compare_gate(&g, &o, want, x, old, &worst);
    for (ptrdiff_t i = 0; i < (ptrdiff_t)pre_size; i++) { /* and the product itself stays */
        const int column = (int)(i % ld - at);
        const bool inside = column >= 0 && column < wide[1];
        const double bound = inside ? product_bound(&g, (double)old[i], (int)(i / ld), column) : 0;
        worst = fmax(worst, in_bounds(pre[i], kept[i], bound));
    }
    cr_expect(guards_intact(pre, pre_size) && guards_intact(out, size));
    cr_expect(guards_intact(x_in, size));
    release(x), release(y), release(x_in), release(bias), release(old), release(pre);
    release(kept), release(out), release(want), drop_product(&p);
    return worst;
}

ParameterizedTestParameters(epilogue, gate) { return everyone(); }
ParameterizedTest(struct who *w, epilogue, gate, .timeout = 60)
{
    const struct engine g = open_engine(backends[w->backend]->name, w->threads);

    for (size_t s = 0; s < ARRAY_LEN(shapes); s++)
        for (int mode = 0; mode < 2 * N_GATES; mode++) {
            const int *n = shapes[s], product = product_of(s, mode);
            const enum gate_kind kind = (enum gate_kind)(mode % N_GATES);
            const double e = gate_error(&g, n, product, kind, mode >= N_GATES);
            cr_assert_lt(e, 1.0, "%s: m, n, k = %d, %d, %d, product %d, gate %d: %.2f x its bound",
                         g.backend->name, n[0], n[1], n[2], product, mode, e);
        }
}
