/* SPDX-License-Identifier: MIT
 *
 * Gradients of softmax, losses and gates: the reference's against finite differences of the forward
 * operations. Outputs have guard words around them. Norms and activations: test_norms_grad.c,
 * test_acts_grad.c; other backends, threads, results over operands: tests/check/test_op_cases.c. */
#include "tests/support/finite.h"
#include "tests/support/kernel/attn_case.h"
#include "tests/support/kernel/fenced.h"

enum { N_GATES = GATE_UPDATE + 1 };
enum kind { SOFTMAX, NLL, GATE, KINDS = GATE + N_GATES };

/* Every operand of any of the operations. [rows, n] but for bias and rel, and for a and c, whose rows are
 * ld > n floats apart. */
struct operands_of {
    int rows, n, ld, n_rel, shift;
    enum kind kind;
    float *x, *y, *a, *c, *bias, *rel, *d_out;
    int32_t *target;
    size_t size, wide, rel_size, columns; /* [rows,n], [rows,ld], [rows,n_rel], [n] */
};
struct results {
    float *d_x, *d_y, *d_a, *d_c, *d_bias;
};

static float *fresh(size_t n, const char *name, float mean, float sd)
{
    float *x = normals(n, name, mean, sd);

    quantise(x, n);
    return x;
}

static void make(struct operands_of *o, enum kind kind, int rows, int n)
{
    const size_t size = (size_t)(rows * n);

    *o = (struct operands_of){.rows = rows, .n = n, .ld = n + 3, .kind = kind, .size = size};
    o->columns = (size_t)n;
    o->wide = (size_t)(rows * o->ld);
    o->n_rel = n / 2 + 1;
    o->shift = rows / 2 - n / 3;
    o->rel_size = (size_t)(rows * o->n_rel);
    o->x = fresh(size, "x", 0, 1), o->y = fresh(size, "y", 0, 1);
    o->a = fresh(o->wide, "a", 0, 2), o->c = fresh(o->wide, "c", 0, 1);
    o->bias = fresh((size_t)n, "bias", 1, 1);
    o->rel = fresh(o->rel_size, "rel", 0, 1), o->d_out = fresh(size, "d_out", 0, 1);
    o->target = room((size_t)rows, sizeof(*o->target));
    for (int i = 0; i < rows; i++)
        o->target[i] = (int32_t)(rng_u32(SEED, 7, (uint64_t)i) % (uint32_t)n);
}

/* ---- forward ------------------------------------------------------------------------------ */

static enum gate_kind gate_of(const struct operands_of *o)
{
    return (enum gate_kind)(o->kind - GATE);
}

static bool has_y(enum gate_kind k)
{
    return k == GATE_INPUT || k == GATE_OUTPUT || k == GATE_HIGHWAY;
}
static bool has_c(enum gate_kind k) { return k == GATE_SIGTANH || k == GATE_UPDATE; }
static bool has_b(enum gate_kind k) { return k != GATE_INPUT && k != GATE_RESET; }

/* The output of the operation; softmax and nll without the terms that have no gradient. */
static void forward(const struct operands_of *o, float *out)
{
    if (o->kind == SOFTMAX) {
        memcpy(out, o->x, o->size * sizeof(*out));
        backend_ref.ops.softmax(&(struct softmax){out, o->n, o->rows, o->n, .hi = o->n / 2 + 1,
                                                  .hi_slope = 1, .threads = 1});
    } else if (o->kind == NLL) {
        backend_ref.ops.nll(&(struct nll_op){out, o->x, o->target, o->rows, o->n, 1});
    } else {
        backend_ref.ops.gate(&(struct gate_op){gate_of(o), out, o->x, o->y, o->a, o->c, o->bias,
                                               o->ld, o->rows, o->n, 1});
    }
}

/* ---- backward ----------------------------------------------------------------------------- */

/* The results; gradients of weights are added to what is there. */
#define EACH_RESULT(X) X(d_x, size) X(d_y, size) X(d_a, wide) X(d_c, wide) X(d_bias, columns)

static void make_results(struct results *r, const struct operands_of *o)
{
#define MAKE(m, size) r->m = fenced(o->size), memset(r->m, 0, o->size * sizeof(float));
    EACH_RESULT(MAKE)
#undef MAKE
}

static void expect_guards(const struct results *r, const struct operands_of *o)
{
#define INTACT(m, size) cr_expect(guards_intact(r->m, o->size));
    EACH_RESULT(INTACT)
#undef INTACT
}

static void softmax_backward(const struct operands_of *o, struct results *r)
{
    float *p = fenced(o->size);

    forward(o, p);
    memcpy(r->d_x, o->d_out, o->size * sizeof(float));
    backend_ref.ops.softmax_grad(&(struct softmax_grad){r->d_x, p, o->n, o->rows, o->n, o->rel,
                                                        o->n_rel, o->n_rel, o->shift, 1});
}

