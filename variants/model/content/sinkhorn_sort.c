/* SPDX-License-Identifier: MIT
 *
 * The sorting matrix of Sinkhorn attention (equations: sinkhorn.c), from means of blocks to S and
 * back. */
#include "sinkhorn.h"

/* ---- forward --------------------------------------------------------------------- */

static int known(const struct sorting *t, int u) { return sources(t->n->s->c, u, t->n->a.L); }

/* The rows whose mean is sq_u: [from, to). */
static struct range asking(const struct sorting *t, int u)
{
    const int b = t->k->block;

    return t->n->a.causal ? (struct range){0, u * b + 1} : (struct range){u * b, (u + 1) * b};
}

static void add_rows(double *to, const float *x, double by, int n)
{
    for (int e = 0; e < n; e++)
        to[e] += by * (double)x[e];
}

static void find_means(const struct sorting *t)
{
    const struct attn *const a = &t->n->a;
    const size_t floats = (size_t)t->blocks * (size_t)a->dh;

    memset(t->room.sq, 0, floats * sizeof(double));
    memset(t->room.sk, 0, floats * sizeof(double));
    for (int u = 0; u < t->blocks; u++) {
        const struct range r = asking(t, u);
        double *const sq = t->room.sq + (ptrdiff_t)u * a->dh;
        int i = r.from;
        if (a->causal && u > 0) { /* what the row before has already */
            const double had = asking(t, u - 1).to;
            for (int e = 0; e < a->dh; e++)
                sq[e] = sq[e - a->dh] * had / r.to;
            i = (int)had;
        }
        for (; i < r.to; i++)
            add_rows(sq, content_q(a, t->b, t->h, i), 1.0 / (r.to - r.from), a->dh);
    }
    for (int j = 0; j < t->full * t->k->block; j++)
        add_rows(t->room.sk + (ptrdiff_t)(j / t->k->block) * a->dh, content_k(a, t->b, t->h, j),
                 1.0 / t->k->block, a->dh);
}

static double product(const struct sorting *t, int u, int v)
{
    const ptrdiff_t dh = t->n->a.dh;
    double sum = 0;

    for (ptrdiff_t e = 0; e < dh; e++)
        sum += t->room.sq[u * dh + e] * t->room.sk[v * dh + e];
    return sum / sqrt((double)dh);
}

static double noise(const struct sorting *t, int u, int v)
{
    const struct sinkhorn *const k = t->k;

    if (!k->noise)
        return 0;
    const ptrdiff_t head = (ptrdiff_t)(t->b % k->noise_batch) * t->n->a.H + t->h;
    return (double)content_buffer(t->n->s, 0)->data[(head * k->noise + u) * k->noise + v];
}

static const double RELU_FLOOR = 1e-6;

/* The logarithms after step `i`: rows steps are 0 .. iters-1, or 0 alone; the result is the last.
 */
static double *after(const struct sorting *t, int i)
{
    return t->room.r + (ptrdiff_t)i * t->blocks * t->full;
}

static double *result(const struct sorting *t) { return after(t, t->k->iters + 1); }

static double log_add(double x, double y)
{
    const double most = fmax(x, y);

    return most == -INFINITY ? most : most + log(exp(x - most) + exp(y - most));
}

static void row_step(const struct sorting *t, double *r)
{
    for (int u = 0; u < t->blocks; u++) {
        double sum = -INFINITY;
        for (int v = 0; v < known(t, u); v++)
            sum = log_add(sum, r[u * t->full + v]);
        for (int v = 0; v < known(t, u); v++)
            r[u * t->full + v] -= sum;
    }
}

static void column_step(const struct sorting *t, double *r)
{
    for (int v = 0; v < t->full; v++) {
        double sum = -INFINITY;
        for (int u = 0; u < t->blocks; u++)
            if (v < known(t, u)) {
                const double own = r[u * t->full + v];
                sum = log_add(sum, own);
                if (t->n->a.causal)
                    r[u * t->full + v] = own - sum;
            }
        for (int u = 0; u < t->blocks && !t->n->a.causal; u++)
            r[u * t->full + v] -= sum;
    }
}

static void normalise(const struct sorting *t)
{
    const size_t bytes = (size_t)t->blocks * (size_t)t->full * sizeof(double);
    double *const r = result(t);

    find_means(t);
    for (int u = 0; u < t->blocks; u++)
        for (int v = 0; v < known(t, u); v++) {
            const double x = product(t, u, v);
            const double y = t->k->form == SORT_LOG_RELU ? log(fmax(x, 0) + RELU_FLOOR) : x;
            r[u * t->full + v] = (y + noise(t, u, v)) / (double)t->k->temp;
        }
    for (int i = 0; i < max_int(1, t->k->iters); i++) {
        row_step(t, r);
        memcpy(after(t, i), r, bytes);
        if (t->k->iters)
            column_step(t, r);
    }
}

