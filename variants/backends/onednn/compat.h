/* SPDX-License-Identifier: MIT
 *
 * The part of oneDNN's C API that differs between versions 2 and 3, wrapped in functions that do
 * not. What is common to both (engines, streams, memory objects, execution) is used directly. */
#ifndef ONEDNN_COMPAT_H
#define ONEDNN_COMPAT_H

#include "variants/base/base.h"

#include <oneapi/dnnl/dnnl.h>
#include <oneapi/dnnl/dnnl_debug.h>

/* The memory layout of a matrix of floats. In version 2 the descriptor is a value, in version 3 a
 * handle; call layout_release in either case. */
struct layout {
    dnnl_memory_desc_t md;
};

/* Element [i][j] is i * row + j * col floats from the first one. */
dnnl_status_t layout_strided(struct layout *l, int rows, int cols, ptrdiff_t row, ptrdiff_t col);
/* The same for `heads` matrices, with stride `head` in floats: dimensions [1, heads, rows, cols].
 */
dnnl_status_t layout_heads(struct layout *l, int heads, ptrdiff_t head, int rows, int cols,
                           ptrdiff_t row, ptrdiff_t col);
/* n contiguous floats, with one dimension only. */
dnnl_status_t layout_vector(struct layout *l, int n);
/* The primitive's preferred layout. */
dnnl_status_t layout_any(struct layout *l, int rows, int cols);
/* The layout that a primitive chose for operand `what` (dnnl_query_weights_md,
 * dnnl_query_scratchpad_md). */
dnnl_status_t layout_query(struct layout *l, const_dnnl_primitive_desc_t pd, dnnl_query_t what);
dnnl_status_t layout_copy(struct layout *l, const struct layout *from);
void layout_release(struct layout *l);
size_t layout_bytes(const struct layout *l);
bool layout_equal(const struct layout *a, const struct layout *b);
dnnl_status_t layout_memory(dnnl_memory_t *memory, const struct layout *l, dnnl_engine_t engine,
                            void *at);

/* Both describe functions return the library's nth implementation, with scratch supplied by the
 * caller; dnnl_unimplemented if there are fewer. */

/* dst = f(alpha src weights + bias + beta dst), f = ReLU or nothing; bias [1,n], only with alpha =
 * 1. Version 3 requires alpha, if it is not 1, also as the operand ALPHA_ARG of each call. */
#if DNNL_VERSION_MAJOR < 3
enum { ALPHA_ARG = 0 };
#else
enum { ALPHA_ARG = DNNL_ARG_ATTR_SCALES | DNNL_ARG_SRC };
#endif

struct matmul {
    struct layout src, weights, bias, dst;
    float alpha, beta;
    bool biased, relu;
};
dnnl_status_t matmul_describe(dnnl_primitive_desc_t *pd, const struct matmul *m,
                              dnnl_engine_t engine, int nth);

/* Rows of `data` normalised, times a scale plus a shift, vectors of the row length. */
dnnl_status_t norm_describe(dnnl_primitive_desc_t *pd, const struct layout *data, float eps,
                            dnnl_engine_t engine, int nth);

/* Copies a matrix from one layout to another. */
dnnl_status_t reorder_describe(dnnl_primitive_desc_t *pd, const struct layout *dst,
                               const struct layout *src, dnnl_engine_t engine);

#endif
