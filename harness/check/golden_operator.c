/* SPDX-License-Identifier: MIT
 *
 * Golden files of attention alone (kind = attention): its output, which pairs are visible, which
 * rows of tables they read, its probabilities and gradients. */
#include "golden.h"

#include "variants/model/attention/sublayer_attention.h"
#include "variants/model/checkpoint/checkpoint.h"

struct operator_run {
    int base;         /* stream position of the first remembered row */
    int32_t *buckets; /* [K] */
    int32_t *visible; /* [H,L,K] */
    /* Scores from an attention below and those for one above; NULL = none. */
    const struct tensor *scores_in, *d_scores_out;
    struct work below, above;
    const struct tensor *first_values; /* in.v0 */
    const struct tensor *task;         /* in.task [B,width]; NULL = none */
    float *d_task;
    struct attn a; /* the operands of forward */
};

static enum status bind(struct run *r, struct err *e)
{
    struct operator_run *o = r->data;
    struct arena *a = &r->arena;
    const size_t K = (size_t)r->max.L + (size_t)r->max.M;

    o->buckets = arena_take(a, PART_ACTIVATIONS, K * sizeof(*o->buckets));
    o->visible =
        arena_take(a, PART_ACTIVATIONS, (size_t)(r->c.H * r->max.L) * K * sizeof(*o->visible));
    o->d_task = o->task ? arena_f32(a, PART_ACTIVATIONS, o->task->n) : NULL;
    return golden_bind_sublayer(r, r->max.M || o->base ? MEM_HIDDEN : MEM_NONE, e);
}

/* The row of the table [rows,H] that distance n reads, found by its values; -1 = none. */
static int row_of_distance(const struct attn *a, const struct param *table, int n)
{
    const float *bias = a->bias + a->R - 1 - min_int(n, a->R - 1);

    for (int row = 0; row < table->shape[0]; row++) {
        int same = 0;
        while (same < a->H && bias[same * a->bias_head] == table->data[row * a->H + same])
            same++;
        if (same == a->H)
            return row;
    }
    return -1;
}

/* out.bucket [K]: the row of a table of biases that each distance reads. */
static void check_buckets(struct run *r, struct operator_run *o)
{
    const struct param *table = params_find(&r->params, "attn.rel_bias");
    const struct attn *a = &r->sublayers.at->state.attention.prepared;
    const int K = r->max.L + r->max.M;

    for (int n = 0; n < K; n++)
        o->buckets[n] = table && a->bias ? row_of_distance(a, table, n) : -1;
    golden_compare_whole(r, "out.bucket", o->buckets, (size_t)K);
}

/* out.visible [H,L,K] */
static void check_visible(struct run *r, struct operator_run *o, const struct attn *a)
{
    const int K = attn_keys(a);

    for (int at = 0; at < a->H * a->L * K; at++) {
        const struct sight sight = attn_sight(a, at / (a->L * K));
        o->visible[at] = sight_visible(&sight, at / K % a->L, at % K);
    }
    golden_compare_whole(r, "out.visible", o->visible, (size_t)a->H * (size_t)(a->L * K));
}

/* in.slopes [H]: what each head subtracts from the score of the distance 1. */
static void check_slopes(struct run *r, const struct attn *a)
{
    float *const slopes = need_room((size_t)a->H + 1, sizeof(*slopes));

    for (int h = 0; h < a->H && a->bias && a->R > 1; h++) {
        const float *const near = a->bias + h * a->bias_head + a->R - 1;
        slopes[h] = near[0] - near[-1];
    }
    if (a->bias && a->R > 1)
        golden_compare(r, "in.slopes", slopes, (size_t)a->H);
    free(slopes);
}

/* Scores of pairs that are not visible are unspecified. */
static void check_scores(struct run *r, const struct operator_run *o, const char *name,
                         float *scores)
{
    const int K = r->max.M + r->max.L, pairs = r->c.H * r->max.L * K;

    for (int at = 0; at < r->max.B * pairs; at++)
        if (!o->visible[at % pairs])
            scores[at] = 0;
    golden_compare(r, name, scores, (size_t)r->max.B * (size_t)pairs);
}

/* As in a layer between two others. */
static void link_scores(struct run *r, struct operator_run *o)
{
    struct work *const w = r->sublayers.work;

    if (!o->scores_in)
        return;
    o->below.array[AT_SCORES] = (float *)o->scores_in->data;
    w->below = &o->below;
    w->above = &o->above;
}

static enum status forward(struct run *r, struct err *e)
{
    struct operator_run *o = r->data;
    struct sublayer *const s = r->sublayers.at;
    struct work *const w = r->sublayers.work;

