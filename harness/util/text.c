/* SPDX-License-Identifier: MIT
 *
 * Bytes of unknown origin as one line of UTF-8. */
#include "text.h"
#include "fileio.h"
#include "terminal.h"

#include "variants/base/printable.h"

bool text_put(char *dst, size_t size, const char *src)
{
    size_t n = 0;

    while (*src) {
        const size_t length = printable_length(src), take = length ? length : 1;
        if (n + take >= size)
            break;
        if (length == 0)
            dst[n] = (unsigned char)*src < 0x80 ? ' ' : '?';
        else
            memcpy(dst + n, src, take);
        n += take;
        src += take;
    }
    dst[n] = '\0';
    return *src == '\0';
}

void text_join(char *buf, size_t size, const char *with, const char *text)
{
    if (*text)
        text_append(buf, size, "%s%s", *buf ? with : "", text);
}

bool text_has_word(const char *words, const char *word, size_t n)
{
    for (size_t at = 0, length; words[at]; at += length + strspn(words + at + length, " ")) {
        length = strcspn(words + at, " ");
        if (length == n && memcmp(words + at, word, n) == 0)
            return true;
    }
    return false;
}

const struct text_escape *text_escape_at(const struct text_escape *escapes, const char *at)
{
    for (; escapes->is; escapes++)
        if (strncmp(at, escapes->is, strlen(escapes->is)) == 0)
            return escapes;
    return NULL;
}

void text_print_escaped(FILE *f, const char *text, const struct text_escape *escapes)
{
    while (*text) {
        const struct text_escape *const e = text_escape_at(escapes, text);
        if (e)
            fputs(e->as, f);
        else
            fputc(*text, f);
        text += e ? strlen(e->is) : 1;
    }
}

void text_replaced(FILE *f, const char *text, size_t n, const char *from, const char *to)
{
    const char *const end = text + n;

    for (const char *found; (found = memmem(text, (size_t)(end - text), from, strlen(from)));
         text = found + strlen(from)) {
        fwrite(text, 1, (size_t)(found - text), f);
        fputs(to, f);
    }
    fwrite(text, 1, (size_t)(end - text), f);
}

enum status bytes_replace(struct bytes *out, const char *text, size_t n, const char *from,
                          const char *to, struct err *e)
{
    FILE *const f = bytes_open(out, e);

    if (!f)
        return E_NOMEM;
    text_replaced(f, text, n, from, to);
    return bytes_close(f, out, e);
}

void text_print_quoted(FILE *f, const char *src)
{
    char escape[PRINTABLE_ESCAPE];

    fputs("$'", f);
    while (*src) {
        const size_t length = printable_length(src);
        if (length == 0) {
            printable_escape(escape, *src++);
            fputs(escape, f);
            continue;
        }
        if (*src == '\'' || *src == '\\')
            fputc('\\', f);
        fwrite(src, 1, length, f);
        src += length;
    }
    fputc('\'', f);
}

char *text_exact(const char *src)
{
    bool plain = strncmp(src, "$'", 2) != 0;
    struct bytes text;

    for (size_t at = 0, n; plain && src[at]; at += n) {
        n = printable_length(src + at);
        plain = n > 0;
    }
    FILE *const f = bytes_begin(&text);
    if (plain)
        fputs(src, f);
    else
        text_print_quoted(f, src);
    return bytes_end(f, &text);
}

void text_print(FILE *f, const char *text)
{
    char escape[PRINTABLE_ESCAPE];

    while (*text) {
        const size_t length = printable_length(text);
        if (length == 0)
            printable_escape(escape, *text);
        fwrite(length ? text : escape, 1, length ? length : strlen(escape), f);
        text += length ? length : 1;
    }
}

void text_vline(FILE *f, const char *fmt, va_list ap)
{
    enum { INDENT = 2 };
    char *text;
    struct bytes safe, filled;
    FILE *out = bytes_begin(&safe);

    NEED(vasprintf(&text, fmt, ap) >= 0);
    text_print(out, text);
    bytes_end(out, &safe);
    out = bytes_begin(&filled);
    text_fill(out, safe.data, 0, INDENT, terminal_width(fileno(f)));
    fputs(bytes_end(out, &filled), f); /* at once: other processes write there, too */
    free(filled.data);
    free(safe.data);
    free(text);
}

/* Columns of text[0..n). */
static int columns_of(const char *text, size_t n)
{
    int columns = 0;

    for (size_t i = 0; i < n; i++)
        columns += ((unsigned char)text[i] & 0xc0) != 0x80;
    return columns;
}

void text_fill(FILE *f, const char *text, int at, int indent, int width)
{
    bool first = true; /* word of its line */

    for (;; text++) {
        const size_t bytes = strcspn(text, " \n");
        const int columns = columns_of(text, bytes);
        if (!first && columns > 0 && columns >= width - at) {
            fprintf(f, "\n%*s", indent, "");
            at = indent, first = true;
        }
        fprintf(f, "%s%.*s", first ? "" : " ", (int)bytes, text);
        at += !first + columns;
        text += bytes;
        first = *text == '\n';
        if (first) {
            fprintf(f, "\n%*s", indent, "");
            at = indent;
        }
        if (!*text)
            break;
    }
    fputc('\n', f);
}

void text_line(FILE *f, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    text_vline(f, fmt, ap);
    va_end(ap);
}

void text_heading(FILE *f, const char *text)
{
    fputc('\n', f);
    text_line(f, "%s", text);
}
