/* SPDX-License-Identifier: MIT
 *
 * The order in which oneDNN's matmul likes a constant b to lie: blocks of columns that its kernels
 * read in a row. A weight that lies so is not copied in every product. */
#ifndef ONEDNN_PACK_H
#define ONEDNN_PACK_H

#include "compat.h"
#include "variants/backends/backend.h"

struct packing {
    struct packing *next;
    int n, k;   /* b is [k,n] */
    bool plain; /* rows or columns as they are: nothing to gain */
    struct layout layout;
};

/* The one for b [k,n], from the list or new. It depends on n and k only, by construction: the
 * question to the library is always asked for the same number of rows of a. */
const struct packing *packing_for(struct packing **list, dnnl_engine_t engine, int n, int k);

/* op(b) of `like` into dst, layout_bytes long. */
dnnl_status_t packing_fill(float *dst, const struct packing *p, dnnl_engine_t engine,
                           const struct gemm *like);

#endif
