/* SPDX-License-Identifier: MIT
 *
 * ggml's flash attention (ggml_flash_attn_ext) and its recurrences, forward, as a kernel of bench: keys and
 * values in float where they lie, causal order and windows as the mask of half floats that ggml takes.
 * contrib/kernels/ggml.sh builds it. ggml's threads are OpenMP's: those of the caller. */
#include <benchkernel.h>

#include <ggml-cpu.h>
#include <ggml.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TENSORS = 12, OPERANDS = 7 };

/* Memory that grows. */
struct room {
    void *at;
    size_t size;
};

/* A mask is kept for calls of the same shape. */
struct state {
    struct room tensors, work, rows; /* rows: results, where those of the call have gaps */
    struct room in[OPERANDS];
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

    for (int i = 0; i < OPERANDS; i++)
        free(s->in[i].at);
    free(s->tensors.at), free(s->work.at), free(s->rows.at), free(s->mask), free(s);
}

static int keys(const struct ba_attention *a) { return a->K ? a->K : a->M + a->L; }

static int shares(const struct ba_rows *x) { return x->at && x->per > 1; }

static const char *why_recurrence(const struct ba_recurrence *r)
{
    if (r->M || !r->q.at || !r->k.at || r->texts)
        return "needs queries and keys of the same positions";
    if ((r->Hs && r->Hs != r->H) || shares(&r->q) || shares(&r->k) || shares(&r->v))
        return "needs a head of keys and one of values for each of queries";
    if (r->dk != r->dv)
        return "needs keys and values of one width";
    if (r->a.at && r->dk % 64)
        return "needs heads of a multiple of 64 for a free rank one";
    if (r->norm || r->i.at || r->u)
        return "has no normaliser, write gate or bonus";
    if (!r->g.at || (r->g_width == 1 && !r->beta.at))
        return "needs a decay: per key channel, or with an erase per head";
    return NULL;
}

static const char *why(void *state, enum bk_function function, const void *call)
{
    const struct ba_attention *a = call;

    (void)state;
    if (function == BK_RECURRENCE_FORWARD)
        return why_recurrence(call);
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

static struct ggml_context *begin(struct state *s)
{
    const size_t overhead = TENSORS * ggml_tensor_overhead() + ggml_graph_overhead_custom(TENSORS, 0);
    const struct ggml_init_params in = {overhead, need(&s->tensors, overhead), true};

    return ggml_init(in);
}

static void compute(struct state *s, struct ggml_context *c, struct ggml_tensor *o, int threads)
{
    struct ggml_cgraph *graph = ggml_new_graph_custom(c, TENSORS, 0);

    ggml_build_forward_expand(graph, o);
    struct ggml_cplan plan = ggml_graph_plan(graph, threads, NULL);
    plan.work_data = need(&s->work, plan.work_size);
    if (ggml_graph_compute(graph, &plan) != GGML_STATUS_SUCCESS)
        abort();
}

static void forward(void *state, const struct bk_team *team, const struct ba_attention *a)
{
    struct state *s = state;
    struct ggml_context *c = begin(s);
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
    compute(s, c, o, team->threads);
    for (int b = 0; gaps && b < a->B; b++)
        for (int i = 0; i < a->L; i++)
            memcpy(a->o + b * a->o_at.batch + i * a->o_at.row,
                   (float *)o->data + (size_t)b * n + (size_t)i * row, row * sizeof(float));
    ggml_free(c);
}

/* ---- recurrences ----------------------------------------------------------------------------------- */

/* An operand as ggml wants it: without gaps, widths, heads, positions, sequences; without an erase one sequence
 * follows the other. Decays as factors. */
static struct ggml_tensor *dense(struct state *s, int operand, struct ggml_context *c, const struct ba_recurrence *r,
                                 const struct ba_rows *x, int width, int factors)
{
    const int apart = r->beta.at != NULL;
    struct ggml_tensor *t = ggml_new_tensor_4d(c, GGML_TYPE_F32, width, r->H, apart ? r->L : r->B * r->L, apart ? r->B : 1);
    const int per = x->per > 1 ? (int)x->per : 1;

    if (!factors && per == 1 && x->head == width && x->row == x->head * r->H && x->batch == x->row * r->L) {
        t->data = (void *)x->at;
        return t;
    }
    float *to = t->data = need(&s->in[operand], ggml_nbytes(t));
    for (int b = 0; b < r->B; b++)
        for (int i = 0; i < r->L; i++)
            for (int h = 0; h < r->H; h++, to += width) {
                const float *from = x->at + b * x->batch + i * x->row + h / per * x->head;
                for (int n = 0; n < width; n++)
                    to[n] = factors ? expf(from[n]) : from[n];
            }
    return t;
}

/* States of heads between their two orders; from NULL: zeros. */
static void turn_states(float *to, const float *from, int states, int width, int turns)
{
    for (int n = 0; n < states; n++, to += width * width, from += from ? width * width : 0)
        for (int i = 0; i < width; i++)
            for (int j = 0; j < width; j++)
                to[i * width + j] = from ? from[turns ? j * width + i : i * width + j] : 0;
}

/* gated_delta_net and wkv7 have states by columns and gated_linear_attn by rows; the first has a scale of its
 * own, 1 / sqrt(width), the second none. */
static void recurrence(void *state, const struct bk_team *team, const struct ba_recurrence *r)
{
    struct state *s = state;
    struct ggml_context *c = begin(s);
    const int n = r->dk, states = r->B * r->H, erases = r->beta.at != NULL, turns = erases || r->a.at != NULL;
    const float scale = r->scale != 0 ? r->scale : 1, own = erases ? 1 / sqrtf((float)n) : 1;
    struct ggml_tensor *q = dense(s, 0, c, r, &r->q, n, 0), *k = dense(s, 1, c, r, &r->k, n, 0);
    struct ggml_tensor *v = dense(s, 2, c, r, &r->v, n, 0), *g = dense(s, 3, c, r, &r->g, r->g_width, !erases);
    struct ggml_tensor *before = erases ? ggml_new_tensor_4d(c, GGML_TYPE_F32, n, n, r->H, r->B)
                                        : ggml_new_tensor_2d(c, GGML_TYPE_F32, (int64_t)n * n * r->H, r->B);
    struct ggml_tensor *o;

    before->data = need(&s->in[4], ggml_nbytes(before));
    turn_states(before->data, r->s0, states, n, turns);
    if (erases)
        o = ggml_gated_delta_net(c, q, k, v, g, dense(s, 5, c, r, &r->beta, 1, 0), before, 1);
    else if (r->a.at)
        o = ggml_rwkv_wkv7(c, q, g, k, v, dense(s, 5, c, r, &r->a, n, 0), dense(s, 6, c, r, &r->b, n, 0), before);
    else
        o = ggml_gated_linear_attn(c, k, v, q, g, before, scale);
    const size_t outputs = (size_t)r->L * (size_t)states * (size_t)n;
    const float *all = o->data = need(&s->rows, ggml_nbytes(o));
    const float by = !erases && !r->a.at ? 1 : scale / own;
    compute(s, c, o, team->threads);
    for (size_t i = 0; i < outputs; i++)
        r->o[i] = by * all[i];
    if (r->s1)
        turn_states(r->s1, all + outputs, states, n, turns);
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
    .recurrence_forward = recurrence,
};
