/* SPDX-License-Identifier: MIT
 *
 * Latent attention, backward: W_o, the core in its form, then queries and latents through their
 * rotations, norms and maps. */
#include "sublayer_latent.h"
#include "variants/base/loops.h"
#include "variants/model/sublayer/sublayer_inner.h"
#include "variants/parts/linear.h"

#include <string.h>

/* ---- products of rows that are apart -------------------------------------------------------- */

/* Rows [first, first + out) of W: dW += d_y^T x; d_x = d_y W + beta d_x. */
struct slice {
    const struct param *W;
    int first, out;
};

static void weight_grad(const struct engine *g, struct slice s, struct latent_rows d_y,
                        struct latent_rows x, int B, int rows)
{
    const int in = s.W->shape[1];

    for (int b = 0; b < B; b++)
        mm(g, TN, s.out, in, rows, 1, d_y.at + b * d_y.batch, d_y.row, x.at + b * x.batch, x.row, 1,
           s.W->grad + (ptrdiff_t)s.first * in, in);
}

static void input_grad(const struct engine *g, struct slice s, struct latent_rows d_x,
                       struct latent_rows d_y, int B, int rows, float beta)
{
    const int in = s.W->shape[1];

    for (int b = 0; b < B; b++)
        mm(g, NN, rows, in, s.out, 1, d_y.at + b * d_y.batch, d_y.row,
           s.W->data + (ptrdiff_t)s.first * in, in, beta, d_x.at + b * d_x.batch, d_x.row);
}

/* Rows of B sequences without gaps as those of one. */
static struct latent_rows together(float *at, int n)
{
    return (struct latent_rows){.at = at, .row = n};
}

/* d from the gradient of rms(x) (.) weight to that of x, both [rows,n]. */
static void norm_grad(const struct engine *g, const struct sublayer *s, const struct work *w,
                      const struct param *weight, float *d, const float *x, int rows)
{
    g->ops.norm_grad(&(struct norm_grad){.kind = NORM_RMS,
                                         .d_x = d,
                                         .d_weight = weight->grad,
                                         .d_y = d,
                                         .x = x,
                                         .weight = weight->data,
                                         .stats = w->stats,
                                         .rows = rows,
                                         .n = weight->shape[0],
                                         .eps = s->c->head_eps,
                                         .threads = g->threads});
}

/* ---- the two forms ------------------------------------------------------------------------ */

/* The head's rows of W_kvb. */
static struct slice up_keys(const struct sublayer *s, int h)
{
    return (struct slice){latent_param(s, MLA_KV_B), h * latent_head(s->c), latent_of(s->c)->nope};
}

static struct slice up_values(const struct sublayer *s, int h)
{
    const struct config *const c = s->c;

    return (struct slice){latent_param(s, MLA_KV_B), h * latent_head(c) + latent_of(c)->nope,
                          config_dv(c)};
}

/* From the gradients of keys and values to that of the latents [B,K,W]. */
static void expand_grad(const struct engine *g, const struct sublayer *s, const struct work *w,
                        int B, int K)
{
    const struct config *const c = s->c;
    const int nope = latent_of(c)->nope, rope = latent_of(c)->rope, rank = latent_of(c)->rank;
    const int H = c->H, dv = config_dv(c), up = latent_head(c), width = latent_width(c);
    const struct slice W = {latent_param(s, MLA_KV_B), 0, H * up};
    float *const d = w->d_array[LA_LATENT], *const d_up = w->d_array[LA_UP];

#pragma omp parallel for num_threads(team_for(g->threads, (ptrdiff_t)B *K *H *up))
    for (ptrdiff_t i = 0; i < (ptrdiff_t)B * K; i++) {
        float *const rotated = d + i * width + rank, *to = d_up + i * H * up;
        const float *d_k = w->d_array[LA_K] + i * H * c->dh, *d_v = w->d_array[LA_V] + i * H * dv;
        memset(rotated, 0, sizeof(float) * (size_t)rope);
        for (int h = 0; h < H; h++, to += up, d_k += c->dh, d_v += dv) {
            memcpy(to, d_k, sizeof(float) * (size_t)nope);
            memcpy(to + nope, d_v, sizeof(float) * (size_t)dv);
            for (int e = 0; e < rope; e++)
                rotated[e] += d_k[nope + e];
        }
    }
    const struct latent_rows d_y = together(d_up, H * up);
    weight_grad(g, W, d_y, together(w->array[LA_LATENT], width), 1, B * K);
    input_grad(g, W, together(d, width), d_y, 1, B * K, 0);
}

