/* SPDX-License-Identifier: MIT
 *
 * For tests of attention with all of its terms: random operands of any mixture of them, attention
 * as the judge's plain loop over pairs in double, and the bound on the error of rounding to float. */
#pragma once

#include "attn_case.h"
#include "mask_rule.h"

/* Terms beyond those of struct scheme. */
enum {
    T_MASK = 1,
    T_MASKS = 2, /* one of three for each head */
    T_WINDOWS = 4,
    T_STEPS = 8,
    T_NO_CONTENT = 16,
    T_REL_Q = 32,
    T_ADD = 64,
    T_SCORES_OUT = 128,
    T_GAIN = 256,
    T_MIX_LOGITS = 512,
    T_MIX_PROBS = 1024,
    T_SINKS = 2048,
    T_ADD_ALL_SEQUENCES = 4096, /* the matrix that is added repeats */
    T_ADD_ALL_HEADS = 8192,
    T_ADD_ALL_ROWS = 16384,
    T_WIDE_V = 1 << 15,
    T_NARROW_V = 1 << 16,
    T_CAP = 1 << 17,
    T_SINK_LOGIT = 1 << 18, /* without T_SINKS the sinks have neither keys nor values */
    T_FADE = 1 << 19,
};
enum { T_HEADS = 8 };

/* Running sums have come far: a float of one would be off by 1/32. */
#define FADE_FROM (-0x1p20)

struct more {
    int terms, pattern; /* pattern: of rule_pattern */
};

/* Each by itself, and mixtures. */
static const struct more mores[] = {
    {T_MASK, 0},
    {T_MASK, 5},
    {T_MASKS, 2},
    {T_MASKS | T_WINDOWS, 8},
    {T_WINDOWS, 0},
    {T_STEPS, 0},
    {T_STEPS, 1},
    {T_STEPS | T_MASKS, 3},
    {T_NO_CONTENT | T_ADD, 0},
    {T_NO_CONTENT | T_ADD | T_ADD_ALL_SEQUENCES | T_MASK, 4},
    {T_REL_Q, 0},
    {T_REL_Q | T_STEPS | T_ADD, 5},
    {T_ADD | T_SCORES_OUT, 0},
    {T_ADD | T_SCORES_OUT | T_GAIN | T_MASK, 6},
    {T_ADD | T_ADD_ALL_HEADS, 0},
    {T_ADD | T_ADD_ALL_ROWS | T_ADD_ALL_SEQUENCES, 0},
    {T_MIX_LOGITS, 0},
    {T_MIX_PROBS | T_MASKS, 1},
    {T_MIX_LOGITS | T_MIX_PROBS | T_SCORES_OUT | T_WINDOWS, 0},
    {T_SINKS, 0},
    {T_SINKS | T_GAIN | T_MASKS, 9},
    {T_MIX_LOGITS | T_MIX_PROBS | T_SINKS | T_ADD | T_REL_Q | T_GAIN | T_SCORES_OUT | T_MASKS, 7},
    {T_MIX_PROBS | T_STEPS | T_SINKS | T_REL_Q | T_WINDOWS | T_ADD | T_ADD_ALL_ROWS, 1},
    {T_WIDE_V, 0},
    {T_NARROW_V | T_MASKS | T_SCORES_OUT, 3},
    {T_CAP, 0},
    {T_CAP | T_ADD | T_GAIN | T_SCORES_OUT | T_MASK, 2},
    {T_SINK_LOGIT, 0},
    {T_SINK_LOGIT | T_WINDOWS | T_GAIN | T_WIDE_V, 0},
    {T_SINK_LOGIT | T_SINKS | T_CAP | T_NARROW_V, 0},
    {T_MIX_LOGITS | T_MIX_PROBS | T_SINK_LOGIT | T_SINKS | T_CAP | T_WIDE_V | T_REL_Q | T_STEPS, 1},
    {T_FADE, 0},
    {T_FADE | T_ADD | T_MASK | T_CAP, 4},
    {T_FADE | T_WINDOWS | T_GAIN | T_SCORES_OUT | T_SINKS, 0},
    {T_FADE | T_MIX_LOGITS | T_NO_CONTENT, 0},
    {T_MIX_LOGITS | T_STEPS | T_SINKS | T_REL_Q | T_WINDOWS | T_ADD | T_ADD_ALL_ROWS, 1},
    {T_ADD | T_SCORES_OUT | T_MIX_LOGITS | T_MIX_PROBS | T_MASK, 6},
    {0, 0}, /* nothing but those of the scheme */
};
enum { MORES = ARRAY_LEN(mores) };
enum { SCORES_MORE = 13, MANY_MORE = 21, MIXED_MORE = MORES - 2, PLAIN_MORE = MORES - 1 };

