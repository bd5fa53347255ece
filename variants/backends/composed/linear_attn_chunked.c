/* SPDX-License-Identifier: MIT
 *
 * Attention without softmax in chunks of rows, by the engine's products: inside a chunk the weights
 * are a small masked matrix, everything before it is in the state. The divisor is the last column
 * of the numerator: with a 1 appended to every value, v' = [v 1], the state is S' = [S z], and
 *
 *   [num den] = tril(fq fk^T) v' + fq S'          S' += fk^T v'
 *
 * are products of the same kind. A few rows use the recurrence instead, which reads and writes the
 * state once per row. One parallel region per call; items are (sequence, key head). */
#include "linear_chunks.h"

#include <omp.h>
#include <string.h>

/* ---- work space --------------------------------------------------------------------------- */

enum { PAD = 16 }; /* floats, so that rows begin at whole vectors */

ptrdiff_t linear_ld(const struct linear_attn *a)
{
    return (ptrdiff_t)round_up((size_t)a->d + 1, PAD);
}

static int linear_rows(const struct linear_attn *a)
{
    const int most = max_int(max_int(a->L, a->M), a->H / a->Hkv);

    return clamp_int(most, 1, LINEAR_CHUNK);
}

/* S', v', [num den], weights; backward has dS' beside S', e' and the gradient of the weights. */
static size_t space_floats(const struct linear_attn *a, bool backward)
{
    const size_t ld = (size_t)linear_ld(a), m = (size_t)a->m, c = (size_t)linear_rows(a);
    const size_t once = m * ld + 2 * c * ld + round_up(c * c, PAD);

    return backward ? once + m * ld + round_up(c * c, PAD) : once;
}

static size_t need(const struct linear_attn *a, int threads, bool backward)
{
    return (size_t)threads * space_floats(a, backward) * sizeof(float);
}

struct linear_space linear_space_of(const struct linear_attn *a, void *scratch, bool backward)
{
    const ptrdiff_t ld = linear_ld(a), c = linear_rows(a);
    float *at = (float *)scratch + omp_get_thread_num() * (ptrdiff_t)space_floats(a, backward);
    struct linear_space sp = {.S = at};

    sp.v = sp.S + a->m * ld;
    sp.o = sp.v + c * ld;
    sp.w = sp.o + c * ld;
    if (backward) {
        sp.d_w = sp.w + (ptrdiff_t)round_up((size_t)(c * c), PAD);
        sp.d_S = sp.d_w + (ptrdiff_t)round_up((size_t)(c * c), PAD);
    }
    return sp;
}

/* ---- one item ----------------------------------------------------------------------------- */

struct linear_item linear_item_of(const struct linear_attn *a, int item)
{
    const ptrdiff_t K = (ptrdiff_t)a->M + a->L;
    struct linear_item t = {.b = item / a->Hkv, .kv = item % a->Hkv};

    t.k = (t.b * K * a->Hkv + t.kv) * a->m;
    t.v = (t.b * K * a->Hkv + t.kv) * a->d;
    t.state = linear_state_at(a, t.b, t.kv);
    return t;
}

void linear_load_state(const struct linear_attn *a, const struct linear_item *t, float *S)
{
    const ptrdiff_t ld = linear_ld(a);

    memset(S, 0, sizeof(float) * (size_t)(a->m * ld));
    for (int x = 0; a->s0 && x < a->m; x++) {
        memcpy(S + x * ld, a->s0 + (t->state * a->m + x) * a->d, sizeof(float) * (size_t)a->d);
        S[x * ld + a->d] = a->z0[t->state * a->m + x];
    }
}

static void store_state(const struct linear_attn *a, const struct linear_item *t, const float *S)
{
    const ptrdiff_t ld = linear_ld(a);

    for (int x = 0; a->s1 && x < a->m; x++) {
        memcpy(a->s1 + (t->state * a->m + x) * a->d, S + x * ld, sizeof(float) * (size_t)a->d);
        a->z1[t->state * a->m + x] = S[x * ld + a->d];
    }
}

