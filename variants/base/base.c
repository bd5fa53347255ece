/* SPDX-License-Identifier: MIT
 *
 * Text of errors, and text that grows. */
#include "base.h"

#include "printable.h"

enum status fail(struct err *e, enum status st, const char *fmt, ...)
{
    if (e) {
        char text[sizeof(e->msg)];
        VPRINT(text, sizeof(text), fmt);
        printable_copy(e->msg, sizeof(e->msg), text);
    }
    return st;
}

void text_append(char *buf, size_t size, const char *fmt, ...)
{
    const size_t n = strlen(buf);

    VPRINT(buf + n, size - n, fmt);
}

void text_item(char *buf, size_t size, const char *fmt, ...)
{
    size_t n = strlen(buf);
    va_list ap;

    if (n > 0 && n + 1 < size)
        buf[n++] = ',';
    va_start(ap, fmt);
    const int length = vsnprintf(buf + n, size - n, fmt, ap);
    va_end(ap);
    CHECK(length >= 0 && (size_t)length < size - n);
}

bool text_begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

const char *path_name(const char *path)
{
    const char *const slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

bool text_ends(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);

    return n >= m && strcmp(text + n - m, end) == 0;
}

int word_index(const char *word, const char *const *words)
{
    for (int i = 0; words[i]; i++)
        if (strcmp(words[i], word) == 0)
            return i;
    return -1;
}
