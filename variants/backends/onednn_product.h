/* SPDX-License-Identifier: MIT
 *
 * Matrix products by oneDNN's matmul primitive. A primitive is generated for
 * one shape and that takes from 10 us to some milliseconds, so each is made
 * once per process, by the first product of its shape: at bind or in the
 * checked call in front of the timed ones. struct ops has no context argument,
 * so there is one library per process and its state is this module's. */
#ifndef ONEDNN_PRODUCT_H
#define ONEDNN_PRODUCT_H

#include "backend.h"

/* Products will be asked for by engines of up to `threads` threads. May be
 * called again. */
enum status products_open(int threads, struct err *e);

/* As struct ops' gemm, for m, n, k > 0. The library's plain C fallback
 * ("ref:any") is hundreds of times slower than the library: a product that
 * would run on it becomes NaN, and products_ran says why. */
void product_run(const struct gemm *g);

/* The same for n heads at once, with these distances between their matrices. */
struct heads {
    int n;
    ptrdiff_t a, b, c;
};
void product_run_heads(const struct gemm *g, const struct heads *heads);

/* As struct backend's packed_floats and pack: b in the order that the library
 * chooses itself. */
size_t product_packed_floats(const struct gemm *like);
void product_pack(float *dst, const struct gemm *like);

/* As struct backend's ran and held_bytes. */
enum status products_ran(char *names, size_t size, struct err *e);
size_t products_held_bytes(void);

#endif
