/* SPDX-License-Identifier: MIT
 *
 * Making one matmul primitive of oneDNN, with what its calls need. */
#ifndef ONEDNN_MAKE_H
#define ONEDNN_MAKE_H

#include "onednn_compat.h"
#include "onednn_pack.h"

#include <stdatomic.h>

/* Everything that decides which primitive runs. Hashed and compared as bytes:
 * no padding, and floats by their bits. */
enum { FORM_TA = 1, FORM_TB = 2, FORM_PACKED = 4 };
struct key {
    ptrdiff_t lda, ldb, ldc;
    ptrdiff_t heads, head_a, head_b, head_c; /* 0 heads: one product */
    int m, n, k, threads;
    uint32_t alpha, beta;
    uint32_t form;
    uint32_t slots; /* threads that may run it at the same time */
};
_Static_assert(sizeof(struct key) == 7 * sizeof(ptrdiff_t) + 8 * sizeof(int), "no padding");

/* Memory objects carry the pointers of a call, so each thread has its own. */
enum { SRC, WEIGHTS, DST, SCRATCH, OPERANDS };
struct slot {
    dnnl_stream_t stream;
    dnnl_exec_arg_t arg[OPERANDS];
};

struct product {
    struct key key;
    struct product *next;
    dnnl_primitive_t run; /* NULL: the library has nothing good for it */
    const char *impl;
    struct slot *slot; /* [key.slots] */
    atomic_bool used;
};

/* What products are made with. Nothing is given back before the process ends.
 */
struct workshop {
    dnnl_engine_t engine;
    struct packing *packings;
    struct space *space; /* work space of primitives */
    size_t held_bytes;
    bool failed;
    struct err why; /* the first refusal or failure */
};

/* Always succeeds; where the product has no `run`, w->why says so, unless it is
 * one of packed weights, which the plain ones can replace. */
struct product *product_make(struct workshop *w, const struct key *key);

/* Note that `what` happened ("cannot run") with `detail`. */
void workshop_complain(struct workshop *w, const struct key *key, const char *what,
                       const char *detail);

#endif
