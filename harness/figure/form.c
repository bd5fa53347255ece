/* SPDX-License-Identifier: MIT
 *
 * Filling in a form. */
#include "form.h"

#include <stdlib.h>
#include <string.h>

enum { NAME = 64 };

static enum status misses(const struct form *f, const char *what, struct err *e)
{
    return fail(e, E_IO, "%s: bad placeholder %.60s  -> restore the file", f->file, what);
}

/* *text is what follows {{#name}}; *text moves after the matching {{/name}}. */
static enum status fill_part(const struct form *f, const char *name, const char **text,
                             struct err *e)
{
    char stop[NAME + 8];
    bool more = true, known = true;

    snprintf(stop, sizeof(stop), "{{/%s}}\n", name);
    const char *const from = *text + (**text == '\n'), *const end = strstr(from, stop);
    char *const inner = end ? strndup(from, (size_t)(end - from)) : NULL;
    if (!end)
        return misses(f, name, e);
    if (!inner)
        return fail(e, E_NOMEM, "no memory for a page  -> free some");
    enum status st = f->next(f->arg, name, &more, &known);
    while (st == OK && known && more) {
        st = form_fill(f, inner, e);
        if (st == OK)
            st = f->next(f->arg, name, &more, &known);
    }
    free(inner);
    *text = end + strlen(stop);
    return known ? st : misses(f, name, e);
}

enum status form_fill(const struct form *f, const char *text, struct err *e)
{
    enum status st = OK;

    for (const char *at; st == OK && (at = strstr(text, "{{"));) {
        const char *const end = strstr(at, "}}");
        char name[NAME];
        bool known = true;
        if (!end || end - at >= NAME)
            return misses(f, at, e);
        fwrite(text, 1, (size_t)(at - text), f->out);
        snprintf(name, sizeof(name), "%.*s", (int)(end - at - 2), at + 2);
        text = end + 2;
        if (name[0] == '#')
            st = fill_part(f, name + 1, &text, e);
        else
            st = f->put(f->arg, name, &known);
        if (!known)
            return misses(f, name, e);
    }
    if (st == OK)
        fputs(text, f->out);
    return st;
}