static void backward(const struct operands_of *o, struct results *r)
{
    const enum gate_kind k = gate_of(o);

    if (o->kind == SOFTMAX)
        softmax_backward(o, r);
    else if (o->kind == NLL)
        backend_ref.ops.nll_grad(&(struct nll_grad){.d_logits = r->d_x,
                                                    .logits = o->x,
                                                    MEMBERS(o->, target, rows, n),
                                                    .scale = 0.25f,
                                                    .threads = 1});
    else
        backend_ref.ops.gate_grad(&(struct gate_grad){
            k, r->d_x, has_y(k) ? r->d_y : NULL, r->d_a, has_c(k) ? r->d_c : NULL,
            has_b(k) ? r->d_bias : NULL, o->d_out, o->x, has_y(k) ? o->y : NULL, o->a,
            has_c(k) ? o->c : NULL, has_b(k) ? o->bias : NULL, o->ld, o->rows, o->n, 1});
}

/* ---- the reference is the derivative ------------------------------------------------------ */

static double value(void *ctx)
{
    const struct operands_of *o = ctx;
    float *out = fenced(o->size);
    double sum = 0;

    forward(o, out);
    for (int i = 0; i < o->rows; i++) {
        if (o->kind == NLL)
            sum += 0.25 * (double)out[i];
        for (int j = 0; o->kind != NLL && j < o->n; j++) {
            const int at = i * o->n + j;
            const int r = i * o->n_rel + clamp_int(j + o->shift - i, 0, o->n_rel - 1);
            const double rel = o->kind == SOFTMAX ? (double)o->rel[r] : 0;
            sum += (double)out[at] * ((double)o->d_out[at] + rel);
        }
    }
    return sum;
}

static void differentiate(enum kind kind, int rows, int n)
{
    struct operands_of o;
    struct results r;

    make(&o, kind, rows, n);
    make_results(&r, &o);
    backward(&o, &r);
    /* Each of rows n outputs, some 4 in size, is stored once, U relative. Gradients are rounded
     * once; sums cancel a little. */
    const struct scalar f = {value, &o, U * 4 * rows * n, 0};
    const double relative = 16 * U, absolute = 2 * f.noise / FINITE_STEP;
    const enum gate_kind k = gate_of(&o);
#define CHECK_GRADIENT(operand, grad, size)                                                        \
    expect_gradient(&f, kept_text("kind %d %s %dx%d", kind, #operand, rows, n), o.operand, r.grad, \
                    size, relative, absolute)
    CHECK_GRADIENT(x, d_x, o.size);
    if (kind >= GATE && has_b(k))
        CHECK_GRADIENT(bias, d_bias, o.columns);
    if (kind >= GATE)
        CHECK_GRADIENT(a, d_a, o.wide);
    if (kind >= GATE && has_y(k))
        CHECK_GRADIENT(y, d_y, o.size);
    if (kind >= GATE && has_c(k))
        CHECK_GRADIENT(c, d_c, o.wide);
    expect_guards(&r, &o);
}

Test(grad_rows, reference_is_the_derivative)
{
    static const int sizes[][2] = {{1, 1}, {1, 7}, {5, 2}, {6, 13}};

    for (enum kind kind = 0; kind < KINDS; kind++)
        for (size_t s = 0; s < ARRAY_LEN(sizes); s++)
            differentiate(kind, sizes[s][0], sizes[s][1]);
}

/* The gradient of scale (nll + z lse^2), by differences in double: of values around 1 with a step
 * of h the error is h^2 for the difference and 1e-7 for floats. */
Test(grad_rows, z_loss_is_its_derivative)
{
    enum { ROWS = 3, COLUMNS = 21 };
    static const int32_t target[ROWS] = {0, 20, 7};
    const double h = 1e-4, z = 0.3, scale = 0.5;
    float x[ROWS * COLUMNS], d[ROWS * COLUMNS];

    rng_normal(x, ROWS * COLUMNS, 5, 1, 0, 1);
    backend_ref.ops.nll_grad(&(struct nll_grad){.d_logits = d,
                                                .logits = x,
                                                .target = target,
                                                .scale = (float)scale,
                                                .z = (float)z,
                                                .rows = ROWS,
                                                .n = COLUMNS,
                                                .threads = 1});
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++) {
            double loss[2];
            for (int side = 0; side < 2; side++) {
                double sum = 0;
                for (int k = 0; k < COLUMNS; k++)
                    sum += exp((double)x[i * COLUMNS + k] + (k == j ? (2 * side - 1) * h : 0));
                const double at =
                    (double)x[i * COLUMNS + target[i]] + (target[i] == j ? (2 * side - 1) * h : 0);
                loss[side] = scale * (log(sum) - at + z * log(sum) * log(sum));
            }
            cr_expect_float_eq(d[i * COLUMNS + j], (loss[1] - loss[0]) / (2 * h), 1e-6, "%d %d", i,
                               j);
        }
}
