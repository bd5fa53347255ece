/* SPDX-License-Identifier: MIT
 *
 * Steps of keys. */
#include "key_steps.h"

enum { LARGEST = 127 };

/* Of one head of a row. */
static double steps_of(const float *x, int n)
{
    double largest = 0, squares = 0;

    for (int e = 0; e < n; e++) {
        largest = fmax(largest, fabs((double)x[e]));
        squares += (double)x[e] * (double)x[e];
    }
    if (largest == 0 || n < 2)
        return LARGEST;
    return LARGEST * sqrt(fmax(0, squares - largest * largest) / (n - 1)) / largest;
}

static double head_mean(const struct cache *keys, int head, int width)
{
    double sum = 0;

    for (int b = 0; b < keys->B; b++)
        for (int i = 0; i < keys->M; i++)
            sum += steps_of(cache_rows(keys, b) + (ptrdiff_t)i * keys->n + head * width, width);
    return sum / ((double)keys->B * keys->M);
}

struct key_steps key_steps(const struct lm *m)
{
    struct key_steps least = {.steps = NAN};
    int attention = 0;

    for (int i = 0; i < m->sublayers.n; i++) {
        const struct sublayer *const s = &m->sublayers.at[i];
        if (!s->kind->positions || !s->asks)
            continue;
        attention++;
        const struct cache *const keys = &s->state.attention.keys;
        const int heads = config_kv_width(s->c) / s->c->dh;
        for (int h = 0; s->mem == MEM_KV && keys->M > 0 && h < heads; h++) {
            const double steps = head_mean(keys, h, s->c->dh);
            if (!(steps >= least.steps))
                least = (struct key_steps){steps, attention, h + 1};
        }
    }
    return least;
}
