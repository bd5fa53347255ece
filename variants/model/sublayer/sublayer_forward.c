/* SPDX-License-Identifier: MIT
 *
 * One sub-layer, forward: f of its kind, wired into the stream x in one of these ways; m is the
 * memory of earlier x, N a norm, g a gate, h 1 or, for the halves of Macaron, 1/2:
 *
 *   post     z = N(x + h f([m; x]))
 *   pre      z = x + h f(N([m; x]))
 *   reorder  z = g(x, relu(f(N([m; x]))))
 *   rezero   z = x + alpha f([m; x])
 *   peri     z = x + N'(f(N([m; x])))   (Gemma 2, arXiv:2408.00118; the name: Kim et al. 2025,
 *            arXiv:2502.02732)
 *   res_post z = x + N(f([m; x]))   (Liu et al. 2022, arXiv:2111.09883; OLMo 2, arXiv:2501.00656)
 *   admin    z = N(omega x + f([m; x])), omega [D] (Liu et al. 2020, arXiv:2004.08249; admin.h)
 *   parallel z = x + f(N([m; r])), r what entered the layer, for all of its sub-layers (GPT-J,
 *            Wang and Komatsuzaki 2021; GPT-NeoX, Black et al. 2022, arXiv:2204.06745) */
#include "sublayer_compress.h"
#include "sublayer_inner.h"
#include "sublayer_skip.h"

const char *const mem_kind_name[MEM_KIND_COUNT + 1] = {"",          "hidden", "kv",
                                                       "recompute", "state",  NULL};

bool mem_can(const struct mem *m, enum mem_kind kind)
{
    switch (kind) {
    case MEM_HIDDEN:
        return m->recurrent;
    case MEM_KV:
        return (m->recurrent && !m->compressed) || m->cached;
    case MEM_RECOMPUTE:
        return !m->recurrent;
    case MEM_STATE:
        return m->state && !m->recurrent;
    default:
        return false;
    }
}

bool mem_reruns(const struct mem *m, enum mem_kind kind, int M)
{
    return kind == MEM_RECOMPUTE || (kind == MEM_STATE && m->sums && M != MEM_ALL);
}

enum mem_kind mem_usual(const struct mem *m, bool trains)
{
    if (!trains && mem_can(m, MEM_KV))
        return MEM_KV;
    return m->recurrent ? MEM_HIDDEN : m->state ? MEM_STATE : MEM_RECOMPUTE;
}

enum mem_kind mem_slides(const struct mem *m) { return mem_usual(m, m->cached); }

/* ---- binding and memory ------------------------------------------------------------------- */

enum status kv_unsupported(const struct config *c, struct err *e)
{
    return fail(e, E_UNSUPPORTED,
                "unsupported: what %s caches is not read as %s  -> use --kv-dtype f32",
                c->variant->name, elem_name[c->kv_dtype]);
}

enum status sublayer_bind(struct sublayer *s, const struct engine *g, const struct params *p,
                          int at_model, enum mem_kind mem, struct extent max, struct arena *a,
                          struct err *e)
{
    const int rows = s->kind->keeps ? s->kind->keeps(s, mem, max.M) : -1;

    if (mem == MEM_KV && s->c->kv_dtype != ELEM_F32 && s->kind->caches && !s->kind->positions)
        return kv_unsupported(s->c, e);
    s->model = &p->v[at_model];
    for (enum own_group k = 0; k < OWN_GROUPS; k++)
        s->group[k] = s->at[k] < 0 ? NULL : p->v + s->at[k];
    s->mem = mem;
    s->keeps = rows >= 0;
    s->memory = (struct cache){0};
    if (s->keeps)
        cache_bind(&s->memory, max.B, max.L, rows, s->c->D, a);
    s->n_left = 0;
    s->left = s->keeps && s->c->recur == RECUR_SAME && s->kind->positions
                  ? arena_f32(a, PART_ACTIVATIONS, (size_t)max.B * (size_t)max.L * (size_t)s->c->D)
                  : NULL;
    compressed_bind(s, max, a);
    return s->kind->bind ? s->kind->bind(s, g, max, a, e) : OK;
}

void rows_copy(struct seq_rows to, struct seq_rows from, int B, size_t floats)
{
    for (int b = 0; b < B; b++)
        memcpy(to.at + b * to.stride, from.at + b * from.stride, floats * sizeof(float));
}

