/* SPDX-License-Identifier: MIT
 *
 * BP-Transformer: Ye et al. 2019, "BP-Transformer: Modelling Long-Range Context via Binary
 * Partitioning".
 *
 * Keys are tokens and, on level l, means of 2^l aligned tokens. A query sees its k newest tokens,
 * behind them k nodes of two tokens, then k of four, and so on, one more of a level where the rest
 * would be odd: every token before it is in exactly one visible node, and there are about
 * (k + 1/2) log2(i / k) of them. A node's key and value are means of its tokens' keys and values;
 * the published nodes have states of their own from layer to layer.
 *
 * A query sees one range of each level, which no kernel has as data: it runs in a plain loop. Where
 * the oldest token is dropped, every node begins one token later. MEM_KV therefore caches for each
 * level the means of the 2^l tokens that end with each token: a new token adds one row to each level,
 * and nodes are every 2^l-th of these rows, wherever the first token lies. A level keeps the rows that
 * queries can still see: the nodes of level l are at most (k+1) (2^(l+1) - 1) tokens long, together
 * with those of the levels below. */
#include "variants/model/condensed/ranges.h"
#include "variants/model/sublayer/sublayer_project.h"

struct numbers {
    int tree; /* nodes of a level that a query sees, one more if the rest is odd */
};

static const struct choice choices[] = {
    ROW_INT(struct numbers, tree, "tree", 1, 1 << 16, "nodes of each level that a query sees",
            .scope = SCOPE_LAYER, .setting = true, .tiny = "1|2"),
    {0},
};

static const struct part_numbers tree_numbers = {choices, PRESET(struct numbers, .tree = 8)};

static int newest(const struct config *c)
{
    const struct numbers *const n = config_numbers(c, SLOT_MIXER);

    return n->tree;
}

/* Arrays: queries, keys and values of all rows unless they are cached, outputs, log-sum-exps; nodes
 * above level 0, levels one after the other. Those of gradients have the same shapes. */
enum { TR_Q, TR_K, TR_V, TR_O, TR_LSE, TR_ABOVE_K, TR_ABOVE_V };

static void params(const struct sublayer *s, const char *prefix, const char *inner,
                   struct params *p)
{
    project_params(s, s->c->D, s->c->D, prefix, p);
}

/* ---- the pyramid -------------------------------------------------------------------------- */

/* Nodes of all levels above 0 of so many rows. */
static int nodes_above(int rows)
{
    int n = 0;

    while ((rows /= 2) > 0)
        n += rows;
    return n;
}

/* Level 0 is `rows`; the others follow each other from `above` on, with room for `most` rows. */
static struct range_rows pyramid_of(struct seq_rows rows, float *above, int n, int most, int width)
{
    struct range_rows p = {.list = {rows.at}, .stride = {rows.stride}, .rows = {n}, .lists = 1};
    const ptrdiff_t stride = (ptrdiff_t)nodes_above(most) * width;

    for (int l = 1; n >> l > 0; l++) {
        CHECK(l < RANGE_LISTS);
        p.list[l] = above;
        p.stride[l] = stride;
        p.rows[l] = n >> l;
        p.lists++;
        above += (ptrdiff_t)(most >> l) * width;
    }
    return p;
}

/* Nodes of each level. */
static void build(const struct engine *g, const struct range_rows *p, int B, int width)
{
    for (int l = 1; l < p->lists; l++) {
        const int n = p->rows[l];
#pragma omp parallel for num_threads(team_for(g->threads, (ptrdiff_t)B *n *width))
        for (int at = 0; at < B * n; at++) {
            const int b = at / n, node = at % n;
            const float *const x =
                p->list[l - 1] + b * p->stride[l - 1] + (ptrdiff_t)2 * node * width;
            float *const y = p->list[l] + b * p->stride[l] + (ptrdiff_t)node * width;
            for (int e = 0; e < width; e++)
                y[e] = 0.5f * (x[e] + x[width + e]);
        }
    }
}

/* Gradients of nodes go down, half to each. */
static void build_grad(const struct engine *g, const struct range_rows *d, int B, int width)
{
    for (int l = d->lists - 1; l > 0; l--) {
        const int n = d->rows[l];
#pragma omp parallel for num_threads(team_for(g->threads, (ptrdiff_t)B *n *width))
        for (int at = 0; at < B * n; at++) {
            const float *const y = d->list[l] + at / n * d->stride[l] + (ptrdiff_t)(at % n) * width;
            float *const x =
                d->list[l - 1] + at / n * d->stride[l - 1] + (ptrdiff_t)(at % n) * 2 * width;
            for (int e = 0; e < width; e++) {
                x[e] += 0.5f * y[e];
                x[width + e] += 0.5f * y[e];
            }
        }
    }
}

