/* SPDX-License-Identifier: MIT
 *
 * What the attention of a model sees: windows and masks of its layers and heads. */
#include "variants/parts/masks.h"

int config_window(const struct config *c, int layer)
{
    const struct layer_list *const w = &c->layer_windows;
    const int own = w->n ? (int)w->at[layer % w->n] : 0;

    if (c->stream_sinks)
        return 0;

    return own && c->window ? min_int(own, c->window) : max_int(own, c->window);
}

int config_head_window(const struct config *c, int layer, int h)
{
    const struct head_windows *const w = &c->head_windows;
    const int row = w->n ? layer % w->n : 0, of_all = config_window(c, layer);
    const int own = w->n ? w->at[row][h % w->heads[row]] : 0;

    return own && of_all ? min_int(own, of_all) : max_int(own, of_all);
}

int config_longest_window(const struct config *c, int layer)
{
    int longest = 0;

    for (int h = 0; h < c->H; h++) {
        const int own = config_head_window(c, layer, h);
        if (own == 0)
            return 0;
        longest = max_int(longest, own);
    }
    return longest;
}

struct masks config_masks(const struct config *c, int layer)
{
    struct masks of_layer = c->masks;

    if (c->layer_masks.n) {
        of_layer.n_heads = 1;
        of_layer.head[0] = (uint8_t)c->layer_masks.at[layer % c->layer_masks.n];
    }
    if (!c->stream_sinks)
        return of_layer;
    return (struct masks){
        .n = 1, .n_heads = 1, .at = {{.window = c->window, .global = c->stream_sinks}}};
}

enum status config_set_masks(struct config *c, const struct variant *v, const char *text,
                             const char *heads, struct err *e)
{
    return masks_parse(&c->masks, *text || !v->mask ? text : v->mask, heads, e);
}
