/* SPDX-License-Identifier: MIT
 *
 * A chunk of keys. */
#include "recur_chunks.h"

enum { PAD = 16 }; /* floats, so that rows begin at whole vectors */

static int columns_of(const struct recur *r) { return r->dv + (r->norm != RECUR_PLAIN); }

ptrdiff_t recur_ld(const struct recur *r)
{
    return (ptrdiff_t)round_up((size_t)columns_of(r), PAD);
}

/* ---- work space --------------------------------------------------------------------------- */

void *room_take(struct room *room, size_t n, size_t size)
{
    void *const p = room->at ? room->at + room->used : NULL;

    room->used += round_up(n * size, 64);
    return p;
}

static struct chunk lay_out(const struct engine *g, const struct recur *r, struct room *room)
{
    const size_t C = (size_t)recur_chunk(r), dk = (size_t)r->dk, ld = (size_t)recur_ld(r);
    const size_t gw = (size_t)r->g_width;
    struct chunk c = {.g = g, .r = r, .columns = columns_of(r), .ld = (ptrdiff_t)ld};

    c.S = room_take(room, dk * ld, sizeof(float));
    c.V = room_take(room, C * ld, sizeof(float));
    c.W = r->beta.at ? room_take(room, C * ld, sizeof(float)) : c.V;
    c.X = r->a.at ? room_take(room, C * ld, sizeof(float)) : NULL;
    c.O = room_take(room, C * ld, sizeof(float));
    c.q = room_take(room, C * dk, sizeof(float));
    c.k = room_take(room, C * dk, sizeof(float));
    c.a = r->a.at ? room_take(room, C * dk, sizeof(float)) : NULL;
    c.rb = r->a.at ? room_take(room, C * dk, sizeof(float)) : NULL;
    c.A = room_take(room, C * C, sizeof(float));
    c.Ab = r->a.at ? room_take(room, C * C, sizeof(float)) : NULL;
    c.x = room_take(room, C * dk, sizeof(float));
    c.y = room_take(room, C * dk, sizeof(float));
    c.w = room_take(room, C * gw, sizeof(float));
    c.f = room_take(room, dk, sizeof(float));
    c.G = room_take(room, (C + 1) * gw + 1, sizeof(double));
    c.m = room_take(room, C + 1, sizeof(double));
    c.i = room_take(room, C, sizeof(double));
    return c;
}

size_t chunk_bytes(const struct recur *r)
{
    struct room room = {0};

    (void)lay_out(NULL, r, &room);
    return room.used;
}

struct chunk chunk_of(const struct engine *g, const struct recur *r, void *at)
{
    struct room room = {.at = at};

    return lay_out(g, r, &room);
}

/* ---- state -------------------------------------------------------------------------------- */

void chunk_load_state(struct chunk *c)
{
    const struct recur *r = c->r;
    const ptrdiff_t at = recur_state(r, c->b, c->hs);

    memset(c->S, 0, sizeof(float) * (size_t)(r->dk * c->ld));
    for (int x = 0; x < r->dk; x++) {
        if (r->s0)
            memcpy(c->S + x * c->ld, r->s0 + (at * r->dk + x) * r->dv,
                   sizeof(float) * (size_t)r->dv);
        if (r->norm && r->z0)
            c->S[x * c->ld + r->dv] = r->z0[at * r->dk + x];
    }
    c->n = 0;
    c->m[0] = r->m0 ? (double)r->m0[at] : -INFINITY;
}

void chunk_store_state(const struct chunk *c)
{
    const struct recur *r = c->r;
    const ptrdiff_t at = recur_state(r, c->b, c->hs);

    for (int x = 0; x < r->dk; x++) {
        if (r->s1)
            memcpy(r->s1 + (at * r->dk + x) * r->dv, c->S + x * c->ld,
                   sizeof(float) * (size_t)r->dv);
        if (r->norm && r->z1)
            r->z1[at * r->dk + x] = c->S[x * c->ld + r->dv];
    }
    if (r->i.at && r->m1)
        r->m1[at] = (float)c->m[0];
}

/* ---- operands ----------------------------------------------------------------------------- */

