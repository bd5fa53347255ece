/* SPDX-License-Identifier: MIT
 *
 * Texts before they are tokens. */
#include "prose.h"
#include "unicode.h"

#include "harness/util/text.h"

/* Length of the white space at `at`, in bytes; 0 = none. */
static size_t white(const char *at, const char *end)
{
    size_t length;

    if (at >= end)
        return 0;
    const int32_t c = utf8_next(at, (size_t)(end - at), &length);
    return is_white_or_separates(c) ? length : 0;
}

size_t prose_words(const char *text, size_t n)
{
    const char *const end = text + n;
    size_t pieces = 1;

    for (const char *at = text; at < end;) {
        size_t run = 0, length;
        while ((length = white(at + run, end)))
            run += length;
        pieces += run > 0;
        if (!run)
            utf8_next(at, (size_t)(end - at), &run);
        at += run;
    }
    return pieces;
}

/* ---- lines and documents ------------------------------------------------------------------ */

static const char *line_end(const char *at, const char *end)
{
    const char *const stop = at < end ? memchr(at, '\n', (size_t)(end - at)) : NULL;

    return stop ? stop + 1 : end;
}

static bool is_blank(const char *at, const char *stop)
{
    while (at < stop && (*at == ' ' || *at == '\t' || *at == '\r' || *at == '\n'))
        at++;
    return at == stop;
}

/* " = Title = ", with one `=` on each side. */
static bool is_title(const char *at, const char *stop)
{
    while (at < stop && *at == ' ')
        at++;
    while (stop > at && (stop[-1] == ' ' || stop[-1] == '\n' || stop[-1] == '\r'))
        stop--;
    return stop - at >= 5 && memcmp(at, "= ", 2) == 0 && memcmp(stop - 2, " =", 2) == 0 &&
           at[2] != '=' && stop[-3] != '=';
}

enum status prose_join(struct bytes *out, const char *text, size_t n, struct err *e)
{
    const char *const end = text + n;
    FILE *const f = bytes_open(out, e);

    if (!f)
        return E_NOMEM;
    for (const char *at = text, *next; at < end; at = next) {
        next = line_end(at, end);
        fwrite(at, 1, (size_t)(next - at), f);
        if (next < end)
            fputs("\n\n", f);
    }
    return bytes_close(f, out, e);
}

/* A blank line whose next line is a title. */
static bool begins_page(const char *at, const char *end)
{
    const char *const next = line_end(at, end);

    return next < end && is_blank(at, next) && is_title(next, line_end(next, end));
}

static const char *page_end(const char *at, const char *end)
{
    do
        at = line_end(at, end);
    while (at < end && !begins_page(at, end));
    return at;
}

static const char *paragraph_end(const char *at, const char *end)
{
    const char *next = line_end(at, end);

    while (next < end && !is_blank(at, next)) {
        at = next;
        next = line_end(at, end);
    }
    while (next < end && is_blank(next, line_end(next, end)))
        next = line_end(next, end);
    return next;
}

bool document_next(struct documents *d, const char **text, size_t *n)
{
    const char *const sep = d->sep, *stop = d->end, *next;

    if (d->at >= d->end)
        return false;
    if (strcmp(sep, "line") == 0)
        next = stop = line_end(d->at, d->end);
    else if (strcmp(sep, "blank") == 0)
        next = stop = paragraph_end(d->at, d->end);
    else if (strcmp(sep, "wikitext") == 0)
        next = stop = page_end(d->at, d->end);
    else if (strcmp(sep, "none") == 0)
        next = stop;
    else {
        const size_t length = strlen(sep);
        const char *const found = memmem(d->at, (size_t)(d->end - d->at), sep, length);
        stop = found ? found : d->end;
        next = found ? found + length : d->end;
    }
    *text = d->at;
    *n = (size_t)(stop - d->at);
    d->at = next;
    return true;
}

/* ---- WikiText ------------------------------------------------------------------------------ */

static void take(struct bytes *text, struct bytes now)
{
    free(text->data);
    *text = now;
}

static enum status replace(struct bytes *text, const char *from, const char *to, struct err *e)
{
    struct bytes now;

    if (!memmem(text->data, text->n, from, strlen(from)))
        return OK;
    TRY(bytes_replace(&now, text->data, text->n, from, to, e));
    take(text, now);
    return OK;
}

/* No white space inside such brackets or quotes: the first that closes ends them. */
static enum status tighten(struct bytes *text, char open, char close, struct err *e)
{
    const char *const end = text->data + text->n, *at = text->data, *to;
    struct bytes now;
    FILE *const f = bytes_open(&now, e);

    if (!f)
        return E_NOMEM;
    while (at < end) {
        to = *at == open && at + 1 < end ? memchr(at + 1, close, (size_t)(end - at - 1)) : NULL;
        if (!to) {
            fputc(*at++, f);
            continue;
        }
        const char *from = at + 1, *last;
        size_t length;
        while (from < to && (length = white(from, to)))
            from += length;
        last = from; /* behind the last character that is not white */
        for (const char *p = from; p < to; p += length) {
            length = white(p, to);
            const bool is_white_here = length > 0;
            if (!is_white_here)
                utf8_next(p, (size_t)(to - p), &length);
            last = is_white_here ? last : p + length;
        }
        fputc(open, f);
        fwrite(from, 1, (size_t)(last - from), f);
        fputc(close, f);
        at = to + 1;
    }
    TRY(bytes_close(f, &now, e));
    take(text, now);
    return OK;
}

/* The pattern "/' [0-9]/", slashes included, whose replacement is literal. */
static enum status slashes(struct bytes *text, struct err *e)
{
    for (int digit = '0'; digit <= '9'; digit++)
        TRY(replace(text, (const char[]){'/', '\'', ' ', (char)digit, '/', '\0'}, "/'[0-9]/", e));
    return OK;
}

enum status prose_detokenise(struct bytes *out, const char *text, size_t n, struct err *e)
{
    static const char *const first[][2] = {
        {" @-@ ", "-"}, {" @,@ ", ","}, {" @.@ ", "."}, {" : ", ": "}, {" ; ", "; "},
        {" . ", ". "},  {" ! ", "! "},  {" ? ", "? "},  {" , ", ", "},
    };
    static const char pairs[][2] = {{'(', ')'}, {'[', ']'}, {'{', '}'}, {'"', '"'}, {'\'', '\''}};
    static const char *const last[][2] = {
        {"= = = =", "===="}, {"= = =", "==="}, {"= =", "=="},  {" \xc2\xb0 ", "\xc2\xb0"},
        {" \n", "\n"},       {"\n ", "\n"},    {" N ", " 1 "}, {" 's", "'s"},
    };
    FILE *const f = bytes_open(out, e);

    if (!f)
        return E_NOMEM;
    fwrite(text, 1, n, f);
    TRY(bytes_close(f, out, e));
    TRY(replace(out, "s '", "s'", e));
    TRY(slashes(out, e));
    for (size_t i = 0; i < ARRAY_LEN(first); i++)
        TRY(replace(out, first[i][0], first[i][1], e));
    for (size_t i = 0; i < ARRAY_LEN(pairs); i++)
        TRY(tighten(out, pairs[i][0], pairs[i][1], e));
    for (size_t i = 0; i < ARRAY_LEN(last); i++)
        TRY(replace(out, last[i][0], last[i][1], e));
    return OK;
}
