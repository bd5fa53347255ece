/* SPDX-License-Identifier: MIT
 *
 * Words in clusters, forward: equations in adaptive.h. */
#include "adaptive.h"
#include "variants/parts/linear.h"

/* ---- clusters ----------------------------------------------------------------------------- */

static bool one_table(const struct config *c) { return c->adaptive.div == 1; }
static bool has_maps(const struct config *c)
{
    return !one_table(c) || config_cluster_width(c, 0) != c->D;
}

/* Maps P and Q keep the variance of what they multiply, rows of length 1 and normalised ones. */
static int add_map(struct params *p, const struct config *c, const char *name, int i)
{
    const int at = params_add(p, INIT_NORMAL, 1 / sqrtf((float)c->D), 2,
                              (const int[]){c->D, config_cluster_width(c, i)}, "%s.%d", name, i);

    p->v[at].group = PARAM_MATRICES;
    p->v[at].maps = 1;
    return at;
}

static int add_table(struct params *p, int rows, int width, const char *name, int i)
{
    return params_add(p, INIT_EMBED, 0, 2, (const int[]){rows, width}, "%s.%d.weight", name, i);
}

void adaptive_embed_params(struct adaptive_words *t, const struct config *c, struct params *p)
{
    const struct adaptive *const a = &c->adaptive;

    *t = (struct adaptive_words){.c = c, .n = a->n + 1, .cluster = -1, .cluster_bias = -1};
    for (int i = 0; i < t->n; i++) {
        const int first = i ? a->cut[i - 1] : 0, end = i < a->n ? a->cut[i] : c->V;
        t->at[i] = (struct cluster){.first = first,
                                    .n = end - first,
                                    .width = config_cluster_width(c, i),
                                    .row = one_table(c) ? first : 0,
                                    .embed_proj = -1,
                                    .out_proj = -1};
        t->at[i].embed = one_table(c) && i ? t->at[0].embed
                                           : add_table(p, one_table(c) ? c->V : end - first,
                                                       t->at[i].width, "embed", i);
    }
    t->head = t->at[0].n + a->n;
    for (int i = 0; i < t->n && has_maps(c); i++)
        t->at[i].embed_proj =
            one_table(c) && i ? t->at[0].embed_proj : add_map(p, c, "embed_proj", i);
}

void adaptive_out_params(struct adaptive_words *t, struct params *p)
{
    const struct config *const c = t->c;
    const struct adaptive *const a = &c->adaptive;

    for (int i = 0; i < t->n; i++) {
        struct cluster *const k = &t->at[i];
        const int rows = one_table(c) ? c->V : k->n;
        if (one_table(c) && i) {
            k->out = t->at[0].out;
            k->bias = t->at[0].bias;
            continue;
        }
        k->out = c->tied ? k->embed : add_table(p, rows, k->width, "out", i);
        if (!c->tied)
            p->v[k->out].group = PARAM_OUTPUT;
        k->bias = params_add(p, INIT_ZERO, 0, 1, &rows, "out.%d.bias", i);
    }
    for (int i = 0; i < t->n && has_maps(c); i++)
        t->at[i].out_proj =
            a->n_tie && a->tie[i] ? t->at[i].embed_proj : add_map(p, c, "out_proj", i);
    if (!a->n)
        return;
    t->cluster = params_add(p, INIT_EMBED, 0, 2, (const int[]){a->n, t->at[0].width}, "%s",
                            "out.cluster.weight");
    p->v[t->cluster].group = PARAM_OUTPUT;
    t->cluster_bias = params_add(p, INIT_ZERO, 0, 1, &a->n, "%s", "out.cluster.bias");
}

void adaptive_bind(struct adaptive_words *t, const struct config *c, const struct params *p,
                   size_t rows, struct arena *a)
{
    int most = 0;

    t->c = c;
    t->params = p;
    for (int i = 1; i < t->n; i++)
        most = max_int(most, t->at[i].n);
    t->rows = arena_take(a, PART_SCRATCH, rows * sizeof(int32_t));
    t->in_cluster = arena_take(a, PART_SCRATCH, rows * sizeof(int32_t));
    t->head_target = arena_take(a, PART_SCRATCH, rows * sizeof(int32_t));
    t->head_z = arena_f32(a, PART_ACTIVATIONS, rows * (size_t)t->at[0].width);
    t->head_logits = arena_f32(a, PART_ACTIVATIONS, rows * (size_t)t->head);
    t->x = arena_f32(a, PART_ACTIVATIONS, rows * (size_t)c->D);
    t->z = arena_f32(a, PART_ACTIVATIONS, rows * (size_t)t->at[0].width);
    t->logits = arena_f32(a, PART_ACTIVATIONS, rows * (size_t)most);
    t->nll = arena_f32(a, PART_ACTIVATIONS, rows);
    t->bias = arena_f32(a, PART_SCRATCH, (size_t)t->head);
    t->d_bias = arena_f32(a, PART_SCRATCH, (size_t)t->head);
}

/* ---- rows by cluster ---------------------------------------------------------------------- */

