/* SPDX-License-Identifier: MIT
 *
 * Cases of products, alone and with what follows them: shapes around tiles, steps of k and few
 * rows, every permitted place of the result, constant operands as they are and packed. */
#include "op_inner.h"

enum { TA = 1, TB = 2, HALF = 4, ADDS = 8, PACKED = 16, MODES = 32 };

static void make_product(struct trial *t, const int shape[3], int mode, int gap)
{
    const int m = shape[0], n = shape[1], k = shape[2];
    struct gemm *g = &t->a.gemm;

    *g = (struct gemm){.ta = mode & TA,
                       .tb = mode & TB,
                       .m = m,
                       .n = n,
                       .k = k,
                       .alpha = mode & HALF ? 0.5f : 1.0f,
                       .beta = mode & ADDS ? -0.75f : 0.0f,
                       .ldc = n};
    g->lda = (g->ta ? m : k) + 3 * gap;
    g->ldb = (g->tb ? k : n) + gap;
    g->a = operand(t, (size_t)((g->ta ? k : m) * g->lda + 1), "a", 0, 1);
    g->b = operand(t, (size_t)((g->tb ? n : k) * g->ldb + 1), "b", 0, 1);
    t->packs = mode & PACKED;
}

/* Its own form of b. A library's own ReLU may make 0 of a NaN. */
static void product_subject(struct trial *t)
{
    const struct engine *s = t->subject;
    const struct gemm *g = &t->a.gemm;
    const size_t floats = t->packs && s->packed_floats ? s->packed_floats(g) : 0;

    t->packed = floats ? constant(t, floats, 0) : NULL;
    if (floats)
        s->pack(t->packed, g);
    t->out[0].zero_for_nan = s->backend->config && t->a.act.kind == ACT_RELU;
}

/* `c` before the product: beta = 0 never reads it. */
static float *old_c(struct trial *t, size_t n)
{
    return t->a.gemm.beta != 0 ? operand(t, n, "old", 0, 1) : constant(t, n, NAN);
}

static struct gemm product_of(const struct engine *e, const struct trial *t, float *c)
{
    struct gemm g = t->a.gemm;

    g.c = c;
    g.threads = e->threads;
    g.room = e->room;
    g.b_packed = t->is_subject ? t->packed : NULL;
    return g;
}

/* ---- gemm ------------------------------------------------------------------------------------ */

static const int gemm_shapes[][3] = {
    {1, 1, 1},    {1, 37, 5},    {2, 5, 64},   {3, 4, 17},     {8, 19, 33},   {9, 16, 16},
    {7, 33, 1},   {13, 15, 100}, {14, 32, 8},  {15, 31, 257},  {37, 65, 300}, {6, 17, 600},
    {120, 48, 9}, {113, 530, 3}, {1, 600, 70}, {129, 120, 40}, {5, 3, 0},     {64, 96, 258},
};
enum { GEMM_CASES = MODES * ARRAY_LEN(gemm_shapes) };
static const int gemm_large[][3] = {{1, 2048, 512}, {128, 512, 512}, {512, 512, 512}};

static void gemm_make(struct trial *t, int at)
{
    const bool large = at >= GEMM_CASES;
    const int mode = large ? TB : at % MODES;
    const int *shape = large ? gemm_large[at - GEMM_CASES] : gemm_shapes[at / MODES];

    make_product(t, shape, mode, !large);
    t->a.gemm.ldc += large ? 0 : 2;
    const size_t n = (size_t)(shape[0] * t->a.gemm.ldc);
    output(t, "c", n, old_c(t, n));
    snprintf(t->name, sizeof(t->name), "m, n, k = %d, %d, %d, mode %d", shape[0], shape[1],
             shape[2], mode);
}

static void gemm_run(const struct engine *g, struct trial *t, float *const *out)
{
    const struct gemm o = product_of(g, t, out[0]);

    if (o.rounds && !g->can_round)
        fail(&t->refusal, E_UNSUPPORTED, "does not round both operands of its products");
    else
        g->ops.gemm(&o);
}

static void gemm_bounds(struct trial *t)
{
    const struct gemm *g = &t->a.gemm;

    for (int i = 0; i < g->m; i++)
        for (int j = 0; j < g->n; j++) {
            const ptrdiff_t at = i * g->ldc + j;
            const double old = g->beta != 0 ? (double)t->out[0].first[at] : 0;
            t->out[0].bound[at] = product_bound(g, old, i, j);
        }
}

