/* SPDX-License-Identifier: MIT
 *
 * What stands on a line of a terminal, and messages that are one line whatever they name. */
#include "tests/support/failure.h"
#include "variants/base/printable.h"

Test(printable, characters_that_stand)
{
    NUMBERS({printable_length("a"), 1}, {printable_length(" "), 1}, {printable_length("~"), 1},
            {printable_length("\xce\xbc"), 2}, {printable_length("\xe2\x82\xac"), 3},
            {printable_length("\xf0\x9f\x98\x80"), 4}, {printable_length("\xc2\xa0"), 2},
            {printable_length(""), 0}, {printable_length("\n"), 0}, {printable_length("\t"), 0},
            {printable_length("\x1b"), 0}, {printable_length("\x7f"), 0},
            {printable_length("\xc2\x9b"), 0} /* a terminal's CSI in one character */,
            {printable_length("\x9b"), 0}, {printable_length("\xc0\x80"), 0} /* overlong */,
            {printable_length("\xed\xa0\x80"), 0} /* a surrogate */,
            {printable_length("\xe2\x82"), 0} /* ends inside a character */,
            {printable_length("\xf4\x90\x80\x80"), 0} /* beyond Unicode */);
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