    golden_tables(r, r->max.L + r->max.M);
    link_scores(r, o);
    s->memory.seen = o->base; /* rows that have been forgotten */
    const struct sublayer_input from = golden_enter(r);
    if (o->first_values)
        memcpy(w->array[AT_V0], o->first_values->data, o->first_values->n * sizeof(float));
    if (o->task)
        s->state.attention.task = o->task->data;
    o->a = attention_project(r->g, s, w, from);
    attention_core(r->g, s, w, &o->a);
    attention_unproject(r->g, s, w, from, (struct act){.y = r->y});
    check_buckets(r, o);
    check_visible(r, o, &o->a);
    check_slopes(r, &o->a);
    if (o->scores_in)
        check_scores(r, o, "out.scores_out", w->array[AT_SCORES]);
    return OK;
}

/* The scores' gradient is the sum over both of their paths. */
static void backward(struct run *r)
{
    struct operator_run *o = r->data;
    float *const d_scores = r->sublayers.work->d_array[AT_SCORES];

    if (o->d_scores_out)
        memcpy(d_scores, o->d_scores_out->data, o->d_scores_out->n * sizeof(float));
    if (o->task) {
        memset(o->d_task, 0, o->task->n * sizeof(float));
        r->sublayers.at->state.attention.d_task = o->d_task;
    }
    golden_backward_sublayer(r);
    if (o->task)
        golden_compare(r, GRADIENT "task", o->d_task, o->task->n);
    if (o->d_scores_out)
        check_scores(r, o, GRADIENT "scores_in", d_scores);
}

static void finish(struct run *r)
{
    const struct operator_run *o = r->data;
    const struct sublayer *const s = r->sublayers.at;
    const struct work *const w = r->sublayers.work;
    const struct part_call all = attention_call(r->g, s, w, r->max.B, r->max.L);
    struct attn maps[2];

    for (int map = 0; map < config_maps(&r->c); map++)
        maps[map] = around_softmax(&all, &o->a, map);
    golden_probs(r, maps, config_maps(&r->c), s->state.attention.impl, w->scratch);
}

static enum status read_scores(struct run *r, struct operator_run *o, struct err *e)
{
    const struct extent m = r->max;
    const size_t n = (size_t)m.B * (size_t)r->c.H * (size_t)m.L * (size_t)(m.M + m.L);
    enum status st = OK;

    if (!safetensors_find(r->s, "in.scores_in") && !around_hands_on(&r->c))
        return OK;
    if (!around_hands_on(&r->c))
        r->c.score_residual = SCORE_RESIDUAL_SUM;
    o->scores_in = golden_need(r, "in.scores_in", DTYPE_F32, n, &st, e);
    o->d_scores_out = golden_need(r, "in.dscores_out", DTYPE_F32, n, &st, e);
    return st;
}

/* The first attention's values [B,K,Hkv,dh]. */
static enum status read_values(struct run *r, struct operator_run *o, struct err *e)
{
    const struct extent m = r->max;
    const size_t n = (size_t)(m.B * (m.M + m.L)) * (size_t)config_kv_width(&r->c);
    enum status st = OK;

    if (around_shares(&r->c))
        o->first_values = golden_need(r, "in.v0", DTYPE_F32, n, &st, e);
    return st;
}

/* The vector of each sequence's task. */
static enum status read_task(struct run *r, struct operator_run *o, struct err *e)
{
    enum status st = OK;

    if (safetensors_find(r->s, "in.task"))
        o->task = golden_need(r, "in.task", DTYPE_F32,
                              (size_t)r->max.B * (size_t)around_task_width(&r->c), &st, e);
    return st;
}

static enum status read(struct run *r, struct err *e)
{
    struct operator_run *o = r->data;

    TRY(golden_config(r, e));
    TRY(golden_extent(r, e));
    TRY(golden_whole(r, "base", &o->base, e));
    TRY(golden_mask_random(r, o->base + r->max.M + r->max.L, e));
    TRY(golden_inputs(r, r->c.D, e));
    TRY(read_scores(r, o, e));
    TRY(read_values(r, o, e));
    TRY(read_task(r, o, e));
    (void)safetensors_find(r->s, "in.slopes"); /* compared with those of the model */
    if (r->c.pos->model_params)
        r->c.pos->model_params(&r->c, &r->params);
    sublayers_init_bare(&r->sublayers, &r->c, SUB_ATTENTION, &r->params, 0);
    return OK;
}

static bool claims(const struct safetensors *s) { return !checkpoint_mixes(s); }

const struct golden_kind golden_operator = {
    .name = "attention",
    .claims = claims,
    .size = sizeof(struct operator_run),
    .read = read,
    .bind = bind,
    .forward = forward,
    .backward = backward,
    .finish = finish,
};
