/* SPDX-License-Identifier: MIT
 *
 * The part of oneDNN's C API that differs between versions 2 and 3, behind
 * functions that do not. What is the same in both (engines, streams, memory
 * objects, execution) is used directly. */
#ifndef ONEDNN_COMPAT_H
#define ONEDNN_COMPAT_H

#include "../base/base.h"

#include <oneapi/dnnl/dnnl.h>
#include <oneapi/dnnl/dnnl_debug.h>

/* How a matrix of floats lies in memory. In version 2 the descriptor is the
 * value itself, in version 3 a handle; layout_release in either case. */
struct layout {
    dnnl_memory_desc_t md;
};

/* Element [i][j] is i * row + j * col floats from the first one. */
dnnl_status_t layout_strided(struct layout *l, int rows, int cols, ptrdiff_t row, ptrdiff_t col);
/* The same for `heads` matrices, `head` floats apart: dimensions [1, heads,
 * rows, cols]. */
dnnl_status_t layout_heads(struct layout *l, int heads, ptrdiff_t head, int rows, int cols,
                           ptrdiff_t row, ptrdiff_t col);
/* However the primitive likes it best. */
dnnl_status_t layout_any(struct layout *l, int rows, int cols);
/* What a primitive chose for operand `what` (dnnl_query_weights_md,
 * dnnl_query_scratchpad_md). */
dnnl_status_t layout_query(struct layout *l, const_dnnl_primitive_desc_t pd, dnnl_query_t what);
dnnl_status_t layout_copy(struct layout *l, const struct layout *from);
void layout_release(struct layout *l);
size_t layout_bytes(const struct layout *l);
bool layout_equal(const struct layout *a, const struct layout *b);
dnnl_status_t layout_memory(dnnl_memory_t *memory, const struct layout *l, dnnl_engine_t engine,
                            void *at);

/* dst = alpha src weights + beta dst, scratch supplied by the caller: the
 * library's choice number `nth` of its implementations. dnnl_unimplemented
 * where it has not so many. */
struct matmul {
    struct layout src, weights, dst;
    float alpha, beta;
};
dnnl_status_t matmul_describe(dnnl_primitive_desc_t *pd, const struct matmul *m,
                              dnnl_engine_t engine, int nth);

/* A copy of a matrix from one layout to another. */
dnnl_status_t reorder_describe(dnnl_primitive_desc_t *pd, const struct layout *dst,
                               const struct layout *src, dnnl_engine_t engine);

#endif
