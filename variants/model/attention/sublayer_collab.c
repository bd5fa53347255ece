/* SPDX-License-Identifier: MIT
 *
 * Collaborative heads as a kind of sub-layer (Cordonnier et al. 2020, arXiv:2006.16362). x are
 * source rows, h a head, e one of Dk coordinates that all heads share:
 *
 *   q     = W_q x_i
 *   k     = W_k x_j
 *   v_h   = W_v,h x_j
 *   s_hij = scale (sum_e q_e m_he k_e + c_h . x_j),  the last with content_bias
 *   y     = W_o concat softmax(s_h) v_h
 *
 * The core is called once for each sequence, whose heads are the sequences of that call: keys are
 * the same rows for all of them (a stride of 0), values are not. k, v and c . x are what MEM_KV
 * caches. It is no list of steps: those have no caches, and no core that the backend chooses. */
#include "sublayer_collab.h"
#include "variants/base/loops.h"
#include "variants/model/sublayer/sublayer_inner.h"
#include "variants/model/sublayer/sublayer_seen.h"
#include "variants/parts/linear.h"
#include "variants/parts/masks.h"

/* ---- parameters --------------------------------------------------------------------------- */

static void params(const struct sublayer *s, const char *prefix, const char *inner,
                   struct params *p)
{
    static const char *const names[][2] = {{"attn.q.weight", "attn.q.bias"},
                                           {"attn.k.weight", "attn.k.bias"},
                                           {"attn.v.weight", "attn.v.bias"},
                                           {"attn.o.weight", "attn.o.bias"}};
    const struct config *const c = s->c;
    const int dk = collab_of(c)->dk, V = c->H * config_dv(c);
    const int rows[] = {dk, dk, V, c->D}, columns[] = {c->D, c->D, c->D, V};

    (void)inner;
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        params_map(p, rows[i], columns[i], prefix, names[i][0]);
    params_residual(p, p->n - 1);
    params_add(p, INIT_NORMAL, 0.2f, 2, (const int[]){c->H, dk}, "%sattn.mix", prefix);
    if (collab_of(c)->content_bias)
        params_add(p, INIT_ZERO, 0, 2, (const int[]){c->H, c->D}, "%sattn.content_bias.weight",
                   prefix);
    for (size_t i = 0; i < ARRAY_LEN(names) && c->attn_bias; i++)
        params_vector(p, INIT_ZERO, 0, rows[i], prefix, names[i][1]);
}

const struct param *collab_param(const struct sublayer *s, enum collab_param which)
{
    CHECK(which < CO_W_CONTENT || collab_of(s->c)->content_bias);
    return s->weights + which;
}

const struct param *collab_bias(const struct sublayer *s, enum collab_param which)
{
    CHECK(which <= CO_W_O);
    return s->c->attn_bias ? s->weights + CO_W_CONTENT + collab_of(s->c)->content_bias + which
                           : NULL;
}

/* ---- binding ------------------------------------------------------------------------------ */

static int keeps(const struct sublayer *s, enum mem_kind mem, int M)
{
    return mem == MEM_HIDDEN ? attention_kept(s, M) : -1;
}

static size_t caches(const struct sublayer *s, int M)
{
    const struct config *const c = s->c;
    const int bias = collab_of(c)->content_bias ? c->H : 0;

    return (size_t)attention_kept(s, M) * (size_t)(collab_of(c)->dk + c->H * config_dv(c) + bias);
}

/* The core of one sequence without operands. */
static struct attn core(const struct config *c, int L, int M)
{
    const ptrdiff_t H = c->H, dk = collab_of(c)->dk, dv = config_dv(c), K = (ptrdiff_t)M + L;
    struct attn a = attn_of_config(c, c->H, L, M);

    a.H = a.Hkv = 1;
    a.dh = (int)dk;
    a.dv = (int)dv;
    a.q_at = (struct stride){dk, H * dk};
    a.k_at = (struct stride){0, dk};
    a.v_at = a.o_at = (struct stride){dv, H * dv};
    if (collab_of(c)->content_bias)
        a.add = (struct dense){.batch = K};
    return a;
}

/* An attention with which to select an implementation, and to count FLOP. */
static struct attn asked(const struct sublayer *s, struct attn a)
{
    static const float something = 0;

    if (collab_of(s->c)->content_bias)
        a.add.at = &something;
    return a;
}

static enum status bind(struct sublayer *s, const struct engine *g, struct extent max,
                        struct arena *a, struct err *e)
{
    const struct config *const c = s->c;
    const bool remembers = sublayer_remembers(s);
    struct attention *const t = &s->state.attention;
    const int M = attention_kept(s, max.M);

    *t = (struct attention){.reach = max.M + max.L};
    const int width[] = {collab_of(c)->dk, c->H * config_dv(c), collab_of(c)->content_bias * c->H};
    attention_caches_bind(s, max, M, width, a);
    t->prepared = core(c, max.L, remembers ? M : 0);
    t->prepared.window = config_window(c, s->layer);
    const struct masks masks = config_masks(c, s->layer);
    masks_reserve(&masks, max.L, a, &t->prepared);
    const struct attn one = asked(s, attention_for_impl(s));
    return engine_attn(g, &one, &t->impl, e);
}

