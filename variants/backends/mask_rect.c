/* SPDX-License-Identifier: MIT
 *
 * The rectangle of keys that a tile of queries sees: local attention in two dimensions (Parmar et
 * al. 2018, "Image Transformer", section 3.2). The stream is a picture, tile after tile; a row of
 * a tile is one run of positions, and so are several of them if the rectangle has their whole
 * width. */
#include "mask.h"

/* Where a position is: its tile, and its row and column within that. */
struct place {
    int64_t band, column; /* of tiles */
    int64_t y, x;
};

static int64_t tile_size(const struct mask *m) { return (int64_t)m->rect_rows * m->rect; }

static int64_t tiles_across(const struct mask *m) { return m->row / m->rect; }

static struct place place_of(const struct mask *m, int64_t position)
{
    const int64_t tile = position / tile_size(m), at = position % tile_size(m);

    return (struct place){tile / tiles_across(m), tile % tiles_across(m), at / m->rect,
                          at % m->rect};
}

/* Rows [top, bottom) and columns [left, right) of the picture that the tile of a query sees. */
struct rectangle {
    int64_t top, bottom, left, right;
};

static struct rectangle rectangle_of(const struct mask *m, int64_t query)
{
    const struct place at = place_of(m, query);
    const int64_t y = at.band * m->rect_rows, x = at.column * m->rect;

    return (struct rectangle){
        .top = max_wide(y - m->margin_rows, 0),
        .bottom = y + m->rect_rows + m->margin_rows,
        .left = max_wide(x - m->margin, 0),
        .right = min_wide(x + m->rect + m->margin, m->row),
    };
}

bool mask_rect_visible(const struct mask *m, int64_t query, int64_t key)
{
    const struct rectangle r = rectangle_of(m, query);
    const struct place k = place_of(m, key);
    const int64_t y = k.band * m->rect_rows + k.y, x = k.column * m->rect + k.x;

    return y >= r.top && y < r.bottom && x >= r.left && x < r.right;
}

/* The next run of a tile, from `at` on, that is in the rectangle. */
static bool next_of_tile(const struct mask *m, const struct rectangle *r, struct place at,
                         int64_t *from, int64_t *to)
{
    const int64_t y = at.band * m->rect_rows, x = at.column * m->rect, width = m->rect;
    const int64_t top = max_wide(r->top - y, 0), bottom = min_wide(r->bottom - y, m->rect_rows);
    const int64_t left = max_wide(r->left - x, 0), right = min_wide(r->right - x, width);
    const int64_t tile = (at.band * tiles_across(m) + at.column) * tile_size(m);

    if (at.y < top)
        at.y = top, at.x = left;
    else if (at.x >= right)
        at.y++, at.x = left;
    if (at.y >= bottom)
        return false;
    *from = tile + at.y * width + max_wide(at.x, left);
    *to = tile + (left == 0 && right == width ? bottom * width : at.y * width + right);
    return true;
}

bool mask_rect_next(const struct mask *m, int64_t query, int64_t p, int64_t *from, int64_t *to)
{
    const struct rectangle r = rectangle_of(m, query);
    const int64_t first = r.left / m->rect, last = (r.right - 1) / m->rect;
    struct place at = place_of(m, max_wide(p, 0));

    if (at.band < r.top / m->rect_rows)
        at = (struct place){.band = r.top / m->rect_rows, .column = first};
    else if (at.column < first)
        at = (struct place){.band = at.band, .column = first};
    while (at.band * m->rect_rows < r.bottom) {
        if (at.column <= last && next_of_tile(m, &r, at, from, to))
            return true;
        at = at.column < last ? (struct place){.band = at.band, .column = at.column + 1}
                              : (struct place){.band = at.band + 1, .column = first};
    }
    return false;
}