/* From the gradient of the outputs to that of o~. */
static void absorb_outputs_grad(const struct engine *g, const struct sublayer *s,
                                const struct work *w, int rows)
{
    const struct config *const c = s->c;
    const int rank = latent_of(c)->rank, dv = config_dv(c);

    for (int h = 0; h < c->H; h++) {
        const struct latent_rows d_o = together(w->d_array[LA_O] + h * dv, c->H * dv);
        weight_grad(g, up_values(s, h), d_o, together(w->array[LA_WIDE_O] + h * rank, c->H * rank),
                    1, rows);
        input_grad(g, up_values(s, h), together(w->d_array[LA_WIDE_O] + h * rank, c->H * rank), d_o,
                   1, rows, 0);
    }
}

/* From the gradients of q~ and of the latents as values to those of queries and latents. */
static void absorb_grad(const struct engine *g, const struct sublayer *s, const struct work *w,
                        int rows, int latents)
{
    const struct config *const c = s->c;
    const int nope = latent_of(c)->nope, rank = latent_of(c)->rank, width = latent_width(c);
    const size_t rope = (size_t)latent_of(c)->rope;
    float *const d_wide = w->d_array[LA_WIDE_Q], *const d_q = w->d_array[LA_Q];

    for (int h = 0; h < c->H; h++) {
        const struct latent_rows q = together(w->array[LA_Q] + h * c->dh, c->H * c->dh);
        const struct latent_rows d_y = together(d_wide + h * width, c->H * width);
        const struct slice W = up_keys(s, h);
        weight_grad(g, W, q, d_y, 1, rows); /* q~ = q W: the sides change places */
        mm(g, NT, rows, nope, rank, 1, d_y.at, d_y.row, W.W->data + (ptrdiff_t)W.first * rank, rank,
           0, d_q + h * c->dh, q.row);
    }
    for (ptrdiff_t i = 0; i < (ptrdiff_t)rows * c->H; i++)
        memcpy(d_q + i * c->dh + nope, d_wide + i * width + rank, rope * sizeof(float));
    for (ptrdiff_t i = 0; i < latents; i++)
        for (int e = 0; e < rank; e++)
            w->d_array[LA_LATENT][i * width + e] += w->d_array[LA_V][i * width + e];
}

/* ---- queries and latents ------------------------------------------------------------------ */

static void queries_grad(const struct engine *g, const struct sublayer *s, const struct work *w,
                         struct latent_rows x, struct latent_rows d_x, int B, int L)
{
    const struct config *const c = s->c;
    const int low = latent_of(c)->q_rank, n = c->H * c->dh;
    const struct slice W = {latent_param(s, MLA_Q_B), 0, n};
    struct latent_rows d = {w->d_array[LA_Q], (ptrdiff_t)L * n, n};

    if (!low) {
        weight_grad(g, W, d, x, B, L);
        input_grad(g, W, d_x, d, B, L, 1);
        return;
    }
    const struct slice down = {latent_param(s, MLA_Q_A), 0, low};
    const struct latent_rows d_low = {w->d_array[LA_Q_LOW], (ptrdiff_t)L * low, low};
    weight_grad(g, W, together(d.at, n), together(w->array[LA_Q_LOW], low), 1, B * L);
    input_grad(g, W, together(d_low.at, low), together(d.at, n), 1, B * L, 0);
    norm_grad(g, s, w, latent_param(s, MLA_Q_NORM), d_low.at, w->array[LA_Q_RAW], B * L);
    weight_grad(g, down, d_low, x, B, L);
    input_grad(g, down, d_x, d_low, B, L, 1);
}

