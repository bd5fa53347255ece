/* SPDX-License-Identifier: MIT
 *
 * Reference attention, backward: the equations as they stand, with double accumulators. Work is
 * divided by (sequence, key head), or by sequence where heads mix; sums over those are formed
 * afterwards in a fixed order, so results do not depend on the number of threads. */
#include "ref.h"
#include "variants/backends/attn_sums.h"

/* One item: the query heads that share a key head, or all heads where they mix. */
struct item {
    const struct attn *a;
    const struct attn_grad *d;
    struct attn_sums sums;
    double *all;    /* sums of every (sequence, head) */
    int b, kv, kvs; /* sequence, first key/value head, number of key/value heads */
    double *row;    /* ref_row_doubles: one query's row */
    double *d_w;    /* [heads of the row, K + sinks] gradients of the weights of the values; finally
                     * those of the scores before mixing */
    double *d_p;    /* [heads of the row, K + sinks] gradients of probabilities, then of the scores
                     * after mixing; d_w itself if nothing mixes */
    double *d_k, *d_v; /* [kvs, K, dh] [kvs, K, dv] */
};

static double *sum_at(const struct item *t, int h, enum attn_sum which)
{
    return t->all + (size_t)(t->b * t->a->H + h) * t->sums.each + t->sums.at[which];
}

/* ---- work space --------------------------------------------------------------------------- */

static int key_heads(const struct attn *a) { return attn_mixes(a) ? a->Hkv : 1; }

/* For d_k or d_v of the item's key heads, which are `width` wide. */
static size_t key_doubles(const struct attn *a, int width)
{
    return (size_t)key_heads(a) * (size_t)attn_keys(a) * (size_t)width;
}

static size_t kv_doubles(const struct attn *a)
{
    return key_doubles(a, a->dh) + key_doubles(a, attn_dv(a));
}

static size_t row_doubles(const struct attn *a)
{
    return (attn_mixes(a) ? (size_t)a->H : 1) * (size_t)ref_ld(a);
}

static size_t work_doubles(const struct attn *a)
{
    const size_t gradients = (attn_mixes(a) ? 2 : 1) * row_doubles(a);

    return ref_row_doubles(a) + gradients + kv_doubles(a);
}

struct attn_need ref_need_backward(const struct attn *a, int threads)
{
    const size_t heads = (size_t)a->B * (size_t)a->H, sums = attn_sums_of(a).each;

    return (struct attn_need){.scratch_bytes = sizeof(double) *
                                               ((size_t)threads * work_doubles(a) + heads * sums)};
}

/* Lay out one thread's work space. */
static void lay_out(struct item *t, double *at)
{
    const struct attn *a = t->a;

    t->row = at;
    t->d_w = t->d_p = at + ref_row_doubles(a);
    if (attn_mixes(a))
        t->d_p += row_doubles(a);
    t->d_k = t->d_p + row_doubles(a);
    t->d_v = t->d_k + key_doubles(a, a->dh);
}

/* ---- one query, back to its scores -------------------------------------------------------- */

/* d_w_j = dO_i . (v_j + rel_v[dist]) */
static void weight_grad(const struct item *t, const struct ref_row *row, int i)
{
    const struct attn *a = t->a;
    double *d_o_wide = row->wide;

    for (int x = 0; x < row->heads; x++) {
        const int h = row->h + x;
        const int dv = attn_dv(a);
        const float *d_o = t->d->d_o + t->b * a->o_at.batch + i * a->o_at.row + (ptrdiff_t)h * dv;
        for (int e = 0; e < dv; e++)
            d_o_wide[e] = (double)d_o[e];
        for (struct range r = {0}; ref_next(a, row->h, row->heads, i, &r);)
            for (int j = r.from; j < r.to; j++) {
                const struct ref_value v = ref_value_at(a, t->b, h, i, j, 0);
                t->d_w[x * ref_ld(a) + j] = (v.self ? ref_dot(d_o_wide, v.self, dv) : 0) +
                                            (v.rel ? ref_dot(d_o_wide, v.rel, dv) : 0);
            }
    }
}

/* Back through new[g] = sum over h of matrix[g][h] old[h], from gradients of `new` to those of
 * `old`; a copy if there is no matrix. Sinks take no part in the mixing of scores. */
