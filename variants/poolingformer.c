/* SPDX-License-Identifier: MIT
 *
 * Poolingformer: Zhang et al. 2021, "Poolingformer: Long Document Modeling with Pooling Attention".
 *
 *   y1 = attn1(x)        keys in a window
 *   y  = y1 + attn2(y1)  keys and values pooled over `kernel` rows, every `stride` rows, of a wider
 *                        one
 *
 * q, k and v of attn2 are of y1. A pooled row of each head is a dynamic convolution, whose weights
 * follow from the middle row (LDConv, of Wu et al. 2019): keys and values have W_h [kernel,dh] each,
 *
 *   cell = sum_t softmax(W_h x_(kernel / 2))_t x_t
 *
 * or a mean or maximum, which the paper compares it with (--set pf_pool=). A pooled row is visible
 * where its last row is not behind the query and its first is in the window; without direction
 * (poolingformer-bi) both are in the window on their side. Each attention has its W_o. The second
 * runs in a plain loop: a query sees a range of pooled rows, cells, that no kernel has as data. */
#include "variants/model/attention/sublayer_attention.h"
#include "variants/model/condensed/ranges.h"

enum pool_kind { POOL_DYNAMIC, POOL_MEAN, POOL_MAX };
static const char *const pool_name[] = {"dynamic", "mean", "max", NULL};

struct pooling {
    int window, wide;   /* keys of the two attentions, on a side */
    int kernel, stride; /* rows that a cell is made of, and from one to the next */
    enum pool_kind kind;
    bool fixed; /* shares are trained numbers, the same everywhere, whatever the kind */
};

static void print_pool(char text[CHOICE_TEXT], const void *numbers)
{
    const struct pooling *const p = numbers;

    snprintf(text, CHOICE_TEXT, "%s", p->fixed ? "weights" : pool_name[p->kind]);
}

/* Files whose tensors have fixed shares are free to name them. */
static enum status parse_pool(void *numbers, const char *text, struct err *e)
{
    struct pooling *const p = numbers;
    int kind = 0;

    while (pool_name[kind] && strcmp(text, pool_name[kind]) != 0)
        kind++;
    if (!pool_name[kind] && !p->fixed)
        return fail(e, E_USAGE, "pf_pool \"%.60s\"  -> use dynamic, mean or max", text);
    p->kind = pool_name[kind] ? (enum pool_kind)kind : POOL_MEAN;
    return OK;
}

static bool pools_by_kind(const struct config *c)
{
    return !((const struct pooling *)config_numbers(c, SLOT_MIXER))->fixed;
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
    ROW_FLAG(struct pooling, fixed, "pf_weights",
             "1: shares are trained numbers, the same everywhere", .scope = SCOPE_LAYER,
             .setting = true, .tensor = "attn2.pool_k"),
    ROW_TEXT("pf_pool", print_pool, parse_pool, "how rows are pooled: dynamic, mean, max",
             .applies = pools_by_kind, SETTING, .tiny = "dynamic|dynamic|mean|mean|max|max"),
    {0},
};

static const struct part_numbers pooling_numbers = {
    choices, PRESET(struct pooling, .window = 128, .wide = 512, .kernel = 5, .stride = 4)};

static const struct pooling *numbers(const struct config *c)
{
    return config_numbers(c, SLOT_MIXER);
}

/* ---- pooling ------------------------------------------------------------------------------ */

/* Cells of L rows; only whole ones. */
static int cells_of(const struct config *c, int L)
{
    const struct pooling *const p = numbers(c);

    return L < p->kernel ? 0 : (L - p->kernel) / p->stride + 1;
}

static int cells(const struct steps *t, struct extent now) { return cells_of(t->c, now.L); }

/* A cell of one head: its rows x, a row's width apart, how much of each is in it, and, where shares
 * follow from the middle row, the head's map. */
struct cell {
    const float *x;
    int kernel, dh;
    ptrdiff_t width;
    const float *map; /* [kernel,dh], or NULL */
    bool fixed;       /* then it is [kernel] */
    float *share;     /* [kernel], then as much work space of backward */
};

