/* SPDX-License-Identifier: MIT
 *
 * Linear recurrences in chunks, backward: from the last chunk to the first, with the states before
 * the chunks from a first pass. With dS the gradient of S_C and dW, dX, dO those of W, X and O:
 *
 *              dW         = A_qk^T dO + Kt dS
 *              dX         = A_qb^T dO + Bt dS
 *              dA_qk      = dO W^T
 *              dA_qb      = dO X^T
 *   own key    dR_t       = beta_t dU_t
 *              dU_j      -= A_kk[t,j] dR_t         from the last row; dU = dW at first
 *              dV         = dR
 *              dA_kk      = -dR U^T
 *              d(k e^G)   = -dR S_0^T
 *              dS_0      -= (k e^G)^T dR
 *   rank one   dX_j      += A_ab[t,j] dX_t         from the last row
 *              dV         = dW + A_ak^T dX
 *              dA_ak      = dX V^T
 *              dA_ab      = dX X^T
 *              d(a e^G')  = dX S_0^T
 *
 * Decays need no states: G_t gets x . dx of each reader x at G_t and -y . dy of each writer y,
 * where dx and dy are their whole gradients in that role, and G_C the rows of S_C . dS. */
#include "recur_chunks.h"

struct grads {
    float *d_S;                  /* [dk,ld] */
    float *d_W, *d_X, *d_O;      /* [C,ld]; d_W becomes the gradient of V */
    float *d_A;                  /* [C,C] */
    float *q, *k, *read, *a, *b; /* [C,dk]: of q, of k as a writer, as a reader of S', of a, of b */
    float *rows;                 /* [C,dk] */
    double *G;                   /* [C+1,g_width] */
    float *S;                    /* [chunks+1,dk,ld] states before each chunk, and the last one */
    double *m;                   /* [chunks+1] */
};

/* ---- work space --------------------------------------------------------------------------- */

static int chunks_before(const struct recur *r)
{
    return (r->M + recur_chunk(r) - 1) / recur_chunk(r);
}

static int chunks_of(const struct recur *r)
{
    return chunks_before(r) + (r->L + recur_chunk(r) - 1) / recur_chunk(r);
}

/* Keys [*t0, *t0 + n) of the i-th chunk; none has keys before the queries and of the queries. */
static int chunk_keys(const struct recur *r, int i, int *t0)
{
    const int before = chunks_before(r), C = recur_chunk(r);
    const int at = i < before ? i * C : r->M + (i - before) * C;
    const int until = i < before ? r->M : r->M + r->L;

    *t0 = at;
    return min_int(C, until - at);
}

static struct grads lay_out(const struct recur *r, struct room *room)
{
    const size_t C = (size_t)recur_chunk(r), dk = (size_t)r->dk, ld = (size_t)recur_ld(r);
    const size_t states = (size_t)chunks_of(r) + 1, gw = (size_t)r->g_width;
    struct grads d;
    const struct {
        float **to;
        size_t n;
    } floats[] = {{&d.d_S, dk * ld}, {&d.d_W, C * ld}, {&d.d_X, C * ld},  {&d.d_O, C * ld},
                  {&d.d_A, C * C},   {&d.q, C * dk},   {&d.k, C * dk},    {&d.read, C * dk},
                  {&d.a, C * dk},    {&d.b, C * dk},   {&d.rows, C * dk}, {&d.S, states * dk * ld}};

    for (size_t i = 0; i < ARRAY_LEN(floats); i++)
        *floats[i].to = room_take(room, floats[i].n, sizeof(float));
    d.G = room_take(room, (C + 1) * gw + 1, sizeof(double));
    d.m = room_take(room, states, sizeof(double));
    return d;
}

size_t recur_chunked_grad_bytes(const struct recur *r)
{
    struct room room = {0};

    (void)lay_out(r, &room);
    return chunk_bytes(r) + room.used;
}

/* ---- small products ----------------------------------------------------------------------- */

/* d_A = alpha rows others^T */
static void pair_products(const struct chunk *c, float *d_A, float alpha, const float *rows,
                          const float *others)
{
    mm_here(c->g, NT, c->n, c->n, c->columns, alpha, rows, c->ld, others, c->ld, 0, d_A, c->n);
}

