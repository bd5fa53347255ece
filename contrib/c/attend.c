/* SPDX-License-Identifier: MIT
 *
 * Causal attention whose scores fall with distance, forward and backward, through libbenchattn:
 *
 *     cc attend.c $(pkg-config --cflags --libs benchattn) -o attend && ./attend
 *
 * The probabilities of a query sum to 1, and the gradient of all outputs is 1 here: that of the
 * values therefore sums to the number of outputs. */
#include <benchattn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { B = 2, H = 4, HKV = 2, L = 128, DH = 32, QUERIES = B * L * H * DH, KEYS = B * L * HKV * DH };

static float q[QUERIES], k[KEYS], v[KEYS], o[QUERIES], lse[B * H * L], bias[H * L];
static float d_o[QUERIES], d_q[QUERIES], d_k[KEYS], d_v[KEYS], d_bias[H * L];

static void fill(float *x, int n)
{
    for (int i = 0; i < n; i++)
        x[i] = (float)rand() / (float)RAND_MAX - 0.5f;
}

int main(void)
{
    const struct ba_engine_options options = {.size = sizeof(options), .threads = 2};
    struct ba_engine *engine;
    char why[256];

    if (ba_engine_open(&engine, &options, why, sizeof(why)) != BA_OK)
        return fprintf(stderr, "%s\n", why), 1;
    fill(q, QUERIES), fill(k, KEYS), fill(v, KEYS);
    for (int h = 0; h < H; h++)
        for (int row = 0; row < L; row++) /* the last row is distance 0 */
            bias[h * L + row] = -ldexpf((float)(L - 1 - row), -2 * (h + 1));
    for (int i = 0; i < QUERIES; i++)
        d_o[i] = 1;

    const struct ba_attention a = {.size = sizeof(a), .B = B, .H = H, .L = L, .dh = DH,
                                   .Hkv = HKV, .causal = 1, .R = L, .bias = bias, .bias_head = L,
                                   .q = q, .k = k, .v = v, .o = o, .lse = lse};
    const struct ba_attention_grad d = {.size = sizeof(d), .d_o = d_o, .d_q = d_q, .d_k = d_k,
                                        .d_v = d_v, .d_bias = d_bias};
    if (ba_attention_forward(engine, &a, why, sizeof(why)) != BA_OK ||
        ba_attention_backward(engine, &a, &d, why, sizeof(why)) != BA_OK)
        return fprintf(stderr, "%s\n", why), 1;
    double sum = 0;
    for (int i = 0; i < KEYS; i++)
        sum += d_v[i];
    printf("%s: the gradients of the values sum to %.1f of %d\n", ba_engine_backend(engine), sum,
           QUERIES);
    ba_engine_close(engine);
    return fabs(sum - QUERIES) > 1;
}
