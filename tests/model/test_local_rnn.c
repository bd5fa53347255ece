/* SPDX-License-Identifier: MIT
 *
 * LocalRNN: a model of its cells against windows run one by one, its gradients against differences,
 * and streams against one pass. Golden files compare it with the published code. */
#include "tests/support/attn_case.h"
#include "tests/support/finite.h"
#include "tests/support/model.h"
#include "tests/support/rnn_case.h"
#include "variants/model/sublayer/sublayer_list.h"

#include <criterion/parameterized.h>

enum { D = 6, B = 2, L = 7 };

struct bare {
    struct engine g;
    struct config c;
    struct params p;
    struct arena a;
    struct sublayers sublayers;
    float *x, *dy, *y, *d_x; /* [B,L,D] */
    int M;
};

static void bind_bare(struct bare *t)
{
    struct err e = {""};
    const struct extent max = {B, L, t->M};

    params_place(&t->p, &t->a);
    cr_assert_eq(
        sublayers_bind(&t->sublayers, &t->g, &t->p, t->M ? MEM_HIDDEN : MEM_NONE, max, &t->a, &e),
        OK, "%s", e.msg);
    cr_assert_eq(sublayers_bind_grad(&t->sublayers, &t->g, &t->a, &e), OK, "%s", e.msg);
    params_place_grad(&t->p, &t->a);
}

static void open_bare(struct bare *t, const char *backend, enum rnn_cell_kind kind, int window,
                      int M)
{
    *t = (struct bare){.g = open_engine(backend, 2), .M = M};
    t->c = config_default(variant_find("rtransformer"), D, 2, 3, 5, 1, 0);
    t->c.rnn_cell = kind, t->c.rnn_window = window;
    cr_assert_eq(sublayers_init_bare(&t->sublayers, &t->c, 'r', &t->p, 0, NULL), OK);
    bind_bare(t);
    cr_assert_eq(arena_place(&t->a, HUGE_NEVER, NULL, NULL, NULL), OK);
    memset(t->a.base, 0xff, t->a.size);
    bind_bare(t);
    params_init(&t->p, SEED, 1);
    params_pack(&t->p, &t->g);
    t->x = normal(B * L * D, "rows", 0, 1), t->dy = normal(B * L * D, "dy", 0, 1);
    t->y = guarded(B * L * D), t->d_x = guarded(B * L * D);
    quantise(t->x, B * L * D);
}

static void close_bare(struct bare *t)
{
    release(t->x), release(t->dy), release(t->y), release(t->d_x);
    sublayers_free(&t->sublayers), params_free(&t->p), arena_release(&t->a);
}

static struct sublayer_input run_bare(struct bare *t)
{
    struct sublayer *const s = t->sublayers.at;

    params_pack(&t->p, &t->g);
    memcpy(t->sublayers.work->x, t->x, sizeof(float) * B * L * D);
    const struct sublayer_input from =
        sublayer_source(&t->g, s, t->sublayers.work, t->sublayers.work->x, B, L);
    s->kind->forward(&t->g, s, t->sublayers.work, from, (struct act){.y = t->y});
    return from;
}