void linear_load_values(const struct linear_attn *a, const struct linear_item *t, float *v, int j,
                        int n)
{
    const ptrdiff_t ld = linear_ld(a), row = (ptrdiff_t)a->Hkv * a->d;

    for (int i = 0; i < n; i++) {
        memcpy(v + i * ld, a->v + t->v + (j + i) * row, sizeof(float) * (size_t)a->d);
        v[i * ld + a->d] = 1;
        memset(v + i * ld + a->d + 1, 0, sizeof(float) * (size_t)(ld - a->d - 1));
    }
}

/* S' += fk^T v' for keys [j, j+n). */
void linear_add_keys(const struct engine *g, const struct linear_attn *a,
                     const struct linear_item *t, const struct linear_space *sp, int j, int n)
{
    const ptrdiff_t ld = linear_ld(a), row = (ptrdiff_t)a->Hkv * a->m;

    g->ops.gemm(&(struct gemm){.ta = true,
                               .m = a->m,
                               .n = (int)ld,
                               .k = n,
                               .alpha = 1,
                               .beta = 1,
                               .a = a->fk + t->k + j * row,
                               .lda = row,
                               .b = sp->v,
                               .ldb = ld,
                               .c = sp->S,
                               .ldc = ld,
                               .threads = 1});
}

/* w = tril(fq fk^T) for queries [i, i+n) of head h against the keys of the chunk. */
void linear_weights(const struct engine *g, const struct linear_attn *a,
                    const struct linear_item *t, const struct linear_space *sp, int h, int i, int n)
{
    const ptrdiff_t row = (ptrdiff_t)a->Hkv * a->m;

    g->ops.gemm(&(struct gemm){.tb = true,
                               .m = n,
                               .n = n,
                               .k = a->m,
                               .alpha = 1,
                               .a = a->fq + linear_query(a, t->b, i, h) * a->m,
                               .lda = (ptrdiff_t)a->H * a->m,
                               .b = a->fk + t->k + (a->M + i) * row,
                               .ldb = row,
                               .c = sp->w,
                               .ldc = n,
                               .threads = 1});
    linear_mask(sp->w, n);
}

void linear_mask(float *w, int n)
{
    for (int i = 0; i < n; i++)
        memset(w + (ptrdiff_t)i * n + i + 1, 0, sizeof(float) * (size_t)(n - 1 - i));
}

/* o = num / (den + eps) */
static void divide(const struct linear_attn *a, const struct linear_item *t, const float *o, int h,
                   int i, int n)
{
    const ptrdiff_t ld = linear_ld(a);

    for (int r = 0; r < n; r++) {
        const ptrdiff_t at = linear_query(a, t->b, i + r, h);
        const float den = o[r * ld + a->d] + a->eps, factor = 1 / den;
        if (a->den)
            a->den[at] = den;
        for (int e = 0; e < a->d; e++)
            a->o[at * a->d + e] = o[r * ld + e] * factor;
    }
}

static void outputs(const struct engine *g, const struct linear_attn *a,
                    const struct linear_item *t, const struct linear_space *sp, int h, int i, int n)
{
    const ptrdiff_t ld = linear_ld(a);
    struct gemm p = {.m = n,
                     .n = (int)ld,
                     .k = a->m,
                     .alpha = 1,
                     .a = a->fq + linear_query(a, t->b, i, h) * a->m,
                     .lda = (ptrdiff_t)a->H * a->m,
                     .b = sp->S,
                     .ldb = ld,
                     .c = sp->o,
                     .ldc = ld,
                     .threads = 1};

    g->ops.gemm(&p);
    linear_weights(g, a, t, sp, h, i, n);
    p.k = n;
    p.beta = 1;
    p.a = sp->w;
    p.lda = n;
    p.b = sp->v;
    g->ops.gemm(&p);
    divide(a, t, sp->o, h, i, n);
}

/* The keys before the queries'. */
void linear_add_memory(const struct engine *g, const struct linear_attn *a,
                       const struct linear_item *t, const struct linear_space *sp)
{
    for (int j = 0; j < a->M; j += LINEAR_CHUNK) {
        const int n = min_int(LINEAR_CHUNK, a->M - j);
        linear_load_values(a, t, sp->v, j, n);
        linear_add_keys(g, a, t, sp, j, n);
    }
}

