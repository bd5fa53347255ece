/* SPDX-License-Identifier: MIT
 *
 * See json_read.h. */
#include "json_read.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

/* jansson's allocator takes no argument: it can report only through a variable like this one. */
static _Thread_local bool ran_out;

static void *take(size_t n)
{
    void *const at = malloc(n);

    ran_out = ran_out || !at;
    return at;
}

json_t *json_read(const char *text, size_t n, size_t flags, json_error_t *why)
{
    json_set_alloc_funcs(take, free);
    ran_out = false;
    json_t *json = json_loadb(text, n, flags, why);
    if (json && ran_out) {
        json_decref(json);
        json = NULL;
    }
    errno = ran_out ? ENOMEM : 0;
    return json;
}