/* ---- of floats that are rounded -------------------------------------------------------------- */

enum { ROUNDED_MODES = PACKED, ROUNDED_CASES = ROUNDED_MODES * ARRAY_LEN(gemm_shapes) };

static void rounded_make(struct trial *t, int at)
{
    const bool large = at >= ROUNDED_CASES;

    gemm_make(t, large ? at - ROUNDED_CASES + 1 + GEMM_CASES
                       : at / ROUNDED_MODES * MODES + at % ROUNDED_MODES);
    t->a.gemm.rounds = true;
}

/* ---- weights of a narrower type -------------------------------------------------------------- */

enum { NARROW_MODES = 4 }; /* HALF and ADDS, each or not */
enum { NARROW_CASES = NARROW_MODES * ARRAY_LEN(gemm_shapes) };
static const int narrow_large[][3] = {{1, 4096, 4096}, {128, 512, 512}, {512, 512, 512}};

static void narrow_make(struct trial *t, int at)
{
    const enum elem elem = t->elem;
    const bool large = at >= NARROW_CASES;
    const int mode = TB | (large ? 0 : HALF * (at % NARROW_MODES));
    const int *shape = large ? narrow_large[at - NARROW_CASES] : gemm_shapes[at / NARROW_MODES];
    const int n = shape[1], k = shape[2];
    const size_t row = elem_row_bytes(elem, k);

    make_product(t, shape, mode, !large);
    struct gemm *const g = &t->a.gemm;
    char *const to = (char *)constant(t, (size_t)n * row / sizeof(float) + 1, 0);
    for (int j = 0; j < n; j++)
        elem_narrow(elem, to + (size_t)j * row, g->b + j * g->ldb, k);
    g->b = NULL;
    g->elem = elem;
    g->b_narrow = to;
    const size_t size = (size_t)(shape[0] * g->ldc);
    output(t, "c", size, old_c(t, size));
    snprintf(t->name, sizeof(t->name), "m, n, k = %d, %d, %d, mode %d", shape[0], n, k, mode);
}

/* The first number of each block of b becomes -128: rounding gives none, but a block can hold it. */
static void plant_least(struct gemm *g)
{
    const int blocks = (g->k + Q8_BLOCK - 1) / Q8_BLOCK;
    struct q8_block *const b = (struct q8_block *)(uintptr_t)g->b_narrow;

    for (ptrdiff_t i = 0; i < (ptrdiff_t)g->n * blocks; i++)
        b[i].q[0] = INT8_MIN;
}

static void int8_make(struct trial *t, int at)
{
    narrow_make(t, at);
    if (t->elem == ELEM_Q8 && at % 2)
        plant_least(&t->a.gemm);
    t->a.gemm.quantises = true;
    t->packs = at % 3 > 0;
}

/* ---- with an activation ---------------------------------------------------------------------- */

/* m, n, k; the last two are large enough for a second thread. */
static const int shapes[][3] = {
    {1, 1, 1},    {1, 37, 5},   {2, 8, 64},    {3, 17, 257},  {4, 31, 16},  {5, 32, 255},
    {6, 33, 9},   {7, 15, 256}, {8, 65, 33},   {9, 16, 16},   {10, 47, 19}, {11, 7, 30},
    {12, 24, 2},  {13, 48, 12}, {14, 32, 8},   {15, 30, 0},   {16, 63, 21}, {17, 33, 520},
    {115, 40, 3}, {9, 530, 6},  {40, 70, 258}, {3, 600, 300},
};
enum { N_SHAPES = ARRAY_LEN(shapes) };
enum { WITH_BIAS = 1, WITH_ADD = 2, WITH_RELU = 4, ACT_MODES = 8 };
enum { OVER_C, OVER_ADD, APART, PLACES };
static const int act_large[3] = {128, 2048, 512};

/* Every mode of the product is combined with every shape and every epilogue, but not each pair of
 * modes and epilogues. */
static int product_mode(int shape, int ending)
{
    static const int modes[] = {TB, TB | HALF | ADDS, 0, HALF | ADDS, TB | ADDS, ADDS};
    const int turn = (5 * shape + 3 * ending) % 12;

    return modes[turn % 6] | (turn >= 6 ? PACKED : 0);
}