struct wide {
    struct operands x; /* x.a has everything */
    float *rel_q, *add, *scores_out, *mix_logits, *mix_probs, *sink_k, *sink_v;
    float *fade;       /* [B,H,K] less FADE_FROM */
    double *fade_sums; /* as a.fade reads them */
    size_t add_n, scores_n, mix_n, sink_n, sink_v_n, fade_n;
    struct mask masks[3];
    uint8_t mask_of_head[T_HEADS];
    int windows[T_HEADS];
};

static inline void add_matrix(struct wide *w, int terms)
{
    struct attn *a = &w->x.a;
    const ptrdiff_t K = attn_keys(a), row = K + 3, head = a->L * row + 5, batch = a->H * head + 7;

    w->add_n = (size_t)(a->B * batch);
    w->add = normal(w->add_n, "add", 0, 1);
    if (terms & T_ADD)
        a->add = (struct dense){.at = w->add,
                                .batch = terms & T_ADD_ALL_SEQUENCES ? 0 : batch,
                                .head = terms & T_ADD_ALL_HEADS ? 0 : head,
                                .row = terms & T_ADD_ALL_ROWS ? 0 : row};
}

static inline void set_fade(struct wide *w)
{
    for (size_t x = 0; x < w->fade_n; x++)
        w->fade_sums[x] = FADE_FROM + (double)w->fade[x];
}

static inline void add_sums(struct wide *w, int terms)
{
    struct attn *a = &w->x.a;
    const ptrdiff_t K = attn_keys(a);

    w->fade_n = (size_t)(a->B * a->H * K);
    w->fade = normal(w->fade_n, "fade", 0, 1);
    w->fade_sums = calloc(w->fade_n, sizeof(*w->fade_sums));
    set_fade(w);
    if (terms & T_FADE)
        a->fade = (struct fade){.at = w->fade_sums, .batch = a->H * K, .head = K};
}

static inline void hide_pairs(struct wide *w, const struct more *m)
{
    struct attn *a = &w->x.a;

    for (int n = 0; n < 3; n++)
        w->masks[n] = rule_pattern((m->pattern + n) % RULE_PATTERNS);
    for (int h = 0; h < a->H; h++) {
        w->mask_of_head[h] = (uint8_t)((h + 1) % 3);
        w->windows[h] = h % 4 == 3 ? 0 : 2 + 5 * h;
    }
    if (m->terms & (T_MASK | T_MASKS)) {
        a->mask = w->masks;
        a->base = 13;
    }
    if (m->terms & T_MASKS)
        a->mask_of_head = w->mask_of_head;
    if (m->terms & T_WINDOWS)
        a->window_of_head = w->windows;
    if (m->terms & T_STEPS) {
        a->q_step = 1 + m->pattern % 3;
        a->k_step = 1 + m->pattern % 2;
        a->q_first = a->M + m->pattern % 4;
    }
}

/* Values of another width have no table. */
static inline struct scheme with_terms(const struct scheme *t, int terms)
{
    struct scheme with = *t;

    with.terms |= (terms & T_WIDE_V ? WIDE_V : 0) | (terms & T_NARROW_V ? NARROW_V : 0) |
                  (terms & T_CAP ? CAP : 0) | (terms & T_SINK_LOGIT ? SINK_LOGIT : 0);
    if (terms & (T_WIDE_V | T_NARROW_V))
        with.terms &= ~REL_V;
    return with;
}