static void gather(const struct chunk *c, float *to, const struct recur_rows *rows, int t, int h,
                   float scale)
{
    const int dk = c->r->dk;

    for (int i = 0; i < c->n; i++) {
        const float *const from = rows->at ? recur_at(rows, c->b, t + i, h) : NULL;
#pragma omp simd
        for (int x = 0; x < dk; x++)
            to[i * dk + x] = from ? scale * recur_operand(c->r, from[x]) : scale;
    }
}

static void gather_values(const struct chunk *c)
{
    const struct recur *r = c->r;

    for (int i = 0; i < c->n; i++) {
        float *const to = c->V + i * c->ld;
        memset(to + r->dv, 0, sizeof(float) * (size_t)(c->ld - r->dv));
        memcpy(to, recur_at(&r->v, c->b, c->t0 + i, c->hs), sizeof(float) * (size_t)r->dv);
        if (r->bf16)
            bf16_round(to, (size_t)r->dv);
        if (r->norm)
            to[r->dv] = 1;
    }
}

/* A log decay as it is summed. The exponential of less is 0 whatever else the sums have, and a
 * difference of sums of it keeps what lies between two resets: one of infinities has no value. */
static double summed(float g)
{
    enum { LEAST = -(1 << 20) };

    return g < LEAST ? LEAST : (double)g; /* NaN stays */
}

static void gather_decays(struct chunk *c)
{
    const struct recur *r = c->r;
    const int gw = r->g_width;

    for (int x = 0; x < gw; x++)
        c->G[x] = 0;
    for (int i = 0; gw && i < c->n; i++) {
        const float *const g = recur_at(&r->g, c->b, c->t0 + i, c->hs);
        for (int x = 0; x < gw; x++) {
            c->G[(i + 1) * gw + x] = c->G[i * gw + x] + summed(g[x]);
            if (gw > 1)
                c->w[i * gw + x] = expf(g[x]);
        }
    }
    for (int i = 0; r->i.at && i < c->n; i++) {
        const double g = gw ? c->G[i + 1] - c->G[i] : 0;
        c->i[i] = (double)*recur_at(&r->i, c->b, c->t0 + i, c->hs);
        c->m[i + 1] = fmax(g + c->m[i], c->i[i]);
    }
}

void chunk_enter(struct chunk *c, int t0, int n)
{
    const struct recur *r = c->r;

    c->t0 = t0;
    c->n = n;
    gather(c, c->k, &r->k, t0, c->hs, 1);
    if (r->a.at) {
        gather(c, c->a, &r->a, t0, c->hs, 1);
        gather(c, c->rb, &r->b, t0, c->hs, 1);
    }
    gather_values(c);
    gather_decays(c);
}

void chunk_query(struct chunk *c, int h)
{
    gather(c, c->q, &c->r->q, c->t0 - c->r->M, h, c->r->scale);
}

/* ---- exponents ---------------------------------------------------------------------------- */

static double sum_at(const struct chunk *c, int row, int x)
{
    const int gw = c->r->g_width;

    return gw == 0 ? 0 : c->G[row * gw + (gw == 1 ? 0 : x)];
}

static double reader(const struct chunk *c, int t, int x, enum reads reads, bool gated)
{
    return sum_at(c, reads == READS_BEFORE ? t : t + 1, x) - (gated ? c->m[t + 1] : 0);
}

static double writer(const struct chunk *c, int j, int x, bool gated)
{
    return (gated ? c->i[j] : 0) - sum_at(c, j + 1, x);
}

void chunk_read_factors(const struct chunk *c, float *f, int t, enum reads reads, bool gated)
{
    for (int x = 0; x < c->r->dk; x++)
        f[x] = x == 0 || c->r->g_width > 1
                   ? (float)exp(reader(c, t, x, reads, gated) + (gated ? c->m[0] : 0))
                   : f[0];
}

void chunk_write_factors(const struct chunk *c, float *f, int j, bool gated)
{
    const double m = gated ? c->m[c->n] : 0;

    for (int x = 0; x < c->r->dk; x++)
        f[x] = x == 0 || c->r->g_width > 1
                   ? (float)exp(sum_at(c, c->n, x) + writer(c, j, x, gated) - m)
                   : f[0];
}

