/* SPDX-License-Identifier: MIT
 *
 * HGRN2: Qin et al. 2024, "HGRN2: Gated Linear RNNs with State Expansion".
 *
 *   f_t = lb + (1 - lb) sigma(W_f x)
 *   k_t = 1 - f_t
 *   q_t = silu(W_q x)
 *   S_t = diag(f_t) S_{t-1} + k_t v_t^T
 *   o_t = S_t^T q_t / sqrt(dk)
 *   y   = W_o rms(o)
 *
 * What a channel forgets is what it writes. The least that it keeps, lb, grows from layer to layer:
 * lb_l = s_1 + .. + s_l, s the softmax over layers of learned `lower_bounds` [N, H dk]. */
#include "variants/model/sublayer/sublayer.h"

static float logistic(float x) { return 1 / (1 + expf(-x)); }

/* ---- lower bounds --------------------------------------------------------------------------- */

/* Softmax over layers of column e. */
static void shares(const struct param *bounds, int e, double s[MAX_LAYERS])
{
    const int N = bounds->shape[0], n = bounds->shape[1];
    double most = -INFINITY, sum = 0;

    for (int l = 0; l < N; l++)
        most = fmax(most, (double)bounds->data[(ptrdiff_t)l * n + e]);
    for (int l = 0; l < N; l++)
        sum += s[l] = exp((double)bounds->data[(ptrdiff_t)l * n + e] - most);
    for (int l = 0; l < N; l++)
        s[l] /= sum;
}

/* The bare operator is given its bound. */
static void bounds_of_layer(const struct steps *t, const struct param *model, float *const state[])
{
    float *const given = state[steps_state(t, "lower_bound")];
    double s[MAX_LAYERS] = {0};

    if (!model)
        return;
    CHECK(t->layer < model->shape[0]);
    for (int e = 0; e < model->shape[1]; e++) {
        double sum = 0;
        shares(model, e, s);
        for (int l = 1; l <= t->layer; l++)
            sum += s[l];
        given[e] = (float)sum;
    }
}

/* From the gradient d of column e of this layer's bound. */
static void bounds_grad(const struct step_call *c, int e, double d)
{
    const struct param *const bounds = c->model;
    const int N = bounds->shape[0], n = bounds->shape[1], layer = c->steps->layer;
    double s[MAX_LAYERS] = {0}, mean = 0;

    CHECK(layer < N);
    shares(bounds, e, s);
    for (int l = 1; l <= layer; l++)
        mean += s[l] * d;
    for (int l = 0; l < N; l++)
        bounds->grad[(ptrdiff_t)l * n + e] +=
            (float)(s[l] * ((l >= 1 && l <= layer ? d : 0) - mean));
}

/* ---- decays and keys ------------------------------------------------------------------------ */

enum { OUT_G, OUT_K };

static const float *bounds_of(const struct step_call *c) { return c->before[0]; }

/* log f from f and 1 - f, whichever says it better. */
static float log_of(float f, float rest) { return rest < 0.5f ? log1pf(-rest) : logf(f); }

static void forward(const struct step_call *c)
{
    const float *const bound = bounds_of(c);

#pragma omp parallel for num_threads(c->g->threads)
    for (int i = 0; i < c->B * c->L; i++) {
        const float *const x = matrix_row(&c->in[0], i);
        float *const g = matrix_row(&c->out[OUT_G], i), *const k = matrix_row(&c->out[OUT_K], i);
        for (int e = 0; e < c->in->n; e++) {
            const float lb = bound ? bound[e] : 0;
            k[e] = (1 - lb) * logistic(-x[e]);
            g[e] = log_of(lb + (1 - lb) * logistic(x[e]), k[e]);
        }
    }
}

/* df = dg / f - dk, dy = df (1 - lb) s (1 - s), dlb = df (1 - s) */
static void backward(const struct step_call *c)
{
    const float *const bound = bounds_of(c);

#pragma omp parallel for num_threads(c->g->threads)
    for (int i = 0; i < c->B * c->L; i++) {
        const float *const x = matrix_row(&c->in[0], i);
        const float *const d_g = matrix_row(&c->d_out[OUT_G], i);
        float *const d_k = matrix_row(&c->d_out[OUT_K], i), *const d_x = matrix_row(&c->d_in[0], i);
        for (int e = 0; e < c->in->n; e++) {
            const float lb = bound ? bound[e] : 0, s = logistic(x[e]), rest = logistic(-x[e]);
            const float d_f = d_g[e] / (lb + (1 - lb) * s) - d_k[e];
            d_x[e] += d_f * (1 - lb) * s * rest;
            d_k[e] = d_f * rest; /* of the bound */
        }
    }
    for (int e = 0; c->model && e < c->in->n; e++) {
        double d_bound = 0;
        for (int i = 0; i < c->B * c->L; i++)
            d_bound += (double)matrix_row(&c->d_out[OUT_K], i)[e];
        bounds_grad(c, e, d_bound);
    }
}

static void build(struct steps *t)
{
    static const struct step_kind kind = {
        .name = "forget", .forward = forward, .backward = backward};
    const int q = step_linear(t, STEPS_INPUT, mix_keys(t), "q");
    const int f = step_linear(t, STEPS_INPUT, mix_keys(t), "f");
    const int v = step_linear(t, STEPS_INPUT, mix_values(t), "v");
    const int silu = step_apply(t, q, CURVE_SILU, 1);
    struct step *const s = STEP_READING(t, &kind, f);

    step_given(t, s, "lower_bound", mix_keys(t));
    const int g = step_writes(t, s, mix_keys(t)), k = step_writes(t, s, mix_keys(t));
    struct recurrence r = mix_recurrence(t, (struct qkv){silu, k, v});
    r.g = g;
    t->model = "lower_bounds";
    t->tables = bounds_of_layer;
    mix_output(t, step_recur(t, r));
}

static void model_params(const struct config *c, struct params *p)
{
    const struct config layer = config_of_layers(c, false);

    params_add(p, INIT_CONST, 1, 2, (const int[]){c->N, layer.H * layer.dh}, "lower_bounds");
}

static const struct part_numbers numbers = MIX_NUMBERS(.norm_whole = true);
const struct mixer mixer_hgrn2 = {.name = "hgrn2",
                                  .numbers = &numbers,
                                  .kind = &sublayer_steps,
                                  .gated = true,
                                  .build = build,
                                  .model_params = model_params};

const struct variant variant_hgrn2 = {
    .name = "hgrn2",
    .paper = "Qin et al. 2024, arXiv:2404.07904",
    .about = "a state whose channels write what they forget",
    .control = "linear --norm pre --norm-kind rms --ffn swiglu",
    MIX_LAYERS,
    .mixer = &mixer_hgrn2,
};
