/* SPDX-License-Identifier: MIT
 *
 * Multi-head latent attention: DeepSeek-AI 2024, "DeepSeek-V2: A Strong, Economical, and Efficient
 * Mixture-of-Experts Language Model", section 2.1. x are source rows, h a head; d_nope, d_rope,
 * kv_rank and q_rank are the numbers of struct latent:
 *
 *              [c'; k'] = W_kva x
 *              c        = rms(c')
 *              k_r      = RoPE(k')                             one row [c; k_r] for all heads
 *              q_h      = [q_n; RoPE(q_r)] of W_q x, or of W_qb rms(W_qa x)
 *              s        = 1/sqrt(d_nope + d_rope)
 *   expanded   k_h      = [W_uk,h c; k_r]
 *              v_h      = W_uv,h c
 *              o_h      = softmax(s q_h . k_h) v_h
 *   absorbed   q~_h     = [W_uk,h^T q_n; q_r]
 *              o~_h     = softmax(s q~_h . [c; k_r]) c
 *              o_h      = W_uv,h o~_h
 *   both       y        = W_o concat o_h
 *
 * Both forms are equal: absorbed attention has one key/value head, whose values are the first
 * kv_rank coordinates of its keys. The rows [c; k_r] are what a cache holds. */
#include "variants/model/attention/sublayer_attention.h"
#include "variants/parts/latent.h"
#include "variants/parts/linear.h"

static bool absorbs(const struct config *c) { return c->mla == MLA_ABSORBED; }
/* Rows of W_uk and W_uv of one head, [d_nope,kv_rank] and [dv,kv_rank] in W_kvb. */
static int head_rows(const struct config *c) { return latent_of(c)->nope + config_dv(c); }

/* ---- positions: the last d_rope coordinates of each head, in place ---------------------------- */

enum { HEADS };

static void turn(const struct step_call *c, const struct matrix *x, bool back)
{
    const struct config *const m = c->steps->c;
    const int heads = c->s->n[HEADS], width = x->n / heads;

    m->pos->rotate(c->g, m, c->encoding,
                   &(struct rotation){.x = x->at + width - latent_of(m)->rope,
                                      .stride = x->batch,
                                      .B = c->B,
                                      .rows = c->L,
                                      .heads = heads,
                                      .width = width,
                                      .position = c->position,
                                      .layer = c->steps->layer,
                                      .back = back});
}

static void turn_forward(const struct step_call *c) { turn(c, c->out, false); }
static void turn_backward(const struct step_call *c) { turn(c, c->d_out, true); }

static void rotate(struct steps *t, int x, int heads)
{
    static const struct step_kind kind = {
        .name = "turn", .forward = turn_forward, .backward = turn_backward};
    struct step *const s = STEP_READING(t, &kind, x);

    s->n[HEADS] = heads;
    step_writes_to(t, s, x);
}

/* ---- expanded: keys and values of all heads --------------------------------------------------- */

enum { KEYS, VALUES };

enum { MULTIPLIED }; /* rows of W_kvb, by this step */

/* All rows of W_kvb. */
static int up_rows(const struct step *s) { return s->c->H * head_rows(s->c); }

static double up_flop(const struct step *s, int B, int L)
{
    return 2.0 * B * L * s->n[MULTIPLIED] * latent_of(s->c)->rank;
}

/* Scratch: W_kvb c of all rows. */
static size_t expand_scratch(const struct engine *g, const struct step *s, struct extent max,
                             bool backward)
{
    return sizeof(float) * (size_t)max.B * (size_t)max.L * (size_t)up_rows(s);
}

/* The columns of a head's keys and values, and of `up` that they are; or back. */
static void copy_heads(const struct step_call *c, float *k, float *v, float *up, bool back)
{
    const struct config *const m = c->steps->c;
    const size_t nope = (size_t)latent_of(m)->nope, dv = (size_t)config_dv(m);

#pragma omp parallel for num_threads(                                                              \
    team_for(c->g->threads, (ptrdiff_t)c->B * c->L * up_rows(c->s)))
    for (ptrdiff_t i = 0; i < (ptrdiff_t)c->B * c->L * m->H; i++) {
        float *const x = up + (size_t)i * (nope + dv);
        float *const of_k = k + i * m->dh, *const of_v = v + (size_t)i * dv;
        memcpy(back ? x : of_k, back ? of_k : x, nope * sizeof(float));
        memcpy(back ? x + nope : of_v, back ? of_v : x + nope, dv * sizeof(float));
    }
}

