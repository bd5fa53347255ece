/* SPDX-License-Identifier: MIT
 *
 * See json_text.h. */
#include "json_text.h"

#include "base.h"

#include <errno.h>
#include <setjmp.h>

/* Where to go on without memory; jansson's allocator takes no argument. NULL outside of the
 * functions below. */
static _Thread_local jmp_buf *give_up;

/* Without it NEED ends the program, but in the functions below, where sizes are those of files. It does
 * not return to jansson without memory: reading, it would go on with a character less, and
 * stop in an assertion or leave its buffer; writing, it leaves out keys. */
static void *take(size_t n)
{
    void *const at = malloc(n);

    if (!at && give_up)
        longjmp(*give_up, 1);
    NEED(at);
    return at;
}

static __attribute__((constructor)) void own_memory(void) { json_set_alloc_funcs(take, free); }

/* What jansson had taken when there was no more is not freed: it alone knows where that is. */
static void *without_memory(void)
{
    give_up = NULL;
    errno = ENOMEM;
    return NULL;
}

json_t *json_read(const char *text, size_t n, size_t flags, json_error_t *why)
{
    jmp_buf here;

    if (setjmp(here) != 0)
        return without_memory();
    give_up = &here;
    json_t *const json = json_loadb(text, n, flags, why);
    give_up = NULL;
    errno = 0;
    return json;
}

char *json_write(const json_t *json, size_t flags)
{
    jmp_buf here;

    if (setjmp(here) != 0)
        return without_memory();
    give_up = &here;
    char *const text = json_dumps(json, flags);
    give_up = NULL;
    return text;
}
