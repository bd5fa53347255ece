/* SPDX-License-Identifier: MIT
 *
 * A chunk of keys of one state, with the vectors of vec.h; included once per instruction set. The
 * equations are those of composed/recur_chunks.h. What differs:
 *
 *   - Decays are carried, never summed: a writer's row is multiplied by w_t at each later row t,
 *     a reader's by the product of the decays up to its own. All factors are <= 1, so nothing
 *     overflows, and no digit is lost in sums of logarithms.
 *   - A write gate is a decay of its own: w_t = exp(g_t + m_{t-1} - m_t), and the written key is
 *     multiplied by exp(i_t - m_t).
 *   - Chunks are short. What costs most, the products with the state, does not depend on their
 *     length, and pairs cost in proportion to it.
 *   - The eraser reads with rows e, which are -beta k or a: both triangular systems are then
 *     X_t = R_t + sum_{j<t} A[t,j] X_j.
 *
 * Writers lie across: CHUNK keys of one channel are adjacent, in whole vectors. */
#include "recur_operand.h"
#include "variants/backends/simd/tile.h"
#include "variants/backends/split.h"

#include <omp.h>

enum {
    CHUNK = 16, /* keys */
    LANES = CHUNK / VL,
    TILE_ROWS = VEC_REGISTERS / 4,
    PAD = 16 /* floats; rows begin at cache lines */
};

/* Rows of S, z and of the readers have room for dkp channels, which are 0 behind the last. */
struct chunk {
    const struct recur *r;
    int b, hs, t0, n;  /* keys [t0, t0+n) */
    int next, fetched; /* the chunk after this one: keys from t0 + next on, of which so many rows
                          are fetched */
    int e0, columns;   /* of v and o */
    ptrdiff_t dkp, ld; /* dk and columns in whole lines */
    float *S, *z;      /* [dkp,ld] [dkp] before the chunk */
    float *V, *X, *O;  /* [CHUNK,ld]; of an erase by the own key, V becomes its solution */
    float *q, *k, *e, *rb; /* [CHUNK,dkp] readers and writers; q comes times scale */
    float *x;              /* [CHUNK,dkp] a reader times its decays */
    float *kt, *bt;        /* [dkp,CHUNK] writers across */
    float *kd, *bd;        /* the same times their decays up to the chunk's end */
    float *w;              /* [CHUNK,dkp] decays of channels */
    float *P;              /* [CHUNK+1,dkp] or [CHUNK+1]: their products before each row */
    float *E;      /* [CHUNK+1,CHUNK]: row t has the decays between the writers before t and t,
                                 or ones if channels decay by themselves; 0 behind */
    float *A, *Ab; /* [CHUNK,CHUNK] */
    double m[CHUNK + 1]; /* before the first row, and after each */
};

static bool by_channel(const struct recur *r) { return r->g_width > 1; }

/* ---- work space --------------------------------------------------------------------------- */

static ptrdiff_t padded(int n) { return (ptrdiff_t)round_up((size_t)n, PAD); }

/* Lays the arrays out from `at` on (NULL: nowhere) and returns their bytes. */
static size_t chunk_layout(struct chunk *c, const struct recur *r, char *at)
{
    const size_t dkp = (size_t)padded(r->dk), ld = (size_t)padded(r->dv), square = CHUNK * CHUNK;
    const struct {
        float **to;
        size_t n;
        bool wanted;
    } arrays[] = {{&c->S, dkp * ld, true},
                  {&c->z, dkp, true},
                  {&c->V, CHUNK * ld, true},
                  {&c->X, CHUNK * ld, r->a.at},
                  {&c->O, CHUNK * ld, true},
                  {&c->q, CHUNK * dkp, true},
                  {&c->k, CHUNK * dkp, true},
                  {&c->e, CHUNK * dkp, r->a.at || r->beta.at},
                  {&c->rb, CHUNK * dkp, r->a.at},
                  {&c->x, CHUNK * dkp, true},
                  {&c->kt, CHUNK * dkp, true},
                  {&c->bt, CHUNK * dkp, r->a.at},
                  {&c->kd, CHUNK * dkp, true},
                  {&c->bd, CHUNK * dkp, r->a.at},
                  {&c->w, CHUNK * dkp, by_channel(r)},
                  {&c->P, (CHUNK + 1) * (by_channel(r) ? dkp : 1), true},
                  {&c->E, square + CHUNK, true},
                  {&c->A, square, true},
                  {&c->Ab, square, r->a.at}};
    size_t used = 0;

    *c = (struct chunk){.r = r, .dkp = (ptrdiff_t)dkp};
    for (size_t i = 0; i < ARRAY_LEN(arrays); i++)
        if (arrays[i].wanted) {
            *arrays[i].to = at ? (float *)(at + used) : NULL;
            used += round_up(arrays[i].n * sizeof(float), 64);
        }
    if (!r->a.at) { /* never read, but pointed into */
        c->X = c->V;
        c->Ab = c->A;
        c->bd = c->kd;
    }
    return used;
}