static int cluster_of(const struct adaptive_words *t, int word)
{
    int i = t->n - 1;

    while (word < t->at[i].first)
        i--;
    return i;
}

void adaptive_sort(struct adaptive_words *t, const int32_t *words, int rows)
{
    int next[MAX_CLUSTERS + 1] = {0};

    for (int r = 0; r < rows; r++)
        next[cluster_of(t, words[r]) + 1]++;
    for (int i = 0; i < t->n; i++)
        next[i + 1] += next[i];
    memcpy(t->begin, next, sizeof(next));
    for (int r = 0; r < rows; r++) {
        const int i = cluster_of(t, words[r]), k = next[i]++;
        t->rows[k] = r;
        t->in_cluster[k] = words[r] - t->at[i].first;
    }
}

void adaptive_gather(const struct adaptive_words *t, const struct engine *g, int i, float *to,
                     const float *from, float scale)
{
    const ptrdiff_t D = t->c->D, n = adaptive_rows(t, i);
    const int32_t *const rows = t->rows + t->begin[i];

#pragma omp parallel for num_threads(team_for(g->threads, n *D))
    for (ptrdiff_t k = 0; k < n; k++)
        for (ptrdiff_t e = 0; e < D; e++)
            to[k * D + e] = scale * from[rows[k] * D + e];
}

/* ---- input -------------------------------------------------------------------------------- */

void adaptive_embed(struct adaptive_words *t, const struct engine *g, const int32_t *tokens,
                    float *h, int rows)
{
    const ptrdiff_t D = t->c->D;
    const float scale = t->c->emb_scale;

    adaptive_sort(t, tokens, rows);
    for (int i = 0; i < t->n; i++) {
        const struct cluster *const k = &t->at[i];
        const int n = t->n_in[i] = adaptive_rows(t, i);
        const int32_t *const at = t->rows + t->begin[i], *const word = t->in_cluster + t->begin[i];
        const float *const E = adaptive_table(t, k->embed, k);
        const ptrdiff_t width = k->width;
        const float *from = t->z;
        for (ptrdiff_t r = 0; r < n; r++)
            memcpy(t->z + r * width, E + word[r] * width, sizeof(float) * (size_t)width);
        if (n && k->embed_proj >= 0) {
            linear_apply(g, &t->params->v[k->embed_proj], t->x, t->z, n);
            from = t->x;
        }
#pragma omp parallel for num_threads(team_for(g->threads, n *D))
        for (ptrdiff_t r = 0; r < n; r++)
            for (ptrdiff_t e = 0; e < D; e++)
                h[at[r] * D + e] = scale * from[r * D + e];
    }
}

/* ---- output ------------------------------------------------------------------------------- */

/* z [rows,E_i] = x Q_i, or x where there is no Q. */
static const float *project(const struct adaptive_words *t, const struct engine *g,
                            const struct cluster *k, float *z, const float *x, int rows)
{
    const int D = t->c->D;

    if (k->out_proj < 0)
        return x;
    mm(g, NN, rows, k->width, D, 1, x, D, t->params->v[k->out_proj].data, k->width, 0, z, k->width);
    return z;
}

/* logits [rows,ld] = z W^T, without their bias */
static void products(const struct engine *g, float *logits, int ld, const float *z, const float *W,
                     int n, int width, int rows)
{
    mm(g, NT, rows, n, width, 1, z, width, W, width, 0, logits, ld);
}

static void head(struct adaptive_words *t, const struct engine *g, const float *h, int rows)
{
    const struct cluster *const k = &t->at[0];
    const float *const z = project(t, g, k, t->head_z, h, rows);

    products(g, t->head_logits, t->head, z, adaptive_table(t, k->out, k), k->n, k->width, rows);
    memcpy(t->bias, t->params->v[k->bias].data, sizeof(float) * (size_t)k->n);
    if (t->cluster >= 0) {
        products(g, t->head_logits + k->n, t->head, z, t->params->v[t->cluster].data, t->n - 1,
                 k->width, rows);
        memcpy(t->bias + k->n, t->params->v[t->cluster_bias].data,
               sizeof(float) * (size_t)(t->n - 1));
    }
    linear_epilogue(g, (struct act){.y = t->head_logits, .bias = t->bias}, t->head_logits, rows,
                    t->head);
}

/* logits [rows,n] of cluster i from x [rows,D]; z is room for their maps. */
static void tail(struct adaptive_words *t, const struct engine *g, int i, float *logits,
                 const float *x, float *z, int rows)
{
    const struct cluster *const k = &t->at[i];

    products(g, logits, k->n, project(t, g, k, z, x, rows), adaptive_table(t, k->out, k), k->n,
             k->width, rows);
    const float *const bias = t->params->v[k->bias].data + k->row;
    linear_epilogue(g, (struct act){.y = logits, .bias = bias}, logits, rows, k->n);
}

/* Logits of tails lie behind one another. */
static float *logits_of(const struct adaptive_words *t, int i)
{
    float *at = t->logits;

    for (int k = 1; k < i; k++)
        at += (ptrdiff_t)adaptive_rows(t, k) * t->at[k].n;
    return at;
}

