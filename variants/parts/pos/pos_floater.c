/* SPDX-License-Identifier: MIT
 *
 * Positions along the path of a differential equation, added to the embedding (Liu et al. 2020,
 * arXiv:2003.09229). e is the time of one token:
 *
 *   f(p, t) = W_2 tanh(W_1 p + w t + b_1) + b_2
 *   k_1     = f(p_i, t)                            t = i e
 *   k_2     = f(p_i + e/2 k_1, t + e/2)
 *   k_3     = f(p_i + e/2 k_2, t + e/2)
 *   k_4     = f(p_i + e k_3, t + e)
 *   p_(i+1) = p_i + e/6 (k_1 + 2 k_2 + 2 k_3 + k_4)
 *
 * The rows follow from the weights alone, so they are computed when these change. Each needs the
 * one before it: both directions are loops over positions in one thread. */
#include "variants/parts/parts.h"

enum { START, W_IN, W_TIME, B_IN, W_OUT, B_OUT };
enum { STAGES = 4 };

struct floater {
    int inner;  /* hidden units of f */
    float step; /* e */
};

static const struct floater *floater_of(const struct config *c)
{
    return config_numbers(c, SLOT_POS);
}

static const struct choice floater_choices[] = {
    ROW_INT(struct floater, inner, "ode_inner", 1, 1 << 16,
            "hidden units of the network whose path positions are", .setting = true,
            .zero_is_absent = true),
    ROW_REAL(struct floater, step, "ode_step", 0, 1 << 10, "step of the solver", .absent = "0.1",
             SETTING),
    {0},
};

static void usual(const struct config *c, void *numbers)
{
    *(struct floater *)numbers = (struct floater){.inner = max_int(1, c->D / 8), .step = 0.1f};
}

static const struct part_numbers floater_numbers = {
    floater_choices, .size = NUMBERS_SIZE(struct floater), .usual = usual};

static void floater_params(const struct config *c, struct params *p)
{
    const int D = c->D, n = floater_of(c)->inner;
    const float in = 1 / sqrtf((float)D), out = 1 / sqrtf((float)n);

    params_vector(p, INIT_ZERO, 0, D, "pos.", "p0");
    params_add(p, INIT_UNIFORM_BOTH, in, 2, (const int[]){n, D}, "pos.w1");
    params_vector(p, INIT_UNIFORM_BOTH, in, n, "pos.", "wt");
    params_vector(p, INIT_UNIFORM_BOTH, in, n, "pos.", "b1");
    params_add(p, INIT_UNIFORM_BOTH, out, 2, (const int[]){D, n}, "pos.w2");
    params_vector(p, INIT_UNIFORM_BOTH, out, D, "pos.", "b2");
}

/* ---- one step ----------------------------------------------------------------------------- */

/* The stages of a step: where f is taken, its hidden units, its values; and, backward, their
 * gradients in turn. */
struct step {
    int D, n;
    float e;
    float *x[STAGES], *a[STAGES], *k[STAGES], *d_x, *d_a, *d_k;
};

static size_t step_floats(const struct config *c)
{
    const size_t D = (size_t)c->D, n = (size_t)floater_of(c)->inner;

    return STAGES * (2 * D + n) + 2 * D + n;
}

static struct step step_in(const struct config *c, float *at)
{
    struct step s = {.D = c->D, .n = floater_of(c)->inner, .e = floater_of(c)->step};

    for (int i = 0; i < STAGES; i++) {
        s.x[i] = at;
        s.k[i] = at + s.D;
        s.a[i] = at + 2 * (ptrdiff_t)s.D;
        at += 2 * (ptrdiff_t)s.D + s.n;
    }
    s.d_x = at;
    s.d_k = at + s.D;
    s.d_a = at + 2 * (ptrdiff_t)s.D;
    return s;
}

/* How far into the step each stage is. */
static float ahead(const struct step *s, int stage)
{
    return stage == 0 ? 0 : stage == STAGES - 1 ? s->e : s->e / 2;
}

static void add(float *y, float w, const float *x, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i++)
        y[i] += w * x[i];
}

