/* SPDX-License-Identifier: MIT
 *
 * Memory-compressed attention: Liu et al. 2018, "Generating Wikipedia by Summarizing Long
 * Sequences", section 4.2.3.
 *
 *   k'_g = b + sum_t W_t k_(gs+t)      of each head, v'_g likewise, for complete groups of s tokens
 *   o_i = softmax(scale q_i . [k_null; k'_g]) [v_null; v'_g]    over groups that end at i or before
 *
 * Groups count from the stream's beginning. Remembered are K/s rows, and those of the group that is
 * not complete. Between such layers stand layers of local attention, in blocks of 256 tokens. The
 * paper's five begin with a local one (--stack local,mca); here the first is compressed, so that a
 * layer alone is what is new.
 *
 * Of the queries, every s-th sees one group more than the one before it: each such class is plain
 * causal attention with a past, whose queries are s rows apart. The learned key and value that all
 * see are a sink. */
#include "variant.h"
#include "variants/base/loops.h"
#include "variants/model/attention/sublayer_attention.h"
#include "variants/model/condensed/condensed.h"
#include "variants/model/sublayer/sublayer_seen.h"
#include "variants/parts/parts.h"

#include <math.h>
#include <string.h>

struct mca {
    int stride; /* tokens of a group */
    int block;  /* tokens of the blocks of layers that attend */
    bool share; /* keys and values have the same convolution */
};

static bool has_blocks(const struct config *c) { return c->stack.n > 0; }

static const struct choice choices[] = {
    ROW_INT(struct mca, stride, "mca_stride", 1, 1 << 12, "tokens that become one key",
            .scope = SCOPE_LAYER, .setting = true),
    ROW_FLAG(struct mca, share, "mca_share", "1: keys and values have the same convolution",
             .scope = SCOPE_LAYER, .setting = true, .absent = "0", .tiny = "0|1"),
    ROW_INT(struct mca, block, "mca_block", 1, 1 << 20,
            "tokens of the blocks in which layers between attend", .scope = SCOPE_MODEL,
            .absent = "256", .applies = has_blocks, SETTING, .tiny = "5"),
    {0},
};

static void usual(const struct config *c, void *numbers)
{
    *(struct mca *)numbers = (struct mca){.stride = 3, .block = 256};
}

static const struct part_numbers mca_numbers = {choices, NUMBERS_SIZE(struct mca), usual, NULL};

static const struct mca *numbers(const struct config *c) { return config_numbers(c, SLOT_MIXER); }

static int block(const struct config *c) { return numbers(c)->block; }

static struct grouping grouping(const struct config *c)
{
    return (struct grouping){numbers(c)->stride, 1, false};
}

/* Rows of groups as the convolution reads them: [Hkv,B,groups, dh * s], of keys and of values; of
 * backward also one class's gradients of far rows. */
enum { MC_K = CO_FORM, MC_V, MC_ONE_K, MC_ONE_V };

enum { CONV, CONV_BIAS, CONV_PARAMS };

static void add_convolution(const struct config *c, const char *prefix, const char *name,
                            struct params *p)
{
    const int s = numbers(c)->stride;
    const float most = 1 / sqrtf((float)(c->dh * s));

    params_add(p, INIT_UNIFORM_BOTH, most, 4, (const int[]){c->kv_heads, c->dh, c->dh, s},
               "%sattn.%s.weight", prefix, name);
    params_add(p, INIT_UNIFORM_BOTH, most, 1, (const int[]){config_kv_width(c)}, "%sattn.%s.bias",
               prefix, name);
}

static void params(const struct sublayer *s, const char *prefix, const char *inner,
                   struct params *p)
{
    const struct config *const c = s->c;

    project_params(s, c->D, c->D, prefix, p);
    add_convolution(c, prefix, "conv_k", p);
    if (!numbers(c)->share)
        add_convolution(c, prefix, "conv_v", p);
    params_add(p, INIT_ZERO, 0, 2, (const int[]){c->H, c->dh}, "%sattn.null_k", prefix);
    params_add(p, INIT_ZERO, 0, 2, (const int[]){c->H, c->dh}, "%sattn.null_v", prefix);
}

