/* SPDX-License-Identifier: MIT
 *
 * Latent attention as a kind of sub-layer (DeepSeek-AI 2024, arXiv:2405.04434). x are source rows,
 * h a head, d_nope, d_rope, kv_rank and q_rank the numbers of struct latent:
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
 * kv_rank coordinates of its keys, in the same memory. The rows [c; k_r] are what MEM_KV caches. */
#include "sublayer_latent.h"
#include "variants/base/loops.h"
#include "variants/model/sublayer/sublayer_inner.h"
#include "variants/model/sublayer/sublayer_seen.h"
#include "variants/parts/linear.h"
#include "variants/parts/masks.h"

#include <string.h>

/* ---- parameters --------------------------------------------------------------------------- */

static void params(const struct sublayer *s, const char *prefix, const char *inner,
                   struct params *p)
{
    const struct config *const c = s->c;
    const struct latent *const l = latent_of(c);

    (void)inner;
    if (l->q_rank) {
        params_map(p, l->q_rank, c->D, prefix, "attn.q_a.weight");
        params_vector(p, INIT_ONE, 0, l->q_rank, prefix, "attn.q_norm.weight");
        params_map(p, c->H * c->dh, l->q_rank, prefix, "attn.q_b.weight");
    } else {
        params_map(p, c->H * c->dh, c->D, prefix, "attn.q.weight");
    }
    params_map(p, latent_width(c), c->D, prefix, "attn.kv_a.weight");
    params_vector(p, INIT_ONE, 0, l->rank, prefix, "attn.kv_norm.weight");
    const int up = params_matrix(p, c->H * latent_head(c), l->rank, prefix, "attn.kv_b.weight");
    if (latent_absorbs(c)) /* queries are multiplied by its transpose */
        params_wide(p, up);
    else
        params_narrows(p, up);
    params_residual(p, params_map(p, c->D, c->H * config_dv(c), prefix, "attn.o.weight"));
}

const struct param *latent_param(const struct sublayer *s, enum latent_param which)
{
    const bool compressed = latent_of(s->c)->q_rank != 0;

    CHECK(compressed || which >= MLA_Q_B);
    return s->weights + (int)which - (compressed ? 0 : MLA_Q_B);
}

/* ---- binding ------------------------------------------------------------------------------ */

static int keeps(const struct sublayer *s, enum mem_kind mem, int M)
{
    return mem == MEM_HIDDEN ? attention_kept(s, M) : -1;
}

static size_t caches(const struct sublayer *s, int M)
{
    return (size_t)attention_kept(s, M) * (size_t)latent_width(s->c);
}

/* The core of `c`, without operands. */
static struct attn core(const struct config *c, int B, int L, int M)
{
    const int width = latent_width(c), rank = latent_of(c)->rank, dv = config_dv(c);
    const ptrdiff_t K = (ptrdiff_t)M + L, q = (ptrdiff_t)c->H * c->dh, v = (ptrdiff_t)c->H * dv;
    struct attn a = attn_of_config(c, B, L, M);

    a.dv = dv;
    a.q_at = (struct stride){L * q, q};
    a.k_at = (struct stride){K * q, q};
    a.v_at = (struct stride){K * v, v};
    a.o_at = (struct stride){L * v, v};
    if (!latent_absorbs(c))
        return a;
    const ptrdiff_t wide_q = (ptrdiff_t)c->H * width, wide_o = (ptrdiff_t)c->H * rank;
    a.Hkv = 1;
    a.dh = width;
    a.dv = rank;
    a.q_at = (struct stride){L * wide_q, wide_q};
    a.k_at = a.v_at = (struct stride){K * width, width};
    a.o_at = (struct stride){L * wide_o, wide_o};
    return a;
}

static enum status bind(struct sublayer *s, const struct engine *g, struct extent max,
                        struct arena *a, struct err *e)
{
    const bool remembers = sublayer_remembers(s);
    struct attention *const t = &s->state.attention;
    const int M = attention_kept(s, max.M);