static void arrays(const struct sublayer *s, struct extent max, struct array out[SUB_ARRAYS])
{
    const struct config *const c = s->c;
    const bool kv = s->mem == MEM_KV;
    const size_t rows = (size_t)max.B * (size_t)max.L, H = (size_t)c->H;
    const size_t all = (size_t)max.B * (size_t)(attention_kept(s, max.M) + max.L),
                 dk = (size_t)collab_of(c)->dk;
    const size_t V = H * (size_t)config_dv(c), content = collab_of(c)->content_bias ? H : 0;
    const size_t n[SUB_ARRAYS] = {
        [CO_Q_LOW] = rows * dk,
        [CO_Q] = rows * H * dk,
        [CO_K] = kv ? 0 : all * dk,
        [CO_V] = kv ? 0 : all * V,
        [CO_CONTENT] = kv ? 0 : all * content,
        [CO_ADD] = all * content,
        [CO_O] = rows * V,
    };

    for (int i = 0; i < SUB_ARRAYS; i++)
        out[i] = (struct array){n[i], n[i], false, PART_ACTIVATIONS};
    out[CO_LSE] = (struct array){0, rows * H, false, PART_ACTIVATIONS};
}

static void arrays_grad(const struct sublayer *s, struct extent max, struct array out[SUB_ARRAYS])
{
    const size_t rows = (size_t)attention_kept(s, max.M) + (size_t)max.L;
    const size_t keys = rows * (size_t)s->c->H * (size_t)collab_of(s->c)->dk;

    sublayer_arrays_grad(s, max, out);
    out[CO_KEYS] = out[CO_KEYS_GRAD] = (struct array){0, keys, true, PART_ACTIVATIONS};
}

static struct attn_need scratch(const struct sublayer *s, const struct engine *g, bool backward)
{
    const struct attn_impl *const impl = s->state.attention.impl;
    const struct attn one = asked(s, attention_for_impl(s));

    return backward ? impl->need_backward(&one, g->threads) : impl->need(&one, g->threads);
}

/* ---- forward ------------------------------------------------------------------------------ */

/* Where new rows of width n go: into the cache, or the array. */
static struct seq_rows new_rows(const struct sublayer *s, struct cache *cache, float *array,
                                int rows, int n)
{
    if (s->mem == MEM_KV)
        return cache_new_rows(cache, rows);
    return (struct seq_rows){array, (ptrdiff_t)rows * n};
}

/* Those of memory and new rows. */
static struct seq_rows all_rows(const struct sublayer *s, const struct cache *cache, float *array,
                                int K, int n)
{
    if (s->mem != MEM_KV)
        return (struct seq_rows){array, (ptrdiff_t)K * n};
    return (struct seq_rows){cache_rows(cache, 0), cache_stride(cache)};
}

static void project_kv(const struct engine *g, struct sublayer *s, const struct work *w,
                       struct sublayer_input from)
{
    const struct config *const c = s->c;
    struct attention *const t = &s->state.attention;
    const int rows = from.M + from.L, dk = collab_of(c)->dk;

    project_map(g, collab_param(s, CO_W_K), collab_bias(s, CO_W_K),
                new_rows(s, &t->keys, w->array[CO_K], rows, dk), from.at, from.B, rows);
    project_map(g, collab_param(s, CO_W_V), collab_bias(s, CO_W_V),
                new_rows(s, &t->values, w->array[CO_V], rows, c->H * config_dv(c)), from.at, from.B,
                rows);
    if (collab_of(c)->content_bias)
        project_map(g, collab_param(s, CO_W_CONTENT), NULL,
                    new_rows(s, &t->beside, w->array[CO_CONTENT], rows, c->H), from.at, from.B,
                    rows);
}

/* The queries of every head, from `rows` shared ones. */
static void weigh_queries(const struct engine *g, const struct sublayer *s, const struct work *w,
                          int rows)
{
    const ptrdiff_t H = s->c->H, dk = collab_of(s->c)->dk;
    const float *const mix = collab_param(s, CO_W_MIX)->data;

#pragma omp parallel for num_threads(team_for(g->threads, (ptrdiff_t)rows *H *dk))
    for (ptrdiff_t i = 0; i < rows * H; i++)
        for (ptrdiff_t e = 0; e < dk; e++)
            w->array[CO_Q][i * dk + e] = w->array[CO_Q_LOW][i / H * dk + e] * mix[i % H * dk + e];
}

/* scale c_h . x_j as the core adds it, [B,H,K]. */
static void add_content(const struct sublayer *s, const struct work *w, int B, int K)
{
    const ptrdiff_t H = s->c->H;
    const struct seq_rows from =
        all_rows(s, &s->state.attention.beside, w->array[CO_CONTENT], K, s->c->H);

    for (ptrdiff_t i = 0; collab_of(s->c)->content_bias && i < (ptrdiff_t)B * K * H; i++) {
        const ptrdiff_t h = i % H, j = i / H % K, b = i / H / K;
        w->array[CO_ADD][(b * H + h) * K + j] = s->c->scale * from.at[b * from.stride + j * H + h];
    }
}

