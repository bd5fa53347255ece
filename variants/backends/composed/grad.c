/* SPDX-License-Identifier: MIT
 *
 * Backward of composed attention, in the forward's row blocks. Per block, with P recomputed:
 *
 *   D = dO V^T (+ shift(dO rel_v^T))      G = P (D - rowsum(P D))        one row operation
 *   dV += P^T dO
 *   G <- cap' G                           dK += scale G^T (Q + u)
 *   dQ  = scale (G K + W rel_k)           W[i][r] = sum of G over the keys that share row r
 *   drel_k += scale W^T (Q + w)           drel_v += (the same sum of P)^T dO
 *
 * Further terms are in grad_terms.c. Items are (sequence, key head), or sequences where heads mix:
 * one thread accumulates a head's dK and dV in place, block after block. The terms' gradients are
 * kept per (sequence, head) and summed in that order at the end. */
#include "grad.h"

/* ---- work space --------------------------------------------------------------------------- */

/* Room for the tables' rows even if only a bias has them, since its sums by row need it. */
static ptrdiff_t table_ld(const struct attn *a)
{
    return a->R + a->Rf ? composed_ld(a->R + a->Rf) : 0;
}

/* s, p, d_w and d_p of all heads where they mix; w shares d_p, which is needed later. The slope of
 * a cap, or what `weigh` keeps, is one more. */
static size_t scores_floats(const struct attn *a)
{
    const int matrices = (attn_mixes(a) ? 4 : 2) + (a->soft_cap != 0 || a->weigh);

    return (size_t)matrices * (size_t)composed_team(a) * (size_t)composed_square(a);
}

static size_t space_floats(const struct attn *a)
{
    return (size_t)composed_rows(a) * (size_t)(table_ld(a) + composed_query_ld(a)) +
           composed_row_floats(a);
}

struct attn_need composed_need_backward(const struct attn *a, int threads)
{
    const size_t n = (size_t)threads, heads = (size_t)a->B * (size_t)a->H;

    return (struct attn_need){
        .scores_bytes = n * scores_floats(a) * sizeof(float),
        .scratch_bytes = (n * space_floats(a) + heads * attn_sums_of(a).each) * sizeof(float),
    };
}

static struct grad_space space_of(const struct attn *a, int threads, int thread, float *scratch)
{
    const ptrdiff_t scores = (ptrdiff_t)scores_floats(a);
    const ptrdiff_t team = composed_team(a) * composed_square(a);
    float *s = scratch + thread * scores;
    float *const rows = scratch + threads * scores + thread * (ptrdiff_t)space_floats(a);
    float *const rest = rows + composed_row_floats(a);
    struct grad_space sp = {
        .forward = {.s = s, .p = s, .w = s, .g = rest, .row = (double *)(void *)rows}};

    sp.forward.q = rest + composed_rows(a) * table_ld(a);
    sp.d_w = sp.d_p = s + team;
    if (attn_mixes(a)) {
        sp.forward.p = s + team;
        sp.d_w = s + 2 * team;
        sp.d_p = sp.forward.w = s + 3 * team;
    }
    if (a->soft_cap != 0 || a->weigh)
        sp.forward.slope = s + (attn_mixes(a) ? 4 : 2) * team;
    return sp;
}

/* ---- one block ---------------------------------------------------------------------------- */

/* dst [n] += column sums of x [rows, n]. */
static void composed_add_columns(float *dst, const float *x, ptrdiff_t ld, int rows, int n)
{
    for (int i = 0; i < rows; i++)
        for (int e = 0; e < n; e++)
            dst[e] += x[i * ld + e];
}

static void add_rows(float *dst, ptrdiff_t ld, const float *x, ptrdiff_t x_ld, int rows, int n)
{
    for (int i = 0; i < rows; i++)
        for (int e = 0; e < n; e++)
            dst[i * ld + e] += x[i * x_ld + e];
}

