/* SPDX-License-Identifier: MIT
 *
 * oneDNN's layouts and primitives, described in terms of matrices. Versions 2 and 3 differ here and
 * in compat.c only. Engines, streams and execution are used directly. */
#pragma once

#include "variants/base/base.h"

#include <oneapi/dnnl/dnnl.h>
#include <oneapi/dnnl/dnnl_debug.h>

/* Version 2 has no graph. */
#define ONEDNN_HAS_GRAPH (DNNL_VERSION_MAJOR >= 3)
#if ONEDNN_HAS_GRAPH
#include <oneapi/dnnl/dnnl_graph.h>
#endif

/* How a matrix, of floats unless it says otherwise, lies in memory. Zeroed, it describes nothing;
 * what describes something is freed. */
struct layout {
    dnnl_memory_desc_t md;
};

/* Element [i][j] is i * row + j * col floats from the first one. */
dnnl_status_t layout_strided(struct layout *l, int rows, int cols, ptrdiff_t row, ptrdiff_t col);
/* Of bf16, with contiguous rows; of the transpose of such a matrix. */
dnnl_status_t layout_bf16(struct layout *l, int rows, int cols, bool transposed);
/* layout_strided for `heads` matrices, with stride `head` in floats: dimensions [1, heads, rows,
 * cols].
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
dnnl_status_t layout_copy(struct layout *to, const struct layout *from);
void layout_free(struct layout *l);
size_t layout_bytes(const struct layout *l);
bool layout_equal(const struct layout *a, const struct layout *b);
dnnl_status_t layout_memory(dnnl_memory_t *memory, const struct layout *l, dnnl_engine_t engine,
                            void *at);

/* Both describe functions return the library's nth implementation, with scratch supplied by the
 * caller; dnnl_unimplemented if there are fewer. */

/* dst = f(alpha src weights + bias + beta dst), f = ReLU or nothing.
 * bias [1,n], only with alpha = 1. */
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

/* Does the library generate code for these instructions of x86-64 (dnnl_cpu_isa_...)? Off that
 * architecture it claims all of them. */
bool generates(unsigned isa);
