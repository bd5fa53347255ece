/* SPDX-License-Identifier: MIT
 *
 * Depth: a layer run several times with the same weights, from which each position takes a mixture
 * of states, against the equations in double; the number of steps; halting at once, or never. */
#include "tests/support/by_hand.h"
#include "tests/support/kernel/universal_case.h"

enum { B = 2 };

/* ---- equations ---------------------------------------------------------------------------- */

static double wave(int at, int e)
{
    const double angle = at * pow(10000, -2.0 * (e % (D / 2)) / D);

    return e < D / 2 ? sin(angle) : cos(angle);
}

struct halted {
    double out[T * D], ponder;
    int steps[T];
    double margin; /* distance of the closest decision to its threshold */
};

static double halting(const struct layer *y, const double *h)
{
    double logit = (double)*tensor(y, "halt.bias");

    for (int e = 0; e < D; e++)
        logit += (double)tensor(y, "halt.weight")[e] * h[e];
    return sigma(logit);
}

/* Position i in step t, whose state is `next` and whose probability is p. */
static void decide(struct halted *r, const struct config *c, int i, int t, double p,
                   const double *next, double *sum, bool *done)
{
    const bool graves = c->halt == HALT_GRAVES, last = t == c->steps - 1;
    const double most = 1 - (double)c->halt_eps;
    double w = 0;

    if (!*done) {
        *done = *sum + p >= most || (graves && last);
        if (!graves || !last)
            r->margin = fmin(r->margin, fabs(*sum + p - most));
        w = *done ? 1 - *sum : p;
        r->steps[i]++;
        r->ponder += (1 + (*done ? w : 0)) / T;
        *sum += *done ? 0 : p;
    }
    for (int e = 0; e < D; e++)
        r->out[i * D + e] = w * next[e] + (graves ? 1 : 1 - w) * r->out[i * D + e];
}

static void depth_by_hand(const struct layer *y, double *h, struct halted *r)
{
    const struct config *c = y->c;
    double sum[T] = {0}, p[T] = {0};
    bool done[T] = {false};

    *r = (struct halted){.margin = 1};
    for (int t = 0; t < c->steps; t++) {
        double *x = copy(h, T * D);
        for (int i = 0; i < T * D; i++)
            x[i] += wave(i / D, i % D) + wave(c->step_base + t, i % D);
        for (int i = 0; i < T && c->halt == HALT_T2T; i++)
            p[i] = halting(y, x + i * D);
        const double *const z = by_hand(y, x, false);
        for (int i = 0; i < T; i++) {
            if (c->halt != HALT_GRAVES || !done[i])
                memcpy(h + i * D, z + i * D, D * sizeof(*h));
            if (c->halt == HALT_GRAVES)
                p[i] = halting(y, h + i * D);
            if (c->halt != HALT_NEVER)
                decide(r, c, i, t, p[i], h + i * D, &sum[i], &done[i]);
        }
    }
    if (c->halt == HALT_NEVER)
        memcpy(r->out, h, sizeof(r->out));
}

static const struct depth *depth_in(const struct model *m) { return m->lm.drive_data; }

static void expect_equations(const struct config *c, const char *backend)
{
    struct model m;
    int least = STEPS + 1, most = 0;
    double ponder = 0;

    model_open(&m, c, backend, 2, MEM_NONE, (struct extent){B, T, 0});
    (void)model_stream(&m, 0, B, T, T);
    const float *const E = m.lm.params.v[m.lm.at_embed].data;
    for (int b = 0; b < B; b++) {
        const struct layer y = {c, &m.lm.params, T, 0};
        double h[T * D];
        float want[T * D];
        struct halted r;
        for (int i = 0; i < T * D; i++)
            h[i] = (double)c->emb_scale * (double)E[token_of(&m, b, i / D) * D + i % D];
        depth_by_hand(&y, h, &r);
        to_floats(want, r.out, T * D);
        const double error = case_error(m.lm.h + b * T * D, want, T * D);
        cr_expect(error < 1, "%s, %s: %.3g x its limit", backend, halt_name[c->halt], error);
        ponder += r.ponder / B;
        for (int i = 0; i < T && c->halt != HALT_NEVER; i++) {
            cr_expect_eq(depth_in(&m)->steps[b * T + i], r.steps[i]);
            least = min_int(least, r.steps[i]), most = max_int(most, r.steps[i]);
        }
        cr_expect(r.margin > 1e-4, "a decision was too near to tell: %g", r.margin);
    }
    if (c->halt != HALT_NEVER) {
        cr_expect(least < most, "all take %d steps", most);
        cr_expect_float_eq(depth_in(&m)->ponder, ponder, 1e-5);
    }
}

Test(universal, is_its_equations)
{
    for (int b = 0; backends[b]; b++)
        for (int halt = 0; halt < HALT_KINDS; halt++)
            for (int base = 0; base < 2; base++) {
                struct config c = depth_of((enum halt_kind)halt, STEPS);
                c.step_base = base;
                if (backend_usable(backends[b], NULL) == OK)
                    expect_equations(&c, backends[b]->name);
            }
}

