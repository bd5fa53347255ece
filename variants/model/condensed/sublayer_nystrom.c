/* SPDX-License-Identifier: MIT
 *
 * Nystrom attention as a kind of sub-layer (variants/nystrom.c): two calls of an implementation of
 * attention, landmarks to all keys and all queries to landmarks, and between them the iteration for
 * the pseudo-inverse, matrices of landmarks for each head. */
#include "condensed.h"
#include "nystrom_inverse.h"
#include "variants/base/loops.h"
#include "variants/model/attention/sublayer_attention.h"

#include <float.h>
#include <math.h>
#include <string.h>

struct nystrom {
    int landmarks, iterations;
    int taps;    /* of the convolution; 0 = none */
    float ridge; /* times the identity, added to A_2 */
};

static const struct choice choices[] = {
    ROW_INT(struct nystrom, landmarks, "landmarks", 1, 1 << 12,
            "means that queries and keys are replaced by", .scope = SCOPE_LAYER, .setting = true,
            .tiny = "3"),
    ROW_INT(struct nystrom, iterations, "pinv_iters", 0, 64, "iterations for the pseudo-inverse",
            .scope = SCOPE_LAYER, .setting = true),
    ROW_INT(struct nystrom, taps, "conv_taps", 0, 1 << 12,
            "tokens that the convolution of values reads; 0 = none", .scope = SCOPE_LAYER,
            .setting = true, .key = "conv_kernel", .absent = "0"),
    ROW_REAL(struct nystrom, ridge, "landmark_identity", 0, FLT_MAX,
             "times the identity, added to what landmarks see of each other", .scope = SCOPE_LAYER,
             .absent = "0", .if_other = true, SETTING),
    {0},
};

static void usual(const struct config *c, void *numbers)
{
    (void)c;
    *(struct nystrom *)numbers = (struct nystrom){.landmarks = 64, .iterations = 6, .taps = 33};
}

static enum status check(const struct config *c, const void *numbers, struct err *e)
{
    const struct nystrom *const n = numbers;

    if (n->taps && n->taps % 2 == 0)
        return fail(e, E_USAGE, "%s: a convolution of %d taps has no middle  -> use %d",
                    c->variant->name, n->taps, n->taps + 1);
    return OK;
}

const struct part_numbers nystrom_numbers = {choices, NUMBERS_SIZE(struct nystrom), usual, check};

static const struct nystrom *numbers(const struct config *c)
{
    return config_numbers(c, SLOT_MIXER);
}

/* Of a text of L tokens: no more than these. */
static int landmarks(const struct config *c, int L) { return min_int(numbers(c)->landmarks, L); }

/* Of all heads [B,m,H,dh]: CO_FAR_K landmarks of keys, NY_Q of queries, NY_O A_3 v, CO_FAR_V Z A_3
 * v. NY_LSE: log-sum-exps of A_3 [B,H,m]. NY_Z: matrices [m,m] of each head, A_2, all iterates and
 * temporary ones; of gradients those of A_2 and of an iterate. NY_SUM [B,L,H,dh]: outputs with the
 * convolution. */
enum { NY_Q = CO_FORM, NY_O, NY_LSE, NY_Z, NY_SUM };
enum { GRADIENTS = 2 };

static const struct grouping none = {0};

static void params(const struct sublayer *s, const char *prefix, const char *inner,
                   struct params *p)
{
    const struct config *const c = s->c;

    (void)inner;
    project_params(s, c->D, c->D, prefix, p);
    if (numbers(c)->taps)
        params_add(p, INIT_UNIFORM_BOTH, 1 / sqrtf((float)numbers(c)->taps), 2,
                   (const int[]){c->H, numbers(c)->taps}, "%sattn.conv.weight", prefix);
}

/* ---- binding ------------------------------------------------------------------------------ */

