/* SPDX-License-Identifier: MIT
 *
 * Encoder and decoder, forward and backward: equations in seq2seq.h. */
#include "seq2seq.h"
#include "checkpoint.h"
#include "variants/base/loops.h"
#include "variants/parts/linear.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { EMBED, OUT_BIAS };

/* ---- declaration and binding ---------------------------------------------------------------- */

enum status seq2seq_config(const struct safetensors *s, struct config *c, int *dec_layers,
                           bool *transparent, struct err *e)
{
    enum { MOST = 1 << 16, MOST_LAYERS = 64 };
    const char *const word = safetensors_meta(s, "pos");
    const struct pos *const pos = pos_find(word ? word : "none");
    int n[7] = {0}, blends = 0;
    double scale = 0, emb_scale = 0, ln_eps = 0;
    static const char *const sizes[] = {"d_model", "n_head",  "d_head",    "d_inner",
                                        "vocab",   "n_layer", "dec_layers"};
    enum status st = OK;

    for (int i = 0; st == OK && i < (int)ARRAY_LEN(sizes); i++)
        st = safetensors_int(s, sizes[i], 0, 1, i < 5 ? MOST : MOST_LAYERS, &n[i], e);
    for (int i = 0; st == OK && i < (int)ARRAY_LEN(sizes); i++)
        if (n[i] == 0)
            return safetensors_fail(s, e, "metadata %s is missing  -> use 1 or more", sizes[i]);
    if (st != OK || (st = safetensors_real(s, "scale", 1, &scale, e)) != OK ||
        (st = safetensors_real(s, "emb_scale", 1, &emb_scale, e)) != OK ||
        (st = safetensors_real(s, "ln_eps", 1e-5, &ln_eps, e)) != OK ||
        (st = safetensors_int(s, "transparent", 0, 0, 1, &blends, e)) != OK)
        return st;
    if (!pos || (pos != pos_find("none") && !(pos->embed && pos->sinusoids && !pos->model_params)))
        return safetensors_fail(s, e, "pos \"%.64s\"  -> use sinusoid, none", word ? word : "");
    *c = config_default(variants[0], n[0], n[1], n[2], n[3], n[5], n[4]);
    if ((st = checkpoint_parts(s, "param.dec.0.", c, e)) != OK ||
        (st = safetensors_int(s, "window", 0, 0, MOST, &c->window, e)) != OK)
        return st;
    c->pos = pos;
    c->wiring = WIRING_POST;
    c->scale = (float)scale;
    c->emb_scale = (float)emb_scale;
    c->ln_eps = (float)ln_eps;
    c->attn_bias = safetensors_find(s, "param.dec.0.attn.q.bias") != NULL;
    *dec_layers = n[6];
    *transparent = blends;
    return checkpoint_check(s, c, e);
}

static void name_layers(struct params *p, int first, int N, const char *to)
{
    for (int l = 0; l < N; l++) {
        char from[32], name[32];
        snprintf(from, sizeof(from), "layers.%d.", l);
        snprintf(name, sizeof(name), "%s.%d.", to, l);
        params_rename(p, first, from, name);
    }
}

enum status seq2seq_init(struct seq2seq *t, const struct config *c, int dec_layers,
                         bool transparent, struct err *e)
{
    struct params *const p = &t->params;

    *t = (struct seq2seq){.enc = *c, .dec = *c, .transparent = transparent, .at_blend = -1};
    t->dec.N = dec_layers;
    snprintf(t->enc.subs, sizeof(t->enc.subs), "ef");
    snprintf(t->dec.subs, sizeof(t->dec.subs), "sxf");
    params_add(p, INIT_EMBED, 0, 2, (const int[]){c->V, c->D}, "%s", "embed.weight");
    params_vector(p, INIT_ZERO, 0, c->V, "out.", "bias");
    if (transparent)
        t->at_blend = params_add(p, INIT_ZERO, 0, 2, (const int[]){dec_layers, c->N + 1}, "%s",
                                 "transparent.weight");
    int first = p->n;
    enum status st = sublayers_init(&t->encoder, &t->enc, p, 0, e);
    name_layers(p, first, c->N, "enc");
    first = p->n;
    if (st == OK)
        st = sublayers_init(&t->decoder, &t->dec, p, 0, e);
    name_layers(p, first, dec_layers, "dec");
    params_rename(p, first, ".read.", ".cross.");
    return st;
}

static size_t source(const struct seq2seq *t)
{
    return (size_t)t->B * (size_t)t->S * (size_t)t->enc.D;
}

static int contexts(const struct seq2seq *t) { return t->transparent ? t->dec.N : 1; }

