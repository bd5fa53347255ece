/* SPDX-License-Identifier: MIT
 *
 * Filling in a form. */
#include "form.h"

#include "harness/util/text.h"

enum { NAME = 64, DEPTH = 8 };

/* The parts around the place that was reached, the innermost last. */
struct open_parts {
    struct {
        char name[NAME];
        const char *from, *behind; /* first line of the part; the line after its end */
    } part[DEPTH];
    int n;
};

static enum status misses(const struct form *f, const char *what, struct err *e)
{
    return fail(e, E_IO, "%s: bad placeholder %.60s  -> restore the file", f->file, what);
}

/* Move *text to the start of the innermost part for its next item, or behind it after the last. */
static enum status repeat_part(const struct form *f, struct open_parts *open, const char **text,
                               struct err *e)
{
    const int k = open->n - 1;
    bool more = true, known = true;
    const enum status st = f->next(f->arg, open->part[k].name, &more, &known);

    if (!known)
        return misses(f, open->part[k].name, e);
    *text = more ? open->part[k].from : open->part[k].behind;
    open->n -= !more;
    return st;
}

/* *text is what follows {{#name}}. */
static enum status open_part(const struct form *f, struct open_parts *open, const char *name,
                             const char **text, struct err *e)
{
    const char *const from = *text + (**text == '\n');
    char stop[NAME + 8];

    snprintf(stop, sizeof(stop), "{{/%s}}\n", name);
    const char *const end = strstr(from, stop);
    if (!end || open->n == DEPTH)
        return misses(f, name, e);
    const int k = open->n++;
    text_put(open->part[k].name, NAME, name);
    open->part[k].from = from;
    open->part[k].behind = end + strlen(stop);
    return repeat_part(f, open, text, e);
}

static bool ends_part(const struct open_parts *open, const char *name)
{
    return name[0] == '/' && open->n > 0 && strcmp(open->part[open->n - 1].name, name + 1) == 0;
}

enum status form_fill(const struct form *f, const char *text, struct err *e)
{
    struct open_parts open = {.n = 0};

    for (const char *at; (at = strstr(text, "{{"));) {
        const char *const end = strstr(at, "}}");
        char name[NAME];
        bool known = true;
        if (!end || end - at >= NAME)
            return misses(f, at, e);
        fwrite(text, 1, (size_t)(at - text), f->out);
        snprintf(name, sizeof(name), "%.*s", (int)(end - at - 2), at + 2);
        text = end + 2;
        if (name[0] == '#')
            TRY(open_part(f, &open, name + 1, &text, e));
        else if (ends_part(&open, name))
            TRY(repeat_part(f, &open, &text, e));
        else
            TRY(f->put(f->arg, name, &known));
        if (!known)
            return misses(f, name, e);
    }
    fputs(text, f->out);
    return OK;
}
