/* SPDX-License-Identifier: MIT
 *
 * Attention by content as a kind of sub-layer. x are source rows, h a head:
 *
 *   q = W_q x, k = W_k x     or, with share_qk, k = q / |q|; then both are rotated
 *   o = the form's attention of q, k and v = W_v x
 *   y = W_o o
 *
 * Forms choose by rows as they are before the rotation. Remembered are hidden states (by the
 * wiring), or keys, values and the numbers that the form gives rows. */
#include "groups.h"
#include "variants/model/attention/sublayer_attention.h"
#include "variants/parts/linear.h"

/* ---- parameters --------------------------------------------------------------------------- */

static int n_weights(const struct config *c) { return c->share_qk ? 3 : 4; }

static void params(const struct sublayer *s, const char *prefix, const char *inner,
                   struct params *p)
{
    const struct config *const c = s->c;
    const int HD = c->H * c->dh;

    for (int bias = 0; bias <= (c->attn_bias != ATTN_UNBIASED); bias++)
        for (int i = CONTENT_Q; i <= CONTENT_O; i++) {
            const int out = i == CONTENT_O ? c->D : HD, in = i == CONTENT_O ? HD : c->D;
            if (i == CONTENT_K && c->share_qk)
                continue;
            if (bias)
                params_vector(p, INIT_ZERO, 0, out, prefix, project_names[i][1]);
            else
                params_map(p, out, in, prefix, project_names[i][0]);
        }
    if (content_of(s)->params)
        content_of(s)->params(s, prefix, p);
}

const struct param *content_weight(const struct sublayer *s, int which)
{
    CHECK(!s->c->share_qk || which != CONTENT_K);
    return s->weights + which - (s->c->share_qk && which > CONTENT_K);
}

const struct param *content_bias(const struct sublayer *s, int which)
{
    return s->c->attn_bias ? content_weight(s, which) + n_weights(s->c) : NULL;
}

const struct param *content_buffer(const struct sublayer *s, int i)
{
    return s->weights + n_weights(s->c) * (1 + s->c->attn_bias) + i;
}

static int numbers_of(const struct config *c)
{
    return c->mixer->content->numbers ? c->mixer->content->numbers(c) : 0;
}

static struct groups groups_of(const struct config *c)
{
    const struct content *const f = c->mixer->content;

    return f->groups ? f->groups(c) : (struct groups){0};
}

/* Are raw rows kept? */
static bool content_keeps_raw(const struct config *c) { return c->share_qk || numbers_of(c); }

/* ---- binding ------------------------------------------------------------------------------ */

static size_t caches(const struct sublayer *s, int M)
{
    const struct config *const c = s->c;

    return (size_t)M * (size_t)(2 * c->H * c->dh + c->H * numbers_of(c));
}

/* Shapes depend on what rows say: a library that generates a kernel for each is not asked. */
static enum status open_inner(struct engine *inner, const struct engine *g, struct arena *a,
                              struct err *e)
{
    *inner = *g;
    if (!g->backend->makes_kernels)
        return OK;
    TRY(engine_open(inner, backend_parent(g->backend)->name, g->threads, g->impl, e));
    engine_bind(inner, a);
    return OK;
}

static enum status bind(struct sublayer *s, const struct engine *g, struct extent max,
                        struct arena *a, struct err *e)
{
    const struct config *const c = s->c;
    struct attention *const t = &s->state.attention;
    const bool remembers = sublayer_remembers(s);

    if (remembers && (content_of(s)->no_memory || content_looks_ahead(c)))
        return fail(e, E_UNSUPPORTED,
                    "%s: its keys are those of one window  -> use --mem-kind recompute, or no past",
                    c->variant->name);
    *t = (struct attention){.reach = max.M + max.L, .workers = g->threads};
    const int width = c->H * c->dh;
    attention_caches_bind(s, max, max.M, (const int[]){width, width, c->H * numbers_of(c)}, a);
    t->largest = (struct extent){max.B, max.L, remembers ? max.M : 0};
    t->prepared = content_of(s)->core(s, t->largest);
    TRY(open_inner(&t->inner, g, a, e));
    return engine_attn(&t->inner, &t->prepared, &t->impl, e);
}