static const struct param *convolution(const struct sublayer *s, bool values)
{
    return condensed_weights(s) + (values && !numbers(s->c)->share ? CONV_PARAMS : 0);
}

static const struct param *null_of(const struct sublayer *s, bool values)
{
    return convolution(s, true) + CONV_PARAMS + values;
}

/* ---- binding ------------------------------------------------------------------------------ */

/* Groups of so many rows; without direction the last may be short. */
static int groups(const struct config *c, int rows)
{
    const int s = numbers(c)->stride;

    return c->causal ? rows / s : (rows + s - 1) / s;
}

/* Attention of L queries, the first of which sees `seen` groups, the last all; without direction
 * each sees as many. */
static struct attn core(const struct sublayer *s, int B, int L, int seen)
{
    const struct config *const c = s->c;
    struct attn a = attn_of_config(c, B, L, c->causal ? seen - 1 : 0);

    a.K = c->causal ? 0 : seen;
    a.sinks = 1;
    a.sink_k = null_of(s, false)->data;
    a.sink_v = null_of(s, true)->data;
    return a;
}

static int before(const struct sublayer *s, struct extent max)
{
    return sublayer_remembers(s) ? max.M : 0;
}

static enum status bind(struct sublayer *s, const struct engine *g, struct extent max,
                        struct arena *a, struct err *e)
{
    const struct config *const c = s->c;
    const int stride = numbers(c)->stride, all = groups(c, before(s, max) + max.L + stride - 1);
    const int L = c->causal ? (max.L + stride - 1) / stride : max.L;

    if (!c->causal && sublayer_remembers(s))
        return fail(e, E_UNSUPPORTED, "%s: a view of the future has no past  -> use --mem 0",
                    c->variant->name);
    condensed_bind(s, grouping(c), max, a);
    s->state.attention.prepared = core(s, max.B, L, max_int(1, all));
    return engine_attn(g, &s->state.attention.prepared, &s->state.attention.impl, e);
}

/* Far rows of the last, short group, too. */
static void arrays(const struct sublayer *s, struct extent max, struct array out[SUB_ARRAYS])
{
    const int stride = numbers(s->c)->stride;
    const int rows = s->mem == MEM_KV ? min_int(max.M, stride - 1) + max.L : before(s, max) + max.L;
    const size_t columns =
        (size_t)max.B * (size_t)groups(s->c, rows) * (size_t)stride * (size_t)config_kv_width(s->c);
    const size_t lse = (size_t)max.B * (size_t)s->c->H * (size_t)(max.L + stride);

    condensed_arrays(s, grouping(s->c), max, out);
    out[CO_LSE].n_kept = lse;
    out[MC_K] = out[MC_V] = (struct array){columns, columns, false, PART_ACTIVATIONS};
}

static void arrays_grad(const struct sublayer *s, struct extent max, struct array out[SUB_ARRAYS])
{
    sublayer_arrays_grad(s, max, out);
    out[MC_ONE_K] = out[CO_FAR_K];
    out[MC_ONE_V] = out[CO_FAR_V];
}

static size_t caches(const struct sublayer *s, int M)
{
    return condensed_cached(s, grouping(s->c), M);
}

/* ---- the convolution ---------------------------------------------------------------------- */

/* The n whole groups of a call, from row `lead` on, and where they go: behind the far rows. */
struct groups {
    int lead, n, rows, far;
};

static struct groups groups_of(const struct config *c, const struct stretch *t)
{
    const int lead = stretch_lead(t, numbers(c)->stride);

    return (struct groups){
        .lead = lead, .n = groups(c, max_int(0, t->rows - lead)), .rows = t->rows, .far = t->n_far};
}

/* Copy rows of groups to columns, [in * s + t] of head h, or add columns to rows. Rows of a short
 * group that do not exist are 0. */