static enum status bind(struct sublayer *s, const struct engine *g, struct extent max,
                        struct arena *a, struct err *e)
{
    (void)a;
    struct attention *const t = &s->state.attention;
    *t = (struct attention){.prepared = attn_of_config(s->c, max.B, max.L, 0)};
    t->prepared.K = max.L;
    return engine_attn(g, &t->prepared, &t->impl, e);
}

/* A_2, the iterates from Z_0 on, temporary ones. */
static int matrices(const struct config *c)
{
    return numbers(c)->iterations + 2 + NYSTROM_TEMPORARY;
}

static void arrays(const struct sublayer *s, struct extent max, struct array out[SUB_ARRAYS])
{
    const struct config *const c = s->c;
    const size_t m = (size_t)landmarks(c, max.L), heads = (size_t)max.B * (size_t)c->H;
    const size_t q = m * (size_t)max.B * (size_t)config_q_width(c);
    const size_t z = heads * m * m * (size_t)matrices(c);

    condensed_arrays(s, none, max, out);
    out[NY_Q] = (struct array){q, q, false, PART_ACTIVATIONS};
    out[CO_FAR_K] = out[CO_FAR_V] = out[NY_O] = out[NY_Q];
    out[NY_LSE] = (struct array){0, heads * m, false, PART_ACTIVATIONS};
    out[NY_Z] = (struct array){z, z, false, PART_SCORES};
    if (numbers(c)->taps)
        out[NY_SUM] = out[CO_O];
}

static void arrays_grad(const struct sublayer *s, struct extent max, struct array out[SUB_ARRAYS])
{
    sublayer_arrays_grad(s, max, out);
    out[NY_SUM].n_kept = 0;
    out[NY_Z].n_kept = out[NY_Z].n_kept / (size_t)matrices(s->c) * GRADIENTS;
}

/* ---- landmarks ---------------------------------------------------------------------------- */

/* First row of part t of m of L rows. */
static int part_at(int t, int L, int m) { return (int)((int64_t)t * L / m); }

/* Rows x [B,L,heads,dh] and landmarks of all H heads, which may share those of x. */
struct rows {
    int B, L, m, H, heads, dh;
};

static struct rows rows_of(const struct config *c, int B, int L, bool keys)
{
    return (struct rows){B, L, landmarks(c, L), c->H, keys ? c->kv_heads : c->H, c->dh};
}

/* Where coordinate e of a landmark is in a row. */
static int shared_at(const struct rows *r, int e)
{
    return e / r->dh / (r->H / r->heads) * r->dh + e % r->dh;
}

/* to [B,m,H,dh]: means of the parts of x. */
static void means(const struct engine *g, float *to, const float *x, struct rows r)
{
    const int width = r.H * r.dh, row = r.heads * r.dh;

#pragma omp parallel for num_threads(team_for(g->threads, (ptrdiff_t)r.B *r.L *width))
    for (int at = 0; at < r.B * r.m; at++) {
        const int from = part_at(at % r.m, r.L, r.m), end = part_at(at % r.m + 1, r.L, r.m);
        float *const y = to + (ptrdiff_t)at * width;
        memset(y, 0, sizeof(float) * (size_t)width);
        for (int i = from; i < end; i++)
            for (int e = 0; e < width; e++)
                y[e] += x[((ptrdiff_t)(at / r.m) * r.L + i) * row + shared_at(&r, e)];
        for (int e = 0; e < width; e++)
            y[e] /= (float)(end - from);
    }
}

/* d_x += */
static void means_grad(const struct engine *g, float *d_x, const float *d, struct rows r)
{
    const int width = r.H * r.dh, row = r.heads * r.dh;

#pragma omp parallel for num_threads(team_for(g->threads, (ptrdiff_t)r.B *r.L *width))
    for (int at = 0; at < r.B * r.m; at++) {
        const int from = part_at(at % r.m, r.L, r.m), end = part_at(at % r.m + 1, r.L, r.m);
        const float share = 1 / (float)(end - from);
        for (int i = from; i < end; i++)
            for (int e = 0; e < width; e++)
                d_x[((ptrdiff_t)(at / r.m) * r.L + i) * row + shared_at(&r, e)] +=
                    share * d[(ptrdiff_t)at * width + e];
    }
}

