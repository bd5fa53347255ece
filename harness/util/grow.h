/* SPDX-License-Identifier: MIT
 *
 * Arrays that grow by one element at a time. The room follows from the number of elements, so an
 * array needs no field for it. */
#pragma once

#include "variants/base/base.h"

/* Make room for one more element after the n elements of array `v` (NULL while n is 0). The
 * capacity is a power of two, at least 8; an array that shrinks may grow again. */
#define GROW(v, n, e) grow_array(&(v), (size_t)(n), sizeof(*(v)), e)

/* The same where the array is small. */
#define GROW_SMALL(v, n) NEED(GROW(v, n, NULL) == OK && (v))

/* `at` is the address of the pointer. */
static inline enum status grow_array(void *at, size_t n, size_t size, struct err *e)
{
    enum { LEAST = 8 };
    void *old, *grown;

    if (n > 0 && (n < LEAST || (n & (n - 1)) != 0))
        return OK;
    memcpy(&old, at, sizeof(old));
    const size_t room = n < LEAST ? LEAST : 2 * n;
    grown = realloc(old, room * size);
    if (!grown)
        return fail(e, E_NOMEM, "no memory for %zu elements of %zu bytes", room, size);
    memcpy(at, &grown, sizeof(grown));
    return OK;
}
