/* SPDX-License-Identifier: MIT
 *
 * The short causal convolution through the library: the caller's struct, checked, becomes a struct
 * conv for each text. */
#include "inner.h"

#include "variants/backends/conv.h"

static enum status take(const struct ba_conv *from, struct ba_conv *x, const struct ba_conv_grad *d,
                        struct texts *t, struct err *e)
{
    TRY(take_struct(x, sizeof(*x), FIRST_SIZE(struct ba_conv, cu_seqlens), from, "ba_conv", e));
    const struct number numbers[] = {{"B", x->B, 1, LIMIT_LENGTH},
                                     {"L", x->L, 1, LIMIT_LENGTH},
                                     {"n", x->n, 1, LIMIT_WIDTH},
                                     {"taps", x->taps, 1, 1 << 10},
                                     {"silu", x->silu, 0, 1}};
    const struct pointer pointers[] = {
        {!x->x, false, "x", ""},
        {!x->w, false, "w", ""},
        {!x->y && !d, false, "y", ""},
        {d && !d->d_y, false, "d_y", ""},
        {d && !d->d_x, false, "d_x", ""},
        {false, d && d->d_bias && !x->bias, "d_bias", " without its operand"},
        {false, d && x->s0 && x->s0 == x->s1, "s1", ", which is s0, before backward"},
    };

    TRY(check_numbers(numbers, ARRAY_LEN(numbers), e));
    TRY(check_product("B L n", x->B, x->L, x->n, e));
    TRY(check_product("B taps n", x->B, x->taps, x->n, e));
    TRY(check_pointers(pointers, ARRAY_LEN(pointers), e));
    return take_texts(t, x->texts, x->cu_seqlens, x->L, x->B == 1, e);
}

/* Text number i, with weights by taps. Where one text is everything there may be sequences. */
static struct conv text_of(const struct ba_conv *x, const struct texts *t, int i, const float *w)
{
    return (struct conv){.B = x->B,
                         .L = t->cu[i + 1] - t->cu[i],
                         .n = x->n,
                         .taps = x->taps,
                         .x = x->x + (ptrdiff_t)t->cu[i] * x->n,
                         .x_at = {(ptrdiff_t)x->L * x->n, x->n},
                         .before = x->s0 ? x->s0 + (ptrdiff_t)i * (x->taps - 1) * x->n : NULL,
                         .w = w,
                         .bias = x->bias};
}

/* y before its function. */
static void convolve(struct ba_engine *engine, const struct ba_conv *x, const struct texts *t,
                     float *w, float *y)
{
    conv_by_taps(w, x->w, x->n, x->taps);
    for (int i = 0; i < t->n; i++) {
        const struct conv one = text_of(x, t, i, w);
        conv_forward(&one, y + (ptrdiff_t)t->cu[i] * x->n, one.x_at, engine->g.threads);
        if (x->s1 && y == x->y)
            conv_after(&one, x->s1 + (ptrdiff_t)i * (x->taps - 1) * x->n);
    }
}

static enum status forward(struct ba_engine *engine, const void *from, const void *no_grads,
                           struct err *e)
{
    struct ba_conv x;
    struct texts t;

    TRY(take(from, &x, NULL, &t, e));
    TRY(engine_room(engine, sizeof(float) * (size_t)x.n * (size_t)x.taps, e));
    convolve(engine, &x, &t, engine->room, x.y);
    if (x.silu)
        engine->g.ops.act(&(struct act){.kind = ACT_SWISH,
                                        .y = x.y,
                                        .x = x.y,
                                        .rows = x.B * x.L,
                                        .n = x.n,
                                        .threads = engine->g.threads});
    return OK;
}

int ba_conv_forward(struct ba_engine *engine, const struct ba_conv *c, char *why, size_t why_size)
{
    return called(engine, forward, c, NULL, why, why_size);
}

/* The state after a text is its last rows, and those before it. */
static void add_after(const struct conv *one, const struct conv_grad *d, const float *d_after)
{
    const int kept = one->taps - 1;

    for (int row = 0; d_after && row < one->B * kept; row++) {
        float *const to = conv_grad_row(one, d, row / kept, one->L - kept + row % kept);
        for (int e = 0; e < one->n && to; e++)
            to[e] += d_after[(ptrdiff_t)row * one->n + e];
    }
}

/* Work space: weights by taps and their gradients, sums and theirs. */
static enum status backward(struct ba_engine *engine, const void *from, const void *grads,
                            struct err *e)
{
    struct ba_conv_grad d;
    struct ba_conv x;
    struct texts t;

    TRY(take_struct(&d, sizeof(d), FIRST_SIZE(struct ba_conv_grad, d_s0), grads, "ba_conv_grad",
                    e));
    TRY(take(from, &x, &d, &t, e));
    const size_t n = (size_t)x.n, all = (size_t)x.B * (size_t)x.L * n;
    const size_t weights = n * (size_t)x.taps, state = weights - n;
    TRY(engine_room(engine, 2 * sizeof(float) * (weights + all), e));
    float *const w = engine->room, *const d_w = w + weights, *const sums = d_w + weights,
                 *const d_sums = sums + all;
    convolve(engine, &x, &t, w, sums);
    engine->g.ops.act_grad(&(struct act_grad){.kind = x.silu ? ACT_SWISH : ACT_NONE,
                                              .d_x = d_sums,
                                              .d_y = d.d_y,
                                              .x = sums,
                                              .rows = x.B * x.L,
                                              .n = x.n,
                                              .threads = engine->g.threads});
    memset(d_w, 0, sizeof(float) * weights);
    memset(d.d_x, 0, sizeof(float) * all);
    if (d.d_s0)
        memset(d.d_s0, 0, sizeof(float) * state * (size_t)(x.texts ? x.texts : x.B));
    for (int i = 0; i < t.n; i++) {
        const struct conv one = text_of(&x, &t, i, w);
        const struct conv_grad of = {.d_y = d_sums + (size_t)t.cu[i] * n,
                                     .d_y_at = one.x_at,
                                     .d_x_at = one.x_at,
                                     .d_x = d.d_x + (size_t)t.cu[i] * n,
                                     .d_before = d.d_s0 ? d.d_s0 + (size_t)i * state : NULL,
                                     .d_w = d_w,
                                     .d_bias = d.d_bias};
        conv_backward(&one, &of, engine->g.threads);
        add_after(&one, &of, d.d_s1 ? d.d_s1 + (size_t)i * state : NULL);
    }
    for (int c = 0; c < x.n && d.d_w; c++)
        for (int s = 0; s < x.taps; s++)
            d.d_w[(ptrdiff_t)c * x.taps + s] += d_w[(ptrdiff_t)s * x.n + c];
    return OK;
}

int ba_conv_backward(struct ba_engine *engine, const struct ba_conv *c,
                     const struct ba_conv_grad *d, char *why, size_t why_size)
{
    return called(engine, backward, c, d, why, why_size);
}
