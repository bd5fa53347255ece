/* SPDX-License-Identifier: MIT
 *
 * The layout that oneDNN's matmul prefers for a constant b: blocks of columns that its kernels read
 * sequentially. A weight in this layout is not copied in every product. */
#pragma once

#include "compat.h"
#include "variants/backends/backend.h"

struct packing {
    struct packing *next;
    int n, k;   /* b is [k,n] */
    bool plain; /* plain rows or columns: nothing to gain */
    struct layout layout;
};

/* The layout for b [k,n], from the list or new. It depends on n and k only: the library is always
 * queried with the same number of rows of a. */
const struct packing *packing_for(struct packing **list, dnnl_engine_t engine, int n, int k);

/* op(b) of `like` into dst, layout_bytes long. */
dnnl_status_t packing_fill(float *dst, const struct packing *p, dnnl_engine_t engine,
                           const struct gemm *like);
