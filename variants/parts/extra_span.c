/* SPDX-License-Identifier: MIT
 *
 * Adaptive span (Sukhbaatar et al. 2019). A key at distance n is weighted by m:
 *
 *   m_h(n)  = clip((R + z_h - n) / R, 0, 1)
 *   s_ij   += log m_h(dist)
 *
 * A window ends where m = 0. */
#include "parts.h"
#include "variants/parts/pos/pos_bias.h"

struct span {
    float ramp; /* tokens of the soft end */
    int max;    /* longest span */
    float cost; /* what the mean span of a layer adds to the loss, per token */
};

static const struct choice span_choices[] = {
    ROW_REAL(struct span, ramp, "span_ramp", FLT_MIN, 1 << 20, "tokens of the soft end", SETTING,
             .tiny = "4"),
    ROW_INT(struct span, max, "span_max", 0, 1 << 20, "tokens of the longest span",
            .scope = SCOPE_CORE, .setting = true),
    ROW_REAL(struct span, cost, "span_cost", 0, FLT_MAX,
             "what the mean span of a layer adds to the loss", .absent = "0", SETTING, .tiny = "0"),
    {0},
};

static const struct part_numbers span_numbers = {
    span_choices, PRESET(struct span, .ramp = 32, .max = 8192, .cost = 2e-6f)};

static const struct span *span_of(const struct config *c) { return config_numbers(c, SLOT_EXTRA); }

/* m before clipping. */
static double fade(const struct config *c, const struct param *z, int h, int n)
{
    const double ramp = (double)span_of(c)->ramp;

    return (ramp + (double)z->data[h] - n) / ramp;
}

/* A span is a window, and needs a row for each distance. */
static void span_params(const struct config *c, const char *prefix, struct params *p)
{
    params_bound(p, params_vector(p, INIT_ZERO, 0, c->H, prefix, "attn.span"), 0,
                 (float)span_of(c)->max);
}

/* With tables of positions the bias has as many rows as they. */
static void span_reserve(const struct pos_call *t)
{
    struct attn *const a = t->a;

    CHECK(!a->bias && (!a->rel_k || (a->R == t->K && a->Rf == 0)));
    bias_reserve(t);
    a->window_of_head = arena_take(t->arena, PART_REL_POS, (size_t)t->c->H * sizeof(int));
}

static void span_build_tables(const struct pos_call *t)
{
    const struct config *const c = t->c;
    struct attn *const a = t->a;

    for (int h = 0; h < c->H; h++) {
        const int ends = (int)ceil((double)span_of(c)->ramp + (double)t->layer->data[h]);
        ((int *)a->window_of_head)[h] = a->window ? min_int(a->window, ends) : ends;
        for (int n = 0; n < a->R; n++)
            bias_of(a, h)[-n] = n < ends ? (float)log(fmin(1, fade(c, t->layer, h, n))) : 0;
    }
}

/* ---- backward ----------------------------------------------------------------------------- */

static size_t span_n_tables_grad(const struct config *c, int K) { return (size_t)c->H * (size_t)K; }

/* dz = sum of d_bias / (R m) over the distances where 0 < m < 1, plus the gradient of the mean
 * span's cost. */
static void span_build_tables_grad(const struct pos_call *t)
{
    const struct config *const c = t->c;

    for (int h = 0; h < c->H; h++) {
        double d_z = (double)span_of(c)->cost / c->H;
        for (int n = 0; n < t->a->R; n++) {
            const double m = fade(c, t->layer, h, n);
            if (m > 0 && m < 1)
                d_z += (double)bias_grad_of(t->a, t->d, h)[-n] / ((double)span_of(c)->ramp * m);
        }
        t->layer->grad[h] += (float)d_z;
    }
}

const struct pos extra_span = {
    .name = "span",
    .numbers = &span_numbers,
    .past_only = true,
    .excludes = EXCLUDES(HAS_FUTURE, HAS_CLAMP, HAS_MASKS, HAS_HEAD_WINDOWS, HAS_UNEVEN),
    .layer_params = span_params,
    .reserve = span_reserve,
    .build_tables = span_build_tables,
    .n_tables_grad = span_n_tables_grad,
    .terms_grad = bias_terms_grad,
    .build_tables_grad = span_build_tables_grad,
};
