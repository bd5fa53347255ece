/* SPDX-License-Identifier: MIT
 *
 * Routing Transformer: Roy et al. 2020, "Efficient Content-Based Sparse Attention with Routing
 * Transformers", arXiv:2003.05997. Centroids mu_c of each head, unit rows and no parameters;
 * N(x) = x/|x|, or a layer norm without parameters:
 *
 *   c(x) = argmax_c mu_c . N(x)      of queries and of keys
 *   nearest: a query sees the keys of its cluster, of these the `route_window` newest, and its own
 *
 * A step moves mu_c towards the mean direction of the segment's rows in it, and the loss has
 * commit_coef mean (N(x) - mu_c(x))^2, whose gradient reaches x only. */
#include "routing.h"

#include "groups.h"

static const char *const route_name[] = {"nearest", "topk", NULL};
static const char *const norm_name[] = {"l2", "ln", NULL};

static const struct choice choices[] = {
    ROW_INT(struct routing, clusters, "clusters_of_head", 1, 1 << 14, "clusters of a head",
            .setting = true, .input = "mu", .axis = 1, .tiny = "3"),
    ROW_INT(struct routing, window, "route_window", 0, 1 << 28,
            "members of its cluster that a query sees, 0 = all", .setting = true, .absent = "0",
            .tiny = "0|2"),
    ROW_FLAG(struct routing, self_last, "self_last",
             "1: the own position is seen only where nothing else is", .setting = true,
             .absent = "0", .tiny = "0|0|1|1"),
    ROW_WORD(struct routing, route, "route", route_name, "who chooses", .applies = content_is_alone,
             SETTING),
    ROW_WORD(struct routing, norm, "route_norm", norm_name, "norm of what is routed",
             .absent = "l2", SETTING),
    ROW_REAL(struct routing, mu_decay, "mu_decay", 0, 1, "share of a centroid that a step keeps",
             .absent = "0.999", SETTING),
    ROW_REAL(struct routing, commit_coef, "commit_coef", 0, 1 << 20,
             "weight of the distance to the centroid", .absent = "0", SETTING, .tiny = "0"),
    {0},
};

const struct routing *routing_of(const struct config *c) { return config_numbers(c, SLOT_MIXER); }

/* 8 clusters of 1024 tokens, of which a query sees the 64 newest. */
static enum status check(const struct config *c, const void *numbers, struct err *e)
{
    const struct routing *const r = numbers;

    if (r->route == ROUTE_TOPK && !r->window)
        return fail(e, E_USAGE, "%s: route topk of no rows  -> use route_window 1 or more",
                    c->variant->name);
    if ((int64_t)c->H * r->clusters * c->dh > 1 << 28)
        return fail(e, E_USAGE, "%s: %d clusters of %d heads are too many  -> use fewer",
                    c->variant->name, r->clusters, c->H);
    return OK;
}

const struct part_numbers routing_numbers = {
    choices,
    PRESET(struct routing, .clusters = 8, .window = 64, .mu_decay = 0.999f, .commit_coef = 1e-4f),
    check};

static void params(const struct sublayer *s, const char *prefix, struct params *p)
{
    const struct config *const c = s->c;

    params_buffer(p,
                  params_add(p, INIT_UNIT, 0, 3,
                             (const int[]){c->H, routing_of(c)->clusters, c->dh}, "%smu", prefix));
}

/* ---- clusters ----------------------------------------------------------------------------- */

static const float *centroid(const struct sublayer *s, const float *all, int h, int c)
{
    return all + ((ptrdiff_t)h * routing_of(s->c)->clusters + c) * s->c->dh;
}

/* N(x) = (x - mean) by */
struct normed {
    double mean, by;
};

static struct normed norm_of(const struct config *c, const float *x)
{
    enum { TINY = 1 }; /* rows of zeros are nowhere */
    double mean = 0, squares = 0;

