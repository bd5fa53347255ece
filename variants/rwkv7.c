/* SPDX-License-Identifier: MIT
 *
 * RWKV-7: Peng et al. 2025, "RWKV-7 Goose with Expressive Dynamic State Evolution".
 *
 *   d      = x_{t-1} - x_t
 *   x_c    = x_t + d (.) mu_c                              for c = r, w, k, v, a, g
 *   g      = -e^{-1/2} sigma(w + W_2 tanh(W_1 x_w))
 *   alpha  = sigma(a_0 + A_2 A_1 x_a)
 *   kk     = k (.) k_k, of unit length per head
 *   k     <- k (.) (1 + (alpha - 1) (.) k_a)
 *   v     <- v + (v_first - v) (.) sigma(v_0 + V_2 V_1 x_v)      v_first is the first layer's v
 *   S_t    = diag(exp(g_t)) S_{t-1} - (kk_t (.) alpha_t) (S_{t-1}^T kk_t)^T + k_t v_t^T
 *   o_t    = S_t^T r_t
 *   y      = W_o ((layer(o) + (sum_n r k r_k) v) (.) G_2 sigma(G_1 x_g))
 *   ffn(x) = W_2 relu(W_1 (x + d (.) mu))^2
 *
 * The state decays by channel and erases along kk, at a rate for each channel: a free rank one. */
#include "variants/model/sublayer/sublayer.h"

enum { SHIFTED_R, SHIFTED_W, SHIFTED_K, SHIFTED_V, SHIFTED_A, SHIFTED_G, SHIFTS };
static const float shift_powers[SHIFTS] = {0.2f, 0.9f, 0.7f, 0.7f, 0.9f, 0.2f};

/* ---- k (1 + (alpha - 1) k_a) ---------------------------------------------------------------- */

enum { IN_K, IN_ALPHA };

static void replace(const struct step_call *c)
{
    const float *const w = c->param[0]->data;

    for (int i = 0; i < c->B * c->L; i++) {
        const float *const k = matrix_row(&c->in[IN_K], i);
        const float *const alpha = matrix_row(&c->in[IN_ALPHA], i);
        for (int e = 0; e < c->out->n; e++)
            matrix_row(&c->out[0], i)[e] = k[e] * (1 + (alpha[e] - 1) * w[e]);
    }
}

static void replace_grad(const struct step_call *c)
{
    const struct param *const w = c->param[0];

    for (int i = 0; i < c->B * c->L; i++) {
        const float *const k = matrix_row(&c->in[IN_K], i), *const d = matrix_row(&c->d_out[0], i);
        const float *const alpha = matrix_row(&c->in[IN_ALPHA], i);
        for (int e = 0; e < c->out->n; e++) {
            matrix_row(&c->d_in[IN_K], i)[e] += d[e] * (1 + (alpha[e] - 1) * w->data[e]);
            matrix_row(&c->d_in[IN_ALPHA], i)[e] += d[e] * k[e] * w->data[e];
            w->grad[e] += d[e] * k[e] * (alpha[e] - 1);
        }
    }
}

static int replaced_key(struct steps *t, int k, int alpha)
{
    static const struct step_kind kind = {
        .name = "replace", .forward = replace, .backward = replace_grad};
    struct step *const s = STEP_READING(t, &kind, k, alpha);

    step_vector(t, s, INIT_CONST, 1.02f, mix_keys(t), "k_a");
    return step_writes(t, s, mix_keys(t));
}

/* ---- o + (sum_n r k r_k) v ------------------------------------------------------------------ */

enum { IN_O, IN_R, IN_KEY, IN_V };

static void bonus(const struct step_call *c)
{
    const int H = c->param[0]->shape[0], dk = c->param[0]->shape[1], dv = c->out->n / H;

    for (int i = 0; i < c->B * c->L; i++)
        for (int h = 0; h < H; h++) {
            const float *const w = c->param[0]->data + h * dk;
            const float *const r = matrix_row(&c->in[IN_R], i) + h * dk;
            const float *const k = matrix_row(&c->in[IN_KEY], i) + h * dk;
            double sum = 0;
            for (int n = 0; n < dk; n++)
                sum += (double)r[n] * (double)k[n] * (double)w[n];
            for (int e = h * dv; e < (h + 1) * dv; e++)
                matrix_row(&c->out[0], i)[e] =
                    matrix_row(&c->in[IN_O], i)[e] + (float)sum * matrix_row(&c->in[IN_V], i)[e];
        }
}

