/* SPDX-License-Identifier: MIT
 *
 * Attention without softmax in chunks, backward. With e' = [dO/den, -(dO . o)/den] for the gradient
 * of [num den], v' and S' as in linear_attn_chunked.c, W = tril(fq fk^T) and G = tril(e' v'^T) its
 * gradient, first forwards over the chunks for S',
 *
 *   d_fq = e' S'^T + G fk
 *
 * then backwards for dS', the gradient of the state after the chunk:
 *
 *   d_fk = v' dS'^T + G^T fq     d_v = fk dS' + W^T e'     dS' += fq^T e' */
#include "linear_chunks.h"

#include <string.h>

struct half {
    const struct engine *g;
    const struct linear_attn *a;
    const struct linear_grad *d;
    struct linear_item t;
    struct linear_space sp;
};

static ptrdiff_t key_row(const struct linear_attn *a) { return (ptrdiff_t)a->Hkv * a->m; }
static ptrdiff_t value_row(const struct linear_attn *a) { return (ptrdiff_t)a->Hkv * a->d; }
static ptrdiff_t query_row(const struct linear_attn *a) { return (ptrdiff_t)a->H * a->m; }

/* e' of queries [i, i+n) of head h, in sp.o. */
static void load_output_grads(const struct half *x, int h, int i, int n)
{
    const struct linear_attn *a = x->a;
    const ptrdiff_t ld = linear_ld(a);

    for (int r = 0; r < n; r++) {
        const ptrdiff_t at = linear_query(a, x->t.b, i + r, h);
        const float *d_o = x->d->d_o + at * a->d, *o = a->o + at * a->d;
        const float factor = 1 / a->den[at];
        float *e = x->sp.o + r * ld, sum = 0;
        for (int c = 0; c < a->d; c++) {
            e[c] = d_o[c] * factor;
            sum += d_o[c] * o[c];
        }
        e[a->d] = -sum * factor;
        memset(e + a->d + 1, 0, sizeof(float) * (size_t)(ld - a->d - 1));
    }
}

/* G [n,n] = tril(e' v'^T) */
static void weight_grads(const struct half *x, int n)
{
    const ptrdiff_t ld = linear_ld(x->a);

    x->g->ops.gemm(&(struct gemm){.tb = true,
                                  .m = n,
                                  .n = n,
                                  .k = x->a->d + 1,
                                  .alpha = 1,
                                  .a = x->sp.o,
                                  .lda = ld,
                                  .b = x->sp.v,
                                  .ldb = ld,
                                  .c = x->sp.d_w,
                                  .ldc = n,
                                  .threads = 1});
    linear_mask(x->sp.d_w, n);
}

/* d_fq = e' S'^T + G fk */
static void query_grads(const struct half *x, int h, int i, int n)
{
    const struct linear_attn *a = x->a;
    const ptrdiff_t ld = linear_ld(a), at = linear_query(a, x->t.b, i, h) * a->m;
    struct gemm p = {.tb = true,
                     .m = n,
                     .n = a->m,
                     .k = a->d + 1,
                     .alpha = 1,
                     .a = x->sp.o,
                     .lda = ld,
                     .b = x->sp.S,
                     .ldb = ld,
                     .c = x->d->d_fq + at,
                     .ldc = query_row(a),
                     .threads = 1};

    x->g->ops.gemm(&p);
    p.tb = false;
    p.k = n;
    p.beta = 1;
    p.a = x->sp.d_w;
    p.lda = n;
    p.b = a->fk + x->t.k + (a->M + i) * key_row(a);
    p.ldb = key_row(a);
    x->g->ops.gemm(&p);
}

/* Gradients of keys [j, j+n) through the state: d_fk = v' dS'^T, d_v = fk dS'. */
static void through_state(const struct half *x, int j, int n)
{
    const struct linear_attn *a = x->a;
    const ptrdiff_t ld = linear_ld(a), k = x->t.k + j * key_row(a), v = x->t.v + j * value_row(a);

    x->g->ops.gemm(&(struct gemm){.tb = true,
                                  .m = n,
                                  .n = a->m,
                                  .k = a->d + 1,
                                  .alpha = 1,
                                  .a = x->sp.v,
                                  .lda = ld,
                                  .b = x->sp.d_S,
                                  .ldb = ld,
                                  .c = x->d->d_fk + k,
                                  .ldc = key_row(a),
                                  .threads = 1});
    x->g->ops.gemm(&(struct gemm){.m = n,
                                  .n = a->d,
                                  .k = a->m,
                                  .alpha = 1,
                                  .a = a->fk + k,
                                  .lda = key_row(a),
                                  .b = x->sp.d_S,
                                  .ldb = ld,
                                  .c = x->d->d_v + v,
                                  .ldc = value_row(a),
                                  .threads = 1});
}

