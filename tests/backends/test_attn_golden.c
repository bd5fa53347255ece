/* SPDX-License-Identifier: MIT
 *
 * Attention with all of its terms against golden files of whole attention layers, which
 * golden_layer.h opens: its outputs, the scores that it passes on, what is visible, and its
 * gradients as far as the input and the weights before it. */
#include "tests/support/every_backend.h"
#include "tests/support/golden_layer.h"

#include <criterion/parameterized.h>

static const char *const files[] = {
    "mask_bigbird",     "mask_block",        "mask_dilated",
    "mask_fixed",       "mask_global_bidir", "mask_heads",
    "mask_longformer",  "mask_strided",      "mask_window",
    "att_realformer",   "att_realformer_xl", "talking",
    "talking_alibi",    "all_attention",     "span",
    "span_xl",          "synth_random",      "att_deberta",
    "att_deberta_code",
};

/* The rule of `bench check --golden`. */
static void expect_tensor(const struct layer *l, const struct engine *g, const char *name,
                          const double *got)
{
    const struct tensor *t = safetensors_find(&l->s, name);
    const bool grad = strncmp(name, "out.grad.", 9) == 0;
    double worst = 0, largest = 0;

    cr_assert(t, "%s", name);
    const float *want = t->data;
    for (size_t i = 0; i < t->n; i++) {
        worst = fmax(worst, isnan(got[i]) ? INFINITY : fabs(got[i] - (double)want[i]));
        largest = fmax(largest, fabs((double)want[i]));
    }
    const double limit = fmax(largest * real(l, grad ? "tolerance_grad" : "tolerance"),
                              real(l, grad ? "tolerance_grad_abs" : "tolerance_abs"));
    cr_expect(limit > 0 && worst <= limit, "%s: %s of %s is %.3g off, limit %.3g", g->backend->name,
              name, safetensors_meta(&l->s, "name"), worst, limit);
}

static void expect_floats(const struct layer *l, const struct engine *g, const char *name,
                          const float *got, size_t n)
{
    double *x = calloc(n, sizeof(*x));

    for (size_t i = 0; i < n; i++)
        x[i] = (double)got[i];
    expect_tensor(l, g, name, x);
    free(x);
}

static void check_forward(const struct layer *l, const struct engine *g)
{
    const struct attn *a = &l->a;
    const int HD = a->H * a->dh, rows = a->B * a->L;
    const float *w = tensor(l, "param.attn.o.weight");
    const struct tensor *visible = safetensors_find(&l->s, "out.visible");
    double *y = calloc((size_t)(rows * l->D), sizeof(*y));

    attend(g, a);
    for (int x = 0; x < rows * l->D; x++)
        for (int e = 0; e < HD; e++)
            y[x] += (double)a->o[x / l->D * HD + e] * (double)w[x % l->D * HD + e];
    expect_tensor(l, g, "out.y", y);
    if (a->scores_out)
        expect_floats(l, g, "out.scores_out", a->scores_out, (size_t)(rows * a->H * attn_keys(a)));
    for (size_t x = 0; visible && x < visible->n; x++) {
        const int K = attn_keys(a), h = (int)x / K / a->L;
        const struct sight s = attn_sight(a, h);
        cr_expect_eq(sight_visible(&s, (int)x / K % a->L, (int)x % K),
                     ((const int32_t *)visible->data)[x]);
    }
    free(y);
}

/* dW [out, in] of y = x W^T; rows of both lie `step` queries or keys of every sequence apart. */
static void expect_weight(const struct layer *l, const struct engine *g, const char *name,
                          const float *d_y, int first, int out)
{
    const struct attn *a = &l->a;
    const int K = attn_keys(a);
    double *d_w = calloc((size_t)(out * l->D), sizeof(*d_w));

    for (int row = 0; row < a->B * K; row++)
        for (int x = 0; row % K >= first && x < out * l->D; x++)
            d_w[x] += (double)d_y[row * out + x / l->D] * (double)l->x[row * l->D + x % l->D];
    expect_tensor(l, g, name, d_w);
    free(d_w);
}

/* dx of the segment: the part that flows back through the projections. */
static void expect_input(const struct layer *l, const struct engine *g, const float *d_q)
{
    const struct attn *a = &l->a;
    const int K = attn_keys(a), HD = a->H * a->dh, kv = a->Hkv * a->dh;
    const struct {
        const float *w, *d;
        int n;
    } ways[] = {{tensor(l, "param.attn.q.weight"), d_q, HD},
                {tensor(l, "param.attn.k.weight"), l->d.d_k, kv},
                {tensor(l, "param.attn.v.weight"), l->d.d_v, kv}};
    double *d_x = calloc((size_t)(a->B * a->L * l->D), sizeof(*d_x));

    for (int x = 0; x < a->B * a->L * l->D; x++)
        for (size_t n = a->no_content ? 2 : 0; n < ARRAY_LEN(ways); n++)
            for (int o = 0; o < ways[n].n; o++) {
                const int i = x / l->D, row = i / a->L * K + a->M + i % a->L;
                d_x[x] +=
                    (double)ways[n].d[row * ways[n].n + o] * (double)ways[n].w[o * l->D + x % l->D];
            }
    expect_tensor(l, g, "out.grad.x", d_x);
    free(d_x);
}

