/* SPDX-License-Identifier: MIT
 *
 * libFuzzer target (clang -fsanitize=fuzzer): any bytes as a file of ids. The first one chooses the
 * type; what is accepted has the size that it says, and no id below 0. */
#include "harness/tokens/token_file.h"
#include "structure.h"

#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char path[MEMORY_PATH];
    struct ids ids = {0};
    struct err e = {""};

    if (size < 1)
        return 0;
    const int fd = memory_file(bytes + 1, size - 1, path);
    if (token_file_read(&ids, path, (enum id_type)(bytes[0] % (ID_INT64 + 1)), &e) == OK) {
        CHECK(ids.n >= 2 && ids.n <= size);
        for (size_t i = 0; i < ids.n; i++)
            CHECK(ids.v[i] >= 0);
        (void)token_file_looks_uint16(ids.v, ids.n, 1 << 15);
    } else {
        CHECK(strstr(e.msg, path) && !strpbrk(e.msg, "\n\r\033"));
    }
    free(ids.v);
    close(fd);
    return 0;
}
