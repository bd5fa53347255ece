/* SPDX-License-Identifier: MIT
 *
 * Matrix products and layer normalisation by oneDNN's primitives, each from the process's cache,
 * created by the first call of its shape. */
#pragma once

#include "variants/backends/backend.h"

/* As struct ops' gemm, for m, n, k > 0. The library's plain C fallback ("ref:any") is hundreds of
 * times slower; a product that would use it becomes NaN, and cache_ran gives the reason. */
void product_run(const struct gemm *g);

/* The same for n heads at once, with these strides between their matrices. */
struct heads {
    int n;
    ptrdiff_t a, b, c;
};
void product_run_heads(const struct gemm *g, const struct heads *heads);

/* c = f(op(a) op(b) + bias + beta c) in one pass, f = ReLU or nothing; alpha = 1, bias [n] or NULL.
 * False, and nothing done, if the library has nothing suitable. Its ReLU turns NaN into 0. */
bool product_run_after(const struct gemm *g, const float *bias, bool relu);

/* As struct ops' norm, without `add`. False, and nothing done, likewise. */
bool product_norm(const struct norm *o);
