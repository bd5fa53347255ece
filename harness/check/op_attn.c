/* SPDX-License-Identifier: MIT
 *
 * Cases of attention, forward and backward: a grid of small shapes, more queries than a work item
 * takes, more keys than a block holds, few queries with many threads; each optional term alone and
 * all together; and one step of attention without a softmax. Masks and mixes are in
 * tests/backends/test_attn_terms.c. */
#include "op_inner.h"

/* ---- forward --------------------------------------------------------------------------------- */

static const struct scheme schemes[] = {
    {0, 0, 0, 0},                                             /* vanilla */
    {LSE, 0, 0, 11},                                          /* a window */
    {FULL | LSE, 0, 0, 0},                                    /* sees the future */
    {HAS_U, 0, 0, 0},                                         /* u alone */
    {REL_K | LSE, 5, 0, 0},                                   /* Shaw's keys */
    {REL_V, 5, 0, 0},                                         /* Shaw's values */
    {REL_K | REL_V | PER_HEAD | LSE, 17, 0, 0},               /* both, per head */
    {REL_K | REL_V | FULL | LSE, 4, 3, 0},                    /* both directions */
    {REL_K | REL_V | FULL | PER_HEAD, 1, 2, 9},               /* hardly any row of a table */
    {REL_K | REL_V, 9, 8, 0},                                 /* full table, causal mask */
    {HAS_U | HAS_W | REL_K | PER_HEAD | LSE, ALL_KEYS, 0, 0}, /* Transformer-XL */
    {HAS_U | HAS_W | REL_K | PER_HEAD, 12, 0, 0},             /* clamp_len */
    {HAS_W | REL_K | REL_V, ALL_KEYS, 0, 7},                  /* same_length */
    {BIAS | PER_HEAD | LSE, ALL_KEYS, 0, 0},                  /* ALiBi */
    {BIAS | FULL, 6, 5, 0},                                   /* T5 */
    {HAS_U | HAS_W | REL_K | REL_V | BIAS | PER_HEAD | LSE, 21, 0, 33},
    {HAS_U | HAS_W | REL_K | REL_V | BIAS | FULL | LSE, 21, 4, 0},
    {WIDE_V | LSE, 0, 0, 0},      /* differential attention */
    {NARROW_V | HAS_U, 0, 0, 9},  /* MLA */
    {CAP | LSE, 0, 0, 0},         /* Gemma 2 */
    {SINK_LOGIT | LSE, 0, 0, 12}, /* gpt-oss */
    {CAP | SINK_LOGIT | WIDE_V | FULL | LSE, 0, 0, 0},
    {CAP | SINK_LOGIT | NARROW_V | HAS_U | HAS_W | REL_K | BIAS, 21, 0, 0},
    {CROSS | FULL | LSE, 0, 0, 0}, /* another sequence's keys */
    {CROSS | FULL | HAS_U | WIDE_V | CAP | SINK_LOGIT, 0, 0, 0},
};
enum { N_SCHEMES = ARRAY_LEN(schemes), PLAIN = 0, RELATIVE = 10 };

static const int L[] = {1, 2, 7, 8, 9, 37}, M[] = {0, 19, 64, 130};
static const int dh[] = {1, 5, 8, 40, 64, 96}, kv_heads[] = {1, 2, 4};
enum { GRID = ARRAY_LEN(L) * ARRAY_LEN(M) * ARRAY_LEN(dh) };

