/* SPDX-License-Identifier: MIT
 *
 * Attention by content, backward: W_o, the form, the rotations, k = q/|q| where it is shared, and
 * the projections. Choices are constants. */
#include "content.h"
#include "variants/model/attention/sublayer_attention.h"
#include "variants/parts/linear.h"

/* d_q += (d_k - (d_k . k) k) / |q|, k = q/|q|, for one head of one row. */
static void unit_grad(float *d_q, const float *d_k, const float *q, int n)
{
    const double n2 = content_dot(q, q, n), along = content_dot(d_k, q, n);
    const double by = n2 > 0 ? 1 / sqrt(n2) : 0;

    for (int e = 0; e < n; e++)
        d_q[e] += (float)(by * ((double)d_k[e] - by * by * along * (double)q[e]));
}

/* From the gradients of queries [B,L] and keys [B,K] to that of the rows that they share, in place
 * of the keys'. */
static void share_grad(const struct content_call *n, float *d_k, const float *d_q, float *spare)
{
    const struct attn *const a = &n->a;
    const int K = a->M + a->L, H = a->H, dh = a->dh;
    const ptrdiff_t HD = (ptrdiff_t)H * dh, row = HD;

#pragma omp parallel for num_threads(content_team(n))
    for (int x = 0; x < a->B * K; x++) {
        const int b = x / K, j = x % K, i = j - a->M;
        float *const d = spare + x * row;
        if (i >= 0)
            memcpy(d, d_q + ((ptrdiff_t)b * a->L + i) * row, sizeof(float) * (size_t)HD);
        else
            memset(d, 0, sizeof(float) * (size_t)HD);
        for (int h = 0; h < H; h++)
            unit_grad(d + (ptrdiff_t)h * dh, d_k + x * row + (ptrdiff_t)h * dh,
                      head_row(n->raw_q, b, j, h, dh), dh);
    }
}

static void map_grad(const struct engine *g, const struct sublayer *s, int which, float *d_y,
                     struct sublayer_input from, int first, float *d_in, int skip, float beta)
{
    project_map_grad(g, content_weight(s, which), content_bias(s, which), d_y, from, first, d_in,
                     skip, beta);
}

void content_backward(const struct engine *g, struct sublayer *s, const struct work *w,
                      struct sublayer_input from, float *d_in, const float *d_y, int skip)
{
    const struct config *const c = s->c;
    const int B = from.B, L = from.L, M = from.M, K = M + L;
    const ptrdiff_t HD = (ptrdiff_t)c->H * c->dh;
    const int64_t base = attention_base(s);
    float *const d_q = w->d_array[CT_Q], *const d_k = w->d_array[CT_K],
                 *const d_v = w->d_array[CT_V];
    struct content_call n = content_call_of(g, s, w, B, L);

    CHECK(s->mem != MEM_KV);
    n.scratch = w->d_scratch;
    n.grad = true;
    linear_backward(g, content_weight(s, CONTENT_O), content_bias(s, CONTENT_O), w->d_array[CT_O],
                    d_y, w->array[CT_O], B * L, 0);
    memset(d_q, 0, sizeof(float) * (size_t)(B * L * HD));
    memset(d_k, 0, sizeof(float) * (size_t)(B * K * HD));
    memset(d_v, 0, sizeof(float) * (size_t)(B * K * HD));
    content_run(&n,
                &(struct attn_grad){.d_o = w->d_array[CT_O], .d_q = d_q, .d_k = d_k, .d_v = d_v});
    attention_rotate(g, s, (struct seq_rows){d_q, L * HD}, B, L, c->H, base + M, true);
    attention_rotate(g, s, (struct seq_rows){d_k, K * HD}, B, K, c->H, base, true);
    const struct head_rows of_q = {d_q, L * HD, HD}, of_k = {d_k, K * HD, HD};
    if (c->share_qk) {
        float *const d_raw = w->d_array[CT_RAW_Q];
        share_grad(&n, d_k, d_q, d_raw);
        const struct head_rows raw = {d_raw, K * HD, HD};
        if (content_of(s)->raw_grad)
            content_of(s)->raw_grad(&n, raw, raw);
        map_grad(g, s, CONTENT_Q, d_raw, from, 0, d_in, skip, 0);
    } else {
        if (content_of(s)->raw_grad)
            content_of(s)->raw_grad(&n, of_q, of_k);
        map_grad(g, s, CONTENT_K, d_k, from, 0, d_in, skip, 0);
        map_grad(g, s, CONTENT_Q, d_q, from, M, d_in, skip, 1);
    }
    map_grad(g, s, CONTENT_V, d_v, from, 0, d_in, skip, 1);
}

double content_grad_flop(const struct sublayer *s, int B, int L, int M)
{
    const double rows = (double)B * L, all = (double)B * (M + L);
    const double projected = s->mem == MEM_HIDDEN ? all : rows;
    /* Memory is a constant unless a norm with weights is applied to it. */
    const double reached = wiring_norms_first(s->wiring) ? projected : rows;

    return 2 * content_of(s)->flop(s, B, L, M) + content_maps_flop(s, rows, projected) +
           content_maps_flop(s, rows, reached);
}