/* The largest of a row. */
static int best_of(const struct sorting *t, int u)
{
    const double *const r = result(t) + (ptrdiff_t)u * t->full;
    int best = 0;

    for (int v = 1; v < known(t, u); v++)
        if (r[v] > r[best])
            best = v;
    return best;
}

void sort_head(const struct sorting *t, float *S)
{
    normalise(t);
    for (int u = 0; u < t->blocks; u++)
        for (int v = 0; v < t->full; v++) {
            const bool taken = v < known(t, u) && (!t->k->top || v == best_of(t, u));
            S[u * t->full + v] = taken ? (float)exp(result(t)[u * t->full + v]) : 0;
        }
}

/* ---- backward ----------------------------------------------------------------------------- */

static void row_step_grad(const struct sorting *t, const double *r)
{
    for (int u = 0; u < t->blocks; u++) {
        double *const g = t->room.g + (ptrdiff_t)u * t->full, sum = 0;
        for (int v = 0; v < known(t, u); v++)
            sum += g[v];
        for (int v = 0; v < known(t, u); v++)
            g[v] -= exp(r[u * t->full + v]) * sum;
    }
}

/* Columns of a that were normalised: from the last row to the first, sum of g_uv / c_uv. */
static void column_step_grad(const struct sorting *t, const double *a)
{
    for (int v = 0; v < t->full; v++) {
        double c = 0, sum = 0;
        for (int u = 0; u < t->blocks; u++)
            c += v < known(t, u) ? exp(a[u * t->full + v]) : 0;
        for (int u = 0; u < t->blocks && !t->n->a.causal; u++)
            sum += t->room.g[u * t->full + v] / c;
        for (int u = t->blocks - 1; u >= 0; u--) {
            if (v >= known(t, u))
                continue;
            const double own = exp(a[u * t->full + v]);
            if (t->n->a.causal)
                sum += t->room.g[u * t->full + v] / c;
            t->room.g[u * t->full + v] -= own * sum;
            c -= t->n->a.causal ? own : 0;
        }
    }
}

/* From g of the logarithms as they were before the first step to means. */
static void means_grad(const struct sorting *t)
{
    const ptrdiff_t dh = t->n->a.dh;
    const size_t floats = (size_t)t->blocks * (size_t)dh;

    memset(t->room.d_sq, 0, floats * sizeof(double));
    memset(t->room.d_sk, 0, floats * sizeof(double));
    for (int u = 0; u < t->blocks; u++)
        for (int v = 0; v < known(t, u); v++) {
            const double x = product(t, u, v);
            const double slope = t->k->form == SORT_RAW ? 1 : x > 0 ? 1 / (x + RELU_FLOOR) : 0;
            const double g =
                t->room.g[u * t->full + v] / (double)t->k->temp * slope / sqrt((double)dh);
            for (ptrdiff_t e = 0; e < dh; e++) {
                t->room.d_sq[u * dh + e] += g * t->room.sk[v * dh + e];
                t->room.d_sk[v * dh + e] += g * t->room.sq[u * dh + e];
            }
        }
}

static void add_double(float *to, const double *x, double by, int n)
{
    for (int e = 0; e < n; e++)
        to[e] += (float)(by * x[e]);
}

/* From means to rows; causal means share their first rows, so sums are taken from the last. */
static void rows_grad(const struct sorting *t, const struct attn_grad *d)
{
    const struct attn *const a = &t->n->a;
    const int dh = a->dh, size = t->k->block;

    for (int u = t->blocks - 1; u >= 0; u--) {
        const struct range r = asking(t, u);
        double *const own = t->room.d_sq + (ptrdiff_t)u * dh;
        for (int e = 0; e < dh; e++) {
            own[e] /= r.to - r.from;
            own[e] += a->causal && u + 1 < t->blocks ? own[e + dh] : 0;
        }
        const int from = a->causal && u > 0 ? asking(t, u - 1).to : r.from;
        for (int i = from; i < r.to; i++)
            add_double(d->d_q + (content_q(a, t->b, t->h, i) - a->q), own, 1, dh);
    }
    for (int j = 0; j < t->full * size; j++)
        add_double(d->d_k + (content_k(a, t->b, t->h, j) - a->k),
                   t->room.d_sk + (ptrdiff_t)(j / size) * dh, 1.0 / size, dh);
}

void sort_head_grad(const struct sorting *t, const struct attn_grad *d)
{
    normalise(t);
    for (int i = max_int(1, t->k->iters) - 1; i >= 0; i--) {
        if (t->k->iters)
            column_step_grad(t, after(t, i));
        row_step_grad(t, after(t, i));
    }
    means_grad(t);
    rows_grad(t, d);
}
