/* SPDX-License-Identifier: MIT
 *
 * Recurrences whose values are single numbers and whose keys are not (dv = 1: a state space per
 * channel, as in Mamba), forward. Vectors go along the keys of a
 * channel, and the outputs of as many channels as a vector has lanes are summed together. A decay
 * is read once for each number of a state: that, and its exponential, is what this costs. */
#include "recur_operand.h"
#include "variants/backends/simd/simd.h"
#include "variants/backends/split.h"

enum { CHANNELS = 64 }; /* most of a block: its states stay in L1 */

/* Heads have rows of their own, or all have the same one. */
static bool one_or_each(const struct recur_rows *rows, const struct recur *r)
{
    return rows->at && (rows->per <= 1 || rows->per >= r->Hs);
}

static ptrdiff_t between_heads(const struct recur_rows *rows)
{
    return rows->per <= 1 ? rows->head : 0;
}

static bool channels_accepts(const struct recur *r, bool backward)
{
    return !backward && r->dv == 1 && r->dk > 1 && r->H == r->Hs && r->g_width == r->dk &&
           !r->beta.at && !r->a.at && !r->u && !r->i.at && !r->norm && one_or_each(&r->q, r) &&
           one_or_each(&r->k, r) && r->v.per <= 1 && r->g.per <= 1;
}

/* Floats of a channel's state: whole vectors, whose further lanes are 0. */
static int state_width(const struct recur *r) { return (int)round_up((size_t)r->dk, VL); }

static size_t state_floats(const struct recur *r)
{
    return (size_t)CHANNELS * (size_t)state_width(r);
}

/* Of a thread: states and, where operands are rounded, those of a key: q, k, v. */
static size_t channels_bytes(const struct recur *r)
{
    const size_t key = r->bf16 ? CHANNELS * (2 * (size_t)r->dk + 1) : 0;

    return round_up((state_floats(r) + key) * sizeof(float), 64);
}

/* Operands of a key from a channel on, and what is between the rows of two. */
struct key {
    const float *q, *k, *v; /* q: NULL = it has no query */
    ptrdiff_t q_head, k_head, v_head;
};

static struct key key_at(const struct recur *r, int b, int t, int h)
{
    const bool asked = t >= r->M;

    return (struct key){asked ? recur_at(&r->q, b, t - r->M, h) : NULL,
                        recur_at(&r->k, b, t, h),
                        recur_at(&r->v, b, t, h),
                        asked ? between_heads(&r->q) : 0,
                        between_heads(&r->k),
                        r->v.head};
}

/* Rows of n channels, dk numbers each, `head` apart: a single one where all have the same. */
static const float *rounded_rows(const struct recur *r, float *to, const float *from, int n,
                                 ptrdiff_t head)
{
    for (int c = 0; from && c < (head ? n : 1); c++)
        for (int x = 0; x < r->dk; x += VL)
            vst_upto(to + c * r->dk + x, r->dk - x, operand(r, from + c * head + x, r->dk - x));
    return from ? to : NULL;
}

/* The key of n channels, rounded. */
static struct key rounded_key(const struct recur *r, struct key x, int n, float *room)
{
    float *const q = room, *const k = q + (ptrdiff_t)CHANNELS * r->dk;
    float *const v = k + (ptrdiff_t)CHANNELS * r->dk;

    for (int c = 0; c < n; c++)
        v[c] = recur_operand(r, x.v[c * x.v_head]);
    return (struct key){rounded_rows(r, q, x.q, n, x.q_head),
                        rounded_rows(r, k, x.k, n, x.k_head),
                        v,
                        x.q_head ? r->dk : 0,
                        x.k_head ? r->dk : 0,
                        1};
}

/* Key x of up to VL channels from h on, c0 behind its first, their states at s; the sums S q in the
 * lanes of the result if the key has a query. */