double chunk_decay(const struct chunk *c, int x)
{
    return exp(sum_at(c, c->n, x) + (c->r->i.at ? c->m[0] - c->m[c->n] : 0));
}

bool chunk_weighs(const struct chunk *c, bool gated) { return c->r->g_width || gated; }

/* Into c->x or c->y: rows times the factors of readers, or of writers; as they are where nothing
 * decays. */
static const float *read_rows(const struct chunk *c, const float *rows, enum reads reads,
                              bool gated)
{
    const int dk = c->r->dk;

    if (!chunk_weighs(c, gated))
        return rows;
    for (int t = 0; t < c->n; t++) {
        chunk_read_factors(c, c->f, t, reads, gated);
#pragma omp simd
        for (int x = 0; x < dk; x++)
            c->x[t * dk + x] = rows[t * dk + x] * c->f[x];
    }
    return c->x;
}

static const float *write_rows(const struct chunk *c, const float *rows, bool gated)
{
    const int dk = c->r->dk;

    if (!chunk_weighs(c, gated))
        return rows;
    for (int j = 0; j < c->n; j++) {
        chunk_write_factors(c, c->f, j, gated);
#pragma omp simd
        for (int x = 0; x < dk; x++)
            c->y[j * dk + x] = rows[j * dk + x] * c->f[x];
    }
    return c->y;
}

/* ---- pairs -------------------------------------------------------------------------------- */

/* The first reader of writer j. */
static int first_reader(int j, enum reads reads) { return reads == READS_AFTER ? j : j + 1; }

/* A float per pair: A *= e^{r+e}, and 0 where there is no pair. */
static void weigh_pairs(const struct chunk *c, float *A, enum reads reads, bool gated)
{
    for (int t = 0; t < c->n; t++) {
        const int writers = reads == READS_AFTER ? t + 1 : t;
        float *const row = A + t * c->n;
        memset(row + writers, 0, sizeof(float) * (size_t)(c->n - writers));
        for (int j = 0; chunk_weighs(c, gated) && j < writers; j++)
            row[j] *= (float)exp(reader(c, t, 0, reads, gated) + writer(c, j, 0, gated));
    }
}

/* Rows of readers behind a sub-block, and of its writers, around the sum at the sub-block's end. */
static void block_rows(const struct chunk *c, int j0, int j1, const float *x, const float *y,
                       enum reads reads)
{
    const int dk = c->r->dk;

    for (int t = j1; x && t < c->n; t++)
        for (int e = 0; e < dk; e++)
            c->x[t * dk + e] =
                x[t * dk + e] * expf((float)(reader(c, t, e, reads, false) - sum_at(c, j1, e)));
    for (int j = j0; y && j < j1; j++)
        for (int e = 0; e < dk; e++)
            c->y[j * dk + e] =
                y[j * dk + e] * expf((float)(sum_at(c, j1, e) - sum_at(c, j + 1, e)));
}

/* Pairs inside a sub-block: the decay is carried along with the writer. */
static void inner_pairs(const struct chunk *c, float *A, int j0, int j1, const float *x,
                        const float *y, enum reads reads)
{
    const int dk = c->r->dk;

    for (int j = j0; j < j1; j++) {
        float *const kd = c->f;
        memcpy(kd, y + j * dk, sizeof(float) * (size_t)dk);
        for (int t = first_reader(j, reads); t < j1; t++) {
            const float *const w = c->w + t * dk, *const row = x + t * dk;
            float sum = 0;
            for (int e = 0; t > j && reads != READS_BEFORE && e < dk; e++)
                kd[e] *= w[e];
            for (int e = 0; e < dk; e++)
                sum += row[e] * kd[e];
            for (int e = 0; reads == READS_BEFORE && e < dk; e++)
                kd[e] *= w[e];
            A[t * c->n + j] = sum;
        }
    }
}

static void channel_pairs(struct chunk *c, float *A, const float *x, const float *y,
                          enum reads reads)
{
    const int dk = c->r->dk, n = c->n;

