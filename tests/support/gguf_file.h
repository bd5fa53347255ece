/* SPDX-License-Identifier: MIT
 *
 * Writing GGUF files, byte by byte. */
#ifndef GGUF_FILE_H
#define GGUF_FILE_H

#include "tmp_folder.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { MADE_MOST = 1 << 17 };
struct made {
    unsigned char bytes[MADE_MOST];
    size_t n;
};

static inline void put(struct made *m, const void *from, size_t n)
{
    cr_assert_leq(m->n + n, sizeof(m->bytes));
    memcpy(m->bytes + m->n, from, n);
    m->n += n;
}

static inline void put_number(struct made *m, uint64_t x, int bytes)
{
    for (int i = 0; i < bytes; i++)
        put(m, &(unsigned char){(unsigned char)(x >> 8 * i)}, 1);
}

static inline void put_text(struct made *m, const char *text)
{
    put_number(m, strlen(text), 8);
    put(m, text, strlen(text));
}

static inline void put_key(struct made *m, const char *key, uint32_t type)
{
    put_text(m, key);
    put_number(m, type, 4);
}

/* Writes it to the test's folder. */
static inline void made_write(const struct made *m, char path[FILE_PATH])
{
    folder_path(path, "model.gguf");
    FILE *const f = fopen(path, "wb");
    cr_assert_not_null(f);
    cr_assert_eq(fwrite(m->bytes, 1, m->n, f), m->n);
    cr_assert_eq(fclose(f), 0);
}

#endif