static const float *middle(const struct cell *t) { return t->x + t->kernel / 2 * t->width; }

static void shares(const struct cell *t)
{
    float most = -INFINITY, sum = 0;

    for (int i = 0; i < t->kernel; i++) {
        t->share[i] = t->fixed ? t->map[i]
                      : t->map ? dot_in_lanes(t->map + (ptrdiff_t)i * t->dh, middle(t), t->dh)
                               : 0;
        most = fmaxf(most, t->share[i]);
    }
    for (int i = 0; i < t->kernel; i++)
        sum += t->share[i] = expf(t->share[i] - most);
    for (int i = 0; i < t->kernel; i++)
        t->share[i] /= sum;
}

/* Which row has the largest number of column e, the first of several. */
static ptrdiff_t largest(const struct cell *t, int e)
{
    ptrdiff_t at = e;

    for (ptrdiff_t i = e; i < t->kernel * t->width; i += t->width)
        at = t->x[i] > t->x[at] ? i : at;
    return at;
}

static void pool(const struct cell *t, enum pool_kind kind, float *y)
{
    if (kind != POOL_MAX)
        shares(t);
    for (int e = 0; e < t->dh; e++) {
        float sum = 0;
        for (int i = 0; i < t->kernel && kind != POOL_MAX; i++)
            sum += t->share[i] * t->x[i * t->width + e];
        y[e] = kind == POOL_MAX ? t->x[largest(t, e)] : sum;
    }
}

/* From the gradient d of a cell: adds to d_x, which lies as x does, and to that of the map. */
static void pool_grad(const struct cell *t, enum pool_kind kind, const float *d, float *d_x,
                      float *d_map)
{
    float *const slope = t->share + t->kernel, mean = 0;

    for (int e = 0; e < t->dh && kind == POOL_MAX; e++)
        d_x[largest(t, e)] += d[e];
    if (kind == POOL_MAX)
        return;
    shares(t);
    for (int i = 0; i < t->kernel; i++) {
        for (int e = 0; e < t->dh; e++)
            d_x[i * t->width + e] += t->share[i] * d[e];
        slope[i] = dot_in_lanes(d, t->x + i * t->width, t->dh);
        mean += t->share[i] * slope[i];
    }
    if (!d_map)
        return;
    for (int i = 0; i < t->kernel && t->fixed; i++)
        d_map[i] += t->share[i] * (slope[i] - mean);
    for (int i = 0; i < t->kernel && !t->fixed; i++)
        for (int e = 0; e < t->dh; e++) {
            const float by = t->share[i] * (slope[i] - mean);
            d_map[(ptrdiff_t)i * t->dh + e] += by * middle(t)[e];
            d_x[t->kernel / 2 * t->width + e] += by * t->map[(ptrdiff_t)i * t->dh + e];
        }
}

/* A thread has a head, whose map all sequences share; fixed shares are those of all heads. */
static void pool_all(const struct step_call *c, bool back)
{
    const struct config *const m = c->steps->c;
    const struct pooling *const p = numbers(m);
    const struct param *const maps = c->param[0];
    const enum pool_kind kind = p->fixed ? POOL_MEAN : p->kind;
    const int dh = m->dh, heads = m->kv_heads;

#pragma omp parallel for num_threads(heads > 1 && !(p->fixed && back) ? c->g->threads : 1)
    for (int h = 0; h < heads; h++)
        for (int at = 0; at < c->B * c->L; at++) {
            const ptrdiff_t map = p->fixed ? 0 : (ptrdiff_t)h * p->kernel * dh;
            const ptrdiff_t row = (ptrdiff_t)(at / c->L) * c->length + at % c->L * p->stride;
            const ptrdiff_t first = row * c->in->row + (ptrdiff_t)h * dh;
            const struct cell one = {c->in->at + first,
                                     p->kernel,
                                     dh,
                                     c->in->row,
                                     maps ? maps->data + map : NULL,
                                     p->fixed,
                                     (float *)c->scratch + (ptrdiff_t)h * 2 * p->kernel};
            if (back)
                pool_grad(&one, kind, matrix_row(c->d_out, at) + (ptrdiff_t)h * dh,
                          c->d_in->at + first, maps ? maps->grad + map : NULL);
            else
                pool(&one, kind, matrix_row(c->out, at) + (ptrdiff_t)h * dh);
        }
}

