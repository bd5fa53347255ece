/* SPDX-License-Identifier: MIT
 *
 * What narrower numbers make of attention: a layer with bf16 weights, and caches of bf16 and of 8
 * bits, in double with the roundings written out. The reference shares the code that rounds, so it
 * cannot judge it. Inputs and weights have so few bits that projections are exact floats: what is
 * rounded is then the same number on both sides. */
#include "tests/support/alone.h"
#include "tests/support/in_double.h"
#include "tests/support/kernel/simd.h"

enum { D = 8, H = 4, HKV = 2, DH = 3, F = 8, T = 13, Q = H * DH, KV = HKV * DH };

struct rounded_form {
    enum elem dtype, kv;
    enum mem_kind kind;
    int L; /* tokens of a segment */
};

/* ---- the layer by hand --------------------------------------------------------------------- */

/* To 8 bits, ties to even. */
static double to_bf16(double x)
{
    int exponent;
    const double fraction = frexp(x, &exponent);

    return ldexp(rint(ldexp(fraction, 8)), exponent - 8);
}

/* A head of n numbers: 127 steps are the largest. */
static void to_q8(double *x, int n)
{
    double most = 0;

    for (int e = 0; e < n; e++)
        most = fmax(most, fabs(x[e]));
    const double step = (double)(float)(most / 127);
    for (int e = 0; e < n && step > 0; e++)
        x[e] = (double)(float)(step * rint(x[e] / step));
}

static void narrowed(double *x, enum elem elem)
{
    for (int e = 0; e < KV && elem == ELEM_BF16; e++)
        x[e] = to_bf16(x[e]);
    for (int h = 0; h < HKV && elem == ELEM_Q8; h++)
        to_q8(x + h * DH, DH);
}

struct weights {
    float q[Q * D], k[KV * D], v[KV * D], o[D * Q];
};

/* A matrix in the type of weights: in 8 bits a row is a block. */
static void held(float *W, int rows, int n, enum elem elem)
{
    for (int r = 0; r < rows; r++) {
        double row[Q];
        for (int e = 0; e < n; e++)
            row[e] = (double)W[r * n + e];
        if (elem == ELEM_Q8)
            to_q8(row, n);
        for (int e = 0; e < n; e++)
            W[r * n + e] = (float)(elem == ELEM_BF16 ? to_bf16(row[e]) : row[e]);
    }
}

/* x + W_o attn(x), causal; *size: of the largest sum. */
static void by_hand(double y[T][D], const float *x, const struct weights *drawn,
                    const struct rounded_form *f, double *size)
{
    const enum elem of_rows = f->kv != ELEM_F32       ? f->kv
                              : f->dtype == ELEM_BF16 ? ELEM_BF16
                                                      : ELEM_F32;
    double q[T][Q], k[T][KV], v[T][KV];
    struct weights copy = *drawn, *const w = &copy;

    held(w->q, Q, D, f->dtype), held(w->k, KV, D, f->dtype), held(w->v, KV, D, f->dtype);
    held(w->o, D, Q, f->dtype);
    *size = 0;
    for (int t = 0; t < T; t++) {
        double row[D], o[Q];
        for (int e = 0; e < D; e++) {
            row[e] = (double)x[t * D + e];
            if (f->dtype == ELEM_BF16)
                row[e] = to_bf16(row[e]);
        }
        affine(q[t], w->q, NULL, row, Q, D), affine(k[t], w->k, NULL, row, KV, D);
        affine(v[t], w->v, NULL, row, KV, D);
        for (int e = 0; e < Q && f->dtype == ELEM_BF16; e++)
            q[t][e] = to_bf16(q[t][e]);
        narrowed(k[t], of_rows), narrowed(v[t], of_rows);
        for (int h = 0; h < H; h++) {
            const int of = h / (H / HKV) * DH;
            double sum = 0, p[T], head[DH] = {0};
            for (int j = 0; j <= t; j++) {
                double score = 0;
                for (int e = 0; e < DH; e++)
                    score += q[t][h * DH + e] * k[j][of + e];
                p[j] = exp(score / sqrt(DH));
                sum += p[j];
            }
            for (int j = 0; j <= t; j++)
                for (int e = 0; e < DH; e++)
                    head[e] += p[j] / sum * v[j][of + e];
            for (int e = 0; e < DH; e++)
                o[h * DH + e] = f->dtype == ELEM_BF16 ? to_bf16(head[e]) : head[e];
        }
        affine(y[t], w->o, NULL, o, D, Q);
        for (int e = 0; e < D; e++) {
            y[t][e] += (double)x[t * D + e];
            *size = fmax(*size, fabs(y[t][e]));
        }
    }
}

/* ---- the layer ----------------------------------------------------------------------------- */

/* Eleven bits from -1 to 1, more than bf16 has: products of two have 20, sums of them 23. */
static void draw(float *w, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        w[i] = (float)((int)(rng_u32(SEED, rng_stream(name), i) % 2047) - 1023) / 1024;
}

