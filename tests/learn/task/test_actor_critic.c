/* SPDX-License-Identifier: MIT
 *
 * Advantages against the sum that defines them, and the gradient of the loss against finite
 * differences of a reference in double. */
#include "harness/learn/task/actor_critic.h"
#include "tests/support/members.h"
#include "variants/base/rng.h"

#include <criterion/criterion.h>

enum { B = 3, L = 7, A = 4, V = 6, ROWS = B * L };

struct sample {
    float out[ROWS * V], rewards[ROWS], after[B], advantages[ROWS], targets[ROWS];
    int32_t actions[ROWS];
    struct actor_critic x;
};

static void fill(struct sample *s, double discount, double lambda)
{
    rng_normal(s->out, ROWS * V, 1, 1, 0, 1.5f);
    rng_normal(s->rewards, ROWS, 1, 2, 0.2f, 1);
    rng_normal(s->after, B, 1, 3, 0, 1);
    for (int i = 0; i < ROWS; i++)
        s->actions[i] = (int32_t)(rng_u32(1, 4, (uint64_t)i) % A);
    s->x = (struct actor_critic){MEMBERS(, B, L, A, V, discount, lambda), .value_coef = 0.5,
                                 .entropy_coef = 0.03,
                                 MEMBERS(s->, out, actions, rewards, after, advantages, targets)};
    actor_critic_advantages(&s->x);
}

static double value(const struct sample *s, int b, int i)
{
    return i == L ? (double)s->after[b] : (double)s->out[(b * L + i) * V + A];
}

/* sum_k (gamma lambda)^k d_{t+k} */
static double advantage(const struct sample *s, int b, int i)
{
    double sum = 0;

    for (int k = i; k < L; k++)
        sum +=
            pow(s->x.discount * s->x.lambda, k - i) *
            ((double)s->rewards[b * L + k] + s->x.discount * value(s, b, k + 1) - value(s, b, k));
    return sum;
}

/* The result is rounded to float once; the numbers are below 2^4. */
static const double float_eps = 16 * 6e-8;

Test(actor_critic, advantages_are_their_sum)
{
    static const double pairs[][2] = {{0.9, 0.8}, {1, 1}, {0.99, 0}, {0, 0.5}};
    static struct sample s;

    for (size_t p = 0; p < ARRAY_LEN(pairs); p++) {
        fill(&s, pairs[p][0], pairs[p][1]);
        for (int b = 0; b < B; b++)
            for (int i = 0; i < L; i++) {
                const double want = advantage(&s, b, i);
                cr_expect_float_eq((double)s.advantages[b * L + i], want, float_eps);
                cr_expect_float_eq((double)s.targets[b * L + i], want + value(&s, b, i), float_eps);
            }
    }
}

/* With gamma = lambda = 1 the target is the return to come. */
Test(actor_critic, targets_at_one_are_returns)
{
    static struct sample s;

    fill(&s, 1, 1);
    for (int b = 0; b < B; b++) {
        double to_come = (double)s.after[b];
        for (int i = L - 1; i >= 0; i--) {
            to_come += (double)s.rewards[b * L + i];
            cr_expect_float_eq((double)s.targets[b * L + i], to_come, float_eps);
        }
    }
}

/* The loss of outputs in double, from the definition: probabilities as quotients. */
static double loss_of(const struct sample *s, const double *out)
{
    double sum = 0;

    for (int i = 0; i < ROWS; i++) {
        const double *const o = out + (ptrdiff_t)i * V;
        const double error = (double)s->targets[i] - o[A];
        double all = 0;
        for (int a = 0; a < A; a++)
            all += exp(o[a]);
        sum -= (double)s->advantages[i] * log(exp(o[s->actions[i]]) / all);
        sum += s->x.value_coef * error * error / 2;
        for (int a = 0; a < A; a++)
            sum += s->x.entropy_coef * exp(o[a]) / all * log(exp(o[a]) / all);
    }
    return sum / ROWS;
}

Test(actor_critic, gradient_is_that_of_the_loss)
{
    static struct sample s;
    static float d[ROWS * V];
    static double out[ROWS * V];
    const double h = 1e-5; /* its cube times third derivatives below 10, its share of 1e-16 */

    fill(&s, 0.9, 0.8);
    for (int i = 0; i < ROWS * V; i++)
        out[i] = (double)s.out[i];
    const struct actor_critic_loss r = actor_critic_grad(&s.x, d);
    cr_expect_float_eq(r.loss, loss_of(&s, out), 1e-12);
    cr_expect_float_eq(r.loss, r.policy + 0.5 * r.value - 0.03 * r.entropy, 1e-12);
    for (int i = 0; i < ROWS * V; i++) {
        const double at = out[i];
        out[i] = at + h;
        const double above = loss_of(&s, out);
        out[i] = at - h;
        const double slope = (above - loss_of(&s, out)) / (2 * h);
        out[i] = at;
        cr_expect_float_eq((double)d[i], slope, 1e-8 + 6e-8 * fabs(slope), "%d: %g, %g", i,
                           (double)d[i], slope);
        if (i % V > A)
            cr_expect_eq(d[i], 0);
    }
}

/* Large logits neither overflow nor make NAN. */
Test(actor_critic, certain_policies_are_finite)
{
    static struct sample s;
    static float d[ROWS * V];

    fill(&s, 0.9, 0.8);
    for (int i = 0; i < ROWS; i++)
        s.out[i * V + i % A] = 1e4f;
    const struct actor_critic_loss r = actor_critic_grad(&s.x, d);
    cr_expect(isfinite(r.loss) && r.entropy >= 0 && r.entropy < 1e-12);
    for (int i = 0; i < ROWS * V; i++)
        cr_expect(isfinite(d[i]));
}

Test(actor_critic, draws_are_as_likely_as_the_logits_say)
{
    enum { N = 100000 };
    static const float logits[] = {0, 1, -1, 2};
    const double all = 1 + exp(1) + exp(-1) + exp(2);
    int seen[A] = {0};

    for (int i = 0; i < N; i++)
        seen[actor_critic_draw(logits, A, rng_uniform(5, 6, (uint64_t)i))]++;
    for (int a = 0; a < A; a++) {
        const double p = exp((double)logits[a]) / all;
        cr_expect_float_eq(seen[a] / (double)N, p, 4 * sqrt(p * (1 - p) / N));
    }
    cr_expect_eq(actor_critic_draw(logits, A, 1 - 1e-17), A - 1);
}
