/* SPDX-License-Identifier: MIT
 *
 * A golden file of a whole attention layer, converted to the operands of the core: the projections
 * around it and the tables of a scheme, in double and by their formulas. */
#ifndef GOLDEN_LAYER_H
#define GOLDEN_LAYER_H

#include "attn_case.h"
#include "variants/base/safetensors.h"

#include <stdio.h>

struct layer {
    struct safetensors s;
    struct attn a;
    struct attn_grad d;
    int D;
    float *x;         /* [B,K,D] memory and input */
    float *array[32]; /* allocations to free */
    size_t own_n[32];
    int n_own;
    struct mask masks[4];
    uint8_t mask_of_head[16];
    int windows[16];
};

static inline int number(const struct layer *l, const char *key)
{
    int x = 0;

    cr_assert_eq(safetensors_int(&l->s, key, 0, -1000000, 1000000, &x, NULL), OK, "%s", key);
    return x;
}

static inline double real(const struct layer *l, const char *key)
{
    double x = 0;

    cr_assert_eq(safetensors_real(&l->s, key, 0, &x, NULL), OK, "%s", key);
    return x;
}

static inline bool says(const struct layer *l, const char *key, const char *value)
{
    const char *is = safetensors_meta(&l->s, key);

    return is && strcmp(is, value) == 0;
}

/* NULL if there is none. */
static inline const float *tensor(const struct layer *l, const char *name)
{
    const struct tensor *t = safetensors_find(&l->s, name);

    return t ? t->data : NULL;
}

static inline float *take(struct layer *l, size_t n)
{
    float *x = guarded(n);

    cr_assert_lt(l->n_own, (int)ARRAY_LEN(l->array));
    memset(x, 0, n * sizeof(*x));
    l->own_n[l->n_own] = n;
    return l->array[l->n_own++] = x;
}

/* y [rows, out] = x [rows, in] W^T of the named weight. */
static inline float *project(struct layer *l, const char *name, const float *x, int rows, int out,
                             int in)
{
    const float *w = tensor(l, name);
    float *y = take(l, (size_t)(rows * out));

    cr_assert_not_null(w, "%s", name);
    for (int r = 0; r < rows; r++)
        for (int o = 0; o < out; o++) {
            double sum = 0;
            for (int i = 0; i < in; i++)
                sum += (double)x[r * in + i] * (double)w[o * in + i];
            y[r * out + o] = (float)sum;
        }
    return y;
}

/* ---- schemes ------------------------------------------------------------------------------ */

static inline void build_xl(struct layer *l)
{
    struct attn *a = &l->a;
    const int K = attn_keys(a), D = l->D, HD = a->H * a->dh;
    float *pos_encoding = take(l, (size_t)(K * D));

    for (int n = 0; n < K; n++)
        for (int f = 0; f < D / 2; f++) {
            const double angle = n / pow(10000, 2.0 * f / D);
            pos_encoding[n * D + f] = (float)sin(angle);
            pos_encoding[n * D + D / 2 + f] = (float)cos(angle);
        }
    const float *r = project(l, "param.attn.r.weight", pos_encoding, K, HD, D);
    float *table = take(l, (size_t)(HD * K)); /* [H,K,dh], farthest first */
    for (int n = 0; n < K; n++)
        for (int x = 0; x < HD; x++)
            table[(x / a->dh * K + K - 1 - n) * a->dh + x % a->dh] = r[n * HD + x];
    a->rel_k = table;
    a->rel_head = K * a->dh;
    a->R = K;
    a->u = tensor(l, "param.attn.bias_u");
    a->w = tensor(l, "param.attn.bias_v");
}