static const struct shape long_shapes[] = {
    {1, 2, 1, 135, 0, 16},  {1, 2, 1, 9, 800, 80}, {1, 1, 1, 70, 600, 33}, {2, 2, 2, 64, 256, 256},
    {1, 2, 2, 3, 1100, 64}, {1, 72, 72, 4, 3, 8},  {1, 6, 3, 4, 530, 41},  {2, 3, 1, 1, 257, 24},
    {1, 3, 1, 19, 45, 573}, /* as wide as latents */
};
/* Here many threads share the keys, or the heads if there are too few keys. */
static const struct shape few_queries[] = {
    {1, 1, 1, 1, 1000, 40}, {2, 1, 1, 3, 130, 64}, {1, 2, 1, 4, 200, 16}, {1, 1, 1, 1, 0, 8},
    {1, 6, 3, 2, 300, 41},  {1, 5, 5, 1, 90, 24},  {2, 4, 2, 4, 511, 8},  {1, 4, 1, 2, 150, 576},
    {1, 2, 1, 1, 40, 583}, /* too wide for rows of their own */
};
enum {
    N_LONG = ARRAY_LEN(long_shapes),
    N_FEW = ARRAY_LEN(few_queries),
    FORWARD_CASES = N_SCHEMES * (GRID + N_LONG + N_FEW)
};
static const struct shape large_shape = {1, 8, 8, 256, 0, 64};

static struct shape shape_of(int at, int scheme)
{
    if (at >= GRID)
        return at - GRID < N_LONG ? long_shapes[at - GRID] : few_queries[at - GRID - N_LONG];
    const int turn = at * N_SCHEMES + scheme;
    const int l = pick(&at, ARRAY_LEN(L)), m = pick(&at, ARRAY_LEN(M));

    return (struct shape){.B = 1 + turn % 2,
                          .H = 4,
                          .Hkv = kv_heads[turn % 3],
                          .L = L[l],
                          .M = schemes[scheme].terms & FULL ? M[m] / 8 : M[m],
                          .dh = dh[at]};
}

static void describe(struct trial *t, const struct shape *s, int scheme)
{
    snprintf(t->name, sizeof(t->name), "scheme %d, B %d H %d Hkv %d L %d M %d dh %d", scheme, s->B,
             s->H, s->Hkv, s->L, s->M, s->dh);
}

static void forward_make(struct trial *t, int at)
{
    const bool timed = at >= FORWARD_CASES;
    const int scheme = !timed ? pick(&at, N_SCHEMES) : at == FORWARD_CASES ? PLAIN : RELATIVE;
    const struct shape s = timed ? large_shape : shape_of(at, scheme);

    make_operands(&t->attn, &s, &schemes[scheme]);
    t->has_attn = true;
    output(t, "o", t->attn.o_size, NULL);
    output(t, "lse", t->attn.lse_size, NULL);
    describe(t, &s, scheme);
}

/* With operands of bf16, each scheme has a third of the shapes. */
enum { BF16_EACH = 3, BF16_CASES = FORWARD_CASES / BF16_EACH };
_Static_assert(N_SCHEMES % BF16_EACH != 0, "every scheme has its turn");

static void bf16_make(struct trial *t, int at)
{
    forward_make(t, at < BF16_CASES ? BF16_EACH * at : at - BF16_CASES + FORWARD_CASES);
    round_operands(&t->attn);
}

/* The attention with its outputs at these places; false if the engine refuses it. */
static bool attend(const struct engine *g, struct trial *t, const struct attn *a)
{
    const struct attn_impl *impl;

    if (engine_attn(g, a, &impl, &t->refusal) != OK)
        return false;
    const struct attn_need need = impl->need(a, g->threads);
    impl->forward(g, a, workspace(t, need.scores_bytes + need.scratch_bytes));
    return true;
}

static void forward_run(const struct engine *g, struct trial *t, float *const *out)
{
    struct attn a = t->attn.a;

    a.o = out[0];
    a.lse = a.lse ? out[1] : NULL;
    attend(g, t, &a);
}

static void forward_bounds(struct trial *t)
{
    const struct bound b = attn_bound(&t->attn);

    for (size_t i = 0; i < t->out[0].n; i++)
        t->out[0].bound[i] = b.out;
    for (size_t i = 0; i < t->out[1].n && t->attn.a.lse; i++)
        t->out[1].bound[i] = b.lse;
}

/* ---- backward -------------------------------------------------------------------------------- */