/* Of all source rows; d_x without the first `skip` of each sequence. */
static void latents_grad(const struct engine *g, const struct sublayer *s, const struct work *w,
                         struct latent_rows x, struct latent_rows d_x, int B, int K, int skip)
{
    const struct config *const c = s->c;
    const int rank = latent_of(c)->rank, rope = latent_of(c)->rope, width = latent_width(c);
    const struct slice low = {latent_param(s, MLA_KV_A), 0, rank}, rotated = {low.W, rank, rope};
    const struct latent_rows raw = {w->d_array[LA_RAW], (ptrdiff_t)K * rank, rank};
    float *const d = w->d_array[LA_LATENT];
    const struct latent_rows d_r = {d + rank, (ptrdiff_t)K * width, width};

    for (ptrdiff_t i = 0; i < (ptrdiff_t)B * K; i++)
        memcpy(raw.at + i * rank, d + i * width, sizeof(float) * (size_t)rank);
    for (int b = 0; b < B; b++)
        norm_grad(g, s, w, latent_param(s, MLA_KV_NORM), raw.at + b * raw.batch,
                  w->array[LA_RAW] + b * raw.batch, K);
    weight_grad(g, low, raw, x, B, K);
    weight_grad(g, rotated, d_r, x, B, K);
    input_grad(g, low, d_x, (struct latent_rows){raw.at + (ptrdiff_t)skip * rank, raw.batch, rank},
               B, K - skip, 0);
    input_grad(g, rotated, d_x,
               (struct latent_rows){d_r.at + (ptrdiff_t)skip * width, d_r.batch, width}, B,
               K - skip, 1);
}

void latent_backward(const struct engine *g, struct sublayer *s, const struct work *w,
                     struct sublayer_input from, float *d_in, const float *d_y, int skip)
{
    const struct config *const c = s->c;
    const bool absorbs = latent_absorbs(c);
    const int B = from.B, L = from.L, M = from.M, K = M + L, width = latent_width(c);
    const int64_t base = attention_base(s);
    const struct attn a = latent_operands(s, w, B, L);
    const struct attn_grad d = {
        .d_o = w->d_array[absorbs ? LA_WIDE_O : LA_O],
        .d_q = w->d_array[absorbs ? LA_WIDE_Q : LA_Q],
        .d_k = w->d_array[absorbs ? LA_LATENT : LA_K],
        .d_v = w->d_array[LA_V],
    };
    const struct param *const out = latent_param(s, MLA_O);

    CHECK(s->mem != MEM_KV);
    linear_backward(g, out, NULL, w->d_array[LA_O], d_y, w->array[LA_O], B * L, 0);
    if (absorbs)
        absorb_outputs_grad(g, s, w, B * L);
    s->state.attention.impl->backward(g, &a, &d, w->d_scratch);
    if (absorbs)
        absorb_grad(g, s, w, B * L, B * K);
    else
        expand_grad(g, s, w, B, K);
    const struct seq_rows d_q = {w->d_array[LA_Q], (ptrdiff_t)L * c->H * c->dh};
    const struct seq_rows d_latent = {w->d_array[LA_LATENT], (ptrdiff_t)K * width};
    latent_rotate(g, s, d_q, B, L, c->H, c->dh, base + M, true);
    latent_rotate(g, s, d_latent, B, K, 1, width, base, true);
    const struct latent_rows x = {from.at.at, from.at.stride, c->D};
    const struct latent_rows d_x = {d_in, (ptrdiff_t)(K - skip) * c->D, c->D};
    latents_grad(g, s, w, x, d_x, B, K, skip);
    queries_grad(g, s, w, (struct latent_rows){x.at + (ptrdiff_t)M * c->D, x.batch, x.row},
                 (struct latent_rows){d_x.at + (ptrdiff_t)(M - skip) * c->D, d_x.batch, d_x.row}, B,
                 L);
}

/* Memory is a constant unless a norm with weights is applied to it. */
double latent_grad_flop(const struct sublayer *s, int B, int L, int M)
{
    const double rows = (double)B * L, all = (double)B * (attention_kept(s, M) + L);
    const double projected = s->mem == MEM_HIDDEN ? all : rows;
    const double reached = wiring_norms_first(s->wiring) ? projected : rows;
    const struct attn a = attention_for_flop(s, B, L, M);

    return attn_grad_flop(&a) + latent_maps_flop(s, rows, projected, all) +
           latent_maps_flop(s, rows, reached, all); /* dW and dX */
}
