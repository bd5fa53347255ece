/* SPDX-License-Identifier: MIT
 *
 * libFuzzer target (clang -fsanitize=fuzzer): any bytes as a published model: config.json, the
 * index and a file of weights, with zero bytes between them. */
#include "structure.h"
#include "variants/model/import/opened.h"
#include "variants/model/import/published.h"

#include <unistd.h>

/* Bytes up to the next zero byte; *at moves behind it. */
static size_t piece(const uint8_t *bytes, size_t size, size_t *at)
{
    const size_t from = *at;
    const uint8_t *const end = memchr(bytes + from, 0, size - from);
    const size_t n = end ? (size_t)(end - bytes) - from : size - from;

    *at = end ? from + n + 1 : size;
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct published p;
    struct err e = {""};
    size_t index = 0;

    fuzz_put("config.json", bytes, piece(bytes, size, &index));
    size_t weights = index;
    const size_t n = piece(bytes, size, &weights);
    unlink(fuzz_path("model.safetensors.index.json"));
    if (n > 0)
        fuzz_put("model.safetensors.index.json", bytes + index, n);
    fuzz_put("model.safetensors", bytes + weights, size - weights);
    if (published_open(&p, fuzz_folder(), &e) == OK) {
        CHECK(p.config.V > 0 && p.context > 0 && *p.family);
        CHECK(ties_check_numbers(&p, &e) == OK || *e.msg);
    } else
        check_said(&e);
    published_close(&p);
    return 0;
}
