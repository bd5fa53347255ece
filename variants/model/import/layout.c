/* SPDX-License-Identifier: MIT
 *
 * Layouts of published tensors: their shapes, and how ours are read from them. */
#include "layout.h"

#include "mxfp4.h"

/* Of the published tensor. */
static int parts_of(const struct tensor_row *row)
{
    return row->parts && row->layout != LAYOUT_JOIN ? row->parts : 1;
}

static bool is_turned(const struct published *p, const struct tensor_row *row)
{
    return row->layout == LAYOUT_COLUMNS && !p->form.upright;
}

static bool is_of_experts(const struct tensor_row *row, const struct param *w)
{
    return row->layout == LAYOUT_ROWS && w->rank == 3;
}

int layout_shape(const struct published *p, int64_t shape[TENSOR_RANK],
                 const struct tensor_row *row, const struct param *w)
{
    const bool uneven = row->layout == LAYOUT_HEADS && row->before;
    const int64_t rows = row->layout == LAYOUT_STACK ? row->before(&p->config, row->parts)
                         : uneven ? row->heads(&p->config) * row->before(&p->config, row->parts)
                                  : (int64_t)w->shape[0] * parts_of(row);
    const bool turned = w->rank == 2 && is_turned(p, row);

    if (row->layout == LAYOUT_FUSED) {
        const int last = w->rank - 1;
        shape[0] = w->shape[0];
        shape[1] = w->shape[last];
        shape[last] = (int64_t)w->shape[1] * parts_of(row);
        return w->rank;
    }
    if (row->layout == LAYOUT_MXFP4)
        return mxfp4_shape(shape, w, parts_of(row));
    if (is_of_experts(row, w)) {
        shape[0] = w->shape[0];
        shape[1] = (int64_t)w->shape[1] * parts_of(row);
        shape[2] = w->shape[2];
        return w->rank;
    }
    CHECK(w->rank == 1 || w->rank == 2);
    shape[0] = turned ? w->shape[1] : rows;
    shape[1] = turned ? rows : w->rank == 2 ? w->shape[1] : 0;
    if (row->flat)
        shape[0] = (int64_t)w->n;
    if (!row->taps || w->rank == 1)
        return row->flat ? 1 : w->rank;
    shape[2] = shape[1];
    shape[1] = 1;
    return 3;
}

/* Our rows from columns [first, first + rows) of the tensor, so many of its rows at once. */
static enum status read_columns(const struct param *w, const struct tensor *t, int part, int parts)
{
    enum { AT_ONCE = 16 };
    const size_t rows = (size_t)w->shape[0], columns = (size_t)w->shape[1];
    const size_t all = rows * (size_t)parts, first = rows * (size_t)part;
    float *const some = malloc(sizeof(*some) * AT_ONCE * rows);

    if (!some)
        return E_NOMEM;
    for (size_t j = 0; j < columns; j += AT_ONCE) {
        const size_t n = columns - j < AT_ONCE ? columns - j : AT_ONCE;
        for (size_t k = 0; k < n; k++)
            tensor_floats(some + k * rows, t, (j + k) * all + first, rows);
        for (size_t i = 0; i < rows; i++)
            for (size_t k = 0; k < n; k++)
                w->data[i * columns + j + k] = some[k * rows + i];
    }
    free(some);
    return OK;
}

/* Of H heads, or experts. */
static void read_heads(const struct param *w, const struct tensor *t, int part, int parts, int H)
{
    const size_t n = w->n / (size_t)H; /* numbers of each */

    for (size_t h = 0; h < (size_t)H; h++)
        tensor_floats(w->data + h * n, t, (h * (size_t)parts + (size_t)part) * n, n);
}

static void read_uneven_heads(const struct param *w, const struct tensor *t,
                              const struct tensor_row *row, const struct config *c)
{
    const size_t width = w->n / (size_t)w->shape[0], heads = (size_t)row->heads(c);
    const size_t all = (size_t)row->before(c, row->parts) * width, n = w->n / heads;

    for (size_t h = 0; h < heads; h++)
        tensor_floats(w->data + h * n, t, h * all + (size_t)row->before(c, row->part) * width, n);
}