    *t = (struct attention){.reach = max.M + max.L};
    if (s->mem == MEM_KV)
        cache_bind(&t->keys, max.B, max.L, M, latent_width(s->c), a);
    t->prepared = core(s->c, max.B, max.L, remembers ? M : 0);
    t->prepared.window = config_window(s->c, s->layer);
    const struct masks masks = config_masks(s->c, s->layer);
    masks_reserve(&masks, max.L, a, &t->prepared);
    const struct attn asked = attention_for_impl(s);
    return engine_attn(g, &asked, &t->impl, e);
}

static void arrays(const struct sublayer *s, struct extent max, struct array out[SUB_ARRAYS])
{
    const struct config *const c = s->c;
    const struct latent *const l = latent_of(c);
    const bool kv = s->mem == MEM_KV, absorbs = latent_absorbs(c);
    const size_t rows = (size_t)max.B * (size_t)max.L, H = (size_t)c->H;
    const size_t all = (size_t)max.B * (size_t)(attention_kept(s, max.M) + max.L),
                 fresh = kv ? rows : all;
    const size_t dh = (size_t)c->dh, dv = (size_t)config_dv(c), rank = (size_t)l->rank;
    const size_t width = (size_t)latent_width(c), low = (size_t)l->q_rank;
    const size_t n[SUB_ARRAYS] = {
        [LA_Q_RAW] = rows * low,
        [LA_Q_LOW] = rows * low,
        [LA_Q] = rows * H * dh,
        [LA_RAW] = fresh * rank,
        [LA_LATENT] = kv ? 0 : all * width,
        [LA_UP] = absorbs ? 0 : all * H * (size_t)latent_head(c),
        [LA_K] = absorbs ? 0 : all * H * dh,
        [LA_V] = absorbs ? 0 : all * H * dv,
        [LA_WIDE_Q] = absorbs ? rows * H * width : 0,
        [LA_WIDE_O] = absorbs ? rows * H * rank : 0,
        [LA_O] = rows * H * dv,
    };

    for (int i = 0; i < SUB_ARRAYS; i++)
        out[i] = (struct array){n[i], n[i], i == LA_UP, PART_ACTIVATIONS};
    out[LA_LSE] = (struct array){0, rows * H, false, PART_ACTIVATIONS};
}

static void arrays_grad(const struct sublayer *s, struct extent max, struct array out[SUB_ARRAYS])
{
    sublayer_arrays_grad(s, max, out);
    if (latent_absorbs(s->c))
        out[LA_V].n_kept = out[LA_LATENT].n_kept;
}

static struct attn_need scratch(const struct sublayer *s, const struct engine *g, bool backward)
{
    const struct attn_impl *const impl = s->state.attention.impl;
    const struct attn asked = attention_for_impl(s);

    return backward ? impl->need_backward(&asked, g->threads) : impl->need(&asked, g->threads);
}

static void build_tables(const struct engine *g, struct sublayer *s, const float *pos_encoding)
{
    (void)g;
    s->state.attention.pos_encoding = pos_encoding;
}

/* ---- queries and latents ------------------------------------------------------------------ */

void latent_rotate(const struct engine *g, const struct sublayer *s, struct seq_rows x, int B,
                   int rows, int heads, int width, int64_t position, bool back)
{
    x.at += width - latent_of(s->c)->rope;
    attention_turn(g, s, x, B, rows, heads, width, position, back);
}

/* y = rms(x) (.) weight, x [rows,n] without gaps, rows of y so many floats apart. */
static void norm_rows(const struct engine *g, const struct sublayer *s, const struct param *weight,
                      float *y, ptrdiff_t step, const float *x, int rows)
{
    const int n = weight->shape[0];
    struct norm norm = {.kind = NORM_RMS,
                        .y = y,
                        .x = x,
                        .weight = weight->data,
                        .rows = rows,
                        .n = n,
                        .eps = s->c->head_eps,
                        .threads = g->threads};

    if (step == n) {
        g->ops.norm(&norm);
        return;
    }
    norm.rows = norm.threads = 1;
#pragma omp parallel for firstprivate(norm) num_threads(team_for(g->threads, (ptrdiff_t)rows *n))
    for (int i = 0; i < rows; i++) {
        norm.y = y + i * step;
        norm.x = x + (ptrdiff_t)i * n;
        g->ops.norm(&norm);
    }
}