    memset(A, 0, sizeof(float) * (size_t)n * (size_t)n);
    for (int j0 = 0; j0 < n; j0 += RECUR_BLOCK) {
        const int j1 = min_int(j0 + RECUR_BLOCK, n);
        inner_pairs(c, A, j0, j1, x, y, reads);
        if (j1 == n)
            break;
        block_rows(c, j0, j1, x, y, reads);
        mm_here(c->g, NT, n - j1, j1 - j0, dk, 1, c->x + (ptrdiff_t)j1 * dk, dk,
                c->y + (ptrdiff_t)j0 * dk, dk, 0, A + (ptrdiff_t)j1 * n + j0, n);
    }
}

void chunk_pairs(struct chunk *c, float *A, const float *x, const float *y, enum reads reads,
                 bool gated)
{
    const int dk = c->r->dk, n = c->n;

    if (c->r->g_width > 1) {
        channel_pairs(c, A, x, y, reads);
        return;
    }
    mm_here(c->g, NT, n, n, dk, 1, x, dk, y, dk, 0, A, n);
    weigh_pairs(c, A, reads, gated);
}

static void inner_pairs_grad(const struct chunk *c, const float *d_A, int j0, int j1,
                             const float *x, const float *y, enum reads reads, float *d_x,
                             float *d_y)
{
    const int dk = c->r->dk;

    for (int j = j0; j < j1; j++) {
        float *const f = c->f;
        for (int e = 0; e < dk; e++)
            f[e] = 1;
        for (int t = first_reader(j, reads); t < j1; t++) {
            const float *const w = c->w + t * dk, by = d_A[t * c->n + j];
            for (int e = 0; t > j && reads != READS_BEFORE && e < dk; e++)
                f[e] *= w[e];
            for (int e = 0; e < dk; e++) {
                d_x[t * dk + e] += by * y[j * dk + e] * f[e];
                d_y[j * dk + e] += by * x[t * dk + e] * f[e];
            }
            for (int e = 0; reads == READS_BEFORE && e < dk; e++)
                f[e] *= w[e];
        }
    }
}

/* What a sub-block's pairs with later readers give, through the decayed rows c->x and c->y. */
static void outer_pairs_grad(struct chunk *c, const float *d_A, int j0, int j1, const float *x,
                             const float *y, enum reads reads, float *d_x, float *d_y)
{
    const int dk = c->r->dk, n = c->n;

    block_rows(c, j0, j1, NULL, y, reads);
    for (int t = j1; t < n; t++)
        for (int e = 0; e < dk; e++) {
            float sum = 0;
            for (int j = j0; j < j1; j++)
                sum += d_A[t * n + j] * c->y[j * dk + e];
            d_x[t * dk + e] +=
                sum * expf((float)(reader(c, t, e, reads, false) - sum_at(c, j1, e)));
        }
    block_rows(c, j0, j1, x, NULL, reads);
    for (int j = j0; j < j1; j++)
        for (int e = 0; e < dk; e++) {
            float sum = 0;
            for (int t = j1; t < n; t++)
                sum += d_A[t * n + j] * c->x[t * dk + e];
            d_y[j * dk + e] += sum * expf((float)(sum_at(c, j1, e) - sum_at(c, j + 1, e)));
        }
}

void chunk_pairs_grad(struct chunk *c, float *d_A, const float *x, const float *y, enum reads reads,
                      bool gated, float *d_x, float *d_y)
{
    const int dk = c->r->dk, n = c->n;

    if (c->r->g_width > 1) {
        for (int j0 = 0; j0 < n; j0 += RECUR_BLOCK) {
            const int j1 = min_int(j0 + RECUR_BLOCK, n);
            inner_pairs_grad(c, d_A, j0, j1, x, y, reads, d_x, d_y);
            outer_pairs_grad(c, d_A, j0, j1, x, y, reads, d_x, d_y);
        }
        return;
    }
    weigh_pairs(c, d_A, reads, gated);
    mm_here(c->g, NN, n, dk, n, 1, d_A, n, y, dk, 1, d_x, dk);
    mm_here(c->g, TN, n, dk, n, 1, d_A, n, x, dk, 1, d_y, dk);
}

/* ---- the chunk ---------------------------------------------------------------------------- */

