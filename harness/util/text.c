/* SPDX-License-Identifier: MIT
 *
 * Bytes of unknown origin as one line of UTF-8. */
#include "text.h"

#include <string.h>

/* Bytes of the UTF-8 character at s, 0 if invalid: no overlong forms, no surrogates. */
static size_t utf8_length(const unsigned char *s)
{
    const unsigned lo[] = {0x80, 0x800, 0x10000};
    const size_t more = s[0] >= 0xf0 ? 3 : s[0] >= 0xe0 ? 2 : 1;
    unsigned code = s[0] & (0x3fU >> more);

    if (s[0] < 0x80)
        return 1;
    if (s[0] < 0xc2 || s[0] > 0xf4)
        return 0;
    for (size_t i = 1; i <= more; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (s[i] & 0x3f);
    }
    const bool surrogate = code >= 0xd800 && code < 0xe000;
    return code < lo[more - 1] || code > 0x10ffff || surrogate ? 0 : more + 1;
}

bool text_put(char *dst, size_t size, const char *src)
{
    const unsigned char *s = (const unsigned char *)src;
    size_t n = 0;

    while (*s) {
        const size_t length = utf8_length(s), take = length ? length : 1;
        if (n + take >= size)
            break;
        if (length == 0)
            dst[n] = '?';
        else if (*s < 0x20 || *s == 0x7f)
            dst[n] = ' ';
        else
            memcpy(dst + n, s, take);
        n += take;
        s += take;
    }
    dst[n] = '\0';
    return *s == '\0';
}