static void arrays(const struct sublayer *s, struct extent max, struct array out[SUB_ARRAYS])
{
    const struct config *const c = s->c;
    const bool kv = s->mem == MEM_KV, raw = content_keeps_raw(c);
    const size_t rows = (size_t)max.B * (size_t)max.L, HD = (size_t)c->H * (size_t)c->dh;
    const size_t all = (size_t)max.B * (size_t)(max.M + max.L), fresh = kv ? rows : all;
    const size_t n[SUB_ARRAYS] = {
        [CT_RAW_Q] = raw ? (c->share_qk ? fresh : rows) * HD : 0,
        [CT_RAW_K] = raw && !c->share_qk ? fresh * HD : 0,
        [CT_Q] = rows * HD,
        [CT_K] = kv ? 0 : all * HD,
        [CT_V] = kv ? 0 : all * HD,
        [CT_O] = rows * HD,
        [CT_NUMBERS] = kv ? 0 : all * (size_t)(c->H * numbers_of(c)),
        [CT_KEPT] = content_of(s)->kept ? content_of(s)->kept(s, max) : 0,
    };

    for (int i = 0; i < SUB_ARRAYS; i++)
        out[i] = (struct array){n[i], n[i], false, PART_ACTIVATIONS};
    out[CT_LSE] = (struct array){0, rows * (size_t)c->H, false, PART_ACTIVATIONS};
}

static void arrays_grad(const struct sublayer *s, struct extent max, struct array out[SUB_ARRAYS])
{
    sublayer_arrays_grad(s, max, out);
    out[CT_NUMBERS].n_kept = 0;
}

/* ---- work space --------------------------------------------------------------------------- */

/* Of a thread's core. The reference's implementation may run instead (content_core). */
static size_t core_bytes(const struct sublayer *s, bool backward)
{
    const struct attn *const a = &s->state.attention.prepared;
    const struct attn_impl *const impls[] = {s->state.attention.impl, backend_ref.attn[0]};
    size_t most = 0;

    for (size_t i = 0; i < ARRAY_LEN(impls); i++)
        for (int back = 0; back <= backward; back++) { /* it runs some of them forward again */
            const struct attn_need need =
                back ? impls[i]->need_backward(a, 1) : impls[i]->need(a, 1);
            const size_t bytes = need.scores_bytes + need.scratch_bytes;
            most = bytes > most ? bytes : most;
        }
    return round_up(most, ARENA_ALIGN);
}

static struct attn_need scratch(const struct sublayer *s, const struct engine *g, bool backward)
{
    const struct attention *const t = &s->state.attention;
    const struct groups groups = groups_of(s->c);
    const size_t own = groups.n ? groups_scratch(s, t->largest, groups.n, t->workers)
                       : content_of(s)->scratch ? content_of(s)->scratch(s, t->largest, t->workers)
                                                : 0;

    return (struct attn_need){.scratch_bytes = (size_t)t->workers * core_bytes(s, backward) + own};
}

int content_team(const struct content_call *n)
{
    return min_int(n->g->threads, n->s->state.attention.workers);
}

static void *core_scratch(const struct content_call *n, int worker)
{
    return (char *)n->scratch + (size_t)worker * core_bytes(n->s, n->grad);
}

void *content_own_scratch(const struct content_call *n)
{
    return core_scratch(n, n->s->state.attention.workers);
}

void *content_room(const struct content_call *n, size_t bytes)
{
    char *const all = content_own_scratch(n);

    CHECK(n->scratch);
    return all + (size_t)omp_get_thread_num() * bytes;
}

void *content_place(void *base, size_t *at, size_t n, size_t size)
{
    void *const here = base ? (char *)base + *at : NULL;

    *at += round_up(n * size, ARENA_ALIGN);
    return here;
}