static void pool_forward(const struct step_call *c) { pool_all(c, false); }
static void pool_backward(const struct step_call *c) { pool_all(c, true); }

static size_t pool_scratch(const struct engine *g, const struct step *s, struct extent max,
                           bool backward)
{
    return 2 * sizeof(float) * (size_t)s->c->kv_heads * (size_t)numbers(s->c)->kernel;
}

static bool has_maps(const struct pooling *p) { return p->fixed || p->kind == POOL_DYNAMIC; }

/* An addition or comparison a row, and with dynamic shares two products. */
static double pool_flop(const struct step *s, int B, int L)
{
    const struct pooling *const p = numbers(s->c);

    return (has_maps(p) && !p->fixed ? 4.0 : 1.0) * B * L * p->kernel * s->result;
}

static int pooled(struct steps *t, int x, int map)
{
    static const struct step_kind kind = {.name = "pool",
                                          .forward = pool_forward,
                                          .backward = pool_backward,
                                          .scratch = pool_scratch,
                                          .flop = pool_flop};
    struct step *const s = STEP_READING(t, &kind, x);

    if (has_maps(numbers(t->c)))
        step_shares(s, map);
    return step_writes_to(t, s, steps_value_of(t, t->value[x].width, cells, false));
}

/* ---- the two attentions ------------------------------------------------------------------- */

/* The first. */
static struct attn core(const struct steps *t, int part, struct extent now)
{
    struct attn a = attn_of_config(t->c, now.B, now.L, 0);

    if (t->c->causal)
        a.window = numbers(t->c)->window;
    else
        a.mask = &t->mask;
    return a;
}

struct cells_seen {
    const struct config *c;
    int cells;
};

/* Cells of which the first and the last row are seen. */
static int seen_by(const void *of, int i, struct range out[RANGE_LISTS])
{
    const struct cells_seen *const sight = of;
    const struct pooling *const p = numbers(sight->c);
    const int ahead = sight->c->causal ? 0 : p->wide - 1;
    const int end = i + ahead - (p->kernel - 1), begin = i - p->wide + 1;
    const int to = end < 0 ? 0 : min_int(sight->cells, end / p->stride + 1);
    const int from = begin <= 0 ? 0 : (begin + p->stride - 1) / p->stride;

    out[0] = (struct range){min_int(from, to), to};
    return 1;
}

static struct range_rows rows_of(const struct matrix *m, int n)
{
    return (struct range_rows){.list = {m->at}, .stride = {m->batch}, .rows = {n}, .lists = 1};
}

static struct ranges second(const struct step_call *c, const struct cells_seen *sight)
{
    const struct config *const m = c->steps->c;

    return (struct ranges){.B = c->B,
                           .L = c->L,
                           .H = m->H,
                           .Hkv = m->kv_heads,
                           .dh = m->dh,
                           .scale = m->scale,
                           .q = c->in[ATTEND_Q].at,
                           .k = rows_of(&c->in[ATTEND_K], sight->cells),
                           .v = rows_of(&c->in[ATTEND_V], sight->cells),
                           .o = c->out[ATTEND_RESULT].at,
                           .lse = c->out[ATTEND_LSE].at,
                           .seen = seen_by,
                           .context = sight,
                           .most = sight->cells};
}

static void second_forward(const struct step_call *c)
{
    const struct cells_seen sight = {c->s->c, cells_of(c->s->c, c->L)};
    const struct ranges a = second(c, &sight);

    ranges_forward(c->g, &a, c->scratch);
}

static void second_backward(const struct step_call *c)
{
    const struct cells_seen sight = {c->s->c, cells_of(c->s->c, c->L)};
    const struct ranges a = second(c, &sight);
    const struct ranges_grad d = {c->d_out->at, c->d_in[ATTEND_Q].at,
                                  rows_of(&c->d_in[ATTEND_K], sight.cells),
                                  rows_of(&c->d_in[ATTEND_V], sight.cells)};

    ranges_backward(c->g, &a, &d, c->scratch);
}

