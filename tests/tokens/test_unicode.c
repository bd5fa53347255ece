/* SPDX-License-Identifier: MIT
 *
 * Characters of UTF-8 and what is none, and the classes that tokenizers ask for. */
#include "harness/tokens/unicode.h"
#include "tests/support/utf8_put.h"

#include <criterion/criterion.h>

Test(unicode, every_character_there_and_back)
{
    for (int32_t c = 0; c < 0x110000; c++) {
        char text[5] = "";
        size_t length;
        if (c >= 0xd800 && c < 0xe000)
            continue;
        const size_t n = utf8_put(text, c);
        cr_assert_eq(utf8_next(text, n, &length), c, "U+%04X", (unsigned)c);
        cr_assert_eq(length, n);
        for (size_t cut = 1; cut < n; cut++) { /* all that there is begins a character */
            cr_assert_eq(utf8_next(text, cut, &length), -1);
            cr_assert_eq(length, cut);
        }
    }
}

/* Each longest part that begins no character is one U+FFFD: the practice that the Unicode standard
 * recommends (chapter 3, U+FFFD substitution of maximal subparts). */
Test(unicode, what_is_no_utf8_is_replaced)
{
    static const struct {
        const char *text, *want;
        size_t valid;
    } cases[] = {
        {"a\xc3\xa9", "a\xc3\xa9", 3},
        {"\xe2\x82"
         "A",
         "?A", 0},
        {"\xc0\x80", "??", 0},
        {"x\xed\xa0\x80", "x???", 1},
        {"\xf0\x9f\x98", "?", 0},
        {"\xf4\x90\x80\x80", "????", 0},
        {"\xe0\x80\x80", "???", 0},
        {"\xf1\x80\x80\xe1\x80\xc2", "???", 0},
        {"ab\xff", "ab?", 2},
        {"", "", 0},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const size_t n = strlen(cases[i].text);
        struct bytes got;
        char shown[64] = "";
        size_t k = 0;
        cr_expect_eq(utf8_valid(cases[i].text, n), cases[i].valid, "case %zu", i);
        cr_assert_eq(utf8_replace(&got, cases[i].text, n, NULL), OK);
        for (size_t at = 0; at < got.n; k++) {
            const bool mark = got.n - at >= 3 && memcmp(got.data + at, "\xef\xbf\xbd", 3) == 0;
            shown[k] = mark ? '?' : got.data[at];
            at += mark ? 3 : 1;
        }
        cr_expect_str_eq(shown, cases[i].want, "case %zu", i);
        free(got.data);
    }
}

Test(unicode, white_space_is_25_characters)
{
    int n = 0;

    for (int32_t c = 0; c < 0x110000; c++)
        n += is_white(c);
    cr_expect_eq(n, 25);
    cr_expect(is_white(0x3000) && !is_white(0x180e) && !is_white(0x200b) && !is_white(0xfeff) &&
              !is_white(0x1c));
}

Test(unicode, composition)
{
    struct bytes got;

    cr_assert_eq(unicode_compose(&got, "e\xcc\x81\0x", 5, NULL), OK);
    cr_expect_eq(got.n, 4);
    cr_expect_arr_eq(got.data, "\xc3\xa9\0x", 4);
    free(got.data);
}

/* \w as of expressions: a letter, a mark, a digit, a Roman numeral, connectors, joiners, a letter in a
 * circle; no other numbers, signs or white space. */
Test(unicode, letters_of_words)
{
    static const int32_t in[] = {'a',    'Z',    '0',    '_',    0xe9,   0x301, 0x903,   0x4e2d,
                                 0x2167, 0x203f, 0x200c, 0x200d, 0x24d0, 0x660, 0x1f130, 0x1d7ce};
    static const int32_t out[] = {' ',  '.',    '-',    '<',    0xa0,   0xb2,    0xbd,
                                  0xd7, 0x2460, 0x200b, 0x2014, 0x3000, 0x1f600, 0x24ea};

    for (size_t i = 0; i < ARRAY_LEN(in); i++)
        cr_expect(is_word(in[i]), "U+%04X", (unsigned)in[i]);
    for (size_t i = 0; i < ARRAY_LEN(out); i++)
        cr_expect_not(is_word(out[i]), "U+%04X", (unsigned)out[i]);
}
