/* SPDX-License-Identifier: MIT
 *
 * One key and one query of a recurrence, as in decoding, or a few one after the other. It is bound by memory: each element of a state is fetched once and
 * written once, in place if the caller wants. With an erase a strip of columns is read twice, the
 * second time from L1. */
#include "recur_operand.h"
#include "variants/backends/simd/simd.h"
#include "variants/backends/split.h"

enum {
    STRIP = VEC_REGISTERS / 4, /* vectors of columns whose sums stay in registers */
    LINE = 16                  /* floats of a cache line */
};

/* One state. Rows [dk]; what the erase reads with is w k or a. */
struct step {
    const struct recur *r;
    int b, hs, t;
    const float *z0, *m0, *from; /* before the key: [dk] or NULL, the number or NULL, [dk,dv] */
    const float *next; /* fetched while this state is written, so that its erase reads from L1 */
    float *to;
    float *w, *k, *e, *rb, *q;
    float beta, bonus, den;
};

enum { STEP_ROWS = 5 };

static bool erases(const struct recur *r) { return r->beta.at || r->a.at; }

static size_t step_bytes(const struct recur *r)
{
    return round_up((size_t)r->dk * STEP_ROWS * sizeof(float), 64);
}

/* ---- one strip of columns ----------------------------------------------------------------- */

/* sum = S^T y of W vectors of columns; with W > 1 they are whole. */
VEC_INLINE void read_strip(int W, const float *S, ptrdiff_t dv, int dk, const float *y, int left,
                           vf sum[STRIP])
{
    UNROLL
    for (int c = 0; c < W; c++)
        sum[c] = v0();
    for (int n = 0; n < dk; n++, S += dv)
        UNROLL
    for (int c = 0; c < W; c++)
        sum[c] = vfma(v1(y[n]), vld_upto(S + c * VL, left, v0()), sum[c]);
}

/* S becomes w S + k y^T + b x^T; o = S^T q of the new state, or of the old one. */
VEC_INLINE void write_strip(int W, bool adds, bool before, const struct step *s, int at, int left,
                            const vf y[STRIP], const vf x[STRIP], vf o[STRIP])
{
    const ptrdiff_t dv = s->r->dv;
    const float *from = s->from + at;
    const float *next = s->next ? s->next + at : NULL;
    float *to = s->to + at;

    UNROLL
    for (int c = 0; c < W; c++)
        o[c] = v0();
    for (int n = 0; n < s->r->dk; n++, from += dv, to += dv) {
        const vf w = v1(s->w[n]), k = v1(s->k[n]), q = v1(s->q[n]);
        for (int c = 0; next && c < W * VL; c += LINE)
            __builtin_prefetch(next + c, 1);
        if (next)
            next += dv;
        UNROLL
        for (int c = 0; c < W; c++) {
            const vf old = vld_upto(from + c * VL, left, v0());
            vf S = vfma(k, y[c], vmul(w, old));
            if (adds)
                S = vfma(v1(s->rb[n]), x[c], S);
            vst_upto(to + c * VL, left, S);
            o[c] = vfma(q, before ? old : S, o[c]);
        }
    }
}

/* o of the query in s->q from S^T q. */
VEC_INLINE void put(int W, const struct step *s, const float *v, int left, float *out, const vf o[])
{
    const struct recur *r = s->r;

    UNROLL
    for (int c = 0; c < W; c++) {
        vf y = o[c];
        if (r->u)
            y = vfma(v1(s->bonus), operand(r, v + c * VL, left), y);
        vst_upto(out + c * VL, left, r->norm ? vdiv(y, v1(s->den)) : y);
    }
}

/* W vectors of columns from `at` on: the erase, the write, and the output of one query. */
VEC_INLINE void strip(int W, const struct step *s, float *out, int at)
{
    const struct recur *r = s->r;
    const int left = W > 1 ? VL : r->dv - at;
    const float *const v = recur_at(&r->v, s->b, s->t, s->hs) + at;
    vf x[STRIP], y[STRIP], o[STRIP];

    UNROLL
    for (int c = 0; c < W; c++)
        x[c] = v0();
    if (erases(r))
        read_strip(W, s->from + at, r->dv, r->dk, s->e, left, x);
    UNROLL
    for (int c = 0; c < W; c++) {
        y[c] = operand(r, v + c * VL, left);
        if (r->beta.at)
            y[c] = vmul(v1(s->beta), vsub(y[c], x[c]));
    }
    if (r->a.at && r->u)
        write_strip(W, true, true, s, at, left, y, x, o);
    else if (r->a.at)
        write_strip(W, true, false, s, at, left, y, x, o);
    else if (r->u)
        write_strip(W, false, true, s, at, left, y, x, o);
    else
        write_strip(W, false, false, s, at, left, y, x, o);
    put(W, s, v, left, out + at, o);
}