/* D without the table's part, and dV. */
static void value_grad(const struct grad_call *c, const struct block_at *at, const float *w,
                       float *d_w)
{
    const struct attn *a = c->a;
    const int dv = attn_dv(a);
    const ptrdiff_t ld = composed_score_ld(a), v_at = composed_key_at(at, a->v_at, dv);
    const float *d_o = c->d->d_o + composed_query_at(at, a->o_at, dv);

    mm_here(c->g, TN, at->cols, dv, at->n, 1, w, ld, d_o, a->o_at.row, 1, c->d->d_v + v_at,
            a->v_at.row);
    if (at->holes)
        composed_zero_rows(d_w, ld, at->n, at->cols);
    for (struct range r = {0}; composed_next_keys(a, at, &r);)
        mm_here(c->g, NT, at->n, r.to - r.from, dv, 1, d_o, a->o_at.row,
                a->v + v_at + r.from * a->v_at.row, a->v_at.row, 0, d_w + r.from, ld);
}

/* drel_v; sums [n, n_rel] receives the table's part of D by table row. */
static void value_table_grad(const struct grad_call *c, const struct block_at *at, const float *w,
                             float *sums)
{
    const struct attn *a = c->a;
    const ptrdiff_t g_ld = table_ld(a), row = (ptrdiff_t)at->r0 * a->dh;
    const float *d_o = c->d->d_o + composed_query_at(at, a->o_at, a->dh);

    composed_sum_by_row(at, w, composed_score_ld(a), sums, g_ld);
    mm_here(c->g, TN, at->n_rel, a->dh, at->n, 1, sums, g_ld, d_o, a->o_at.row, 1,
            composed_sum(c, at, SUM_REL_V) + row, a->dh);
    mm_here(c->g, NT, at->n, at->n_rel, a->dh, 1, d_o, a->o_at.row,
            a->rel_v + at->h * a->rel_head + row, a->dh, 0, sums, g_ld);
}

/* G of one head in d_w; the table's part of D is still separate. */
static void plain_scores_grad(const struct grad_call *c, const struct block_at *at,
                              const struct grad_space *sp)
{
    c->g->ops.softmax_grad(&(struct softmax_grad){.d = sp->d_w,
                                                  .p = sp->forward.p,
                                                  .ld = composed_score_ld(c->a),
                                                  .rows = at->n,
                                                  .cols = at->cols,
                                                  .rel = c->a->rel_v ? sp->forward.g : NULL,
                                                  .rel_ld = table_ld(c->a),
                                                  .n_rel = at->n_rel,
                                                  .shift = at->shift,
                                                  .threads = 1});
}

/* Only plain terms, and no gradient given for the scores. */
static bool only_plain(const struct grad_call *c)
{
    return composed_plain(c->a) && !c->d->d_scores_out;
}

/* D of one head from its weights and dO; with only plain terms, the gradient of the scores. */
static void weight_grad(const struct grad_call *c, const struct block_at *at,
                        const struct grad_space *sp, const float *w, float *d_w)
{
    const struct attn *a = c->a;
    const ptrdiff_t ld = composed_score_ld(a), g_ld = table_ld(a);

    value_grad(c, at, w, d_w);
    if (a->rel_v)
        value_table_grad(c, at, w, sp->forward.g);
    if (only_plain(c)) {
        plain_scores_grad(c, at, sp);
        return;
    }
    for (int i = 0; a->rel_v && i < at->n; i++)
        composed_add_by_row(at, i, d_w + i * ld, sp->forward.g + i * g_ld);
    if (a->sinks)
        composed_sink_values(c, at, w, d_w);
}

