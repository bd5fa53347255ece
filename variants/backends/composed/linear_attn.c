/* SPDX-License-Identifier: MIT
 *
 * Attention without softmax as its recurrence, one key after the other, in double: the reference
 * for linear_attn_chunked.c. Threads take (sequence, key head) pairs, so results do not depend on
 * their number. */
#include "linear_attn.h"

#include <omp.h>
#include <string.h>

/* ---- one (sequence, key head) pair -------------------------------------------------------- */

struct recurrence {
    const struct linear_attn *a;
    int b, kv;
    double *S, *z; /* [m,d] [m] */
};

static int group(const struct linear_attn *a) { return a->H / a->Hkv; }

static const float *key(const struct recurrence *r, int j)
{
    const struct linear_attn *a = r->a;

    return a->fk + (((ptrdiff_t)r->b * (a->M + a->L) + j) * a->Hkv + r->kv) * a->m;
}

static const float *value(const struct recurrence *r, int j)
{
    const struct linear_attn *a = r->a;

    return a->v + (((ptrdiff_t)r->b * (a->M + a->L) + j) * a->Hkv + r->kv) * a->d;
}

/* Row of query i of head h in fq, o and den. */
static ptrdiff_t query(const struct linear_attn *a, int b, int i, int h)
{
    return ((ptrdiff_t)b * a->L + i) * a->H + h;
}

static void begin(struct recurrence *r)
{
    const struct linear_attn *a = r->a;
    const ptrdiff_t at = linear_state_at(a, r->b, r->kv);

    for (int e = 0; e < a->m * a->d; e++)
        r->S[e] = a->s0 ? (double)a->s0[at * a->m * a->d + e] : 0;
    for (int e = 0; e < a->m; e++)
        r->z[e] = a->z0 ? (double)a->z0[at * a->m + e] : 0;
}

static void end(const struct recurrence *r)
{
    const struct linear_attn *a = r->a;
    const ptrdiff_t at = linear_state_at(a, r->b, r->kv);

    for (int e = 0; a->s1 && e < a->m * a->d; e++)
        a->s1[at * a->m * a->d + e] = (float)r->S[e];
    for (int e = 0; a->z1 && e < a->m; e++)
        a->z1[at * a->m + e] = (float)r->z[e];
}

/* S += fk_j v_j^T, z += fk_j */
static void add_key(const struct recurrence *r, int j)
{
    const int m = r->a->m, d = r->a->d;
    const float *k = key(r, j), *v = value(r, j);

    for (int x = 0; x < m; x++) {
        r->z[x] += (double)k[x];
        for (int e = 0; e < d; e++)
            r->S[x * d + e] += (double)k[x] * (double)v[e];
    }
}

/* o_i = S^T fq_i / (fq_i . z + eps) for the heads that share this state */
static void outputs(const struct recurrence *r, int i)
{
    const struct linear_attn *a = r->a;

    for (int h = r->kv * group(a); h < (r->kv + 1) * group(a); h++) {
        const ptrdiff_t at = query(a, r->b, i, h);
        const float *q = a->fq + at * a->m;
        double den = (double)a->eps;
        for (int x = 0; x < a->m; x++)
            den += (double)q[x] * r->z[x];
        if (a->den)
            a->den[at] = (float)den;
        for (int e = 0; e < a->d; e++) {
            double num = 0;
            for (int x = 0; x < a->m; x++)
                num += (double)q[x] * r->S[x * a->d + e];
            a->o[at * a->d + e] = (float)(num / den);
        }
    }
}

static void run(struct recurrence r)
{
    begin(&r);
    for (int j = 0; j < r.a->M + r.a->L; j++) {
        add_key(&r, j);
        if (j >= r.a->M)
            outputs(&r, j - r.a->M);
    }
    end(&r);
}

/* ---- backward --------------------------------------------------------------------------------
 *
 * With e_i = dO_i / den_i and f_i = -(dO_i . o_i) / den_i, forwards over the rows
 *
 *   d fq_i = S_i e_i + f_i z_i
 *
 * then backwards, with dS and dz summed over the queries of rows >= j,
 *
 *   dS += fq_i e_i^T    dz += f_i fq_i    d fk_j = dS v_j + dz    d v_j = dS^T fk_j */

/* f_i of a query; the division by den for e_i is left to the caller. */
static double of_divisor(const struct linear_attn *a, const struct linear_grad *d, ptrdiff_t at)
{
    double sum = 0;

    for (int e = 0; e < a->d; e++)
        sum += (double)d->d_o[at * a->d + e] * (double)a->o[at * a->d + e];
    return -sum / (double)a->den[at];
}

