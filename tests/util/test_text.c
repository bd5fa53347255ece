/* SPDX-License-Identifier: MIT
 *
 * Texts of unknown origin on a line of a table or a terminal. */
#include "harness/util/text_table.h"
#include "tests/support/kept.h"
#include "tests/support/random_word.h"

#include <criterion/criterion.h>

#include "variants/base/printable.h"

static bool is_printable(const char *text)
{
    while (*text) {
        const size_t n = printable_length(text);
        if (n == 0)
            return false;
        text += n;
    }
    return true;
}

/* Different texts have different lines; ordinary ones are their own. */
Test(text, exact)
{
    enum { TEXTS = 500, SIZE = 12 };
    static char text[TEXTS][SIZE];
    char *line[TEXTS];

    for (int i = 0; i < TEXTS; i++) {
        random_word(text[i], SIZE, (uint64_t)i);
        line[i] = kept(text_exact(text[i]));
        cr_expect(is_printable(line[i]));
        if (is_printable(text[i]) && strncmp(text[i], "$'", 2) != 0)
            cr_expect_str_eq(line[i], text[i]);
    }
    for (int i = 0; i < TEXTS; i++)
        for (int k = 0; k < i; k++)
            cr_expect_eq(strcmp(line[i], line[k]) == 0, strcmp(text[i], text[k]) == 0, "%s %s",
                         line[i], line[k]);
    char *const like = kept(text_exact("$'a'")), *const is = kept(text_exact("a\x01"));
    cr_expect_str_eq(like, "$'$\\'a\\''");
    cr_expect_str_eq(is, "$'a\\x01'");
}

Test(text, lines_hold_no_control_characters)
{
    char *text = PRINTED(f, text_line(f, "%s of %d", "x\033[31ml\a\n\xff", 3));
    cr_expect_str_eq(text, "x\\x1b[31ml\\a\\n\\xff of 3\n");
}

/* Tables for people, and as wide as they are printed; tables for programs keep every byte. */
Test(text, tables)
{
    static const struct text_table_column columns[] = {{.name = "a"}, {.name = "b"}};
    static const struct {
        enum format format;
        const char *want;
    } cases[] = {
        {FORMAT_TABLE, "a            b\nx\\x1b[31m|y  1\nlonger       2\n"},
        {FORMAT_MD, "| a | b |\n|---|---|\n| x\\x1b[31m\\|y | 1 |\n| longer | 2 |\n"},
        {FORMAT_CSV, "a,b\nx\033[31m|y,1\nlonger,2\n"},
    };
    struct text_table t = {.column = columns, .columns = 2};

    text_table_add(&t, (const char *[]){"x\033[31m|y", "1"});
    text_table_add(&t, (const char *[]){"longer", "2"});
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char *text = PRINTED(f, text_table_print(f, &t, cases[i].format));
        cr_expect_str_eq(text, cases[i].want);
    }
    text_table_free(&t);
}