/* ---- the two attentions ------------------------------------------------------------------- */

/* Landmarks to all keys. */
static struct attn to_keys(const struct sublayer *s, const struct work *w, int B, int L)
{
    const struct config *const c = s->c;
    const int m = landmarks(c, L);
    struct attn a = attn_of_config(c, B, m, 0);

    a.K = L;
    a.k_at.batch = a.v_at.batch = L * a.k_at.row;
    a.q = w->array[NY_Q];
    a.k = w->array[CO_K];
    a.v = w->array[CO_V];
    a.o = w->array[NY_O];
    a.lse = w->array[NY_LSE];
    return a;
}

/* All queries to landmarks, which every head has its own of. */
static struct attn to_landmarks(const struct sublayer *s, const struct work *w, int B, int L)
{
    const struct config *const c = s->c;
    const int m = landmarks(c, L);
    struct attn a = attn_of_config(c, B, L, 0);
    const ptrdiff_t row = config_q_width(c);

    a.K = m;
    a.Hkv = c->H;
    a.k_at = a.v_at = (struct stride){m * row, row};
    a.q = w->array[CO_Q];
    a.k = w->array[CO_FAR_K];
    a.v = w->array[CO_FAR_V];
    a.o = w->array[CO_O];
    a.lse = w->array[CO_LSE];
    return a;
}

/* The second may have more heads of keys than the one that the implementation was chosen for. */
static struct attn_need scratch(const struct sublayer *s, const struct engine *g, bool backward)
{
    const struct attn_impl *const impl = s->state.attention.impl;
    struct attn own_keys = s->state.attention.prepared;

    own_keys.Hkv = own_keys.H;
    return larger_need((backward ? impl->need_backward : impl->need)(&own_keys, g->threads),
                       condensed_scratch(s, g, backward));
}

/* One head of one sequence, in the arrays `array`, with so many matrices of a head. */
static struct nystrom_head head_at(const struct engine *g, const struct config *c,
                                   float *const array[SUB_ARRAYS], int all, int L, int at)
{
    const int m = landmarks(c, L), H = c->H;
    const ptrdiff_t row = config_q_width(c);
    const ptrdiff_t first = (ptrdiff_t)(at / H) * m * row + (ptrdiff_t)(at % H) * c->dh;
    float *const a = array[NY_Z] + (ptrdiff_t)at * m * m * all;

    return (struct nystrom_head){.g = g,
                                 .m = m,
                                 .dh = c->dh,
                                 .iterations = numbers(c)->iterations,
                                 .row = row,
                                 .scale = c->scale,
                                 .ridge = numbers(c)->ridge,
                                 .q = array[NY_Q] + first,
                                 .k = array[CO_FAR_K] + first,
                                 .o = array[NY_O] + first,
                                 .to = array[CO_FAR_V] + first,
                                 .a = a,
                                 .z = a + (ptrdiff_t)m * m};
}

/* ---- the convolution ---------------------------------------------------------------------- */

/* One tap of one head: rows of values that it reads for rows [from, to) of outputs. */
struct tap {
    int from, to, by;
};

static struct tap tap_of(const struct config *c, int t, int L)
{
    const int by = t - numbers(c)->taps / 2;

    return (struct tap){max_int(0, -by), min_int(L, L - by), by};
}

