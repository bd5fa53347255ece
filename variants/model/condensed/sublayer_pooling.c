/* SPDX-License-Identifier: MIT
 *
 * Attention in a window and then to pooled rows of a wider one, as a kind of sub-layer
 * (variants/poolingformer.c). The second attention runs in a plain loop: a query sees a range of
 * cells, pooled rows, that no kernel has as data. */
#include "condensed.h"
#include "ranges.h"
#include "variants/model/attention/sublayer_attention.h"
#include "variants/parts/linear.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct pooling {
    int window, wide;   /* keys of the two attentions, on a side */
    int kernel, stride; /* rows that a cell is made of, and from one to the next */
    bool weighted;      /* by trained weights */
    bool max;           /* otherwise the maximum, or the mean */
};

static void print_pool(char text[CHOICE_TEXT], const void *numbers)
{
    const struct pooling *const p = numbers;

    snprintf(text, CHOICE_TEXT, "%s", p->weighted ? "weights" : p->max ? "max" : "mean");
}

/* Files whose tensors have weights are free to name them. */
static enum status parse_pool(void *numbers, const char *text, struct err *e)
{
    struct pooling *const p = numbers;

    p->max = strcmp(text, "max") == 0;
    if (!p->max && strcmp(text, "mean") != 0 && !p->weighted)
        return fail(e, E_USAGE, "pf_pool \"%.60s\"  -> use mean, max or weights", text);
    return OK;
}

static bool pools_alike(const struct config *c)
{
    return !((const struct pooling *)config_numbers(c, SLOT_MIXER))->weighted;
}

static const struct choice choices[] = {
    ROW_INT(struct pooling, window, "pf_window", 1, 1 << 20,
            "keys of the first attention, on a side", .scope = SCOPE_LAYER, .setting = true,
            .tiny = "3"),
    ROW_INT(struct pooling, wide, "pf_wide", 1, 1 << 20,
            "rows that the pooled ones of the second come from, on a side", .scope = SCOPE_LAYER,
            .setting = true, .key = "pf_window2", .tiny = "9"),
    ROW_INT(struct pooling, kernel, "pf_kernel", 1, 1 << 20, "rows that are pooled into one",
            .scope = SCOPE_LAYER, .setting = true, .tiny = "2|3"),
    ROW_INT(struct pooling, stride, "pf_stride", 1, 1 << 20, "rows from one pooled row to the next",
            .scope = SCOPE_LAYER, .setting = true, .tiny = "2"),
    ROW_FLAG(struct pooling, weighted, "pf_weights", "1: pooling has trained weights",
             .scope = SCOPE_LAYER, .setting = true, .tensor = "attn2.pool_k"),
    ROW_TEXT("pf_pool", print_pool, parse_pool, "how rows are pooled: mean, max",
             .applies = pools_alike, SETTING, .tiny = "mean|mean|max|max"),
    {0},
};

static void usual(const struct config *c, void *numbers)
{
    (void)c;
    *(struct pooling *)numbers =
        (struct pooling){.window = 128, .wide = 512, .kernel = 5, .stride = 4};
}

const struct part_numbers pooling_numbers = {choices, NUMBERS_SIZE(struct pooling), usual, NULL};

static const struct pooling *numbers(const struct config *c)
{
    return config_numbers(c, SLOT_MIXER);
}

/* Cells of L rows; only whole ones. */
static int cells(const struct config *c, int L)
{
    const struct pooling *const p = numbers(c);

    return L < p->kernel ? 0 : (L - p->kernel) / p->stride + 1;
}

/* Of both attentions queries, keys, values, outputs; their log-sum-exps, one behind the other; y1
 * [B,L,D]; pooled keys and values [B,cells,Hkv,dh]. */
enum { PO_Q, PO_K, PO_V, PO_O, PO_LSE, PO_Y, PO_Q2, PO_K2, PO_V2, PO_O2, PO_CELL_K, PO_CELL_V };

/* ---- parameters --------------------------------------------------------------------------- */

static void params(const struct sublayer *s, const char *prefix, const char *inner,
                   struct params *p)
{
    static const char names[] = "qkvo";
    const struct config *const c = s->c;
    const int q = config_q_width(c), k = config_kv_width(c);
    const int rows[] = {q, k, k, c->D};