static void bonus_grad(const struct step_call *c)
{
    const int H = c->param[0]->shape[0], dk = c->param[0]->shape[1], dv = c->out->n / H;

    for (int i = 0; i < c->B * c->L; i++)
        for (int h = 0; h < H; h++) {
            const float *const w = c->param[0]->data + h * dk;
            const float *const r = matrix_row(&c->in[IN_R], i) + h * dk;
            const float *const k = matrix_row(&c->in[IN_KEY], i) + h * dk;
            const float *const v = matrix_row(&c->in[IN_V], i) + h * dv;
            const float *const d = matrix_row(&c->d_out[0], i) + h * dv;
            double sum = 0, d_sum = 0;
            for (int n = 0; n < dk; n++)
                sum += (double)r[n] * (double)k[n] * (double)w[n];
            for (int e = 0; e < dv; e++) {
                matrix_row(&c->d_in[IN_O], i)[h * dv + e] += d[e];
                matrix_row(&c->d_in[IN_V], i)[h * dv + e] += (float)sum * d[e];
                d_sum += (double)d[e] * (double)v[e];
            }
            for (int n = 0; n < dk; n++) {
                const float one = (float)d_sum;
                matrix_row(&c->d_in[IN_R], i)[h * dk + n] += one * k[n] * w[n];
                matrix_row(&c->d_in[IN_KEY], i)[h * dk + n] += one * r[n] * w[n];
                c->param[0]->grad[h * dk + n] += one * r[n] * k[n];
            }
        }
}

static int with_bonus(struct steps *t, int o, int r, int k, int v)
{
    static const struct step_kind kind = {
        .name = "bonus", .forward = bonus, .backward = bonus_grad};
    struct step *const s = STEP_READING(t, &kind, o, r, k, v);

    step_tensor(t, s, INIT_CONST, -0.04f, 2, (const int[]){t->c->H, t->c->dh}, "r_k");
    return step_writes(t, s, mix_values(t));
}

/* ---- v + (first - v) w ---------------------------------------------------------------------- */

enum { IN_OWN, IN_FIRST, IN_SHARE };

static void blend(const struct step_call *c)
{
    for (int i = 0; i < c->B * c->L; i++)
        for (int e = 0; e < c->out->n; e++) {
            const float v = matrix_row(&c->in[IN_OWN], i)[e];
            const float first = matrix_row(&c->in[IN_FIRST], i)[e];
            matrix_row(&c->out[0], i)[e] = v + (first - v) * matrix_row(&c->in[IN_SHARE], i)[e];
        }
}

static void blend_grad(const struct step_call *c)
{
    for (int i = 0; i < c->B * c->L; i++)
        for (int e = 0; e < c->out->n; e++) {
            const float v = matrix_row(&c->in[IN_OWN], i)[e], d = matrix_row(&c->d_out[0], i)[e];
            const float first = matrix_row(&c->in[IN_FIRST], i)[e];
            const float share = matrix_row(&c->in[IN_SHARE], i)[e];
            matrix_row(&c->d_in[IN_OWN], i)[e] += d * (1 - share);
            matrix_row(&c->d_in[IN_FIRST], i)[e] += d * share;
            matrix_row(&c->d_in[IN_SHARE], i)[e] += d * (first - v);
        }
}

/* A low-rank map of the columns: W_b W_a x. */
static int low_rank(struct steps *t, int x, int width, const char *a, const char *b)
{
    return step_linear(t, step_linear(t, x, mix_of(t)->lora, a), width, b);
}

/* The values, moved towards the first layer's; the first layer shares its own. */
static int values_of(struct steps *t, int x, int v)
{
    static const struct step_kind kind = {
        .name = "blend", .forward = blend, .backward = blend_grad};
    const int width = mix_values(t), first = steps_first(t, width);

    if (t->layer == 0 && !(t->alone && mix_of(t)->moves_first)) {
        step_copy_to(t, first, v);
        return v;
    }
    const int z = low_rank(t, x, width, "v_a", "v_b");
    const int share = step_curve(t, z, CURVE_SIGMOID, 1, "v0", INIT_ZERO, 0);
    return step_writes(t, STEP_READING(t, &kind, v, first, share), width);
}