    for (int e = 0; e < c->dh && routing_of(c)->norm == ROUTE_LN; e++)
        mean += (double)x[e] / c->dh;
    for (int e = 0; e < c->dh; e++)
        squares += ((double)x[e] - mean) * ((double)x[e] - mean);
    if (routing_of(c)->norm == ROUTE_LN)
        return (struct normed){mean, 1 / sqrt(squares / c->dh + 1e-5)};
    return (struct normed){0, squares > 0 ? 1 / sqrt(squares) : TINY};
}

double routing_score(const struct sublayer *s, int h, int c, const float *x)
{
    const struct normed n = norm_of(s->c, x);
    const float *const mu = centroid(s, content_buffer(s, 0)->data, h, c);
    double sum = 0;

    for (int e = 0; e < s->c->dh; e++)
        sum += (double)mu[e] * ((double)x[e] - n.mean);
    return sum * n.by;
}

/* The centroid nearest in direction: the factor of N does not matter, the mean does. */
static int nearest(const struct sublayer *s, int h, const float *x)
{
    const struct config *const c = s->c;
    const float *const mu = centroid(s, content_buffer(s, 0)->data, h, 0);
    const float mean = (float)norm_of(c, x).mean;
    double most = -INFINITY;
    int best = 0;

    for (int k = 0; k < routing_of(c)->clusters; k++) {
        const float *const m = mu + (ptrdiff_t)k * c->dh;
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int e = 0; e < c->dh; e++)
            sum += m[e] * (x[e] - mean);
        if ((double)sum > most) {
            most = (double)sum;
            best = k;
        }
    }
    return best;
}

static int numbers(const struct config *c) { return c->share_qk ? 1 : 2; }

/* Where row i of the new ones lies among the projected queries, or keys. */
static int raw_row(const struct content_call *n, int i, bool key)
{
    return key || n->s->c->share_qk ? n->a.M - n->first + i : i;
}

const float *routing_query(const struct content_call *n, int b, int h, int i)
{
    return head_row(n->raw_q, b, raw_row(n, i, false), h, n->a.dh);
}

const float *routing_key(const struct content_call *n, int b, int h, int i)
{
    return head_row(n->raw_k, b, raw_row(n, i, true), h, n->a.dh);
}

static int team(const struct content_call *n, int rows)
{
    const struct attn *const a = &n->a;
    const ptrdiff_t products =
        (ptrdiff_t)a->B * rows * a->H * a->dh * routing_of(n->s->c)->clusters;

    return team_for(n->g->threads, products);
}

static void number(const struct content_call *n)
{
    const struct attn *const a = &n->a;
    const int rows = a->M + a->L - n->first, each = numbers(n->s->c);

#pragma omp parallel for num_threads(team(n, rows))
    for (int x = 0; x < a->B * rows; x++)
        for (int h = 0; h < a->H; h++) {
            const int b = x / rows, j = x % rows + n->first, i = j - a->M;
            float *const to = head_row(n->numbers, b, j, h, each);
            to[0] = (float)nearest(n->s, h, head_row(n->raw_k, b, j - n->first, h, a->dh));
            if (each > 1 && i >= 0)
                to[1] = (float)nearest(n->s, h, routing_query(n, b, h, i));
        }
}

/* ---- groups --------------------------------------------------------------------------------- */

static struct groups groups_of(const struct config *c)
{
    const struct routing *const r = routing_of(c);

    return (struct groups){.n = r->route == ROUTE_TOPK ? 0 : r->clusters,
                           .newest = r->window,
                           .own_counts = true,
                           .self_last = r->self_last,
                           .numbers = numbers(c),
                           .at_query = numbers(c) - 1};
}

/* ---- learning centroids ------------------------------------------------------------------- */

/* The rows that take part: queries, and keys where they are others. */
static const float *learner(const struct content_call *n, int which, int b, int h, int i,
                            int *cluster)
{
    const int each = numbers(n->s->c);

    *cluster = (int)head_row(n->numbers, b, n->a.M + i, h, each)[which ? 0 : each - 1];
    return which ? routing_key(n, b, h, i) : routing_query(n, b, h, i);
}

