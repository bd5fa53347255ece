/* SPDX-License-Identifier: MIT
 *
 * Creating one oneDNN primitive with the objects that its calls need. */
#pragma once

#include "pack.h"

#include <stdatomic.h>

/* Everything that selects a primitive: a product of a [m,k] and b [k,n], or the norm of m rows of
 * n. Hashed and compared as bytes: no padding, and floats by their bits. */
enum {
    FORM_TA = 1,
    FORM_TB = 2,
    FORM_PACKED = 4,
    FORM_BIAS = 8,
    FORM_RELU = 16,
    FORM_NORM = 32,
    FORM_BF16 = 64, /* rows of a and b, b with FORM_TB; lda and ldb are those of the caller's a */
    /* The caller has an alternative for these: no error if the library has nothing suitable. */
    FORM_OPTIONAL = FORM_PACKED | FORM_BIAS | FORM_RELU | FORM_NORM
};
struct key {
    ptrdiff_t lda, ldb, ldc;
    ptrdiff_t heads, head_a, head_b, head_c; /* 0 heads: one product */
    int m, n, k, threads;
    uint32_t alpha, beta; /* for a norm, alpha is eps */
    uint32_t form;
    uint32_t slots; /* threads that may run it concurrently */
};
_Static_assert(sizeof(struct key) == 7 * sizeof(ptrdiff_t) + 8 * sizeof(int), "no padding");

/* Memory objects carry the pointers of a call, so each thread has its own. A norm's scale is its
 * WEIGHTS, its shift its BIAS. The last is there only where it is wanted. */
enum { SRC, WEIGHTS, DST, SCRATCH, BIAS, OPERANDS };
struct slot {
    dnnl_stream_t stream;
    dnnl_exec_arg_t arg[OPERANDS];
};

struct primitive {
    struct key key;
    struct primitive *next;
    dnnl_primitive_t run; /* NULL: `plain`, or the library has nothing suitable */
    bool plain;           /* by dnnl_sgemm */
    const char *impl;
    bool biased;
    int operands;      /* OPERANDS, or without the last one */
    struct slot *slot; /* [key.slots] */
    uint16_t *rows;    /* [key.slots][m,k]: a in bf16, or NULL */
    atomic_bool used;
};

/* What primitives are created with. Nothing is freed before the process ends. */
struct context {
    dnnl_engine_t engine;
    struct packing *packings;
    struct space *space; /* work space of primitives */
    size_t held_bytes;
    bool failed;
    struct err why; /* the first refusal or failure */
};

static inline bool primitive_runs(const struct primitive *p) { return p->run || p->plain; }

/* Always returns a primitive; if it does not run, w->why holds the reason, unless its form is
 * optional. */
struct primitive *primitive_make(struct context *w, const struct key *key);

/* Record the error `what` ("cannot run") with `detail`. */
void context_error(struct context *w, const struct key *key, const char *what, const char *detail);