VEC_INLINE vf key_of(const struct recur *r, const struct key *key, int c0, int dk, int channels,
                     int b, int t, int h, float *s)
{
    const int width = (int)round_up((size_t)dk, VL);
    const bool asked = key->q, more = t + 1 < r->M + r->L;
    const float *v = key->v + c0 * key->v_head, *g = recur_at(&r->g, b, t, h);
    const float *k = key->k + c0 * key->k_head, *q = asked ? key->q + c0 * key->q_head : NULL;
    vf sum[VL];

    UNROLL
    for (int c = 0; c < VL; c++) {
        sum[c] = v0();
        if (c >= channels)
            continue;
        for (int n = 0; n < dk; n += VL) {
            const int left = dk - n;
            const vf w = vexp(vld_upto(g + n, left, v0()));
            const vf kv = vmul(vld_upto(k + n, left, v0()), v1(*v));
            const vf S = vfma(w, vld(s + c * width + n), kv);
            vst(s + c * width + n, S);
            if (asked)
                sum[c] = vfma(S, vld_upto(q + n, left, v0()), sum[c]);
        }
        if (more)
            vprefetch(g + r->g.row, dk);
        g += r->g.head;
        v += key->v_head;
        k += key->k_head;
        q = asked ? q + key->q_head : NULL;
    }
    vtranspose(sum);
    UNROLL
    for (int c = 1; c < VL; c++)
        sum[0] = vadd(sum[0], sum[c]);
    return sum[0];
}

/* n channels of one sequence from h on; most have states of 16 numbers. */
static void channels_run(const struct recur *r, int b, int h, int n, float *s)
{
    const int K = r->M + r->L, width = state_width(r);
    const ptrdiff_t state = recur_state(r, b, h) * r->dk;

    memset(s, 0, state_floats(r) * sizeof(float));
    for (int c = 0; r->s0 && c < n; c++)
        memcpy(s + c * width, r->s0 + state + (ptrdiff_t)c * r->dk, sizeof(float) * (size_t)r->dk);
    for (int t = 0; t < K; t++) {
        const ptrdiff_t at = ((ptrdiff_t)b * r->L + t - r->M) * r->H + h;
        struct key x = key_at(r, b, t, h);
        if (r->bf16)
            x = rounded_key(r, x, n, s + state_floats(r));
        for (int c = 0; c < n; c += VL) {
            float *const from = s + c * width;
            const vf o = n - c < VL    ? key_of(r, &x, c, r->dk, n - c, b, t, h + c, from)
                         : r->dk == 16 ? key_of(r, &x, c, 16, VL, b, t, h + c, from)
                                       : key_of(r, &x, c, r->dk, VL, b, t, h + c, from);
            if (t < r->M)
                continue;
            vst_upto(r->o + at + c, n - c, vmul(v1(r->scale), o));
            if (r->den)
                vst_upto(r->den + at + c, n - c, v1(1));
        }
    }
    for (int c = 0; r->s1 && c < n; c++)
        memcpy(r->s1 + state + (ptrdiff_t)c * r->dk, s + c * width, sizeof(float) * (size_t)r->dk);
}

static int channels_team(const struct engine *g, const struct recur *r)
{
    enum { PARALLEL_MIN = 1 << 13 }; /* exponentials */

    return (double)r->B * r->H * r->dk * (r->M + r->L) > PARALLEL_MIN ? g->threads : 1;
}

/* Threads take blocks of channels of one sequence. */
static void channels_forward(const struct engine *g, const struct recur *r, void *scratch)
{
    const int threads = channels_team(g, r), each = split_channels(r->B, r->H, CHANNELS, threads);
    const int blocks = (r->H + each - 1) / each;
    const size_t bytes = channels_bytes(r);

#pragma omp parallel for schedule(static) num_threads(threads)
    for (int item = 0; item < r->B * blocks; item++) {
        const int h = item % blocks * each;
        channels_run(r, item / blocks, h, min_int(each, r->H - h),
                     (float *)((char *)scratch + bytes * (size_t)omp_get_thread_num()));
    }
}

static size_t need(const struct recur *r, int threads, bool backward)
{
    return (size_t)threads * channels_bytes(r);
}

const struct recur_impl AT_ISA(recur_channels) = {
    .name = "channels",
    .accepts = channels_accepts,
    .need = need,
    .forward = channels_forward,
};