/* The mean direction of each cluster of a head, [C,dh]; the centroid where it has no member. */
static void new_directions(const struct content_call *n, int h, float *to)
{
    const struct sublayer *const s = n->s;
    const int C = routing_of(s->c)->clusters, dh = n->a.dh;
    double *const sum = calloc((size_t)C * (size_t)dh, sizeof(*sum));

    NEED(sum);
    for (int which = 0; which < numbers(s->c); which++)
        for (int row = 0; row < n->a.B * n->a.L; row++) {
            int c;
            const float *const x = learner(n, which, row / n->a.L, h, row % n->a.L, &c);
            const struct normed norm = norm_of(s->c, x);
            for (int e = 0; e < dh; e++)
                sum[(ptrdiff_t)c * dh + e] += norm.by * ((double)x[e] - norm.mean);
        }
    for (int c = 0; c < C; c++) {
        const double *const m = sum + (ptrdiff_t)c * dh;
        const float *const mu = centroid(s, content_buffer(s, 0)->data, h, c);
        double squares = 0;
        for (int e = 0; e < dh; e++)
            squares += m[e] * m[e];
        for (int e = 0; e < dh; e++)
            to[(ptrdiff_t)c * dh + e] = squares > 0 ? (float)(m[e] / sqrt(squares)) : mu[e];
    }
    free(sum);
}

/* lambda mu + (1 - lambda) m of all heads, or with `step` what a step adds to mu. */
static void new_centroids(const struct content_call *n, float *to, bool step)
{
    const struct sublayer *const s = n->s;
    const double decay = (double)routing_of(s->c)->mu_decay;
    const size_t each = (size_t)routing_of(s->c)->clusters * (size_t)n->a.dh;
    float *const m = calloc(each, sizeof(*m));

    NEED(m);
    for (int h = 0; h < n->a.H; h++) {
        const float *const mu = centroid(s, content_buffer(s, 0)->data, h, 0);
        new_directions(n, h, m);
        for (size_t e = 0; e < each; e++) {
            const double moved = (1 - decay) * ((double)m[e] - (double)mu[e]);
            float *const at = to + (size_t)h * each + e;
            *at = step ? *at + (float)moved : (float)((double)mu[e] + moved);
        }
    }
    free(m);
}

static double elements(const struct content_call *n)
{
    return (double)numbers(n->s->c) * n->a.B * n->a.L * n->a.H * n->a.dh;
}

static double aux(const struct content_call *n)
{
    double sum = 0;

    for (int which = 0; which < numbers(n->s->c); which++)
        for (int row = 0; row < n->a.B * n->a.L; row++)
            for (int h = 0; h < n->a.H; h++) {
                int c;
                const float *const x = learner(n, which, row / n->a.L, h, row % n->a.L, &c);
                const float *const mu = centroid(n->s, content_buffer(n->s, 0)->data, h, c);
                const struct normed norm = norm_of(n->s->c, x);
                for (int e = 0; e < n->a.dh; e++) {
                    const double off = norm.by * ((double)x[e] - norm.mean) - (double)mu[e];
                    sum += off * off;
                }
            }
    return sum / elements(n);
}

/* One row of a head: g = factor (N(x) - mu), through N: by (g - mean g - N(x) (g . N(x)) / m),
 * where m is the width for the layer norm, and 1 and no mean for unit rows. */
static void commit_grad(const struct config *c, const float *x, const float *mu, double factor,
                        float *d)
{
    const struct normed n = norm_of(c, x);
    const bool ln = routing_of(c)->norm == ROUTE_LN;
    double mean = 0, along = 0;

    for (int e = 0; e < c->dh; e++) {
        const double y = n.by * ((double)x[e] - n.mean), g = factor * (y - (double)mu[e]);
        mean += ln ? g / c->dh : 0;
        along += g * y / (ln ? c->dh : 1);
    }
    for (int e = 0; e < c->dh; e++) {
        const double y = n.by * ((double)x[e] - n.mean), g = factor * (y - (double)mu[e]);
        d[e] += (float)(n.by * (g - mean - y * along));
    }
}