static void columns(const struct engine *g, const struct config *c, struct seq_rows x, float *cols,
                    const struct groups *of, int B, bool back)
{
    const int s = numbers(c)->stride, dh = c->dh, width = config_kv_width(c);
    const ptrdiff_t per_head = (ptrdiff_t)B * of->n * dh * s;

#pragma omp parallel for num_threads(team_for(g->threads, (ptrdiff_t)B * of->n * s * width))
    for (int at = 0; at < B * of->n; at++)
        for (int t = 0; t < s; t++) {
            const int row = of->lead + at % of->n * s + t;
            float *const from = x.at + at / of->n * x.stride + (ptrdiff_t)row * width;
            for (int i = 0; i < width; i++) {
                float *const to =
                    cols + i / dh * per_head + (ptrdiff_t)at * dh * s + (ptrdiff_t)(i % dh) * s + t;
                if (row >= of->rows)
                    *to = back ? *to : 0;
                else if (back)
                    from[i] += *to;
                else
                    *to = from[i];
            }
        }
}

/* The product of one head of one sequence: far rows [n,dh] = columns [n, dh s] W^T. */
static struct gemm product(const struct engine *g, const struct config *c, const struct param *W,
                           float *far, float *cols, const struct groups *of, int B, int b, int h)
{
    const int wide = c->dh * numbers(c)->stride;

    return mm_of(g, NT, of->n, c->dh, wide, 1, cols + ((ptrdiff_t)h * B + b) * of->n * wide, wide,
                 W->data + (ptrdiff_t)h * c->dh * wide, wide, 1, far + (ptrdiff_t)h * c->dh,
                 config_kv_width(c));
}

static float *far_row(struct seq_rows far, const struct groups *of, int b, int width)
{
    return far.at + b * far.stride + (ptrdiff_t)of->far * width;
}

static void convolve(const struct engine *g, const struct sublayer *s, bool values,
                     const struct stretch *t, float *cols, int B)
{
    const struct config *const c = s->c;
    const struct param *const W = convolution(s, values), *const bias = W + CONV_BIAS;
    const struct groups of = groups_of(c, t);
    const int width = config_kv_width(c);

    if (of.n == 0)
        return;
    columns(g, c, values ? t->v : t->k, cols, &of, B, false);
    for (int b = 0; b < B; b++) {
        float *const far = far_row(values ? t->far_v : t->far_k, &of, b, width);
        for (int i = 0; i < of.n; i++)
            memcpy(far + (ptrdiff_t)i * width, bias->data, sizeof(float) * (size_t)width);
        for (int h = 0; h < c->kv_heads; h++) {
            const struct gemm p = product(g, c, W, far, cols, &of, B, b, h);
            g->ops.gemm(&p);
        }
    }
}

/* d_x [B,rows,width] += from the gradient of the far rows; accumulates that of the weights. */
static void convolve_grad(const struct engine *g, const struct sublayer *s, bool values,
                          struct seq_rows d_x, struct seq_rows d_far, const struct stretch *t,
                          float *cols, float *d_cols, int B)
{
    const struct config *const c = s->c;
    const struct param *const W = convolution(s, values), *const bias = W + CONV_BIAS;
    const struct groups of = groups_of(c, t);
    const int width = config_kv_width(c);

    for (int b = 0; b < B && of.n; b++) {
        float *const d = far_row(d_far, &of, b, width);
        for (ptrdiff_t i = 0; i < (ptrdiff_t)of.n * width; i++)
            bias->grad[i % width] += d[i];
        for (int h = 0; h < c->kv_heads; h++) {
            const struct gemm p = product(g, c, W, d, cols, &of, B, b, h);
            float *const d_W = W->grad + (p.b - W->data), *const to = d_cols + (p.a - cols);
            mm(g, TN, p.n, p.k, p.m, 1, p.c, p.ldc, p.a, p.lda, 1, d_W, p.k);
            mm(g, NN, p.m, p.k, p.n, 1, p.c, p.ldc, p.b, p.ldb, 0, to, p.k);
        }
    }
    if (of.n)
        columns(g, c, d_x, d_cols, &of, B, true);
}

/* ---- classes of queries ------------------------------------------------------------------- */

/* The queries first, first + step, .. of a call; the first `blind` of them see no group yet, the
 * one after them one or more. Without direction all are one class. */
struct class
{
    int first, step, n, blind, seen;
};

static int classes(const struct config *c, int L)
{
    return c->causal ? min_int(L, numbers(c)->stride) : 1;
}

static struct class class_of(const struct config *c, const struct stretch *t, int L, int nth)
{
    const struct groups of = groups_of(c, t);
    const int s = numbers(c)->stride;