static void set(struct alone *t, const char *name, const float *w)
{
    struct param *const p = (struct param *)params_find(&t->p, name);

    cr_assert(p, "no %s", name);
    param_set(p, w);
}

static void open_layer(struct alone *t, const struct rounded_form *f, const char *backend,
                       const struct weights *w)
{
    static const float zeros[D * (Q + F)];

    *t = (struct alone){.g = open_engine(backend, 1),
                        .c = config_default(variant_find("nope"), D, H, DH, F, 1, 0),
                        .max = {1, f->L, f->kind == MEM_KV ? T : 0},
                        .kind = f->kind};
    t->c.wiring = WIRING_REZERO;
    t->c.kv_heads = HKV;
    t->c.dtype = f->dtype, t->c.kv_dtype = f->kv;
    MUST(config_check(&t->c, &failure));
    sublayers_init(&t->list, &t->c, &t->p, 0);
    MUST(params_hold(&t->p, f->dtype, ROWS_F32, &t->g, &failure));
    alone_place(t);
    for (int i = 0; i < t->p.n; i++) /* no feed-forward network */
        param_set(&t->p.v[i], zeros);
    set(t, "layers.0.attn.q.weight", w->q), set(t, "layers.0.attn.k.weight", w->k);
    set(t, "layers.0.attn.v.weight", w->v), set(t, "layers.0.attn.o.weight", w->o);
    set(t, "layers.0.alpha", (const float[]){1});
    sublayers_forget(&t->list);
    sublayers_build_tables(&t->list, &t->g);
}

static void run_layer(struct alone *t, const struct rounded_form *f, const float *x, float *z)
{
    for (int at = 0; at < T; at += f->L) {
        const int n = min_int(f->L, T - at);
        float *const to = sublayers_input(&t->list, z + at * D);
        memcpy(to, x + at * D, sizeof(float) * (size_t)(n * D));
        sublayers_forward(&t->list, &t->g, z + at * D, to, 1, n);
        sublayers_commit(&t->list, n);
    }
}

static double furthest(double a[T][D], double b[T][D])
{
    double most = 0;

    for (int t = 0; t < T; t++)
        for (int e = 0; e < D; e++)
            most = fmax(most, fabs(a[t][e] - b[t][e]));
    return most;
}

/* Sums of at most T and Q terms in float, an exponential, and what they are divided by. What is
 * left of a rounding that is forgotten is far above it. */
static void expect_layer(const struct rounded_form *f, const char *backend)
{
    const struct rounded_form plain = {ELEM_F32, ELEM_F32, f->kind, f->L};
    struct weights w;
    struct alone t;
    float x[T * D], z[T * D];
    double want[T][D], unrounded[T][D], got[T][D], size;

    draw(w.q, Q * D, "q"), draw(w.k, KV * D, "k"), draw(w.v, KV * D, "v"), draw(w.o, D * Q, "o");
    draw(x, T * D, "x");
    open_layer(&t, f, backend, &w);
    run_layer(&t, f, x, z);
    by_hand(unrounded, x, &w, &plain, &size);
    by_hand(want, x, &w, f, &size);
    for (int i = 0; i < T * D; i++)
        got[i / D][i % D] = (double)z[i];
    const double bound = 64 * U * size;
    cr_expect_leq(furthest(got, want), bound, "%s, %s with a cache of %s, segments of %d: %g of %g",
                  backend, elem_name[f->dtype], elem_name[f->kv], f->L, furthest(got, want), bound);
    if (f->dtype != ELEM_F32 || f->kv != ELEM_F32)
        cr_expect_gt(furthest(got, unrounded), 20 * bound, "rounding shows");
}

static const struct rounded_form forms[] = {
    {ELEM_F32, ELEM_F32, MEM_KV, 3},        {ELEM_BF16, ELEM_F32, MEM_RECOMPUTE, T},
    {ELEM_BF16, ELEM_BF16, MEM_KV, 1},      {ELEM_BF16, ELEM_BF16, MEM_KV, 4},
    {ELEM_F32, ELEM_BF16, MEM_KV, 1},       {ELEM_F32, ELEM_BF16, MEM_KV, 5},
    {ELEM_F32, ELEM_Q8, MEM_KV, 1},         {ELEM_F32, ELEM_Q8, MEM_KV, 4},
    {ELEM_F32, ELEM_F32, MEM_RECOMPUTE, T}, {ELEM_Q8, ELEM_F32, MEM_RECOMPUTE, T},
    {ELEM_Q8, ELEM_F32, MEM_KV, 2},
};

/* Those whose kernels do not round the probabilities, too. */
Test(rounding, of_attention, .timeout = 240)
{
    EACH_TEXT (name, "ref", SIMD_LEVELS)
        for (size_t i = 0; i < ARRAY_LEN(forms); i++)
            if (backend_find(name) && backend_usable(backend_find(name), NULL) == OK)
                expect_layer(&forms[i], name);
}
