/* SPDX-License-Identifier: MIT
 *
 * Scalable softmax: Nakanishi 2025, "Scalable-Softmax Is Superior for Attention".
 *
 *   s_ij <- s_h log(n_i) s_ij,  n_i the keys that query i sees
 *
 * Weights of more keys stay as sharp as those of few. The factor multiplies the query, so kernels
 * know nothing of it; s_h is a trained number of the head, which begins at that of the paper's figure 1. */
#include "variants/model/attention/sublayer_attention.h"

enum { RAW }; /* queries before they are scaled [B,L,H,dh] */

static void declare(const struct sublayer *s, const char *prefix, struct params *p)
{
    params_vector(p, INIT_CONST, 0.43f, s->c->H, prefix, "attn.ssmax");
}

static void arrays(const struct sublayer *s, struct around_call n, size_t floats[AROUND_ARRAYS])
{
    floats[RAW] = n.backward ? 0 : (size_t)(n.B * n.L) * (size_t)config_q_width(s->c);
}

/* log n of query i. */
static float log_seen(const struct attn *a, int h, int i)
{
    int n = 0;

    for (struct range r = {0}; attn_next_keys(a, h, 1, i, &r);)
        n += r.to - r.from;
    return logf((float)max_int(1, n));
}

static int team(const struct part_call *t)
{
    return team_for(t->g->threads, (double)t->n.B * t->n.L * config_q_width(t->s->c));
}

static void queries(const struct part_call *t, struct seq_rows q)
{
    const struct attn a = attention_operands(t->s, t->w, t->n.B, t->n.L);

#pragma omp parallel for num_threads(team(t))
    for (int i = 0; i < a.L; i++)
        for (int h = 0; h < a.H; h++) {
            const float factor = t->param->data[h] * log_seen(&a, h, i);
            for (int b = 0; b < a.B; b++)
                for (int e = 0; e < a.dh; e++) {
                    const ptrdiff_t at = i * a.q_at.row + (ptrdiff_t)h * a.dh + e;
                    t->at[RAW][b * a.q_at.batch + at] = q.at[b * q.stride + at];
                    q.at[b * q.stride + at] *= factor;
                }
        }
}

/* A thread has heads, whose numbers' gradients add up in the order of rows. */
static void operands_grad(const struct part_call *t, struct attn_grad *d)
{
    const struct attn a = attention_operands(t->s, t->w, t->n.B, t->n.L);

#pragma omp parallel for num_threads(team(t))
    for (int h = 0; h < a.H; h++) {
        double sum = 0;
        for (int i = 0; i < a.L; i++) {
            const float seen = log_seen(&a, h, i);
            double row = 0;
            for (int b = 0; b < a.B; b++)
                for (int e = 0; e < a.dh; e++) {
                    const ptrdiff_t at =
                        b * a.q_at.batch + i * a.q_at.row + (ptrdiff_t)h * a.dh + e;
                    row += (double)t->at[RAW][at] * (double)d->d_q[at];
                    d->d_q[at] *= t->param->data[h] * seen;
                }
            sum += row * (double)seen;
        }
        t->param->grad[h] += (float)sum;
    }
}

const struct around_part head_ssmax = {
    .said = "scalable softmax",
    .numbers = AROUND_SWITCH("ssmax", NULL, .absent = "0", .if_other = true),
    .excludes = EXCLUDES(HAS_head_diff),
    .params = declare,
    .arrays = arrays,
    .map = {.queries = queries, .operands_grad = operands_grad},
};

const struct variant variant_ssmax = {
    .name = "ssmax",
    .paper = "Nakanishi 2025, arXiv:2501.19399",
    .about = "scores times a number of the head and the logarithm of the keys seen",
    AS_ROPE,
    .around = {&head_ssmax},
};