static void content_grad(const struct grad_call *c, const struct block_at *at, const float *d,
                         float *work)
{
    const struct attn *a = c->a;
    const ptrdiff_t ld = composed_score_ld(a), k_at = composed_key_at(at, a->k_at, a->dh);
    float *d_q = c->d->d_q + composed_query_at(at, a->q_at, a->dh);
    ptrdiff_t q_ld;
    const float *q = composed_queries(a, at, a->u, work, &q_ld);

    mm_here(c->g, TN, at->cols, a->dh, at->n, a->scale, d, ld, q, q_ld, 1, c->d->d_k + k_at,
            a->k_at.row);
    if (at->holes)
        composed_zero_rows(d_q, a->q_at.row, at->n, a->dh);
    for (struct range r = {0}; composed_next_keys(a, at, &r);)
        mm_here(c->g, NN, at->n, a->dh, r.to - r.from, a->scale, d + r.from, ld,
                a->k + k_at + r.from * a->k_at.row, a->k_at.row, at->holes, d_q, a->q_at.row);
    if (a->sink_k)
        composed_sink_keys(c, at, d, work);
    composed_add_columns(composed_sum(c, at, SUM_U), d_q, a->q_at.row, at->n, a->dh);
}

static void bias_grad(const struct grad_call *c, const struct block_at *at, const float *d,
                      float *sums)
{
    const ptrdiff_t g_ld = table_ld(c->a);

    composed_sum_by_row(at, d, composed_score_ld(c->a), sums, g_ld);
    composed_add_columns(composed_sum(c, at, SUM_BIAS) + at->r0, sums, g_ld, at->n, at->n_rel);
}

static void position_grad(const struct grad_call *c, const struct block_at *at, const float *d,
                          const struct space *sp)
{
    const struct attn *a = c->a;
    const ptrdiff_t g_ld = table_ld(a), w_ld = composed_query_ld(a);
    const ptrdiff_t row = (ptrdiff_t)at->r0 * a->dh;
    float *d_q = c->d->d_q + composed_query_at(at, a->q_at, a->dh), *sums = sp->g, *work = sp->q;
    ptrdiff_t q_ld;

    composed_sum_by_row(at, d, composed_score_ld(a), sums, g_ld);
    const float *q = composed_queries(a, at, a->w, work, &q_ld);
    mm_here(c->g, TN, at->n_rel, a->dh, at->n, a->scale, sums, g_ld, q, q_ld, 1,
            composed_sum(c, at, SUM_REL_K) + row, a->dh);
    mm_here(c->g, NN, at->n, a->dh, at->n_rel, a->scale, sums, g_ld,
            a->rel_k + at->h * a->rel_head + row, a->dh, 0, work, w_ld);
    composed_add_columns(composed_sum(c, at, SUM_W), work, w_ld, at->n, a->dh);
    add_rows(d_q, a->q_at.row, work, w_ld, at->n, a->dh);
}

/* From the gradients of the capped scores to those of the products. */
static void through_cap(const struct attn *a, const struct block_at *at, const float *slope,
                        float *d)
{
    const ptrdiff_t ld = composed_score_ld(a);

    for (int i = 0; i < at->n; i++)
        for (int j = 0; j < at->cols; j++)
            d[i * ld + j] *= slope[i * ld + j];
}

/* ---- one block of a team, one item, then all ---------------------------------------------- */

static void run_block(const struct grad_call *c, const struct block_at *at,
                      const struct grad_space *sp)
{
    const struct attn *a = c->a;
    const ptrdiff_t square = composed_square(a);

    composed_weights(c->g, a, at, &sp->forward);
    for (int x = 0; x < composed_team(a); x++) {
        const struct block_at own = composed_of_head(a, at, at->h + x);
        weight_grad(c, &own, sp, sp->forward.w + x * square, sp->d_w + x * square);
    }
    if (!only_plain(c))
        composed_all_scores_grad(c, at, sp);
    for (int x = 0; x < composed_team(a); x++) {
        const struct block_at own = composed_of_head(a, at, at->h + x);
        float *d = sp->d_w + x * square;
        if (a->bias)
            bias_grad(c, &own, d, sp->forward.g);
        if (a->sink_logit)
            composed_add_columns(composed_sum(c, &own, SUM_SINK_LOGIT), d + own.cols,
                                 composed_score_ld(a), own.n, a->sinks);
        if (a->soft_cap != 0)
            through_cap(a, &own, sp->forward.slope + x * square, d);
        if (!a->no_content)
            content_grad(c, &own, d, sp->forward.q);
        if (a->rel_k)
            position_grad(c, &own, d, &sp->forward);
        if (a->rel_q)
            composed_rel_q_grad(c, &own, d, sp->forward.g);
    }
}