void content_core(const struct content_call *n, const struct attn *a, const struct attn_grad *d)
{
    const bool on_ref = n->g->backend == &backend_ref;
    const struct attn_impl *const impl = on_ref ? backend_ref.attn[0] : n->s->state.attention.impl;
    struct engine one = on_ref ? *n->g : n->s->state.attention.inner;
    void *const scratch = core_scratch(n, omp_get_thread_num());

    one.room = engine_room_here(&one);
    one.threads = 1;
    one.wanted = NULL;
    if (d)
        impl->backward(&one, a, d, scratch);
    else
        impl->forward(&one, a, scratch);
}

void content_each_head(const struct content_call *n, content_head *run, const struct attn_grad *d)
{
#pragma omp parallel for schedule(static, 1) num_threads(content_team(n))
    for (int head = 0; head < n->a.B * n->a.H; head++)
        run(n, head, d);
}

void content_run(const struct content_call *n, const struct attn_grad *d)
{
    const struct content *const f = content_of(n->s);
    const struct groups groups = groups_of(n->s->c);

    if (groups.n)
        groups_run(n, &groups, d);
    else if (f->head)
        content_each_head(n, f->head, d);
    else
        f->run(n, d);
}

static void build_tables(const struct engine *g, struct sublayer *s, const float *pos_encoding)
{
    s->state.attention.pos_encoding = pos_encoding;
}

/* ---- operands ----------------------------------------------------------------------------- */

struct content_call content_call_of(const struct engine *g, const struct sublayer *s,
                                    const struct work *w, int B, int L)
{
    const struct config *const c = s->c;
    const struct attention *const t = &s->state.attention;
    const bool kv = s->mem == MEM_KV, raw = content_keeps_raw(c);
    const int M = attention_memory(s), K = M + L, projected = kv ? L : K;
    const ptrdiff_t HD = (ptrdiff_t)c->H * c->dh, nr = (ptrdiff_t)c->H * numbers_of(c);
    struct content_call n = {.g = g, .s = s, .first = K - projected, .kept = w->array[CT_KEPT]};

    n.a = attn_of_config(c, B, L, M);
    n.a.window = 0;
    n.a.q = w->array[CT_Q];
    n.a.k = kv ? cache_rows(&t->keys, 0) : w->array[CT_K];
    n.a.v = kv ? cache_rows(&t->values, 0) : w->array[CT_V];
    n.a.k_at.batch = n.a.v_at.batch = kv ? cache_stride(&t->keys) : K * HD;
    n.a.o = w->array[CT_O];
    n.a.lse = w->array[CT_LSE];
    n.a.base = attention_base(s);
    if (raw)
        n.raw_q = (struct head_rows){w->array[CT_RAW_Q], (c->share_qk ? projected : L) * HD, HD};
    if (raw)
        n.raw_k =
            c->share_qk ? n.raw_q : (struct head_rows){w->array[CT_RAW_K], projected * HD, HD};
    if (nr)
        n.numbers = kv ? (struct head_rows){cache_rows(&t->beside, 0), cache_stride(&t->beside), nr}
                       : (struct head_rows){w->array[CT_NUMBERS], K * nr, nr};
    return n;
}

static struct seq_rows new_rows(struct cache *cache, float *own, int rows, ptrdiff_t width, bool kv)
{
    if (!kv)
        return (struct seq_rows){own, rows * width};
    cache_reserve(cache, rows);
    return (struct seq_rows){cache_rows(cache, 0) + cache->M * width, cache_stride(cache)};
}

/* k = q / |q| of each head. */
static void unit_rows(const struct sublayer *s, struct seq_rows to, struct seq_rows from, int B,
                      int rows, int threads)
{
    const int H = s->c->H, dh = s->c->dh;

#pragma omp parallel for num_threads(team_for(threads, (ptrdiff_t)B *rows *H *dh))
    for (int x = 0; x < B * rows; x++)
        for (int h = 0; h < H; h++) {
            const ptrdiff_t at = ((ptrdiff_t)(x % rows) * H + h) * dh;
            const float *const q = from.at + x / rows * from.stride + at;
            float *const k = to.at + x / rows * to.stride + at;
            const double n2 = content_dot(q, q, dh);
            const float by = n2 > 0 ? (float)(1 / sqrt(n2)) : 0;
            for (int e = 0; e < dh; e++)
                k[e] = by * q[e];
        }
}

