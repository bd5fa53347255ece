/* SPDX-License-Identifier: MIT
 *
 * Attention as matrix products with a softmax between them, in causal row blocks: block rows [i0,
 * i1) are multiplied only with the keys from the first to the last that one of them sees, so about
 * half of the square is never computed.
 *
 *   S = cap(scale (Q + u) K^T)       one product
 *   G = scale (Q + w) rel_k^T        one product over the table rows that the block's distances use
 *   P = softmax(S + shift(G))        row operation; the relative shift is a pointer offset there
 *   O = P V                          one product
 *   O += W rel_v                     W[i][r] = sum of P[i][j] over the keys that share row r
 *
 * Further terms are added between the products (weights.c). One parallel region per call. Items are
 * (sequence, head or heads that mix, row block), longest first; each product runs on one thread,
 * because a library's own threading loses half of its speed at these sizes. */
#include "composed.h"

/* ---- work space --------------------------------------------------------------------------- */

int composed_team(const struct attn *a) { return attn_mixes(a) ? a->H : 1; }

int composed_rows(const struct attn *a)
{
    /* With one head, 128 x K floats of scores stay near the L2 cache; all heads together exceed it
     * in any case. */
    enum { ROW_BLOCK = 128, MIXED_ROW_BLOCK = 32 };

    return min_int(a->L, attn_mixes(a) ? MIXED_ROW_BLOCK : ROW_BLOCK);
}

int composed_blocks(const struct attn *a)
{
    return (a->L + composed_rows(a) - 1) / composed_rows(a);
}

enum { PAD = 16 }; /* floats after a row, so that row strides are not powers of two */

ptrdiff_t composed_ld(int n) { return (ptrdiff_t)round_up((size_t)n, PAD) + PAD; }

ptrdiff_t composed_score_ld(const struct attn *a) { return composed_ld(attn_keys(a) + a->sinks); }

ptrdiff_t composed_square(const struct attn *a) { return composed_rows(a) * composed_score_ld(a); }

ptrdiff_t composed_query_ld(const struct attn *a)
{
    return (ptrdiff_t)round_up((size_t)a->dh, PAD);
}

ptrdiff_t composed_table_ld(const struct attn *a)
{
    return a->rel_k || a->rel_v || a->rel_q ? composed_ld(a->R + a->Rf) : 0;
}

size_t composed_row_floats(const struct attn *a)
{
    return a->weigh ? 3 * 2 * (size_t)composed_score_ld(a) : 0;
}

static size_t space_floats(const struct attn *a)
{
    return (size_t)composed_rows(a) * (size_t)(composed_table_ld(a) + composed_query_ld(a)) +
           composed_row_floats(a);
}

/* Mixing goes from s to p and back. */
static size_t scores_floats(const struct attn *a)
{
    return (attn_mixes(a) ? 2 * (size_t)a->H : 1) * (size_t)composed_square(a);
}

static struct attn_need need(const struct attn *a, int threads)
{
    const size_t n = (size_t)threads;

    return (struct attn_need){
        .scores_bytes = n * scores_floats(a) * sizeof(float),
        .scratch_bytes = n * space_floats(a) * sizeof(float),
    };
}

static struct space space_of(const struct attn *a, int threads, int thread, void *scratch)
{
    const ptrdiff_t scores = (ptrdiff_t)scores_floats(a);
    float *s = (float *)scratch + thread * scores;
    float *const rows = (float *)scratch + threads * scores + thread * (ptrdiff_t)space_floats(a);
    float *const rest = rows + composed_row_floats(a);

    return (struct space){.s = s,
                          .p = attn_mixes(a) ? s + a->H * composed_square(a) : s,
                          .w = s,
                          .row = (double *)(void *)rows,
                          .g = rest,
                          .q = rest + composed_rows(a) * composed_table_ld(a)};
}

/* ---- one block ---------------------------------------------------------------------------- */

/* Find the table rows of the block: the farthest belongs to the last query and first key, the
 * nearest to the first query and last key. */
static void find_rows(const struct attn *a, struct block_at *at)
{
    const int all = a->R + a->Rf;

    at->q_step = a->q_step ? a->q_step : 1;
    at->k_step = a->q_step ? a->k_step : 1;
    at->r0 = attn_table_row(a, at->i0 + at->n - 1, at->j0);
    at->n_rel = all ? attn_table_row(a, at->i0, at->j0 + at->cols - 1) - at->r0 + 1 : 0;
    at->shift = a->R - 1 - attn_dist(a, at->i0, at->j0) - at->r0;
}

/* Does one of the rows see key j? Of all heads where they mix. */
static bool any_row_sees(const struct attn *a, const struct block_at *at, int j)
{
    const int team = composed_team(a), h0 = at->h / team * team;

    for (int h = h0; h < h0 + team; h++) {
        const struct sight sight = attn_sight(a, h);
        for (int i = at->i0; i < at->i0 + at->n; i++)
            if (sight_visible(&sight, i, j))
                return true;
    }
    return false;
}