/* Copy x after the remembered rows. */
static void join(const struct engine *g, struct sublayer *s, const float *x, int B, int L)
{
    struct cache *const cache = &s->memory;
    const ptrdiff_t n = (ptrdiff_t)L * cache->n;

    rows_copy(cache_new_rows(cache, L), (struct seq_rows){(float *)x, n}, B, (size_t)n);
    if (compresses(s))
        compressed_prepare(g, s, B, L);
}

void sublayer_remember(const struct engine *g, struct sublayer *s, struct work *w, const float *x,
                       int B, int rows)
{
    if (s->kind->take)
        s->kind->take(g, s, x, B, rows);
    else if (s->kind->remember && (!s->keeps || s->mem == MEM_KV))
        s->kind->remember(g, s, w, sublayer_source(g, s, w, x, B, rows));
    else if (s->keeps)
        join(g, s, x, B, rows);
    s->n_left = 0;
    sublayer_commit(s, rows);
}

/* The rows that entered are still needed by backward, those projected from them no more. */
void sublayer_left(const struct engine *g, struct sublayer *s, struct work *w, const float *x,
                   int B, int L)
{
    if (s->left)
        memcpy(s->left, x, sizeof(float) * (size_t)(B * L) * (size_t)s->c->D);
    else if (s->mem == MEM_KV)
        s->kind->remember(g, s, w, sublayer_source(g, s, w, x, B, L));
    s->n_left = s->left ? L : 0;
}

void sublayer_commit(struct sublayer *s, int L)
{
    struct cache *const m = &s->memory;
    const ptrdiff_t n = (ptrdiff_t)L * m->n;

    CHECK(!s->n_left || s->n_left == L);
    if (s->n_left) /* write over the rows that entered */
        rows_copy(cache_from(m, m->M), (struct seq_rows){s->left, n}, m->B, (size_t)n);
    if (compresses(s))
        compressed_commit(s, L);
    else if (s->keeps)
        cache_commit(&s->memory, L);
    if (s->kind->commit)
        s->kind->commit(s, L);
}

void sublayer_forget(struct sublayer *s)
{
    cache_clear(&s->memory);
    if (s->kind->forget)
        s->kind->forget(s);
}

/* ---- source rows -------------------------------------------------------------------------- */

struct sublayer_input sublayer_entered(const struct sublayer *s, const float *x, int B, int L)
{
    struct sublayer_input from = {{(float *)x, (ptrdiff_t)L * s->c->D}, B, 0, L};

    if (s->keeps) {
        from.at = cache_from(&s->memory, 0);
        from.M = s->memory.M;
    }
    return from;
}

static struct sublayer_input normed(const struct sublayer *s, const struct work *w,
                                    struct sublayer_input from)
{
    from.at = (struct seq_rows){w->n, (ptrdiff_t)(from.M + from.L) * s->c->D};
    return from;
}

struct sublayer_input sublayer_source(const struct engine *g, struct sublayer *s, struct work *w,
                                      const float *x, int B, int L)
{
    if (s->keeps)
        join(g, s, x, B, L);
    const struct sublayer_input from = sublayer_entered(s, x, B, L);
    if (!wiring_norms_first(s->wiring))
        return from;
    const struct sublayer_input n = normed(s, w, from);
    const int at_once = s->kind->keeps ? 1 : B; /* sequences with contiguous rows */
    for (int b = 0; b < B; b += at_once)
        norm_apply(g, s->c, s->norm, n.at.at + b * n.at.stride, from.at.at + b * from.at.stride,
                   NULL, at_once * (from.M + L));
    return n;
}

struct sublayer_input sublayer_source_again(const struct sublayer *s, const struct work *w, int B,
                                            int L)
{
    const struct sublayer_input from = sublayer_entered(s, sublayer_reads(w), B, L);

    return wiring_norms_first(s->wiring) ? normed(s, w, from) : from;
}

/* ---- forward ------------------------------------------------------------------------------ */

bool sublayer_adds_plainly(const struct sublayer *s)
{
    return !s->alpha && !s->omega && !s->skip && !s->norm_out && s->scale == 1;
}

float sublayer_factor(const struct sublayer *s) { return s->alpha ? s->alpha->data[0] : s->scale; }

/* The epilogue of f's last product: the residual sum, unless something comes between. */
static struct act epilogue(const struct sublayer *s, const struct work *w, float *to,
                           const float *x)
{
    if (s->wiring == WIRING_REORDER)
        return (struct act){.kind = ACT_RELU, .y = w->y};
    if (w->drop.p > 0 || !sublayer_adds_plainly(s))
        return (struct act){.y = w->y};
    return (struct act){.y = to, .add = x};
}