/* sum = o + conv(v) */
static void convolve(const struct engine *g, const struct sublayer *s, const struct work *w, int B,
                     int L)
{
    const struct config *const c = s->c;
    const int taps = numbers(c)->taps, dh = c->dh, group = c->H / c->kv_heads;
    const ptrdiff_t row = config_q_width(c), v_row = config_kv_width(c);
    const float *const weights = condensed_weights(s)->data;

    memcpy(w->array[NY_SUM], w->array[CO_O], sizeof(float) * (size_t)(B * L) * (size_t)row);
#pragma omp parallel for num_threads(team_for(g->threads, B *L *row))
    for (int at = 0; at < B * c->H; at++) {
        const int b = at / c->H, h = at % c->H;
        float *const y = w->array[NY_SUM] + (ptrdiff_t)b * L * row + (ptrdiff_t)h * dh;
        const float *const v =
            w->array[CO_V] + (ptrdiff_t)b * L * v_row + (ptrdiff_t)(h / group) * dh;
        for (int t = 0; t < taps; t++) {
            const struct tap tap = tap_of(c, t, L);
            for (int i = tap.from; i < tap.to; i++)
                for (int e = 0; e < dh; e++)
                    y[i * row + e] += weights[h * taps + t] * v[(i + tap.by) * v_row + e];
        }
    }
}

/* d_v += ; accumulates the weights' gradient. A thread has all that shares values. */
static void convolve_grad(const struct engine *g, const struct sublayer *s, const struct work *w,
                          int B, int L)
{
    const struct config *const c = s->c;
    const int taps = numbers(c)->taps, dh = c->dh, group = c->H / c->kv_heads;
    const ptrdiff_t row = config_q_width(c), v_row = config_kv_width(c);
    const struct param *const W = condensed_weights(s);

#pragma omp parallel for num_threads(team_for(g->threads, B *L *row))
    for (int kv = 0; kv < c->kv_heads; kv++)
        for (int at = 0; at < B * group; at++) {
            const int b = at / group, h = kv * group + at % group;
            const ptrdiff_t values = (ptrdiff_t)b * L * v_row + (ptrdiff_t)kv * dh;
            const float *const d = w->d_array[CO_O] + (ptrdiff_t)b * L * row + (ptrdiff_t)h * dh;
            for (int t = 0; t < taps; t++) {
                const struct tap tap = tap_of(c, t, L);
                const float weight = W->data[h * taps + t];
                float sum = 0;
                for (int i = tap.from; i < tap.to; i++)
                    for (int e = 0; e < dh; e++) {
                        const ptrdiff_t from = values + (i + tap.by) * v_row + e;
                        w->d_array[CO_V][from] += weight * d[i * row + e];
                        sum += w->array[CO_V][from] * d[i * row + e];
                    }
                W->grad[h * taps + t] += sum;
            }
        }
}

/* ---- the kind ----------------------------------------------------------------------------- */

static const float *outputs(const struct sublayer *s, const struct work *w)
{
    return w->array[numbers(s->c)->taps ? NY_SUM : CO_O];
}

static void forward(const struct engine *g, struct sublayer *s, struct work *w,
                    struct sublayer_input from, struct act epilogue)
{
    const struct config *const c = s->c;
    const int B = from.B, L = from.L, heads = B * c->H;

    condensed_project(g, s, w, from, none, true);
    means(g, w->array[NY_Q], w->array[CO_Q], rows_of(c, B, L, false));
    means(g, w->array[CO_FAR_K], w->array[CO_K], rows_of(c, B, L, true));
    const struct attn first = to_keys(s, w, B, L);
    s->state.attention.impl->forward(g, &first, w->scratch);
#pragma omp parallel for num_threads(g->threads)
    for (int at = 0; at < heads; at++) {
        const struct nystrom_head n = head_at(g, c, w->array, matrices(c), L, at);
        nystrom_invert(&n);
    }
    const struct attn second = to_landmarks(s, w, B, L);
    s->state.attention.impl->forward(g, &second, w->scratch);
    if (numbers(c)->taps)
        convolve(g, s, w, B, L);
    project_out(g, s, w, outputs(s, w), B * L, epilogue);
}

