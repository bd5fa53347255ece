/* SPDX-License-Identifier: MIT
 *
 * Calls of the library in double, loop by loop and from the text of benchattn.h alone: what tests of its
 * arguments compare with. Every call is one that makes sense; nothing is checked. */
#pragma once

#include "variants/backends/library/benchattn.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* ---- attention ---------------------------------------------------------------------------- */

/* Where a position of a picture is, and the upper left corner of its tile. */
struct judge_place {
    int64_t y, x, top, left;
};

static inline struct judge_place judge_place(const struct ba_mask *m, int64_t position)
{
    const int64_t size = (int64_t)m->rect_rows * m->rect, across = m->row / m->rect;
    const int64_t tile = position / size, at = position % size;
    const int64_t top = tile / across * m->rect_rows, left = tile % across * m->rect;

    return (struct judge_place){top + at / m->rect, left + at % m->rect, top, left};
}

/* Does a mask show the key at c to the query at a? */
static inline bool judge_shows(const struct ba_mask *m, int64_t a, int64_t c)
{
    const int64_t n = a > c ? a - c : c - a, dilation = m->dilation ? m->dilation : 1;

    if (m->rows)
        return m->rows[a * m->row_words + c / 64] >> c % 64 & 1;
    if (n == 0 || !(m->window || m->block || m->stride || m->fixed || m->global || m->rect))
        return true;
    if (m->window && n < m->window * dilation && n % dilation == 0)
        return true;
    if (m->block) {
        const int64_t own = a / m->block, other = c / m->block;
        if (llabs(own - other) <= m->back)
            return true;
        if (c < own * m->block && c >= own * m->block - m->memory)
            return true;
        for (int x = 0; x < m->n_random; x++)
            if (m->random[(own - m->random_from) * m->n_random + x] == other)
                return true;
    }
    if (m->stride && n % m->stride == 0)
        return true;
    if (m->fixed && c % m->fixed >= m->fixed - m->summary)
        return true;
    if (m->global && (c < m->global || a < m->global))
        return true;
    if (!m->rect)
        return false;
    const struct judge_place q = judge_place(m, a), k = judge_place(m, c);
    return k.y >= q.top - m->margin_rows && k.y < q.top + m->rect_rows + m->margin_rows &&
           k.x >= q.left - m->margin && k.x < q.left + m->rect + m->margin;
}

static inline int judge_keys(const struct ba_attention *a) { return a->K ? a->K : a->M + a->L; }
static inline int judge_dv(const struct ba_attention *a) { return a->dv ? a->dv : a->dh; }

/* Element (b, i, 0) of [B, n, width]. */
static inline ptrdiff_t judge_row(struct ba_stride s, int b, int i, int n, int width)
{
    const ptrdiff_t row = s.row ? s.row : width;

    return b * (s.batch ? s.batch : row * n) + i * row;
}

static inline int64_t judge_dist(const struct ba_attention *a, int i, int j)
{
    return a->q_step ? (int64_t)a->q_first + (int64_t)i * a->q_step - (int64_t)j * a->k_step
                     : (int64_t)a->M + i - j;
}

/* Which packed text a token is in. */
static inline int judge_text(const struct ba_attention *a, int i)
{
    int text = 0;

    for (int n = 1; n < a->texts; n++)
        text += i >= a->cu_seqlens[n];
    return text;
}

static inline bool judge_sees(const struct ba_attention *a, int h, int i, int j)
{
    const int from = a->texts ? a->cu_seqlens[judge_text(a, j)] : 0;
    const int64_t n = judge_dist(a, i, j);
    const int64_t key = a->base + (a->q_step ? (int64_t)j * a->k_step : j - from);
    const int window = a->window_of_head ? a->window_of_head[h] : a->window;

    if (a->texts && judge_text(a, i) != judge_text(a, j))
        return false;
    if ((a->causal && n < 0) || (window && n >= window))
        return false;
    if (!a->masks)
        return true;
    const int which = a->mask_of_head ? a->mask_of_head[h] : 0;
    const size_t size = a->masks->size;
    struct ba_mask m = {0}; /* a shorter one is zero in the rest */
    memcpy(&m, (const char *)a->masks + (size_t)which * size, size < sizeof(m) ? size : sizeof(m));
    return judge_shows(&m, key + n, key);
}

