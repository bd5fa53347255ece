/* SPDX-License-Identifier: MIT
 *
 * T5's relative bias (Raffel et al. 2020, section 2.1): distances fall into buckets, near ones one
 * each, far ones in logarithmic steps, and every head learns a number per bucket. One table serves
 * all layers, as published, or each layer has its own. */
#include "pos_t5.h"
#include "pos_bias.h"
#include "variants/parts/parts.h"

static const struct choice t5_choices[] = {
    T5_CHOICES(struct t5, , "t5", NULL) ROW_FLAG(
        struct t5, shared, "t5_share", "1: one table for all layers", .key = "share_attn_bias",
        .absent = "0", .scope = SCOPE_MODEL, SETTING, .tiny = "1|0"),
    {0},
};

static const struct part_numbers t5_own = {t5_choices, PRESET(struct t5, T5_USUAL, .shared = true)};

static const struct t5 *t5_of(const struct config *c) { return config_numbers(c, SLOT_POS); }

/* The first half of the buckets holds one distance each; the others grow geometrically up to
 * max_distance, the last holds everything farther. The formula assumes exact arithmetic: 1e-9 is
 * far above the error of log in double and far below the distance to the next integer. */
int t5_bucket(int n, int buckets, int max_distance)
{
    const int exact = buckets / 2;

    if (n < exact)
        return n;
    const double steps = log((double)n / exact) / log((double)max_distance / exact);
    return min_int(buckets - 1, exact + (int)floor(steps * (buckets - exact) + 1e-9));
}

/* Number of distinct distances: from the first of the last bucket on they share an entry. */
static int distances(const struct config *c, int K)
{
    int n = 0;

    while (n < K - 1 &&
           t5_bucket(n, t5_of(c)->buckets, t5_of(c)->max_distance) < t5_of(c)->buckets - 1)
        n++;
    return n + 1;
}

static enum status t5_check(const struct config *c, struct err *e)
{
    if (t5_of(c)->max_distance <= t5_of(c)->buckets / 2)
        return fail(
            e, E_USAGE,
            "t5: the largest distinct distance is %d, but the first half of %d buckets covers %d"
            "  -> give a larger one",
            t5_of(c)->max_distance, t5_of(c)->buckets, t5_of(c)->buckets / 2);
    return OK;
}

static void t5_model_params(const struct config *c, struct params *p)
{
    if (t5_of(c)->shared)
        params_add(p, INIT_TABLE, 0, 2, (const int[]){t5_of(c)->buckets, c->H}, "rel_bias");
}

static void t5_layer_params(const struct config *c, const char *prefix, struct params *p)
{
    if (!t5_of(c)->shared)
        params_add(p, INIT_TABLE, 0, 2, (const int[]){t5_of(c)->buckets, c->H}, "%sattn.rel_bias",
                   prefix);
}

static void t5_reserve(const struct pos_call *t) { bias_reserve_rows(t, distances(t->c, t->K)); }

static void t5_lower(const struct pos_call *t)
{
    const struct config *const c = t->c;
    const float *rel_bias = (t5_of(c)->shared ? t->model : t->layer)->data; /* [buckets,H] */

    for (int n = 0; n < t->a->R; n++) {
        const int bucket = t5_bucket(n, t5_of(c)->buckets, t5_of(c)->max_distance);
        for (int h = 0; h < c->H; h++)
            bias_of(t->a, h)[-n] = rel_bias[(ptrdiff_t)bucket * c->H + h];
    }
}

/* ---- backward ----------------------------------------------------------------------------- */

static size_t t5_n_tables_grad(const struct config *c, int K)
{
    return (size_t)c->H * (size_t)distances(c, K);
}

static void t5_lower_grad(const struct pos_call *t)
{
    const struct config *const c = t->c;
    float *grad = (t5_of(c)->shared ? t->model : t->layer)->grad;

    for (int n = 0; n < t->a->R; n++) {
        const int bucket = t5_bucket(n, t5_of(c)->buckets, t5_of(c)->max_distance);
        for (int h = 0; h < c->H; h++)
            grad[(ptrdiff_t)bucket * c->H + h] += bias_grad_of(t->a, t->d, h)[-n];
    }
}

const struct pos pos_t5 = {
    .name = "t5",
    .numbers = &t5_own,
    .past_only = true,
    .check = t5_check,
    .model_params = t5_model_params,
    .layer_params = t5_layer_params,
    .reserve = t5_reserve,
    .build_tables = t5_lower,
    .n_tables_grad = t5_n_tables_grad,
    .terms_grad = bias_terms_grad,
    .build_tables_grad = t5_lower_grad,
};
