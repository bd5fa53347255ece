/* SPDX-License-Identifier: MIT
 *
 * libFuzzer target (clang -fsanitize=fuzzer): any bytes, opened as a safetensors file. */
#include "structure.h"
#include "variants/base/safetensors.h"

#include <unistd.h>

/* Read everything that an accepted file declares; the sanitizers watch. */
static void use(const struct safetensors *s)
{
    static const char *const keys[] = {"n_head", "tolerance", "absent"};
    struct err e;

    for (int i = 0; i < s->n_tensors; i++) {
        const struct tensor *t = &s->tensors[i];
        size_t n = 1;

        for (int d = 0; d < t->rank; d++)
            n *= (size_t)t->shape[d];
        CHECK(n == t->n && strlen(t->name) < TENSOR_NAME);
        CHECK(safetensors_find(s, t->name) == t);
        CHECK(s->published || (t->dtype <= DTYPE_I32 && (uintptr_t)t->data % ELEMENT_BYTES == 0));
        for (size_t k = 0; k < n; k++) { /* touch every number */
            float x;
            if (t->dtype == DTYPE_I32 || t->dtype == DTYPE_OTHER)
                break;
            tensor_floats(&x, t, k, 1);
        }
    }
    for (int i = 0; i < s->n_meta; i++)
        CHECK(strcmp(safetensors_meta(s, s->meta[2 * i]), s->meta[2 * i + 1]) == 0);
    for (size_t k = 0; k < ARRAY_LEN(keys); k++) {
        double real;
        int whole;
        if (safetensors_int(s, keys[k], 1, 1, 64, &whole, &e) == OK)
            CHECK(whole >= 1 && whole <= 64);
        if (safetensors_real(s, keys[k], 1.0, &real, &e) == OK)
            CHECK(real - real == 0.0); /* finite */
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct safetensors s;
    struct err e = {""};
    char path[MEMORY_PATH];
    const int fd = memory_file(bytes, size, path);
    const enum status st = safetensors_open(&s, path, &e);
    if (st == OK)
        use(&s);
    else
        CHECK(strstr(e.msg, path) && !strpbrk(e.msg, "\n\r\033"));
    safetensors_close(&s);
    if (safetensors_open_published(&s, path, &e) == OK)
        use(&s);
    else
        CHECK(st != OK && strstr(e.msg, path) && !strpbrk(e.msg, "\n\r\033"));
    safetensors_close(&s);
    close(fd);
    return 0;
}