/* to [n,dk] = alpha rows S^T + beta to */
static void through_state(const struct chunk *c, float *to, float beta, float alpha,
                          const float *rows, const float *S)
{
    mm_here(c->g, NT, c->n, c->r->dk, c->columns, alpha, rows, c->ld, S, c->ld, beta, to, c->r->dk);
}

/* dS_0 += alpha (decayed readers)^T rows */
static void add_state(const struct chunk *c, float *d_S, float alpha, const float *readers,
                      const float *rows)
{
    mm_here(c->g, TN, c->r->dk, (int)c->ld, c->n, alpha, readers, c->r->dk, rows, c->ld, 1, d_S,
            c->ld);
}

/* Row t of `rows` and of the operand, times the factors in c->f: to += .., decayed = .. */
static void weigh_row(const struct chunk *c, int t, float *to, const float *rows, float *decayed,
                      const float *operand)
{
    const int dk = c->r->dk;

#pragma omp simd
    for (int x = 0; x < dk; x++) {
        to[t * dk + x] += rows[t * dk + x] * c->f[x];
        decayed[t * dk + x] = operand[t * dk + x] * c->f[x];
    }
}

/* A reader's part through S_0:
 *
 *   d    += alpha (rows S_0^T) . factor
 *   dS_0 += alpha (reader . factor)^T rows */
static void read_grad(struct chunk *c, struct grads *d, float *to, const float *operand,
                      enum reads reads, bool gated, float alpha, const float *rows)
{
    const bool weighs = chunk_weighs(c, gated);

    through_state(c, weighs ? d->rows : to, !weighs, alpha, rows, c->S);
    for (int t = 0; weighs && t < c->n; t++) {
        chunk_read_factors(c, c->f, t, reads, gated);
        weigh_row(c, t, to, d->rows, c->x, operand);
    }
    add_state(c, d->d_S, alpha, weighs ? c->x : operand, rows);
}

/* A writer's part through S_C: d_rows += (writer . factor) d_S, d += (rows d_S^T) . factor. */
static void write_grad(struct chunk *c, struct grads *d, float *to, const float *operand,
                       bool gated, float *d_rows, const float *rows)
{
    const int dk = c->r->dk;
    const bool weighs = chunk_weighs(c, gated);

    through_state(c, weighs ? d->rows : to, !weighs, 1, rows, d->d_S);
    for (int j = 0; weighs && j < c->n; j++) {
        chunk_write_factors(c, c->f, j, gated);
        weigh_row(c, j, to, d->rows, c->y, operand);
    }
    mm_here(c->g, NN, c->n, (int)c->ld, dk, 1, weighs ? c->y : operand, dk, d->d_S, c->ld, 1,
            d_rows, c->ld);
}

/* ---- decays ------------------------------------------------------------------------------- */

/* G[t + shift] += sign x . dx */
static void decay_grad(const struct chunk *c, struct grads *d, double sign, const float *x,
                       const float *d_x, int shift)
{
    const int dk = c->r->dk, gw = c->r->g_width;

    for (int t = 0; gw && t < c->n; t++)
        for (int e = 0; e < dk; e++)
            d->G[(t + shift) * gw + (gw == 1 ? 0 : e)] +=
                sign * (double)x[t * dk + e] * (double)d_x[t * dk + e];
}

/* ---- outputs ------------------------------------------------------------------------------ */

/* d_O of the numerators, and of the normaliser's column. */
static void numerators(const struct chunk *c, const struct recur_grad *out, struct grads *d, int h)
{
    const struct recur *r = c->r;

    for (int t = 0; t < c->n; t++) {
        const ptrdiff_t at = ((ptrdiff_t)c->b * r->L + c->t0 - r->M + t) * r->H + h;
        const float *const d_o = out->d_o + at * r->dv, *const o = r->o + at * r->dv;
        float *const row = d->d_O + t * c->ld;
        memset(row, 0, sizeof(float) * (size_t)c->ld);
        if (!r->norm) {
            memcpy(row, d_o, sizeof(float) * (size_t)r->dv);
            continue;
        }
        const float den = r->den[at], n = c->O[t * c->ld + r->dv];
        float sum = 0;
#pragma omp simd reduction(- : sum)
        for (int e = 0; e < r->dv; e++) {
            row[e] = d_o[e] / den;
            sum -= o[e] * row[e];
        }
        /* Against the bound and not against den, which another implementation may have rounded. */
        if (r->norm == RECUR_MLSTM)
            sum = (double)fabsf(n) > exp(r->i.at ? -c->m[t + 1] : 0) ? copysignf(1, n) * sum : 0;
        row[r->dv] = sum;
    }
}

