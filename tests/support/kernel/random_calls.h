/* SPDX-License-Identifier: MIT
 *
 * Random bytes for the fuzz targets of the library, which end the process where an answer is wrong. */
#pragma once

#include "tests/fuzz/library_call.h"
#include "tests/support/sanitized.h"
#include "variants/base/rng.h"

static inline void expect_answers(int try_bytes(const uint8_t *, size_t), int calls)
{
    enum { WORDS = 64 };
    const int n_calls = SANITIZED ? calls / 8 : calls;
    uint32_t bytes[WORDS];

    for (int n = 0; n < n_calls; n++) {
        for (uint32_t i = 0; i < WORDS; i++)
            bytes[i] = rng_u32((uint64_t)n, 1, i);
        try_bytes((const uint8_t *)bytes, sizeof(bytes));
    }
    cr_expect(answered.taken > n_calls / 10 && answered.judged > n_calls / 20 &&
                  answered.refused > n_calls / 10,
              "%d taken, %d judged, %d refused", answered.taken, answered.judged, answered.refused);
}