static void expand_forward(const struct step_call *c)
{
    const struct config *const m = c->steps->c;
    const ptrdiff_t nope = latent_of(m)->nope, rope = latent_of(m)->rope, rank = c->in->n - rope;
    const bool apart = c->in->batch != c->L * c->in->row;
    const int calls = apart ? c->B : 1, rows = c->B * c->L / calls;
    float *const up = c->scratch;

    for (int b = 0; b < calls; b++) {
        struct gemm p = linear_product(c->g, c->param[0], up + (ptrdiff_t)b * rows * up_rows(c->s),
                                       c->in->at + b * c->in->batch, rows);
        p.lda = c->in->row;
        c->g->ops.gemm(&p);
    }
    copy_heads(c, c->out[KEYS].at, c->out[VALUES].at, up, false);
#pragma omp parallel for num_threads(                                                              \
    team_for(c->g->threads, (ptrdiff_t)c->B * c->L * up_rows(c->s)))
    for (ptrdiff_t i = 0; i < (ptrdiff_t)c->B * c->L; i++) {
        const float *const x = c->in->at + i / c->L * c->in->batch + i % c->L * c->in->row;
        for (ptrdiff_t h = 0; h < m->H; h++)
            memcpy(c->out[KEYS].at + (i * m->H + h) * m->dh + nope, x + rank,
                   sizeof(float) * (size_t)rope);
    }
}

static void expand_backward(const struct step_call *c)
{
    const struct config *const m = c->steps->c;
    const ptrdiff_t nope = latent_of(m)->nope, rope = latent_of(m)->rope, rank = c->in->n - rope;
    const struct param *const W = c->param[0];
    const int rows = c->B * c->L;
    float *const d_up = c->scratch;

    copy_heads(c, c->d_out[KEYS].at, c->d_out[VALUES].at, d_up, true);
#pragma omp parallel for num_threads(team_for(c->g->threads, (ptrdiff_t)rows *up_rows(c->s)))
    for (ptrdiff_t i = 0; i < rows; i++)
        for (ptrdiff_t h = 0; h < m->H; h++)
            for (ptrdiff_t e = 0; e < rope; e++)
                matrix_row(c->d_in, i)[rank + e] +=
                    c->d_out[KEYS].at[(i * m->H + h) * m->dh + nope + e];
    struct gemm of_w = linear_weight_product(c->g, W, d_up, c->in->at, rows);
    struct gemm of_x = linear_input_product(c->g, W, c->d_in->at, d_up, rows, 1);
    of_w.ldb = c->in->row;
    of_x.ldc = c->d_in->row;
    c->g->ops.gemm(&of_w);
    c->g->ops.gemm(&of_x);
}

static struct step *up_step(struct steps *t, const struct step_kind *kind, int x, int w_up,
                            int rows)
{
    struct step *const s = STEP_READING(t, kind, x);

    s->n[MULTIPLIED] = t->c->H * rows;
    step_shares(s, w_up);
    return s;
}

/* ---- absorbed: W_uk and W_uv on queries and outputs ------------------------------------------- */

/* One head: y = x W of queries or y = x W^T of outputs, x and y being columns of all heads. */
struct absorbed {
    ptrdiff_t x, y, W; /* where it begins */
    int narrow;        /* rows of W */
};

static struct absorbed head_at(const struct step_call *c, int h, bool queries)
{
    const struct config *const m = c->steps->c;
    const ptrdiff_t rank = latent_of(m)->rank, nope = latent_of(m)->nope, dv = config_dv(m);
    const ptrdiff_t W = h * (nope + dv) * rank;

    return queries ? (struct absorbed){h * (ptrdiff_t)m->dh, h * (ptrdiff_t)latent_width(m), W,
                                       (int)nope}
                   : (struct absorbed){h * rank, h * dv, W + nope * rank, (int)dv};
}

