/* SPDX-License-Identifier: MIT
 *
 * What recurrent mixers have in common. */
#include "mix.h"
#include "variants/backends/recur.h"
#include "variants/parts/features.h"

static const char *const norm_words[] = {
    [MIX_RMS] = "rms", [MIX_LAYER] = "layer", [MIX_UNNORMED] = "none", NULL};

/* A number may be set where the mixer usually has one. */
static struct mix usual_of(const struct config *c)
{
    struct mix m = {0};

    if (c->mixer && c->mixer->numbers && c->mixer->numbers->choices == mix_choices)
        numbers_usual(c->mixer->numbers, c, &m);
    return m;
}

static bool has_conv(const struct config *c) { return usual_of(c).conv_width > 0; }
static const char *const pairs_words[] = {"interleaved", "half", NULL};
static bool rotates(const struct config *c) { return usual_of(c).rotates; }
static bool divides(const struct config *c) { return usual_of(c).gate_tau > 1; }
static bool caps(const struct config *c) { return usual_of(c).gate_cap > 0; }
static bool writes(const struct config *c) { return usual_of(c).writes; }
static bool has_groups(const struct config *c) { return usual_of(c).groups > 0; }
static bool norms(const struct config *c)
{
    const struct mix m = usual_of(c);

    return m.norm_weights > 0 && m.head_norm != MIX_UNNORMED;
}
static bool norms_whole(const struct config *c) { return usual_of(c).norm_whole; }
static bool has_lora(const struct config *c) { return usual_of(c).lora > 0; }
static bool writes_often(const struct config *c) { return usual_of(c).delta_steps > 1; }

const struct choice mix_choices[] = {
    ROW_INT(struct mix, conv_width, "conv_width", 0, 256,
            "rows of the convolution before a recurrence; 0 = none", .setting = true,
            .applies = has_conv, .absent = "0"),
    ROW_INT(struct mix, groups, "groups", 0, 1 << 20, "groups of heads that share q and k",
            .setting = true, .applies = has_groups, .absent = "1"),
    ROW_INT(struct mix, key_heads, "key_heads", 0, 1 << 20,
            "heads of q and k, each of several heads of v; 0 = as many", .absent = "0",
            .applies = writes, .if_other = true, SETTING),
    ROW_INT(struct mix, delta_steps, "delta_steps", 1, 64, "steps of the delta rule for each token",
            .setting = true, .applies = writes_often, .absent = "1", .if_other = true),
    ROW_INT(struct mix, lora, "lora", 0, 1 << 20, "rank of the low-rank maps of gates",
            .setting = true, .applies = has_lora, .rows_of = "attn.gk.1.weight"),
    ROW_WORD(struct mix, head_norm, "head_norm", norm_words, "norm of the outputs of heads",
             .absent = "rms", .scope = SCOPE_LAYER, .applies = norms, SETTING),
    ROW_INT(struct mix, norm_weights, "norm_weights", 0, 1 << 20,
            "weights of this norm: as many as a head has numbers, or all heads",
            .rows_of = "attn.norm.weight", .scope = SCOPE_LAYER, .applies = norms, SETTING),
    ROW_REAL(struct mix, gate_tau, "gate_tau", 0, 1 << 20, "divisor of the logarithms of gates",
             .applies = divides, .absent = "16", SETTING),
    ROW_REAL(struct mix, gate_cap, "gate_cap", 0, 1 << 20, "most that a gate forgets, 0 = any",
             .applies = caps, .absent = "0", SETTING),
    ROW_REAL(struct mix, beta_max, "beta_max", 0, 2, "most that a step writes", .applies = writes,
             .absent = "1", SETTING),
    ROW_FLAG(struct mix, norm_whole, "norm_whole", "1: one norm over all heads", .absent = "0",
             .scope = SCOPE_LAYER, .applies = norms, SETTING),
    ROW_INT(struct mix, norm_groups, "norm_groups", 1, 1 << 20,
            "groups of heads that are normed apart", .absent = "1", .applies = norms_whole,
            .if_other = true, SETTING),
    ROW_FLAG(struct mix, norm_bias, "norm_bias", "1: this norm has a bias",
             .tensor = "attn.norm.bias", .scope = SCOPE_LAYER, .applies = norms, SETTING),
    ROW_WORD(struct mix, pairs, "mix_pairs", pairs_words, "coordinates that are rotated together",
             .key = "rope_pairs", .applies = rotates, .absent = "interleaved", .if_other = true,
             SETTING),
    ROW_FLAG(struct mix, moves_first, "moves_first", NULL, .elsewhere = true),
    {0},
};