/* ---- the layer ------------------------------------------------------------------------------ */

static void build(struct steps *t)
{
    const int D = t->c->D, rank = mix_of(t)->lora, keys = mix_keys(t), values = mix_values(t);
    const int maa = steps_tensor(t, INIT_RAMP, 0, 2, (const int[]){SHIFTS, D}, "maa");
    steps_ramp(t, mix_shifts(t, shift_powers, SHIFTS));
    const int d = step_shift(t, STEPS_INPUT, "shift");
    const int all = step_mixes(t, STEPS_INPUT, d, NO_VALUE, (struct mix_weights){maa, 0, SHIFTS});
#define SHIFTED(c) steps_columns(t, all, SHIFTED_##c *D, D)
    const int r = step_linear(t, SHIFTED(R), keys, "q");
    const int k = step_linear(t, SHIFTED(K), keys, "k");
    const int v = values_of(t, SHIFTED(V), step_linear(t, SHIFTED(V), values, "v"));
    const int w = step_linear(t, SHIFTED(W), rank, "decay_a");
    const int z = step_linear(t, step_apply(t, w, CURVE_TANH, 1), keys, "decay_b");
    const int alpha = step_curve(t, low_rank(t, SHIFTED(A), keys, "a_a", "a_b"), CURVE_SIGMOID, 1,
                                 "a0", INIT_ZERO, 0);
    const int kk = step_unit(t, step_scale(t, k, "k_k", 0.71f), t->c->dh, 1e-12f, true);
    const int key = replaced_key(t, k, alpha);
    const int gate = step_apply(t, step_linear(t, SHIFTED(G), rank, "g_a"), CURVE_SIGMOID, 1);
    struct recurrence of =
        mix_recurrence(t, (struct qkv){step_copy(t, r), step_copy(t, key), step_copy(t, v)});
    of.g = step_curve(t, z, CURVE_SIGMOID, -0.60653066f, "decay", INIT_RAMP, 0); /* -e^{-1/2} */
    /* Over all key channels, in later layers mostly slow ones. */
    steps_ramp(t, (struct ramp){.from = -6, .to = 0, .power = {1 + powf(mix_depth(t), 0.3f)}});
    of.b = step_times(t, kk, alpha);
    of.a = step_apply(t, kk, CURVE_NONE, -1);
    const int o = with_bonus(t, mix_normed(t, step_recur(t, of)), r, key, v);
    t->result = step_times(t, o, step_linear(t, gate, values, "g_b"));
#undef SHIFTED
}

static const struct part_numbers numbers =
    MIX_NUMBERS(.lora = 64, .head_norm = MIX_LAYER, .norm_bias = true, .moves_first = true);
const struct mixer mixer_rwkv7 = {
    .name = "rwkv7", .numbers = &numbers, .kind = &sublayer_steps, .build = build};

static void build_ffn(struct steps *t)
{
    const int D = t->c->D;
    const float power = powf(1 - (float)t->layer / (float)t->c->N, 3); /* the fourth in all */
    const int maa = steps_tensor(t, INIT_RAMP, 0, 2, (const int[]){1, D}, "maa");
    steps_ramp(t, mix_shifts(t, &power, 1));
    const int d = step_shift(t, STEPS_INPUT, "ff_shift");
    const int x = step_mixes(t, STEPS_INPUT, d, NO_VALUE, (struct mix_weights){maa, 0, 1});

    t->result = step_apply(t, step_linear(t, x, t->c->F, "1"), CURVE_RELU_SQUARED, 1);
    t->last = "2.weight";
}

const struct ffn ffn_rwkv7 = {.name = "rwkv7", .build = build_ffn};

const struct variant variant_rwkv7 = {
    .name = "rwkv7",
    .paper = "Peng et al. 2025, arXiv:2503.14456",
    .about = "a state that decays and erases by channel, with token shifts",
    .control = "linear --norm pre --ffn rwkv7",
    .pos = &pos_none,
    .mem = &mem_state,
    .ffn = &ffn_rwkv7,
    .mixer = &mixer_rwkv7,
    .head_eps = 64e-5f,
    .wiring = WIRING_PRE,
    .unscaled = true,
    .bare_ffn = true,
};