/* Row of a table by distance. */
static inline ptrdiff_t judge_table(const struct ba_attention *a, int i, int j)
{
    const int64_t n = judge_dist(a, i, j);

    if (n >= 0)
        return (ptrdiff_t)(a->R - 1 - (n < a->R - 1 ? n : a->R - 1));
    return (ptrdiff_t)(a->R - 1 + (-n < a->Rf ? -n : a->Rf));
}

static inline double judge_rel(const struct ba_attention *a, const float *table, int h, int i,
                               int j, int e)
{
    return table ? (double)table[h * a->rel_head + judge_table(a, i, j) * a->dh + e] : 0;
}

static inline double judge_scale(const struct ba_attention *a)
{
    return a->scale != 0 ? (double)a->scale : 1 / sqrt(a->dh);
}

/* s before heads are mixed. */
static inline double judge_score(const struct ba_attention *a, int b, int h, int i, int j)
{
    const int K = judge_keys(a), Hkv = a->Hkv ? a->Hkv : a->H, kv = h / (a->H / Hkv), d = a->dh;
    double x = 0;

    for (int e = 0; e < d && !a->no_content; e++) {
        const double q = (double)a->q[judge_row(a->q_at, b, i, a->L, a->H * d) + h * d + e];
        const double k = (double)a->k[judge_row(a->k_at, b, j, K, Hkv * d) + kv * d + e];
        x += (q + (a->u ? (double)a->u[h * d + e] : 0)) * k;
        x += (q + (a->w ? (double)a->w[h * d + e] : 0)) * judge_rel(a, a->rel_k, h, i, j, e);
        x += k * judge_rel(a, a->rel_q, h, i, j, e);
    }
    x *= judge_scale(a);
    if (a->soft_cap != 0)
        x = (double)a->soft_cap * tanh(x / (double)a->soft_cap);
    if (a->bias)
        x += (double)a->bias[h * a->bias_head + judge_table(a, i, j)];
    if (a->add)
        x += (double)a->add[b * a->add_batch + h * a->add_head + i * a->add_row + j];
    if (a->fade) {
        const double *const sums = a->fade + b * a->fade_batch + h * a->fade_head;
        x += sums[a->M + i] - sums[j];
    }
    return x;
}

static inline double judge_sink(const struct ba_attention *a, int b, int h, int i, int n)
{
    double x = 0;

    for (int e = 0; a->sink_k && e < a->dh; e++)
        x += ((double)a->q[judge_row(a->q_at, b, i, a->L, a->H * a->dh) + h * a->dh + e] +
              (a->u ? (double)a->u[h * a->dh + e] : 0)) *
             (double)a->sink_k[(h * a->sinks + n) * a->dh + e];
    return judge_scale(a) * x + (a->sink_logit ? (double)a->sink_logit[h * a->sinks + n] : 0);
}

/* Of query i of sequence b: s and p of all heads [H, K + sinks], and the log of the divisors [H]. */
static inline void judge_query(const struct ba_attention *a, int b, int i, double *s, double *p,
                               double *lse)
{
    const int K = judge_keys(a), n = K + a->sinks, H = a->H;
    double *const raw = calloc((size_t)(H * n), sizeof(*raw));
    double *const own = calloc((size_t)(H * n), sizeof(*own));

    for (int x = 0; x < H * K; x++)
        raw[x / K * n + x % K] = judge_score(a, b, x / K, i, x % K);
    for (int g = 0; g < H; g++) {
        double most = -INFINITY, sum = 0;
        for (int j = 0; j < n; j++) {
            const bool sees = j >= K || judge_sees(a, g, i, j);
            double y = j < K ? raw[g * n + j] : judge_sink(a, b, g, i, j - K);
            for (int h = 0; j < K && a->mix_logits && h < H; h++)
                y = (h ? y : 0) + (double)a->mix_logits[g * H + h] * raw[h * n + j];
            s[g * n + j] = y;
            own[g * n + j] = !sees ? -INFINITY : j < K && a->gain != 0 ? (double)a->gain * y : y;
            most = fmax(most, own[g * n + j]);
        }
        for (int j = 0; j < n; j++)
            sum += own[g * n + j] = own[g * n + j] > -INFINITY ? exp(own[g * n + j] - most) : 0;
        for (int j = 0; j < n && sum > 0; j++)
            own[g * n + j] /= sum;
        lse[g] = sum > 0 ? most + log(sum) : -INFINITY;
    }
    for (int x = 0; x < H * n; x++) {
        p[x] = a->mix_probs ? 0 : own[x];
        for (int h = 0; a->mix_probs && h < H; h++)
            p[x] += (double)a->mix_probs[x / n * H + h] * own[h * n + x % n];
    }
    free(raw), free(own);
}