static void project(const struct engine *g, const struct sublayer *s, int which, struct seq_rows to,
                    struct sublayer_input from, int skip)
{
    const struct seq_rows x = {from.at.at + (ptrdiff_t)skip * s->c->D, from.at.stride};

    project_map(g, content_weight(s, which), content_bias(s, which), to, x, from.B,
                from.M + from.L - skip);
}

/* Keys, values and numbers of all rows of `from`, and queries of its last L, which may be 0. */
static void make_operands(const struct engine *g, struct sublayer *s, struct work *w,
                          struct sublayer_input from, int L)
{
    const struct config *const c = s->c;
    struct attention *const t = &s->state.attention;
    const bool kv = s->mem == MEM_KV, raw = content_keeps_raw(c);
    const int rows = from.M + from.L, B = from.B, M = attention_memory(s);
    const ptrdiff_t HD = (ptrdiff_t)c->H * c->dh;
    const int64_t end = attention_base(s) + M + from.L;
    const struct seq_rows k = new_rows(&t->keys, w->array[CT_K], rows, HD, kv);
    const struct seq_rows v = new_rows(&t->values, w->array[CT_V], rows, HD, kv);
    const struct seq_rows q = {w->array[CT_Q], L * HD};
    const struct seq_rows all = {w->array[CT_RAW_Q], rows * HD};

    if (kv && numbers_of(c))
        cache_reserve(&t->beside, rows);
    if (c->share_qk) {
        project(g, s, CONTENT_Q, all, from, 0);
        unit_rows(s, k, all, B, rows, g->threads);
        rows_copy(q, (struct seq_rows){all.at + (rows - L) * HD, all.stride}, B, (size_t)(L * HD));
    } else {
        project(g, s, CONTENT_K, k, from, 0);
        if (L)
            project(g, s, CONTENT_Q, q, from, rows - L);
        if (raw)
            rows_copy((struct seq_rows){w->array[CT_RAW_K], rows * HD}, k, B, (size_t)(rows * HD));
        if (raw)
            rows_copy((struct seq_rows){w->array[CT_RAW_Q], L * HD}, q, B, (size_t)(L * HD));
    }
    project(g, s, CONTENT_V, v, from, 0);
    if (numbers_of(c)) {
        const struct content_call n = content_call_of(g, s, w, B, from.L);
        content_of(s)->number(&n);
    }
    attention_rotate(g, s, k, B, rows, c->H, end - rows, false);
    if (L)
        attention_rotate(g, s, q, B, L, c->H, end - L, false);
}

/* The probabilities of the first sequence: each form is linear in values, so they are what comes of
 * values that are unit vectors, as many keys at a time as a head is wide. */
static void show(const struct content_call *of)
{
    struct content_call n = *of;
    const int H = n.a.H, L = n.a.L, K = attn_keys(&n.a), dv = attn_dv(&n.a);
    const size_t row = (size_t)H * (size_t)dv;
    float *const v = malloc(sizeof(*v) * row * (size_t)(K + L)), *const o = v + row * (size_t)K;
    double *const p = malloc(sizeof(*p) * (size_t)H * (size_t)L * (size_t)K);

    NEED(v && p);
    n.a.B = 1;
    n.a.v = v;
    n.a.o = o;
    for (int first = 0; first < K; first += dv) {
        memset(v, 0, sizeof(*v) * row * (size_t)(K + L));
        for (int h = 0; h < H; h++)
            for (int e = 0; e < dv && first + e < K; e++)
                v[(size_t)(first + e) * row + (size_t)(h * dv + e)] = 1;
        content_run(&n, NULL);
        for (int h = 0; h < H; h++)
            for (int i = 0; i < L; i++)
                for (int e = 0; e < dv && first + e < K; e++)
                    p[((ptrdiff_t)h * L + i) * K + first + e] =
                        (double)o[(size_t)i * row + (size_t)(h * dv + e)];
    }
    attn_seen(n.g, (struct attn_place){n.s->weights, n.s->kind, n.s->nth, n.s->layer, 0, 0, 1, p},
              &of->a);
    free(v);
    free(p);
}

