/* SPDX-License-Identifier: MIT
 *
 * Characters that stand on a line, and escapes of the bytes that do not. */
#include "printable.h"

#include <stdio.h>
#include <string.h>

/* Bytes of the UTF-8 character at s, 0 if there is none; *code is its number. */
static size_t utf8_length(const unsigned char *s, unsigned *code)
{
    const unsigned least[] = {0x80, 0x800, 0x10000};
    const size_t more = s[0] >= 0xf0 ? 3 : s[0] >= 0xe0 ? 2 : 1;

    *code = s[0];
    if (s[0] < 0x80)
        return 1;
    if (s[0] < 0xc2 || s[0] > 0xf4)
        return 0;
    *code &= 0x3fU >> more;
    for (size_t i = 1; i <= more; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        *code = *code << 6 | (s[i] & 0x3f);
    }
    const bool surrogate = *code >= 0xd800 && *code < 0xe000;
    return *code < least[more - 1] || *code > 0x10ffff || surrogate ? 0 : more + 1;
}

size_t printable_length(const char *s)
{
    unsigned code;
    const size_t n = utf8_length((const unsigned char *)s, &code);

    const bool control = code < 0x20 || (code >= 0x7f && code < 0xa0);
    const bool none = code == 0xfffe || code == 0xffff; /* no characters: XML has none */

    return control || none ? 0 : n;
}

void printable_escape(char out[PRINTABLE_ESCAPE], char byte)
{
    static const char named[] = "\a\b\t\n\v\f\r", letters[] = "abtnvfr";
    const char *const at = byte ? strchr(named, byte) : NULL;

    if (at)
        snprintf(out, PRINTABLE_ESCAPE, "\\%c", letters[at - named]);
    else
        snprintf(out, PRINTABLE_ESCAPE, "\\x%02x", (unsigned char)byte);
}

bool printable_copy(char *dst, size_t size, const char *src)
{
    size_t n = 0;

    while (*src) {
        const size_t length = printable_length(src);
        char escape[PRINTABLE_ESCAPE];
        if (length == 0)
            printable_escape(escape, *src);
        const size_t take = length ? length : strlen(escape);
        if (n + take >= size)
            break;
        memcpy(dst + n, length ? src : escape, take);
        n += take;
        src += length ? length : 1;
    }
    dst[n] = '\0';
    return *src == '\0';
}
