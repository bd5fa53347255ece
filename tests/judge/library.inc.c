/* SPDX-License-Identifier: MIT
 *
 * A kernel that has everything: the functions of libbenchattn, and a plain product. */
#include <benchkernel.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *begin(const struct bk_team *team, char *why, size_t why_size)
{
    const struct ba_engine_options o = {.size = sizeof(o), .threads = team->threads};
    struct ba_engine *engine = NULL;

    ba_engine_open(&engine, &o, why, why_size);
    return engine;
}

static void end(void *state) { ba_engine_close(state); }

static char why_not[256];

static void must(int status)
{
    if (status == BA_OK)
        return;
    fprintf(stderr, "%s\n", why_not);
    abort();
}

static void forward(void *s, const struct bk_team *t, const struct ba_attention *a)
{
    must(ba_attention_forward(s, a, why_not, sizeof(why_not)));
}

static void backward(void *s, const struct bk_team *t, const struct ba_attention *a,
                     const struct ba_attention_grad *d)
{
    must(ba_attention_backward(s, a, d, why_not, sizeof(why_not)));
}

static void recur(void *s, const struct bk_team *t, const struct ba_recurrence *r)
{
    must(ba_recurrence_forward(s, r, why_not, sizeof(why_not)));
}

static void recur_grad(void *s, const struct bk_team *t, const struct ba_recurrence *r,
                       const struct ba_recurrence_grad *d)
{
    must(ba_recurrence_backward(s, r, d, why_not, sizeof(why_not)));
}

static float weight(const struct bk_linear *l, ptrdiff_t at)
{
    float x;

    if (l->w_type == BK_F32)
        return ((const float *)l->w)[at];
    const uint32_t bits = (uint32_t)((const uint16_t *)l->w)[at] << 16;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

static float rounded(const struct bk_linear *l, float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof(bits));
    bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000;
    if (l->w_type == BK_BF16 && x == x)
        memcpy(&x, &bits, sizeof(x));
    return x;
}

static void product(void *s, const struct bk_team *t, const struct bk_linear *l)
{
    for (int i = 0; i < l->rows; i++)
        for (int o = 0; o < l->out; o++) {
            double sum = l->bias ? l->bias[o] : 0;
            for (int k = 0; k < l->in; k++)
                sum += (double)rounded(l, l->x[i * l->x_row + k]) * weight(l, o * l->w_row + k);
            l->y[i * l->y_row + o] = (float)sum;
        }
}

const struct bk_kernel bench_kernel = {
    .size = sizeof(struct bk_kernel),
    .abi = BK_ABI,
    .name = "library",
    .version = "1",
    .open = begin,
    .close = end,
    .linear = product,
    .attention_forward = forward,
    .attention_backward = backward,
    .recurrence_forward = recur,
    .recurrence_backward = recur_grad,
};