static void act_make(struct trial *t, int at)
{
    static const float factor = -0.75f;
    const bool large = at >= N_SHAPES * ACT_MODES * PLACES;
    const int ending = large ? WITH_BIAS | WITH_RELU : pick(&at, ACT_MODES * PLACES);
    const int *shape = large ? act_large : shapes[at];
    const int mode = large ? TB : product_mode(at, ending);
    const size_t n = (size_t)shape[1], size = (size_t)shape[0] * n;

    make_product(t, shape, mode, 0);
    t->mode = ending % ACT_MODES;
    t->kind = ending / ACT_MODES;
    float *bias = operand(t, n, "bias", 0, 1);
    bias[n / 2] = NAN;
    t->a.act = (struct act){.kind = t->mode & WITH_RELU ? ACT_RELU : ACT_NONE,
                            .bias = t->mode & WITH_BIAS ? bias : NULL,
                            .add = t->mode & WITH_ADD ? operand(t, size, "add", 0, 1) : NULL,
                            .factor = large || (at + ending) % 3 ? NULL : &factor,
                            .rows = shape[0],
                            .n = shape[1]};
    const float *old = old_c(t, size);
    output(t, "y", size, t->kind == OVER_C ? old : t->kind == OVER_ADD ? t->a.act.add : NULL);
    if (t->kind != OVER_C)
        output(t, "c", size, old);
    snprintf(t->name, sizeof(t->name), "m, n, k = %d, %d, %d, product %d, act %d, place %d",
             shape[0], shape[1], shape[2], mode, t->mode, t->kind);
}

static void act_run(const struct engine *g, struct trial *t, float *const *out)
{
    const struct gemm p = product_of(g, t, out[t->kind != OVER_C]);
    struct act o = t->a.act;

    o.x = p.c;
    o.y = out[0];
    o.threads = p.threads;
    if (t->kind == OVER_ADD && o.add)
        o.add = out[0];
    engine_gemm_act(g, &p, &o);
}

/* The product's bound; bias, factor, which is below 1, add and the reference's two stores round once
 * each. */
static void act_bounds(struct trial *t)
{
    const struct gemm *g = &t->a.gemm;
    const struct act *o = &t->a.act;
    const struct output *c = &t->out[t->kind != OVER_C];

    for (size_t i = 0; t->kind != OVER_C && i < c->n; i++) /* what is left in c is nobody's */
        c->bound[i] = INFINITY;
    for (int i = 0; i < g->m; i++)
        for (int j = 0; j < g->n; j++) {
            const int at = i * g->n + j;
            const double was = g->beta != 0 ? (double)c->first[at] : 0;
            const double bias = o->bias ? fabs((double)o->bias[j]) : 0;
            const double add = o->add ? fabs((double)o->add[at]) : 0;
            const double product = product_bound(g, was, i, j);
            t->out[0].bound[at] = product + 5 * (product / (g->k + 4) + U * (bias + add)) +
                                  4 * U * fabs((double)g->beta * was);
        }
}

/* ---- with a gate ----------------------------------------------------------------------------- */

/* Pre-activations [m, ld]: a first, then c if the kind has one, then a gap. The product fills the
 * last of them; if that is a, it has a few columns more than the gate. */
enum { N_GATES = GATE_UPDATE + 1, GAP = 3, MORE = 5 };

static bool has_c(int k) { return k == GATE_SIGTANH || k == GATE_UPDATE; }

/* Where the product lies in a row of pre-activations. */
static int column_of(const struct trial *t) { return has_c(t->kind) ? t->a.gate.n : 0; }

static void gate_make(struct trial *t, int at)
{
    const int mode = pick(&at, 2 * N_GATES), product = product_mode(at, mode);
    const int *shape = shapes[at], m = shape[0], n = shape[1];
    const int more = has_c(mode % N_GATES) ? 0 : MORE, wide[] = {m, n + more, shape[2]};
    const size_t size = (size_t)m * (size_t)n;

    t->kind = mode % N_GATES;
    t->over = mode >= N_GATES;
    make_product(t, wide, product, 0);
    t->a.gemm.ldc = t->ld = has_c(t->kind) ? 2 * n + GAP : n + more + GAP;
    t->a.gate = (struct gate_op){.kind = (enum gate_kind)t->kind,
                                 .x = operand(t, size, "x", 0, 1),
                                 .y = operand(t, size, "y", 0, 1),
                                 .b = operand(t, (size_t)n, "bias", 0, 1),
                                 .ld = t->ld,
                                 .rows = m,
                                 .n = n};
    output(t, "out", size, t->a.gate.x);
    output(t, "pre", (size_t)(m * t->ld), operand(t, (size_t)(m * t->ld), "pre", 0, 1));
    snprintf(t->name, sizeof(t->name), "m, n, k = %d, %d, %d, product %d, gate %d%s", m, n,
             shape[2], product, t->kind, t->over ? " in place" : "");
}

