/* SPDX-License-Identifier: MIT
 *
 * libFuzzer target: bytes become a call of the library's short convolution, forward and backward. The
 * levels of instructions agree, and outputs are those of the equation; test_conv.c has gradients. */
#include "library_call.h"

PASSES(ba_conv)

static void conv_arrays(struct input *in, const struct ba_conv *x, struct call *c, struct call *d)
{
    const double rows = (double)x->B * x->L * x->n, weights = (double)x->n * x->taps;
    const double states = (double)x->B * (x->taps - 1.0) * x->n;
    const bool bias = chance(in, 2), before = chance(in, 2), after = chance(in, 2);

    add_array(c, !chance(in, 64), OF(ba_conv, x), rows, READ, 1);
    add_array(c, !chance(in, 64), OF(ba_conv, w), weights, READ, 1);
    add_array(c, bias, OF(ba_conv, bias), x->n, READ, 1);
    add_array(c, before, OF(ba_conv, s0), states, READ, 1);
    add_array(c, after, OF(ba_conv, s1), states, WRITTEN, 0);
    add_array(c, !chance(in, 64), OF(ba_conv, y), rows, WRITTEN, 0);
    add_array(d, !chance(in, 64), OF(ba_conv_grad, d_y), rows, READ, 1);
    add_array(d, chance(in, 2), OF(ba_conv_grad, d_s1), states, READ, 1);
    add_array(d, !chance(in, 64), OF(ba_conv_grad, d_x), rows, WRITTEN, 0);
    add_array(d, !chance(in, 4), OF(ba_conv_grad, d_w), weights, ADDED, 0);
    add_array(d, bias ? !chance(in, 4) : chance(in, 16), OF(ba_conv_grad, d_bias), x->n, ADDED, 0);
    add_array(d, chance(in, 2), OF(ba_conv_grad, d_s0), states, WRITTEN, 0);
}

static double before(const struct ba_conv *x, int b, int t, int e)
{
    if (t >= 0)
        return (double)x->x[((ptrdiff_t)b * x->L + t) * x->n + e];
    return x->s0 ? (double)x->s0[((ptrdiff_t)b * (x->taps - 1) + x->taps - 1 + t) * x->n + e] : 0;
}

static void judge(const struct ba_conv *x)
{
    answered.judged++;
    for (ptrdiff_t i = 0; i < (ptrdiff_t)x->B * x->L * x->n; i++) {
        const int e = (int)(i % x->n), t = (int)(i / x->n % x->L), b = (int)(i / x->n / x->L);
        double sum = x->bias ? (double)x->bias[e] : 0;
        for (int s = 0; s < x->taps; s++)
            sum += (double)x->w[e * x->taps + s] * before(x, b, t - x->taps + 1 + s, e);
        CHECK(near((double)x->y[i], x->silu ? sum / (1 + exp(-sum)) : sum, 8));
    }
}

static void conv(struct input *in, struct ba_engine *const pair[2])
{
    struct ba_conv x = {.size = sizeof(x)}, y;
    struct ba_conv_grad d = {.size = sizeof(d)}, e = d;
    struct call c = {.n = 0}, cd = {.n = 0};

    x.B = around(in, 1 + byte(in) % 2);
    x.L = number(in, 9);
    x.n = number(in, 70);
    x.taps = number(in, 5);
    x.silu = around(in, byte(in) % 2);
    x.texts = chance(in, 64) ? number(in, 1) : 0;
    conv_arrays(in, &x, &c, &cd);
    place_arrays(&c, (double)x.B * x.L * x.n * x.taps);
    place_arrays(&cd, c.fits ? 0 : INFINITY);
    y = x;
    enter(&c, 0, &x), enter(&c, 1, &y);
    enter(&cd, 0, &d), enter(&cd, 1, &e);
    if (!c.fits) {
        /* Refused after all else: nothing may be touched. */
        d.d_x = NULL;
        CHECK(call(backward, pair[1], &x, &d) != BA_OK);
        return;
    }
    if (taken(forward, pair, &c, (void *[]){&x, &y}, (void *[]){NULL, NULL})) {
        expect_alike(&c);
        judge(&y);
    }
    if (taken(backward, pair, &cd, (void *[]){&x, &y}, (void *[]){&d, &e}))
        expect_alike(&cd);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    return try_call(conv, bytes, size);
}