static inline double judge_output(const struct ba_attention *a, const double *p, int b, int h,
                                  int i, int e)
{
    const int K = judge_keys(a), Hkv = a->Hkv ? a->Hkv : a->H, kv = h / (a->H / Hkv);
    const int n = K + a->sinks, dv = judge_dv(a);
    double o = 0;

    for (int j = 0; j < K; j++)
        if (p[h * n + j] != 0)
            o += p[h * n + j] * ((double)a->v[judge_row(a->v_at, b, j, K, Hkv * dv) + kv * dv + e] +
                                 judge_rel(a, a->rel_v, h, i, j, e));
    for (int x = 0; a->sink_v && x < a->sinks; x++)
        o += p[h * n + K + x] * (double)a->sink_v[(h * a->sinks + x) * dv + e];
    return o;
}

/* Where lse of a query is: each text has its own [H, tokens]. */
static inline int judge_lse(const struct ba_attention *a, int b, int h, int i)
{
    if (!a->texts)
        return (b * a->H + h) * a->L + i;
    const int *const cu = a->cu_seqlens + judge_text(a, i);
    return cu[0] * a->H + h * (cu[1] - cu[0]) + i - cu[0];
}

/* o where a has it; lse [B,H,L]; s [B,H,L,K] of what a head sees. */
static inline void judge_attention(const struct ba_attention *a, double *o, double *lse, double *s)
{
    const int K = judge_keys(a), n = K + a->sinks, H = a->H, dv = judge_dv(a);
    double *const row = calloc((size_t)(H * n), sizeof(*row));
    double *const p = calloc((size_t)(H * n), sizeof(*p));
    double *const logs = calloc((size_t)H, sizeof(*logs));

    for (int x = 0; x < a->B * a->L; x++) {
        const int b = x / a->L, i = x % a->L;
        judge_query(a, b, i, row, p, logs);
        for (int h = 0; h < H; h++) {
            const int at = (b * H + h) * a->L + i;
            for (int e = 0; e < dv; e++)
                o[judge_row(a->o_at, b, i, a->L, H * dv) + h * dv + e] =
                    judge_output(a, p, b, h, i, e);
            lse[judge_lse(a, b, h, i)] = logs[h];
            for (int j = 0; j < K; j++)
                if (judge_sees(a, h, i, j))
                    s[(ptrdiff_t)at * K + j] = row[h * n + j];
        }
    }
    free(row), free(p), free(logs);
}

/* ---- recurrences -------------------------------------------------------------------------- */

static inline double judge_at(const struct ba_rows *x, int b, int t, int h, int e)
{
    return (double)x->at[b * x->batch + t * x->row + h / (x->per ? x->per : 1) * x->head + e];
}

/* A key or query without an array is 1. */
static inline double judge_one(const struct ba_rows *x, int b, int t, int h, int e)
{
    return x->at ? judge_at(x, b, t, h, e) : 1;
}

/* The outputs, contiguous as in the struct; those of which a call has none are not written. */
struct judged_recurrence {
    double *o, *den, *s1, *z1, *m1;
};

/* Key t enters the state S [dk,dv], z [dk], which are not divided by anything. */
static inline void judge_step(const struct ba_recurrence *r, int b, int t, int h, double *S,
                              double *z)
{
    const int dk = r->dk, dv = r->dv;
    const double gate = r->i.at ? exp(judge_at(&r->i, b, t, h, 0)) : 1;
    double *const old = calloc((size_t)(dk * dv), sizeof(*old));

    for (int x = 0; x < dk * dv; x++)
        old[x] = S[x];
    for (int c = 0; c < dk; c++) {
        const double w = r->g_width ? exp(judge_at(&r->g, b, t, h, r->g_width > 1 ? c : 0)) : 1;
        for (int e = 0; e < dv; e++)
            S[c * dv + e] *= w;
        z[c] = w * z[c] + gate * judge_one(&r->k, b, t, h, c);
    }
    for (int e = 0; e < dv; e++) {
        double value = judge_at(&r->v, b, t, h, e), read = 0;
        for (int c = 0; c < dk; c++)
            read += r->beta.at ? S[c * dv + e] * judge_one(&r->k, b, t, h, c)
                    : r->a.at  ? old[c * dv + e] * judge_at(&r->a, b, t, h, c)
                               : 0;
        if (r->beta.at)
            value = judge_at(&r->beta, b, t, h, 0) * (value - read);
        for (int c = 0; c < dk; c++) {
            S[c * dv + e] += gate * judge_one(&r->k, b, t, h, c) * value;
            if (r->a.at)
                S[c * dv + e] += judge_at(&r->b, b, t, h, c) * read;
        }
    }
    free(old);
}