    if (!c->causal)
        return (struct class){.step = 1, .n = L, .seen = of.n};
    const int ends = t->rows - L + nth - of.lead + 1; /* tokens of whole groups up to the first */
    const int seen = of.far + (ends < 0 ? -((s - 1 - ends) / s) : ends / s);
    const int n = (L - nth + s - 1) / s, blind = clamp_int(1 - seen, 0, n);
    return (struct class){.first = nth, .step = s, .n = n, .blind = blind, .seen = seen + blind};
}

/* The attention of a class without its blind queries. */
static struct attn attend(const struct sublayer *s, const struct work *w, const struct stretch *t,
                          const struct class *of, int B, int L)
{
    const struct config *const c = s->c;
    const ptrdiff_t width = config_q_width(c);
    const ptrdiff_t at = (of->first + (ptrdiff_t)of->blind * of->step) * width;
    const ptrdiff_t before = (ptrdiff_t)of->first * ((L + of->step - 1) / of->step);
    struct attn a = core(s, B, of->n - of->blind, of->seen);

    a.q = w->array[CO_Q] + at;
    a.o = w->array[CO_O] + at;
    a.q_at = a.o_at = (struct stride){L * width, of->step * width};
    a.k = t->far_k.at;
    a.v = t->far_v.at;
    a.k_at.batch = a.v_at.batch = t->far_k.stride;
    a.lse = w->array[CO_LSE] ? w->array[CO_LSE] + before * B * c->H : NULL;
    return a;
}

/* Blind queries of a class get the learned value, or give it their gradient. */
static void blind_rows(const struct sublayer *s, const struct class *of, float *rows, int B, int L,
                       bool back)
{
    const struct param *const null = null_of(s, true);
    const size_t width = null->n;

    for (int at = 0; at < B * of->blind; at++) {
        const int i = of->first + at % of->blind * of->step;
        float *const row = rows + ((size_t)(at / of->blind) * (size_t)L + (size_t)i) * width;
        for (size_t e = 0; e < width && back; e++)
            null->grad[e] += row[e];
        if (!back)
            memcpy(row, null->data, width * sizeof(float));
    }
}

static void run_classes(const struct engine *g, const struct sublayer *s, const struct work *w,
                        const struct stretch *t, int B, int L)
{
    for (int nth = 0; nth < classes(s->c, L); nth++) {
        const struct class of = class_of(s->c, t, L, nth);
        blind_rows(s, &of, w->array[CO_O], B, L, false);
        if (of.blind == of.n)
            continue;
        const struct attn a = attend(s, w, t, &of, B, L);
        sublayer_attend(g, s, w, 0, of.first + of.blind * of.step, &a);
    }
}

static void classes_grad(const struct engine *g, const struct sublayer *s, const struct work *w,
                         const struct stretch *t, int B, int L)
{
    const int width = config_kv_width(s->c);
    const struct seq_rows far_k = {w->d_array[CO_FAR_K], t->far_k.stride},
                          far_v = {w->d_array[CO_FAR_V], t->far_v.stride};

    condensed_clear(far_k, B);
    condensed_clear(far_v, B);
    memset(w->d_array[CO_Q], 0, sizeof(float) * (size_t)(B * L) * (size_t)config_q_width(s->c));
    for (int nth = 0; nth < classes(s->c, L); nth++) {
        const struct class of = class_of(s->c, t, L, nth);
        blind_rows(s, &of, w->d_array[CO_O], B, L, true);
        if (of.blind == of.n)
            continue;
        const struct attn a = attend(s, w, t, &of, B, L);
        const struct attn_grad d = {.d_o = w->d_array[CO_O] + (a.o - w->array[CO_O]),
                                    .d_q = w->d_array[CO_Q] + (a.q - w->array[CO_Q]),
                                    .d_k = w->d_array[MC_ONE_K],
                                    .d_v = w->d_array[MC_ONE_V],
                                    .d_sink_k = null_of(s, false)->grad,
                                    .d_sink_v = null_of(s, true)->grad};
        s->state.attention.impl->backward(g, &a, &d, w->d_scratch);
        condensed_add(far_k, (struct seq_rows){d.d_k, far_k.stride}, B, attn_keys(&a), width);
        condensed_add(far_v, (struct seq_rows){d.d_v, far_v.stride}, B, attn_keys(&a), width);
    }
}