static void queries_forward(const struct step_call *c)
{
    const struct config *const m = c->steps->c;
    const struct latent *const l = latent_of(m);
    const int rows = c->B * c->L, width = latent_width(m);

    for (int h = 0; h < m->H; h++) {
        const struct absorbed a = head_at(c, h, true);
        mm(c->g, NN, rows, l->rank, l->nope, 1, c->in->at + a.x, c->in->row,
           c->param[0]->data + a.W, l->rank, 0, c->out->at + a.y, c->out->row);
    }
    for (ptrdiff_t i = 0; i < (ptrdiff_t)rows * m->H; i++)
        memcpy(c->out->at + i * width + l->rank, c->in->at + i * m->dh + l->nope,
               sizeof(float) * (size_t)l->rope);
}

static void queries_backward(const struct step_call *c)
{
    const struct config *const m = c->steps->c;
    const struct latent *const l = latent_of(m);
    const int rows = c->B * c->L, width = latent_width(m);

    for (int h = 0; h < m->H; h++) {
        const struct absorbed a = head_at(c, h, true);
        const float *const d = c->d_out->at + a.y;
        mm(c->g, TN, l->nope, l->rank, rows, 1, c->in->at + a.x, c->in->row, d, c->d_out->row, 1,
           c->param[0]->grad + a.W, l->rank);
        mm(c->g, NT, rows, l->nope, l->rank, 1, d, c->d_out->row, c->param[0]->data + a.W, l->rank,
           0, c->d_in->at + a.x, c->d_in->row);
    }
    for (ptrdiff_t i = 0; i < (ptrdiff_t)rows * m->H; i++)
        memcpy(c->d_in->at + i * m->dh + l->nope, c->d_out->at + i * width + l->rank,
               sizeof(float) * (size_t)l->rope);
}

static void outputs_forward(const struct step_call *c)
{
    const int rank = latent_of(c->steps->c)->rank;

    for (int h = 0; h < c->steps->c->H; h++) {
        const struct absorbed a = head_at(c, h, false);
        mm(c->g, NT, c->B * c->L, a.narrow, rank, 1, c->in->at + a.x, c->in->row,
           c->param[0]->data + a.W, rank, 0, c->out->at + a.y, c->out->row);
    }
}

static void outputs_backward(const struct step_call *c)
{
    const int rank = latent_of(c->steps->c)->rank, rows = c->B * c->L;

    for (int h = 0; h < c->steps->c->H; h++) {
        const struct absorbed a = head_at(c, h, false);
        const float *const d = c->d_out->at + a.y;
        mm(c->g, TN, a.narrow, rank, rows, 1, d, c->d_out->row, c->in->at + a.x, c->in->row, 1,
           c->param[0]->grad + a.W, rank);
        mm(c->g, NN, rows, rank, a.narrow, 1, d, c->d_out->row, c->param[0]->data + a.W, rank, 0,
           c->d_in->at + a.x, c->d_in->row);
    }
}

/* ---- the layer -------------------------------------------------------------------------------- */

static struct attn core(const struct steps *t, int part, struct extent now)
{
    const struct config *const c = t->c;
    const int width = latent_width(c), rank = latent_of(c)->rank;
    const ptrdiff_t L = now.L, row = absorbs(c) ? width : c->dh,
                    dv = absorbs(c) ? rank : config_dv(c);
    struct attn a = attn_of_config(c, now.B, now.L, now.M);

    a.Hkv = absorbs(c) ? 1 : c->H;
    a.dh = (int)row;
    a.dv = (int)dv;
    a.q_at = (struct stride){L * c->H * row, c->H * row};
    a.o_at = (struct stride){L * c->H * dv, c->H * dv};
    a.k_at.row = a.Hkv * row;
    a.v_at.row = absorbs(c) ? row : c->H * dv;
    return a;
}

static int attend_expanded(struct steps *t, int q, int latent, int w_up)
{
    static const struct step_kind expand = {.name = "expand",
                                            .forward = expand_forward,
                                            .backward = expand_backward,
                                            .scratch = expand_scratch,
                                            .flop = up_flop};
    const struct config *const c = t->c;
    const int k = steps_value_of(t, c->H * c->dh, steps_all_rows, false);
    const int v = steps_value_of(t, c->H * config_dv(c), steps_all_rows, false);
    struct step *const s = up_step(t, &expand, latent, w_up, head_rows(c));

    step_writes_to(t, s, k);
    step_writes_to(t, s, v);
    return step_attend(
        t, (struct attend){.q = q, .k = k, .v = v, .width = t->value[v].width, .core = core});
}

