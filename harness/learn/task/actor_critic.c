/* SPDX-License-Identifier: MIT
 *
 * Advantages, and the loss of an actor-critic with its gradient. Sums are in double. */
#include "actor_critic.h"

void actor_critic_advantages(const struct actor_critic *x)
{
    for (int b = 0; b < x->B; b++) {
        double next = (double)x->after[b], advantage = 0;
        for (int i = x->L - 1; i >= 0; i--) {
            const ptrdiff_t at = (ptrdiff_t)b * x->L + i;
            const double v = (double)x->out[at * x->V + x->A];
            advantage = (double)x->rewards[at] + x->discount * next - v +
                        x->discount * x->lambda * advantage;
            x->advantages[at] = (float)advantage;
            x->targets[at] = (float)(advantage + v);
            next = v;
        }
    }
}

/* log of the sum of exp of the logits */
static double log_sum(const float *logits, int A)
{
    double most = (double)logits[0], sum = 0;

    for (int a = 1; a < A; a++)
        most = fmax(most, (double)logits[a]);
    for (int a = 0; a < A; a++)
        sum += exp((double)logits[a] - most);
    return most + log(sum);
}

struct actor_critic_loss actor_critic_grad(const struct actor_critic *x, float *d_out)
{
    const ptrdiff_t rows = (ptrdiff_t)x->B * x->L;
    struct actor_critic_loss r = {0};

    memset(d_out, 0, sizeof(float) * (size_t)rows * (size_t)x->V);
    for (ptrdiff_t i = 0; i < rows; i++) {
        const float *const out = x->out + i * x->V;
        float *const d = d_out + i * x->V;
        const double z = log_sum(out, x->A), advantage = (double)x->advantages[i];
        const double error = (double)out[x->A] - (double)x->targets[i];
        double entropy = 0;
        for (int a = 0; a < x->A; a++) {
            const double log_p = (double)out[a] - z;
            entropy -= exp(log_p) * log_p;
        }
        for (int a = 0; a < x->A; a++) {
            const double log_p = (double)out[a] - z, p = exp(log_p);
            const double policy = advantage * (p - (a == x->actions[i]));
            d[a] = (float)((policy + x->entropy_coef * p * (log_p + entropy)) / (double)rows);
        }
        d[x->A] = (float)(x->value_coef * error / (double)rows);
        r.policy -= advantage * ((double)out[x->actions[i]] - z);
        r.value += error * error / 2;
        r.entropy += entropy;
    }
    r.policy /= (double)rows;
    r.value /= (double)rows;
    r.entropy /= (double)rows;
    r.loss = r.policy + x->value_coef * r.value - x->entropy_coef * r.entropy;
    return r;
}

int actor_critic_draw(const float *logits, int A, double u)
{
    const double z = log_sum(logits, A);

    for (int a = 0; a < A - 1; a++) {
        u -= exp((double)logits[a] - z);
        if (u < 0)
            return a;
    }
    return A - 1;
}
