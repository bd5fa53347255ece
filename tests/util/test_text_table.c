/* SPDX-License-Identifier: MIT
 *
 * Tables on a terminal: they fit it, wrap inside columns, and leave out what can be spared. */
#include "tests/support/pty.h"

TestSuite(text_table, .init = folder_make, .fini = folder_remove);

static const struct text_table_column columns[] = {
    {.name = "name"},
    {.name = "n", .number = true},
    {.name = "about", .least = 12},
    {.name = "paper", .least = 10, .spare = true},
};

static void fill(struct text_table *s)
{
    static const char *const rows[][4] = {
        {"one", "1", "a text of several words, and more", "A long title of a paper 2017"},
        {"twelve", "12", "unbreakable_and_very_long_word", ""},
        {"dot·dot", "3", "", "short"},
    };

    *s = (struct text_table){.column = columns, .columns = ARRAY_LEN(columns)};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        text_table_add(s, rows[i]);
}

static void print_table(void *arg)
{
    struct text_table s;

    fill(&s);
    text_table_print(stdout, &s, *(enum format *)arg);
    text_table_free(&s);
}

Test(text_table, fits_every_width)
{
    enum format table = FORMAT_TABLE;

    for (int width = 28; width < 120; width += 7) {
        struct view v;
        watch(&v, ON_STDOUT, width, print_table, &table);
        cr_expect_leq(widest(v.screen), width, "%d: %s", width, v.screen);
        for (const char *word = "several\0words\0twelve\0dot·dot\0"; *word;
             word += strlen(word) + 1)
            cr_expect(strstr(v.screen, word), "%d: no %s in %s", width, word, v.screen);
        cr_expect_eq(strstr(v.screen, "paper") == NULL, strstr(v.file, "paper") != NULL,
                     "%d: shown, or named as left out: %s%s", width, v.screen, v.file);
    }
}

Test(text_table, wide_enough_is_one_line_a_row)
{
    enum format table = FORMAT_TABLE;
    struct view v;

    watch(&v, ON_STDOUT, 120, print_table, &table);
    cr_expect_eq(count_in(v.screen, "\n"), 4, "%s", v.screen);
    cr_expect_eq(*v.file, '\0', "%s", v.file);
    HAS(v.screen, "\none       1  a text of several words, and more  A long");
}

Test(text_table, json_is_one_document)
{
    enum format json = FORMAT_JSON;
    struct view v;

    watch(&v, ON_STDERR, 80, print_table, &json);
    TEXTS({v.file, "[\n{\"name\":\"one\",\"n\":1,\"about\":\"a text of several words, and more\","
                   "\"paper\":\"A long title of a paper 2017\"},\n"
                   "{\"name\":\"twelve\",\"n\":12,\"about\":\"unbreakable_and_very_long_word\","
                   "\"paper\":null},\n"
                   "{\"name\":\"dot·dot\",\"n\":3,\"about\":null,\"paper\":\"short\"}\n]\n"});
}

/* Without texts that would rather wrap, the others do; a column that is empty is not shown. */
static void print_narrow(void *arg)
{
    static const struct text_table_column narrow[] = {
        {.name = "first"}, {.name = "nothing"}, {.name = "second"}};
    static const char *const text[] = {"several words that wrap", "", "and several others here"};
    struct text_table s = {.column = narrow, .columns = ARRAY_LEN(narrow)};

    text_table_add(&s, text);
    text_table_print(stdout, &s, FORMAT_TABLE);
    text_table_free(&s);
}

Test(text_table, narrow_without_columns_that_wrap)
{
    struct view v;

    watch(&v, ON_STDOUT, 24, print_narrow, NULL);
    cr_expect_leq(widest(v.screen), 24, "%s", v.screen);
    cr_expect_not(strstr(v.screen, "nothing"), "%s", v.screen);
}
