/* SPDX-License-Identifier: MIT
 *
 * Collaborative heads: Cordonnier, Loukas and Jaggi 2020, "Multi-Head Attention: Collaborate
 * Instead of Concatenate", arXiv:2006.16362. x are source rows, h a head, e one of Dk coordinates:
 *
 *   q     = W_q x_i
 *   k     = W_k x_j
 *   v_h   = W_v,h x_j
 *   s_hij = scale (sum_e q_e m_he k_e + c_h . x_j),  the last with content_bias
 *   y     = W_o concat softmax(s_h) v_h
 *
 * All heads have the same queries and keys of Dk coordinates, here half of what heads have
 * together, and weigh them differently; values are of each head. So the cache holds Dk + H d
 * numbers per token, and c . x.
 *
 * The core is called once for each sequence, whose heads are the sequences of that call: keys are
 * the same rows for all of them (a stride of 0), values are not. */
#include "variants/model/attention/sublayer_attention.h"
#include "variants/parts/collab.h"

/* ---- queries of heads ----------------------------------------------------------------------- */

enum { MIX };

static void weigh_forward(const struct step_call *c)
{
    const ptrdiff_t H = c->steps->c->H, dk = c->in->n, rows = (ptrdiff_t)c->B * c->L;
    const float *const mix = c->param[MIX]->data;

#pragma omp parallel for num_threads(team_for(c->g->threads, rows *H *dk))
    for (ptrdiff_t i = 0; i < rows * H; i++)
        for (ptrdiff_t e = 0; e < dk; e++)
            c->out->at[i * dk + e] = c->in->at[i / H * dk + e] * mix[i % H * dk + e];
}

/* dm_he = sum_i dq_hie q_ie */
static void weigh_backward(const struct step_call *c)
{
    const ptrdiff_t H = c->steps->c->H, dk = c->in->n;
    const struct param *const mix = c->param[MIX];

    for (ptrdiff_t i = 0; i < (ptrdiff_t)c->B * c->L; i++)
        for (ptrdiff_t h = 0; h < H; h++) {
            const float *const d = c->d_out->at + (i * H + h) * dk, *const q = c->in->at + i * dk;
            for (ptrdiff_t e = 0; e < dk; e++) {
                c->d_in->at[i * dk + e] += d[e] * mix->data[h * dk + e];
                mix->grad[h * dk + e] += d[e] * q[e];
            }
        }
}

static int weigh(struct steps *t, int x, int mix)
{
    static const struct step_kind kind = {
        .name = "weigh", .forward = weigh_forward, .backward = weigh_backward};
    struct step *const s = STEP_READING(t, &kind, x);

    step_shares(s, mix);
    return step_writes(t, s, t->c->H * t->value[x].width);
}

/* ---- scores of keys alone ------------------------------------------------------------------- */

static int scores_of_keys(const struct steps *t, struct extent now)
{
    return t->c->H * (now.M + now.L);
}

/* scale c_h . x_j as the core adds it, [B,H,K], from rows [B,K,H]; or back. */
static void add_scores(const struct step_call *c, const struct matrix *rows, float *added,
                       bool back)
{
    const ptrdiff_t H = c->steps->c->H, K = c->M + c->length;

    for (ptrdiff_t i = 0; i < (ptrdiff_t)c->B * K * H; i++) {
        const ptrdiff_t h = i % H, j = i / H % K, b = i / H / K;
        float *const row = rows->at + b * rows->batch + j * rows->row + h;
        float *const to = added + (b * H + h) * K + j;
        if (back)
            *row += c->steps->c->scale * *to;
        else
            *to = c->steps->c->scale * *row;
    }
}

static void scores_forward(const struct step_call *c) { add_scores(c, c->in, c->out->at, false); }

static void scores_backward(const struct step_call *c)
{
    add_scores(c, c->d_in, c->d_out->at, true);
}

static int scores(struct steps *t, int x)
{
    static const struct step_kind kind = {
        .name = "scores of keys", .forward = scores_forward, .backward = scores_backward};
    struct step *const s = STEP_READING(t, &kind, x);

    return step_writes_to(t, s, steps_value_of(t, 1, scores_of_keys, true));
}

/* ---- the core of each sequence -------------------------------------------------------------- */

static struct attn core(const struct steps *t, int part, struct extent now)
{
    static const float something = 0;
    const struct config *const c = t->c;
    const ptrdiff_t H = c->H, dk = collab_of(c)->dk, dv = config_dv(c);
    struct attn a = attn_of_config(c, now.B * c->H, now.L, now.M);

    a.H = a.Hkv = 1;
    a.dh = (int)dk;
    a.dv = (int)dv;
    a.q_at = (struct stride){dk, H * dk};
    a.k_at = (struct stride){0, dk};
    a.v_at = a.o_at = (struct stride){dv, H * dv};
    if (collab_of(c)->content_bias)
        a.add = (struct dense){.at = &something, .batch = now.M + now.L};
    return a;
}

static struct attn sequence(const struct step_call *c, int b)
{
    const int H = c->steps->c->H;
    struct attn a = step_operands(c);

    a.B = H;
    a.k_at.batch = 0;
    a.v_at.batch = a.dv;
    a.q += b * c->in[ATTEND_Q].batch;
    a.k += b * c->in[ATTEND_K].batch;
    a.v += b * c->in[ATTEND_V].batch;
    a.o += b * c->out[ATTEND_RESULT].batch;
    if (a.lse)
        a.lse += b * c->out[ATTEND_LSE].batch;
    if (a.add.at)
        a.add.at += b * H * a.add.batch;
    return a;
}

