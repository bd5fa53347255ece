/* SPDX-License-Identifier: MIT
 *
 * Dropout (Srivastava et al. 2014, JMLR 15) in training: each element becomes 0 with probability p,
 * else x / (1 - p). Which ones depends on seed, step, layer, place and element only, so the result
 * is the same for any number of threads and for a resumed run, and backward recomputes masks
 * instead of storing them. Where ranks divide a batch, each counts its elements from their place in
 * the whole batch, so that any number of ranks draws the same masks. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Where a language model drops, as in the published Transformer-XL except for attention
 * probabilities, which fused kernels never store. */
enum drop_place {
    DROP_EMBEDDING, /* after positions are added */
    DROP_POSITIONS, /* encodings that keys are made from */
    DROP_ATTENTION, /* after its output projection */
    DROP_HIDDEN,    /* inside the FFN, after the activation */
    DROP_FFN,       /* its output */
    DROP_FINAL,     /* the input of the output layer */
    DROP_RNN,       /* a LocalRNN's output */
    DROP_CONV,      /* a convolution's */
    DROP_READ,      /* of cross attention */
};

struct dropout {
    float p; /* in [0,1); 0 = off */
    uint64_t seed, step;
    int layer;
    int part; /* of a batch in equal parts, which one x belongs to */
};

/* Drop from x [n], or apply the same mask to a gradient. x lies sequence by sequence; positions are
 * the same for all, and so is what is dropped of them. */
void dropout(const struct dropout *d, enum drop_place place, float *x, size_t n, int threads);