static size_t chunk_bytes(const struct recur *r)
{
    struct chunk c;

    return chunk_layout(&c, r, NULL);
}

#include "recur_pairs.inc.c"

/* ---- state -------------------------------------------------------------------------------- */

static void load_state(struct chunk *c)
{
    const struct recur *r = c->r;
    const ptrdiff_t at = recur_state(r, c->b, c->hs);

    memset(c->S, 0, sizeof(float) * (size_t)(c->dkp * c->ld));
    memset(c->z, 0, sizeof(float) * (size_t)c->dkp);
    memset(c->kd, 0, sizeof(float) * (size_t)(CHUNK * c->dkp));
    memset(c->bd, 0, sizeof(float) * (size_t)(CHUNK * c->dkp));
    for (int x = 0; r->s0 && x < r->dk; x++)
        memcpy(c->S + x * c->ld, r->s0 + (at * r->dk + x) * r->dv + c->e0,
               sizeof(float) * (size_t)c->columns);
    if (r->z0)
        memcpy(c->z, r->z0 + at * r->dk, sizeof(float) * (size_t)r->dk);
    c->n = 0;
    c->m[0] = r->m0 ? (double)r->m0[at] : -INFINITY;
}

static void store_state(const struct chunk *c)
{
    const struct recur *r = c->r;
    const ptrdiff_t at = recur_state(r, c->b, c->hs);

    for (int x = 0; r->s1 && x < r->dk; x++)
        memcpy(r->s1 + (at * r->dk + x) * r->dv + c->e0, c->S + x * c->ld,
               sizeof(float) * (size_t)c->columns);
    if (c->e0 > 0)
        return;
    if (r->norm && r->z1)
        memcpy(r->z1 + at * r->dk, c->z, sizeof(float) * (size_t)r->dk);
    if (r->i.at && r->m1)
        r->m1[at] = (float)c->m[0];
}

/* ---- operands ----------------------------------------------------------------------------- */

/* Operands of rows t.. times scale[i] (NULL = 1), 0 behind their end and behind the last. at NULL:
 * ones. */
static void gather(const struct chunk *c, float *to, ptrdiff_t ld, const struct recur_rows *rows,
                   int t, int h, int first, int width, const float *scale)
{
    for (int i = 0; i < CHUNK; i++, to += ld) {
        if (rows->at && i < c->fetched)
            vprefetch(recur_at(rows, c->b, t + c->next + i, h) + first, width);
        const float *const from = rows->at ? recur_at(rows, c->b, t + i, h) + first : NULL;
        const vf by = v1(scale && i < c->n ? scale[i] : 1);
        for (int x = 0; x < ld; x += VL) {
            const int left = i < c->n ? clamp_int(width - x, 0, VL) : 0;
            vf y = v0();
            if (left > 0)
                y = from ? operand(c->r, from + x, left) : v1(1);
            vst(to + x, vmul(by, y));
        }
        if (!rows->at && i < c->n)
            memset(to + width, 0, sizeof(float) * (size_t)(ld - width));
    }
}

/* [CHUNK,width] to [width,CHUNK] */
static void across(float *to, const float *from, ptrdiff_t width)
{
    for (int l = 0; l < CHUNK; l += VL)
        pack_across(to + l, CHUNK, from + l * width, width, VL, (int)width, 1);
}