static inline void make_wide(struct wide *w, const struct shape *s, const struct scheme *t,
                             const struct more *m)
{
    const struct scheme with = with_terms(t, m->terms);

    make_operands(&w->x, s, &with);
    struct attn *a = &w->x.a;
    const size_t H = (size_t)s->H, table = (size_t)((a->R + a->Rf) * s->dh);

    cr_assert_leq(s->H, T_HEADS);
    w->scores_n = (size_t)s->B * H * (size_t)s->L * (size_t)(s->L + s->M);
    w->mix_n = H * H;
    w->sink_n = H * SINK_LOGITS * (size_t)s->dh;
    w->sink_v_n = H * SINK_LOGITS * (size_t)attn_dv(a);
    w->rel_q = normal((t->terms & PER_HEAD ? H : 1) * table + 1, "rel_q", 0, 1);
    w->mix_logits = normal(w->mix_n, "mix_logits", 0, 0.4f);
    w->mix_probs = normal(w->mix_n, "mix_probs", 0, 0.4f);
    w->sink_k = normal(w->sink_n, "sink_k", 0, 1);
    w->sink_v = normal(w->sink_v_n, "sink_v", 0, 1);
    w->scores_out = guarded(w->scores_n);
    add_matrix(w, m->terms);
    add_sums(w, m->terms);
    hide_pairs(w, m);
    a->scores_out = m->terms & T_SCORES_OUT ? w->scores_out : NULL;
    a->gain = m->terms & T_GAIN ? 0.375f : 0;
    a->mix_logits = m->terms & T_MIX_LOGITS ? w->mix_logits : NULL;
    a->mix_probs = m->terms & T_MIX_PROBS ? w->mix_probs : NULL;
    a->no_content = m->terms & T_NO_CONTENT;
    if (a->no_content) {
        a->u = a->w = a->rel_k = NULL;
        a->q = a->k = NULL;
        return;
    }
    a->rel_q = m->terms & T_REL_Q && a->R + a->Rf > 0 ? w->rel_q : NULL;
    if (m->terms & T_SINKS) {
        a->sinks = SINK_LOGITS;
        a->sink_k = w->sink_k;
        a->sink_v = w->sink_v;
    }
}

static inline void free_wide(struct wide *w)
{
    free_operands(&w->x);
    release(w->fade), free(w->fade_sums);
    release(w->rel_q), release(w->add), release(w->scores_out), release(w->mix_logits);
    release(w->mix_probs), release(w->sink_k), release(w->sink_v);
}

/* The same operands with results of their own: operands take longer to draw than most kernels run. */
static inline struct wide of_same_operands(const struct wide *w)
{
    struct wide y = *w;

    y.x.a.o = y.x.o = guarded(y.x.o_size);
    y.x.lse = guarded(y.x.lse_size), y.scores_out = guarded(y.scores_n);
    y.x.a.lse = w->x.a.lse ? y.x.lse : NULL;
    y.x.a.scores_out = w->x.a.scores_out ? y.scores_out : NULL;
    return y;
}

static inline void free_results(struct wide *w)
{
    release(w->x.o), release(w->x.lse), release(w->scores_out);
}

/* ---- the equation ------------------------------------------------------------------------- */

/* The call of the library that asks for the same: its judge is the loop over pairs. */
static inline struct ba_attention same_call(const struct attn *a, struct ba_mask masks[3])
{
    for (int n = 0; a->mask && n < (a->mask_of_head ? 3 : 1); n++)
        masks[n] = same_mask(&a->mask[n]);
    const struct attn *const x = a;
#define STRIDES(x) .x##_at = { a->x##_at.batch, a->x##_at.row }
    return (struct ba_attention){SAME_IN_ATTENTION(SAME).Hkv = a->Hkv,
                                 .scale = a->scale,
                                 .masks = a->mask ? masks : NULL,
                                 .add = a->add.at,
                                 .add_batch = a->add.batch,
                                 .add_head = a->add.head,
                                 .add_row = a->add.row,
                                 .fade = a->fade.at,
                                 .fade_batch = a->fade.batch,
                                 .fade_head = a->fade.head,
                                 STRIDES(q),
                                 STRIDES(k),
                                 STRIDES(v),
                                 STRIDES(o)};
#undef STRIDES
}

static inline bool loop_sees(const struct attn *a, int h, int i, int j)
{
    const int n = a->q_step ? a->q_first + i * a->q_step - j * a->k_step : a->M + i - j;
    const int window = a->window_of_head ? a->window_of_head[h] : a->window;
    const long key = (long)a->base + (a->q_step ? a->k_step : 1) * j;

    if ((a->causal && n < 0) || (window && n >= window))
        return false;
    return !a->mask ||
           rule_visible(&a->mask[a->mask_of_head ? a->mask_of_head[h] : 0], key + n, key);
}

static inline bool anybody_sees(const struct attn *a, int j)
{
    for (int h = 0; h < a->H; h++)
        for (int i = 0; i < a->L; i++)
            if (loop_sees(a, h, i, j))
                return true;
    return false;
}

