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
#include "variants/model/attention/sublayer_attention.h"

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

static const struct part_numbers mca_numbers = {choices,
                                                PRESET(struct mca, .stride = 3, .block = 256)};

static const struct mca *numbers(const struct config *c) { return config_numbers(c, SLOT_MIXER); }

static int block(const struct config *c) { return numbers(c)->block; }

/* ---- the convolution ---------------------------------------------------------------------- */

/* Groups of so many rows; without direction the last may be short. */
static int groups_of(const struct config *c, int rows)
{
    const int s = numbers(c)->stride;

    return c->causal ? rows / s : (rows + s - 1) / s;
}

/* Of the rows of a call, those of memory included: before the first whole group, all; groups. */
struct groups {
    int lead, rows, n;
};

static struct groups groups_in(const struct step_call *c)
{
    const struct grouping of = c->steps->groups;
    const int rows = c->M + c->length, lead = grouping_lead(of, c->position - c->M);

    return (struct groups){lead, rows, groups_of(c->s->c, max_int(0, rows - lead))};
}

/* Copy rows of groups to columns [Hkv,B,n, dh * s], [in * s + t] of head h, or add columns to rows.
 * Rows of a short group that do not exist are 0. */
static void columns(const struct step_call *c, const struct matrix *x, float *cols, bool back)
{
    const struct groups of = groups_in(c);
    const int s = numbers(c->s->c)->stride, dh = c->s->c->dh, width = x->n;
    const ptrdiff_t per_head = (ptrdiff_t)c->B * of.n * dh * s;

#pragma omp parallel for num_threads(team_for(c->g->threads, (ptrdiff_t)c->B *of.n *s *width))
    for (int at = 0; at < c->B * of.n; at++)
        for (int t = 0; t < s; t++) {
            const int row = of.lead + at % of.n * s + t;
            float *const from = x->at + at / of.n * x->batch + row * x->row;
            for (int i = 0; i < width; i++) {
                float *const to =
                    cols + i / dh * per_head + (ptrdiff_t)at * dh * s + (ptrdiff_t)(i % dh) * s + t;
                if (row >= of.rows)
                    *to = back ? *to : 0;
                else if (back)
                    from[i] += *to;
                else
                    *to = from[i];
            }
        }
}

enum { CONV, CONV_BIAS, CONV_PARAMS };

/* The product of one head of one sequence: far rows [n,dh] = columns [n, dh s] W^T. */
static struct gemm product(const struct step_call *c, const struct matrix *far, float *cols, int b,
                           int h)
{
    const int n = groups_in(c).n, dh = c->s->c->dh, wide = dh * numbers(c->s->c)->stride;

    return mm_of(c->g, NT, n, dh, wide, 1, cols + ((ptrdiff_t)h * c->B + b) * n * wide, wide,
                 c->param[CONV]->data + (ptrdiff_t)h * dh * wide, wide, 1,
                 far->at + b * far->batch + (ptrdiff_t)h * dh, (int)far->row);
}

static void convolve_forward(const struct step_call *c)
{
    const int n = groups_in(c).n, heads = c->s->c->kv_heads;

    if (n == 0)
        return;
    columns(c, c->in, c->scratch, false);
    for (int b = 0; b < c->B; b++) {
        for (int i = 0; i < n; i++)
            memcpy(c->out->at + b * c->out->batch + i * c->out->row, c->param[CONV_BIAS]->data,
                   sizeof(float) * (size_t)c->out->n);
        for (int h = 0; h < heads; h++) {
            const struct gemm p = product(c, c->out, c->scratch, b, h);
            c->g->ops.gemm(&p);
        }
    }
}

static void convolve_backward(const struct step_call *c)
{
    const int n = groups_in(c).n, heads = c->s->c->kv_heads;
    const struct param *const W = c->param[CONV], *const bias = c->param[CONV_BIAS];
    float *const cols = c->scratch, *const d_cols =
                                        cols + c->B * n * numbers(c->s->c)->stride * c->in->n;

    if (n == 0)
        return;
    columns(c, c->in, cols, false);
    for (int b = 0; b < c->B; b++) {
        const float *const d = c->d_out->at + b * c->d_out->batch;
        for (ptrdiff_t i = 0; i < n * c->d_out->row; i++)
            bias->grad[i % c->d_out->row] += d[i];
        for (int h = 0; h < heads; h++) {
            const struct gemm p = product(c, c->d_out, cols, b, h);
            float *const d_W = W->grad + (p.b - W->data), *const to = d_cols + (p.a - cols);
            mm(c->g, TN, p.n, p.k, p.m, 1, p.c, p.ldc, p.a, p.lda, 1, d_W, p.k);
            mm(c->g, NN, p.m, p.k, p.n, 1, p.c, p.ldc, p.b, p.ldb, 0, to, p.k);
        }
    }
    columns(c, c->d_in, d_cols, true);
}

