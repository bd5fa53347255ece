/* SPDX-License-Identifier: MIT
 *
 * libFuzzer target: any bytes, run as a golden file on several backends. Numbers may differ from
 * those of the file; memory may not be touched where it must not, and no check of ours may fail. */
#include "harness/check/golden.h"
#include "structure.h"
#include "tests/support/kernel/simd.h"

#include <unistd.h>

MUTATES_SAFETENSORS

static void ignore(void *arg, const struct verdict *v) { CHECK(v->file && v->tensor); }

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const char *const names[] = {"ref", SIMD_LEVELS, "openblas"};
    struct tally tally = {0};
    struct engine engine;
    struct err e = {""};
    char path[MEMORY_PATH];
    const int fd = memory_file(bytes, size, path);

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (engine_open(&engine, names[i], 1, NULL, &e) == OK &&
            golden_run(&engine, path, &tally, ignore, NULL, &e) != OK)
            CHECK(strstr(e.msg, path) && !strpbrk(e.msg, "\n\r\033"));
    close(fd);
    return 0;
}
