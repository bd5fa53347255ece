/* SPDX-License-Identifier: MIT
 *
 * Probabilities of composed attention with more than a table and a range of keys: the scores of a
 * block are summed term by term, hidden pairs become -infinity, sinks are further columns, and
 * heads that mix are computed together. */
#include "composed.h"

bool composed_plain(const struct attn *a) { return !(attn_terms(a) & ~(unsigned)TERMS_PLAIN); }

/* ---- scores ------------------------------------------------------------------------------- */

void composed_add_by_row(const struct block_at *at, int i, float *s, const float *table)
{
    if (at->q_step != 1 || at->k_step != 1) {
        for (int j = 0; j < at->cols; j++)
            s[j] += table[composed_table_row(at, i, j)];
        return;
    }
    const int shift = at->shift - i;                                    /* row = j + shift */
    const int first = clamp_int(1 - shift, 0, at->cols);                /* row 1 */
    const int last = clamp_int(at->n_rel - 1 - shift, first, at->cols); /* row n_rel-1 */
    for (int j = 0; j < first; j++)
        s[j] += table[0];
    for (int j = first; j < last; j++)
        s[j] += table[j + shift];
    for (int j = last; j < at->cols; j++)
        s[j] += table[at->n_rel - 1];
}

static void add_relative_keys(const struct engine *g, const struct attn *a,
                              const struct block_at *at, const struct space *sp, float *s)
{
    const ptrdiff_t ld = composed_score_ld(a), g_ld = composed_table_ld(a);
    const float *table = a->rel_k + at->h * a->rel_head + (ptrdiff_t)at->r0 * a->dh;

    composed_scores(g, a, at, a->w, table, a->dh, at->n_rel, sp->g, g_ld, sp->q);
    for (int i = 0; i < at->n; i++)
        composed_add_by_row(at, i, s + i * ld, sp->g + i * g_ld);
}

/* s += scale k_j . rel_q[dist]: products of as many keys as there are rows at a time, so that they
 * need only the table rows near them. */
static void add_relative_queries(const struct engine *g, const struct attn *a,
                                 const struct block_at *at, const struct space *sp, float *s)
{
    const ptrdiff_t ld = composed_score_ld(a), g_ld = composed_table_ld(a);
    const int keys = composed_rows(a);

    for (int j = 0; j < at->cols; j += keys) {
        const struct block_at part = composed_part(a, at, j, min_int(keys, at->cols - j));
        mm_here(g, NT, part.cols, part.n_rel, a->dh, a->scale,
                a->k + composed_key_at(&part, a->k_at, a->dh), a->k_at.row,
                a->rel_q + at->h * a->rel_head + (ptrdiff_t)part.r0 * a->dh, a->dh, 0, sp->g, g_ld);
        for (int i = 0; i < part.n; i++)
            for (int x = 0; x < part.cols; x++)
                s[i * ld + j + x] += sp->g[x * g_ld + composed_table_row(&part, i, x)];
    }
}

/* n products become cap of them; `slope` receives its derivative unless it is NULL. */
static void cap(float *s, float *slope, int n, float most)
{
    for (int j = 0; j < n; j++) {
        const float t = tanhf(s[j] / most);
        s[j] = most * t;
        if (slope)
            slope[j] = 1 - t * t;
    }
}

/* The differences are formed in double: the sums themselves may be large. */
static void add_fade(const struct attn *a, const struct block_at *at, int i, float *s)
{
    const double *const head = a->fade.at + attn_fade_at(a, at->b, at->h);
    const double own = head[a->M + at->i0 + i];

#pragma omp simd
    for (int j = 0; j < at->cols; j++)
        s[j] += (float)(own - head[at->j0 + j]);
}

/* The scores of keys that products do not read: other heads and a cap's slope multiply them by 0. */
static void clear_holes(const struct attn *a, const struct block_at *at, float *s)
{
    const ptrdiff_t ld = composed_score_ld(a);
    int done = 0;

    for (struct range r = {0}; composed_next_keys(a, at, &r); done = r.to)
        composed_zero_rows(s + done, ld, at->n, r.from - done);
    composed_zero_rows(s + done, ld, at->n, at->cols - done);
}

/* The scores of one head, without hiding. */
static void head_scores(const struct engine *g, const struct attn *a, const struct block_at *at,
                        const struct space *sp, float *s, float *slope)
{
    const ptrdiff_t ld = composed_score_ld(a);

    if (!a->no_content) /* else there may be no keys */
        composed_scores(g, a, at, a->u, a->k + composed_key_at(at, a->k_at, a->dh), a->k_at.row,
                        at->cols, s, ld, sp->q);
    else
        composed_zero_rows(s, ld, at->n, at->cols);
    if (a->rel_k)
        add_relative_keys(g, a, at, sp, s);
    if (a->rel_q)
        add_relative_queries(g, a, at, sp, s);
    if (at->holes)
        clear_holes(a, at, s);
    for (int i = 0; i < at->n; i++) {
        if (a->soft_cap != 0)
            cap(s + i * ld, slope ? slope + i * ld : NULL, at->cols, a->soft_cap);
        if (a->bias)
            composed_add_by_row(at, i, s + i * ld, a->bias + at->h * a->bias_head + at->r0);
        if (a->add.at) {
            const float *add = a->add.at + attn_dense_at(&a->add, at->b, at->h, at->i0 + i);
            for (int j = 0; j < at->cols; j++)
                s[i * ld + j] += add[at->j0 + j];
        }
        if (a->fade.at)
            add_fade(a, at, i, s + i * ld);
    }
}