/* The last state of one window [n,D], `zeros` of whose rows come first. */
static void window_by_hand(const struct bare *t, const double *rows, int n, double *h)
{
    const float *W = t->p.v[0].data, *R = t->p.v[1].data, *b = t->p.v[2].data, *c = t->p.v[3].data;
    const int G = rnn_cell_gates(t->c.rnn_cell);
    double cell[D] = {0};

    memset(h, 0, D * sizeof(*h));
    for (int s = 0; s < n; s++) {
        double x[GATES * D], r[GATES * D], next[D];
        for (int o = 0; o < G * D; o++) {
            x[o] = (double)b[o], r[o] = (double)c[o];
            for (int k = 0; k < D; k++) {
                x[o] += (double)W[o * D + k] * rows[s * D + k];
                r[o] += (double)R[o * D + k] * h[k];
            }
        }
        for (int e = 0; e < D; e++) {
            if (G == 1) {
                next[e] = tanh(x[e] + r[e]);
            } else if (G == 3) {
                const double z = logistic(x[D + e] + r[D + e]);
                next[e] =
                    (1 - z) * tanh(x[2 * D + e] + logistic(x[e] + r[e]) * r[2 * D + e]) + z * h[e];
            } else {
                cell[e] = logistic(x[D + e] + r[D + e]) * cell[e] +
                          logistic(x[e] + r[e]) * tanh(x[2 * D + e] + r[2 * D + e]);
                next[e] = logistic(x[3 * D + e] + r[3 * D + e]) * tanh(cell[e]);
            }
        }
        memcpy(h, next, sizeof(next));
    }
}

ParameterizedTestParameters(local_rnn, is_its_windows) { return every_backend(); }
ParameterizedTest(int *b, local_rnn, is_its_windows)
{
    static const int windows[] = {1, 3, L, L + 4};

    for (int kind = 0; kind < CELL_KINDS; kind++)
        for (size_t w = 0; w < ARRAY_LEN(windows); w++) {
            struct bare t;
            float want[B * L * D];
            open_bare(&t, backends[*b]->name, (enum rnn_cell_kind)kind, windows[w], 0);
            run_bare(&t);
            for (int i = 0; i < B * L; i++) {
                double rows[(L + 4) * D] = {0}, h[D];
                for (int s = 0; s < windows[w]; s++)
                    for (int e = 0; e < D; e++)
                        if (i % L - windows[w] + 1 + s >= 0)
                            rows[s * D + e] = (double)t.x[(i - windows[w] + 1 + s) * D + e];
                window_by_hand(&t, rows, windows[w], h);
                for (int e = 0; e < D; e++)
                    want[i * D + e] = (float)h[e];
            }
            const double error = case_error(t.y, want, B * L * D);
            cr_expect(error < 1, "%s, %s, window %d: %.3g x its limit", backends[*b]->name,
                      rnn_cell_name[kind], windows[w], error);
            cr_expect(guards_intact(t.y, B * L * D));
            close_bare(&t);
        }
}

/* ---- backward ----------------------------------------------------------------------------- */

static double weighted(void *ctx)
{
    struct bare *t = ctx;
    double sum = 0;

    run_bare(t);
    for (int i = 0; i < B * L * D; i++)
        sum += (double)t->y[i] * (double)t->dy[i];
    return sum;
}

/* B L D numbers below 1, each off by some U after a window of steps that round to floats, with
 * weights of deviation 1: 4 U times the square root of their number. */
Test(local_rnn, is_the_derivative)
{
    for (int kind = 0; kind < CELL_KINDS; kind++)
        for (int M = 0; M <= 3; M += 3) {
            struct bare t;
            float *grad = NULL;
            open_bare(&t, "ref", (enum rnn_cell_kind)kind, 4, M);
            const struct scalar f = {weighted, &t, 4 * U * sqrt(B * L * D), 0x1p-7};
            for (int i = 0; i < t.p.n; i++)
                quantise(t.p.v[i].data, t.p.v[i].n);
            if (M)
                sublayer_remember(&t.g, t.sublayers.at, t.sublayers.work, t.dy, B, M);
            const struct sublayer_input from = run_bare(&t);
            params_zero_grad(&t.p);
            t.sublayers.at->kind->backward(&t.g, t.sublayers.at, t.sublayers.work, from, t.d_x,
                                           t.dy, M);
            cr_expect(guards_intact(t.d_x, B * L * D));
            expect_gradient(&f, "x", t.x, t.d_x, B * L * D, 64 * U, 2 * f.noise / f.step);
            for (int i = 0; i < t.p.n; i++) {
                struct param *const w = &t.p.v[i];
                grad = realloc(grad, w->n * sizeof(*grad));
                cr_assert_not_null(grad);
                memcpy(grad, w->grad, w->n * sizeof(*grad));
                expect_gradient(&f, w->name, w->data, grad, w->n, 64 * U, 2 * f.noise / f.step);
            }
            free(grad);
            close_bare(&t);
        }
}