static bool is_hole(const struct attn *a, const struct block_at *at, int j)
{
    const int team = composed_team(a), kv = team > 1 ? 0 : at->kv, n = team > 1 ? a->Hkv : 1;
    const ptrdiff_t k = at->b * a->k_at.batch + j * a->k_at.row + (ptrdiff_t)kv * a->dh;
    const ptrdiff_t v = at->b * a->v_at.batch + j * a->v_at.row + (ptrdiff_t)kv * attn_dv(a);

    return !((a->no_content || floats_finite(a->k + k, n * a->dh)) &&
             floats_finite(a->v + v, n * attn_dv(a))) &&
           !any_row_sees(a, at, j);
}

/* Without a mask or window every key from the first to the last is seen by some row. */
static bool finds_holes(const struct attn *a, const struct block_at *at)
{
    bool found = false;

    for (int j = 0; (a->mask || a->window || a->window_of_head) && !found && j < at->cols; j++)
        found = is_hole(a, at, at->j0 + j);
    return found;
}

bool composed_next_keys(const struct attn *a, const struct block_at *at, struct range *r)
{
    r->from = r->to;
    while (at->holes && r->from < at->cols && is_hole(a, at, at->j0 + r->from))
        r->from++;
    r->to = at->holes ? r->from : at->cols;
    while (r->to < at->cols && !is_hole(a, at, at->j0 + r->to))
        r->to++;
    return r->from < r->to;
}

struct block_at composed_locate(const struct attn *a, int b, int h, int block)
{
    const int rows = composed_rows(a);
    struct block_at at = {.b = b, .h = h, .kv = h / (a->H / a->Hkv), .i0 = block * rows};

    at.n = min_int(rows, a->L - at.i0);
    const struct range keys = attn_hull(a, h, composed_team(a), at.i0, at.n);
    at.j0 = keys.from;
    at.cols = max_int(1, keys.to - keys.from); /* products need at least one column, even a hidden
                                                * one */
    find_rows(a, &at);
    at.holes = finds_holes(a, &at);
    return at;
}

void composed_zero_rows(float *x, ptrdiff_t ld, int rows, int n)
{
    for (int i = 0; i < rows; i++)
        memset(x + i * ld, 0, sizeof(*x) * (size_t)n);
}

struct block_at composed_of_head(const struct attn *a, const struct block_at *at, int h)
{
    struct block_at own = *at;

    own.h = h;
    own.kv = h / (a->H / a->Hkv);
    return own;
}

struct block_at composed_part(const struct attn *a, const struct block_at *at, int j, int cols)
{
    struct block_at part = *at;

    part.j0 += j;
    part.cols = cols;
    find_rows(a, &part);
    return part;
}

static void add_vector(float *dst, ptrdiff_t ld, const float *q, ptrdiff_t q_ld, const float *add,
                       int rows, int n)
{
    for (int i = 0; i < rows; i++)
        for (int e = 0; e < n; e++)
            dst[i * ld + e] = q[i * q_ld + e] + add[e];
}

const float *composed_queries(const struct attn *a, const struct block_at *at, const float *add,
                              float *work, ptrdiff_t *ld)
{
    const float *q = a->q + composed_query_at(at, a->q_at, a->dh);

    *ld = a->q_at.row;
    if (!add)
        return q;
    *ld = composed_query_ld(a);
    add_vector(work, *ld, q, a->q_at.row, add + (ptrdiff_t)at->h * a->dh, at->n, a->dh);
    for (int i = 0; a->bf16 && i < at->n; i++)
        for (int e = 0; e < a->dh; e++)
            work[i * *ld + e] = bf16_float(bf16_of(work[i * *ld + e]));
    return work;
}

void composed_scores(const struct engine *g, const struct attn *a, const struct block_at *at,
                     const float *add, const float *keys, ptrdiff_t key_ld, int cols, float *dst,
                     ptrdiff_t ld, float *work)
{
    ptrdiff_t q_ld;
    const float *q = composed_queries(a, at, add, work, &q_ld);

    mm_here(g, NT, at->n, cols, a->dh, a->scale, q, q_ld, keys, key_ld, 0, dst, ld);
}

void composed_sum_by_row(const struct block_at *at, const float *p, ptrdiff_t ld, float *w,
                         ptrdiff_t w_ld)
{
    for (int i = 0; i < at->n; i++) {
        const int shift = at->shift - i;                                    /* row = j + shift */
        const int first = clamp_int(1 - shift, 0, at->cols);                /* row 1 */
        const int last = clamp_int(at->n_rel - 1 - shift, first, at->cols); /* row n_rel-1 */
        const float *p_i = p + i * ld;
        float *w_i = w + i * w_ld;
        float far = 0, future = 0;

        memset(w_i, 0, sizeof(float) * (size_t)at->n_rel);
        if (at->q_step != 1 || at->k_step != 1) {
            for (int j = 0; j < at->cols; j++)
                w_i[composed_table_row(at, i, j)] += p_i[j];
            continue;
        }
        for (int j = 0; j < first; j++)
            far += p_i[j];
        for (int j = first; j < last; j++)
            w_i[j + shift] = p_i[j];
        for (int j = last; j < at->cols; j++)
            future += p_i[j];
        w_i[0] += far;
        w_i[at->n_rel - 1] += future;
    }
}