static void query_grads(const struct recurrence *r, const struct linear_grad *d, int i)
{
    const struct linear_attn *a = r->a;

    for (int h = r->kv * group(a); h < (r->kv + 1) * group(a); h++) {
        const ptrdiff_t at = query(a, r->b, i, h);
        const double f = of_divisor(a, d, at), den = (double)a->den[at];
        for (int x = 0; x < a->m; x++) {
            double sum = f * r->z[x];
            for (int e = 0; e < a->d; e++)
                sum += r->S[x * a->d + e] * (double)d->d_o[at * a->d + e] / den;
            d->d_fq[at * a->m + x] = (float)sum;
        }
    }
}

/* Add the queries of row i to dS and dz, which are stored in S and z. */
static void add_query(const struct recurrence *r, const struct linear_grad *d, int i)
{
    const struct linear_attn *a = r->a;

    for (int h = r->kv * group(a); h < (r->kv + 1) * group(a); h++) {
        const ptrdiff_t at = query(a, r->b, i, h);
        const float *q = a->fq + at * a->m;
        const double f = of_divisor(a, d, at), den = (double)a->den[at];
        for (int x = 0; x < a->m; x++) {
            r->z[x] += f * (double)q[x];
            for (int e = 0; e < a->d; e++)
                r->S[x * a->d + e] += (double)q[x] * (double)d->d_o[at * a->d + e] / den;
        }
    }
}

static void key_grads(const struct recurrence *r, const struct linear_grad *d, int j)
{
    const struct linear_attn *a = r->a;
    const float *k = key(r, j), *v = value(r, j);
    float *d_k = d->d_fk + (k - a->fk), *d_v = d->d_v + (v - a->v);

    for (int x = 0; x < a->m; x++) {
        double sum = r->z[x];
        for (int e = 0; e < a->d; e++)
            sum += r->S[x * a->d + e] * (double)v[e];
        d_k[x] = (float)sum;
    }
    for (int e = 0; e < a->d; e++) {
        double sum = 0;
        for (int x = 0; x < a->m; x++)
            sum += r->S[x * a->d + e] * (double)k[x];
        d_v[e] = (float)sum;
    }
}

static void run_backward(struct recurrence r, const struct linear_grad *d)
{
    const struct linear_attn *a = r.a;
    const size_t m = (size_t)a->m;

    begin(&r);
    for (int j = 0; j < a->M + a->L; j++) {
        add_key(&r, j);
        if (j >= a->M)
            query_grads(&r, d, j - a->M);
    }
    memset(r.S, 0, m * (size_t)a->d * sizeof(*r.S));
    memset(r.z, 0, m * sizeof(*r.z));
    for (int j = a->M + a->L - 1; j >= 0; j--) {
        if (j >= a->M)
            add_query(&r, d, j - a->M);
        key_grads(&r, d, j);
    }
}

/* ---- the implementation ------------------------------------------------------------------- */

static size_t state_bytes(const struct linear_attn *a)
{
    return round_up(sizeof(double) * (size_t)a->m * ((size_t)a->d + 1), 64);
}

static size_t need(const struct linear_attn *a, int threads, bool backward)
{
    (void)backward;
    return (size_t)threads * state_bytes(a);
}

static struct recurrence of_item(const struct linear_attn *a, int item, void *scratch)
{
    char *mine = (char *)scratch + (size_t)omp_get_thread_num() * state_bytes(a);
    double *S = (double *)(void *)mine;

    return (struct recurrence){a, item / a->Hkv, item % a->Hkv, S, S + (ptrdiff_t)a->m * a->d};
}

static void forward(const struct engine *g, const struct linear_attn *a, void *scratch)
{
#pragma omp parallel for num_threads(g->threads)
    for (int item = 0; item < a->B * a->Hkv; item++)
        run(of_item(a, item, scratch));
}

static void backward(const struct engine *g, const struct linear_attn *a,
                     const struct linear_grad *d, void *scratch)
{
#pragma omp parallel for num_threads(g->threads)
    for (int item = 0; item < a->B * a->Hkv; item++)
        run_backward(of_item(a, item, scratch), d);
}

const struct linear_impl linear_ref = {
    .name = "ref", .need = need, .forward = forward, .backward = backward};

/* ---- choice and cost ---------------------------------------------------------------------- */

const struct linear_impl *engine_linear(const struct engine *g)
{
    return g->backend == &backend_ref ? &linear_ref : &linear_chunked;
}

size_t linear_need(const struct linear_attn *a, int threads, bool backward)
{
    const size_t one = linear_ref.need(a, threads, backward);
    const size_t other = linear_chunked.need(a, threads, backward);

    return one > other ? one : other;
}

/* Per row, c being its chunk's size: c (m + d) for the pairs, 2 m d each for reading the state and
 * for adding to it; the factor 2 of a product is cancelled by the masked half. A single row has no
 * pairs. */
double linear_flop(const struct linear_attn *a)
{
    const double rows = (double)a->B * a->L, memory = (double)a->B * a->M;
    const double m = a->m, d = a->d, c = a->L > 1 ? min_int(a->L, LINEAR_CHUNK) : 0;

    return rows * a->H * (c * (m + d) + 2 * m * d) + 2 * (rows + memory) * a->Hkv * m * d;
}