/* All stages from row p at time t. */
static void follow(const struct step *s, const struct param *w, const float *p, float t)
{
    for (int i = 0; i < STAGES; i++) {
        memcpy(s->x[i], p, sizeof(float) * (size_t)s->D);
        if (i > 0)
            add(s->x[i], ahead(s, i), s->k[i - 1], s->D);
        for (int u = 0; u < s->n; u++)
            s->a[i][u] = tanhf(dot_in_lanes(w[W_IN].data + (ptrdiff_t)u * s->D, s->x[i], s->D) +
                               w[W_TIME].data[u] * (t + ahead(s, i)) + w[B_IN].data[u]);
        for (int e = 0; e < s->D; e++)
            s->k[i][e] =
                dot_in_lanes(w[W_OUT].data + (ptrdiff_t)e * s->n, s->a[i], s->n) + w[B_OUT].data[e];
    }
}

/* d_x from d_k, of one stage at time t. */
static void stage_grad(const struct step *s, const struct param *w, int i, float t)
{
    memset(s->d_a, 0, sizeof(float) * (size_t)s->n);
    memset(s->d_x, 0, sizeof(float) * (size_t)s->D);
    for (int e = 0; e < s->D; e++) {
        add(s->d_a, s->d_k[e], w[W_OUT].data + (ptrdiff_t)e * s->n, s->n);
        add(w[W_OUT].grad + (ptrdiff_t)e * s->n, s->d_k[e], s->a[i], s->n);
        w[B_OUT].grad[e] += s->d_k[e];
    }
    for (int u = 0; u < s->n; u++) {
        const float d = s->d_a[u] * (1 - s->a[i][u] * s->a[i][u]);
        add(s->d_x, d, w[W_IN].data + (ptrdiff_t)u * s->D, s->D);
        add(w[W_IN].grad + (ptrdiff_t)u * s->D, d, s->x[i], s->D);
        w[W_TIME].grad[u] += d * (t + ahead(s, i));
        w[B_IN].grad[u] += d;
    }
}

/* ---- the path ----------------------------------------------------------------------------- */

/* Rows [K,D], the sums of their gradients [K,D], and room for one step. */
static size_t floater_n_encoding(const struct config *c, int K)
{
    return 2 * (size_t)K * (size_t)c->D + step_floats(c);
}

static void floater_encode(const struct config *c, const struct param *w, int K, float *rows)
{
    const ptrdiff_t D = c->D;
    const struct step s = step_in(c, rows + 2 * K * D);

    memcpy(rows, w[START].data, sizeof(float) * (size_t)D);
    for (int i = 0; i + 1 < K; i++) {
        float *const next = rows + (i + 1) * D;
        follow(&s, w, next - D, (float)i * s.e);
        memcpy(next, next - D, sizeof(float) * (size_t)D);
        for (int k = 0; k < STAGES; k++)
            add(next, s.e / (k == 0 || k == STAGES - 1 ? 6 : 3), s.k[k], s.D);
    }
}

static void floater_embed(const struct config *c, const struct param *w, const float *rows,
                          int64_t first, float *h, int B, int L)
{
    for (int b = 0; b < B; b++)
        add(h + (ptrdiff_t)b * L * c->D, 1, rows + first * c->D, (ptrdiff_t)L * c->D);
}

/* From the last row to the first: the gradient of a row is its own and what the next one passes. */
static void floater_embed_grad(const struct config *c, const struct param *w, float *rows, int K,
                               const float *d_h, int B, int L)
{
    const ptrdiff_t D = c->D;
    const struct step s = step_in(c, rows + 2 * K * D);
    float *const d_rows = rows + K * D;

    memset(d_rows, 0, sizeof(float) * (size_t)(L * D));
    for (int b = 0; b < B; b++)
        add(d_rows, 1, d_h + b * L * D, L * D);
    for (int i = L - 2; i >= 0; i--) {
        float *const d = d_rows + i * D;
        const float *const d_next = d + D, t = (float)i * s.e;
        follow(&s, w, rows + i * D, t);
        add(d, 1, d_next, s.D);
        for (int k = STAGES - 1; k >= 0; k--) {
            const float share = s.e / (k == 0 || k == STAGES - 1 ? 6 : 3);
            for (int e = 0; e < s.D; e++) /* d_x is that of the stage after it */
                s.d_k[e] = share * d_next[e] + (k < STAGES - 1 ? ahead(&s, k + 1) * s.d_x[e] : 0);
            stage_grad(&s, w, k, t);
            add(d, 1, s.d_x, s.D);
        }
    }
    add(w[START].grad, 1, d_rows, s.D);
}

const struct pos pos_floater = {
    .name = "floater",
    .numbers = &floater_numbers,
    .model_params = floater_params,
    .n_pos_encoding = floater_n_encoding,
    .encode = floater_encode,
    .embed = floater_embed,
    .embed_grad = floater_embed_grad,
};