/* z = x + factor * y */
static void add_scaled(float *z, const float *x, const float *y, float factor, size_t n,
                       int threads)
{
#pragma omp parallel for simd num_threads(team_for(threads, n))
    for (size_t i = 0; i < n; i++)
        z[i] = x[i] + factor * y[i];
}

/* z = omega x + y, by rows; z may be x. */
static void add_to_weighted(const struct sublayer *s, float *z, const float *x, const float *y,
                            int rows, int threads)
{
    const ptrdiff_t D = s->c->D;
    const float *const omega = s->omega->data;

#pragma omp parallel for num_threads(team_for(threads, (size_t)rows *(size_t)D))
    for (ptrdiff_t i = 0; i < rows; i++)
        for (ptrdiff_t e = 0; e < D; e++)
            z[i * D + e] = omega[e] * x[i * D + e] + y[i * D + e];
}

/* Of n numbers, in an order that does not depend on the number of threads. */
static struct moments moments_of(const float *x, size_t n)
{
    struct moments m = {0, 0};

    for (size_t i = 0; i < n; i++) {
        m.mean += (double)x[i];
        m.square += (double)x[i] * (double)x[i];
    }
    return (struct moments){m.mean / (double)n, m.square / (double)n};
}

/* z = x + N(y); z may be x. Backward reads y where z is not x. */
static void add_normed(const struct engine *g, const struct sublayer *s, float *z, const float *x,
                       float *y, int rows)
{
    float *const normed = z == x ? y : z;

    norm_apply(g, s->c, s->norm_out, normed, y, NULL, rows);
    g->ops.act(&(struct act){
        .y = z, .x = normed, .add = x, .rows = rows, .n = s->c->D, .threads = g->threads});
}

/* The part of the wiring that the epilogue could not include. */
static void join_stream(const struct engine *g, struct sublayer *s, struct work *w, float *z,
                        float *to, const float *x, int rows)
{
    const size_t n = (size_t)rows * (size_t)s->c->D;

    if (s->profiled)
        s->of_f = moments_of(w->y, n);
    dropout(&w->drop, s->kind->place, w->y, n, g->threads);
    if (s->wiring == WIRING_REORDER)
        s->c->gate->forward(g, s->c, s->gate, z, x, w->y, rows, w->gate);
    else if (s->skip)
        skip_add(g, s, w, to, x, rows);
    else if (s->norm_out)
        add_normed(g, s, to, x, w->y, rows);
    else if (s->omega)
        add_to_weighted(s, to, x, w->y, rows, g->threads);
    else if (!sublayer_adds_plainly(s))
        add_scaled(to, x, w->y, sublayer_factor(s), n, g->threads);
    else if (w->drop.p > 0)
        g->ops.act(&(struct act){
            .y = to, .x = x, .add = w->y, .rows = rows, .n = s->c->D, .threads = g->threads});
}

/* What the position scheme adds to the stream before attention. */
static void add_positions(const struct sublayer *s, float *x, int B, int L)
{
    if (!s->kind->positions || !s->c->pos->enter)
        return;
    CHECK(s->mem != MEM_HIDDEN); /* memory would need rows without the added positions */
    const int64_t first = s->mem == MEM_KV ? s->state.attention.values.seen : 0;
    s->c->pos->enter(s->c, s->state.attention.pos, first, x, B, L);
}

void sublayer_forward(const struct engine *g, struct sublayer *s, struct work *w, float *z,
                      float *x, int B, int L)
{
    const bool after = wiring_norms_after(s->wiring);
    float *const to = after && w->sum ? w->sum : z;

    add_positions(s, x, B, L);
    const struct sublayer_input from = sublayer_source(g, s, w, w->reads ? w->reads : x, B, L);
    const int rows = B * (s->pools ? pool_groups(s->c, L, 1) : L);
    if (s->pools)
        x = pool_rows(s, w, x, B, L);
    s->kind->forward(g, s, w, from, epilogue(s, w, to, x));
    join_stream(g, s, w, z, to, x, rows);
    if (after)
        norm_apply(g, s->c, s->norm, z, to, NULL, rows);
}

/* ---- cost --------------------------------------------------------------------------------- */

double sublayer_flop(const struct sublayer *s, int B, int L, int M)
{
    const struct sublayer_cost n = s->kind->cost(s, B, L, M);
    const double rows = (double)B * L;
    const double gate = s->gate ? 2.0 * s->c->gate->n_matrices * rows * s->c->D * s->c->D : 0;

    return skip_flop(s, n.forward + n.maps, rows) + gate + compressed_flop(s, B, L);
}
