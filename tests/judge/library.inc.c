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

static float widened(uint32_t bits)
{
    float x;

    memcpy(&x, &bits, sizeof(x));
    return x;
}

static float rounded(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof(bits));
    return x == x ? widened((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000) : x;
}

/* Operands are made floats once: loops over them are then as fast as a judge, which calls them often, needs. */
static void product(void *s, const struct bk_team *t, const struct bk_linear *l)
{
    const int narrow = l->w_type == BK_BF16;
    float *const x = malloc(sizeof(*x) * (l->rows + 1) * l->in), *const w = x + l->rows * l->in;

    for (int i = 0; i < l->rows; i++)
        for (int k = 0; k < l->in; k++)
            x[i * l->in + k] = narrow ? rounded(l->x[i * l->x_row + k]) : l->x[i * l->x_row + k];
    for (int o = 0; o < l->out; o++) {
        for (int k = 0; k < l->in && narrow; k++)
            w[k] = widened((uint32_t)((const uint16_t *)l->w)[o * l->w_row + k] << 16);
        if (!narrow)
            memcpy(w, (const float *)l->w + o * l->w_row, sizeof(*w) * l->in);
        for (int i = 0; i < l->rows; i++) {
            double sum = l->bias ? l->bias[o] : 0;
            for (int k = 0; k < l->in; k++)
                sum += (double)x[i * l->in + k] * w[k];
            l->y[i * l->y_row + o] = (float)sum;
        }
    }
    free(x);
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