/* Both tables from one embedding of 2 clip rows: rows 0..clip hold distance 0 and beyond. */
static inline void build_deberta(struct layer *l)
{
    struct attn *a = &l->a;
    const int c = number(l, "clip"), HD = a->H * a->dh, R = c + 1;
    const float *embed = tensor(l, "param.attn.rel_embed.weight");
    const float *kr = project(l, "param.attn.pos_k.weight", embed, 2 * c, HD, l->D);
    const float *qr = project(l, "param.attn.pos_q.weight", embed, 2 * c, HD, l->D);
    const float *bias = tensor(l, "param.attn.pos_q.bias");
    float *rel_k = take(l, (size_t)(HD * R)), *rel_q = take(l, (size_t)(HD * R));

    for (int n = 0; n < R; n++)
        for (int x = 0; x < HD; x++) {
            const int at = (x / a->dh * R + R - 1 - n) * a->dh + x % a->dh;
            const int far = clamp_int(n + c, 0, 2 * c - 1);
            const int back = says(l, "p2c", "code") ? far : clamp_int(c - n, 0, 2 * c - 1);
            rel_k[at] = kr[far * HD + x];
            rel_q[at] = qr[back * HD + x] + (bias ? bias[x] : 0);
        }
    a->rel_k = rel_k, a->rel_q = rel_q;
    a->rel_head = R * a->dh;
    a->R = R;
}

/* slope [H] or a span's ramp, by distance. */
static inline void build_bias(struct layer *l, const float *slope, const float *span)
{
    struct attn *a = &l->a;
    const int K = attn_keys(a);
    const double ramp = real(l, "span_ramp");
    float *bias = take(l, (size_t)(a->H * K));

    for (int h = 0; h < a->H; h++)
        for (int n = 0; n < K; n++) {
            float *at = bias + h * K + K - 1 - n;
            if (slope)
                *at -= slope[h] * (float)n;
            if (span && n < ramp + (double)span[h])
                *at += (float)log(fmin(1, (ramp + (double)span[h] - n) / ramp));
        }
    for (int h = 0; span && h < a->H; h++)
        l->windows[h] = (int)ceil(ramp + (double)span[h]);
    if (span)
        a->window_of_head = l->windows;
    CHECK(!a->R || a->R == K);
    a->R = K;
    a->bias = bias;
    a->bias_head = K;
}

static inline void set_field(struct mask *m, const char *name, int n, int value)
{
    const struct {
        const char *name;
        int *at;
    } fields[] = {{"window", &m->window},   {"dilation", &m->dilation}, {"block", &m->block},
                  {"back", &m->back},       {"stride", &m->stride},     {"fixed", &m->fixed},
                  {"summary", &m->summary}, {"global", &m->global},     {"random", &m->n_random}};

    for (size_t f = 0; f < ARRAY_LEN(fields); f++)
        if ((int)strlen(fields[f].name) == n && strncmp(fields[f].name, name, (size_t)n) == 0) {
            *fields[f].at = value;
            return;
        }
    cr_assert_fail("mask field %.*s", n, name);
}

/* "window=4,global=2;stride=3" and, cycled over heads, "0,1". */
static inline void build_masks(struct layer *l)
{
    const char *at = safetensors_meta(&l->s, "masks"),
               *heads = safetensors_meta(&l->s, "mask_head");
    const struct tensor *random = safetensors_find(&l->s, "in.mask_random");
    int n = 0, of[16] = {0}, n_of = 0;

    while (*at) {
        const int name = (int)strcspn(at, "=");
        set_field(&l->masks[n], at, name, atoi(at + name + 1));
        l->masks[n].random = random ? random->data : NULL;
        l->masks[n].random_blocks = random ? random->shape[0] : 0;
        at += name + strcspn(at + name, ",;");
        n += *at == ';';
        at += *at != 0;
    }
    for (const char *p = heads; p && *p; p += strcspn(p, ",") + (strchr(p, ',') != NULL))
        of[n_of++] = atoi(p);
    for (int h = 0; h < l->a.H; h++)
        l->mask_of_head[h] = (uint8_t)of[n_of ? h % n_of : 0];
    l->a.mask = l->masks;
    l->a.mask_of_head = l->mask_of_head;
    l->a.base = number(l, "base");
}

