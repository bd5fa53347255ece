/* SPDX-License-Identifier: MIT
 *
 * Attention with random operands, and its bound. */
#include "attn_operands.h"

/* `rows` rows of n floats for each sequence: each operand has its own strides. */
static struct stride with_gaps(int rows, int n, int gap)
{
    return (struct stride){.batch = rows * (n + gap) + 7 * gap, .row = n + gap};
}

void make_operands(struct operands *x, const struct shape *s, const struct scheme *t)
{
    const int K = t->terms & CROSS ? s->M + 1 : s->M + s->L, R = t->R == ALL_KEYS ? K : t->R,
              rows = R + t->Rf, width = s->dh;
    const bool per_head = t->terms & PER_HEAD;
    const size_t table = (size_t)rows * (size_t)width, tables = per_head ? (size_t)s->H : 1;
    const struct stride q_at = with_gaps(s->L, s->H * width, 3);
    const struct stride k_at = with_gaps(K, s->Hkv * width, 1);
    const int dv = t->terms & WIDE_V ? width + 3 : t->terms & NARROW_V ? (width + 1) / 2 : width;
    const struct stride v_at = with_gaps(K, s->Hkv * dv, 2);
    const struct stride o_at = with_gaps(s->L, s->H * dv, 5);

    x->q = normal((size_t)(s->B * q_at.batch), "q", 0, 1);
    x->k = normal((size_t)(s->B * k_at.batch), "k", 0, 1);
    x->v = normal((size_t)(s->B * v_at.batch), "v", 0, 1);
    x->u = normal((size_t)s->H * (size_t)width, "u", 0, 0.5f);
    x->w = normal((size_t)s->H * (size_t)width, "w", 0, 0.5f);
    x->rel_k = normal(tables * table + 1, "rel_k", 0, 1);
    x->rel_v = normal(tables * table + 1, "rel_v", 0, 1);
    x->sink_logit = normal((size_t)s->H * SINK_LOGITS, "sink_logit", 0, 2);
    x->bias = normal(tables * (size_t)rows + 1, "bias", 0, 2);
    x->o_size = (size_t)(s->B * o_at.batch);
    x->lse_size = (size_t)s->B * (size_t)s->H * (size_t)s->L;
    x->o = guarded(x->o_size);
    x->lse = guarded(x->lse_size);
    x->a = (struct attn){
        .B = s->B,
        .H = s->H,
        .Hkv = s->Hkv,
        .L = s->L,
        .M = t->terms & CROSS ? 0 : s->M,
        .K = t->terms & CROSS ? K : 0,
        .dh = width,
        .dv = dv == width ? 0 : dv,
        .window = t->window,
        .R = R,
        .Rf = t->Rf,
        .causal = !(t->terms & FULL),
        .scale = 1.0f / sqrtf((float)width),
        .q = x->q,
        .k = x->k,
        .v = x->v,
        .q_at = q_at,
        .k_at = k_at,
        .v_at = v_at,
        .o_at = o_at,
        .u = t->terms & HAS_U ? x->u : NULL,
        .w = t->terms & HAS_W ? x->w : NULL,
        .rel_k = t->terms & REL_K ? x->rel_k : NULL,
        .rel_v = t->terms & REL_V ? x->rel_v : NULL,
        .rel_head = per_head ? (ptrdiff_t)table : 0,
        .bias = t->terms & BIAS ? x->bias : NULL,
        .bias_head = per_head ? rows : 0,
        .soft_cap = t->terms & CAP ? 1.5f : 0,
        .sinks = t->terms & SINK_LOGIT ? SINK_LOGITS : 0,
        .sink_logit = t->terms & SINK_LOGIT ? x->sink_logit : NULL,
        .o = x->o,
        .lse = t->terms & LSE ? x->lse : NULL,
    };
}

void free_operands(struct operands *x)
{
    release(x->q), release(x->k), release(x->v), release(x->u), release(x->w);
    release(x->rel_k), release(x->rel_v), release(x->bias), release(x->o);
    release(x->sink_logit), release(x->lse);
}

double widest(const float *x, int B, int rows, struct stride at, int n)
{
    double most = 0;

    for (int b = 0; b < B; b++)
        for (int r = 0; r < rows; r++) {
            double sum = 0;
            for (int e = 0; e < n; e++) {
                const double y = (double)x[b * at.batch + r * at.row + e];
                sum += y * y;
            }
            most = fmax(most, sqrt(sum));
        }
    return most;
}

/* Rows of n floats in place, as `widest` finds them. */
static void round_rows(float *x, int B, int rows, struct stride at, int n)
{
    for (int b = 0; b < B; b++)
        for (int j = 0; x && j < rows; j++)
            bf16_round(x + b * at.batch + j * at.row, (size_t)n);
}

void round_operands(struct operands *x)
{
    struct attn *const a = &x->a;
    const int K = attn_keys(a), rows = (a->R + a->Rf) * (a->rel_head ? a->H : 1);
    const struct stride table = {.row = a->dh};

    a->bf16 = true;
    round_rows(x->q, a->B, a->L, a->q_at, a->H * a->dh);
    round_rows(x->k, a->B, K, a->k_at, a->Hkv * a->dh);
    round_rows(x->v, a->B, K, a->v_at, a->Hkv * attn_dv(a));
    round_rows(a->rel_k ? x->rel_k : NULL, 1, rows, table, a->dh);
    round_rows(a->rel_v ? x->rel_v : NULL, 1, rows, table, a->dh);
}

/* Largest number of those rows. */
static double largest(const float *x, int B, int rows, struct stride at, int n)
{
    double most = 0;

    for (int b = 0; b < B; b++)
        for (int j = 0; j < rows; j++)
            for (int e = 0; e < n; e++)
                most = fmax(most, fabs((double)x[b * at.batch + j * at.row + e]));
    return most;
}

struct bound attn_bound(const struct operands *x)
{
    const struct attn *a = &x->a;
    const int n = attn_keys(a), d = a->dh, rows = a->R + a->Rf;
    const int tables = a->rel_head ? a->H : 1;
    const struct stride row = {.row = d}, one = {.row = 1};
    const double q = widest(a->q, a->B, a->L, a->q_at, a->H * d);
    const double u = widest(x->u, 1, a->H, row, d), w = widest(x->w, 1, a->H, row, d);
    double S = (q + u) * widest(a->k, a->B, n, a->k_at, a->Hkv * d);
    double v = widest(a->v, a->B, n, a->v_at, a->Hkv * attn_dv(a)), bias = 0;

    if (a->rel_k)
        S += 2 * (q + w) * widest(a->rel_k, 1, tables * rows, row, d);
    if (a->rel_v)
        v += 2 * widest(a->rel_v, 1, tables * rows, row, d);
    if (a->bias)
        bias = widest(a->bias, 1, (a->bias_head ? a->H : 1) * rows, one, 1);
    if (a->sink_logit)
        bias += widest(a->sink_logit, 1, a->H * a->sinks, one, 1);
    S = fabs((double)a->scale) * S + bias;
    double rounded = a->bf16 ? largest(a->v, a->B, n, a->v_at, a->Hkv * attn_dv(a)) : 0;
    if (a->bf16 && a->rel_v)
        rounded += largest(a->rel_v, 1, tables * rows, row, d);
    const double ds = U * (d + 8 + (a->soft_cap != 0 ? CAP_ROUNDINGS : 0)) * S,
                 p = 2 * ds + U * (4 * S + 8);
    return (struct bound){.out = v * (p + U * (2 * n + 8)) + 0x1p-8 * rounded,
                          .lse = p + U * (2 * S + n + 16)};
}