/* ---- the kind ----------------------------------------------------------------------------- */

static void remember(const struct engine *g, struct sublayer *s, struct work *w,
                     struct sublayer_input from)
{
    const struct stretch t = condensed_project(g, s, w, from, grouping(s->c), false);

    convolve(g, s, false, &t, w->array[MC_K], from.B);
    convolve(g, s, true, &t, w->array[MC_V], from.B);
}

static void forward(const struct engine *g, struct sublayer *s, struct work *w,
                    struct sublayer_input from, struct act epilogue)
{
    const struct stretch t = condensed_project(g, s, w, from, grouping(s->c), true);

    convolve(g, s, false, &t, w->array[MC_K], from.B);
    convolve(g, s, true, &t, w->array[MC_V], from.B);
    run_classes(g, s, w, &t, from.B, from.L);
    project_out(g, s, w, w->array[CO_O], from.B * from.L, epilogue);
}

static void backward(const struct engine *g, struct sublayer *s, const struct work *w,
                     struct sublayer_input from, float *d_in, const float *d_y, int skip)
{
    const struct stretch t = condensed_again(s, w, from, grouping(s->c));
    const int B = from.B, L = from.L;
    const struct seq_rows d_k = {w->d_array[CO_K], t.k.stride},
                          d_v = {w->d_array[CO_V], t.v.stride};
    const struct seq_rows far_k = {w->d_array[CO_FAR_K], t.far_k.stride},
                          far_v = {w->d_array[CO_FAR_V], t.far_v.stride};

    condensed_out_grad(g, s, w, d_y, B * L);
    classes_grad(g, s, w, &t, B, L);
    condensed_clear(d_k, B);
    condensed_clear(d_v, B);
    convolve_grad(g, s, false, d_k, far_k, &t, w->array[MC_K], w->d_array[MC_K], B);
    convolve_grad(g, s, true, d_v, far_v, &t, w->array[MC_V], w->d_array[MC_V], B);
    condensed_in_grad(g, s, w, from, d_in, skip);
}

/* ---- cost --------------------------------------------------------------------------------- */

/* Of L queries after M tokens that begin with a group. */
static struct sublayer_cost cost(const struct sublayer *s, int B, int L, int M)
{
    const struct config *const c = s->c;
    const int stride = numbers(c)->stride;
    const struct stretch all = {.rows = M + L};
    const int before = s->mem == MEM_KV ? M / stride : 0;
    struct sublayer_cost sum = {.maps = condensed_maps_flop(s, B, L, M) +
                                        4.0 * B * (groups(c, M + L) - before) * stride *
                                            c->kv_heads * c->dh * c->dh};

    for (int nth = 0; nth < classes(c, L); nth++) {
        const struct class of = class_of(c, &all, L, nth);
        if (of.blind == of.n)
            continue;
        const struct attn a = core(s, B, of.n - of.blind, of.seen);
        sum.forward += attn_flop(&a);
        sum.backward += attn_grad_flop(&a);
    }
    return sum;
}

static const struct sublayer_kind mca = {.name = "mca",
                                         CONDENSED,
                                         .params = params,
                                         .caches = caches,
                                         .bind = bind,
                                         .arrays = arrays,
                                         .arrays_grad = arrays_grad,
                                         .forward = forward,
                                         .backward = backward,
                                         .remember = remember,
                                         .cost = cost};

const struct mixer mixer_mca = {
    .name = "mca", .numbers = &mca_numbers, .kind = &mca, .both = true, .block = block};

const struct variant variant_mca = {
    .name = "mca",
    .paper = "Liu et al. 2018, arXiv:1801.10198",
    .about = "keys and values of several tokens are convolved into one; every other layer is local",
    .control = "vanilla",
    .pos = &pos_sinusoid,
    .mem = &mem_segment,
    .ffn = &ffn_relu,
    .mixer = &mixer_mca,
    .stack = {2, {false, true}},
    .wiring = WIRING_POST,
};
