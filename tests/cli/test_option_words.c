/* SPDX-License-Identifier: MIT
 *
 * Words of any bytes on a line: read back by the program and by bash. */
#include "harness/cli/option_words.h"
#include "harness/util/text.h"
#include "tests/support/program.h"
#include "tests/support/random_word.h"
#include "tests/support/tmp_folder.h"

#include <string.h>

TestSuite(option_words, .init = folder_make, .fini = folder_remove, .timeout = 240);

enum { LINES = 400, WORDS = 8, SIZE = 24 };

/* WORDS random words on a line of their own, malloc'ed. */
static char *make_line(char word[WORDS][SIZE], int seed)
{
    static const char quotes[] = {'\0', '"', '\''};
    struct bytes line;
    struct err e;
    FILE *const f = bytes_open(&line, &e);

    cr_assert(f);
    for (int i = 0; i < WORDS; i++) {
        random_word(word[i], SIZE, (uint64_t)(seed * WORDS + i));
        fputs(i ? " " : "", f);
        word_print(f, word[i], quotes[i % 3]);
    }
    cr_assert_eq(bytes_close(f, &line, &e), OK, "%s", e.msg);
    return line.data;
}

/* One line of UTF-8 without control characters. */
static void expect_line(const char *line)
{
    char *const same = text_exact(line);

    if (strncmp(line, "$'", 2) != 0)
        cr_expect_str_eq(line, same);
    cr_expect_not(strchr(line, '\n'));
    free(same);
}

Test(option_words, of_any_bytes_come_back)
{
    char word[WORDS][SIZE];
    struct err e;

    for (int seed = 0; seed < LINES; seed++) {
        char *const line = make_line(word, seed);
        struct options o = {0};
        struct words w = {0};
        expect_line(line);
        cr_assert_eq(words_split(&w, &o, line, NULL, 0, &e), OK, "%s: %s", line, e.msg);
        cr_assert_eq(w.n, WORDS, "%s", line);
        for (int i = 0; i < WORDS; i++)
            cr_expect_str_eq(w.v[i].text, word[i], "%s", line);
        free(line);
        words_free(&w);
        options_free(&o);
    }
}

/* Every line as a command of bash prints the same words, each with a NUL after it. */
Test(option_words, can_be_pasted_into_bash)
{
    char word[WORDS][SIZE], path[FILE_PATH];
    struct bytes script, wanted;
    struct err e;
    FILE *const lines = bytes_open(&script, &e), *const words = bytes_open(&wanted, &e);

    cr_assert(lines && words);
    for (int seed = 0; seed < LINES; seed++) {
        char *const line = make_line(word, seed);
        fprintf(lines, "printf '%%s\\0' %s\n", line);
        for (int i = 0; i < WORDS; i++)
            fwrite(word[i], 1, strlen(word[i]) + 1, words);
        free(line);
    }
    cr_assert_eq(bytes_close(lines, &script, &e), OK);
    cr_assert_eq(bytes_close(words, &wanted, &e), OK);
    folder_path(path, "script");
    cr_assert_eq(file_replace(path, script.data, script.n, &e), OK, "%s", e.msg);
    struct ran r = run_shell(folder, "LC_ALL=C.UTF-8 bash ./script");
    expect_exit(&r, 0);
    cr_assert_eq(r.out.n, wanted.n);
    cr_expect(memcmp(r.out.data, wanted.data, wanted.n) == 0);
    ran_free(&r);
    free(script.data);
    free(wanted.data);
}

Test(option_words, ordinary_ones_stand_as_they_are)
{
    static const struct {
        const char *word, *line;
        char quote;
    } cases[] = {
        {"--seq", "--seq", '\0'},       {"a/b.c,d=1:2%+", "a/b.c,d=1:2%+", '\0'},
        {"\xce\xbc", "\xce\xbc", '\0'}, {"", "\"\"", '\0'},
        {"a b", "\"a b\"", '\0'},       {"it's", "\"it's\"", '\0'},
        {"a.b", "\"a.b\"", '"'},        {"w=8;g=1", "'w=8;g=1'", '\''},
        {"a\"b", "'a\"b'", '\0'},       {"a$b", "'a$b'", '"'},
        {"a\nb", "$'a\\nb'", '"'},      {"\xff'\\", "$'\\xff\\'\\\\'", '\0'},
        {"\"'", "$'\"\\''", '\0'},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct bytes line;
        struct err e;
        FILE *const f = bytes_open(&line, &e);
        cr_assert(f);
        word_print(f, cases[i].word, cases[i].quote);
        cr_assert_eq(bytes_close(f, &line, &e), OK);
        cr_expect_str_eq(line.data, cases[i].line);
        free(line.data);
    }
}

Test(option_words, escapes_only_in_their_quotes)
{
    static const struct {
        const char *line, *word;
    } cases[] = {
        {"$'\\e[1m\\x41\\x4g\\q'", "\033[1mA\004g\\q"},
        {"$'\\x00\\xg'", "\\x00\\xg"},
        {"\"\\n$'x'\"", "\\n$'x'"},
        {"a\\b'\\n'", "a\\b\\n"},
        {"$x$'\\t'\"'\"", "$x\t'"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct options o = {0};
        struct words w = {0};
        struct err e;
        cr_assert_eq(words_split(&w, &o, cases[i].line, NULL, 0, &e), OK, "%s", e.msg);
        cr_assert_eq(w.n, 1);
        cr_expect_str_eq(w.v[0].text, cases[i].word);
        words_free(&w);
        options_free(&o);
    }
}

/* As a value of an option: also one that would name a file of options. */
Test(option_words, values_of_options_come_back)
{
    for (int seed = 0; seed < LINES; seed++) {
        char value[SIZE];
        struct bytes line;
        struct options o;
        struct err e;
        random_word(value, SIZE, (uint64_t)seed);
        if (seed % 2)
            value[0] = "@-"[seed / 2 % 2];
        FILE *const f = bytes_open(&line, &e);
        cr_assert(f);
        word_print_option(f, "corpus", value, seed % 3 ? '"' : '\0');
        fputs(" --bytes 7", f);
        cr_assert_eq(bytes_close(f, &line, &e), OK);
        const enum status st = options_parse_line(&o, line.data, &e);
        cr_expect_eq(st, *value ? OK : E_USAGE, "%s: %s", line.data, e.msg);
        if (st == OK)
            cr_expect_str_eq(o.corpus, value, "%s", line.data);
        cr_expect(st != OK || o.bytes == 7);
        options_free(&o);
        free(line.data);
    }
}