    (void)inner;
    for (int nth = 1; nth <= 2; nth++) {
        for (int i = 0; i < ATTN_WEIGHTS; i++)
            params_narrows(p, params_add(p, INIT_LINEAR, 0, 2,
                                         (const int[]){rows[i], i == ATTN_O ? q : c->D},
                                         "%sattn%d.%c.weight", prefix, nth, names[i]));
        for (int i = 0; i < ATTN_WEIGHTS && c->attn_bias; i++)
            params_add(p, INIT_ZERO, 0, 1, &rows[i], "%sattn%d.%c.bias", prefix, nth, names[i]);
    }
    for (int i = 1; i <= 2 && numbers(c)->weighted; i++)
        params_add(p, INIT_ZERO, 0, 1, &numbers(c)->kernel, "%sattn2.pool_%c", prefix, names[i]);
}

/* Map `which` of the first or second attention; its bias or NULL; weights of pooled values or keys.
 */
static const struct param *weight(const struct sublayer *s, bool second, int which)
{
    return s->weights + (second ? (s->c->attn_bias ? 2 : 1) * ATTN_WEIGHTS : 0) + which;
}

static const struct param *bias(const struct sublayer *s, bool second, int which)
{
    return s->c->attn_bias ? weight(s, second, which) + ATTN_WEIGHTS : NULL;
}

static const struct param *pool_weights(const struct sublayer *s, bool values)
{
    return weight(s, true, 0) + (s->c->attn_bias ? 2 : 1) * ATTN_WEIGHTS + values;
}

/* ---- binding ------------------------------------------------------------------------------ */

/* The first attention, without operands. */
static struct attn core(const struct sublayer *s, int B, int L)
{
    struct attn a = attn_of_config(s->c, B, L, 0);

    if (s->c->causal)
        a.window = numbers(s->c)->window;
    else
        a.mask = &s->state.pooled.window;
    return a;
}

static enum status bind(struct sublayer *s, const struct engine *g, struct extent max,
                        struct arena *a, struct err *e)
{
    s->state.pooled = (struct pooled){.window = {.window = numbers(s->c)->window}};
    if (numbers(s->c)->weighted)
        s->state.pooled.shares = arena_f32(a, PART_SCRATCH, (size_t)numbers(s->c)->kernel);
    s->state.attention.prepared = core(s, max.B, max.L);
    return engine_attn(g, &s->state.attention.prepared, &s->state.attention.impl, e);
}

static void arrays(const struct sublayer *s, struct extent max, struct array out[SUB_ARRAYS])
{
    const struct config *const c = s->c;
    const size_t B = (size_t)max.B, rows = B * (size_t)max.L;
    const size_t q = rows * (size_t)config_q_width(c), k = rows * (size_t)config_kv_width(c);
    const size_t pooled = B * (size_t)cells(c, max.L) * (size_t)config_kv_width(c);
    const size_t n[] = {[PO_Q] = q,  [PO_K] = k,           [PO_V] = k,
                        [PO_O] = q,  [PO_LSE] = 0,         [PO_Y] = rows * (size_t)c->D,
                        [PO_Q2] = q, [PO_K2] = k,          [PO_V2] = k,
                        [PO_O2] = q, [PO_CELL_K] = pooled, [PO_CELL_V] = pooled};

    for (int i = 0; i <= PO_CELL_V; i++)
        out[i] = (struct array){n[i], n[i], false, PART_ACTIVATIONS};
    out[PO_LSE].n_kept = 2 * rows * (size_t)c->H;
}

static struct attn_need scratch(const struct sublayer *s, const struct engine *g, bool backward)
{
    return larger_need(condensed_scratch(s, g, backward),
                       ranges_need(cells(s->c, s->state.attention.prepared.L), g->threads));
}

/* ---- pooling ------------------------------------------------------------------------------ */

/* The weights' softmax. */
static void shares(const struct sublayer *s, bool values, float *to)
{
    const struct param *const p = pool_weights(s, values);
    float most = -INFINITY, sum = 0;

    for (size_t t = 0; t < p->n; t++)
        most = fmaxf(most, p->data[t]);
    for (size_t t = 0; t < p->n; t++)
        sum += to[t] = expf(p->data[t] - most);
    for (size_t t = 0; t < p->n; t++)
        to[t] /= sum;
}