/* Columns, and their gradients. */
static size_t convolve_scratch(const struct engine *g, const struct step *s, struct extent max,
                               bool backward)
{
    const size_t groups = (size_t)max.B * (size_t)max.L; /* max: of far rows */

    return (backward ? 2 : 1) * sizeof(float) * groups * (size_t)numbers(s->c)->stride *
           (size_t)s->result;
}

static struct sublayer_cost convolve_cost(const struct steps *t, const struct step *s,
                                          struct extent now)
{
    const int stride = numbers(t->c)->stride, before = t->cached ? now.M / stride : 0;
    const double groups = groups_of(t->c, now.M + now.L) - before;

    return (struct sublayer_cost){.maps = 2.0 * now.B * groups * stride * s->result * t->c->dh};
}

static int convolved(struct steps *t, int x, int conv)
{
    static const struct step_kind kind = {.name = "convolution of groups",
                                          .forward = convolve_forward,
                                          .backward = convolve_backward,
                                          .scratch = convolve_scratch,
                                          .cost = convolve_cost};
    struct step *const s = STEP_READING(t, &kind, x);

    step_shares(s, conv + CONV);
    step_shares(s, conv + CONV_BIAS);
    return step_writes_to(t, s, steps_far(t, t->value[x].width));
}

/* ---- classes of queries ------------------------------------------------------------------- */

enum { NULL_K, NULL_V }; /* parameters */

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

/* Of L queries behind M rows, the first of them at this stream position; `far` groups before these. */
static struct class class_of(const struct config *c, int64_t position, int M, int far, int L,
                             int nth)
{
    const struct grouping of = {.size = numbers(c)->stride};
    const int s = of.size;

    if (!c->causal)
        return (struct class){.step = 1, .n = L, .seen = groups_of(c, M + L)};
    const int ends =
        M + nth - grouping_lead(of, position - M) + 1; /* tokens of whole groups up to the first */
    const int seen = far + (ends < 0 ? -((s - 1 - ends) / s) : ends / s);
    const int n = (L - nth + s - 1) / s, blind = clamp_int(1 - seen, 0, n);
    return (struct class){.first = nth, .step = s, .n = n, .blind = blind, .seen = seen + blind};
}

static struct class class_in(const struct step_call *c, int nth)
{
    return class_of(c->s->c, c->position, c->M, c->far, c->length, nth);
}

/* Attention of L queries, the first of which sees `seen` groups, the last all; without direction
 * each sees as many. */
static struct attn class_core(const struct config *c, int B, int L, int seen)
{
    static const float something = 0;
    struct attn a = attn_of_config(c, B, L, c->causal ? seen - 1 : 0);

    a.K = c->causal ? 0 : seen;
    a.sinks = 1;
    a.sink_k = a.sink_v = &something;
    return a;
}

static struct attn core(const struct steps *t, int part, struct extent now)
{
    const int s = numbers(t->c)->stride, L = t->c->causal ? (now.L + s - 1) / s : now.L;

    return class_core(t->c, now.B, L, max_int(1, groups_of(t->c, now.M + now.L + s - 1)));
}

/* The attention of a class without its blind queries. */
static struct attn operands(const struct step_call *c, const struct class *of)
{
    const struct matrix *const q = &c->in[ATTEND_Q], *const k = &c->in[ATTEND_K],
                               *const v = &c->in[ATTEND_V], *const lse = &c->out[ATTEND_LSE];
    const ptrdiff_t at = (of->first + (ptrdiff_t)of->blind * of->step) * q->row;
    const int before =
        of->first * (c->length / of->step) + min_int(of->first, c->length % of->step);
    struct attn a = class_core(c->s->c, c->B, of->n - of->blind, of->seen);

    a.sink_k = c->param[NULL_K]->data;
    a.sink_v = c->param[NULL_V]->data;
    a.q = q->at + at;
    a.o = c->out->at + at;
    a.q_at = a.o_at = (struct stride){q->batch, of->step * q->row};
    a.k = k->at - c->far * k->row;
    a.v = v->at - c->far * v->row;
    a.k_at.batch = a.v_at.batch = k->batch;
    a.lse = lse->at ? matrix_row(lse, (ptrdiff_t)before * c->B) : NULL;
    return a;
}

/* Blind queries of a class get the learned value, or give it their gradient. */
static void blind_rows(const struct step_call *c, const struct class *of, const struct matrix *rows,
                       bool back)
{
    const struct param *const null = c->param[NULL_V];
    const size_t width = null->n;

    for (int at = 0; at < c->B * of->blind; at++) {
        const int i = of->first + at % of->blind * of->step;
        float *const row = rows->at + at / of->blind * rows->batch + i * rows->row;
        for (size_t e = 0; e < width && back; e++)
            null->grad[e] += row[e];
        if (!back)
            memcpy(row, null->data, width * sizeof(float));
    }
}