static void run_chunks(const struct engine *g, const struct linear_attn *a,
                       const struct linear_item *t, const struct linear_space *sp)
{
    linear_load_state(a, t, sp->S);
    linear_add_memory(g, a, t, sp);
    for (int i = 0; i < a->L; i += LINEAR_CHUNK) {
        const int n = min_int(LINEAR_CHUNK, a->L - i);
        linear_load_values(a, t, sp->v, a->M + i, n);
        for (int h = t->kv * (a->H / a->Hkv); h < (t->kv + 1) * (a->H / a->Hkv); h++)
            outputs(g, a, t, sp, h, i, n);
        if (a->s1 || i + n < a->L)
            linear_add_keys(g, a, t, sp, a->M + i, n);
    }
    store_state(a, t, sp->S);
}

/* ---- a few rows: the recurrence ----------------------------------------------------------- */

/* The first row reads the given state, the last row writes the wanted one; between them it is kept
 * in sp->S, which has room for S and z one after the other. */
static void run_rows(const struct engine *g, const struct linear_attn *a,
                     const struct linear_item *t, const struct linear_space *sp)
{
    const int team = a->H / a->Hkv, K = a->M + a->L;
    const ptrdiff_t z_at = t->state * a->m, s_at = z_at * a->d, floats = (ptrdiff_t)a->m * a->d;
    struct linear_step p = {.s = sp->S, .z = sp->S + floats, .eps = a->eps, .m = a->m, .d = a->d};

    if (!a->s0)
        memset(sp->S, 0, sizeof(float) * (size_t)(floats + a->m));
    p.s0 = a->s0 ? a->s0 + s_at : p.s;
    p.z0 = a->s0 ? a->z0 + z_at : p.z;
    for (int j = 0; j < K; j++) {
        if (j == K - 1 && a->s1) {
            p.s = a->s1 + s_at;
            p.z = a->z1 + z_at;
        }
        p.k = a->fk + t->k + (ptrdiff_t)j * a->Hkv * a->m;
        p.v = a->v + t->v + (ptrdiff_t)j * a->Hkv * a->d;
        if (j >= a->M) {
            const ptrdiff_t at = linear_query(a, t->b, j - a->M, t->kv * team);
            p.queries = team;
            p.q = a->fq + at * a->m;
            p.o = a->o + at * a->d;
            p.den = a->den ? a->den + at : sp->o;
        }
        g->ops.linear_step(&p);
        p.s0 = p.s;
        p.z0 = p.z;
    }
}

/* ---- the implementation ------------------------------------------------------------------- */

/* Up to this many rows, reading the state once per row costs less than products over it. The
 * divisors of a team must fit where a chunk's sums would be. */
static bool by_rows(const struct linear_attn *a)
{
    enum { FEW = 4 };

    return a->M + a->L > 0 && a->M + a->L <= FEW && a->H / a->Hkv <= linear_rows(a);
}

static int team(const struct engine *g, const struct linear_attn *a)
{
    enum { PARALLEL_MIN = 1 << 15 }; /* products of a feature and a value */

    return (double)a->B * a->Hkv * (a->M + a->L) * a->m * a->d > PARALLEL_MIN ? g->threads : 1;
}

static void forward(const struct engine *g, const struct linear_attn *a, void *scratch)
{
#pragma omp parallel for schedule(dynamic, 1) num_threads(team(g, a))
    for (int item = 0; item < a->B * a->Hkv; item++) {
        const struct linear_item t = linear_item_of(a, item);
        const struct linear_space sp = linear_space_of(a, scratch, false);
        if (by_rows(a))
            run_rows(g, a, &t, &sp);
        else
            run_chunks(g, a, &t, &sp);
    }
}

const struct linear_impl linear_chunked = {
    .name = "chunked",
    .need = need,
    .forward = forward,
    .backward = linear_chunked_backward,
};
