/* SPDX-License-Identifier: MIT
 *
 * The hand-written SIMD backends, assembled from the files compiled for each instruction set. This
 * file itself is baseline code: it may be looked at on any machine. */
#include "simd.h"

const struct backend backend_avx2 = {
    .name = "avx2",
    .about = "hand-written kernels, 256-bit vectors",
    .inherits = "ref",
    .needs = ISA_AVX2,
    .incomplete = "row operations only: no attention kernel yet; openblas uses them",
    .ops = {.softmax = softmax_avx2,
            .norm = norm_avx2,
            .act = act_avx2,
            .gate = gate_avx2,
            .nll = nll_avx2},
};

const struct backend backend_avx512 = {
    .name = "avx512",
    .about = "hand-written kernels, 512-bit vectors",
    .inherits = "avx2",
    .needs = ISA_AVX512,
    .incomplete = "row operations only: no attention kernel yet; openblas uses them",
    .ops = {.softmax = softmax_avx512,
            .norm = norm_avx512,
            .act = act_avx512,
            .gate = gate_avx512,
            .nll = nll_avx512},
};
