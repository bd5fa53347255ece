/* SPDX-License-Identifier: MIT
 *
 * Dropout (Srivastava et al. 2014, JMLR 15) in training: each element becomes 0 with probability p,
 * else x / (1 - p). Which ones is a function of seed, step, layer, place and element alone, so any
 * number of threads drops the same, a run that is continued drops what it would have dropped, and
 * backward asks again instead of keeping masks. */
#ifndef DROPOUT_H
#define DROPOUT_H

#include <stddef.h>
#include <stdint.h>

/* Where a model of language drops, as the published Transformer-XL does but for attention's
 * probabilities, which fused kernels never have in one place. */
enum drop_place {
    DROP_EMBEDDING, /* with the positions that are added to it */
    DROP_POSITIONS, /* codes that keys are made from */
    DROP_ATTENTION, /* after its output projection */
    DROP_HIDDEN,    /* inside the FFN, after the activation */
    DROP_FFN,       /* its output */
    DROP_FINAL,     /* what the output layer reads */
    DROP_RNN,       /* a LocalRNN's output */
};

struct dropout {
    float p; /* in [0,1); 0 = off */
    uint64_t seed, step;
    int layer;
};

/* Drop from x [n], or from the gradient of what was dropped from. */
void dropout(const struct dropout *d, enum drop_place place, float *x, size_t n, int threads);

#endif