void chunk_read_state(struct chunk *c, float *to, const float *rows, enum reads reads, bool gated)
{
    const int dk = c->r->dk;

    mm_here(c->g, NN, c->n, (int)c->ld, dk, 1, read_rows(c, rows, reads, gated), dk, c->S, c->ld, 0,
            to, c->ld);
}

void chunk_add_pairs(const struct chunk *c, float *to, const float *A, bool transposed,
                     const float *rows)
{
    mm_here(c->g, transposed ? TN : NN, c->n, (int)c->ld, c->n, 1, A, c->n, rows, c->ld, 1, to,
            c->ld);
}

static void solve_own(struct chunk *c)
{
    const struct recur *r = c->r;

    chunk_read_state(c, c->W, c->k, READS_DECAYED, false);
    chunk_pairs(c, c->A, c->k, c->k, READS_DECAYED, false);
    for (int t = 0; t < c->n; t++) {
        const float beta = *recur_at(&r->beta, c->b, c->t0 + t, c->hs);
        float *const row = c->W + t * c->ld;
        for (int j = 0; j < t; j++) {
            const float by = c->A[t * c->n + j], *const other = c->W + j * c->ld;
            for (int e = 0; e < r->dv; e++)
                row[e] += by * other[e];
        }
        for (int e = 0; e < r->dv; e++)
            row[e] = beta * (c->V[t * c->ld + e] - row[e]);
    }
}

static void solve_free(struct chunk *c)
{
    chunk_read_state(c, c->X, c->a, READS_BEFORE, false);
    chunk_pairs(c, c->A, c->a, c->k, READS_BEFORE, false);
    chunk_add_pairs(c, c->X, c->A, false, c->V);
    chunk_pairs(c, c->Ab, c->a, c->rb, READS_BEFORE, false);
    for (int t = 0; t < c->n; t++)
        for (int j = 0; j < t; j++) {
            const float by = c->Ab[t * c->n + j];
            for (int e = 0; e < c->r->dv; e++)
                c->X[t * c->ld + e] += by * c->X[j * c->ld + e];
        }
}

void chunk_solve(struct chunk *c)
{
    if (c->r->beta.at)
        solve_own(c);
    else if (c->r->a.at)
        solve_free(c);
}

void chunk_weights(struct chunk *c, int h)
{
    const struct recur *r = c->r;
    const enum reads reads = r->u ? READS_BEFORE : READS_AFTER;

    chunk_pairs(c, c->A, c->q, c->k, reads, r->i.at);
    for (int t = 0; r->u && t < c->n; t++) {
        float sum = 0;
        for (int x = 0; x < r->dk; x++)
            sum += c->q[t * r->dk + x] * r->u[h * r->dk + x] * c->k[t * r->dk + x];
        c->A[t * c->n + t] = sum;
    }
    if (r->a.at)
        chunk_pairs(c, c->Ab, c->q, c->rb, reads, false);
}

void chunk_outputs(struct chunk *c, int h)
{
    chunk_query(c, h);
    chunk_read_state(c, c->O, c->q, c->r->u ? READS_BEFORE : READS_AFTER, c->r->i.at);
    chunk_weights(c, h);
    chunk_add_pairs(c, c->O, c->A, false, c->W);
    if (c->r->a.at)
        chunk_add_pairs(c, c->O, c->Ab, false, c->X);
}

/* S += decayed writers^T rows */
static void write_state(struct chunk *c, const float *writers, const float *rows, bool gated)
{
    const int dk = c->r->dk;

    mm_here(c->g, TN, dk, (int)c->ld, c->n, 1, write_rows(c, writers, gated), dk, rows, c->ld, 1,
            c->S, c->ld);
}

void chunk_leave(struct chunk *c)
{
    const struct recur *r = c->r;

    for (int x = 0; (r->g_width || r->i.at) && x < r->dk; x++) {
        const float w = (float)chunk_decay(c, x);
        for (int e = 0; e < c->columns; e++)
            c->S[x * c->ld + e] *= w;
    }
    write_state(c, c->k, c->W, r->i.at);
    if (r->a.at)
        write_state(c, c->rb, c->X, false);
    if (r->i.at)
        c->m[0] = c->m[c->n];
}