static void backward(const struct engine *g, struct sublayer *s, const struct work *w,
                     struct sublayer_input from, float *d_in, const float *d_y, int skip)
{
    const struct config *const c = s->c;
    const int B = from.B, L = from.L, heads = B * c->H;
    const struct attn first = to_keys(s, w, B, L), second = to_landmarks(s, w, B, L);
    const struct attn_grad d_second = {.d_o = w->d_array[CO_O],
                                       .d_q = w->d_array[CO_Q],
                                       .d_k = w->d_array[CO_FAR_K],
                                       .d_v = w->d_array[CO_FAR_V]};
    const struct attn_grad d_first = {.d_o = w->d_array[NY_O],
                                      .d_q = w->d_array[NY_Q],
                                      .d_k = w->d_array[CO_K],
                                      .d_v = w->d_array[CO_V]};

    project_out_grad(g, s, w->d_array[CO_O], d_y, outputs(s, w), B * L);
    s->state.attention.impl->backward(g, &second, &d_second, w->d_scratch);
#pragma omp parallel for num_threads(g->threads)
    for (int at = 0; at < heads; at++) {
        const struct nystrom_head n = head_at(g, c, w->array, matrices(c), L, at);
        const struct nystrom_head d = head_at(g, c, w->d_array, GRADIENTS, L, at);
        nystrom_invert_grad(&n, &d);
    }
    s->state.attention.impl->backward(g, &first, &d_first, w->d_scratch);
    means_grad(g, w->d_array[CO_Q], w->d_array[NY_Q], rows_of(c, B, L, false));
    means_grad(g, w->d_array[CO_Q], w->d_array[CO_FAR_V], rows_of(c, B, L, false)); /* of A_2 */
    means_grad(g, w->d_array[CO_K], w->d_array[CO_FAR_K], rows_of(c, B, L, true));
    if (numbers(c)->taps)
        convolve_grad(g, s, w, B, L);
    condensed_in_grad(g, s, w, from, d_in, skip);
}

/* ---- cost --------------------------------------------------------------------------------- */

/* Of both attentions and of what is between and beside them. */
static struct sublayer_cost cost(const struct sublayer *s, int B, int L, int M)
{
    const struct config *const c = s->c;
    const double m = landmarks(c, L), heads = (double)B * c->H;
    struct attn first = attn_of_config(c, B, (int)m, 0), second = attn_of_config(c, B, L, 0);

    first.K = L;
    second.K = (int)m;
    second.Hkv = c->H;
    return (struct sublayer_cost){
        .forward = attn_flop(&first) + attn_flop(&second),
        .backward = attn_grad_flop(&first) + attn_grad_flop(&second),
        .maps = condensed_maps_flop(s, B, L, M) +
                heads * (4 * m * m * c->dh + 8 * m * m * m * numbers(c)->iterations +
                         2.0 * L * c->dh * numbers(c)->taps),
    };
}

/* A matrix of landmarks may be as good as singular, that of two by chance: a singular value t of it
 * (with an identity added, less so) is x = t^2 / c of A_2 Z_0, c the product of the largest sums. While x is small, a step multiplies
 * it by 13/4, so that p steps give such a direction the factor (13/4)^p t / c at most, and a change
 * dA of A_2 becomes (13/4)^p |dA| / c of Z. Rows of A_2 have the sum 1, and the largest sum of a
 * column is at least that: c >= 1. Scores that are off by e change a row of a softmax by 2 e at
 * most. */
static double amplifies(const struct config *c)
{
    return 2 * pow(13.0 / 4, numbers(c)->iterations);
}

const struct sublayer_kind sublayer_nystrom = {
    .name = "nystrom",
    .no_past = "means of a whole text have no past  -> use --mem 0",
    .mixes = true,
    .attends = true,
    .place = DROP_ATTENTION,
    .params = params,
    .bind = bind,
    .arrays = arrays,
    .arrays_grad = arrays_grad,
    .scratch = scratch,
    .forward = forward,
    .backward = backward,
    .cost = cost,
    .amplifies = amplifies,
};