/* ---- what a query sees -------------------------------------------------------------------- */

/* Nodes of each level that the i-th key's query sees; returns the levels. */
static int seen(const struct config *c, int i, struct range out[RANGE_LISTS])
{
    const int k = newest(c);
    int n = 0;

    for (int e = i + 1; e > 0; n++) {
        const int t = e < k ? e : min_int(e, k + ((e - k) & 1));
        CHECK(n < RANGE_LISTS);
        out[n] = (struct range){e - t, e};
        e = (e - t) / 2;
    }
    return n;
}

static int count_seen(const struct config *c, int i)
{
    struct range r[RANGE_LISTS];
    const int levels = seen(c, i, r);
    int n = 0;

    for (int l = 0; l < levels; l++)
        n += r[l].to - r[l].from;
    return n;
}

/* More than any query sees of so many rows. */
static int most_seen(const struct config *c, int rows)
{
    int n = 0;

    for (; rows > 0; rows /= 2)
        n += min_int(rows, newest(c) + 1);
    return n;
}

/* Which nodes each query sees, 0 or 1. */
static bool shows(const struct sublayer *s, const struct work *w, struct extent now, int i,
                  struct shown *out)
{
    const int K = now.M + now.L;
    const size_t nodes = (size_t)K + (size_t)nodes_above(K);

    *out = (struct shown){"visible", (size_t)now.L * nodes, true, out->to};
    for (int t = 0; out->to && t < now.L; t++) {
        struct range r[RANGE_LISTS];
        const int levels = seen(s->c, now.M + t, r);
        float *row = out->to + (size_t)t * nodes;
        memset(row, 0, nodes * sizeof(*row));
        for (int l = 0; l < levels; row += K >> l, l++)
            for (int j = r[l].from; j < r[l].to; j++)
                row[j] = 1;
    }
    return i == 0;
}

/* ---- binding ------------------------------------------------------------------------------ */

static int rows_of(const struct sublayer *s, struct extent max)
{
    return max.L + (sublayer_remembers(s) ? max.M : 0);
}

/* Levels that a query of so many rows may see: those below it have taken k (2^l - 1) tokens. */
static int levels_of(const struct config *c, int rows)
{
    int l = 1;

    while (l < TREE_LEVELS - 1 && (int64_t)newest(c) * (((int64_t)1 << l) - 1) < rows &&
           rows >> l > 0)
        l++;
    return l;
}

/* Rows of level l that are kept of M tokens: those that end a node that a later query may see, and
 * whose first token is remembered. */
static int kept_of(const struct config *c, int l, int M)
{
    const int64_t size = (int64_t)1 << l, reach = (newest(c) + (int64_t)1) * (2 * size - 1);
    const int64_t whole = M - size + 1, seen = reach - size + 1;

    return (int)(whole < 0 ? 0 : whole < seen ? whole : seen);
}

static enum status bind(struct sublayer *s, const struct engine *g, struct extent max,
                        struct arena *a, struct err *e)
{
    struct tree *const t = &s->state.tree;
    const int width = config_kv_width(s->c);

    *t = (struct tree){.rows = rows_of(s, max), .reach = max.M};
    if (s->mem != MEM_KV)
        return OK;
    t->levels = levels_of(s->c, max.M + max.L);
    for (int l = 0; l < t->levels; l++) {
        cache_bind(&t->keys[l], max.B, max.L, kept_of(s->c, l, max.M), width, a);
        cache_bind(&t->values[l], max.B, max.L, kept_of(s->c, l, max.M), width, a);
    }
    return OK;
}

static size_t caches(const struct sublayer *s, int M)
{
    size_t rows = 0;

    for (int l = 0; l < s->state.tree.levels; l++)
        rows += (size_t)kept_of(s->c, l, M);
    return 2 * rows * (size_t)config_kv_width(s->c);
}

static void arrays(const struct sublayer *s, struct extent max, struct array out[SUB_ARRAYS])
{
    const int all = s->mem == MEM_KV ? 0 : rows_of(s, max);
    const size_t B = (size_t)max.B, rows = B * (size_t)max.L;
    const size_t q = rows * (size_t)config_q_width(s->c), width = (size_t)config_kv_width(s->c);
    const size_t k = B * (size_t)all * width, nodes = B * (size_t)nodes_above(all) * width;

    out[TR_Q] = out[TR_O] = (struct array){q, q, false, PART_ACTIVATIONS};
    out[TR_K] = out[TR_V] = (struct array){k, k, false, PART_ACTIVATIONS};
    out[TR_LSE] = (struct array){0, rows * (size_t)s->c->H, false, PART_ACTIVATIONS};
    out[TR_ABOVE_K] = out[TR_ABOVE_V] = (struct array){nodes, nodes, false, PART_ACTIVATIONS};
}