/* What each cross attention reads. */
static void connect(struct seq2seq *t)
{
    int j = 0;

    for (int i = 0; i < t->encoder.n; i++)
        t->encoder.at[i].reading.seen = t->seen;
    for (int i = 0; i < t->decoder.n; i++) {
        struct sublayer *const s = &t->decoder.at[i];
        const size_t at = t->transparent ? (size_t)j * source(t) : 0;
        if (s->kind != &sublayer_read)
            continue;
        s->reading.S = t->S;
        s->reading.seen = t->seen;
        s->reading.ctx = t->transparent ? t->context + at : seq2seq_top(t);
        s->reading.d_ctx = t->d_context ? t->d_context + at : NULL;
        j++;
    }
}

enum status seq2seq_bind(struct seq2seq *t, const struct engine *g, bool backward, struct arena *a,
                         struct err *e)
{
    const struct extent enc = {t->B, t->S, 0}, dec = {t->B, t->L, 0};
    const size_t D = (size_t)t->enc.D, rows = (size_t)t->B * (size_t)t->L;
    const size_t states = (size_t)t->enc.N + 1;
    const bool codes = t->enc.pos->embed;
    enum status st;

    params_place(&t->params, a);
    params_place_packed(&t->params, g, t->B * max_int(t->S, t->L), a);
    if (backward)
        params_place_grad(&t->params, a);
    t->states = arena_f32(a, PART_ACTIVATIONS, states * source(t));
    t->share = arena_f32(a, PART_SCRATCH, states * (size_t)t->dec.N);
    t->context =
        t->transparent ? arena_f32(a, PART_ACTIVATIONS, (size_t)t->dec.N * source(t)) : NULL;
    t->h = arena_f32(a, PART_ACTIVATIONS, rows * D);
    t->logits = arena_f32(a, PART_ACTIVATIONS, rows * (size_t)t->enc.V);
    t->codes_s =
        codes ? arena_f32(a, PART_SCRATCH, t->enc.pos->n_pos_encoding(&t->enc, t->S)) : NULL;
    t->codes_l =
        codes ? arena_f32(a, PART_SCRATCH, t->enc.pos->n_pos_encoding(&t->enc, t->L)) : NULL;
    t->d_context =
        backward ? arena_f32(a, PART_ACTIVATIONS, (size_t)contexts(t) * source(t)) : NULL;
    t->d_states = backward ? arena_f32(a, PART_ACTIVATIONS, source(t)) : NULL;
    t->d_h = backward ? arena_f32(a, PART_ACTIVATIONS, rows * D) : NULL;
    connect(t);
    if ((st = sublayers_bind(&t->encoder, g, &t->params, MEM_NONE, enc, a, e)) != OK ||
        (st = sublayers_bind(&t->decoder, g, &t->params, MEM_NONE, dec, a, e)) != OK)
        return st;
    if (backward && ((st = sublayers_bind_grad(&t->encoder, g, a, e)) != OK ||
                     (st = sublayers_bind_grad(&t->decoder, g, a, e)) != OK))
        return st;
    return OK;
}

void seq2seq_free(struct seq2seq *t)
{
    sublayers_free(&t->encoder);
    sublayers_free(&t->decoder);
    params_free(&t->params);
}

/* ---- forward -------------------------------------------------------------------------------- */

static float *state(const struct seq2seq *t, int l) { return t->states + (size_t)l * source(t); }

const float *seq2seq_top(const struct seq2seq *t) { return t->states ? state(t, t->enc.N) : NULL; }

static void embed(const struct seq2seq *t, float *h, float *codes, const int32_t *tokens, int L)
{
    const struct config *const c = &t->enc;
    const float *const E = t->params.v[EMBED].data;

    for (ptrdiff_t i = 0; i < (ptrdiff_t)t->B * L; i++)
        for (int e = 0; e < c->D; e++)
            h[i * c->D + e] = c->emb_scale * E[(ptrdiff_t)tokens[i] * c->D + e];
    if (!codes)
        return;
    c->pos->pos_encoding(c, 0, L, codes);
    c->pos->embed(c, NULL, codes, h, t->B, L);
}

static void encode(struct seq2seq *t, const struct engine *g, const int32_t *src)
{
    struct sublayers *const s = &t->encoder;

    embed(t, state(t, 0), t->codes_s, src, t->S);
    for (int l = 0; l < t->enc.N; l++) {
        const int first = sublayers_first(s, l), n = sublayers_first(s, l + 1) - first;
        float *const to = state(t, l + 1), *const x = sublayers_part_input(s, first, n, to);
        memcpy(x, state(t, l), source(t) * sizeof(float));
        sublayers_part_forward(s, g, first, n, to, x, t->B, t->S);
    }
}

/* y += by * x */
static void add(float *y, const float *x, float by, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] += by * x[i];
}

