/* SPDX-License-Identifier: MIT
 *
 * Mamba: its layer against the equations in double, in one segment and in several with the states
 * carried on, on every backend; gradients against finite differences; sizes and initial values. */
#include "tests/support/bound_layer.h"
#include "tests/support/loaded.h"

/* Channels and numbers of a state are no whole vectors, and channels more than one block. */
enum { B = 2, L = 11, D = 12, H = 3, INNER = 3 * 49, STATES = 16, RANK = 5, TAPS = 4 };

static void open_bound(struct bound *t, const char *backend, int threads)
{
    struct config c = config_default(variant_find("mamba"), D, H, STATES, 8, 1, 9);

    c.dv = INNER / H;
    MUST(config_set(&c, "lora", "5", &failure));
    bound_open(t, c, backend, threads, B, L, 1);
}

/* ---- the equations ------------------------------------------------------------------------- */

struct past {
    double row[TAPS][INNER], state[INNER][STATES]; /* the newest row last */
};

static void row_by_hand(const struct bound *t, struct past *past, const float *in, double *y)
{
    const float *const conv = bound_param(t, "conv.weight"), *const bias =
                                                                 bound_param(t, "conv.bias");
    const float *const dt_bias = bound_param(t, "dt_bias"), *const skip = bound_param(t, "attn.D");
    const float *const rates = bound_param(t, "A_log");
    double u[D], xz[2 * INNER], x[INNER], low[RANK + 2 * STATES], dt[INNER];

    to_doubles(u, in, D);
    affine(xz, bound_param(t, "in.weight"), NULL, u, 2 * INNER, D);
    memmove(past->row, past->row[1], sizeof(past->row[0]) * (TAPS - 1));
    memcpy(past->row[TAPS - 1], xz, sizeof(past->row[0]));
    for (int c = 0; c < INNER; c++) {
        double sum = (double)bias[c];
        for (int s = 0; s < TAPS; s++)
            sum += (double)conv[c * TAPS + s] * past->row[s][c];
        x[c] = silu(sum);
    }
    affine(low, bound_param(t, "attn.x.weight"), NULL, x, RANK + 2 * STATES, INNER);
    affine(dt, bound_param(t, "dt.weight"), NULL, low, INNER, RANK);
    for (int c = 0; c < INNER; c++) {
        const double step = log1p(exp(dt[c] + (double)dt_bias[c]));
        double o = (double)skip[c] * x[c];
        for (int n = 0; n < STATES; n++) {
            const double rate = exp((double)rates[c * STATES + n]);
            double *const s = &past->state[c][n];
            *s = exp(-rate * step) * *s + step * x[c] * low[RANK + n];
            o += *s * low[RANK + STATES + n];
        }
        xz[c] = o * silu(xz[INNER + c]);
    }
    affine(y, bound_param(t, "attn.o.weight"), NULL, xz, D, INNER);
}

static double error_of(const struct bound *t)
{
    float *const want = fenced(B * L * D);
    struct past *const past = room(1, sizeof(*past));

    for (int b = 0; b < B; b++) {
        memset(past, 0, sizeof(*past));
        for (int i = 0; i < L; i++) {
            double y[D];
            row_by_hand(t, past, t->x + (b * L + i) * D, y);
            to_floats(want + (b * L + i) * D, y, D);
        }
    }
    return case_error(t->y, want, B * L * D);
}

/* Cut into segments of this many rows, the last one shorter: the states carry the rest. */
TEST_EACH(int *b, mamba, is_its_equations, every_backend())
{
    static const int lengths[] = {L, 4, 1};

    for (int threads = 1; threads <= 3; threads += 2)
        for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
            struct bound t;
            open_bound(&t, backends[*b]->name, threads);
            for (int from = 0; from < L; from += lengths[i]) {
                const int n = min_int(lengths[i], L - from);
                bound_run(&t, from, n);
                sublayer_commit(t.l.list.at, n);
            }
            const double error = error_of(&t);
            cr_expect_lt(error, 1, "%s, segments of %d: %.3g", backends[*b]->name, lengths[i],
                         error);
        }
}

/* ---- backward ------------------------------------------------------------------------------ */

TEST_EACH(int *b, mamba, gradients_are_differences, every_backend(), .timeout = 240)
{
    struct bound t;

    open_bound(&t, backends[*b]->name, 2);
    bound_expect_gradients(&t);
}

/* ---- sizes --------------------------------------------------------------------------------- */

/* About 4 D^2 weights; a state of 16 numbers for each channel; rates 1 to 16. */
Test(mamba, sizes_and_initial_values)
{
    const struct variant *const v = variant_find("mamba");
    struct config c;
    struct params p = {0};
    struct sublayers s;
    int dh, F;
    size_t n = 0;

    variant_sizes(v, 192, 4, &dh, &F);
    c = config_default(v, 192, 4, dh, F, 1, 9);
    cr_expect_eq(dh, 16);
    sublayers_init_bare(&s, &c, SUB_ATTENTION, &p, 0);
    for (int i = 0; i < p.n; i++)
        n += p.v[i].n;
    cr_expect(n > 4 * 192 * 192 && n < 5 * 192 * 192, "%zu", n);
    place_params(&p);
    params_init(&p, SEED, 1);
    const struct param *const rates = params_find(&p, "attn.A_log");
    cr_assert(rates && rates->rank == 2 && rates->shape[0] == 256 && rates->shape[1] == 16);
    for (int i = 0; i < 256 * 16; i++)
        cr_assert_float_eq(rates->data[i], log(1 + i % 16), 4 * U);
    sublayers_free(&s);
}