/* y = x W^T for `out` rows of W from `first` on. */
static void product(const struct engine *g, const struct param *W, int first, int out,
                    struct latent_rows y, struct latent_rows x, int B, int rows)
{
    const struct param part = out == W->shape[0] ? *W : param_rows(W, first, out);

    if (x.batch == rows * x.row && y.batch == rows * y.row) {
        rows *= B;
        B = 1;
    }
    for (int b = 0; b < B; b++) {
        struct gemm p = linear_product(g, &part, y.at + b * y.batch, x.at + b * x.batch, rows);
        p.lda = x.row;
        p.ldc = y.row;
        g->ops.gemm(&p);
    }
}

/* Rotated queries of L rows of each sequence. */
static void make_queries(const struct engine *g, const struct sublayer *s, const struct work *w,
                         struct seq_rows x, int B, int L, int64_t position)
{
    const struct config *const c = s->c;
    const int low = latent_of(c)->q_rank;
    const struct seq_rows q = {w->array[LA_Q], (ptrdiff_t)L * c->H * c->dh};
    const struct seq_rows raw = {w->array[LA_Q_RAW], (ptrdiff_t)L * low},
                          normed = {w->array[LA_Q_LOW], (ptrdiff_t)L * low};

    if (low) {
        project_map(g, latent_param(s, MLA_Q_A), NULL, raw, x, B, L);
        norm_rows(g, s, latent_param(s, MLA_Q_NORM), normed.at, low, raw.at, B * L);
        x = normed;
    }
    project_map(g, latent_param(s, MLA_Q_B), NULL, q, x, B, L);
    latent_rotate(g, s, q, B, L, c->H, c->dh, position, false);
}

/* [c; k_r] of `rows` source rows that end at stream position `end`. */
static void make_latents(const struct engine *g, const struct sublayer *s, const struct work *w,
                         struct seq_rows to, struct sublayer_input from, int64_t end)
{
    const struct config *const c = s->c;
    const struct param *const W = latent_param(s, MLA_KV_A), *norm = latent_param(s, MLA_KV_NORM);
    const int rank = latent_of(c)->rank, width = latent_width(c), rows = from.M + from.L;
    const struct latent_rows x = {from.at.at, from.at.stride, c->D};
    const struct latent_rows raw = {w->array[LA_RAW], (ptrdiff_t)rows * rank, rank};
    const struct latent_rows rotated = {to.at + rank, to.stride, width};

    product(g, W, 0, rank, raw, x, from.B, rows);
    product(g, W, rank, width - rank, rotated, x, from.B, rows);
    for (int b = 0; b < from.B; b++)
        norm_rows(g, s, norm, to.at + b * to.stride, width, raw.at + b * raw.batch, rows);
    latent_rotate(g, s, to, from.B, rows, 1, width, end - rows, false);
}

/* Where the latents of so many source rows go. */
static struct seq_rows new_latents(struct sublayer *s, const struct work *w, int rows)
{
    if (s->mem == MEM_KV)
        return cache_new_rows(&s->state.attention.keys, rows);
    return (struct seq_rows){w->array[LA_LATENT], (ptrdiff_t)rows * latent_width(s->c)};
}

/* Those of memory and new rows. */
static struct latent_rows all_latents(const struct sublayer *s, const struct work *w, int K)
{
    const struct cache *const cache = &s->state.attention.keys;
    const int width = latent_width(s->c);

    if (s->mem != MEM_KV)
        return (struct latent_rows){w->array[LA_LATENT], (ptrdiff_t)K * width, width};
    return (struct latent_rows){cache_rows(cache, 0), cache_stride(cache), width};
}

/* ---- the two forms ------------------------------------------------------------------------ */