/* The common case: at most a table, a bias and one range of keys per row, all inside the
 * softmax. */
static void plain_weights(const struct engine *g, const struct attn *a, const struct block_at *at,
                          const struct space *sp)
{
    const float *k = a->k + composed_key_at(at, a->k_at, a->dh);
    const ptrdiff_t ld = composed_score_ld(a), g_ld = composed_table_ld(a);
    const ptrdiff_t table = at->h * a->rel_head + (ptrdiff_t)at->r0 * a->dh;
    const int window = attn_window(a, at->h);

    composed_scores(g, a, at, a->u, k, a->k_at.row, at->cols, sp->s, ld, sp->q);
    if (a->rel_k)
        composed_scores(g, a, at, a->w, a->rel_k + table, a->dh, at->n_rel, sp->g, g_ld, sp->q);
    g->ops.softmax(&(struct softmax){
        .s = sp->s,
        .ld = ld,
        .rows = at->n,
        .cols = at->cols,
        .lo = window ? a->M + at->i0 - window + 1 - at->j0 : 0,
        .lo_slope = window ? 1 : 0,
        .hi = a->causal ? a->M + at->i0 + 1 - at->j0 : at->cols,
        .hi_slope = a->causal ? 1 : 0,
        .rel = a->rel_k ? sp->g : NULL,
        .rel_ld = g_ld,
        .bias = a->bias ? a->bias + at->h * a->bias_head + at->r0 : NULL,
        .n_rel = at->n_rel,
        .shift = at->shift,
        .lse = a->lse ? a->lse + ((ptrdiff_t)at->b * a->H + at->h) * a->L + at->i0 : NULL,
        .threads = 1,
    });
}

void composed_weights(const struct engine *g, const struct attn *a, const struct block_at *at,
                      const struct space *sp)
{
    if (composed_plain(a))
        plain_weights(g, a, at, sp);
    else
        composed_all_weights(g, a, at, sp);
}

/* o (+)= w v: n weights per row against as many rows of values. */
static void add_values(const struct engine *g, const struct attn *a, const struct block_at *at,
                       bool add, const float *w, ptrdiff_t ld, int n, const float *v,
                       ptrdiff_t v_ld)
{
    const int dv = attn_dv(a);
    float *o = a->o + composed_query_at(at, a->o_at, dv);

    mm_here(g, NN, at->n, dv, n, 1, w, ld, v, v_ld, add ? 1 : 0, o, a->o_at.row);
}

/* The outputs of one head from its weights. */
static void outputs(const struct engine *g, const struct attn *a, const struct block_at *at,
                    const float *w, const struct space *sp)
{
    const int dv = attn_dv(a);
    const float *v = a->v + composed_key_at(at, a->v_at, dv);
    const ptrdiff_t ld = composed_score_ld(a), g_ld = composed_table_ld(a);
    const ptrdiff_t table = at->h * a->rel_head + (ptrdiff_t)at->r0 * a->dh;

    if (at->holes)
        composed_zero_rows(a->o + composed_query_at(at, a->o_at, dv), a->o_at.row, at->n, dv);
    for (struct range r = {0}; composed_next_keys(a, at, &r);)
        add_values(g, a, at, at->holes, w + r.from, ld, r.to - r.from, v + r.from * a->v_at.row,
                   a->v_at.row);
    if (a->rel_v) {
        composed_sum_by_row(at, w, ld, sp->g, g_ld);
        add_values(g, a, at, true, sp->g, g_ld, at->n_rel, a->rel_v + table, a->dh);
    }
    if (a->sink_v)
        add_values(g, a, at, true, w + at->cols, ld, a->sinks,
                   a->sink_v + (ptrdiff_t)at->h * a->sinks * dv, dv);
}

/* ---- the implementation ------------------------------------------------------------------- */

static bool accepts(const struct attn *a, const char **why_not)
{
    return attn_supports(a, ~(unsigned)(TERM_BF16 | TERM_Q8), why_not); /* products of floats */
}

static void forward(const struct engine *g, const struct attn *a, void *scratch)
{
    const int n_blocks = composed_blocks(a), team = composed_team(a);
    const int teams = a->B * a->H / team;

#pragma omp parallel for schedule(dynamic, 1) num_threads(g->threads)
    for (int item = 0; item < teams * n_blocks; item++) {
        const int block = n_blocks - 1 - item / teams; /* longest first */
        const int head = item % teams * team;
        const struct block_at at = composed_locate(a, head / a->H, head % a->H, block);
        const struct space sp = space_of(a, g->threads, omp_get_thread_num(), scratch);
        composed_weights(g, a, &at, &sp);
        for (int x = 0; x < team; x++) {
            const struct block_at own = composed_of_head(a, &at, at.h + x);
            outputs(g, a, &own, sp.w + x * composed_square(a), &sp);
        }
    }
}

const struct attn_impl attn_composed = {
    .name = "composed",
    .accepts = accepts,
    .need = need,
    .forward = forward,
    .need_backward = composed_need_backward,
    .backward = composed_backward,
};