/* ---- models ------------------------------------------------------------------------------- */

static struct config model_of(enum rnn_cell_kind kind, int window, bool score_residual)
{
    struct config c = config_default(variant_find("rtransformer"), 12, 3, 5, 17, 2, 11);

    c.rnn_cell = kind, c.rnn_window = window, c.rnn_carry = score_residual, c.rnn_layers = 2;
    return c;
}

/* Any cut of a text gives the same result if windows are carried over it, and another one if not.
 */
Test(local_rnn, carried_windows_are_one_pass)
{
    enum { TEXT = 19 };
    const size_t n = 2 * TEXT * 11;

    for (int kind = 0; kind < CELL_KINDS; kind++)
        for (int score_residual = 0; score_residual < 2; score_residual++) {
            const struct config c = model_of((enum rnn_cell_kind)kind, 5, score_residual);
            struct model one, many;
            model_open(&one, &c, "ref", 1, MEM_NONE, (struct extent){2, TEXT, 0});
            float *const want = model_stream(&one, 0, 2, TEXT, TEXT);
            for (int segment = 1; segment <= 6; segment += 2) {
                model_open(&many, &c, "ref", 1, segment % 3 ? MEM_HIDDEN : MEM_KV,
                           (struct extent){2, segment, TEXT});
                float *const got = model_stream(&many, 0, 2, TEXT, segment);
                cr_expect((memcmp(got, want, n * sizeof(float)) == 0) == (score_residual == 1),
                          "%s, carry %d, segments of %d", rnn_cell_name[kind], score_residual,
                          segment);
                free(got);
                model_close(&many);
            }
            free(want);
            model_close(&one);
        }
}

/* Per row and LocalRNN: 2 G D^2 for the row and as much for each of its steps but the first. */
Test(local_rnn, costs_what_it_multiplies)
{
    struct config c = model_of(CELL_GRU, 4, true), without = c;
    const double product = 2.0 * 3 * 12 * 12;
    struct model m, plain;

    without.rnn_layers = 0;
    model_open(&m, &c, "ref", 1, MEM_HIDDEN, (struct extent){2, 5, 9});
    model_open(&plain, &without, "ref", 1, MEM_HIDDEN, (struct extent){2, 5, 9});
    cr_expect_float_eq(lm_flop(&m.lm, 2, 5, 9, 5) - lm_flop(&plain.lm, 2, 5, 9, 5),
                       4 * product * 2 * (5 + 3 + 5 * 3), 1e-6);
    cr_expect_float_eq(lm_flop(&m.lm, 2, 5, 0, 5) - lm_flop(&plain.lm, 2, 5, 0, 5),
                       4 * product * 2 * (5 + 5 * 3), 1e-6);
    cr_expect_float_eq(lm_grad_flop(&m.lm, 2, 5, 9) - lm_grad_flop(&plain.lm, 2, 5, 9),
                       2 * 4 * product * 2 * (5 + 3 + 5 * 3), 1e-6);
    model_close(&m), model_close(&plain);
}

Test(local_rnn, choices_that_make_no_sense)
{
    struct config c = model_of(CELL_RNN, 0, true);
    struct err e = {""};

    cr_expect_eq(config_check(&c, &e), E_USAGE);
    cr_expect_not_null(strstr(e.msg, "rnn_window"), "%s", e.msg);
    c.rnn_window = 1, c.rnn_layers = MAX_RNNS + 1;
    cr_expect_eq(config_check(&c, &e), E_USAGE);
    c.rnn_layers = MAX_RNNS;
    cr_expect_eq(config_check(&c, &e), OK, "%s", e.msg);
}
