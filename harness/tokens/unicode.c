/* SPDX-License-Identifier: MIT
 *
 * See unicode.h. */
#include "unicode.h"

#include <utf8proc.h>

/* ---- UTF-8 -------------------------------------------------------------------------------- */

/* How many bytes follow a first byte, and the bounds of the second: narrower where wider ones would
 * spell a character that has a shorter form, a surrogate, or none at all. */
static int follows(unsigned char first, unsigned char *least, unsigned char *most)
{
    *least = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    *most = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    return first < 0x80   ? 0
           : first < 0xc2 ? -1
           : first < 0xe0 ? 1
           : first < 0xf0 ? 2
           : first < 0xf5 ? 3
                          : -1;
}

int32_t utf8_next(const char *at, size_t n, size_t *length)
{
    const unsigned char *const byte = (const unsigned char *)at;
    unsigned char least, most;
    const int more = follows(byte[0], &least, &most);
    int32_t c = more < 1 ? byte[0] : byte[0] & (0x3f >> more);

    *length = 1;
    if (more < 0)
        return -1;
    for (int i = 1; i <= more; i++) {
        if ((size_t)i >= n || byte[i] < least || byte[i] > most)
            return -1;
        c = c << 6 | (byte[i] & 0x3f);
        *length = (size_t)i + 1;
        least = 0x80;
        most = 0xbf;
    }
    return c;
}

size_t utf8_valid(const char *text, size_t n)
{
    size_t length;

    for (size_t at = 0; at < n; at += length)
        if (utf8_next(text + at, n - at, &length) < 0)
            return at;
    return n;
}

enum status utf8_replace(struct bytes *out, const char *text, size_t n, struct err *e)
{
    static const char unknown[] = "\xef\xbf\xbd";
    FILE *const f = bytes_open(out, e);
    size_t length;

    if (!f)
        return E_NOMEM;
    for (size_t at = 0; at < n; at += length) {
        const bool valid = utf8_next(text + at, n - at, &length) >= 0;
        fwrite(valid ? text + at : unknown, 1, valid ? length : sizeof(unknown) - 1, f);
    }
    return bytes_close(f, out, e);
}

/* ---- classes ------------------------------------------------------------------------------ */

bool is_white(int32_t c)
{
    return (c >= 9 && c <= 13) || c == 32 || c == 0x85 || c == 0xa0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f ||
           c == 0x205f || c == 0x3000;
}

bool is_white_or_separates(int32_t c) { return is_white(c) || (c >= 0x1c && c <= 0x1f); }

/* Symbols that are alphabetic: letters in circles and squares. */
static bool is_framed_letter(int32_t c)
{
    return (c >= 0x24b6 && c <= 0x24e9) || (c >= 0x1f130 && c <= 0x1f149) ||
           (c >= 0x1f150 && c <= 0x1f169) || (c >= 0x1f170 && c <= 0x1f189);
}

bool is_word(int32_t c)
{
    const utf8proc_category_t k = utf8proc_category(c);

    return (k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_NL) || k == UTF8PROC_CATEGORY_PC ||
           c == 0x200c || c == 0x200d || is_framed_letter(c);
}

/* ---- composition -------------------------------------------------------------------------- */

enum status unicode_compose(struct bytes *out, const char *text, size_t n, struct err *e)
{
    utf8proc_uint8_t *composed = NULL;
    const utf8proc_ssize_t length =
        utf8proc_map((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)n, &composed,
                     (utf8proc_option_t)(UTF8PROC_STABLE | UTF8PROC_COMPOSE));

    if (length == UTF8PROC_ERROR_INVALIDUTF8)
        return fail(e, E_IO, "the text is not UTF-8");
    if (length < 0)
        return fail(e, E_NOMEM, "no memory to compose a text of %zu bytes", n);
    *out = (struct bytes){(char *)composed, (size_t)length};
    return OK;
}
