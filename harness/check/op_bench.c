/* SPDX-License-Identifier: MIT
 *
 * One table of operations and shapes, each run by two engines in turns. The number is the fastest
 * of the turns: it says what the code can do, not what a user will see; sweeps measure that. */
#include "op_bench.h"

#include "harness/machine/clock.h"

#include "variants/base/rng.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Operands of every case; the largest is a product of 512 rows with a [2048,512] weight. */
struct bench_data {
    float *a, *b, *c, *d, *e; /* [N_FLOATS] */
    int32_t *target;
    void *scratch;
};
enum { N_FLOATS = 1 << 20, SCRATCH_BYTES = 64 << 20, SIDE = 512 };

struct op_case {
    const char *op, *shape, *unit;
    double work; /* of one call, in units of 1e9 */
    void (*run)(const struct engine *g, const struct bench_data *x);
};

static void run_gemm(const struct engine *g, const struct bench_data *x, int m, int n, int k)
{
    g->ops.gemm(&(struct gemm){.tb = true,
                               .m = m,
                               .n = n,
                               .k = k,
                               .alpha = 1,
                               .a = x->a,
                               .lda = k,
                               .b = x->b,
                               .ldb = k,
                               .c = x->c,
                               .ldc = n,
                               .threads = 1});
}

static void gemm_one(const struct engine *g, const struct bench_data *x)
{
    run_gemm(g, x, 1, 2048, SIDE);
}

static void gemm_128(const struct engine *g, const struct bench_data *x)
{
    run_gemm(g, x, 128, SIDE, SIDE);
}

static void gemm_512(const struct engine *g, const struct bench_data *x)
{
    run_gemm(g, x, SIDE, SIDE, SIDE);
}

static void softmax_causal(const struct engine *g, const struct bench_data *x)
{
    memcpy(x->c, x->a, sizeof(float) * SIDE * SIDE);
    g->ops.softmax(&(struct softmax){
        .s = x->c, .ld = SIDE, .rows = SIDE, .cols = SIDE, .hi = 1, .hi_slope = 1, .threads = 1});
}

static void norm_rows(const struct engine *g, const struct bench_data *x)
{
    g->ops.norm(&(struct norm){.y = x->c,
                               .x = x->a,
                               .weight = x->d,
                               .bias = x->e,
                               .rows = SIDE,
                               .n = SIDE,
                               .eps = 1e-5f,
                               .threads = 1});
}

static void act_relu(const struct engine *g, const struct bench_data *x)
{
    g->ops.act(&(struct act){.kind = ACT_RELU,
                             .y = x->c,
                             .x = x->a,
                             .bias = x->d,
                             .rows = SIDE,
                             .n = SIDE,
                             .threads = 1});
}

static void gate_update(const struct engine *g, const struct bench_data *x)
{
    g->ops.gate(&(struct gate_op){.kind = GATE_UPDATE,
                                  .out = x->c,
                                  .x = x->a,
                                  .a = x->b,
                                  .c = x->d,
                                  .b = x->e,
                                  .ld = SIDE,
                                  .rows = SIDE,
                                  .n = SIDE,
                                  .threads = 1});
}

static void nll_bytes(const struct engine *g, const struct bench_data *x)
{
    g->ops.nll(&(struct nll_op){
        .nll = x->c, .logits = x->a, .target = x->target, .rows = SIDE, .n = 256, .threads = 1});
}

/* 8 heads of 64, causal, as the attn workload; xl adds a table of all distances. */
static struct attn attention(const struct bench_data *x, bool relative)
{
    enum { H = 8, DH = 64, L = 256 };
    const struct stride at = {.batch = L * H * DH, .row = H * DH};

    return (struct attn){.B = 1,
                         .H = H,
                         .Hkv = H,
                         .L = L,
                         .dh = DH,
                         .causal = true,
                         .scale = 0.125f,
                         .q = x->a,
                         .k = x->b,
                         .v = x->d,
                         .q_at = at,
                         .k_at = at,
                         .v_at = at,
                         .o_at = at,
                         .o = x->c,
                         .R = relative ? L : 0,
                         .rel_head = relative ? L * DH : 0,
                         .rel_k = relative ? x->e : NULL};
}