bool mix_norms(const struct config *c)
{
    return norms(c) &&
           ((const struct mix *)config_numbers(c, SLOT_MIXER))->head_norm != MIX_UNNORMED;
}

const struct mix *mix_of(const struct steps *t) { return config_numbers(t->c, SLOT_MIXER); }

void mix_usual(const struct config *c, void *numbers)
{
    const struct config layer = config_of_layers(c, false);
    struct mix *const m = numbers;
    const bool all = m->norm_whole || m->head_norm == MIX_LAYER;

    m->norm_groups = 1;
    m->delta_steps = max_int(1, m->delta_steps);
    m->gate_tau = m->gate_tau == 0 ? 1 : m->gate_tau;
    m->beta_max = m->beta_max == 0 ? 1 : m->beta_max;
    m->lora = min_int(m->lora, c->D);
    m->norm_weights = (all ? layer.H : 1) * config_dv(&layer);
}

void mix_sizes(int D, int H, int *dh, int *F) { *dh = max_int(1, D / H / 2); }

int mix_d_value(int D, int H, int dh) { return 2 * dh; }

static enum status refuse(const struct config *c, struct err *e, const char *what, double n,
                          const char *instead)
{
    return fail(e, E_USAGE, "%s: %s %g  -> use %s", c->variant->name, what, n, instead);
}

enum status mix_check(const struct config *c, const void *numbers, struct err *e)
{
    const struct mix *const m = numbers;
    const struct config layer = config_of_layers(c, false);
    const int dv = config_dv(&layer);

    if (!c->stack.n && c->kv_heads != c->H)
        return refuse(c, e, "kv_heads", c->kv_heads,
                      "as many as heads: a recurrence has no groups");
    if (m->groups < 0 || (m->groups && layer.H % m->groups))
        return refuse(c, e, "groups", m->groups, "a divisor of --heads");
    if (m->key_heads < 0 || (m->key_heads && (!writes(c) || layer.H % m->key_heads)))
        return refuse(c, e, "key_heads", m->key_heads, "0, or a divisor of --heads");
    if (has_lora(c) && m->lora < 1)
        return refuse(c, e, "lora", m->lora, "1 or more");
    if (m->norm_groups < 1 || layer.H % m->norm_groups)
        return refuse(c, e, "norm_groups", m->norm_groups, "a divisor of --heads");
    if (m->delta_steps != 1 && !writes_often(c))
        return refuse(c, e, "delta_steps", m->delta_steps, "1 where a token is one step");
    if (m->norm_groups > 1 && !m->norm_whole)
        return refuse(c, e, "norm_groups", m->norm_groups, "1 where each head is normed");
    if (m->norm_weights && m->norm_weights != dv && m->norm_weights != layer.H * dv)
        return refuse(c, e, "norm_weights", m->norm_weights, "the width of a head, or of all");
    if (!(m->gate_tau > 0))
        return refuse(c, e, "gate_tau", (double)m->gate_tau, "more than 0");
    if (!(m->beta_max > 0))
        return refuse(c, e, "beta_max", (double)m->beta_max, "1 or 2");
    return config_check_state(c, layer.dh, e);
}

/* ---- initial values ------------------------------------------------------------------------ */

struct ramp mix_shifts(const struct steps *t, const float *p, int n)
{
    struct ramp r = {.from = 1, .to = 0, .open = true};

    CHECK(n <= RAMP_ROWS);
    for (int i = 0; i < n; i++)
        r.power[i] = p[i] * (1 - (float)t->layer / (float)t->c->N);
    return r;
}

/* ---- pieces of mixers ---------------------------------------------------------------------- */

/* What these pieces read of the mixer is what it says that it has. */
static void need_numbers(struct steps *t)
{
    const struct part_numbers *const numbers = t->c->mixer ? t->c->mixer->numbers : NULL;

    steps_need(t, numbers && numbers->choices == mix_choices,
               "mix_qkv() and mix_output() read its numbers  -> .numbers = &numbers, which is "
               "MIX_NUMBERS(...)");
}