static size_t second_scratch(const struct engine *g, const struct step *s, struct extent max,
                             bool backward)
{
    return ranges_need(cells_of(s->c, max.L), g->threads).scores_bytes;
}

static double second_flop(const struct step *s, int B, int L)
{
    const struct cells_seen sight = {s->c, cells_of(s->c, L)};
    const struct ranges a = {.B = B, .L = L, .H = 1, .seen = seen_by, .context = &sight};

    return 4 * ranges_pairs(&a) * s->result;
}

static int attend_cells(struct steps *t, struct attend a)
{
    static const struct step_kind kind = {.name = "attend to cells",
                                          .forward = second_forward,
                                          .backward = second_backward,
                                          .scratch = second_scratch,
                                          .flop = second_flop};

    return step_attend_as(t, &kind, a);
}

/* ---- the layer ---------------------------------------------------------------------------- */

/* Maps of pooled keys and values. */
static void declare_pools(struct steps *t)
{
    const struct pooling *const p = numbers(t->c);
    const int shape[] = {t->c->kv_heads, p->kernel, t->c->dh};

    if (!has_maps(p))
        return;
    for (int i = 0; i < 2; i++)
        if (p->fixed)
            steps_tensor(t, INIT_ZERO, 0, 1, &p->kernel, i ? "attn2.pool_v" : "attn2.pool_k");
        else /* read row by row: it stays f32 in narrow models */
            steps_tensor(t, INIT_NORMAL, 1 / sqrtf((float)t->c->dh), 3, shape,
                         i ? "attn2.ldconv_v" : "attn2.ldconv_k");
}

static void build(struct steps *t)
{
    const int of = steps_projections(t, "attn1."), of2 = steps_projections(t, "attn2.");
    const int pools = t->n_params, width = config_q_width(t->c);

    t->no_past = "pooled rows are of one window of text  -> use --mem-kind recompute";
    declare_pools(t);
    t->mask = (struct mask){.window = numbers(t->c)->window};
    t->last = NULL;
    const int v = step_project(t, STEPS_INPUT, of, ATTN_V);
    const int k = step_project(t, STEPS_INPUT, of, ATTN_K);
    const int q = step_project(t, STEPS_INPUT, of, ATTN_Q);
    const int o = step_attend(
        t, (struct attend){.q = q, .k = k, .v = v, .width = width, .unseen = true, .core = core});
    const int y = step_project(t, o, of, ATTN_O);
    const int v2 = pooled(t, step_project(t, y, of2, ATTN_V), pools + 1);
    const int k2 = pooled(t, step_project(t, y, of2, ATTN_K), pools);
    const int q2 = step_project(t, y, of2, ATTN_Q);
    const int o2 = attend_cells(t, (struct attend){.q = q2, .k = k2, .v = v2, .width = width});
    t->result = step_plus(t, y, step_project(t, o2, of2, ATTN_O));
}

const struct mixer mixer_pooling = {.name = "pooling",
                                    .numbers = &pooling_numbers,
                                    .kind = &sublayer_attending,
                                    .build = build,
                                    .prefix = "",
                                    .both = true};

const struct variant variant_poolingformer = {
    .name = "poolingformer",
    .paper = "Zhang et al. 2021, arXiv:2105.04371",
    .about = "a window, then pooled keys of a wider one; causal",
    .control = "vanilla --ffn gelu",
    .pos = &pos_sinusoid,
    .mem = &mem_none,
    .ffn = &ffn_gelu,
    .mixer = &mixer_pooling,
};

const struct variant variant_poolingformer_bi = {
    .name = "poolingformer-bi",
    .paper = "Zhang et al. 2021, arXiv:2105.04371",
    .about = "a window, then pooled keys of a wider one",
    .control = "bert",
    .pos = &pos_learned,
    .ffn = &ffn_gelu,
    .mixer = &mixer_pooling,
    .attn_bias = ATTN_BIASED,
    .bidirectional = true,
};