static void bonus_grad(const struct chunk *c, const struct recur_grad *out, struct grads *d, int h)
{
    const struct recur *r = c->r;
    const int dk = r->dk;

    for (int t = 0; t < c->n; t++)
        for (int x = 0; x < dk; x++) {
            const float e = d->rows[t], u = r->u[h * dk + x];
            const float q = c->q[t * dk + x], k = c->k[t * dk + x];
            d->q[t * dk + x] += e * u * k;
            if (out->d_k)
                recur_grad_at(out->d_k, &r->k, c->b, c->t0 + t, c->hs)[x] += e * u * q;
            if (out->d_u)
                out->d_u[h * dk + x] += e * q * k;
        }
}

static void head_grad(struct chunk *c, const struct recur_grad *out, struct grads *d, int h)
{
    const struct recur *r = c->r;
    const enum reads reads = r->u ? READS_BEFORE : READS_AFTER;
    const int dk = r->dk;

    if (r->norm == RECUR_MLSTM)
        chunk_outputs(c, h); /* the sign of n */
    else
        chunk_query(c, h), chunk_weights(c, h);
    numerators(c, out, d, h);
    memset(d->q, 0, sizeof(float) * (size_t)(c->n * dk));
    chunk_add_pairs(c, d->d_W, c->A, true, d->d_O);
    pair_products(c, d->d_A, 1, d->d_O, c->W);
    float diagonal[RECUR_CHUNK];
    for (int t = 0; t < c->n; t++)
        diagonal[t] = d->d_A[t * c->n + t];
    chunk_pairs_grad(c, d->d_A, c->q, c->k, reads, r->i.at, d->q, d->k);
    if (r->a.at) {
        chunk_add_pairs(c, d->d_X, c->Ab, true, d->d_O);
        pair_products(c, d->d_A, 1, d->d_O, c->X);
        chunk_pairs_grad(c, d->d_A, c->q, c->rb, reads, false, d->q, d->b);
    }
    read_grad(c, d, d->q, c->q, reads, r->i.at, 1, d->d_O);
    decay_grad(c, d, 1, c->q, d->q, r->u ? 0 : 1);
    if (r->u) {
        memcpy(d->rows, diagonal, sizeof(float) * (size_t)c->n);
        bonus_grad(c, out, d, h);
    }
    for (int t = 0; out->d_q && t < c->n; t++) {
        float *const d_q = recur_grad_at(out->d_q, &r->q, c->b, c->t0 - r->M + t, h);
#pragma omp simd
        for (int x = 0; x < dk; x++)
            d_q[x] += r->scale * d->q[t * dk + x];
    }
}

/* ---- erasing ------------------------------------------------------------------------------ */

static void own_grad(struct chunk *c, const struct recur_grad *out, struct grads *d)
{
    const struct recur *r = c->r;

    chunk_pairs(c, c->A, c->k, c->k, READS_DECAYED, false);
    /* what the keys read: (k e^G) S_0 + A_kk U, into O */
    chunk_read_state(c, c->O, c->k, READS_DECAYED, false);
    chunk_add_pairs(c, c->O, c->A, false, c->W);
    for (int t = c->n - 1; t >= 0; t--) {
        const float beta = *recur_at(&r->beta, c->b, c->t0 + t, c->hs);
        float *const row = d->d_W + t * c->ld, d_beta = 0;
        for (int e = 0; e < r->dv; e++) {
            d_beta += row[e] * (c->V[t * c->ld + e] - c->O[t * c->ld + e]);
            row[e] *= beta;
        }
        for (int j = 0; j < t; j++) {
            const float by = c->A[t * c->n + j];
            for (int e = 0; e < r->dv; e++)
                d->d_W[j * c->ld + e] -= by * row[e];
        }
        if (out->d_beta)
            *recur_grad_at(out->d_beta, &r->beta, c->b, c->t0 + t, c->hs) += d_beta;
    }
    pair_products(c, d->d_A, -1, d->d_W, c->W);
    chunk_pairs_grad(c, d->d_A, c->k, c->k, READS_DECAYED, false, d->read, d->k);
    read_grad(c, d, d->read, c->k, READS_DECAYED, false, -1, d->d_W);
    decay_grad(c, d, 1, c->k, d->read, 1);
}