struct qkv mix_qkv(struct steps *t, bool silu)
{
    need_numbers(t);
    const int heads = mix_of(t)->key_heads ? mix_of(t)->key_heads : t->c->H;
    const int each = mix_of(t)->delta_steps, q = heads * t->c->dh, k = each * q,
              v = each * mix_values(t);
    const int all = steps_value(t, q + k + v), taps = mix_of(t)->conv_width;
    int from = all;

    step_linear_to(t, steps_columns(t, all, 0, q), STEPS_INPUT, "q");
    step_linear_to(t, steps_columns(t, all, q, k), STEPS_INPUT, "k");
    step_linear_to(t, steps_columns(t, all, q + k, v), STEPS_INPUT, "v");
    if (taps)
        from = step_conv(t, all, taps, false, true);
    else if (silu)
        from = step_apply(t, all, CURVE_SILU, 1);
    return (struct qkv){steps_columns(t, from, 0, q), steps_columns(t, from, q, k),
                        steps_columns(t, from, q + k, v)};
}

struct recurrence mix_recurrence(const struct steps *t, struct qkv x)
{
    return (struct recurrence){.heads = t->c->H,
                               .dk = t->c->dh,
                               .dv = config_dv(t->c),
                               .scale = t->c->scale,
                               .q = x.q,
                               .k = x.k,
                               .v = x.v,
                               .g = NO_VALUE,
                               .beta = NO_VALUE,
                               .a = NO_VALUE,
                               .b = NO_VALUE,
                               .i = NO_VALUE};
}

struct qkv mix_unit(struct steps *t)
{
    struct qkv x = mix_qkv(t, true);

    x.q = step_unit(t, x.q, t->c->dh, 1e-6f, false);
    x.k = step_unit(t, x.k, t->c->dh, 1e-6f, false);
    return x;
}

struct recurrence mix_delta(struct steps *t)
{
    struct recurrence r = mix_recurrence(t, mix_unit(t));

    r.q_heads = r.k_heads = mix_of(t)->key_heads;
    const int z = step_linear(t, STEPS_INPUT, mix_of(t)->delta_steps * t->c->H, "beta");
    r.beta = step_apply(t, z, CURVE_SIGMOID, mix_of(t)->beta_max);
    return r;
}

void mix_linear(struct steps *t)
{
    const struct config *const c = t->c;
    int (*const map)(struct steps *, int, int, const char *) =
        c->attn_bias ? step_affine : step_linear;
    const int q = map(t, STEPS_INPUT, mix_keys(t), "q");
    const int k = map(t, STEPS_INPUT, c->kv_heads * c->dh, "k");
    const int v = map(t, STEPS_INPUT, c->kv_heads * config_dv(c), "v");
    struct recurrence r =
        mix_recurrence(t, (struct qkv){step_features(t, q, true), step_features(t, k, false), v});

    r.states = c->kv_heads;
    r.dk = features_count(c);
    r.scale = 1;
    r.norm = RECUR_SUM;
    r.eps = linear_of(c)->eps;
    t->result = step_recur(t, r);
    t->last_bias = c->attn_bias == ATTN_BIASED ? "o.bias" : NULL;
}

int mix_normed(struct steps *t, int o)
{
    const struct mix *const m = mix_of(t);
    const int all = t->value[o].width,
              head = m->norm_whole ? all / m->norm_groups : config_dv(t->c);

    if (m->head_norm == MIX_UNNORMED)
        return o;
    return step_norm(t, o,
                     (struct head_norm){.width = head,
                                        .layer = m->head_norm == MIX_LAYER,
                                        .each = m->norm_weights > head,
                                        .bias = m->norm_bias,
                                        .eps = t->c->head_eps});
}

void mix_output(struct steps *t, int o)
{
    const enum out_gate gate = t->c->out_gate;

    need_numbers(t);
    t->result = mix_normed(t, o);
    if (gate == OUT_GATE_NONE)
        return;
    const int z = step_linear(t, STEPS_INPUT, t->value[o].width, "g");
    const int act = step_apply(t, z, gate == OUT_GATE_SWISH ? CURVE_SILU : CURVE_SIGMOID, 1);
    t->result = step_times(t, t->result, act);
}