/* ---- from scores to probabilities --------------------------------------------------------- */

static void fill(float *x, int n, float value)
{
    for (int j = 0; j < n; j++)
        x[j] = value;
}

/* One row: output the scores of visible pairs, hide the others. */
static void hide(const struct attn *a, const struct block_at *at, int i, float *s)
{
    const struct sight sight = attn_sight(a, at->h);
    const ptrdiff_t row = ((ptrdiff_t)at->b * a->H + at->h) * a->L + at->i0 + i;
    const float gain = attn_gain(a);
    int done = at->j0;

    for (struct range r = {0}; sight_next(&sight, at->i0 + i, 1, &r); done = r.to) {
        float *seen = s + (r.from - at->j0);
        fill(s + (done - at->j0), r.from - done, -INFINITY);
        if (a->scores_out)
            memcpy(a->scores_out + row * attn_keys(a) + r.from, seen,
                   sizeof(*s) * (size_t)(r.to - r.from));
        for (int j = 0; a->gain != 0 && j < r.to - r.from; j++)
            seen[j] *= gain;
    }
    fill(s + (done - at->j0), at->cols - (done - at->j0), -INFINITY);
}

/* The scores of one head's sinks, in the columns from s on. */
static void sink_scores(const struct engine *g, const struct attn *a, const struct block_at *at,
                        const struct space *sp, float *s)
{
    const ptrdiff_t ld = composed_score_ld(a), first = (ptrdiff_t)at->h * a->sinks;

    if (a->sink_k)
        composed_scores(g, a, at, a->u, a->sink_k + first * a->dh, a->dh, a->sinks, s, ld, sp->q);
    for (int i = 0; i < at->n && a->sink_logit; i++)
        for (int n = 0; n < a->sinks; n++)
            s[i * ld + n] = (a->sink_k ? s[i * ld + n] : 0) + a->sink_logit[first + n];
}

/* One row of n scores; keep: NULL = not wanted. */
static void weigh_row(const struct attn *a, double *row, float *p, float *keep, int n)
{
    double *const kept = row + n;

    for (int j = 0; j < n; j++)
        row[j] = (double)p[j];
    a->weigh->forward(row, kept, n);
    for (int j = 0; j < n; j++)
        p[j] = (float)row[j];
    for (int j = 0; keep && j < n; j++)
        keep[j] = (float)kept[j];
}

/* p of one head from its scores. */
static void softmax_head(const struct engine *g, const struct attn *a, const struct block_at *at,
                         const struct space *sp, float *p, float *keep)
{
    const ptrdiff_t ld = composed_score_ld(a);

    for (int i = 0; i < at->n; i++)
        hide(a, at, i, p + i * ld);
    for (int i = 0; i < at->n && a->weigh; i++)
        weigh_row(a, sp->row, p + i * ld, keep ? keep + i * ld : NULL, at->cols);
    if (a->weigh)
        return;
    sink_scores(g, a, at, sp, p + at->cols);
    g->ops.softmax(&(struct softmax){
        .s = p,
        .ld = ld,
        .rows = at->n,
        .cols = at->cols + a->sinks,
        .hi = at->cols + a->sinks,
        .lse = a->lse ? a->lse + ((ptrdiff_t)at->b * a->H + at->h) * a->L + at->i0 : NULL,
        .threads = 1,
    });
}

void composed_mix(const struct attn *a, const struct block_at *at, const float *matrix,
                  bool transposed, float *to, const float *from, int cols)
{
    const ptrdiff_t ld = composed_score_ld(a), square = composed_square(a);

    for (int x = 0; x < a->H * at->n; x++) {
        const int g = x / at->n, i = x % at->n;
        float *dst = to + g * square + i * ld;
        if (!matrix) {
            memcpy(dst, from + g * square + i * ld, sizeof(*dst) * (size_t)cols);
            continue;
        }
        memset(dst, 0, sizeof(*dst) * (size_t)cols);
        for (int h = 0; h < a->H; h++) {
            const float m = matrix[transposed ? h * a->H + g : g * a->H + h];
            const float *src = from + h * square + i * ld;
            for (int j = 0; j < cols; j++)
                dst[j] += m * src[j];
        }
    }
}

void composed_all_weights(const struct engine *g, const struct attn *a, const struct block_at *at,
                          const struct space *sp)
{
    const int team = composed_team(a);
    const ptrdiff_t square = composed_square(a);

    for (int x = 0; x < team; x++) {
        const struct block_at own = composed_of_head(a, at, at->h + x);
        head_scores(g, a, &own, sp, sp->s + x * square, composed_slope(sp, x * square));
    }
    if (attn_mixes(a))
        composed_mix(a, at, a->mix_logits, false, sp->p, sp->s, at->cols);
    for (int x = 0; x < team; x++) {
        const struct block_at own = composed_of_head(a, at, at->h + x);
        softmax_head(g, a, &own, sp, sp->p + x * square, composed_slope(sp, x * square));
    }
    if (attn_mixes(a))
        composed_mix(a, at, a->mix_probs, false, sp->w, sp->p, at->cols + a->sinks);
}