static void unmix(const struct item *t, const float *matrix, enum attn_sum which, double *d_old,
                  const double *d_new, const double *old, int i)
{
    const struct attn *a = t->a;
    const int K = attn_keys(a), mixed = matrix ? which == SUM_MIX_PROBS ? K + a->sinks : K : 0;
    const ptrdiff_t ld = ref_ld(a);

    for (struct range r = {0}; ref_next(a, 0, a->H, i, &r);)
        for (int h = 0; h < a->H; h++)
            for (int j = r.from; j < r.to; j++) {
                double sum = 0;
                for (int g = 0; matrix && j < mixed && g < a->H; g++) {
                    sum += (double)matrix[g * a->H + h] * d_new[g * ld + j];
                    sum_at(t, g, which)[h] += d_new[g * ld + j] * old[h * ld + j];
                }
                d_old[h * ld + j] = j < mixed ? sum : d_new[h * ld + j];
            }
}

/* Turn d_p of head h from dA into G = gain p (dA - delta) + d_scores_out; 0 where hidden. */
static void score_grad(const struct item *t, int h, int i, const double *p, const double *keep,
                       double *d_p)
{
    const struct attn *a = t->a;
    const int K = attn_keys(a);
    const float *arriving = t->d->d_scores_out;
    double delta = 0;
    int done = 0;

    if (arriving)
        arriving += (((ptrdiff_t)t->b * a->H + h) * a->L + i) * K;
    for (struct range r = {0}; ref_next(a, h, 1, i, &r); done = r.to) {
        memset(d_p + done, 0, sizeof(*d_p) * (size_t)(r.from - done));
        for (int j = r.from; j < r.to; j++)
            delta += p[j] * d_p[j];
    }
    memset(d_p + done, 0, sizeof(*d_p) * (size_t)(ref_ld(a) - done));
    if (a->weigh)
        a->weigh->backward(d_p, p, keep, K);
    for (struct range r = {0}; ref_next(a, h, 1, i, &r);)
        for (int j = r.from; j < r.to; j++) {
            d_p[j] = a->weigh ? d_p[j] : p[j] * (d_p[j] - delta);
            if (j < K)
                d_p[j] = (double)attn_gain(a) * d_p[j] + (arriving ? (double)arriving[j] : 0);
        }
}

/* ---- one query, from its scores to the operands ------------------------------------------- */

/* Terms added per pair; g is the gradient of the scores. */
static void pair_grad(const struct item *t, const struct ref_row *row, int h, int i,
                      const double *g)
{
    const struct attn *a = t->a;
    const ptrdiff_t at = attn_dense_at(&a->add, t->b, h, i);
    float *add = t->d->d_add && a->add.at ? t->d->d_add + at : NULL;
    const double own = t->d->d_add == t->d->d_scores_out ? 0 : 1; /* otherwise g includes it */
    double *const fade = t->d->d_fade ? t->d->d_fade + attn_fade_at(a, t->b, h) : NULL;

    for (struct range r = {0}; attn_next_keys(a, row->h, row->heads, i, &r);)
        for (int j = r.from; j < r.to; j++) {
            if (a->bias)
                sum_at(t, h, SUM_BIAS)[attn_table_row(a, i, j)] += g[j];
            if (fade) {
                fade[a->M + i] += g[j];
                fade[j] -= g[j];
            }
            if (add)
                add[j] = (float)(own * (double)add[j] + g[j]);
        }
}

/* Gradient of one element of query i, by content and by position. */
struct received {
    double content[REF_PART], position[REF_PART];
};

/* The value of key or sink j for query i, of weight w. */
static void value_grad(const struct item *t, int h, int i, int j, double w)
{
    const struct attn *a = t->a;
    const int kv = h / (a->H / a->Hkv), dv = attn_dv(a), sink = j - attn_keys(a);
    const float *d_o = t->d->d_o + t->b * a->o_at.batch + i * a->o_at.row + (ptrdiff_t)h * dv;

    if (sink >= 0) {
        if (a->sink_v)
            ref_add(sum_at(t, h, SUM_SINK_V) + (ptrdiff_t)sink * dv, w, d_o, dv);
        return;
    }
    ref_add(t->d_v + ((ptrdiff_t)(kv - t->kv) * attn_keys(a) + j) * dv, w, d_o, dv);
    if (a->rel_v)
        ref_add(sum_at(t, h, SUM_REL_V) + (ptrdiff_t)attn_table_row(a, i, j) * dv, w, d_o, dv);
}