static void classes_forward(const struct step_call *c)
{
    for (int nth = 0; nth < classes(c->s->c, c->length); nth++) {
        const struct class of = class_in(c, nth);
        blind_rows(c, &of, c->out, false);
        if (of.blind == of.n)
            continue;
        const struct attn a = operands(c, &of);
        step_part_forward(c, &a, of.first + of.blind * of.step, 0);
    }
}

static void classes_backward(const struct step_call *c)
{
    const struct attn_grad d = {.d_sink_k = c->param[NULL_K]->grad,
                                .d_sink_v = c->param[NULL_V]->grad};

    for (int nth = 0; nth < classes(c->s->c, c->length); nth++) {
        const struct class of = class_in(c, nth);
        struct matrix one[2];
        blind_rows(c, &of, c->d_out, true);
        if (of.blind == of.n)
            continue;
        const struct attn a = operands(c, &of);
        step_part_backward(c, &a, d, one);
        matrix_add_rows(&c->d_in[ATTEND_K], &one[0], c->B, attn_keys(&a));
        matrix_add_rows(&c->d_in[ATTEND_V], &one[1], c->B, attn_keys(&a));
    }
}

static size_t classes_scratch(const struct engine *g, const struct step *s, struct extent max,
                              bool backward)
{
    const int far = (max.M + max.L) / numbers(s->c)->stride + 1;

    return backward ? step_beside(max.B, far, s->width[ATTEND_K]) : 0;
}

static struct sublayer_cost classes_cost(const struct steps *t, const struct step *s,
                                         struct extent now)
{
    struct sublayer_cost sum = {0};

    for (int nth = 0; nth < classes(t->c, now.L); nth++) {
        const struct class of = class_of(t->c, now.M, now.M, 0, now.L, nth);
        if (of.blind == of.n)
            continue;
        const struct attn a = class_core(t->c, now.B, of.n - of.blind, of.seen);
        sum.forward += attn_flop(&a);
        sum.backward += attn_grad_flop(&a);
    }
    return sum;
}

/* ---- the layer ---------------------------------------------------------------------------- */

static int convolution(struct steps *t, const char *weight, const char *bias)
{
    const struct config *const c = t->c;
    const int s = numbers(c)->stride, width = config_kv_width(c),
              shape[] = {c->kv_heads, c->dh, c->dh, s};
    const float most = 1 / sqrtf((float)(c->dh * s));
    const int W = steps_tensor(t, INIT_UNIFORM_BOTH, most, 4, shape, weight);

    steps_tensor(t, INIT_UNIFORM_BOTH, most, 1, &width, bias);
    return W;
}

static void build(struct steps *t)
{
    static const struct step_kind kind = {.name = "attend in classes",
                                          .forward = classes_forward,
                                          .backward = classes_backward,
                                          .scratch = classes_scratch,
                                          .cost = classes_cost};
    const struct config *const c = t->c;
    const int maps = steps_projections(t, ""), width = config_kv_width(c), null[] = {c->H, c->dh};

    steps_end_with(t, maps);
    t->groups = (struct grouping){numbers(c)->stride, 1, 1}; /* the last group may be short */
    t->no_past = c->causal ? NULL : "a view of the future has no past  -> use --mem 0";
    const int of_k = convolution(t, "conv_k.weight", "conv_k.bias");
    const int of_v = numbers(c)->share ? of_k : convolution(t, "conv_v.weight", "conv_v.bias");
    const int null_k = steps_tensor(t, INIT_ZERO, 0, 2, null, "null_k");
    const int null_v = steps_tensor(t, INIT_ZERO, 0, 2, null, "null_v");
    const int q = step_project(t, STEPS_INPUT, maps, ATTN_Q);
    const int v = steps_remembered(t, width, NULL), k = steps_remembered(t, width, NULL);
    step_project_to(t, v, STEPS_INPUT, maps, ATTN_V);
    step_project_to(t, k, STEPS_INPUT, maps, ATTN_K);
    const int far_v = convolved(t, v, of_v), far_k = convolved(t, k, of_k);
    t->result = step_attend_as(
        t, &kind,
        (struct attend){.q = q, .k = far_k, .v = far_v, .width = config_q_width(c), .core = core});
    step_shares(&t->step[t->n - 1], null_k);
    step_shares(&t->step[t->n - 1], null_v);
}

const struct mixer mixer_mca = {.name = "mca",
                                .numbers = &mca_numbers,
                                .kind = &sublayer_condensed,
                                .build = build,
                                .both = true,
                                .block = block};

const struct variant variant_mca = {
    .name = "mca",
    .paper = "Liu et al. 2018, arXiv:1801.10198",
    .about = "keys and values of several tokens are convolved into one; every other layer is local",
    .control = "vanilla",
    .pos = &pos_sinusoid,
    .mixer = &mixer_mca,
    .stack = {2, {false, true}},
};