/* Their gradients from head h's queries in the same chunk: d_fk += G^T fq, d_v += W^T e'. */
static void inside_chunk(const struct half *x, int h, int i, int n)
{
    const struct linear_attn *a = x->a;
    const ptrdiff_t k = x->t.k + (a->M + i) * key_row(a), v = x->t.v + (a->M + i) * value_row(a);

    x->g->ops.gemm(&(struct gemm){.ta = true,
                                  .m = n,
                                  .n = a->m,
                                  .k = n,
                                  .alpha = 1,
                                  .beta = 1,
                                  .a = x->sp.d_w,
                                  .lda = n,
                                  .b = a->fq + linear_query(a, x->t.b, i, h) * a->m,
                                  .ldb = query_row(a),
                                  .c = x->d->d_fk + k,
                                  .ldc = key_row(a),
                                  .threads = 1});
    x->g->ops.gemm(&(struct gemm){.ta = true,
                                  .m = n,
                                  .n = a->d,
                                  .k = n,
                                  .alpha = 1,
                                  .beta = 1,
                                  .a = x->sp.w,
                                  .lda = n,
                                  .b = x->sp.o,
                                  .ldb = linear_ld(a),
                                  .c = x->d->d_v + v,
                                  .ldc = value_row(a),
                                  .threads = 1});
}

/* dS' += fq^T e' */
static void add_queries(const struct half *x, int h, int i, int n)
{
    const struct linear_attn *a = x->a;
    const ptrdiff_t ld = linear_ld(a);

    x->g->ops.gemm(&(struct gemm){.ta = true,
                                  .m = a->m,
                                  .n = (int)ld,
                                  .k = n,
                                  .alpha = 1,
                                  .beta = 1,
                                  .a = a->fq + linear_query(a, x->t.b, i, h) * a->m,
                                  .lda = query_row(a),
                                  .b = x->sp.o,
                                  .ldb = ld,
                                  .c = x->sp.d_S,
                                  .ldc = ld,
                                  .threads = 1});
}

static void forwards(const struct half *x)
{
    const struct linear_attn *a = x->a;
    const int team = a->H / a->Hkv;

    linear_load_state(a, &x->t, x->sp.S);
    linear_add_memory(x->g, a, &x->t, &x->sp);
    for (int i = 0; i < a->L; i += LINEAR_CHUNK) {
        const int n = min_int(LINEAR_CHUNK, a->L - i);
        linear_load_values(a, &x->t, x->sp.v, a->M + i, n);
        for (int h = x->t.kv * team; h < (x->t.kv + 1) * team; h++) {
            load_output_grads(x, h, i, n);
            weight_grads(x, n);
            query_grads(x, h, i, n);
        }
        linear_add_keys(x->g, a, &x->t, &x->sp, a->M + i, n);
    }
}

static void backwards(const struct half *x)
{
    const struct linear_attn *a = x->a;
    const int team = a->H / a->Hkv;
    const int last = (a->L - 1) / LINEAR_CHUNK * LINEAR_CHUNK;

    memset(x->sp.d_S, 0, sizeof(float) * (size_t)(a->m * linear_ld(a)));
    for (int i = last; i >= 0; i -= LINEAR_CHUNK) {
        const int n = min_int(LINEAR_CHUNK, a->L - i);
        linear_load_values(a, &x->t, x->sp.v, a->M + i, n);
        through_state(x, a->M + i, n);
        for (int h = x->t.kv * team; h < (x->t.kv + 1) * team; h++) {
            load_output_grads(x, h, i, n);
            weight_grads(x, n);
            linear_weights(x->g, a, &x->t, &x->sp, h, i, n);
            inside_chunk(x, h, i, n);
            add_queries(x, h, i, n);
        }
    }
    for (int j = 0; j < a->M; j += LINEAR_CHUNK) {
        const int n = min_int(LINEAR_CHUNK, a->M - j);
        linear_load_values(a, &x->t, x->sp.v, j, n);
        through_state(x, j, n);
    }
}

void linear_chunked_backward(const struct engine *g, const struct linear_attn *a,
                             const struct linear_grad *d, void *scratch)
{
#pragma omp parallel for schedule(dynamic, 1) num_threads(g->threads)
    for (int item = 0; item < a->B * a->Hkv; item++) {
        const struct half x = {g, a, d, linear_item_of(a, item), linear_space_of(a, scratch, true)};
        forwards(&x);
        backwards(&x);
    }
}
