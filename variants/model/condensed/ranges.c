/* SPDX-License-Identifier: MIT
 *
 * Attention of queries that see ranges of rows, in a plain loop: for what no kernel has as data. */
#include "ranges.h"

/* Where row j of list l of key/value head h begins. */
static float *row_at(const struct range_rows *p, int l, int b, int j, int h, int dh, int width)
{
    const ptrdiff_t row = p->first[l] + (ptrdiff_t)j * (p->step[l] ? p->step[l] : 1);

    return p->list[l] + b * p->stride[l] + row * width + (ptrdiff_t)h * dh;
}

/* One query of one head. */
struct query {
    int b, kv, lists; /* kv: its key/value head */
    struct range r[RANGE_LISTS];
    ptrdiff_t at; /* in q and o */
    ptrdiff_t lse;
};

static struct query query_at(const struct ranges *a, int b, int h, int i)
{
    struct query x = {.b = b, .kv = h / (a->H / a->Hkv)};

    x.lists = a->seen(a->context, i, x.r);
    x.at = (((ptrdiff_t)b * a->L + i) * a->H + h) * a->dh;
    x.lse = ((ptrdiff_t)b * a->H + h) * a->L + i;
    return x;
}

/* Scores of what it sees, one after the other; their number. */
static int scores(const struct ranges *a, const struct query *x, float *s)
{
    const int dh = a->dh, width = a->Hkv * dh;
    int n = 0;

    for (int l = 0; l < x->lists; l++)
        for (int j = x->r[l].from; j < x->r[l].to; j++)
            s[n++] = a->scale *
                     dot_in_lanes(a->q + x->at, row_at(&a->k, l, x->b, j, x->kv, dh, width), dh);
    return n;
}

/* -inf where there is none. */
static float softmax(float *s, int n)
{
    float most = -INFINITY, sum = 0;

    for (int i = 0; i < n; i++)
        most = fmaxf(most, s[i]);
    for (int i = 0; i < n; i++)
        sum += s[i] = expf(s[i] - most);
    for (int i = 0; i < n; i++)
        s[i] /= sum;
    return n ? most + logf(sum) : most;
}

static void attend(const struct ranges *a, const struct query *x, float *p)
{
    const int dh = a->dh, width = a->Hkv * dh, n = scores(a, x, p);
    const float sum = softmax(p, n);
    int at = 0;

    if (a->lse)
        a->lse[x->lse] = sum;
    memset(a->o + x->at, 0, sizeof(float) * (size_t)dh);
    for (int l = 0; l < x->lists; l++)
        for (int j = x->r[l].from; j < x->r[l].to; j++)
            add_in_lanes(a->o + x->at, p[at++], row_at(&a->v, l, x->b, j, x->kv, dh, width), dh);
}

static void attend_grad(const struct ranges *a, const struct ranges_grad *d, const struct query *x,
                        float *p)
{
    const int dh = a->dh, width = a->Hkv * dh;
    const float *const d_o = d->d_o + x->at;
    const float delta = dot_in_lanes(d_o, a->o + x->at, dh), lse = a->lse[x->lse];
    int at = 0;

    scores(a, x, p);
    memset(d->d_q + x->at, 0, sizeof(float) * (size_t)dh);
    for (int l = 0; l < x->lists; l++)
        for (int j = x->r[l].from; j < x->r[l].to; j++, at++) {
            const float prob = expf(p[at] - lse);
            const float d_p = dot_in_lanes(d_o, row_at(&a->v, l, x->b, j, x->kv, dh, width), dh);
            const float d_s = a->scale * prob * (d_p - delta);
            add_in_lanes(row_at(&d->v, l, x->b, j, x->kv, dh, width), prob, d_o, dh);
            add_in_lanes(row_at(&d->k, l, x->b, j, x->kv, dh, width), d_s, a->q + x->at, dh);
            add_in_lanes(d->d_q + x->at, d_s, row_at(&a->k, l, x->b, j, x->kv, dh, width), dh);
        }
}

struct attn_need ranges_need(int most, int threads)
{
    return (struct attn_need){.scores_bytes = (size_t)threads * (size_t)most * sizeof(float)};
}

void ranges_forward(const struct engine *g, const struct ranges *a, void *scratch)
{
#pragma omp parallel for num_threads(g->threads) collapse(3)
    for (int b = 0; b < a->B; b++)
        for (int i = 0; i < a->L; i++)
            for (int h = 0; h < a->H; h++) {
                const struct query x = query_at(a, b, h, i);
                attend(a, &x, (float *)scratch + (size_t)omp_get_thread_num() * (size_t)a->most);
            }
}

/* Query heads that share keys are one thread's, so that each sum has one order. */
void ranges_backward(const struct engine *g, const struct ranges *a, const struct ranges_grad *d,
                     void *scratch)
{
    const int group = a->H / a->Hkv;

#pragma omp parallel for num_threads(g->threads) collapse(2)
    for (int b = 0; b < a->B; b++)
        for (int kv = 0; kv < a->Hkv; kv++)
            for (int at = 0; at < group * a->L; at++) {
                const struct query x = query_at(a, b, kv * group + at / a->L, at % a->L);
                attend_grad(a, d, &x,
                            (float *)scratch + (size_t)omp_get_thread_num() * (size_t)a->most);
            }
}

double ranges_pairs(const struct ranges *a)
{
    struct range r[RANGE_LISTS];
    double pairs = 0;

    for (int i = 0; i < a->L; i++)
        for (int l = a->seen(a->context, i, r) - 1; l >= 0; l--)
            pairs += r[l].to - r[l].from;
    return pairs * a->B * a->H;
}