static void free_grad(struct chunk *c, const struct recur_grad *out, struct grads *d)
{
    const struct recur *r = c->r;
    const int dk = r->dk;

    chunk_pairs(c, c->Ab, c->a, c->rb, READS_BEFORE, false);
    for (int t = c->n - 1; t >= 0; t--)
        for (int j = 0; j < t; j++) {
            const float by = c->Ab[t * c->n + j];
            for (int e = 0; e < r->dv; e++)
                d->d_X[j * c->ld + e] += by * d->d_X[t * c->ld + e];
        }
    chunk_pairs(c, c->A, c->a, c->k, READS_BEFORE, false);
    chunk_add_pairs(c, d->d_W, c->A, true, d->d_X);
    pair_products(c, d->d_A, 1, d->d_X, c->V);
    chunk_pairs_grad(c, d->d_A, c->a, c->k, READS_BEFORE, false, d->a, d->k);
    pair_products(c, d->d_A, 1, d->d_X, c->X);
    chunk_pairs_grad(c, d->d_A, c->a, c->rb, READS_BEFORE, false, d->a, d->b);
    read_grad(c, d, d->a, c->a, READS_BEFORE, false, 1, d->d_X);
    decay_grad(c, d, 1, c->a, d->a, 0);
    decay_grad(c, d, -1, c->rb, d->b, 1);
    for (int t = 0; t < c->n; t++)
        for (int x = 0; x < dk; x++) {
            if (out->d_a)
                recur_grad_at(out->d_a, &r->a, c->b, c->t0 + t, c->hs)[x] += d->a[t * dk + x];
            if (out->d_b)
                recur_grad_at(out->d_b, &r->b, c->b, c->t0 + t, c->hs)[x] += d->b[t * dk + x];
        }
}

/* ---- one chunk ---------------------------------------------------------------------------- */

static void add_row(float *to, const float *row, int n)
{
#pragma omp simd
    for (int x = 0; x < n; x++)
        to[x] += row[x];
}

/* What the keys get when all roles are done. */
static void keys_grad(const struct chunk *c, const struct recur_grad *out, struct grads *d)
{
    const struct recur *r = c->r;
    const int dk = r->dk, gw = r->g_width;

    decay_grad(c, d, -1, c->k, d->k, 1);
    for (int t = c->n - 1; gw && t > 0; t--) /* g_s is part of every G_t with t >= s */
        for (int x = 0; x < gw; x++)
            d->G[t * gw + x] += d->G[(t + 1) * gw + x];
    for (int t = 0; t < c->n; t++) {
        const int at = c->t0 + t;
        double d_i = 0;
        float *const d_k = out->d_k ? recur_grad_at(out->d_k, &r->k, c->b, at, c->hs) : NULL;
        float *const d_v = out->d_v ? recur_grad_at(out->d_v, &r->v, c->b, at, c->hs) : NULL;
        for (int x = 0; out->d_i && x < dk; x++)
            d_i += (double)c->k[t * dk + x] * (double)d->k[t * dk + x];
        if (d_k)
            add_row(d_k, d->k + t * dk, dk);
        if (d_k && r->beta.at)
            add_row(d_k, d->read + t * dk, dk);
        if (d_v)
            add_row(d_v, d->d_W + t * c->ld, r->dv);
        for (int x = 0; out->d_g && x < gw; x++)
            recur_grad_at(out->d_g, &r->g, c->b, at, c->hs)[x] +=
                recur_resets(r, recur_at(&r->g, c->b, at, c->hs)[x])
                    ? 0
                    : (float)d->G[(t + 1) * gw + x];
        if (out->d_i)
            *recur_grad_at(out->d_i, &r->i, c->b, at, c->hs) += (float)d_i;
    }
}

