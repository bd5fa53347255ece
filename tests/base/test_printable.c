/* SPDX-License-Identifier: MIT
 *
 * What stands on a line of a terminal, and messages that are one line whatever they name. */
#include "tests/support/failure.h"
#include "variants/base/printable.h"

Test(printable, characters_that_stand)
{
    static const struct {
        const char *text;
        size_t n;
    } cases[] = {
        {"a", 1},
        {" ", 1},
        {"~", 1},
        {"\xce\xbc", 2},
        {"\xe2\x82\xac", 3},
        {"\xf0\x9f\x98\x80", 4},
        {"\xc2\xa0", 2},
        {"", 0},
        {"\n", 0},
        {"\t", 0},
        {"\x1b", 0},
        {"\x7f", 0},
        {"\xc2\x9b", 0}, /* a terminal's CSI in one character */
        {"\x9b", 0},
        {"\xc0\x80", 0},         /* overlong */
        {"\xed\xa0\x80", 0},     /* a surrogate */
        {"\xe2\x82", 0},         /* ends inside a character */
        {"\xf4\x90\x80\x80", 0}, /* beyond Unicode */
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        cr_expect_eq(printable_length(cases[i].text), cases[i].n, "case %zu", i);
}

Test(printable, copies_are_cut_between_characters_and_escapes)
{
    char t[8];

    cr_expect(printable_copy(t, sizeof(t), "a\x1b\n"));
    cr_expect_str_eq(t, "a\\x1b\\n");
    cr_expect_not(printable_copy(t, sizeof(t), "1234\x1b"));
    cr_expect_str_eq(t, "1234");
    cr_expect_not(printable_copy(t, sizeof(t), "123456\xce\xbc"));
    cr_expect_str_eq(t, "123456");
}

Test(printable, messages_are_one_line)
{
    cr_expect_eq(fail(&failure, E_IO, "cannot read %s", "x\033[31ml\033]0;p\a\r\n\xff"), E_IO);
    cr_expect_str_eq(failure.msg, "cannot read x\\x1b[31ml\\x1b]0;p\\a\\r\\n\\xff");
    fail(&failure, E_IO, "%s again", failure.msg); /* from itself */
    HAS(failure.msg, "again", "x\\x1b[31m");
}
