/* SPDX-License-Identifier: MIT
 *
 * What the fuzz targets share: files in memory, and a mutator that knows how a safetensors file is
 * built. Bytes changed at random are nearly always refused by the reader; this one changes words of
 * the header and values of the data, and keeps the length of the header right. */
#pragma once

#include "variants/base/base.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* libFuzzer's own mutation of a piece of memory. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);

size_t mutate_safetensors(uint8_t *data, size_t size, size_t most, unsigned seed);

/* libFuzzer calls it instead of its own. */
#define MUTATES_SAFETENSORS                                                                        \
    size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);        \
    size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed)         \
    {                                                                                              \
        return mutate_safetensors(data, size, most, seed);                                         \
    }

/* A file in memory with these bytes; `path` is a name that opens it. Close it. */
enum { MEMORY_PATH = 32 };
int memory_file(const void *bytes, size_t size, char path[MEMORY_PATH]);

/* A folder of this process, and files in it, whose paths hold until the next call. */
const char *fuzz_folder(void);
const char *fuzz_path(const char *name);
const char *fuzz_put(const char *name, const void *bytes, size_t size);

/* A refusal says why, on one line. */
static inline void check_said(const struct err *e)
{
    CHECK(*e->msg && !strpbrk(e->msg, "\n\r\033"));
}