/* w and P of channels; E is a mask. */
static void channel_decays(struct chunk *c)
{
    const struct recur *r = c->r;

    for (ptrdiff_t x = 0; x < c->dkp; x += VL)
        vst(c->P + x, v1(1));
    for (int t = 0; t < CHUNK; t++) {
        const float *const g = t < c->n ? recur_at(&r->g, c->b, c->t0 + t, c->hs) : NULL;
        for (int x = 0; x < c->dkp; x += VL) {
            const int left = clamp_int(r->dk - x, 0, VL);
            const vf w = g && left > 0 ? vexp(vld_upto(g + x, left, v0())) : v1(1);
            vst(c->w + t * c->dkp + x, w);
            vst(c->P + (t + 1) * c->dkp + x, vmul(vld(c->P + t * c->dkp + x), w));
        }
    }
}

/* Decays of the whole state into w, what writers are multiplied by into `write`. */
static void head_decays(struct chunk *c, float w[CHUNK], float write[CHUNK])
{
    const struct recur *r = c->r;

    for (int t = 0; t < CHUNK; t++) {
        double g = 0, m = c->m[t];
        write[t] = 0;
        if (t < c->n && r->g_width)
            g = (double)*recur_at(&r->g, c->b, c->t0 + t, c->hs);
        if (t < c->n && r->i.at) {
            const double i = (double)*recur_at(&r->i, c->b, c->t0 + t, c->hs);
            m = fmax(g + m, i);
            g += c->m[t] - m;
            write[t] = (float)(i - m);
        }
        w[t] = (float)g;
        c->m[t + 1] = m;
    }
    for (int x = 0; x < CHUNK; x += VL) {
        vst(w + x, vexp(vld(w + x)));
        vst(write + x, vexp(vld(write + x)));
    }
}

static void decays(struct chunk *c)
{
    float w[CHUNK], write[CHUNK];

    head_decays(c, w, write);
    if (by_channel(c->r))
        channel_decays(c);
    else
        c->P[0] = 1;
    memset(c->E, 0, sizeof(float) * CHUNK);
    for (int t = 0; t < CHUNK; t++) {
        float *const row = c->E + (t + 1) * CHUNK;
        const float by = by_channel(c->r) ? 1 : w[t];
        for (int x = 0; x < CHUNK; x += VL)
            vst(row + x, vmul(v1(by), vld(row - CHUNK + x)));
        row[t] = write[t];
        if (!by_channel(c->r))
            c->P[t + 1] = c->P[t] * w[t];
    }
}

/* Go to keys [t0, t0+n). */
static void enter(struct chunk *c, int t0, int n)
{
    const struct recur *r = c->r;
    float beta[CHUNK], minus[CHUNK];

    c->t0 = t0;
    c->n = n;
    decays(c);
    gather(c, c->k, c->dkp, &r->k, t0, c->hs, 0, r->dk, NULL);
    across(c->kt, c->k, c->dkp);
    for (int t = 0; r->beta.at && t < n; t++) {
        beta[t] = *recur_at(&r->beta, c->b, t0 + t, c->hs);
        minus[t] = -beta[t];
    }
    gather(c, c->V, c->ld, &r->v, t0, c->hs, c->e0, c->columns, r->beta.at ? beta : NULL);
    if (r->beta.at)
        gather(c, c->e, c->dkp, &r->k, t0, c->hs, 0, r->dk, minus);
    if (r->a.at) {
        gather(c, c->e, c->dkp, &r->a, t0, c->hs, 0, r->dk, NULL);
        gather(c, c->rb, c->dkp, &r->b, t0, c->hs, 0, r->dk, NULL);
        across(c->bt, c->rb, c->dkp);
    }
}

/* c->x = a reader's rows times the product of the decays before the row, or up to it. */
static void decay_reader(struct chunk *c, const float *rows, bool before)
{
    for (int t = 0; t < CHUNK; t++)
        for (int x = 0; x < c->dkp; x += VL) {
            const int at = before ? t : t + 1;
            const vf p = by_channel(c->r) ? vld(c->P + at * c->dkp + x) : v1(c->P[at]);
            vst(c->x + t * c->dkp + x, vmul(p, vld(rows + t * c->dkp + x)));
        }
}

/* ---- erasing ------------------------------------------------------------------------------ */

