/* SPDX-License-Identifier: MIT
 *
 * qkv_map, the map before q, k and v: source rows go through it before they are projected, and
 * gradients on their way back. It works in w->array[AT_BEFORE]: its output, what it keeps, and its
 * input rows if they had to be copied together. */
#include "sublayer_attention.h"

int attention_width(const struct config *c) { return c->qkv_map ? c->qkv_map->width(c) : c->D; }

struct array attention_map_array(const struct sublayer *s, struct extent max)
{
    const struct qkv_map *const map = s->c->qkv_map;
    const int rows = max.B * (max.L + (s->mem == MEM_KV ? 0 : max.M));

    if (!map)
        return (struct array){0};
    const size_t n = map->work(s->c, s->nth, rows) + (size_t)rows * (size_t)s->c->D;
    return (struct array){n, n, false, PART_ACTIVATIONS};
}

struct array attention_map_array_grad(const struct sublayer *s, struct extent max)
{
    const struct qkv_map *const map = s->c->qkv_map;
    const int rows = max.B * (max.L + max.M);

    if (!map)
        return (struct array){0};
    const size_t n = (size_t)rows * (size_t)(attention_width(s->c) + s->c->D) +
                     map->work_grad(s->c, s->nth, rows);
    return (struct array){0, n, true, PART_ACTIVATIONS};
}

/* The source rows, made contiguous for the map. */
static const float *contiguous_rows(const struct sublayer *s, const struct work *w,
                                    struct sublayer_input from)
{
    const int K = from.M + from.L;
    const ptrdiff_t n = (ptrdiff_t)K * s->c->D;

    if (from.B == 1 || from.at.stride == n)
        return from.at.at;
    float *const x = w->array[AT_QKV_MAP] + s->c->qkv_map->work(s->c, s->nth, from.B * K);
    for (int b = 0; b < from.B; b++)
        memcpy(x + b * n, from.at.at + b * from.at.stride, sizeof(float) * (size_t)n);
    return x;
}

struct sublayer_input attention_mapped_again(const struct sublayer *s, const struct work *w,
                                             struct sublayer_input from)
{
    if (!s->c->qkv_map)
        return from;
    from.at = (struct seq_rows){w->array[AT_QKV_MAP],
                                (ptrdiff_t)(from.M + from.L) * attention_width(s->c)};
    return from;
}

struct sublayer_input attention_mapped(const struct engine *g, const struct sublayer *s,
                                       const struct work *w, struct sublayer_input from)
{
    if (!s->c->qkv_map)
        return from;
    s->c->qkv_map->forward(g, s->c, s->nth, s->qkv_map, contiguous_rows(s, w, from),
                           from.B * (from.M + from.L), w->array[AT_QKV_MAP]);
    return attention_mapped_again(s, w, from);
}

/* The weights of the map apply to memory too, so all rows have a gradient on the way. */
void attention_backward(const struct engine *g, struct sublayer *s, const struct work *w,
                        struct sublayer_input from, float *d_in, const float *d_y, int skip)
{
    const struct config *c = s->c;

    if (!c->qkv_map) {
        attention_backward_projections(g, s, w, from, d_in, d_y, skip);
        return;
    }
    const int K = from.M + from.L, rows = from.B * K;
    const ptrdiff_t all = (ptrdiff_t)K * c->D, wanted = (ptrdiff_t)(K - skip) * c->D;
    float *const d_mapped = w->d_array[AT_QKV_MAP];
    float *const d_x = d_mapped + (size_t)rows * (size_t)attention_width(c);

    attention_backward_projections(g, s, w, attention_mapped_again(s, w, from), d_mapped, d_y, 0);
    c->qkv_map->backward(g, c, s->nth, s->qkv_map, d_x, d_mapped, contiguous_rows(s, w, from), rows,
                         w->array[AT_QKV_MAP], d_x + (size_t)rows * (size_t)c->D);
    for (int b = 0; b < from.B; b++)
        memcpy(d_in + b * wanted, d_x + (b + 1) * all - wanted, sizeof(float) * (size_t)wanted);
}

double attention_map_flop(const struct sublayer *s, double rows)
{
    return s->c->qkv_map ? s->c->qkv_map->flop(s->c, s->nth, (int)rows) : 0;
}