/* No numbers in keys and values where no query looks. */
static inline void poison_unseen(struct wide *w)
{
    const struct attn *a = &w->x.a;

    for (int j = 0; j < attn_keys(a); j++)
        for (int b = 0; b < a->B && !anybody_sees(a, j); b++) {
            for (int e = 0; e < a->Hkv * a->dh; e++)
                w->x.k[b * a->k_at.batch + j * a->k_at.row + e] = e % 2 ? INFINITY : NAN;
            for (int e = 0; e < a->Hkv * attn_dv(a); e++)
                w->x.v[b * a->v_at.batch + j * a->v_at.row + e] = j % 2 ? -INFINITY : NAN;
        }
}

/* ---- bounds ------------------------------------------------------------------------------- */

/* Largest sum of magnitudes along a row of a mixing matrix; 1 without one. */
static inline double widest_mix(const float *m, int H)
{
    double most = 0;

    for (int g = 0; m && g < H; g++) {
        double sum = 0;
        for (int h = 0; h < H; h++)
            sum += fabs((double)m[g * H + h]);
        most = fmax(most, sum);
    }
    return m ? most : 1;
}

/* The largest score before mixing, at most. */
static inline double widest_score(const struct wide *w)
{
    const struct attn *a = &w->x.a;
    const int n = attn_keys(a), d = a->dh, rows = a->R + a->Rf, tables = a->rel_head ? a->H : 1;
    const struct stride row = {.row = d}, one = {.row = 1};
    const double q = a->q ? widest(a->q, a->B, a->L, a->q_at, a->H * d) : 0;
    const double k = a->k ? widest(a->k, a->B, n, a->k_at, a->Hkv * d) : 0;
    const double qu = q + widest(w->x.u, 1, a->H, row, d), qw = q + widest(w->x.w, 1, a->H, row, d);
    double S = qu * k;

    if (a->rel_k)
        S += 2 * qw * widest(a->rel_k, 1, tables * rows, row, d);
    if (a->rel_q)
        S += k * widest(a->rel_q, 1, tables * rows, row, d);
    S *= fabs((double)a->scale);
    if (a->bias)
        S += widest(a->bias, 1, (a->bias_head ? a->H : 1) * rows, one, 1);
    if (a->fade.at)
        S += 2 * widest(w->fade, 1, (int)w->fade_n, one, 1);
    return a->add.at ? S + widest(w->add, 1, (int)w->add_n, one, 1) : S;
}

static inline double widest_sink_score(const struct wide *w)
{
    const struct attn *a = &w->x.a;
    const struct stride row = {.row = a->dh}, one = {.row = 1};
    double S = 0;

    if (a->sink_k)
        S +=
            fabs((double)a->scale) * widest(a->sink_k, 1, a->H * a->sinks, row, a->dh) *
            (widest(a->q, a->B, a->L, a->q_at, a->H * a->dh) + widest(w->x.u, 1, a->H, row, a->dh));
    return a->sink_logit ? S + widest(a->sink_logit, 1, a->H * a->sinks, one, 1) : S;
}

struct wide_bound {
    double scores, lse, out;
};

/* As attn_bound. A score is a few dot products and sums more, each product off by d U of its size;
 * mixing adds H products of a matrix row, the gain a factor; sinks are one more kind of key. */
static inline struct wide_bound wide_bound(const struct wide *w)
{
    const struct attn *a = &w->x.a;
    const int n = attn_keys(a), d = a->dh, rows = a->R + a->Rf, tables = a->rel_head ? a->H : 1;
    const struct stride row = {.row = d};
    const double first = widest_mix(a->mix_logits, a->H), then = widest_mix(a->mix_probs, a->H);
    const double gain = a->gain != 0 ? fabs((double)a->gain) : 1;
    const double S = widest_score(w), sinks = widest_sink_score(w);
    double v = widest(a->v, a->B, n, a->v_at, a->Hkv * attn_dv(a));

    if (a->rel_v)
        v += 2 * widest(a->rel_v, 1, tables * rows, row, d);
    if (a->sink_v)
        v += widest(a->sink_v, 1, a->H * a->sinks, (struct stride){.row = attn_dv(a)}, attn_dv(a));
    const double ds = first * U * (d + a->H + 12 + (a->soft_cap != 0 ? CAP_ROUNDINGS : 0)) * S;
    const double top = fmax(gain * first * S, sinks);
    const double p = 2 * (gain * ds + U * (d + 12) * sinks) + U * (4 * top + 8);
    return (struct wide_bound){.scores = ds,
                               .lse = p + U * (2 * top + n + 16),
                               .out = then * v * (p + U * (2 * n + a->H + 16))};
}
