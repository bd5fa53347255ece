/* SPDX-License-Identifier: MIT
 *
 * Recurrences whose states are single numbers (dk = dv = 1, as in minimal gated units), with
 * vectors across heads. */
#include "variants/backends/recur.h"
#include "variants/backends/simd/simd.h"
#include "variants/backends/simd/vec.h"
#include "variants/backends/split.h"

enum { HEADS = 128, AHEAD = 8 }; /* most of a block; rows that are fetched before their use */

/* Adjacent heads, and no element that is used twice. */
static bool plain_rows(const struct recur_rows *rows, const struct recur *r)
{
    return rows->head == 1 && rows->per <= 1 && (rows->row || r->M + r->L < 2) &&
           (rows->batch || r->B < 2);
}

static bool unit_accepts(const struct recur *r, bool backward)
{
    return r->dk == 1 && r->dv == 1 && !r->bf16 && r->H == r->Hs && !r->beta.at && !r->a.at &&
           !r->u && !r->i.at && !r->norm && plain_rows(&r->v, r) &&
           (!r->g_width || plain_rows(&r->g, r)) && (!r->q.at || plain_rows(&r->q, r)) &&
           (!r->k.at || plain_rows(&r->k, r));
}

/* Forward has one row of states; backward all of them, and their decays. */
static size_t unit_bytes(const struct recur *r, bool backward)
{
    const size_t rows = backward ? 2 * (size_t)(r->M + r->L) + 2 : 1;

    return rows * HEADS * sizeof(float);
}

/* ---- one step of n heads from h on -------------------------------------------------------- */

static void fetch(const struct recur_rows *rows, int b, int t, int h, int n)
{
    if (rows->at)
        vprefetch(recur_at(rows, b, t, h), n);
}

/* A row's vector at x; ones if there is none. */
VEC_INLINE vf operand(const struct recur_rows *rows, int b, int t, int h, int x, int left)
{
    return rows->at ? vld_upto(recur_at(rows, b, t, h) + x, left, v0()) : v1(1);
}

VEC_INLINE vf decay(const struct recur *r, int b, int t, int h, int x, int left)
{
    return r->g_width ? vexp(operand(&r->g, b, t, h, x, left)) : v1(1);
}

/* to = w from + k v; w is kept if `w` is given. */
static void unit_step(const struct recur *r, int b, int t, int h, int n, const float *from,
                      float *to, float *w)
{
    for (int x = 0; x < n; x += VL) {
        const int left = n - x;
        const vf k = operand(&r->k, b, t, h, x, left), v = operand(&r->v, b, t, h, x, left);
        const vf by = decay(r, b, t, h, x, left);
        vst(to + x, vfma(by, vld(from + x), vmul(k, v)));
        if (w)
            vst(w + x, by);
    }
}

static void begin(const struct recur *r, int b, int h, int n, float *s)
{
    memset(s, 0, HEADS * sizeof(float));
    if (r->s0)
        memcpy(s, r->s0 + recur_state(r, b, h), sizeof(float) * (size_t)n);
}

/* ---- forward ------------------------------------------------------------------------------ */

static void unit_run(const struct recur *r, int b, int h, int n, float *s)
{
    const int K = r->M + r->L;

    begin(r, b, h, n, s);
    for (int t = 0; t < K; t++) {
        if (t + AHEAD < K) {
            fetch(&r->k, b, t + AHEAD, h, n);
            fetch(&r->v, b, t + AHEAD, h, n);
            if (r->g_width)
                fetch(&r->g, b, t + AHEAD, h, n);
        }
        unit_step(r, b, t, h, n, s, s, NULL);
        const ptrdiff_t at = ((ptrdiff_t)b * r->L + t - r->M) * r->H + h;
        for (int x = 0; t >= r->M && x < n; x += VL) {
            const vf q = operand(&r->q, b, t - r->M, h, x, n - x);
            vst_upto(r->o + at + x, n - x, vmul(vmul(v1(r->scale), q), vld(s + x)));
            if (r->den)
                vst_upto(r->den + at + x, n - x, v1(1));
        }
    }
    if (r->s1)
        memcpy(r->s1 + recur_state(r, b, h), s, sizeof(float) * (size_t)n);
}

static int unit_team(const struct engine *g, const struct recur *r)
{
    enum { PARALLEL_MIN = 1 << 13 }; /* exponentials */

    return (double)r->B * r->H * (r->M + r->L) > PARALLEL_MIN ? g->threads : 1;
}