/* Which of n numbers `step` apart is the largest, the first of several. */
static int largest(const float *x, int n, ptrdiff_t step)
{
    int at = 0;

    for (int t = 1; t < n; t++)
        at = x[t * step] > x[at * step] ? t : at;
    return at;
}

/* The share of row t of a cell. */
static float share_of(const struct pooling *p, const float *weights, int t)
{
    return weights ? weights[t] : 1 / (float)p->kernel;
}

/* One coordinate of a cell of rows x. */
static float pooled_at(const struct pooling *p, const float *weights, const float *x, int width)
{
    float sum = 0;

    if (p->max && !weights)
        return x[(ptrdiff_t)largest(x, p->kernel, width) * width];
    for (int t = 0; t < p->kernel; t++)
        sum += share_of(p, weights, t) * x[(ptrdiff_t)t * width];
    return sum;
}

/* Its gradient. */
static void pooled_grad_at(const struct pooling *p, const float *weights, const float *x,
                           float *d_x, float d, int width)
{
    if (p->max && !weights) {
        d_x[(ptrdiff_t)largest(x, p->kernel, width) * width] += d;
        return;
    }
    for (int t = 0; t < p->kernel; t++)
        d_x[(ptrdiff_t)t * width] += share_of(p, weights, t) * d;
}

/* The weights' gradients, a number for each row of a cell. */
static void weights_grad(const struct sublayer *s, bool values, const float *x, const float *d,
                         const float *weights, int B, int L)
{
    const struct param *const p = pool_weights(s, values);
    const int width = config_kv_width(s->c), n = cells(s->c, L), stride = numbers(s->c)->stride;
    double all = 0;

    for (int again = 0; again < 2; again++)
        for (size_t t = 0; t < p->n; t++) {
            double sum = 0;
            for (int at = 0; at < B * n; at++) {
                const ptrdiff_t row = (ptrdiff_t)(at / n) * L + at % n * stride + (ptrdiff_t)t;
                for (int e = 0; e < width; e++)
                    sum += (double)d[(ptrdiff_t)at * width + e] * (double)x[row * width + e];
            }
            if (again)
                p->grad[t] += weights[t] * (float)(sum - all);
            else
                all += (double)weights[t] * sum;
        }
}

/* Cells of rows x [B,L,width], or back. `weights` has room for a kernel. */
static void pool(const struct engine *g, const struct sublayer *s, bool values, float *cell,
                 const float *x, float *d_x, float *room, int B, int L)
{
    const struct pooling *const p = numbers(s->c);
    const int dh = s->c->dh, heads = s->c->kv_heads, width = heads * dh, n = cells(s->c, L);
    const float *const weights = p->weighted ? room : NULL;

    if (weights)
        shares(s, values, room);
#pragma omp parallel for num_threads(B *heads > 1 ? g->threads : 1)
    for (int at = 0; at < B * heads; at++)
        for (int j = 0; j < n; j++)
            for (int e = 0; e < dh; e++) {
                const ptrdiff_t column = (ptrdiff_t)(at % heads) * dh + e;
                const ptrdiff_t row =
                    ((ptrdiff_t)(at / heads) * L + j * p->stride) * width + column;
                float *const y = cell + ((ptrdiff_t)(at / heads) * n + j) * width + column;
                if (d_x)
                    pooled_grad_at(p, weights, x + row, d_x + row, *y, width);
                else
                    *y = pooled_at(p, weights, x + row, width);
            }
    if (d_x && weights && n)
        weights_grad(s, values, x, cell, weights, B, L);
}

/* ---- the two attentions ------------------------------------------------------------------- */

static struct attn first_of(const struct sublayer *s, const struct work *w, int B, int L)
{
    struct attn a = core(s, B, L);

    a.q = w->array[PO_Q];
    a.k = w->array[PO_K];
    a.v = w->array[PO_V];
    a.o = w->array[PO_O];
    a.lse = w->array[PO_LSE];
    return a;
}

struct sight_of {
    const struct config *c;
    int cells;
};

