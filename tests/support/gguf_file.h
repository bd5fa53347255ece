/* SPDX-License-Identifier: MIT
 *
 * Writing GGUF files, byte by byte. */
#pragma once

#include "tmp_folder.h"

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

/* A file of so many tensors and keys. */
static inline void put_begin(struct made *m, int tensors, int keys)
{
    m->n = 0;
    put(m, "GGUF", 4);
    put_number(m, 3, 4), put_number(m, (uint64_t)tensors, 8), put_number(m, (uint64_t)keys, 8);
}

/* Tensors begin at a multiple of 32. */
static inline void put_alignment(struct made *m)
{
    while (m->n % 32)
        put_number(m, 0, 1);
}

/* Writes it to the test's folder. */
static inline const char *made_file(const struct made *m)
{
    folder_put("model.gguf", m->bytes, m->n);
    return in_folder("model.gguf");
}
