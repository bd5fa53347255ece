/* SPDX-License-Identifier: MIT
 *
 * Mixers that become a known one where their gates, rates or numbers are set so: the same outputs, on
 * every backend. */
#include "tests/support/bound_layer.h"
#include "variants/parts/features.h"

enum { D = 12, H = 2, DK = 4, L = 70 };

static float *weights(const struct bound *t, const char *end)
{
    return (float *)bound_param(t, end);
}

/* Every row of a head is that of its beta. */
static void spread_beta(float *to, const float *beta, int per)
{
    for (int row = 0; row < H * per; row++)
        memcpy(to + (ptrdiff_t)row * D, beta + (ptrdiff_t)(row / per) * D, sizeof(float) * D);
}

/* b = w = beta; the output gate's low rank is as high as the model is wide. */
static void one_rate(const struct bound *own, const struct bound *of)
{
    const float *const beta = bound_param(of, "beta.weight");
    float *const a = weights(own, "g_a.weight"), *const bias = weights(own, "g_b.bias");

    spread_beta(weights(own, "erase.weight"), beta, DK);
    spread_beta(weights(own, "write.weight"), beta, 2 * DK);
    for (int i = 0; i < D * D; i++)
        a[i] = i % (D + 1) == 0;
    memcpy(weights(own, "g_b.weight"), bound_param(of, "attn.g.weight"),
           sizeof(float) * H * 2 * DK * D);
    memset(bias, 0, sizeof(float) * H * 2 * DK);
}

static void whole_key(const struct bound *own, const struct bound *of)
{
    for (int h = 0; h < H; h++)
        weights(own, "attn.decay")[h] = 100, weights(own, "attn.D")[h] = 0;
}

/* The preconditioner is 1.5 in all channels. */
static void far_centre(const struct bound *own, const struct bound *of)
{
    for (int h = 0; h < H; h++)
        weights(own, "attn.atk")[h] = 1e9f;
}

static const struct limit {
    const char *own, *key, *value, *of;
    void (*set)(const struct bound *own, const struct bound *of);
} limits[] = {
    {"gdn2", "lora", "12", "kda", one_rate},
    {"comba", "conv_width", "4", "gdn", whole_key},
    {"pgdn", "beta_max", "1.5", "gdn", far_centre},
    {"pkda", "beta_max", "1.5", "kda", far_centre},
    {"deltaproduct", "delta_steps", "1", "deltanet", NULL},
    {"gated-deltaproduct", "delta_steps", "1", "gdn", NULL},
};

static struct config sized(const struct limit *l, const char *name)
{
    struct config c = config_default(variant_find(name), D, H, DK, 0, 1, 0);
    const bool is_own = strcmp(name, l->own) == 0;

    c.max_seq = L;
    c.out_gate = variant_find(l->of)->out_gate && l->set ? OUT_GATE_SIGMOID : c.out_gate;
    if (strcmp(l->key, "beta_max") == 0 ? !is_own : is_own || strcmp(l->key, "lora") == 0)
        set_choice(&c, l->key, l->value);
    if (!l->set)
        set_choice(&c, "beta_max", "1");
    return c;
}

TEST_EACH(int *b, limits, are_the_known_mixer, every_backend())
{
    for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
        struct bound own, of;
        bound_open(&own, sized(&limits[i], limits[i].own), backends[*b]->name, 1, 2, L, 1);
        bound_open(&of, sized(&limits[i], limits[i].of), backends[*b]->name, 1, 2, L, 1);
        for (int p = 0; p < own.l.p.n; p++) {
            const struct param *const to = &own.l.p.v[p], *from = params_find(&of.l.p, to->name);
            if (from && from->n == to->n)
                memcpy(to->data, from->data, from->n * sizeof(float));
        }
        if (limits[i].set)
            limits[i].set(&own, &of);
        bound_run(&own, 0, L);
        bound_run(&of, 0, L);
        cr_expect_lt(case_error(own.y, of.y, 2 * L * D), 1, "%s is not %s", limits[i].own,
                     limits[i].of);
    }
}

/* Numbers that golden files say themselves. */
Test(limits, based_is_as_published)
{
    const struct variant *const v = variant_find("based");
    int dh = 0, F = 0;

    v->sizes(512, 8, &dh, &F);
    const struct config c = config_default(v, 512, 8, dh, 64, 1, 17);
    NUMBERS({dh, 16}, {config_dv(&c), 64}, {features_count(&c), 1 + 16 + 16 * 17 / 2},
            {linear_of(&c)->eps, 1e-6, 1e-12});
}