static void read_backwards(const struct param *w, const struct tensor *t)
{
    const size_t rows = (size_t)w->shape[0], n = w->n / rows;

    for (size_t i = 0; i < rows; i++)
        tensor_floats(w->data + i * n, t, (rows - 1 - i) * n, n);
}

/* The rows of a part are every so many columns of the tensor; biases are its only row. */
static enum status read_fused(const struct param *w, const struct tensor *t, int part, int parts)
{
    const size_t rows = (size_t)w->shape[1], columns = w->rank == 3 ? (size_t)w->shape[2] : 1;
    const size_t all = rows * (size_t)parts;
    float *const row = malloc(sizeof(*row) * all);

    if (!row)
        return E_NOMEM;
    for (size_t e = 0; e < (size_t)w->shape[0]; e++)
        for (size_t j = 0; j < columns; j++) {
            tensor_floats(row, t, (e * columns + j) * all, all);
            for (size_t i = 0; i < rows; i++)
                w->data[(e * rows + i) * columns + j] = row[i * (size_t)parts + (size_t)part];
        }
    free(row);
    return OK;
}

/* What the published tensor lacks is 0. */
static void read_padded(const struct param *w, const struct tensor *t)
{
    const size_t columns = (size_t)w->shape[1], n = (size_t)t->shape[1];

    memset(w->data, 0, w->n * sizeof(*w->data));
    for (size_t i = 0; i < (size_t)t->shape[0]; i++)
        tensor_floats(w->data + i * columns, t, i * n, n);
}

enum status layout_read(const struct published *p, const struct param *w,
                        const struct tensor_row *row, const struct tensor *t)
{
    const int parts = parts_of(row);

    if (row->layout == LAYOUT_FUSED)
        return read_fused(w, t, row->part, parts);
    if (is_turned(p, row) && w->rank == 2)
        return read_columns(w, t, row->part, parts);
    if (row->pads)
        read_padded(w, t);
    else if (row->backwards && !*p->prefix)
        read_backwards(w, t);
    else if (row->layout == LAYOUT_HEADS && row->before)
        read_uneven_heads(w, t, row, &p->config);
    else if (row->layout == LAYOUT_HEADS || is_of_experts(row, w))
        read_heads(w, t, row->part, parts, is_of_experts(row, w) ? w->shape[0] : p->config.H);
    else if (row->layout == LAYOUT_STACK)
        tensor_floats(w->data, t,
                      (size_t)row->before(&p->config, row->part) * (w->n / (size_t)w->shape[0]),
                      w->n);
    else
        tensor_floats(w->data, t, row->layout == LAYOUT_JOIN ? 0 : w->n * (size_t)row->part, w->n);
    return OK;
}

enum status layout_places(size_t *places, const struct published *p, const struct param *w,
                          const struct tensor_row *row, const struct tensor *t)
{
    enum { DIGIT = 1 << 12 }; /* floats hold whole numbers up to 2^24 only */
    struct tensor all = *t;
    struct param to = *w;
    float *const own = malloc(sizeof(*own) * (t->n + w->n));
    enum status st = own ? OK : E_NOMEM;

    all.dtype = DTYPE_F32;
    all.data = own;
    to.data = own + t->n;
    memset(places, 0, w->n * sizeof(*places));
    for (size_t unit = 1; st == OK && unit <= t->n; unit *= DIGIT) {
        for (size_t i = 0; i < t->n; i++)
            own[i] = (float)((i + 1) / unit % DIGIT);
        st = layout_read(p, &to, row, &all);
        for (size_t i = 0; st == OK && i < w->n; i++)
            places[i] += (size_t)to.data[i] * unit;
    }
    free(own);
    return st;
}