/* Elements [e0, e0+n) of query i and key j; x = scale cap' g. */
static void key_grad(const struct item *t, int h, int i, int j, double x, int e0, int n,
                     struct received *to)
{
    const struct attn *a = t->a;
    const int kv = h / (a->H / a->Hkv);
    const ptrdiff_t he = (ptrdiff_t)h * a->dh + e0;
    const ptrdiff_t table = (ptrdiff_t)attn_table_row(a, i, j) * a->dh + e0;
    const ptrdiff_t key = ((ptrdiff_t)(kv - t->kv) * attn_keys(a) + j) * a->dh + e0;
    double *d_k = t->d_k + key;
    double *rel_k = sum_at(t, h, SUM_REL_K) + table, *rel_q = sum_at(t, h, SUM_REL_Q) + table;
    const float *q = a->q + t->b * a->q_at.batch + i * a->q_at.row + he;
    const float *k = a->k + t->b * a->k_at.batch + j * a->k_at.row + (ptrdiff_t)kv * a->dh + e0;
    ref_add(d_k, x, q, n);
    if (a->u)
        ref_add(d_k, x, a->u + he, n);
    ref_add(to->content, x, k, n);
    if (a->rel_k) {
        ref_add(rel_k, x, q, n);
        ref_add(to->position, x, a->rel_k + h * a->rel_head + table, n);
    }
    if (a->rel_k && a->w)
        ref_add(rel_k, x, a->w + he, n);
    if (a->rel_q) {
        ref_add(rel_q, x, k, n);
        ref_add(d_k, x, a->rel_q + h * a->rel_head + table, n);
    }
}

/* Likewise for the key of sink s. */
static void sink_grad(const struct item *t, int h, int i, int s, double x, int e0, int n,
                      struct received *to)
{
    const struct attn *a = t->a;
    const ptrdiff_t he = (ptrdiff_t)h * a->dh + e0, own = (ptrdiff_t)s * a->dh + e0;
    const float *q = a->q + t->b * a->q_at.batch + i * a->q_at.row + he;
    const float *k = a->sink_k + (ptrdiff_t)h * a->sinks * a->dh + own;

    for (int e = 0; e < n; e++) {
        sum_at(t, h, SUM_SINK_K)[own + e] += x * ((double)q[e] + (a->u ? (double)a->u[he + e] : 0));
        to->content[e] += x * (double)k[e];
    }
}

static void operand_grad(const struct item *t, const struct ref_row *row, int x, int i)
{
    const struct attn *a = t->a;
    const int h = row->h + x, K = attn_keys(a);
    const ptrdiff_t at = x * ref_ld(a);
    const double *w = row->w + at, *g = t->d_w + at,
                 *slope = a->soft_cap != 0 ? row->slope + at : NULL;

    for (struct range r = {0}; ref_next(a, row->h, row->heads, i, &r);)
        for (int j = r.from; j < r.to; j++) {
            value_grad(t, h, i, j, w[j]);
            if (j >= K && a->sink_logit)
                sum_at(t, h, SUM_SINK_LOGIT)[j - K] += g[j];
        }
    for (int e0 = 0; e0 < a->dh && !a->no_content; e0 += REF_PART) {
        const int n = min_int(REF_PART, a->dh - e0);
        struct received to = {0};
        for (struct range r = {0}; ref_next(a, row->h, row->heads, i, &r);)
            for (int j = r.from; j < r.to; j++) {
                const double dx = (double)a->scale * g[j] * (slope ? slope[j] : 1);
                if (j < K)
                    key_grad(t, h, i, j, dx, e0, n, &to);
                else if (a->sink_k)
                    sink_grad(t, h, i, j - K, dx, e0, n, &to);
            }
        for (int e = 0; e < n; e++) {
            const ptrdiff_t he = (ptrdiff_t)h * a->dh + e0 + e;
            t->d->d_q[t->b * a->q_at.batch + i * a->q_at.row + he] =
                (float)(to.content[e] + to.position[e]);
            sum_at(t, h, SUM_U)[e0 + e] += to.content[e];
            sum_at(t, h, SUM_W)[e0 + e] += to.position[e];
        }
    }
}