/* The output of a further query of the same state S. */
VEC_INLINE void query_strip(int W, const struct step *s, const float *S, float *out, int at)
{
    const struct recur *r = s->r;
    const int left = W > 1 ? VL : r->dv - at;
    vf o[STRIP];

    read_strip(W, S + at, r->dv, r->dk, s->q, left, o);
    put(W, s, recur_at(&r->v, s->b, s->t, s->hs) + at, left, out + at, o);
}

/* Columns [at, end): all of them, or a thread's, which begin at whole vectors. `writes`: this query
 * also takes the state to its next value; others read S. */
static void columns(const struct step *s, bool writes, const float *S, float *out, int at, int end)
{
#define STRIPS(W)                                                                                  \
    for (; at + (W)*VL <= end; at += (W)*VL)                                                       \
        if (writes)                                                                                \
            strip(W, s, out, at);                                                                  \
        else                                                                                       \
            query_strip(W, s, S, out, at);
    STRIPS(STRIP)
    STRIPS(STRIP / 2)
    for (; at < end; at += VL)
        if (writes)
            strip(1, s, out, at);
        else
            query_strip(1, s, S, out, at);
#undef STRIPS
}

/* ---- one state ---------------------------------------------------------------------------- */

/* An operand times `scale`. */
static void copy_row(float *to, const struct recur_rows *rows, const struct step *s, int h, int n,
                     float scale)
{
    const float *const from = rows->at ? recur_at(rows, s->b, s->t, h) : NULL;

    for (int x = 0; x < n; x += VL)
        vst_upto(to + x, n - x, from ? vmul(v1(scale), operand(s->r, from + x, n - x)) : v1(scale));
}

static float dot(const float *x, const float *y, const float *z, int n)
{
    vf sum = v0();

    for (int i = 0; i < n; i += VL) {
        const vf xy = vmul(vld_upto(x + i, n - i, v0()), vld_upto(y + i, n - i, v0()));
        sum = z ? vfma(xy, vld_upto(z + i, n - i, v0()), sum) : vadd(xy, sum);
    }
    return vsum(sum);
}

/* Decays, the written key, and z; returns the least divisor of the mLSTM. */
static double enter(struct step *s)
{
    const struct recur *r = s->r;
    const ptrdiff_t state = recur_state(r, s->b, s->hs);
    const float *const g = r->g_width ? recur_at(&r->g, s->b, s->t, s->hs) : NULL;
    const double m0 = s->m0 ? (double)*s->m0 : -INFINITY;
    double head = g && r->g_width == 1 ? (double)*g : 0, m = 0;
    float write = 1;

    if (r->i.at) {
        const double i = (double)*recur_at(&r->i, s->b, s->t, s->hs);
        m = fmax(head + m0, i);
        head += m0 - m;
        write = (float)exp(i - m);
        if (r->m1)
            r->m1[state] = (float)m;
    }
    copy_row(s->k, &r->k, s, s->hs, r->dk, write);
    const float w = (float)exp(head);
    for (int x = 0; x < r->dk; x += VL) {
        const int left = r->dk - x;
        vst_upto(s->w + x, left, r->g_width > 1 ? vexp(vld_upto(g + x, left, v0())) : v1(w));
    }
    for (int x = 0; r->norm && x < r->dk; x += VL) {
        const int left = r->dk - x;
        const vf z = s->z0 ? vld_upto(s->z0 + x, left, v0()) : v0();
        vst_upto(s->e + x, left,
                 vfma(vld_upto(s->w + x, left, v0()), z, vld_upto(s->k + x, left, v0())));
        if (r->z1)
            vst_upto(r->z1 + state * r->dk + x, left, vld_upto(s->e + x, left, v0()));
    }
    if (r->beta.at) {
        s->beta = *recur_at(&r->beta, s->b, s->t, s->hs);
        for (int x = 0; x < r->dk; x += VL)
            vst_upto(
                s->e + x, r->dk - x,
                vmul(vld_upto(s->w + x, r->dk - x, v0()), vld_upto(s->k + x, r->dk - x, v0())));
    } else if (r->a.at) {
        copy_row(s->e, &r->a, s, s->hs, r->dk, 1);
        copy_row(s->rb, &r->b, s, s->hs, r->dk, 1);
    }
    return r->i.at ? exp(-m) : 1;
}

