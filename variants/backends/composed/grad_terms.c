/* SPDX-License-Identifier: MIT
 *
 * Gradients of composed attention's further terms: scores added per pair, mixing of heads, sinks,
 * and tables that are multiplied with keys. */
#include "grad.h"

/* ---- mixing ------------------------------------------------------------------------------- */

/* Row g of the matrix' gradient: sums of d_new[g] (.) old[h] over the block. */
static void mix_grad(const struct grad_call *c, const struct block_at *at, enum attn_sum which,
                     const float *d_new, const float *old, int cols)
{
    const struct attn *a = c->a;
    const ptrdiff_t ld = composed_score_ld(a), square = composed_square(a);

    for (int x = 0; x < a->H * a->H; x++) {
        const int g = x / a->H, h = x % a->H;
        const struct block_at own = composed_of_head(a, at, g);
        double sum = 0;
        for (int i = 0; i < at->n; i++)
            for (int j = 0; j < cols; j++) {
                const double d = (double)d_new[g * square + i * ld + j];
                /* A score that is added to a hidden pair may be any bits: it counts 0 times. */
                sum += d == 0 ? 0 : d * (double)old[h * square + i * ld + j];
            }
        composed_sum(c, &own, which)[h] += (float)sum;
    }
}

/* From d_w to d_p. */
static void unmix_probabilities(const struct grad_call *c, const struct block_at *at,
                                const struct grad_space *sp)
{
    const int cols = at->cols + c->a->sinks;

    if (c->a->mix_probs)
        mix_grad(c, at, SUM_MIX_PROBS, sp->d_w, sp->forward.p, cols);
    composed_mix(c->a, at, c->a->mix_probs, true, sp->d_p, sp->d_w, cols);
}

/* From d_p to d_w. The sinks' columns were not mixed and are copied. */
static void unmix_scores(const struct grad_call *c, const struct block_at *at,
                         const struct grad_space *sp)
{
    const struct attn *a = c->a;
    const ptrdiff_t ld = composed_score_ld(a), square = composed_square(a);

    if (a->mix_logits)
        mix_grad(c, at, SUM_MIX_LOGITS, sp->d_p, sp->forward.s, at->cols);
    composed_mix(a, at, a->mix_logits, true, sp->d_w, sp->d_p, at->cols);
    for (int x = 0; x < a->H * at->n; x++) {
        const ptrdiff_t sinks = x / at->n * square + x % at->n * ld + at->cols;
        memcpy(sp->d_w + sinks, sp->d_p + sinks, sizeof(float) * (size_t)a->sinks);
    }
}

/* ---- scores ------------------------------------------------------------------------------- */

static void weigh_grad(const struct attn *a, double *row, const float *p, const float *keep,
                       float *d, int n)
{
    for (int j = 0; j < n; j++) {
        row[j] = (double)p[j];
        row[n + j] = (double)keep[j];
        row[2 * n + j] = (double)d[j];
    }
    a->weigh->backward(row + 2 * n, row, row + n, n);
    for (int j = 0; j < n; j++)
        d[j] = (float)row[2 * n + j];
}

/* d of one head from gradients of probabilities to those of scores; 0 where hidden. */
static void scores_grad(const struct grad_call *c, const struct block_at *at, double *row,
                        const float *p, const float *keep, float *d)
{
    const struct attn *a = c->a;
    const ptrdiff_t ld = composed_score_ld(a);
    const struct sight sight = attn_sight(a, at->h);
    const float gain = attn_gain(a), *arriving = c->d->d_scores_out;

    for (int i = 0; i < at->n && a->weigh; i++)
        weigh_grad(a, row, p + i * ld, keep + i * ld, d + i * ld, at->cols);
    if (!a->weigh)
        c->g->ops.softmax_grad(&(struct softmax_grad){
            .d = d, .p = p, .ld = ld, .rows = at->n, .cols = at->cols + a->sinks, .threads = 1});
    for (int i = 0; i < at->n && (a->gain != 0 || arriving); i++) {
        const ptrdiff_t query = ((ptrdiff_t)at->b * a->H + at->h) * a->L + at->i0 + i;
        float *own = d + i * ld - at->j0;
        for (struct range r = {0}; sight_next(&sight, at->i0 + i, 1, &r);)
            for (int j = r.from; j < r.to; j++)
                own[j] = gain * own[j] + (arriving ? arriving[query * attn_keys(a) + j] : 0);
    }
}

/* d's contribution to d_add. If d_add is d_scores_out, d includes it already. */
static void add_grad(const struct grad_call *c, const struct block_at *at, const float *d)
{
    const struct attn *a = c->a;
    const bool has_it = c->d->d_add == c->d->d_scores_out;

    for (int i = 0; i < at->n; i++) {
        float *to = c->d->d_add + attn_dense_at(&a->add, at->b, at->h, at->i0 + i);
        const float *from = d + i * composed_score_ld(a) - at->j0;
        const int team = composed_team(a), first = at->h / team * team;
        for (struct range r = {0}; attn_next_keys(a, first, team, at->i0 + i, &r);)
            for (int j = r.from; j < r.to; j++)
                to[j] = has_it ? from[j] : to[j] + from[j];
    }
}

/* d's contribution to d_fade. Both sums of the same numbers, in double: what is summed over keys
 * before position t then cancels but for the pairs on either side of it. */