static void raw_grad(const struct content_call *n, struct head_rows d_q, struct head_rows d_k)
{
    const struct sublayer *const s = n->s;
    const double factor = 2 * (double)routing_of(s->c)->commit_coef / elements(n);

#pragma omp parallel for num_threads(n->g->threads)
    for (int row = 0; row < n->a.B * n->a.L; row++)
        for (int which = 0; which < numbers(s->c); which++)
            for (int h = 0; h < n->a.H; h++) {
                const int b = row / n->a.L, i = row % n->a.L;
                int c;
                const float *const x = learner(n, which, b, h, i, &c);
                commit_grad(s->c, x, centroid(s, content_buffer(s, 0)->data, h, c), factor,
                            head_row(which ? d_k : d_q, b, raw_row(n, i, which), h, n->a.dh));
            }
    if (content_buffer(s, 0)->grad)
        new_centroids(n, content_buffer(s, 0)->grad, true);
}

/* ---- what it shows, and costs ------------------------------------------------------------- */

static void show_clusters(const struct content_call *n, float *to)
{
    const struct attn *const a = &n->a;

    for (int x = 0; x < a->B * a->H * a->L; x++) {
        int c;
        learner(n, 0, x / a->L / a->H, x / a->L % a->H, x % a->L, &c);
        to[x] = (float)c;
    }
}

static void show_visible(const struct content_call *n, float *to)
{
    const struct attn *const a = &n->a;
    const struct groups groups = groups_of(n->s->c);
    const int K = a->M + a->L;

    for (ptrdiff_t x = 0; x < (ptrdiff_t)a->B * a->H * a->L * K; x++) {
        const int j = (int)(x % K), i = (int)(x / K % a->L), head = (int)(x / K / a->L);
        to[x] = j <= a->M + i && groups_visible(n, &groups, head / a->H, head % a->H, i, j);
    }
}

static bool shows(const struct content_call *n, int i, struct shown *out)
{
    const struct attn *const a = &n->a;
    const size_t rows = (size_t)a->B * (size_t)a->H * (size_t)a->L;
    const bool pairs = routing_of(n->s->c)->route == ROUTE_NEAREST;
    const struct shown all[] = {
        {.name = "cluster", .n = rows, .whole = true},
        {.name = "mu", .n = content_buffer(n->s, 0)->n},
        {.name = "commit", .n = 1},
        {.name = "visible", .n = rows * (size_t)(a->M + a->L), .whole = true},
    };
    float *const to = out->to;

    if (i >= (int)ARRAY_LEN(all) - !pairs)
        return false;
    *out = all[i];
    out->to = to;
    if (to && i == 0)
        show_clusters(n, to);
    else if (to && i == 1)
        new_centroids(n, to, false);
    else if (to && i == 2)
        *to = (float)aux(n);
    else if (to)
        show_visible(n, to);
    return true;
}

static double flop(const struct sublayer *s, int B, int L, int M)
{
    const struct groups groups = groups_of(s->c);
    const double w = routing_of(s->c)->window, taken = w < L ? w : L;
    const double pairs = routing_of(s->c)->route == ROUTE_TOPK
                             ? routing_of(s->c)->clusters * taken * (taken + 1) / 2
                             : groups_pairs(&groups, L, M);

    return 4.0 * B * s->c->H * s->c->dh * pairs;
}

static double choice_flop(const struct sublayer *s, int B, int L, int M)
{
    const double rows = s->mem == MEM_HIDDEN ? M + L : L;

    return 2.0 * B * s->c->H * (rows + (s->c->share_qk ? 0 : L)) * routing_of(s->c)->clusters *
           s->c->dh;
}

static const char *looks_ahead(const struct config *c)
{
    return routing_of(c)->route == ROUTE_TOPK
               ? "its clusters choose among all rows of a segment, later ones included"
               : NULL;
}

const struct content content_routing = {
    .past = true,
    .both_ahead = true,
    .numbers = numbers,
    .number = number,
    .params = params,
    .scratch = routing_topk_scratch,
    .head = routing_topk_head,
    .shows = shows,
    .flop = flop,
    .choice_flop = choice_flop,
    .core = groups_core,
    .raw_grad = raw_grad,
    .aux = aux,
    .groups = groups_of,
    .looks_ahead = looks_ahead,
};