static struct attn_need scratch(const struct sublayer *s, const struct engine *g, bool backward)
{
    return ranges_need(most_seen(s->c, s->state.tree.rows), g->threads);
}

static void impl(const struct sublayer *s, const char **forward, const char **backward)
{
    *forward = "loop";
    *backward = NULL;
}

/* ---- the rows of a call ------------------------------------------------------------------- */

struct operands {
    struct range_rows k, v;
    int K;
};

/* Means of the new rows of level `l`, from those of the level below that end with the same token
 * and in its middle. Rows that would begin before the first token are no nodes. */
static void add_means(struct cache *level, const struct cache *below, int l, int B, int L)
{
    const int width = level->n, half = 1 << (l - 1);
    const struct seq_rows to = cache_new_rows(level, L);

    for (int b = 0; b < B; b++)
        for (int i = 0; i < L; i++) {
            const int at = below->M + i;
            const float *const x = cache_rows(below, b) + (ptrdiff_t)at * width;
            float *const y = to.at + b * to.stride + (ptrdiff_t)i * width;
            for (int e = 0; e < width; e++)
                y[e] = at < half ? 0 : 0.5f * (x[e - (ptrdiff_t)half * width] + x[e]);
        }
}

/* Node j of a level is its row of the token with which it ends. */
static struct range_rows nodes_of(const struct tree *t, const struct cache *levels, int K)
{
    struct range_rows p = {.lists = t->levels};

    for (int l = 0; l < t->levels; l++) {
        p.list[l] = cache_rows(&levels[l], 0);
        p.stride[l] = cache_stride(&levels[l]);
        p.step[l] = 1 << l;
        p.first[l] = (1 << l) - 1 - (t->M - levels[l].M);
        p.rows[l] = K >> l;
    }
    return p;
}

static struct operands cached_operands(struct sublayer *s, int B, int L)
{
    struct tree *const t = &s->state.tree;
    const int K = t->M + L;

    for (int l = 1; l < t->levels; l++) {
        add_means(&t->keys[l], &t->keys[l - 1], l, B, L);
        add_means(&t->values[l], &t->values[l - 1], l, B, L);
    }
    return (struct operands){.k = nodes_of(t, t->keys, K), .v = nodes_of(t, t->values, K), .K = K};
}

/* Of rows and nodes in `at`, which is w->array or w->d_array. */
static struct operands own_operands(const struct sublayer *s, float *const at[SUB_ARRAYS],
                                    struct sublayer_input from)
{
    const int K = from.M + from.L, width = config_kv_width(s->c);
    const struct seq_rows k = {at[TR_K], (ptrdiff_t)K * width}, v = {at[TR_V], k.stride};

    return (struct operands){.k = pyramid_of(k, at[TR_ABOVE_K], K, K, width),
                             .v = pyramid_of(v, at[TR_ABOVE_V], K, K, width),
                             .K = K};
}

static struct operands project(const struct engine *g, struct sublayer *s, const struct work *w,
                               struct sublayer_input from, bool queries)
{
    struct tree *const t = &s->state.tree;
    const bool kv = s->mem == MEM_KV;
    const int rows = from.M + from.L, width = config_kv_width(s->c);
    const struct seq_rows own_k = {w->array[TR_K], (ptrdiff_t)rows * width},
                          own_v = {w->array[TR_V], (ptrdiff_t)rows * width};
    const struct seq_rows fresh = {from.at.at + (ptrdiff_t)from.M * s->c->D, from.at.stride};
    const struct seq_rows q = {w->array[TR_Q], (ptrdiff_t)from.L * config_q_width(s->c)};

    if (queries)
        project_rows(g, s, ATTN_Q, q, fresh, from.B, from.L);
    project_rows(g, s, ATTN_K, kv ? cache_new_rows(&t->keys[0], rows) : own_k, from.at, from.B,
                 rows);
    project_rows(g, s, ATTN_V, kv ? cache_new_rows(&t->values[0], rows) : own_v, from.at, from.B,
                 rows);
    if (kv)
        return cached_operands(s, from.B, from.L);
    const struct operands of = own_operands(s, w->array, from);
    build(g, &of.k, from.B, width);
    build(g, &of.v, from.B, width);
    return of;
}

/* ---- forward and backward ----------------------------------------------------------------- */

struct sight_of {
    const struct config *c;
    int before; /* rows before the first query's */
};

static int seen_by(const void *of, int i, struct range out[RANGE_LISTS])
{
    const struct sight_of *const sight = of;

    return seen(sight->c, sight->before + i, out);
}