static void fade_grad(const struct grad_call *c, const struct block_at *at, const float *d)
{
    const struct attn *a = c->a;
    double *const head = c->d->d_fade + attn_fade_at(a, at->b, at->h);

    for (int i = 0; i < at->n; i++) {
        const float *const from = d + i * composed_score_ld(a);
        double *const keys = head + at->j0;
        double sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int j = 0; j < at->cols; j++) {
            sum += (double)from[j];
            keys[j] -= (double)from[j];
        }
        head[a->M + at->i0 + i] += sum;
    }
}

void composed_all_scores_grad(const struct grad_call *c, const struct block_at *at,
                              const struct grad_space *sp)
{
    const struct attn *a = c->a;
    const ptrdiff_t square = composed_square(a);
    const int team = composed_team(a);

    if (attn_mixes(a))
        unmix_probabilities(c, at, sp);
    for (int x = 0; x < team; x++) {
        const struct block_at own = composed_of_head(a, at, at->h + x);
        scores_grad(c, &own, sp->forward.row, sp->forward.p + x * square,
                    composed_slope(&sp->forward, x * square), sp->d_p + x * square);
    }
    if (attn_mixes(a))
        unmix_scores(c, at, sp);
    for (int x = 0; x < team; x++) {
        const struct block_at own = composed_of_head(a, at, at->h + x);
        if (a->add.at && c->d->d_add)
            add_grad(c, &own, sp->d_w + x * square);
        if (c->d->d_fade)
            fade_grad(c, &own, sp->d_w + x * square);
    }
}

/* ---- sinks -------------------------------------------------------------------------------- */

void composed_sink_values(const struct grad_call *c, const struct block_at *at, const float *w,
                          float *d_w)
{
    const struct attn *a = c->a;
    const ptrdiff_t ld = composed_score_ld(a);
    const int dv = attn_dv(a);
    const float *d_o = c->d->d_o + composed_query_at(at, a->o_at, dv);

    if (!a->sink_v) {
        composed_zero_rows(d_w + at->cols, ld, at->n, a->sinks);
        return;
    }
    mm_here(c->g, TN, a->sinks, dv, at->n, 1, w + at->cols, ld, d_o, a->o_at.row, 1,
            composed_sum(c, at, SUM_SINK_V), dv);
    mm_here(c->g, NT, at->n, a->sinks, dv, 1, d_o, a->o_at.row,
            a->sink_v + (ptrdiff_t)at->h * a->sinks * dv, dv, 0, d_w + at->cols, ld);
}

void composed_sink_keys(const struct grad_call *c, const struct block_at *at, const float *d,
                        float *work)
{
    const struct attn *a = c->a;
    const ptrdiff_t ld = composed_score_ld(a);
    ptrdiff_t q_ld;
    const float *q = composed_queries(a, at, a->u, work, &q_ld);

    mm_here(c->g, TN, a->sinks, a->dh, at->n, a->scale, d + at->cols, ld, q, q_ld, 1,
            composed_sum(c, at, SUM_SINK_K), a->dh);
    mm_here(c->g, NN, at->n, a->dh, a->sinks, a->scale, d + at->cols, ld,
            a->sink_k + (ptrdiff_t)at->h * a->sinks * a->dh, a->dh, 1,
            c->d->d_q + composed_query_at(at, a->q_at, a->dh), a->q_at.row);
}

/* ---- tables multiplied with keys ---------------------------------------------------------- */

/* sums [keys, n_rel]: of d over the queries whose distance to the key has that row. */
static void sum_by_key(const struct attn *a, const struct block_at *part, const float *d,
                       float *sums)
{
    const ptrdiff_t ld = composed_score_ld(a), sums_ld = composed_table_ld(a);

    composed_zero_rows(sums, sums_ld, part->cols, part->n_rel);
    for (int i = 0; i < part->n; i++)
        for (int j = 0; j < part->cols; j++)
            sums[j * sums_ld + composed_table_row(part, i, j)] += d[i * ld + j];
}

void composed_rel_q_grad(const struct grad_call *c, const struct block_at *at, const float *d,
                         float *work)
{
    const struct attn *a = c->a;
    const ptrdiff_t sums_ld = composed_table_ld(a);
    const int keys = composed_rows(a);

    for (int j = 0; j < at->cols; j += keys) {
        const struct block_at part = composed_part(a, at, j, min_int(keys, at->cols - j));
        const ptrdiff_t row = (ptrdiff_t)part.r0 * a->dh;
        const ptrdiff_t k_at = composed_key_at(&part, a->k_at, a->dh);
        sum_by_key(a, &part, d + j, work);
        for (struct range r = {0}; composed_next_keys(a, &part, &r);)
            mm_here(c->g, TN, part.n_rel, a->dh, r.to - r.from, a->scale, work + r.from * sums_ld,
                    sums_ld, a->k + k_at + r.from * a->k_at.row, a->k_at.row, 1,
                    composed_sum(c, at, SUM_REL_Q) + row, a->dh);
        mm_here(c->g, NN, part.cols, a->dh, part.n_rel, a->scale, work, sums_ld,
                a->rel_q + at->h * a->rel_head + row, a->dh, 1, c->d->d_k + k_at, a->k_at.row);
    }
}