static void zero_head(float *x, struct stride at, int b, int head, int rows, int width)
{
    for (int j = 0; j < rows; j++)
        memset(x + b * at.batch + j * at.row + (ptrdiff_t)head * width, 0,
               sizeof(float) * (size_t)width);
}

/* Key heads [kv, kv_end) of a sequence, and the query heads that share them. */
static void run_item(const struct grad_call *c, int b, int kv, int kv_end,
                     const struct grad_space *sp)
{
    const struct attn *a = c->a;
    const int group = a->H / a->Hkv, n_blocks = composed_blocks(a), team = composed_team(a);

    for (int head = kv; head < kv_end; head++) {
        if (!a->no_content)
            zero_head(c->d->d_k, a->k_at, b, head, attn_keys(a), a->dh);
        zero_head(c->d->d_v, a->v_at, b, head, attn_keys(a), attn_dv(a));
    }
    memset(c->all + (size_t)(b * a->H + kv * group) * c->sums->each, 0,
           sizeof(float) * c->sums->each * (size_t)((kv_end - kv) * group));
    for (int h = kv * group; h < kv_end * group; h += team)
        for (int block = 0; block < n_blocks; block++) {
            const struct block_at at = composed_locate(a, b, h, block);
            run_block(c, &at, sp);
        }
}

/* dst [H or 1, n] (heads `head` floats apart) += the sums at `from` of every sequence and head,
 * which are accumulated in the first of them. */
static void add_sums(const struct engine *g, const struct attn *a, float *dst, ptrdiff_t head,
                     float *from, size_t each, size_t n)
{
    const int owners = head ? a->H : 1, sharing = head ? 1 : a->H;

    if (!dst || !n)
        return;
#pragma omp parallel for num_threads(g->threads)
    for (int h = 0; h < owners; h++) {
        float *sum = from + (size_t)h * each;
        for (int other = 1; other < a->B * sharing; other++) {
            const float *x = sum + (size_t)(other / sharing * a->H + other % sharing) * each;
            for (size_t e = 0; e < n; e++)
                sum[e] += x[e];
        }
        for (size_t e = 0; e < n; e++)
            dst[h * head + (ptrdiff_t)e] += sum[e];
    }
}

void composed_backward(const struct engine *g, const struct attn *a, const struct attn_grad *d,
                       void *scratch)
{
    const size_t threads = (size_t)g->threads;
    const struct attn_sums sums = attn_sums_of(a);
    const int kvs = attn_mixes(a) ? a->Hkv : 1, units = a->Hkv / kvs;
    const int parts = attn_parts(a, d, units);
    struct attn again = *a; /* recomputed, but not output again */
    float *all = (float *)scratch + threads * (scores_floats(a) + space_floats(a));
    const struct grad_call call = {.g = g, .a = &again, .d = d, .sums = &sums, .all = all};

    attn_grad_check(a, d);
    again.lse = again.scores_out = NULL;
#pragma omp parallel for schedule(dynamic, 1) num_threads(g->threads)
    for (int part = 0; part < parts; part++) {
        const struct grad_space sp = space_of(a, g->threads, omp_get_thread_num(), scratch);
        const struct attn_part p = attn_part_at(a, d, units, part);
        for (int b = p.b0; b < p.b1; b++)
            for (int u = p.u0; u < p.u1; u++)
                run_item(&call, b, u * kvs, (u + 1) * kvs, &sp);
    }
    for (int which = 0; which < SUM_COUNT; which++)
        add_sums(g, a, attn_sum_target(d, which), sums.head[which], all + sums.at[which], sums.each,
                 sums.n[which]);
}