/* ---- halting at once, never, and by itself ------------------------------------------------ */

static float *logits_with_bias(const struct config *c, float bias, double *share)
{
    struct model m;

    model_open(&m, c, "ref", 1, MEM_NONE, (struct extent){B, T, 0});
    if (params_find(&m.lm.params, "halt.bias"))
        *params_find(&m.lm.params, "halt.bias")->data = bias;
    float *const all = model_stream(&m, 0, B, T, T);
    *share = depth_share(m.lm.drive_data);
    return all;
}

Test(universal, a_strong_will_decides)
{
    enum { N = B * T * 11 };
    const struct config one = depth_of(HALT_NEVER, 1), all = depth_of(HALT_NEVER, STEPS);
    double share;
    float *const after_one = logits_with_bias(&one, 0, &share);
    float *const after_all = logits_with_bias(&all, 0, &share);

    cr_expect_eq(share, 1);
    for (int halt = HALT_GRAVES; halt < HALT_KINDS; halt++) {
        const struct config c = depth_of((enum halt_kind)halt, STEPS);
        float *const at_once = logits_with_bias(&c, 40, &share);
        cr_expect_arr_eq(at_once, after_one, N * sizeof(float));
        cr_expect_eq(share, 1.0 / STEPS);
        float *const never = logits_with_bias(&c, -40, &share);
        /* the rest of the weight goes to the last step; else to none */
        NUMBERS({case_error(never, after_all, N) < 1, halt == HALT_GRAVES}, {share, 1});
    }
}

/* Later text changes neither a position's state nor when it halts. */
Test(universal, halting_is_causal)
{
    for (int halt = HALT_GRAVES; halt < HALT_KINDS; halt++) {
        const struct config c = depth_of((enum halt_kind)halt, STEPS);
        struct model m;
        int32_t steps[T];
        model_open(&m, &c, "ref", 1, MEM_NONE, (struct extent){1, T, 0});
        float *const whole = model_stream(&m, 0, 1, T, T);
        memcpy(steps, depth_in(&m)->steps, sizeof(steps));
        for (int n = 1; n < T; n++) {
            model_segment(&m, 0, 1, 0, n, n);
            cr_expect_arr_eq(m.lm.logits, whole, sizeof(float) * (size_t)(n * c.V));
            cr_expect_arr_eq(depth_in(&m)->steps, steps, sizeof(int32_t) * (size_t)n);
        }
    }
}

/* ---- weights and cost --------------------------------------------------------------------- */

Test(universal, steps_share_their_weights)
{
    const struct config one = depth_of(HALT_GRAVES, 1), many = depth_of(HALT_GRAVES, STEPS);
    struct model a, b;

    model_open(&a, &one, "ref", 1, MEM_NONE, (struct extent){B, T, 0});
    model_open(&b, &many, "ref", 1, MEM_NONE, (struct extent){B, T, 0});
    cr_expect_eq(a.lm.params.n, b.lm.params.n);
    cr_expect_eq(a.arena.part[PART_WEIGHTS], b.arena.part[PART_WEIGHTS]);
    cr_expect(many.N == 1 && many.steps == STEPS && b.lm.sublayers.n == STEPS * a.lm.sublayers.n);
}

/* Before a run the most steps possible, after it those that were taken. */
Test(universal, costs_the_steps_it_takes)
{
    const struct config c = depth_of(HALT_GRAVES, STEPS);
    struct model m;

    model_open(&m, &c, "ref", 1, MEM_NONE, (struct extent){B, T, 0});
    const double output = 2.0 * B * T * D * 11;
    const double layer = 4.0 * B * 3 * (T * (T + 1) / 2) * 5 + 8.0 * B * T * D * 15 +
                         4.0 * B * T * D * 17 + 2.0 * B * T * D;
    cr_expect_float_eq(lm_flop(&m.lm, B, T, 0, T), output + STEPS * layer, 1e-6);
    *params_find(&m.lm.params, "halt.bias")->data = 40;
    (void)model_stream(&m, 0, B, T, T);
    cr_expect_float_eq(lm_flop(&m.lm, B, T, 0, T), output + layer, 1e-6);
    cr_expect_float_eq(lm_grad_flop(&m.lm, B, T, 0), 2 * (output + layer), 1e-6);
}

/* Of trainings and of benchmarks alike. */
Test(universal, halting_begins_with_its_bias)
{
    static const char *const set[] = {NULL, "-2.5"};

    for (int k = 0; k < 2; k++) {
        struct config c = depth_of(HALT_T2T, STEPS);
        struct model m;
        if (set[k])
            set_choice(&c, "halt_bias", set[k]);
        model_open(&m, &c, "ref", 1, MEM_NONE, (struct extent){B, T, 0});
        cr_expect_eq(*params_find(&m.lm.params, "halt.bias")->data, set[k] ? -2.5f : 1);
    }
}
