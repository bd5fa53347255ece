/* SPDX-License-Identifier: MIT
 *
 * ggml's flash attention (ggml_flash_attn_ext), forward, as a kernel of bench: keys and values in float where
 * they lie, causal order and windows as the mask of half floats that ggml takes. contrib/kernels/ggml.sh
 * builds it. ggml's threads are OpenMP's: those of the caller. */
#include <benchkernel.h>

#include <ggml-cpu.h>
#include <ggml.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TENSORS = 8 };

/* Memory that grows. */
struct room {
    void *at;
    size_t size;
};

/* A mask is kept for calls of the same shape. */
struct state {
    struct room tensors, work, rows; /* rows: results, where those of the call have gaps */
    ggml_fp16_t *mask; /* [L,K] */
    struct shape {
        int L, M, K, causal, window;
    } of;
};

static void *state_open(const struct bk_team *team, char *why, size_t why_size)
{
    struct state *s = calloc(1, sizeof(*s));

    (void)team;
    if (!s) {
        snprintf(why, why_size, "has no memory");
        return NULL;
    }
    ggml_cpu_init();
    return s;
}

/* A row that failed, where there is no memory. */
static void *need(struct room *r, size_t size)
{
    if (size > r->size) {
        free(r->at);
        r->at = malloc(size);
        r->size = size;
    }
    if (size && !r->at)
        abort();
    return r->at;
}

static void state_close(void *state)
{
    struct state *s = state;

    free(s->tensors.at), free(s->work.at), free(s->rows.at), free(s->mask), free(s);
}

static int keys(const struct ba_attention *a) { return a->K ? a->K : a->M + a->L; }

static const char *why(void *state, enum bk_function function, const void *call)
{
    const struct ba_attention *a = call;

    (void)state;
    if (function != BK_ATTENTION_FORWARD)
        return NULL;
    if (a->lse)
        return "does not give the log-sum-exp";
    if (a->window_of_head)
        return "does not support a window per head";
    return bk_attention_lacks(a, BK_GROUPS | BK_WINDOW | BK_WIDE_VALUES);
}

/* Rows of heads, as ggml orders them: width, positions, heads, sequences. */
static struct ggml_tensor *rows(struct ggml_context *c, const float *at, struct ba_stride stride, int width,
                                int n, int heads, int sequences)
{
    struct ggml_tensor *t = ggml_new_tensor_4d(c, GGML_TYPE_F32, width, n, heads, sequences);

    t->nb[1] = (size_t)stride.row * sizeof(float);
    t->nb[2] = (size_t)width * sizeof(float);
    t->nb[3] = (size_t)stride.batch * sizeof(float);
    t->data = (void *)at;
    return t;
}

static ggml_fp16_t *mask(struct state *s, const struct ba_attention *a)
{
    const int L = a->L, M = a->M, K = keys(a);
    const struct shape of = {L, M, K, a->causal, a->window};
    const ggml_fp16_t sees = ggml_fp32_to_fp16(0), not = ggml_fp32_to_fp16(-INFINITY);

    if (s->mask && memcmp(&s->of, &of, sizeof(of)) == 0)
        return s->mask;
    free(s->mask);
    s->of = of;
    s->mask = malloc(sizeof(*s->mask) * (size_t)L * (size_t)K);
    if (!s->mask)
        abort();
    for (int i = 0; i < L; i++)
        for (int j = 0; j < K; j++) {
            const int dist = M + i - j;
            s->mask[(size_t)i * K + j] =
                (a->causal && dist < 0) || (a->window && dist >= a->window) ? not : sees;
        }
    return s->mask;
}

static void forward(void *state, const struct bk_team *team, const struct ba_attention *a)
{
    struct state *s = state;
    const size_t overhead = TENSORS * ggml_tensor_overhead() + ggml_graph_overhead_custom(TENSORS, 0);
    const struct ggml_init_params in = {overhead, need(&s->tensors, overhead), true};
    struct ggml_context *c = ggml_init(in);
    struct ggml_cgraph *graph = ggml_new_graph_custom(c, TENSORS, 0);
    const int Hkv = a->Hkv ? a->Hkv : a->H, K = keys(a), dv = a->dv ? a->dv : a->dh;
    const size_t row = (size_t)a->H * (size_t)dv, n = row * (size_t)a->L;
    const int gaps = a->o_at.row != (ptrdiff_t)row || a->o_at.batch != (ptrdiff_t)n;
    struct ggml_tensor *m = NULL, *o;

    if (a->causal || a->window) {
        m = ggml_new_tensor_2d(c, GGML_TYPE_F16, K, a->L);
        m->data = mask(s, a);
    }
    o = ggml_flash_attn_ext(c, rows(c, a->q, a->q_at, a->dh, a->L, a->H, a->B),
                            rows(c, a->k, a->k_at, a->dh, K, Hkv, a->B),
                            rows(c, a->v, a->v_at, dv, K, Hkv, a->B), m, a->scale, 0, 0);
    o->data = gaps ? need(&s->rows, (size_t)a->B * n * sizeof(float)) : a->o;
    ggml_build_forward_expand(graph, o);
    struct ggml_cplan plan = ggml_graph_plan(graph, team->threads, NULL);
    plan.work_data = need(&s->work, plan.work_size);
    if (ggml_graph_compute(graph, &plan) != GGML_STATUS_SUCCESS)
        abort();
    for (int b = 0; gaps && b < a->B; b++)
        for (int i = 0; i < a->L; i++)
            memcpy(a->o + b * a->o_at.batch + i * a->o_at.row,
                   (float *)o->data + (size_t)b * n + (size_t)i * row, row * sizeof(float));
    ggml_free(c);
}

const struct bk_kernel bench_kernel = {
    .size = sizeof(struct bk_kernel),
    .abi = BK_ABI,
    .name = "ggml",
    .version = GGML_RELEASE,
    .open = state_open,
    .close = state_close,
    .why = why,
    .attention_forward = forward,
};