static const struct shape grad_shapes[] = {
    {1, 1, 1, 1, 0, 1},    {2, 3, 3, 5, 0, 7},   {1, 2, 2, 1, 9, 4},
    {2, 4, 2, 6, 5, 3},    {1, 6, 1, 9, 2, 16},  {1, 1, 1, 17, 31, 8},
    {1, 2, 1, 131, 21, 9}, {3, 2, 2, 33, 0, 17}, {1, 2, 1, 10, 7, 571},
};
static const struct scheme grad_schemes[] = {
    {0, 0, 0, 0},
    {HAS_U | HAS_W | REL_K | PER_HEAD, ALL_KEYS, 0, 0},
    {HAS_U | HAS_W | REL_K | PER_HEAD, 4, 0, 3},
    {REL_K | REL_V, 3, 0, 0},
    {REL_K | REL_V | FULL, 3, 2, 0},
    {REL_V, 1, 0, 0},
    {REL_K | REL_V | PER_HEAD, 200, 4, 0},
    {BIAS, 6, 0, 4},
    {BIAS | PER_HEAD | HAS_U | FULL, 9, 7, 0},
    {HAS_U | HAS_W | REL_K | REL_V | BIAS | PER_HEAD, 5, 3, 0},
    {HAS_U | HAS_W | REL_K | REL_V | BIAS | FULL, ALL_KEYS, 11, 7},
    {WIDE_V, 0, 0, 0},
    {NARROW_V | CAP, 0, 0, 5},
    {SINK_LOGIT | CAP | FULL, 0, 0, 0},
    {SINK_LOGIT | WIDE_V | HAS_U | HAS_W | REL_K | BIAS | PER_HEAD, 5, 0, 4},
    {CAP | HAS_U | HAS_W | REL_K | BIAS, 4, 0, 0},
    {CROSS | FULL, 0, 0, 0},
    {CROSS | FULL | HAS_U | WIDE_V | SINK_LOGIT, 0, 0, 0},
};
enum {
    N_GRAD_SCHEMES = ARRAY_LEN(grad_schemes),
    BACKWARD_CASES = N_GRAD_SCHEMES * ARRAY_LEN(grad_shapes)
};

/* Outputs of the backward pass, in this order. */
enum { D_Q, D_K, D_V, D_U, D_W, D_REL_K, D_REL_V, D_BIAS, D_SINK_LOGIT };

static void zeros(struct trial *t, const char *name, size_t n)
{
    output(t, name, n, constant(t, n, 0));
}

static void backward_make(struct trial *t, int at)
{
    const bool timed = at >= BACKWARD_CASES;
    const int scheme = timed ? 1 : pick(&at, N_GRAD_SCHEMES);
    const struct shape *s = timed ? &large_shape : &grad_shapes[at];

    make_operands(&t->attn, s, &grad_schemes[scheme]);
    t->has_attn = true;
    struct attn *a = &t->attn.a;
    const size_t tables = a->rel_head || a->bias_head ? (size_t)a->H : 1;
    const size_t rows = tables * (size_t)(a->R + a->Rf), heads = (size_t)a->H * (size_t)a->dh;
    a->lse = t->attn.lse;
    t->a.attn_grad = (struct attn_grad){.d_o = operand(t, t->attn.o_size, "d_o", 0, 1)};
    output(t, "d_q", (size_t)(a->B * a->q_at.batch), NULL);
    output(t, "d_k", (size_t)(a->B * a->k_at.batch), NULL);
    output(t, "d_v", (size_t)(a->B * a->v_at.batch), NULL);
    zeros(t, "d_u", heads);
    zeros(t, "d_w", heads);
    zeros(t, "d_rel_k", rows * (size_t)a->dh);
    zeros(t, "d_rel_v", rows * (size_t)a->dh);
    zeros(t, "d_bias", rows);
    zeros(t, "d_sink_logit", (size_t)a->H * SINK_LOGITS);
    describe(t, s, scheme);
}