static inline void build_pairs(struct layer *l)
{
    struct attn *a = &l->a;
    const ptrdiff_t K = attn_keys(a), T = number(l, "max_pos");
    const float *table = tensor(l, "param.attn.syn.table"), *in = tensor(l, "in.scores_in");

    a->no_content = table != NULL;
    if (table)
        a->add = (struct dense){.at = table, .head = T * T, .row = T};
    if (in)
        a->add = (struct dense){in, a->H * a->L * K, a->L * K, K};
    if (in)
        a->scores_out = take(l, (size_t)(a->B * a->H * a->L * K));
    a->mix_logits = tensor(l, "param.attn.mix_logits");
    a->mix_probs = tensor(l, "param.attn.mix_probs");
    a->sinks = number(l, "persistent");
    a->sink_k = tensor(l, "param.attn.pers_k");
    a->sink_v = tensor(l, "param.attn.pers_v");
}

static inline void build_tables(struct layer *l)
{
    const float *slope = tensor(l, "in.slopes"), *span = tensor(l, "param.attn.span");
    const char *masks = safetensors_meta(&l->s, "masks");

    if (says(l, "scheme", "xl"))
        build_xl(l);
    if (says(l, "scheme", "deberta"))
        build_deberta(l);
    if (slope || span)
        build_bias(l, slope, span);
    if (masks && *masks)
        build_masks(l);
    build_pairs(l);
}

/* ---- the layer ---------------------------------------------------------------------------- */

/* [m; x] of every sequence. */
static inline void join_input(struct layer *l)
{
    const struct attn *a = &l->a;
    const size_t D = (size_t)l->D, M = (size_t)a->M * D, L = (size_t)a->L * D;
    const float *mem = tensor(l, "in.mem"), *x = tensor(l, "in.x");

    l->x = take(l, (size_t)a->B * (M + L));
    for (size_t b = 0; b < (size_t)a->B; b++) {
        if (M)
            memcpy(l->x + b * (M + L), mem + b * M, M * sizeof(float));
        memcpy(l->x + b * (M + L) + M, x + b * L, L * sizeof(float));
    }
}

static inline void open_layer(struct layer *l, const char *file)
{
    char path[96];
    struct err e = {""};

    *l = (struct layer){.n_own = 0};
    snprintf(path, sizeof(path), "tests/golden/%s.safetensors", file);
    cr_assert_eq(safetensors_open(&l->s, path, &e), OK, "%s", e.msg);
    struct attn *a = &l->a;
    l->D = number(l, "d_model");
    *a = (struct attn){.B = number(l, "batch"),
                       .H = number(l, "n_head"),
                       .L = number(l, "seq"),
                       .M = number(l, "mem"),
                       .dh = number(l, "d_head"),
                       .causal = number(l, "causal") != 0,
                       .scale = (float)real(l, "scale")};
    a->Hkv = number(l, "kv_heads");
    join_input(l);
    build_tables(l);
    const int K = attn_keys(a), HD = a->H * a->dh, kv = a->Hkv * a->dh, rows = a->B * K;
    if (!a->no_content) { /* queries of memory are not used */
        a->q = project(l, "param.attn.q.weight", l->x, rows, HD, l->D) + a->M * HD;
        a->k = project(l, "param.attn.k.weight", l->x, rows, kv, l->D);
    }
    a->v = project(l, "param.attn.v.weight", l->x, rows, kv, l->D);
    a->q_at = (struct stride){K * HD, HD};
    a->k_at = a->v_at = (struct stride){K * kv, kv};
    a->o_at = (struct stride){a->L * HD, HD};
    a->o = take(l, (size_t)(a->B * a->L * HD));
    a->lse = take(l, (size_t)(a->B * a->H * a->L));
}

static inline void close_layer(struct layer *l)
{
    for (int n = 0; n < l->n_own; n++) {
        cr_expect(guards_intact(l->array[n], l->own_n[n]));
        release(l->array[n]);
    }
    safetensors_close(&l->s);
}

#endif