static void gate_run(const struct engine *g, struct trial *t, float *const *out)
{
    const struct gemm p = product_of(g, t, out[1] + column_of(t));
    struct gate_op o = t->a.gate;

    o.out = out[0];
    o.x = t->in_place ? out[0] : o.x;
    o.a = out[1];
    o.c = has_c(t->kind) ? out[1] + o.n : NULL;
    o.threads = p.threads;
    engine_gemm_gate(g, &p, &o);
}

/* The gate amplifies the product's error at most (|x| + |y| + 1)-fold, the slopes of sigma and tanh
 * being 1/4 and 1; its own rounding is that of the row operation. */
static void gate_bounds(struct trial *t)
{
    const struct gemm *g = &t->a.gemm;
    const struct gate_op *o = &t->a.gate;
    const struct output *pre = &t->out[1];

    for (int i = 0; i < g->m; i++)
        for (int j = 0; j < g->n; j++) {
            const ptrdiff_t row = i * t->ld, in_pre = row + j + column_of(t), at = i * o->n + j;
            const double product = product_bound(g, (double)pre->first[in_pre], i, j);
            pre->bound[in_pre] = product;
            if (j >= o->n)
                continue;
            const double arg = fabs((double)pre->want[row + j]) + fabs((double)o->b[j]);
            t->out[0].bound[at] =
                (product + U * (arg + 18)) * (fabs((double)o->x[at]) + fabs((double)o->y[at]) + 1);
        }
}

/* A backend without the fused form runs the two one after the other. */
static bool has_act(const struct engine *g) { return g->backend->gemm_act != NULL; }
static bool has_gate(const struct engine *g) { return g->backend->gemm_gate != NULL; }

/* Of weights that have `bytes` each. */
#define NARROW_ROW(text, type, maker, bytes)                                                       \
    {                                                                                              \
        .name = text, .op = OP_gemm, .cases = NARROW_CASES, .elem = type, .make = maker,           \
        .run = gemm_run, .bounds = gemm_bounds,                                                    \
        .timing = {{"1x4096x4096", "GB/s", (bytes)*1e-9 * 4096 * 4096},                            \
                   {"128x512x512", "GFLOP/s", 2e-9 * 128 * 512 * 512},                             \
                   {"512x512x512", "GFLOP/s", 2e-9 * 512 * 512 * 512}},                            \
    }

const struct op_row op_products[PRODUCT_ROWS] = {
    {"gemm", OP_gemm, GEMM_CASES, gemm_make, gemm_run, gemm_bounds, .subject = product_subject,
     .timing = {{"1x2048x512", "GFLOP/s", 2e-9 * 2048 * 512},
                {"128x512x512", "GFLOP/s", 2e-9 * 128 * 512 * 512},
                {"512x512x512", "GFLOP/s", 2e-9 * 512 * 512 * 512}}},
    {"gemm_rounded", OP_gemm, ROUNDED_CASES, rounded_make, gemm_run, gemm_bounds,
     .timing = {{"128x512x512", "GFLOP/s", 2e-9 * 128 * 512 * 512},
                {"512x512x512", "GFLOP/s", 2e-9 * 512 * 512 * 512}}},
    NARROW_ROW("gemm_bf16", ELEM_BF16, narrow_make, 2),
    NARROW_ROW("gemm_q8", ELEM_Q8, narrow_make, 1.125),
    NARROW_ROW("gemm_int8", ELEM_Q8, int8_make, 1.125),
    NARROW_ROW("gemm_q4", ELEM_Q4, narrow_make, 0.625),
    NARROW_ROW("gemm_int8_q4", ELEM_Q4, int8_make, 0.625),
    NARROW_ROW("gemm_q4_1", ELEM_Q4_1, narrow_make, 0.75),
    NARROW_ROW("gemm_int8_q4_1", ELEM_Q4_1, int8_make, 0.75),
    {"gemm_act", -1, N_SHAPES *ACT_MODES *PLACES, act_make, act_run, act_bounds,
     .subject = product_subject, .has = has_act,
     .timing = {{"128x2048x512 relu", "GFLOP/s", 2e-9 * 128 * 2048 * 512}}},
    {"gemm_gate", -1, N_SHAPES * 2 * N_GATES, gate_make, gate_run, gate_bounds,
     .subject = product_subject, .has = has_gate},
};
