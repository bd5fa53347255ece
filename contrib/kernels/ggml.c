/* SPDX-License-Identifier: MIT
 *
 * ggml's flash attention (ggml_flash_attn_ext), forward, as a kernel of bench: keys and values in float where
 * they lie, causal order and windows as the mask of half floats that ggml takes. contrib/kernels/ggml.sh
 * builds it. ggml's threads are OpenMP's: those of the caller. */
#include <benchkernel.h>

#include <ggml-cpu.h>
#include <ggml.h>
#include <stdio.h>
#include <stdlib.h>

enum { TENSORS = 8 };

/* A mask is kept for calls of the same shape; rooms grow. */
struct state {
    void *tensors, *work;
    size_t tensors_size, work_size;
    ggml_fp16_t *mask; /* [L,K] */
    int L, M, K, causal, window;
};

static void *state_open(const struct bk_team *team, char *why, size_t why_size)
{
    struct state *s = calloc(1, sizeof(*s));

    (void)team;
    if (s) {
        s->tensors_size = TENSORS * ggml_tensor_overhead() + ggml_graph_overhead_custom(TENSORS, 0);
        s->tensors = malloc(s->tensors_size);
    }
    if (!s || !s->tensors) {
        snprintf(why, why_size, "has no memory");
        free(s);
        return NULL;
    }
    ggml_cpu_init();
    return s;
}

static void state_close(void *state)
{
    struct state *s = state;

    free(s->tensors), free(s->work), free(s->mask), free(s);
}

static int keys(const struct ba_attention *a) { return a->K ? a->K : a->M + a->L; }

static const char *why(void *state, enum bk_function function, const void *call)
{
    const struct ba_attention *a = call;
    const int row = a->H * (a->dv ? a->dv : a->dh);

    (void)state;
    if (function != BK_ATTENTION_FORWARD)
        return NULL;
    if (a->lse)
        return "does not give the log-sum-exp";
    if (a->window_of_head)
        return "does not support a window per head";
    if ((a->L > 1 && a->o_at.row != row) || (a->B > 1 && a->o_at.batch != (ptrdiff_t)a->L * row))
        return "writes results without gaps";
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
    const ggml_fp16_t sees = ggml_fp32_to_fp16(0), not = ggml_fp32_to_fp16(-INFINITY);

    if (s->mask && s->L == L && s->M == M && s->K == K && s->causal == a->causal && s->window == a->window)
        return s->mask;
    free(s->mask);
    *s = (struct state){s->tensors, s->work, s->tensors_size, s->work_size, NULL, L, M, K, a->causal, a->window};
    s->mask = malloc(sizeof(*s->mask) * (size_t)L * (size_t)K);
    for (int i = 0; s->mask && i < L; i++)
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
    const struct ggml_init_params in = {s->tensors_size, s->tensors, true};
    struct ggml_context *c = ggml_init(in);
    struct ggml_cgraph *graph = ggml_new_graph_custom(c, TENSORS, false);
    const int Hkv = a->Hkv ? a->Hkv : a->H, K = keys(a), dv = a->dv ? a->dv : a->dh;
    struct ggml_tensor *m = NULL, *o;

    if (a->causal || a->window) {
        m = ggml_new_tensor_2d(c, GGML_TYPE_F16, K, a->L);
        m->data = mask(s, a);
    }
    o = ggml_flash_attn_ext(c, rows(c, a->q, a->q_at, a->dh, a->L, a->H, a->B),
                            rows(c, a->k, a->k_at, a->dh, K, Hkv, a->B),
                            rows(c, a->v, a->v_at, dv, K, Hkv, a->B), m, a->scale, 0, 0);
    o->data = a->o;
    ggml_build_forward_expand(graph, o);
    struct ggml_cplan plan = ggml_graph_plan(graph, team->threads, NULL);
    if (plan.work_size > s->work_size) {
        free(s->work);
        s->work = malloc(plan.work_size);
        s->work_size = plan.work_size;
    }
    plan.work_data = s->work;
    if ((m && !m->data) || (plan.work_size && !s->work) || ggml_graph_compute(graph, &plan) != GGML_STATUS_SUCCESS)
        abort(); /* a row that failed */
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