struct attn latent_operands(const struct sublayer *s, const struct work *w, int B, int L)
{
    const bool absorbs = latent_absorbs(s->c);
    const int M = attention_memory(s);
    const struct latent_rows rows = all_latents(s, w, M + L);
    struct attn a = core(s->c, B, L, M);

    a.window = s->state.attention.prepared.window;
    a.mask = s->state.attention.prepared.mask;
    a.mask_of_head = s->state.attention.prepared.mask_of_head;
    a.base = attention_base(s);
    masks_draw(&s->c->masks, s->nth, &a);
    a.q = w->array[absorbs ? LA_WIDE_Q : LA_Q];
    a.k = absorbs ? rows.at : w->array[LA_K];
    a.v = absorbs ? rows.at : w->array[LA_V];
    a.o = w->array[absorbs ? LA_WIDE_O : LA_O];
    a.lse = w->array[LA_LSE];
    if (absorbs)
        a.k_at.batch = a.v_at.batch = rows.batch;
    return a;
}

/* Keys and values of all heads from K latents of each sequence. */
static void expand(const struct engine *g, const struct sublayer *s, const struct work *w, int B,
                   int K)
{
    const struct config *const c = s->c;
    const struct param *const W = latent_param(s, MLA_KV_B);
    const size_t nope = (size_t)latent_of(c)->nope, rope = (size_t)latent_of(c)->rope;
    const size_t dv = (size_t)config_dv(c), dh = (size_t)c->dh, up = nope + dv;
    const int rank = latent_of(c)->rank, H = c->H, n = W->shape[0];
    const struct latent_rows from = all_latents(s, w, K);

    product(g, W, 0, n, (struct latent_rows){w->array[LA_UP], (ptrdiff_t)K * n, n}, from, B, K);
#pragma omp parallel for num_threads(team_for(g->threads, (ptrdiff_t)B *K *n))
    for (ptrdiff_t i = 0; i < (ptrdiff_t)B * K; i++) {
        const float *const rotated = from.at + i / K * from.batch + i % K * from.row + rank;
        const float *x = w->array[LA_UP] + i * n;
        float *k = w->array[LA_K] + i * H * c->dh, *v = w->array[LA_V] + i * H * config_dv(c);
        for (int h = 0; h < H; h++, x += up, k += dh, v += dv) {
            memcpy(k, x, nope * sizeof(float));
            memcpy(k + nope, rotated, rope * sizeof(float));
            memcpy(v, x + nope, dv * sizeof(float));
        }
    }
}

/* q~ of all heads. */
static void absorb_queries(const struct engine *g, const struct sublayer *s, const struct work *w,
                           int rows)
{
    const struct config *const c = s->c;
    const struct param *const W = latent_param(s, MLA_KV_B);
    const int nope = latent_of(c)->nope, rank = latent_of(c)->rank, width = latent_width(c);
    const size_t rope = (size_t)latent_of(c)->rope;
    const float *const q = w->array[LA_Q];
    float *const to = w->array[LA_WIDE_Q];

    for (int h = 0; h < c->H; h++)
        mm(g, NN, rows, rank, nope, 1, q + (ptrdiff_t)h * c->dh, (ptrdiff_t)c->H * c->dh,
           W->data + (ptrdiff_t)h * latent_head(c) * rank, rank, 0, to + (ptrdiff_t)h * width,
           (ptrdiff_t)c->H * width);
    for (ptrdiff_t i = 0; i < (ptrdiff_t)rows * c->H; i++)
        memcpy(to + i * width + rank, q + i * c->dh + nope, rope * sizeof(float));
}

/* o from o~. */
static void absorb_outputs(const struct engine *g, const struct sublayer *s, const struct work *w,
                           int rows)
{
    const struct config *const c = s->c;
    const struct param *const W = latent_param(s, MLA_KV_B);
    const int rank = latent_of(c)->rank, nope = latent_of(c)->nope, dv = config_dv(c);

    for (int h = 0; h < c->H; h++)
        mm(g, NT, rows, dv, rank, 1, w->array[LA_WIDE_O] + (ptrdiff_t)h * rank,
           (ptrdiff_t)c->H * rank, W->data + ((ptrdiff_t)h * latent_head(c) + nope) * rank, rank, 0,
           w->array[LA_O] + (ptrdiff_t)h * dv, (ptrdiff_t)c->H * dv);
}