/* What is written: of an erase by the own key into V, of a free rank one also X. */
static void solve(struct chunk *c)
{
    const struct recur *r = c->r;
    const bool free_form = r->a.at;
    float *const X = free_form ? c->X : c->V;

    if (!free_form && !r->beta.at)
        return;
    if (free_form && c->n < CHUNK)
        memset(X, 0, sizeof(float) * (size_t)(CHUNK * c->ld));
    decay_reader(c, c->e, free_form);
    pairs(c, c->A, c->e, c->kt, c->kd, free_form);
    if (free_form)
        pairs(c, c->Ab, c->e, c->bt, c->bd, true);
    for (int t = 0; t < c->n; t += TILE_ROWS) {
        const struct term terms[] = {
            {c->x + t * c->dkp, c->dkp, 1, c->S, r->dk},
            {c->A + t * CHUNK, CHUNK, 1, c->V, min_int(c->n, t + TILE_ROWS)}};
        tiles(c->ld, X + t * c->ld, free_form ? NULL : X + t * c->ld, NULL, terms,
              free_form ? 2 : 1);
    }
    substitute(c, X, free_form ? c->Ab : c->A);
}

/* ---- outputs ------------------------------------------------------------------------------ */

/* sum_n q u k of each row, instead of the pair of a row with itself. */
static void add_bonus(struct chunk *c, int h)
{
    const struct recur *r = c->r;

    for (int t = 0; t < c->n; t++) {
        vf sum = v0();
        for (int x = 0; x < r->dk; x += VL) {
            const vf u = vld_upto(r->u + (ptrdiff_t)h * r->dk + x, r->dk - x, v0());
            const vf k = vld(c->k + t * c->dkp + x);
            sum = vfma(vmul(u, k), vld(c->q + t * c->dkp + x), sum);
        }
        c->A[t * CHUNK + t] = vsum(sum);
    }
}

/* q . z of row t, for the queries asked last. */
static float normaliser(const struct chunk *c, int t)
{
    vf sum = v0();

    for (int x = 0; x < c->dkp; x += VL)
        sum = vfma(vld(c->x + t * c->dkp + x), vld(c->z + x), sum);
    for (int j = 0; j < CHUNK; j += VL)
        sum = vadd(sum, vld(c->A + t * CHUNK + j));
    return vsum(sum);
}

/* The mLSTM's, 1 in units of the state. */
static float least_divisor(const struct chunk *c, int t)
{
    return (float)exp(c->r->i.at ? -c->m[t + 1] : 0);
}

static float divisor(const struct chunk *c, int t)
{
    const float n = normaliser(c, t);

    return c->r->norm == RECUR_SUM ? n + c->r->eps : fmaxf(fabsf(n), least_divisor(c, t));
}

static void put_outputs(const struct chunk *c, int h)
{
    const struct recur *r = c->r;

    for (int t = 0; t < c->n; t++) {
        const ptrdiff_t at = ((ptrdiff_t)c->b * r->L + c->t0 - r->M + t) * r->H + h;
        const float den = r->norm ? divisor(c, t) : 1;
        float *const to = r->o + at * r->dv + c->e0;
        if (r->den && c->e0 == 0)
            r->den[at] = den;
        for (int e = 0; e < c->columns; e += VL) {
            const vf o = vld(c->O + t * c->ld + e);
            vst_upto(to + e, c->columns - e, r->norm ? vdiv(o, v1(den)) : o);
        }
    }
}

/* Queries of head h: their rows in q, with decays in x, and their pairs. */
static void ask(struct chunk *c, int h)
{
    const struct recur *r = c->r;
    const bool before = r->u;
    float scale[CHUNK];

    for (int t = 0; t < CHUNK; t++)
        scale[t] = r->scale;
    gather(c, c->q, c->dkp, &r->q, c->t0 - r->M, h, 0, r->dk, scale);
    decay_reader(c, c->q, before);
    pairs(c, c->A, c->q, c->kt, c->kd, before);
    if (r->u)
        add_bonus(c, h);
    if (r->a.at)
        pairs(c, c->Ab, c->q, c->bt, c->bd, before);
}