/* Cells of which the first and the last row are seen. */
static int seen_by(const void *of, int i, struct range out[RANGE_LISTS])
{
    const struct sight_of *const sight = of;
    const struct pooling *const p = numbers(sight->c);
    const int ahead = sight->c->causal ? 0 : p->wide - 1;
    const int end = i + ahead - (p->kernel - 1), begin = i - p->wide + 1;
    const int to = end < 0 ? 0 : min_int(sight->cells, end / p->stride + 1);
    const int from = begin <= 0 ? 0 : (begin + p->stride - 1) / p->stride;

    out[0] = (struct range){min_int(from, to), to};
    return 1;
}

static struct range_rows rows_of(float *at, const struct config *c, int n)
{
    return (struct range_rows){
        .list = {at}, .stride = {(ptrdiff_t)n * config_kv_width(c)}, .rows = {n}, .lists = 1};
}

static struct ranges second_of(const struct sublayer *s, const struct work *w,
                               const struct sight_of *sight, int B, int L)
{
    const struct config *const c = s->c;

    return (struct ranges){
        .B = B,
        .L = L,
        .H = c->H,
        .Hkv = c->kv_heads,
        .dh = c->dh,
        .scale = c->scale,
        .q = w->array[PO_Q2],
        .k = rows_of(w->array[PO_CELL_K], c, sight->cells),
        .v = rows_of(w->array[PO_CELL_V], c, sight->cells),
        .o = w->array[PO_O2],
        .lse = w->array[PO_LSE] ? w->array[PO_LSE] + (ptrdiff_t)B * L * c->H : NULL,
        .seen = seen_by,
        .context = sight,
        .most = sight->cells,
    };
}

static void project(const struct engine *g, const struct sublayer *s, const struct work *w,
                    bool second, const float *x, int rows)
{
    for (int i = ATTN_Q; i <= ATTN_V; i++) {
        float *const y = w->array[(second ? PO_Q2 : PO_Q) + i];
        linear_forward(g, weight(s, second, i), bias(s, second, i), y, x, rows,
                       (struct act){.y = y});
    }
}

static void forward(const struct engine *g, struct sublayer *s, struct work *w,
                    struct sublayer_input from, struct act epilogue)
{
    const int B = from.B, L = from.L, rows = B * L;
    const struct attn first = first_of(s, w, B, L);
    const struct sight_of sight = {s->c, cells(s->c, L)};
    const struct ranges second = second_of(s, w, &sight, B, L);
    const struct param *const bias2 = bias(s, true, ATTN_O);

    CHECK(from.M == 0);
    project(g, s, w, false, from.at.at, rows);
    s->state.attention.impl->forward(g, &first, w->scratch);
    linear_forward(g, weight(s, false, ATTN_O), bias(s, false, ATTN_O), w->array[PO_Y],
                   w->array[PO_O], rows, (struct act){.y = w->array[PO_Y]});
    project(g, s, w, true, w->array[PO_Y], rows);
    pool(g, s, false, w->array[PO_CELL_K], w->array[PO_K2], NULL, s->state.pooled.shares, B, L);
    pool(g, s, true, w->array[PO_CELL_V], w->array[PO_V2], NULL, s->state.pooled.shares, B, L);
    ranges_forward(g, &second, w->scratch);
    memcpy(w->y, w->array[PO_Y], sizeof(float) * (size_t)rows * (size_t)s->c->D);
    struct gemm p = linear_product(g, weight(s, true, ATTN_O), w->y, w->array[PO_O2], rows);
    p.beta = 1;
    g->ops.gemm(&p);
    epilogue.bias = bias2 ? bias2->data : NULL;
    linear_epilogue(g, epilogue, w->y, rows, s->c->D);
}

/* ---- backward ----------------------------------------------------------------------------- */

/* Of one map y = W x + b; adds to beta d_x. */
static void map_grad(const struct engine *g, const struct sublayer *s, bool second, int which,
                     float *d_x, const float *d_y, const float *x, int rows, float beta)
{
    linear_backward(g, weight(s, second, which), bias(s, second, which), d_x, d_y, x, rows, beta);
}