/* Query t - M of head h, before (of a bonus) or after key t: o, and the divisor in units of exp(m). */
static inline void judge_read(const struct ba_recurrence *r, int b, int t, int h, double m,
                              const double *S, const double *z, const struct judged_recurrence *out)
{
    const int hs = h / (r->H / (r->Hs ? r->Hs : r->H)), i = t - r->M;
    const ptrdiff_t at = ((ptrdiff_t)b * r->L + i) * r->H + h;
    const double scale = r->scale != 0 ? (double)r->scale : 1;
    double n = 0, bonus = 0, by = 1;

    for (int c = 0; c < r->dk; c++) {
        const double q = scale * judge_one(&r->q, b, i, h, c);
        n += q * z[c];
        if (r->u)
            bonus += q * (double)r->u[h * r->dk + c] * judge_one(&r->k, b, t, hs, c);
    }
    if (r->norm == BA_NORM_SUM)
        by = n + (double)r->eps;
    else if (r->norm == BA_NORM_MLSTM)
        by = fmax(fabs(n), 1);
    if (r->norm && out->den)
        out->den[at] = by * exp(-m);
    for (int e = 0; e < r->dv; e++) {
        double o = r->u ? bonus * judge_at(&r->v, b, t, hs, e) : 0;
        for (int c = 0; c < r->dk; c++)
            o += S[c * r->dv + e] * scale * judge_one(&r->q, b, i, h, c);
        out->o[at * r->dv + e] = o / by;
    }
}

static inline void judge_recurrence(const struct ba_recurrence *r,
                                    const struct judged_recurrence *out)
{
    const int Hs = r->Hs ? r->Hs : r->H, group = r->H / Hs, dk = r->dk, dv = r->dv;
    double *const S = calloc((size_t)(dk * dv), sizeof(*S));
    double *const z = calloc((size_t)dk, sizeof(*z));

    for (int x = 0; x < (r->texts ? r->texts : r->B) * Hs; x++) { /* a state of each text */
        const int h = x % Hs, b = r->texts ? 0 : x / Hs;
        const int from = r->texts ? r->cu_seqlens[x / Hs] : 0;
        const int to = r->texts ? r->cu_seqlens[x / Hs + 1] : r->M + r->L;
        double m = !r->i.at ? 0 : r->m0 ? (double)r->m0[x] : -INFINITY;
        for (int c = 0; c < dk * dv; c++)
            S[c] = r->s0 ? (double)r->s0[(ptrdiff_t)x * dk * dv + c] * exp(m) : 0;
        for (int c = 0; c < dk; c++)
            z[c] = r->z0 ? (double)r->z0[(ptrdiff_t)x * dk + c] * exp(m) : 0;
        for (int t = from; t < to; t++) {
            for (int g = 0; g < group && t >= r->M && r->u; g++)
                judge_read(r, b, t, h * group + g, m, S, z, out);
            judge_step(r, b, t, h, S, z);
            if (r->i.at)
                m = fmax((r->g_width ? judge_at(&r->g, b, t, h, 0) : 0) + m,
                         judge_at(&r->i, b, t, h, 0));
            for (int g = 0; g < group && t >= r->M && !r->u; g++)
                judge_read(r, b, t, h * group + g, m, S, z, out);
        }
        for (int c = 0; c < dk * dv; c++)
            out->s1[(ptrdiff_t)x * dk * dv + c] = S[c] * exp(-m);
        for (int c = 0; c < dk && out->z1; c++)
            out->z1[(ptrdiff_t)x * dk + c] = z[c] * exp(-m);
        if (out->m1)
            out->m1[x] = m;
    }
    free(S), free(z);
}