static void query_grad(const struct item *t, const struct ref_row *row, int i)
{
    const struct attn *a = t->a;
    const ptrdiff_t ld = ref_ld(a);

    ref_probabilities(a, t->b, i, row);
    weight_grad(t, row, i);
    if (attn_mixes(a))
        unmix(t, a->mix_probs, SUM_MIX_PROBS, t->d_p, t->d_w, row->p, i);
    for (int x = 0; x < row->heads; x++)
        score_grad(t, row->h + x, i, row->p + x * ld, ref_slope(row, x * ld), t->d_p + x * ld);
    if (attn_mixes(a))
        unmix(t, a->mix_logits, SUM_MIX_LOGITS, t->d_w, t->d_p, row->s, i);
    for (int x = 0; x < row->heads; x++) {
        pair_grad(t, row, row->h + x, i, t->d_w + x * ld);
        operand_grad(t, row, x, i);
    }
}

/* ---- one item, then all ------------------------------------------------------------------- */

/* `from` [kvs, K, width] to the item's heads at `to`. */
static void store(const struct item *t, float *to, struct stride at, int width, const double *from)
{
    const int K = attn_keys(t->a);

    for (int x = 0; x < t->kvs; x++)
        for (int j = 0; j < K; j++)
            for (int e = 0; e < width; e++)
                to[t->b * at.batch + j * at.row + (ptrdiff_t)(t->kv + x) * width + e] =
                    (float)from[((ptrdiff_t)x * K + j) * width + e];
}

static void store_keys(const struct item *t)
{
    const struct attn *a = t->a;

    if (!a->no_content)
        store(t, t->d->d_k, a->k_at, a->dh, t->d_k);
    store(t, t->d->d_v, a->v_at, attn_dv(a), t->d_v);
}

static void item_grad(const struct item *t)
{
    const struct attn *a = t->a;
    const int group = a->H / a->Hkv, heads = attn_mixes(a) ? a->H : 1;

    memset(t->d_k, 0, sizeof(double) * kv_doubles(a));
    memset(sum_at(t, t->kv * group, SUM_U), 0,
           sizeof(double) * t->sums.each * (size_t)(t->kvs * group));
    for (int h = t->kv * group; h < (t->kv + t->kvs) * group; h += heads)
        for (int i = 0; i < a->L; i++) {
            const struct ref_row row = ref_row_at(a, h, t->row);
            query_grad(t, &row, i);
        }
    store_keys(t);
}

/* The gradients of a term += the sums of every sequence and head. */
static void add_sums(const struct attn *a, const struct attn_grad *d, const struct attn_sums *s,
                     const double *all, enum attn_sum which)
{
    float *dst = attn_sum_target(d, which);
    const ptrdiff_t head = s->head[which];
    const int owners = head ? a->H : 1, sharing = head ? 1 : a->H;

    for (int h = 0; dst && h < owners; h++)
        for (size_t e = 0; e < s->n[which]; e++) {
            double sum = 0;
            for (int b = 0; b < a->B; b++)
                for (int x = 0; x < sharing; x++)
                    sum += all[(size_t)(b * a->H + h + x) * s->each + s->at[which] + e];
            float *at = dst + h * head + (ptrdiff_t)e;
            *at = (float)((double)*at + sum);
        }
}

void ref_backward(const struct engine *g, const struct attn *a, const struct attn_grad *d,
                  void *scratch)
{
    const struct attn_sums sums = attn_sums_of(a);
    const int kvs = key_heads(a), units = a->Hkv / kvs, parts = attn_parts(a, d, units);
    struct attn again = *a; /* recomputed, but not stored again */
    double *works = scratch, *all = works + (size_t)g->threads * work_doubles(a);

    attn_grad_check(a, d);
    again.lse = again.scores_out = NULL;
#pragma omp parallel for num_threads(g->threads) schedule(dynamic, 1)
    for (int part = 0; part < parts; part++) {
        const struct attn_part p = attn_part_at(a, d, units, part);
        for (int b = p.b0; b < p.b1; b++)
            for (int u = p.u0; u < p.u1; u++) {
                struct item t = {.a = &again,
                                 .d = d,
                                 .sums = sums,
                                 .all = all,
                                 .b = b,
                                 .kv = u * kvs,
                                 .kvs = kvs};
                lay_out(&t, works + (size_t)omp_get_thread_num() * work_doubles(a));
                item_grad(&t);
            }
    }
    for (int which = 0; which < SUM_COUNT; which++)
        add_sums(a, d, &sums, all, which);
}