struct attn collab_core(const struct sublayer *s, const struct work *w, int L, int b)
{
    const struct config *const c = s->c;
    const struct attention *const t = &s->state.attention;
    const int M = attention_memory(s), K = M + L, dk = collab_of(c)->dk, V = c->H * config_dv(c);
    const struct seq_rows k = all_rows(s, &t->keys, w->array[CO_K], K, dk);
    const struct seq_rows v = all_rows(s, &t->values, w->array[CO_V], K, V);
    struct attn a = core(c, L, M);

    a.window = t->prepared.window;
    a.mask = t->prepared.mask;
    a.base = attention_base(s);
    masks_draw(&c->masks, s->nth, &a);
    a.q = w->array[CO_Q] + (ptrdiff_t)b * L * c->H * dk;
    a.k = k.at + b * k.stride;
    a.v = v.at + b * v.stride;
    a.o = w->array[CO_O] + (ptrdiff_t)b * L * V;
    a.lse = w->array[CO_LSE] ? w->array[CO_LSE] + (ptrdiff_t)b * c->H * L : NULL;
    if (collab_of(c)->content_bias)
        a.add.at = w->array[CO_ADD] + (ptrdiff_t)b * c->H * K;
    return a;
}

/* One sequence whose heads are heads: they share keys; values are one row of all heads. */
static void show(const struct engine *g, const struct sublayer *s, const struct attn *of)
{
    struct attn a = *of;

    a.H = of->B;
    a.B = 1;
    a.dv = of->B * attn_dv(of);
    a.add.head = of->add.batch;
    sublayer_seen(g, s, 0, 0, &a);
}

static void forward(const struct engine *g, struct sublayer *s, struct work *w,
                    struct sublayer_input from, struct act epilogue)
{
    const struct config *const c = s->c;
    const int B = from.B, L = from.L, K = attention_memory(s) + L, dk = collab_of(c)->dk;
    const struct seq_rows fresh = {from.at.at + (ptrdiff_t)from.M * c->D, from.at.stride};

    project_map(g, collab_param(s, CO_W_Q), collab_bias(s, CO_W_Q),
                (struct seq_rows){w->array[CO_Q_LOW], (ptrdiff_t)L * dk}, fresh, B, L);
    weigh_queries(g, s, w, B * L);
    project_kv(g, s, w, from);
    add_content(s, w, B, K);
    for (int b = 0; b < B; b++) {
        const struct attn a = collab_core(s, w, L, b);
        if (b == 0)
            show(g, s, &a);
        s->state.attention.impl->forward(g, &a, w->scratch);
    }
    linear_forward(g, collab_param(s, CO_W_O), collab_bias(s, CO_W_O), w->y, w->array[CO_O], B * L,
                   epilogue);
}

/* ---- memory ------------------------------------------------------------------------------- */

static void remember(const struct engine *g, struct sublayer *s, struct work *w,
                     struct sublayer_input from)
{
    CHECK(s->mem == MEM_KV);
    project_kv(g, s, w, from);
}

/* ---- cost --------------------------------------------------------------------------------- */

/* FLOP of the maps of `rows` new rows and `projected` rows of keys and values. */
static double collab_maps_flop(const struct config *c, double rows, double projected)
{
    const double dk = collab_of(c)->dk, V = (double)c->H * config_dv(c), D = c->D;
    const double content = collab_of(c)->content_bias ? c->H : 0;

    return 2 * (rows * D * (dk + V) + projected * D * (dk + V + content));
}

static double flop(const struct sublayer *s, int B, int L, int M)
{
    const struct attn a = asked(s, attention_for_flop(s, s->c->H, L, M));
    const double rows = (double)B * L, all = (double)B * (attention_kept(s, M) + L);

    return B * attn_flop(&a) + collab_maps_flop(s->c, rows, s->mem == MEM_HIDDEN ? all : rows);
}

static double collab_grad_flop(const struct sublayer *s, int B, int L, int M)
{
    const struct attn a = asked(s, attention_for_flop(s, s->c->H, L, M));
    const double rows = (double)B * L, all = (double)B * (attention_kept(s, M) + L);
    const double projected = s->mem == MEM_HIDDEN ? all : rows;
    /* Memory is a constant unless a norm with weights is applied to it. */
    const double reached = wiring_norms_first(s->wiring) ? projected : rows;

    return B * attn_grad_flop(&a) + collab_maps_flop(s->c, rows, projected) +
           collab_maps_flop(s->c, rows, reached); /* dW and dX */
}

static struct sublayer_cost cost(const struct sublayer *s, int B, int L, int M)
{
    return (struct sublayer_cost){flop(s, B, L, M), collab_grad_flop(s, B, L, M), 0};
}

const struct sublayer_kind sublayer_collab = {
    .name = "collaborative",
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
    .forward = forward,
    .backward = collab_backward,
    .remember = remember,
    .commit = attention_commit,
    .forget = attention_forget,
    .cost = cost,
};