/* To the gradients of both attentions' operands; that of y1 gathers in d_array[PO_Y]. */
static void second_grad(const struct engine *g, struct sublayer *s, const struct work *w,
                        const float *d_y, int B, int L)
{
    const struct sight_of sight = {s->c, cells(s->c, L)};
    const struct ranges call = second_of(s, w, &sight, B, L);
    const struct ranges_grad d = {w->d_array[PO_O2], w->d_array[PO_Q2],
                                  rows_of(w->d_array[PO_CELL_K], s->c, sight.cells),
                                  rows_of(w->d_array[PO_CELL_V], s->c, sight.cells)};
    const size_t k = (size_t)B * (size_t)config_kv_width(s->c) * sizeof(float);
    const int rows = B * L;

    memcpy(w->d_array[PO_Y], d_y, sizeof(float) * (size_t)rows * (size_t)s->c->D);
    map_grad(g, s, true, ATTN_O, w->d_array[PO_O2], d_y, w->array[PO_O2], rows, 0);
    if (sight.cells) {
        memset(w->d_array[PO_CELL_K], 0, k * (size_t)sight.cells);
        memset(w->d_array[PO_CELL_V], 0, k * (size_t)sight.cells);
    }
    ranges_backward(g, &call, &d, w->d_scratch);
    memset(w->d_array[PO_K2], 0, k * (size_t)L);
    memset(w->d_array[PO_V2], 0, k * (size_t)L);
    pool(g, s, false, w->d_array[PO_CELL_K], w->array[PO_K2], w->d_array[PO_K2],
         s->state.pooled.shares, B, L);
    pool(g, s, true, w->d_array[PO_CELL_V], w->array[PO_V2], w->d_array[PO_V2],
         s->state.pooled.shares, B, L);
    for (int i = ATTN_Q; i <= ATTN_V; i++)
        map_grad(g, s, true, i, w->d_array[PO_Y], w->d_array[PO_Q2 + i], w->array[PO_Y], rows, 1);
}

static void backward(const struct engine *g, struct sublayer *s, const struct work *w,
                     struct sublayer_input from, float *d_in, const float *d_y, int skip)
{
    const int B = from.B, L = from.L, rows = B * L;
    const struct attn first = first_of(s, w, B, L);
    const struct attn_grad d = {.d_o = w->d_array[PO_O],
                                .d_q = w->d_array[PO_Q],
                                .d_k = w->d_array[PO_K],
                                .d_v = w->d_array[PO_V]};

    CHECK(skip == 0);
    second_grad(g, s, w, d_y, B, L);
    map_grad(g, s, false, ATTN_O, w->d_array[PO_O], w->d_array[PO_Y], w->array[PO_O], rows, 0);
    s->state.attention.impl->backward(g, &first, &d, w->d_scratch);
    for (int i = ATTN_Q; i <= ATTN_V; i++)
        map_grad(g, s, false, i, d_in, w->d_array[PO_Q + i], from.at.at, rows, i != ATTN_Q);
}

/* ---- cost --------------------------------------------------------------------------------- */

/* Both attentions, pooling (an addition or comparison a number) and the eight maps. */
static struct sublayer_cost cost(const struct sublayer *s, int B, int L, int M)
{
    const struct config *const c = s->c;
    const struct attn first = core(s, B, L);
    const struct sight_of sight = {c, cells(c, L)};
    const struct ranges second = {
        .B = B, .L = L, .H = c->H, .seen = seen_by, .context = &sight, .most = sight.cells};
    const double pairs = 4 * ranges_pairs(&second) * c->dh, rows = (double)B * L;
    const double per_row = (double)config_q_width(c) + config_kv_width(c);

    (void)M;
    return (struct sublayer_cost){
        .forward = attn_flop(&first) + pairs,
        .backward = attn_grad_flop(&first) + 2 * pairs,
        .maps = 8 * rows * c->D * per_row +
                2.0 * B * sight.cells * numbers(c)->kernel * config_kv_width(c),
    };
}

const struct sublayer_kind sublayer_pooling = {
    .name = "pooling",
    .no_past = "pooled rows are of one window of text  -> use --mem-kind recompute",
    .mixes = true,
    .attends = true,
    .place = DROP_ATTENTION,
    .params = params,
    .bind = bind,
    .arrays = arrays,
    .scratch = scratch,
    .forward = forward,
    .backward = backward,
    .cost = cost,
};