/* From d_S after the chunk to d_S before it. */
static void chunk_grad(struct chunk *c, const struct recur_grad *out, struct grads *d,
                       const float *after)
{
    const struct recur *r = c->r;
    const int dk = r->dk, gw = r->g_width, heads = r->H / r->Hs;
    const struct {
        float *at;
        ptrdiff_t n;
        bool used;
    } clear[] = {{d->d_W, c->n * c->ld, true}, {d->d_X, c->n * c->ld, r->a.at},
                 {d->k, c->n * dk, true},      {d->a, c->n * dk, r->a.at},
                 {d->b, c->n * dk, r->a.at},   {d->read, c->n * dk, r->beta.at}};

    for (size_t i = 0; i < ARRAY_LEN(clear); i++)
        if (clear[i].used)
            memset(clear[i].at, 0, sizeof(float) * (size_t)clear[i].n);
    memset(d->G, 0, sizeof(double) * (size_t)((c->n + 1) * gw));
    for (int x = 0; gw && x < dk; x++) {
        double sum = 0;
        for (int e = 0; e < c->ld; e++)
            sum += (double)after[x * c->ld + e] * (double)d->d_S[x * c->ld + e];
        d->G[c->n * gw + (gw == 1 ? 0 : x)] += sum;
    }
    write_grad(c, d, d->k, c->k, r->i.at, d->d_W, c->W);
    if (r->a.at)
        write_grad(c, d, d->b, c->rb, false, d->d_X, c->X);
    for (int x = 0; chunk_weighs(c, r->i.at) && x < dk; x++) {
        const float w = (float)chunk_decay(c, x);
        for (int e = 0; e < c->ld; e++)
            d->d_S[x * c->ld + e] *= w;
    }
    for (int h = c->hs * heads; c->t0 >= r->M && h < (c->hs + 1) * heads; h++)
        head_grad(c, out, d, h);
    if (r->beta.at)
        own_grad(c, out, d);
    else if (r->a.at)
        free_grad(c, out, d);
    keys_grad(c, out, d);
}

/* ---- one sequence and state head ----------------------------------------------------------- */

static void run(struct chunk *c, const struct recur_grad *out, struct grads *d)
{
    const struct recur *r = c->r;
    const int chunks = chunks_of(r);
    const ptrdiff_t size = r->dk * c->ld, at = recur_state(r, c->b, c->hs);
    int t0;

    c->S = d->S;
    chunk_load_state(c);
    d->m[0] = c->m[0];
    for (int i = 0; i < chunks; i++) {
        const float *const before = c->S;
        const int n = chunk_keys(r, i, &t0);
        c->S = d->S + (i + 1) * size;
        memcpy(c->S, before, sizeof(float) * (size_t)size);
        chunk_enter(c, t0, n);
        chunk_solve(c);
        chunk_leave(c);
        d->m[i + 1] = c->m[0];
    }
    memset(d->d_S, 0, sizeof(float) * (size_t)size);
    for (int x = 0; out->d_s1 && x < r->dk; x++)
        memcpy(d->d_S + x * c->ld, out->d_s1 + (at * r->dk + x) * r->dv,
               sizeof(float) * (size_t)r->dv);
    for (int i = chunks - 1; i >= 0; i--) {
        const int n = chunk_keys(r, i, &t0);
        c->S = d->S + i * size;
        c->m[0] = d->m[i];
        chunk_enter(c, t0, n);
        chunk_solve(c);
        chunk_grad(c, out, d, d->S + (i + 1) * size);
    }
    for (int x = 0; x < r->dk; x++) {
        if (out->d_s0)
            memcpy(out->d_s0 + (at * r->dk + x) * r->dv, d->d_S + x * c->ld,
                   sizeof(float) * (size_t)r->dv);
        if (out->d_z0)
            out->d_z0[at * r->dk + x] = r->norm ? d->d_S[x * c->ld + r->dv] : 0;
    }
}

/* ---- all ---------------------------------------------------------------------------------- */

void recur_chunked_backward(const struct engine *g, const struct recur *r,
                            const struct recur_grad *d, void *scratch)
{
    const int parts = recur_parts(r, d);
    const size_t bytes = recur_chunked_grad_bytes(r);

    recur_clear(r, d);
#pragma omp parallel for schedule(dynamic, 1) num_threads(parts > 1 ? g->threads : 1)
    for (int i = 0; i < parts; i++) {
        char *const room = (char *)scratch + bytes * (size_t)omp_get_thread_num();
        const struct recur_part part = recur_part(r, d, i);
        struct chunk c = chunk_of(g, r, room);
        struct grads grads = lay_out(r, &(struct room){.at = room + chunk_bytes(r)});
        for (c.b = part.b0; c.b < part.b1; c.b++)
            for (c.hs = part.h0; c.hs < part.h1; c.hs++)
                run(&c, d, &grads);
    }
}
