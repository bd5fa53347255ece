/* SPDX-License-Identifier: MIT
 *
 * LocalRNN: a model of its cells against windows run one by one, and streams against one pass.
 * Gradients: test_grad_lm.c. Golden files compare it with the published code. */
#include "tests/support/bound_layer.h"
#include "tests/support/kernel/rnn_case.h"

enum { D = 6, B = 2, L = 7 };

static void open_window(struct bound *t, const char *backend, enum rnn_cell_kind kind, int window)
{
    struct config c = config_default(variant_find("rtransformer"), D, 2, 3, 5, 1, 0);

    c.rnn_cell = kind, c.rnn_window = window;
    bound_open_letter(t, c, 'r', backend, 2, (struct extent){B, L, 0}, 1);
}

/* The last state of one window [n,D], `zeros` of whose rows come first. */
static void window_by_hand(const struct bound *t, const double *rows, int n, double *h)
{
    const float *W = t->l.p.v[0].data, *R = t->l.p.v[1].data, *b = t->l.p.v[2].data,
                *c = t->l.p.v[3].data;
    const int G = rnn_cell_gates(t->l.c.rnn_cell);
    double cell[D] = {0};

    memset(h, 0, D * sizeof(*h));
    for (int s = 0; s < n; s++) {
        double x[GATES * D], r[GATES * D], next[D];
        affine(x, W, b, rows + s * D, G * D, D);
        affine(r, R, c, h, G * D, D);
        for (int e = 0; e < D; e++) {
            if (G == 1) {
                next[e] = tanh(x[e] + r[e]);
            } else if (G == 3) {
                const double z = sigma(x[D + e] + r[D + e]);
                next[e] =
                    (1 - z) * tanh(x[2 * D + e] + sigma(x[e] + r[e]) * r[2 * D + e]) + z * h[e];
            } else {
                cell[e] = sigma(x[D + e] + r[D + e]) * cell[e] +
                          sigma(x[e] + r[e]) * tanh(x[2 * D + e] + r[2 * D + e]);
                next[e] = sigma(x[3 * D + e] + r[3 * D + e]) * tanh(cell[e]);
            }
        }
        memcpy(h, next, sizeof(next));
    }
}

TEST_EACH(int *b, local_rnn, is_its_windows, every_backend())
{
    static const int windows[] = {1, 3, L, L + 4};

    for (int kind = 0; kind < CELL_KINDS; kind++)
        for (size_t w = 0; w < ARRAY_LEN(windows); w++) {
            struct bound t;
            float want[B * L * D];
            open_window(&t, backends[*b]->name, (enum rnn_cell_kind)kind, windows[w]);
            bound_run(&t, 0, L);
            for (int i = 0; i < B * L; i++) {
                double rows[(L + 4) * D] = {0}, h[D];
                for (int s = 0; s < windows[w]; s++)
                    for (int e = 0; e < D; e++)
                        if (i % L - windows[w] + 1 + s >= 0)
                            rows[s * D + e] = (double)t.x[(i - windows[w] + 1 + s) * D + e];
                window_by_hand(&t, rows, windows[w], h);
                to_floats(want + i * D, h, D);
            }
            const double error = case_error(t.y, want, B * L * D);
            cr_expect(error < 1, "%s, %s, window %d: %.3g x its limit", backends[*b]->name,
                      rnn_cell_name[kind], windows[w], error);
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
            float *const want =
                model_logits(&c, "ref", 1, MEM_NONE, (struct extent){2, TEXT, 0}, TEXT, TEXT);
            for (int segment = 1; segment <= 6; segment += 2) {
                float *const got = model_logits(&c, "ref", 1, segment % 3 ? MEM_HIDDEN : MEM_KV,
                                                (struct extent){2, segment, TEXT}, TEXT, segment);
                cr_expect((memcmp(got, want, n * sizeof(float)) == 0) == (score_residual == 1),
                          "%s, carry %d, segments of %d", rnn_cell_name[kind], score_residual,
                          segment);
            }
        }
}

/* As many in each of a layer, none of them another's. */
Test(local_rnn, each_has_its_own_weights)
{
    const struct config c = model_of(CELL_GRU, 3, true);
    struct model m;
    int n[2] = {0};

    model_open(&m, &c, "ref", 1, MEM_NONE, (struct extent){1, 4, 0});
    for (int i = 0; i < m.lm.params.n; i++)
        for (int r = 0; r < 2; r++)
            n[r] +=
                strncmp(m.lm.params.v[i].name, r ? "layers.0.rnn.1." : "layers.0.rnn.0.", 15) == 0;
    cr_expect(n[0] > 0 && n[0] == n[1], "%d, %d", n[0], n[1]);
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
}