static void outputs(struct chunk *c, int h)
{
    const struct recur *r = c->r;

    ask(c, h);
    for (int t = 0; t < c->n; t += TILE_ROWS) {
        const int seen = min_int(c->n, t + TILE_ROWS);
        const struct term terms[] = {{c->x + t * c->dkp, c->dkp, 1, c->S, r->dk},
                                     {c->A + t * CHUNK, CHUNK, 1, c->V, seen},
                                     {c->Ab + t * CHUNK, CHUNK, 1, c->X, seen}};
        tiles(c->ld, c->O + t * c->ld, NULL, NULL, terms, r->a.at ? 3 : 2);
    }
    put_outputs(c, h);
}

/* The writers' decays up to the chunk's end, where no reader has asked for its pairs. */
static void decay_writers(struct chunk *c)
{
    if (!c->r->a.at && !c->r->beta.at)
        pairs(c, c->A, c->k, c->kt, c->kd, false);
}

/* From the state before the chunk to the one after it. */
static void leave(struct chunk *c)
{
    const struct recur *r = c->r;
    float decay[PAD];

    for (ptrdiff_t x = 0; x < c->dkp; x += TILE_ROWS) {
        const struct term terms[] = {{c->kd + x * CHUNK, CHUNK, 1, c->V, c->n},
                                     {c->bd + x * CHUNK, CHUNK, 1, c->X, c->n}};
        for (int i = 0; i < TILE_ROWS; i++)
            decay[i] = by_channel(r) ? c->P[c->n * c->dkp + x + i] : c->P[c->n];
        tiles(c->ld, c->S + x * c->ld, c->S + x * c->ld, decay, terms, r->a.at ? 2 : 1);
    }
    for (ptrdiff_t x = 0; r->norm && x < r->dk; x++) {
        vf sum = v0();
        for (int j = 0; j < CHUNK; j += VL)
            sum = vadd(sum, vld(c->kd + x * CHUNK + j));
        c->z[x] = c->z[x] * (by_channel(r) ? c->P[c->n * c->dkp + x] : c->P[c->n]) + vsum(sum);
    }
    c->m[0] = c->m[c->n];
}

/* ---- all keys of one state ---------------------------------------------------------------- */

static void run(struct chunk *c)
{
    const struct recur *r = c->r;
    const int K = r->M + r->L, heads = r->H / r->Hs;

    load_state(c);
    for (int t0 = 0; t0 < K; t0 += c->n) {
        const bool reads = t0 >= r->M; /* no chunk has keys of both kinds */
        const int until = reads ? K : r->M;
        c->next = CHUNK;
        c->fetched = clamp_int(until - t0 - CHUNK, 0, CHUNK);
        enter(c, t0, min_int(CHUNK, until - t0));
        solve(c);
        if (!reads)
            decay_writers(c);
        for (int h = c->hs * heads; reads && h < (c->hs + 1) * heads; h++)
            outputs(c, h);
        if (t0 + c->n < K || r->s1 || r->z1 || r->m1)
            leave(c);
    }
    store_state(c);
}

/* Threads take states, or columns of v where there are too few states: columns do not interact. */
static void chunk_forward(const struct engine *g, const struct recur *r, void *scratch)
{
    enum { PARALLEL_MIN = 1 << 15 }; /* products of a key and a value channel */
    const bool worth = (double)r->B * r->Hs * (r->M + r->L) * r->dk * r->dv > PARALLEL_MIN;
    const int threads = worth ? g->threads : 1, states = r->B * r->Hs;
    /* In place, one slice would overwrite what another has still to read. */
    const bool whole = (r->z0 && r->z0 == r->z1) || (r->m0 && r->m0 == r->m1);
    const int slices = whole ? 1 : split_slices(states, r->dv, PAD, threads);
    const size_t bytes = chunk_bytes(r);

#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
    for (int item = 0; item < states * slices; item++) {
        const int state = item / slices, slice = item % slices;
        char *const room = (char *)scratch + bytes * (size_t)omp_get_thread_num();
        struct chunk c;
        chunk_layout(&c, r, room);
        c.b = state / r->Hs;
        c.hs = state % r->Hs;
        c.e0 = split_slice_at(r->dv, PAD, slice, slices);
        c.columns = split_slice_at(r->dv, PAD, slice + 1, slices) - c.e0;
        c.ld = padded(c.columns);
        run(&c);
    }
}
