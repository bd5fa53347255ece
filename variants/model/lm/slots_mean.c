/* SPDX-License-Identifier: MIT
 *
 * A slot for each past segment (Yoshida, Ettinger and Gimpel 2020, "Adding Recurrence to Pretrained
 * Transformers for Improved Efficiency and Context Size", arXiv:2008.07027): after a segment of rows
 * h, as the output reads them, its mean becomes one row, the newest slot, and the oldest is dropped:
 *
 *   m'_j = m_(j+1)                                          j < S
 *   m'_S = unit(W_2 relu(W_1 mean over t of h_t + b_1) + b_2)
 *
 * The paper's network has three layers and its row is a key and a value of one attention; here every
 * layer reads it as it reads slots (slots.h). */
#include "slots.h"
#include "variants/parts/linear.h"

enum { M_1 = 1, M_B1, M_2, M_B2 };

void slots_mean_params(const struct config *c, struct params *p)
{
    params_map(p, c->D, c->D, "write.", "1.weight");
    params_vector(p, INIT_ZERO, 0, c->D, "write.", "1.bias");
    params_map(p, c->D, c->D, "write.", "2.weight");
    params_vector(p, INIT_ZERO, 0, c->D, "write.", "2.bias");
}

/* The newest slot of sequence b, in slots or their gradients. */
static float *newest(const struct slots *t, float *slots, int b)
{
    return slots + ((ptrdiff_t)(b + 1) * t->c->slots.n - 1) * t->c->D;
}

void slots_mean_write(struct slots *t, const struct engine *g, int B, int L)
{
    const int S = t->c->slots.n, D = t->c->D;
    const size_t others = (size_t)(S - 1) * (size_t)D;

    for (int b = 0; b < B; b++)
        for (int e = 0; e < D; e++) {
            double sum = 0;
            for (ptrdiff_t i = 0; i < L; i++)
                sum += (double)t->h[((ptrdiff_t)b * L + i) * D + e];
            t->mean[(ptrdiff_t)b * D + e] = (float)(sum / L);
        }
    linear_forward(g, &t->w[M_1], &t->w[M_B1], t->hidden, t->mean, B,
                   (struct act){.kind = ACT_RELU, .y = t->hidden});
    linear_forward(g, &t->w[M_2], &t->w[M_B2], t->mean, t->hidden, B, (struct act){.y = t->mean});
    for (int b = 0; b < B; b++) {
        const ptrdiff_t at = (ptrdiff_t)b * S * D;
        memcpy(t->next + at, t->used + at + D, others * sizeof(float));
        t->length[b] = slots_unit(newest(t, t->next, b), t->mean + (ptrdiff_t)b * D, D);
    }
}

void slots_mean_grad(struct slots *t, const struct engine *g, int B, int L)
{
    const int S = t->c->slots.n, D = t->c->D;
    float *const d_row = t->d_r, *const d_hidden = t->d_q, *const mean = t->mean;

    for (int b = 0; b < B; b++) {
        const ptrdiff_t at = (ptrdiff_t)b * S * D, row = (ptrdiff_t)b * D;
        for (ptrdiff_t i = 0; i < (ptrdiff_t)(S - 1) * D; i++)
            t->d[at + D + i] += t->d_next[at + i];
        memcpy(d_row + row, newest(t, t->d_next, b), (size_t)D * sizeof(float));
        slots_unit_grad(d_row + row, newest(t, t->next, b), t->length[b], D);
        for (int e = 0; e < D; e++) { /* it was written over */
            double sum = 0;
            for (ptrdiff_t i = 0; i < L; i++)
                sum += (double)t->h[((ptrdiff_t)b * L + i) * D + e];
            mean[row + e] = (float)(sum / L);
        }
    }
    linear_backward(g, &t->w[M_2], &t->w[M_B2], d_hidden, d_row, t->hidden, B, 0);
    for (ptrdiff_t i = 0; i < (ptrdiff_t)B * D; i++)
        d_hidden[i] = t->hidden[i] > 0 ? d_hidden[i] : 0;
    linear_backward(g, &t->w[M_1], &t->w[M_B1], d_row, d_hidden, mean, B, 0);
    for (ptrdiff_t i = 0; i < (ptrdiff_t)B * L * D; i++)
        t->d_h[i] = d_row[i / L / D * D + i % D] / (float)L;
}

double slots_mean_flop(const struct config *c, int B, int L)
{
    return (double)B * c->D * (4.0 * c->D + L);
}