/* d_o from dy, then all gradients. */
static void check_backward(struct layer *l, const struct engine *g)
{
    const struct attn *a = &l->a;
    const int K = attn_keys(a), HD = a->H * a->dh, kv = a->Hkv * a->dh, rows = a->B * a->L;
    const float *w = tensor(l, "param.attn.o.weight"), *dy = tensor(l, "in.dy");
    const size_t H = (size_t)a->H, sinks = H * (size_t)(a->sinks * a->dh);
    const size_t table = H * (size_t)(a->R * a->dh), T = (size_t)number(l, "max_pos");
    const size_t added = a->no_content ? H * T * T : (size_t)(rows * a->H * K);
    float *d_o = take(l, (size_t)(rows * HD)), *d_q = take(l, (size_t)(a->B * K * HD));
    const struct attn_impl *impl;

    for (int x = 0; x < rows * HD; x++) {
        double sum = 0;
        for (int e = 0; e < l->D; e++)
            sum += (double)dy[x / HD * l->D + e] * (double)w[e * HD + x % HD];
        d_o[x] = (float)sum;
    }
    l->d = (struct attn_grad){
        .d_o = d_o,
        .d_scores_out = tensor(l, "in.dscores_out"),
        .d_q = d_q + a->M * HD,
        .d_k = take(l, (size_t)(a->B * K * kv)),
        .d_v = take(l, (size_t)(a->B * K * kv)),
        .d_u = take(l, (size_t)HD),
        .d_w = take(l, (size_t)HD),
        .d_rel_k = a->rel_k ? take(l, table) : NULL,
        .d_rel_q = a->rel_q ? take(l, table) : NULL,
        .d_bias = a->bias ? take(l, (size_t)(a->H * K)) : NULL,
        .d_add = a->add.at ? take(l, added) : NULL,
        .d_mix_logits = take(l, H * H),
        .d_mix_probs = take(l, H * H),
        .d_sink_k = a->sinks ? take(l, sinks) : NULL,
        .d_sink_v = a->sinks ? take(l, sinks) : NULL,
    };
    cr_assert_eq(engine_attn(g, a, &impl, NULL), OK);
    const struct attn_need need = impl->need_backward(a, g->threads);
    void *scratch = aligned_alloc(64, round_up(need.scores_bytes + need.scratch_bytes, 64) + 64);
    impl->backward(g, a, &l->d, scratch);
    free(scratch);

    expect_input(l, g, d_q);
    expect_weight(l, g, "out.grad.attn.v.weight", l->d.d_v, 0, kv);
    if (!a->no_content) {
        expect_weight(l, g, "out.grad.attn.q.weight", d_q, a->M, HD);
        expect_weight(l, g, "out.grad.attn.k.weight", l->d.d_k, 0, kv);
    }
    const struct {
        const char *name;
        const float *d;
        size_t n;
    } own[] = {{"out.grad.attn.bias_u", l->d.d_u, (size_t)HD},
               {"out.grad.attn.bias_v", l->d.d_w, (size_t)HD},
               {"out.grad.attn.mix_logits", l->d.d_mix_logits, H * H},
               {"out.grad.attn.mix_probs", l->d.d_mix_probs, H * H},
               {"out.grad.attn.pers_k", l->d.d_sink_k, sinks},
               {"out.grad.attn.pers_v", l->d.d_sink_v, sinks},
               {"out.grad.scores_in", l->d.d_add, added},
               {"out.grad.attn.syn.table", l->d.d_add, added}};
    for (size_t n = 0; n < ARRAY_LEN(own); n++)
        if (tensor(l, own[n].name))
            expect_floats(l, g, own[n].name, own[n].d, own[n].n);
}

/* d z_h = sum over 0 < m(n) < 1 of d_bias[h][n] / (ramp m(n)) */
static void check_span(const struct layer *l, const struct engine *g)
{
    const float *span = tensor(l, "param.attn.span");
    const int K = l->a.M + l->a.L;
    const double ramp = real(l, "span_ramp");
    double d[16] = {0};

    for (int h = 0; span && h < l->a.H; h++)
        for (int n = 0; n < K; n++) {
            const double m = (ramp + (double)span[h] - n) / ramp;
            if (m > 0 && m < 1)
                d[h] += (double)l->d.d_bias[h * K + K - 1 - n] / (ramp * m);
        }
    if (span)
        expect_tensor(l, g, "out.grad.attn.span", d);
}

ParameterizedTestParameters(attn_golden, every_file_on_every_backend) { return every_backend(); }
ParameterizedTest(int *b, attn_golden, every_file_on_every_backend, .timeout = 240)
{
    for (size_t f = 0; f < ARRAY_LEN(files); f++)
        for (int threads = 1; threads <= 2; threads++) {
            const struct engine g = open_engine(backends[*b]->name, threads);
            struct layer l;
            open_layer(&l, files[f]);
            check_forward(&l, &g);
            check_backward(&l, &g);
            check_span(&l, &g);
            close_layer(&l);
        }
}