/* Forward on one thread: what it leaves for the backward pass may depend on their number. */
static void backward_run(const struct engine *g, struct trial *t, float *const *out)
{
    const struct attn *a = &t->attn.a;
    const struct attn_impl *impl;
    struct attn_grad d = t->a.attn_grad;
    struct engine one = *g;

    one.threads = 1;
    d.d_q = out[D_Q], d.d_k = out[D_K], d.d_v = out[D_V];
    d.d_u = a->u ? out[D_U] : NULL;
    d.d_w = a->w ? out[D_W] : NULL;
    d.d_rel_k = a->rel_k ? out[D_REL_K] : NULL;
    d.d_rel_v = a->rel_v ? out[D_REL_V] : NULL;
    d.d_bias = a->bias ? out[D_BIAS] : NULL;
    d.d_sink_logit = a->sink_logit ? out[D_SINK_LOGIT] : NULL;
    if (!attend(&one, t, a) || engine_attn(g, a, &impl, &t->refusal) != OK ||
        engine_attn_backward(g, impl, &t->refusal) != OK)
        return;
    const struct attn_need need = impl->need_backward(a, g->threads);
    impl->backward(g, a, &d, workspace(t, need.scores_bytes + need.scratch_bytes));
}

/* Outputs of a case may be off by 2e-5 of the largest. A gradient multiplies two numbers of that
 * kind, P and dA: 4e-5. If contributions cancel, up to 0, the error is the rounding of the
 * contributions: 16 U of the largest. Bound of one pair's contribution: a query's probabilities sum
 * to 1, so its G sums to at most 2 |dO| |v|, and scale G multiplies keys or queries. */
static void backward_bounds(struct trial *t)
{
    const struct attn *a = &t->attn.a;
    const int K = attn_keys(a), H = a->H, rows = a->R + a->Rf, tables = a->rel_head ? H : 1;
    const struct stride row = {.row = a->dh};
    const int dv = attn_dv(a);
    const double d_o = widest(t->a.attn_grad.d_o, a->B, a->L, a->o_at, H * dv);
    double v = widest(a->v, a->B, K, a->v_at, a->Hkv * dv);
    double k = widest(a->k, a->B, K, a->k_at, a->Hkv * a->dh);
    const double q = widest(a->q, a->B, a->L, a->q_at, H * a->dh) +
                     widest(t->attn.u, 1, H, row, a->dh) + widest(t->attn.w, 1, H, row, a->dh);

    v += a->rel_v ? widest(a->rel_v, 1, tables * rows, row, a->dh) : 0;
    k += a->rel_k ? widest(a->rel_k, 1, tables * rows, row, a->dh) : 0;
    const double G = 2 * d_o * v, x = (double)a->scale * G;
    const double one[] = {
        [D_Q] = x * k,     [D_K] = x * q,   [D_V] = d_o,  [D_U] = x * k,     [D_W] = x * k,
        [D_REL_K] = x * q, [D_REL_V] = d_o, [D_BIAS] = G, [D_SINK_LOGIT] = G};
    for (int o = 0; o < t->n_out; o++) {
        const double most = largest(t->out[o].want, t->out[o].n);
        for (size_t i = 0; i < t->out[o].n; i++)
            t->out[o].bound[i] = 4e-5 * most + 16 * U * one[o];
    }
}

/* ---- the rows -------------------------------------------------------------------------------- */

static bool has_attention(const struct engine *g) { return g->backend->attn != NULL; }

#define PAIRS (8 * 64 * 256 * 257 / 2.0)

const struct op_row op_attns[ATTN_ROWS] = {
    {"attn", -1, FORWARD_CASES, forward_make, forward_run, forward_bounds, .mean_square = true,
     .has = has_attention,
     .timing = {{"256 keys", "GFLOP/s", 4e-9 * PAIRS},
                {"256 keys, relative", "GFLOP/s", 6e-9 * PAIRS}}},
    {"attn_bf16", -1, BF16_CASES, bf16_make, forward_run, forward_bounds, .has = has_attention,
     .timing = {{"256 keys", "GFLOP/s", 4e-9 * PAIRS},
                {"256 keys, relative", "GFLOP/s", 6e-9 * PAIRS}}},
    {"attn_grad", -1, BACKWARD_CASES, backward_make, backward_run, backward_bounds,
     .same_bits = true, .has = has_attention,
     .timing = {{"256 keys, relative", "GFLOP/s", 18e-9 * PAIRS}}},
};
