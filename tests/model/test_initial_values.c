/* SPDX-License-Identifier: MIT
 *
 * Published initial values of recurrent mixers: token shifts, decays and forget gates that go with
 * channel, head and layer. */
#include "tests/support/model.h"

enum { D = 24, H = 4, DH = 6, N = 3 };

/* Tensor `name` of a layer, at place i, in double. */
static double value(const struct model *m, int layer, const char *name, int i)
{
    const char *const full = kept_text("layers.%d.%s", layer, name);
    const struct param *const p = params_find(&m->lm.params, full);
    cr_assert(p && (size_t)i < p->n, "no %s", full);
    return (double)p->data[i];
}

static void open(struct model *m, const char *variant)
{
    struct config c = config_default(variant_find(variant), D, H, DH, 17, N, 11);

    model_open(m, &c, "ref", 1, MEM_NONE, (struct extent){1, 2, 0});
}

/* Row r is 1 - (c/D)^(power[r] (1 - layer/N)). */
static void expect_shifts(const struct model *m, const char *name, const double *power, int rows)
{
    for (int layer = 0; layer < N; layer++)
        for (int i = 0; i < rows * D; i++) {
            const double p = power[i / D] * (1 - (double)layer / N);
            cr_assert_float_eq(value(m, layer, name, i), 1 - pow((double)(i % D) / D, p), 8 * U,
                               "%s of layer %d: number %d", name, layer, i);
        }
}

Test(initial_values, rwkv6)
{
    static const double power[] = {1, 1, 1, 1, 0.5, 0.5};
    struct model m;

    open(&m, "rwkv6");
    expect_shifts(&m, "attn.maa", power, 6);
    expect_shifts(&m, "ff.maa", power, 2);
    for (int layer = 0; layer < N; layer++)
        for (int i = 0; i < H * DH; i++) {
            const double x = (double)i / (H * DH - 1), p = 0.7 + 1.3 * layer / (N - 1);
            cr_expect_float_eq(value(&m, layer, "attn.decay", i), -6 + 5 * pow(x, p), 32 * U);
        }
}

Test(initial_values, rwkv7)
{
    static const double power[] = {0.2, 0.9, 0.7, 0.7, 0.9, 0.2};
    struct model m;

    open(&m, "rwkv7");
    expect_shifts(&m, "attn.maa", power, 6);
    for (int layer = 0; layer < N; layer++) {
        const double p = 1 + pow((double)layer / (N - 1), 0.3), q = pow(1 - (double)layer / N, 4);
        for (int i = 0; i < H * DH; i++) {
            const double x = (double)i / (H * DH - 1);
            cr_expect_float_eq(value(&m, layer, "attn.decay", i), -6 + 6 * pow(x, p), 32 * U);
        }
        for (int i = 0; i < D; i++)
            cr_expect_float_eq(value(&m, layer, "ff.maa", i), 1 - pow((double)i / D, q), 8 * U);
    }
}

/* A model of one layer is at the beginning. */
Test(initial_values, of_one_layer)
{
    const struct config c = config_default(variant_find("rwkv6"), D, H, DH, 17, 1, 11);
    struct model m;

    model_open(&m, &c, "ref", 1, MEM_NONE, (struct extent){1, 2, 0});
    cr_expect_float_eq(value(&m, 0, "attn.decay", 0), -6, 8 * U);
    cr_expect_float_eq(value(&m, 0, "attn.decay", H * DH - 1), -1, 8 * U);
    cr_expect_float_eq(value(&m, 0, "attn.maa", D / 2), 0.5, 8 * U);
}

Test(initial_values, mlstm)
{
    struct model m;

    open(&m, "mlstm");
    for (int layer = 0; layer < N; layer++)
        for (int h = 0; h < H; h++)
            cr_expect_float_eq(value(&m, layer, "attn.f.bias", h), 3 + 3. * h / (H - 1), 8 * U);
}