static void attend(const struct engine *g, const struct bench_data *x, bool relative)
{
    const struct attn a = attention(x, relative);
    const struct attn_impl *impl;
    struct err e;

    if (engine_attn(g, &a, &impl, &e) != OK)
        return;
    const struct attn_need need = impl->need(&a, 1);
    CHECK(need.scores_bytes + need.scratch_bytes <= SCRATCH_BYTES);
    impl->forward(g, &a, x->scratch);
}

static void attn_plain(const struct engine *g, const struct bench_data *x) { attend(g, x, false); }

static void attn_relative(const struct engine *g, const struct bench_data *x)
{
    attend(g, x, true);
}

static const struct op_case cases[] = {
    {"gemm", "1x2048x512", "GFLOP/s", 2e-9 * 2048 * SIDE, gemm_one},
    {"gemm", "128x512x512", "GFLOP/s", 2e-9 * 128 * SIDE *SIDE, gemm_128},
    {"gemm", "512x512x512", "GFLOP/s", 2e-9 * SIDE *SIDE *SIDE, gemm_512},
    {"softmax", "512 causal rows", "Gelem/s", 0.5e-9 * SIDE *(SIDE + 1), softmax_causal},
    {"norm", "512x512", "Gelem/s", 1e-9 * SIDE *SIDE, norm_rows},
    {"act", "512x512 relu", "Gelem/s", 1e-9 * SIDE *SIDE, act_relu},
    {"gate", "512x512 update", "Gelem/s", 1e-9 * SIDE *SIDE, gate_update},
    {"nll", "512x256", "Gelem/s", 1e-9 * SIDE * 256, nll_bytes},
    {"attn", "256 keys", "GFLOP/s", 4e-9 * 8 * 64 * 256 * 257 / 2, attn_plain},
    {"attn", "256 keys, relative", "GFLOP/s", 6e-9 * 8 * 64 * 256 * 257 / 2, attn_relative},
};

static double time_once(const struct op_case *c, const struct engine *g, const struct bench_data *x)
{
    const int64_t start = clock_wall_ns();

    c->run(g, x);
    return (double)(clock_wall_ns() - start);
}

/* Does `b` do this itself, or does it only pass on what it inherits? */
static bool own(const struct engine *g, const struct op_case *c)
{
    for (int op = 0; op < OP_COUNT; op++)
        if (strcmp(op_name[op], c->op) == 0)
            return strcmp(g->from[op], g->backend->name) == 0;
    return g->backend->attn != NULL;
}

static void compare(const struct op_case *c, const struct engine *g, const struct engine *parent,
                    const struct bench_data *x)
{
    enum { TURNS = 15 };
    double best = INFINITY, base = INFINITY;

    for (int t = 0; t < TURNS; t++) {
        best = fmin(best, time_once(c, g, x));
        if (t < 3 || base < 1e7) /* the reference takes its time; three turns of it are enough */
            base = fmin(base, time_once(c, parent, x));
    }
    printf("%-9s %-8s %-20s %8.2f %s  %6.2fx %s\n", g->backend->name, c->op, c->shape,
           c->work / best * 1e9, c->unit, base / best, parent->backend->name);
}

void op_bench(const struct backend *b)
{
    const struct backend *parent = backend_parent(b);
    struct engine g, p;
    struct err e;
    struct bench_data x;
    float **const arrays[] = {&x.a, &x.b, &x.c, &x.d, &x.e};

    if (!parent || engine_open(&p, parent->name, 1, NULL, &e) != OK ||
        engine_open(&g, b->name, 1, NULL, &e) != OK)
        return;
    for (size_t i = 0; i < ARRAY_LEN(arrays); i++) {
        *arrays[i] = aligned_alloc(64, N_FLOATS * sizeof(float));
        CHECK(*arrays[i]);
        rng_normal(*arrays[i], N_FLOATS, 1, i, 0, 1);
    }
    x.target = calloc(SIDE, sizeof(*x.target));
    x.scratch = aligned_alloc(64, SCRATCH_BYTES);
    CHECK(x.target && x.scratch);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        if (own(&g, &cases[i]))
            compare(&cases[i], &g, &p, &x);
    for (size_t i = 0; i < ARRAY_LEN(arrays); i++)
        free(*arrays[i]);
    free(x.target);
    free(x.scratch);
}
