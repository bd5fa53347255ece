/* SPDX-License-Identifier: MIT
 *
 * What a product fetches while it multiplies, some lines at a time between the steps of its tiles:
 * in one go they would fill the queue of misses, and the loads of the tile would wait behind
 * them. */

/* Lines that are read soon: rows of `row` bytes, `step` from one to the next. */
struct ahead {
    const char *at, *end; /* the next line, and the end of its row */
    ptrdiff_t row, step;
    int left, each; /* lines not yet fetched; at a time */
    int c_rows;     /* of a tile of c, at a time */
};

/* All lines of `rows` rows from `at` on, in `times` turns. */
static struct ahead ahead_of(const void *at, ptrdiff_t row, ptrdiff_t step, int rows, int times)
{
    const int lines = rows * (int)((row + 63) / 64);

    return (struct ahead){
        .at = at,
        .end = (const char *)at + row,
        .row = row,
        .step = step,
        .left = lines,
        .each = (lines + times - 1) / times,
    };
}

/* One turn, into L2. */
VEC_INLINE void fetch_ahead(struct ahead *x)
{
    const int n = min_int(x->each, x->left);

    x->left -= n;
    for (int i = 0; i < n; i++) {
        vprefetch((const float *)(const void *)x->at, 1);
        x->at += 64;
        if (x->at >= x->end) {
            x->at = x->end + (x->step - x->row);
            x->end += x->step;
        }
    }
}