/* ---- backward ----------------------------------------------------------------------------- */

static void put(float *d, const struct recur_rows *rows, int b, int t, int h, int x, int left,
                vf value)
{
    if (d && rows->at)
        vst_upto(recur_grad_at(d, rows, b, t, h) + x, left, value);
}

/* One key: d_s [HEADS] from the gradient of the state behind it to that of the state before it. */
static void unit_back(const struct recur *r, const struct recur_grad *d, int b, int t, int h, int n,
                      const float *s, const float *w, float *d_s)
{
    const ptrdiff_t at = ((ptrdiff_t)b * r->L + t - r->M) * r->H + h;

    for (int x = 0; x < n; x += VL) {
        const int left = n - x;
        const vf k = operand(&r->k, b, t, h, x, left), v = operand(&r->v, b, t, h, x, left);
        vf ds = vld(d_s + x);
        if (t >= r->M) {
            const vf d_o = vmul(v1(r->scale), vld_upto(d->d_o + at + x, left, v0()));
            ds = vfma(operand(&r->q, b, t - r->M, h, x, left), d_o, ds);
            put(d->d_q, &r->q, b, t - r->M, h, x, left, vmul(vld(s + HEADS + x), d_o));
        }
        put(d->d_k, &r->k, b, t, h, x, left, vmul(ds, v));
        put(d->d_v, &r->v, b, t, h, x, left, vmul(ds, k));
        ds = vmul(ds, vld(w + x));
        if (r->g_width)
            put(d->d_g, &r->g, b, t, h, x, left, vmul(ds, vld(s + x)));
        vst(d_s + x, ds);
    }
}

static void unit_reverse(const struct recur *r, const struct recur_grad *d, int b, int h, int n,
                         float *room)
{
    const int K = r->M + r->L;
    const ptrdiff_t state = recur_state(r, b, h);
    float *const d_s = room, *const s = d_s + HEADS, *const w = s + (ptrdiff_t)(K + 1) * HEADS;

    begin(r, b, h, n, s);
    for (int t = 0; t < K; t++) {
        float *const from = s + (ptrdiff_t)t * HEADS;
        unit_step(r, b, t, h, n, from, from + HEADS, w + (ptrdiff_t)t * HEADS);
    }
    memset(d_s, 0, HEADS * sizeof(float));
    if (d->d_s1)
        memcpy(d_s, d->d_s1 + state, sizeof(float) * (size_t)n);
    for (int t = K - 1; t >= 0; t--)
        unit_back(r, d, b, t, h, n, s + (ptrdiff_t)t * HEADS, w + (ptrdiff_t)t * HEADS, d_s);
    if (d->d_s0)
        memcpy(d->d_s0 + state, d_s, sizeof(float) * (size_t)n);
    if (d->d_z0)
        memset(d->d_z0 + state, 0, sizeof(float) * (size_t)n);
}

/* ---- both --------------------------------------------------------------------------------- */

/* Forward where d is NULL. Threads take blocks of heads of one sequence. */
static void unit_backward(const struct engine *g, const struct recur *r, const struct recur_grad *d,
                          void *scratch)
{
    const int threads = unit_team(g, r), each = split_channels(r->B, r->H, HEADS, threads);
    const int blocks = (r->H + each - 1) / each;
    const size_t bytes = unit_bytes(r, d != NULL);

#pragma omp parallel for schedule(static) num_threads(threads)
    for (int item = 0; item < r->B * blocks; item++) {
        const int h = item % blocks * each, n = min_int(each, r->H - h);
        float *const room = (float *)((char *)scratch + bytes * (size_t)omp_get_thread_num());
        if (d)
            unit_reverse(r, d, item / blocks, h, n, room);
        else
            unit_run(r, item / blocks, h, n, room);
    }
}

static void unit_forward(const struct engine *g, const struct recur *r, void *scratch)
{
    unit_backward(g, r, NULL, scratch);
}

static size_t need(const struct recur *r, int threads, bool backward)
{
    return (size_t)threads * unit_bytes(r, backward);
}

const struct recur_impl AT_ISA(recur_unit) = {
    .name = "elementwise",
    .accepts = unit_accepts,
    .need = need,
    .forward = unit_forward,
    .backward = unit_backward,
};
