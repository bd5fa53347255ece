/* SPDX-License-Identifier: MIT
 *
 * The smallest useful kernel: attention forward, as its equation reads (benchattn.h). Copy it and make it
 * fast. docs/kernels.md has the commands. */
#include <benchkernel.h>

#include <math.h>
#include <stdlib.h>

struct work {
    const struct ba_attention *a;
    int threads;
};

/* One query of one head: scores, softmax, weighted sum of values. */
static void attend(const struct ba_attention *a, int b, int h, int i, float *p)
{
    const int K = a->K ? a->K : a->M + a->L, dv = a->dv ? a->dv : a->dh;
    const int kv = h / (a->H / (a->Hkv ? a->Hkv : a->H)), tables = a->R + a->Rf;
    const float *q = a->q + b * a->q_at.batch + i * a->q_at.row + h * a->dh;
    float *o = a->o + b * a->o_at.batch + i * a->o_at.row + h * dv;
    float most = -INFINITY, sum = 0;

    for (int j = 0; j < K; j++) {
        const float *k = a->k + b * a->k_at.batch + j * a->k_at.row + kv * a->dh;
        const int dist = a->M + i - j;
        float s = 0;
        for (int e = 0; e < a->dh; e++)
            s += q[e] * k[e];
        s *= a->scale;
        if (a->bias) {
            int row = a->R - 1 - dist;
            row = row < 0 ? 0 : row > tables - 1 ? tables - 1 : row;
            s += a->bias[h * a->bias_head + row];
        }
        p[j] = a->causal && dist < 0 ? -INFINITY : s;
        most = p[j] > most ? p[j] : most;
    }
    for (int j = 0; j < K; j++)
        sum += p[j] = p[j] > -INFINITY ? expf(p[j] - most) : 0;
    for (int e = 0; e < dv; e++)
        o[e] = 0;
    for (int j = 0; j < K; j++) {
        const float *v = a->v + b * a->v_at.batch + j * a->v_at.row + kv * dv;
        for (int e = 0; e < dv && p[j] != 0; e++)
            o[e] += p[j] / sum * v[e];
    }
    if (a->lse)
        a->lse[(b * a->H + h) * a->L + i] = most + logf(sum);
}

static void share(void *arg, int thread)
{
    const struct work *w = arg;
    const struct ba_attention *a = w->a;
    float *p = malloc(sizeof(float) * (a->K ? a->K : a->M + a->L));

    for (int n = thread; p && n < a->B * a->H * a->L; n += w->threads)
        attend(a, n / (a->H * a->L), n / a->L % a->H, n % a->L, p);
    free(p);
}

static void forward(void *state, const struct bk_team *team, const struct ba_attention *a)
{
    struct work w = {a, team->threads};

    (void)state;
    team->run(team, share, &w);
}

static const char *why(void *state, enum bk_function function, const void *call)
{
    (void)state;
    return function == BK_ATTENTION_FORWARD
               ? bk_attention_lacks(call, BK_GROUPS | BK_BIAS | BK_WIDE_VALUES)
               : NULL;
}

const struct bk_kernel bench_kernel = {
    .size = sizeof(struct bk_kernel),
    .abi = BK_ABI,
    .name = "naive",
    .version = "1",
    .why = why,
    .attention_forward = forward,
};