static void forward(const struct engine *g, struct sublayer *s, struct work *w,
                    struct sublayer_input from, struct act epilogue)
{
    const int B = from.B, L = from.L;

    make_operands(g, s, w, from, L);
    struct content_call n = content_call_of(g, s, w, B, L);
    n.scratch = w->scratch;
    s->state.attention.last = (struct extent){B, L, n.a.M};
    content_run(&n, NULL);
    if (g->watch)
        show(&n);
    linear_forward(g, content_weight(s, CONTENT_O), content_bias(s, CONTENT_O), w->y,
                   w->array[CT_O], B * L, epilogue);
}

/* ---- memory ------------------------------------------------------------------------------- */

static void remember(const struct engine *g, struct sublayer *s, struct work *w,
                     struct sublayer_input from)
{
    CHECK(s->mem == MEM_KV);
    make_operands(g, s, w, from, from.L); /* the queries are not used: rows are few */
}

/* ---- what it shows, and costs ------------------------------------------------------------- */

static double aux(const struct sublayer *s, const struct work *w, int rows)
{
    const struct extent now = s->state.attention.last;

    CHECK(now.B * now.L == rows);
    if (!content_of(s)->aux)
        return 0;
    const struct content_call n = content_call_of(NULL, s, w, now.B, now.L);
    return content_of(s)->aux(&n);
}

static bool shows(const struct sublayer *s, const struct work *w, struct extent now, int i,
                  struct shown *out)
{
    const struct content_call n = content_call_of(NULL, s, w, now.B, now.L);

    CHECK(s->mem != MEM_KV);
    return content_of(s)->shows && content_of(s)->shows(&n, i, out);
}

double content_maps_flop(const struct sublayer *s, double rows, double projected)
{
    const struct config *const c = s->c;
    const double HD = (double)c->H * c->dh, q = c->share_qk ? 0 : rows;

    return 2 * HD * c->D * (rows + q + 2 * projected);
}

static double flop(const struct sublayer *s, int B, int L, int M)
{
    const double rows = (double)B * L, all = (double)B * (M + L);
    const double choice = content_of(s)->choice_flop ? content_of(s)->choice_flop(s, B, L, M) : 0;

    return content_of(s)->flop(s, B, L, M) + choice +
           content_maps_flop(s, rows, s->mem == MEM_HIDDEN ? all : rows);
}

double content_moved_rows(const struct config *c, int L, int M)
{
    const struct content *const f = c->mixer->content;
    const struct groups groups = groups_of(c);

    return groups.n        ? groups_moved(&groups, c->share_qk, L, M)
           : f->moved_rows ? f->moved_rows(c, L, M)
                           : 0;
}

double content_moves(const struct sublayer *s, int B, int L, int M)
{
    return 4.0 * B * s->c->H * s->c->dh * content_moved_rows(s->c, L, M);
}

bool content_gather(const struct engine *g, struct sublayer *s, struct work *w, int B, int L)
{
    struct content_call n = content_call_of(g, s, w, B, L);
    const struct groups groups = groups_of(s->c);

    n.scratch = w->scratch;
    if (groups.n)
        groups_gather(&n, &groups);
    return content_of(s)->groups != NULL;
}

static struct sublayer_cost cost(const struct sublayer *s, int B, int L, int M)
{
    return (struct sublayer_cost){flop(s, B, L, M), content_grad_flop(s, B, L, M), 0};
}

const struct sublayer_kind sublayer_content = {
    .name = "content",
    .memory = "mem",
    .mixes = true,
    .place = DROP_ATTENTION,
    .params = params,
    .keeps = sublayer_keeps_rows,
    .caches = caches,
    .bind = bind,
    .arrays = arrays,
    .arrays_grad = arrays_grad,
    .scratch = scratch,
    .build_tables = build_tables,
    .forward = forward,
    .backward = content_backward,
    .aux = aux,
    .remember = remember,
    .commit = attention_commit,
    .forget = attention_forget,
    .shows = shows,
    .cost = cost,
};