static void forward(const struct engine *g, struct sublayer *s, struct work *w,
                    struct sublayer_input from, struct act epilogue)
{
    const struct config *const c = s->c;
    const int B = from.B, L = from.L, M = attention_memory(s);
    const int64_t end = attention_base(s) + M + L;
    const struct seq_rows fresh = {from.at.at + (ptrdiff_t)from.M * c->D, from.at.stride};

    make_queries(g, s, w, fresh, B, L, end - L);
    make_latents(g, s, w, new_latents(s, w, from.M + L), from, end);
    if (latent_absorbs(c))
        absorb_queries(g, s, w, B * L);
    else
        expand(g, s, w, B, M + L);
    const struct attn a = latent_operands(s, w, B, L);
    sublayer_attend(g, s, w, 0, 0, &a);
    if (latent_absorbs(c))
        absorb_outputs(g, s, w, B * L);
    linear_forward(g, latent_param(s, MLA_O), NULL, w->y, w->array[LA_O], B * L, epilogue);
}

/* ---- memory ------------------------------------------------------------------------------- */

static void remember(const struct engine *g, struct sublayer *s, struct work *w,
                     struct sublayer_input from)
{
    CHECK(s->mem == MEM_KV);
    make_latents(g, s, w, new_latents(s, w, from.L), from,
                 attention_base(s) + attention_memory(s) + from.L);
}

static bool shows(const struct sublayer *s, const struct work *w, struct extent now, int i,
                  struct shown *out)
{
    const size_t rows = (size_t)now.B * (size_t)(now.M + now.L);

    CHECK(s->mem != MEM_KV);
    out->name = "latent";
    out->n = rows * (size_t)latent_width(s->c);
    if (out->to)
        memcpy(out->to, w->array[LA_LATENT], out->n * sizeof(float));
    return i == 0;
}

/* ---- cost --------------------------------------------------------------------------------- */

double latent_maps_flop(const struct sublayer *s, double rows, double projected, double all)
{
    const struct config *const c = s->c;
    const struct latent *const l = latent_of(c);
    const double q = (double)c->H * c->dh, o = (double)c->H * config_dv(c), D = c->D;
    const double queries = l->q_rank ? (D + q) * l->q_rank : D * q;
    const double up = (double)l->rank * c->H * latent_head(c); /* W_uk and W_uv */

    return 2 * (rows * (queries + o * D) + projected * D * latent_width(c) +
                (latent_absorbs(c) ? rows : all) * up);
}

static double flop(const struct sublayer *s, int B, int L, int M)
{
    const double rows = (double)B * L, all = (double)B * (attention_kept(s, M) + L);
    const struct attn a = attention_for_flop(s, B, L, M);

    return attn_flop(&a) + latent_maps_flop(s, rows, s->mem == MEM_HIDDEN ? all : rows, all);
}

static struct sublayer_cost cost(const struct sublayer *s, int B, int L, int M)
{
    return (struct sublayer_cost){flop(s, B, L, M), latent_grad_flop(s, B, L, M), 0};
}

const struct sublayer_kind sublayer_latent = {
    .name = "latent",
    .memory = "mem",
    .mixes = true,
    .masked = true,
    .attends = true,
    .place = DROP_ATTENTION,
    .params = params,
    .keeps = keeps,
    .caches = caches,
    .bind = bind,
    .arrays = arrays,
    .arrays_grad = arrays_grad,
    .scratch = scratch,
    .build_tables = build_tables,
    .forward = forward,
    .backward = latent_backward,
    .remember = remember,
    .commit = attention_commit,
    .forget = attention_forget,
    .shows = shows,
    .ends_in = latent_operands,
    .cost = cost,
};