static void blend(struct seq2seq *t)
{
    const int n = t->enc.N + 1;

    for (int j = 0; t->transparent && j < t->dec.N; j++) {
        const float *const w = t->params.v[t->at_blend].data + (ptrdiff_t)j * n;
        float *const share = t->share + (ptrdiff_t)j * n;
        float *const to = t->context + (size_t)j * source(t);
        double most = -INFINITY, sum = 0;
        for (int l = 0; l < n; l++)
            most = fmax(most, (double)w[l]);
        for (int l = 0; l < n; l++)
            sum += exp((double)w[l] - most);
        memset(to, 0, source(t) * sizeof(float));
        for (int l = 0; l < n; l++) {
            share[l] = (float)(exp((double)w[l] - most) / sum);
            add(to, state(t, l), share[l], source(t));
        }
    }
}

void seq2seq_forward(struct seq2seq *t, const struct engine *g, const int32_t *src,
                     const int32_t *tokens, const int32_t *target, float *nll)
{
    const struct config *const c = &t->enc;
    const int rows = t->B * t->L;
    float *const x = sublayers_input(&t->decoder, t->h);

    params_pack(&t->params, g);
    encode(t, g, src);
    blend(t);
    embed(t, x, t->codes_l, tokens, t->L);
    sublayers_forward(&t->decoder, g, t->h, x, t->B, t->L);
    linear_forward(g, &t->params.v[EMBED], &t->params.v[OUT_BIAS], t->logits, t->h, rows,
                   (struct act){.y = t->logits});
    g->ops.nll(&(struct nll_op){.nll = nll,
                                .logits = t->logits,
                                .target = target,
                                .rows = rows,
                                .n = c->V,
                                .threads = g->threads});
}

/* ---- backward ------------------------------------------------------------------------------- */

static void embed_grad(const struct seq2seq *t, const float *d, const int32_t *tokens, int L)
{
    const ptrdiff_t D = t->enc.D;

    for (ptrdiff_t i = 0; i < (ptrdiff_t)t->B * L; i++)
        add(t->params.v[EMBED].grad + tokens[i] * D, d + i * D, t->enc.emb_scale, (size_t)D);
}

/* d += what all contexts give state l, which they contain in shares. */
static void gather(struct seq2seq *t, int l)
{
    const int n = t->enc.N + 1;

    if (!t->transparent && l == t->enc.N)
        add(t->d_states, t->d_context, 1, source(t));
    for (int j = 0; t->transparent && j < t->dec.N; j++)
        add(t->d_states, t->d_context + (size_t)j * source(t), t->share[j * n + l], source(t));
}

/* Through the softmax of one layer's shares. */
static void share_grad(struct seq2seq *t, int j)
{
    const int n = t->enc.N + 1;
    const float *const d = t->d_context + (size_t)j * source(t), *const share = t->share + j * n;
    float *const to = t->params.v[t->at_blend].grad + (ptrdiff_t)j * n;
    double mean = 0;

    for (int l = 0; l < n; l++)
        mean += (double)share[l] * dot_in_order(d, state(t, l), source(t));
    for (int l = 0; l < n; l++)
        to[l] += (float)((double)share[l] * (dot_in_order(d, state(t, l), source(t)) - mean));
}

void seq2seq_backward(struct seq2seq *t, const struct engine *g, const int32_t *src,
                      const int32_t *tokens, const int32_t *target)
{
    const int rows = t->B * t->L;

    g->ops.nll_grad(&(struct nll_grad){.d_logits = t->logits,
                                       .logits = t->logits,
                                       .target = target,
                                       .scale = 1 / (float)rows,
                                       .rows = rows,
                                       .n = t->enc.V,
                                       .threads = g->threads});
    linear_bias_grad(g, &t->params.v[OUT_BIAS], t->logits, rows);
    linear_weight_grad(g, &t->params.v[EMBED], t->logits, t->h, rows);
    linear_input_grad(g, &t->params.v[EMBED], t->d_h, t->logits, rows, 0);
    memset(t->d_context, 0, (size_t)contexts(t) * source(t) * sizeof(float));
    sublayers_backward(&t->decoder, g, t->d_h, t->B, t->L);
    embed_grad(t, t->d_h, tokens, t->L);
    for (int j = 0; t->transparent && j < t->dec.N; j++)
        share_grad(t, j);
    memset(t->d_states, 0, source(t) * sizeof(float));
    for (int l = t->enc.N; l >= 0; l--) {
        gather(t, l);
        if (l > 0) {
            const int first = sublayers_first(&t->encoder, l - 1);
            sublayers_part_backward(&t->encoder, g, first, sublayers_first(&t->encoder, l) - first,
                                    t->d_states, t->B, t->S);
        }
    }
    embed_grad(t, t->d_states, src, t->S);
}