/* The first sequence whose heads are heads: they share keys; values are one row of all heads. */
static void show(const struct step_call *c)
{
    struct attn a = sequence(c, 0);

    a.H = a.B;
    a.B = 1;
    a.dv *= a.H;
    a.add.head = a.add.batch;
    attn_seen(c->g, *c->place, &a);
}

static void attend_forward(const struct step_call *c)
{
    show(c);
    for (int b = 0; b < c->B; b++) {
        const struct attn a = sequence(c, b);
        c->core->forward(c->g, &a, c->scratch);
    }
}

/* Bytes of n numbers and their gradients; what is behind them begins on a cache line. */
static size_t room_of_keys(size_t n) { return round_up(2 * sizeof(float) * n, ARENA_ALIGN); }

/* The core writes a gradient of keys for each head, so it has the keys of each, too. */
static size_t attend_scratch(const struct engine *g, const struct step *s, struct extent max,
                             bool backward)
{
    return backward ? room_of_keys((size_t)(max.M + max.L) * (size_t)s->width[ATTEND_Q]) : 0;
}

static void attend_backward(const struct step_call *c)
{
    const ptrdiff_t H = c->steps->c->H, n = c->in[ATTEND_K].batch;
    float *const keys = c->scratch, *const d_keys = keys + H * n;
    void *const rest = (char *)c->scratch + room_of_keys((size_t)(H * n));

    if (c->d_in[ATTEND_ADD].at)
        memset(c->d_in[ATTEND_ADD].at, 0,
               sizeof(float) * (size_t)(c->B * c->d_in[ATTEND_ADD].batch));
    for (int b = 0; b < c->B; b++) {
        struct attn a = sequence(c, b);
        float *const d_k = c->d_in[ATTEND_K].at + b * n;
        const struct attn_grad d = {
            .d_o = c->d_out->at + b * c->d_out->batch,
            .d_q = c->d_in[ATTEND_Q].at + b * c->d_in[ATTEND_Q].batch,
            .d_k = d_keys,
            .d_v = c->d_in[ATTEND_V].at + b * c->d_in[ATTEND_V].batch,
            .d_add = c->d_in[ATTEND_ADD].at ? c->d_in[ATTEND_ADD].at + b * c->d_in[ATTEND_ADD].batch
                                            : NULL,
        };
        for (ptrdiff_t h = 0; h < H; h++)
            memcpy(keys + h * n, a.k, sizeof(float) * (size_t)n);
        a.k = keys;
        a.k_at = (struct stride){n, a.dh};
        c->core->backward(c->g, &a, &d, rest);
        memcpy(d_k, d_keys, sizeof(float) * (size_t)n);
        for (ptrdiff_t h = 1; h < H; h++)
            for (ptrdiff_t e = 0; e < n; e++)
                d_k[e] += d_keys[h * n + e];
    }
}

/* ---- the layer ------------------------------------------------------------------------------ */

static void build(struct steps *t)
{
    static const struct step_kind kind = {.name = "attend",
                                          .forward = attend_forward,
                                          .backward = attend_backward,
                                          .scratch = attend_scratch,
                                          .overwrites = true};
    static const char *const names[] = {"q.bias", "k.bias", "v.bias", "o.bias"};
    const struct config *const c = t->c;
    const int dk = collab_of(c)->dk, width = c->H * config_dv(c);
    const int rows[] = {dk, dk, width, c->D};
    const int w_q = steps_map(t, dk, c->D, "q.weight"), w_k = steps_map(t, dk, c->D, "k.weight");
    const int w_v = steps_map(t, width, c->D, "v.weight");

    t->o = steps_map(t, c->D, width, "o.weight");
    steps_residual(t);
    const int mix = steps_tensor(t, INIT_NORMAL, 0.2f, 2, (const int[]){c->H, dk}, "mix");
    const int w_c =
        !collab_of(c)->content_bias
            ? -1
            : steps_tensor(t, INIT_ZERO, 0, 2, (const int[]){c->H, c->D}, "content_bias.weight");
    const int bias = c->attn_bias ? t->n_params : -1;
    for (int i = 0; i < ATTN_WEIGHTS && c->attn_bias; i++)
        steps_tensor(t, INIT_ZERO, 0, 1, &rows[i], names[i]);
    t->o_bias = c->attn_bias ? bias + ATTN_O : -1;

    const int k = steps_remembered(t, dk, NULL), v = steps_remembered(t, width, NULL);
    const int q = weigh(t, step_product(t, STEPS_INPUT, dk, w_q, bias), mix);
    const int content = w_c < 0 ? NO_VALUE : steps_remembered(t, c->H, NULL);
    if (w_c >= 0)
        step_product_to(t, content, STEPS_INPUT, w_c, -1);
    step_product_to(t, v, STEPS_INPUT, w_v, bias < 0 ? -1 : bias + ATTN_V);
    step_product_to(t, k, STEPS_INPUT, w_k, bias < 0 ? -1 : bias + ATTN_K);
    const int add = w_c < 0 ? NO_VALUE : scores(t, content);
    t->result = step_attend_as(
        t, &kind,
        (struct attend){.q = q, .k = k, .v = v, .add = add, .width = width, .core = core});
}

const struct mixer mixer_collab = {
    .name = "collab",
    .numbers = &collab_numbers,
    .kind = &sublayer_remembering,
    .attends = true,
    .build = build,
    .excludes = EXCLUDES(HAS_MASKS_OF_HEADS, HAS_ROTATED, HAS_NO_CONTENT, HAS_GROUPS)};

const struct variant variant_collaborative = {
    .name = "collaborative",
    .paper = "Cordonnier et al. 2020, arXiv:2006.16362",
    .about = "heads weigh the coordinates of shared queries and keys",
    .control = "vanilla",
    .pos = &pos_none,
    .mixer = &mixer_collab,
};
