/* SPDX-License-Identifier: MIT
 *
 * Transparent attention in a decoder (Bapna et al. 2018, "Training Deeper Neural Machine
 * Translation Models with Transparent Attention", arXiv:1808.07561): what the output reads is a
 * trained sum of the states after all layers, instead of the last of them:
 *
 *   h = sum over l = 0..N: softmax(w)_l h^l          h^0 is the input of the first layer
 *
 * The paper gives each layer of a decoder such a sum of the encoder's states: encoder.c. */
#include "lm.h"

struct blend {
    struct sublayers *sublayers;
    const struct param *weight; /* [N+1] */
    int N, D;
    float *share; /* [N+1] softmax of the weights */
    float *h;     /* [B,L,D] the stream; kept: after the last layer */
    /* Training only. */
    float *d, *d_share; /* [B,L,D] gradient of the sum; [N+1] */
};

/* With an encoder the decoder's layers have such sums of its states, encoder.c. */
static bool reads_all(const struct config *c) { return c->transparent && !c->enc_layers; }

static void add_params(struct lm *m)
{
    params_vector(&m->params, INIT_ZERO, 0, m->c.N + 1, "transparent.", "weight");
}

static size_t stream(const struct blend *t)
{
    const struct extent max = t->sublayers->max;

    return (size_t)max.B * (size_t)max.L * (size_t)t->D;
}

static enum status bind(struct lm *m, const struct engine *g, struct arena *a, struct err *e)
{
    struct blend *const t = m->drive_data;

    *t = (struct blend){
        .sublayers = &m->sublayers, .weight = &m->params.v[m->at_drive], .N = m->c.N, .D = m->c.D};
    t->share = arena_f32(a, PART_SCRATCH, (size_t)t->N + 1);
    t->h = arena_f32(a, PART_ACTIVATIONS, stream(t));
    return OK;
}

static enum status bind_grad(struct lm *m, const struct engine *g, struct arena *a, struct err *e)
{
    struct blend *const t = m->drive_data;

    t->d = arena_f32(a, PART_ACTIVATIONS, stream(t));
    t->d_share = arena_f32(a, PART_SCRATCH, (size_t)t->N + 1);
    return OK;
}

static float *input(const struct lm *m, float *out)
{
    const struct blend *const t = m->drive_data;

    return sublayers_input(t->sublayers, t->h);
}

static float *state(const struct blend *t, int l) { return layer_state(t->sublayers, l, t->h); }

static void forward(struct lm *m, const struct engine *g, float *out, int B, int L)
{
    struct blend *const t = m->drive_data;
    struct sublayers *const s = t->sublayers;
    const size_t n = (size_t)(B * L) * (size_t)t->D;
    float *x = input(m, out);

    shares_of(t->weight->data, t->N + 1, t->share);
    memset(out, 0, n * sizeof(*out));
    add_times(out, x, t->share[0], n, g->threads);
    for (int l = 0; l < t->N; l++) {
        float *const next = state(t, l + 1);
        layer_forward(s, g, l, next, x, B, L);
        add_times(out, next, t->share[l + 1], n, g->threads);
        x = next;
    }
}

/* The weights' gradients, from those of their softmax. */
static void weight_grad(const struct blend *t)
{
    double mean = 0;

    for (int l = 0; l <= t->N; l++)
        mean += (double)t->share[l] * (double)t->d_share[l];
    for (int l = 0; l <= t->N; l++)
        t->weight->grad[l] += (float)((double)t->share[l] * ((double)t->d_share[l] - mean));
}

static void backward(struct lm *m, const struct engine *g, const int32_t *target, int B, int L)
{
    struct blend *const t = m->drive_data;
    struct sublayers *const s = t->sublayers;
    const size_t n = (size_t)(B * L) * (size_t)t->D;
    float *const d_out = m->d_h;

    memcpy(t->d, d_out, n * sizeof(*d_out));
    memset(d_out, 0, n * sizeof(*d_out));
    for (int l = t->N; l >= 0; l--) {
        t->d_share[l] = (float)dot_in_order(t->d, state(t, l), n);
        add_times(d_out, t->d, t->share[l], n, g->threads);
        if (l > 0)
            layer_backward(s, g, l - 1, d_out, B, L);
    }
    weight_grad(t);
}

/* Of the sum. */
static double sum_flop(const struct lm *m, int B, int L)
{
    return 2.0 * B * L * m->c.D * (m->c.N + 1);
}

static double flop(const struct lm *m, int B, int L, int M)
{
    return plain_flop(m, B, L, M) + sum_flop(m, B, L);
}

static double grad_flop(const struct lm *m, int B, int L, int M)
{
    return plain_grad_flop(m, B, L, M) + 2 * sum_flop(m, B, L);
}

const struct drive drive_blend = {
    .has = reads_all,
    .size = sizeof(struct blend),
    .params = add_params,
    .bind = bind,
    .bind_grad = bind_grad,
    .input = input,
    .forward = forward,
    .backward = backward,
    .flop = flop,
    .grad_flop = grad_flop,
};