static int attend_absorbed(struct steps *t, int q, int latent, int w_up)
{
    static const struct step_kind queries = {.name = "absorb queries",
                                             .forward = queries_forward,
                                             .backward = queries_backward,
                                             .overwrites = true,
                                             .flop = up_flop};
    static const struct step_kind outputs = {.name = "absorb outputs",
                                             .forward = outputs_forward,
                                             .backward = outputs_backward,
                                             .overwrites = true,
                                             .flop = up_flop};
    const struct config *const c = t->c;
    const int wide =
        step_writes(t, up_step(t, &queries, q, w_up, latent_of(c)->nope), c->H * latent_width(c));
    const int o = step_attend(
        t,
        (struct attend){.q = wide, .k = latent, .width = c->H * latent_of(c)->rank, .core = core});

    return step_writes(t, up_step(t, &outputs, o, w_up, config_dv(c)), c->H * config_dv(c));
}

static void build(struct steps *t)
{
    const struct config *const c = t->c;
    const struct latent *const l = latent_of(c);
    const int width = latent_width(c), rank = l->rank;
    int x = STEPS_INPUT, w_down = -1, norm = -1;

    if (l->q_rank) {
        w_down = steps_map(t, l->q_rank, c->D, "q_a.weight");
        norm = steps_tensor(t, INIT_ONE, 0, 1, &l->q_rank, "q_norm.weight");
    }
    const int w_q = steps_map(t, c->H * c->dh, l->q_rank ? l->q_rank : c->D,
                              l->q_rank ? "q_b.weight" : "q.weight");
    const int w_kv = steps_map(t, width, c->D, "kv_a.weight");
    const int kv_norm = steps_tensor(t, INIT_ONE, 0, 1, &rank, "kv_norm.weight");
    const int up[] = {c->H * head_rows(c), rank};
    const int w_up = absorbs(c) ? steps_tensor(t, INIT_LINEAR, 0, 2, up, "kv_b.weight")
                                : steps_map(t, up[0], up[1], "kv_b.weight");
    if (absorbs(c) && t->declares) /* queries are multiplied by its transpose */
        params_wide(t->declares, t->declares->n - 1);
    if (l->q_rank)
        x = step_norm(t, step_product(t, x, l->q_rank, w_down, -1),
                      (struct head_norm){.width = l->q_rank, .eps = c->head_eps, .weights = norm});
    const int q = step_product(t, x, c->H * c->dh, w_q, -1);
    const int latent = steps_remembered(t, width, "latent");
    const int raw = steps_value_of(t, rank, steps_given_rows, false);
    rotate(t, q, c->H);
    step_part_to(t, steps_columns(t, latent, rank, l->rope), STEPS_INPUT, w_kv, rank);
    step_part_to(t, raw, STEPS_INPUT, w_kv, 0);
    step_copy_to(
        t, steps_columns(t, latent, 0, rank),
        step_norm(t, raw,
                  (struct head_norm){.width = rank, .eps = c->head_eps, .weights = kv_norm}));
    rotate(t, latent, 1);
    t->result = (absorbs(c) ? attend_absorbed : attend_expanded)(t, q, latent, w_up);
}

const struct mixer mixer_mla = {.name = "mla",
                                .numbers = &latent_numbers,
                                .kind = &sublayer_remembering,
                                .attends = true,
                                .build = build,
                                /* all heads share the latents */
                                .excludes = EXCLUDES(HAS_UNROTATED, HAS_GROUPS, HAS_ATTN_BIAS)};

/* d = D / H coordinates that are not rotated and as many of values, d / 2 that are. */
static void mla_sizes(int D, int H, int *dh, int *F)
{
    const int d = max_int(1, D / H);

    *dh = d + 2 * max_int(1, d / 4);
    *F = 4 * D;
}

static int mla_d_value(int D, int H, int dh) { return max_int(1, dh - latent_rope(dh)); }

const struct variant variant_mla = {
    .name = "mla",
    .paper = "DeepSeek-AI 2024, arXiv:2405.04434",
    .about = "keys and values of all heads made of one latent per token, which is cached",
    .control = "yarn --rope-scaling none",
    .pos = &pos_rope,
    .mixer = &mixer_mla,
    LLAMA_LAYERS,
    .sizes = mla_sizes,
    .d_value = mla_d_value,
};
