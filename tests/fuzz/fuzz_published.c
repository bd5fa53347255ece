/* SPDX-License-Identifier: MIT
 *
 * libFuzzer target (clang -fsanitize=fuzzer): any bytes as a published model: config.json, the
 * index and a file of weights, with zero bytes between them. */
#include "variants/model/import/published.h"
#include "variants/model/import/ties.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void put(const char *dir, const char *name, const uint8_t *bytes, size_t size)
{
    char path[96];

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    FILE *const f = fopen(path, "wb");
    CHECK(f && fwrite(bytes, 1, size, f) == size && fclose(f) == 0);
}

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
    static char dir[] = "/tmp/bench-fuzz-XXXXXX";
    static bool made;
    struct published p;
    struct err e = {""};
    size_t index = 0;

    if (!made)
        CHECK(mkdtemp(dir));
    made = true;
    put(dir, "config.json", bytes, piece(bytes, size, &index));
    size_t weights = index;
    const size_t n = piece(bytes, size, &weights);
    char path[96];
    snprintf(path, sizeof(path), "%s/model.safetensors.index.json", dir);
    unlink(path);
    if (n > 0)
        put(dir, "model.safetensors.index.json", bytes + index, n);
    put(dir, "model.safetensors", bytes + weights, size - weights);
    if (published_open(&p, dir, &e) == OK) {
        CHECK(p.config.V > 0 && p.context > 0 && *p.family);
        CHECK(ties_check_numbers(&p, &e) == OK || *e.msg);
    } else
        CHECK(*e.msg && !strpbrk(e.msg, "\n\r\033"));
    published_close(&p);
    return 0;
}