void nll_of_rows(const struct engine *g, float *nll, const float *logits, const int32_t *target,
                 int rows, int n)
{
    g->ops.nll(&(struct nll_op){.nll = nll,
                                .logits = logits,
                                .target = target,
                                .rows = rows,
                                .n = n,
                                .threads = g->threads});
}

void adaptive_nll(struct adaptive_words *t, const struct engine *g, const float *h,
                  const int32_t *target, float *nll, int rows)
{
    const ptrdiff_t D = t->c->D;

    adaptive_sort(t, target, rows);
    t->n_rows = rows;
    for (int i = 0; i < t->n; i++) {
        t->n_out[i] = i ? adaptive_rows(t, i) : 0;
        for (int r = t->begin[i]; r < t->begin[i + 1]; r++)
            t->head_target[t->rows[r]] = i ? t->at[0].n + i - 1 : t->in_cluster[r];
    }
    head(t, g, h, rows);
    nll_of_rows(g, nll, t->head_logits, t->head_target, rows, t->head);
    for (int i = 1; i < t->n; i++) {
        const int n = adaptive_rows(t, i);
        const ptrdiff_t at = t->begin[i];
        float *const logits = logits_of(t, i), *const x = t->x + at * D;
        if (!n)
            continue;
        adaptive_gather(t, g, i, x, h, 1);
        tail(t, g, i, logits, x, t->z + at * t->at[0].width, n);
        nll_of_rows(g, t->nll, logits, t->in_cluster + at, n, t->at[i].n);
        for (int r = 0; r < n; r++)
            nll[t->rows[at + r]] += t->nll[r];
    }
}

static double log_sum(const float *x, ptrdiff_t n)
{
    const double most = largest_of(x, n);
    double sum = 0;

    for (ptrdiff_t i = 0; i < n; i++)
        sum += exp((double)x[i] - most);
    return most + log(sum);
}

void adaptive_all(struct adaptive_words *t, const struct engine *g, const float *h, float *log_p,
                  int rows)
{
    const ptrdiff_t V = t->c->V, in_head = t->at[0].n, width = t->head;

    head(t, g, h, rows);
    t->n_rows = rows;
#pragma omp parallel for num_threads(team_for(g->threads, rows *width))
    for (ptrdiff_t r = 0; r < rows; r++) {
        float *const x = t->head_logits + r * width;
        const double all = log_sum(x, width);
        for (ptrdiff_t v = 0; v < width; v++)
            x[v] = (float)((double)x[v] - all);
        memcpy(log_p + r * V, x, sizeof(float) * (size_t)in_head);
    }
    for (int i = 1; i < t->n; i++) {
        const ptrdiff_t n = t->at[i].n;
        tail(t, g, i, t->logits, h, t->z, rows);
        t->n_out[i] = rows;
#pragma omp parallel for num_threads(team_for(g->threads, rows *n))
        for (ptrdiff_t r = 0; r < rows; r++) {
            const float *const x = t->logits + r * n;
            const double all = log_sum(x, n) - (double)t->head_logits[r * width + in_head + i - 1];
            for (ptrdiff_t v = 0; v < n; v++)
                log_p[r * V + t->at[i].first + v] = (float)((double)x[v] - all);
        }
    }
}

/* ---- cost --------------------------------------------------------------------------------- */

/* Of a row: of its map, and of the products with n words. */
static double map_flop(const struct adaptive_words *t, const struct cluster *k, bool has)
{
    return has ? 2.0 * t->c->D * k->width : 0;
}

static double part_flop(const struct adaptive_words *t, int i)
{
    const struct cluster *const k = &t->at[i];

    return map_flop(t, k, k->out_proj >= 0) + 2.0 * k->width * (i ? k->n : t->head);
}

double adaptive_in_flop(const struct adaptive_words *t)
{
    double sum = 0;

    for (int i = 0; i < t->n; i++)
        sum += t->n_in[i] * map_flop(t, &t->at[i], t->at[i].embed_proj >= 0);
    return sum;
}

double adaptive_out_flop(const struct adaptive_words *t)
{
    double sum = t->n_rows * part_flop(t, 0);

    for (int i = 1; i < t->n; i++)
        sum += t->n_out[i] * part_flop(t, i);
    return sum;
}

double adaptive_row_flop(const struct adaptive_words *t)
{
    double sum = 0;

    for (int i = 0; i < t->n; i++)
        sum += part_flop(t, i);
    return sum;
}

double adaptive_unread(const struct adaptive_words *t, int rows)
{
    double n = 0;

    for (int i = 0; i < t->n; i++) {
        const struct cluster *const k = &t->at[i];
        const double table_bytes = 4.0 * k->n * k->width;
        const double few = 4.0 * k->width * min_int(k->n, min_int(rows, t->n_in[i]));
        const bool scored = i == 0 || t->n_out[i] > 0;
        if (!t->c->tied)
            n += table_bytes - few + (scored ? 0 : table_bytes);
        else if (!scored)
            n += table_bytes - few;
    }
    return n;
}
