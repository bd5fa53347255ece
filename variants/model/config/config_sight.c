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

/* The largest distance at which a query sees a key by the rules of a mask that have one. */
static int64_t mask_reach(const struct mask *m)
{
    const int64_t window = m->window ? (m->window - 1) * (int64_t)max_int(m->dilation, 1) : 0;
    const int64_t block = m->block ? m->block - 1 + (int64_t)m->block * m->back : 0;
    const int64_t memory = m->memory ? m->block - 1 + (int64_t)m->memory : 0;
    const int64_t bands = m->rect ? 1 + (m->margin_rows + m->rect_rows - 1) / m->rect_rows : 0;
    const int64_t rect = m->rect ? bands * m->rect_rows * m->row - 1 : 0;

    return max_wide(max_wide(window, block), max_wide(memory, rect));
}

/* May it see any key, however far? */
static bool mask_all_far(const struct mask *m)
{
    return mask_hides_nothing(m) || m->rows || m->stride;
}

/* Does it see keys by their place, whatever their distance? */
static bool mask_far(const struct mask *m)
{
    const bool some = m->n_random || m->global || m->fixed;

    return some || mask_all_far(m);
}

/* Of the first n keys of a stream, those that it sees from anywhere. */
static int mask_anywhere(const struct mask *m, int n)
{
    const int summaries =
        m->fixed ? n / m->fixed * m->summary + max_int(n % m->fixed - (m->fixed - m->summary), 0)
                 : 0;

    if (mask_all_far(m) || m->n_random)
        return n;
    return min_int(n, m->global + summaries);
}

/* What a layer sees of its past. */
struct reach {
    int newest;   /* rows back to the farthest that is seen by its distance */
    int anywhere; /* rows before them that are seen by their place, of a stream of M */
    bool far;     /* there may be such rows */
};

static struct reach reach_of(const struct config *c, int layer, int M)
{
    static const struct mask all = {0};
    const struct masks masks = config_masks(c, layer);
    struct reach most = {0, 0, false};

    for (int h = 0; h < c->H && !c->stream_sinks; h++) {
        const struct mask *const m = masks.n ? &masks.at[masks.head[h % masks.n_heads]] : &all;
        const int window = config_head_window(c, layer, h);
        const int by_distance = mask_hides_nothing(m) ? M : (int)min_wide(M, mask_reach(m));
        const int seen = window ? min_int(mask_far(m) ? M : by_distance, window - 1) : by_distance;
        most.newest = max_int(most.newest, seen);
        most.far = most.far || (!window && mask_far(m));
        if (!window)
            most.anywhere = max_int(most.anywhere, mask_anywhere(m, M - seen));
    }
    return most;
}

int config_kept(const struct config *c, int layer, int M)
{
    const struct reach r = reach_of(c, layer, M);

    if (c->stream_sinks)
        return min_int(M, c->stream_sinks + c->window - 1);
    return r.far ? M : r.newest;
}

int config_needed(const struct config *c, int layer, int M)
{
    const struct reach r = reach_of(c, layer, M);

    return c->stream_sinks ? config_kept(c, layer, M) : min_int(M, r.newest + r.anywhere);
}

enum status config_set_masks(struct config *c, const struct variant *v, const char *text,
                             const char *heads, struct err *e)
{
    return masks_parse(&c->masks, *text || !v->mask ? text : v->mask, heads, e);
}