/* The query of head h; its divisor from z, which a normalised state keeps in s->e. */
static void ask(struct step *s, int h, double least)
{
    const struct recur *r = s->r;

    copy_row(s->q, &r->q, s, h, r->dk, r->scale);
    s->bonus = r->u ? dot(s->q, s->k, r->u + (ptrdiff_t)h * r->dk, r->dk) : 0;
    s->den = 1;
    if (r->norm) {
        const float n = dot(s->q, s->e, NULL, r->dk);
        s->den = r->norm == RECUR_SUM ? n + r->eps : fmaxf(fabsf(n), (float)least);
    }
}

/* Columns [at, end) of one state and key. The last query of those that read the state before the
 * write, and the first of those that read it afterwards, also writes. */
static void step(struct step *s, int at, int end)
{
    const struct recur *r = s->r;
    const int heads = r->H / r->Hs, writer = r->u ? heads - 1 : 0;
    const double least = enter(s);

    for (int i = 0; i < heads; i++) {
        const int h = s->hs * heads + i;
        const ptrdiff_t query = ((ptrdiff_t)s->b * r->L + s->t) * r->H + h;
        ask(s, h, least);
        if (r->den && at == 0)
            r->den[query] = s->den;
        columns(s, i == writer, r->u ? s->from : s->to, r->o + query * r->dv, at, end);
    }
}

static const float *part_of(const float *all, ptrdiff_t at) { return all ? all + at : NULL; }

/* All keys: the first one's state is the caller's, the others' that of the key before. */
static void steps(struct step *s, int at, int end)
{
    const struct recur *r = s->r;
    const ptrdiff_t size = (ptrdiff_t)r->dk * r->dv, state = recur_state(r, s->b, s->hs);
    const bool more = erases(r) && state + 1 < (ptrdiff_t)r->B * r->Hs;

    s->to = r->s1 + state * size;
    for (s->t = 0; s->t < r->L; s->t++) {
        s->from = (s->t ? r->s1 : r->s0) + state * size;
        s->z0 = part_of(s->t ? r->z1 : r->z0, state * r->dk);
        s->m0 = part_of(s->t ? r->m1 : r->m0, state);
        s->next = more && s->t == r->L - 1 ? r->s0 + (state + 1) * size : NULL;
        step(s, at, end);
    }
}

/* Of more keys chunks are faster. */
static bool step_accepts(const struct recur *r, bool backward)
{
    enum { FEW = 4 };
    const bool carried = r->L == 1 || ((!r->norm || r->z1) && (!r->i.at || r->m1));

    return !backward && r->L >= 1 && r->L <= FEW && r->M == 0 && r->s0 && r->s1 && carried &&
           !(r->u && r->i.at);
}

/* Threads take states, or columns where there are too few states and nothing else is carried. */
static void step_forward(const struct engine *g, const struct recur *r, void *scratch)
{
    enum { PARALLEL_MIN = 1 << 15, WIDTH = 64 }; /* numbers of all states; columns of a unit */
    const int states = r->B * r->Hs;
    const int threads = (double)states * r->dk * r->dv > PARALLEL_MIN ? g->threads : 1;
    const bool whole = states >= threads || r->norm || r->i.at;
    const int slices = whole ? 1 : split_slices(states, r->dv, WIDTH, threads);
    const size_t bytes = step_bytes(r);

#pragma omp parallel for schedule(static) num_threads(threads)
    for (int item = 0; item < states * slices; item++) {
        float *const room = (float *)((char *)scratch + bytes * (size_t)omp_get_thread_num());
        struct step s = {.r = r, .b = item / slices / r->Hs, .hs = item / slices % r->Hs};
        float **const rows[STEP_ROWS] = {&s.w, &s.k, &s.e, &s.rb, &s.q};
        for (int i = 0; i < STEP_ROWS; i++)
            *rows[i] = room + (ptrdiff_t)i * r->dk;
        const int slice = item % slices;
        steps(&s, split_slice_at(r->dv, WIDTH, slice, slices),
              split_slice_at(r->dv, WIDTH, slice + 1, slices));
    }
}

static size_t need(const struct recur *r, int threads, bool backward)
{
    return (size_t)threads * step_bytes(r);
}

const struct recur_impl AT_ISA(recur_step) = {
    .name = "step",
    .accepts = step_accepts,
    .need = need,
    .forward = step_forward,
};