static struct ranges call_of(const struct sublayer *s, const struct work *w,
                             const struct operands *of, const struct sight_of *sight, int B, int L)
{
    const struct config *const c = s->c;

    return (struct ranges){.B = B,
                           .L = L,
                           .H = c->H,
                           .Hkv = c->kv_heads,
                           .dh = c->dh,
                           .scale = c->scale,
                           .q = w->array[TR_Q],
                           .k = of->k,
                           .v = of->v,
                           .o = w->array[TR_O],
                           .lse = w->array[TR_LSE],
                           .seen = seen_by,
                           .context = sight,
                           .most = most_seen(c, s->state.tree.rows)};
}

static void forward(const struct engine *g, struct sublayer *s, struct work *w,
                    struct sublayer_input from, struct act epilogue)
{
    const struct operands of = project(g, s, w, from, true);
    const struct sight_of sight = {s->c, of.K - from.L};
    const struct ranges call = call_of(s, w, &of, &sight, from.B, from.L);

    ranges_forward(g, &call, w->scratch);
    project_out(g, s, w, w->array[TR_O], from.B * from.L, epilogue);
}

static void backward(const struct engine *g, struct sublayer *s, const struct work *w,
                     struct sublayer_input from, float *d_in, const float *d_y, int skip)
{
    const struct operands of = own_operands(s, w->array, from),
                          d = own_operands(s, w->d_array, from);
    const struct sight_of sight = {s->c, from.M};
    const struct ranges call = call_of(s, w, &of, &sight, from.B, from.L);
    const struct ranges_grad d_call = {w->d_array[TR_O], w->d_array[TR_Q], d.k, d.v};
    const size_t row = (size_t)from.B * (size_t)config_kv_width(s->c) * sizeof(float);
    const int B = from.B, width = config_kv_width(s->c);

    project_out_grad(g, s, w->d_array[TR_O], d_y, w->array[TR_O], B * from.L);
    memset(w->d_array[TR_K], 0, row * (size_t)of.K);
    memset(w->d_array[TR_V], 0, row * (size_t)of.K);
    if (of.k.lists > 1) {
        memset(w->d_array[TR_ABOVE_K], 0, row * (size_t)nodes_above(of.K));
        memset(w->d_array[TR_ABOVE_V], 0, row * (size_t)nodes_above(of.K));
    }
    ranges_backward(g, &call, &d_call, w->d_scratch);
    build_grad(g, &d.k, B, width);
    build_grad(g, &d.v, B, width);
    project_backward(g, s, from, d_in,
                     (struct project_grad){w->d_array[TR_Q], w->d_array[TR_K], w->d_array[TR_V]},
                     skip);
}

/* ---- memory ------------------------------------------------------------------------------- */

static void remember(const struct engine *g, struct sublayer *s, struct work *w,
                     struct sublayer_input from)
{
    project(g, s, w, from, false);
}

static void commit(struct sublayer *s, int L)
{
    struct tree *const t = &s->state.tree;

    for (int l = 0; l < t->levels; l++) {
        cache_commit(&t->keys[l], L);
        cache_commit(&t->values[l], L);
    }
    t->M = min_int(t->reach, t->M + L);
}

static void forget(struct sublayer *s)
{
    struct tree *const t = &s->state.tree;

    for (int l = 0; l < t->levels; l++) {
        cache_clear(&t->keys[l]);
        cache_clear(&t->values[l]);
    }
    t->M = 0;
}

/* ---- cost --------------------------------------------------------------------------------- */

static struct sublayer_cost cost(const struct sublayer *s, int B, int L, int M)
{
    const struct config *const c = s->c;
    const double fresh = s->mem == MEM_KV ? L : M + L;
    double pairs = 0;

    for (int i = 0; i < L; i++)
        pairs += count_seen(c, M + i);
    const double maps = L * (double)config_q_width(c) + fresh * config_kv_width(c);
    return (struct sublayer_cost){.maps = 4.0 * B * c->H * c->dh * pairs +
                                          2 * B * fresh * config_kv_width(c) /* means */
                                          + 4 * B * c->D * maps};
}

static const struct sublayer_kind tree = {
    .name = "tree",
    .memory = "mem",
    .mixes = true,
    .place = DROP_ATTENTION,
    .params = params,
    .keeps = sublayer_keeps_rows,
    .caches = caches,
    .bind = bind,
    .arrays = arrays,
    .scratch = scratch,
    .forward = forward,
    .backward = backward,
    .remember = remember,
    .commit = commit,
    .forget = forget,
    .shows = shows,
    .impl = impl,
    .cost = cost,
};

const struct mixer mixer_tree = {.name = "tree", .numbers = &tree_numbers, .kind = &tree};

const struct variant variant_bp = {
    .name = "bp",
    .paper = "Ye et al. 2019, arXiv:1911.04070",
    .about = "keys are tokens near by and means of ever longer spans farther away",
    .control = "vanilla",
    .pos = &pos_sinusoid,
    .mixer = &mixer_tree,
};
