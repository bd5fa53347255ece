/* SPDX-License-Identifier: MIT
 *
 * Words of any bytes on a line: read back by the program and by bash. */
#include "harness/cli/option_words.h"
#include "tests/support/program.h"
#include "tests/support/random_word.h"
#include "tests/support/tmp_folder.h"

TestSuite(option_words, .init = folder_make, .fini = folder_remove, .timeout = 240);

enum { LINES = 400, WORDS = 8, SIZE = 24 };

/* WORDS random words on a line of their own. */
static char *make_line(char word[WORDS][SIZE], int seed)
{
    static const char quotes[] = {'\0', '"', '\''};
    FILE *const f = text_begin();

    for (int i = 0; i < WORDS; i++) {
        random_word(word[i], SIZE, (uint64_t)(seed * WORDS + i));
        fputs(i ? " " : "", f);
        word_print(f, word[i], quotes[i % 3]);
    }
    return text_end(f);
}

/* One line of UTF-8 without control characters. */
static void expect_line(const char *line)
{
    char *const same = kept(text_exact(line));

    if (strncmp(line, "$'", 2) != 0)
        cr_expect_str_eq(line, same);
    cr_expect_not(strchr(line, '\n'));
}

Test(option_words, of_any_bytes_come_back)
{
    char word[WORDS][SIZE];

    for (int seed = 0; seed < LINES; seed++) {
        char *const line = make_line(word, seed);
        struct options o = {0};
        struct words w = {0};
        expect_line(line);
        cr_assert_eq(words_split(&w, &o, line, NULL, 0, &failure), OK, "%s: %s", line, failure.msg);
        cr_assert_eq(w.n, WORDS, "%s", line);
        for (int i = 0; i < WORDS; i++)
            cr_expect_str_eq(w.v[i].text, word[i], "%s", line);
        words_free(&w);
        options_free(&o);
    }
}

/* Every line as a command of bash prints the same words, each with a NUL after it. */
Test(option_words, can_be_pasted_into_bash)
{
    char word[WORDS][SIZE];
    struct bytes script, wanted;
    FILE *const lines = bytes_open(&script, &failure), *const words = bytes_open(&wanted, &failure);

    cr_assert(lines && words);
    for (int seed = 0; seed < LINES; seed++) {
        char *const line = make_line(word, seed);
        fprintf(lines, "printf '%%s\\0' %s\n", line);
        for (int i = 0; i < WORDS; i++)
            fwrite(word[i], 1, strlen(word[i]) + 1, words);
    }
    cr_assert_eq(bytes_close(lines, &script, &failure), OK);
    cr_assert_eq(bytes_close(words, &wanted, &failure), OK);
    folder_put("script", script.data, script.n);
    struct ran r = must_shell("LC_ALL=C.UTF-8 bash ./script");
    cr_assert_eq(r.out.n, wanted.n);
    cr_expect(memcmp(r.out.data, wanted.data, wanted.n) == 0);
    kept(script.data), kept(wanted.data);
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
        char *const line = PRINTED(f, word_print(f, cases[i].word, cases[i].quote));
        cr_expect_str_eq(line, cases[i].line);
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
        MUST(words_split(&w, &o, cases[i].line, NULL, 0, &failure));
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
        struct options o;
        random_word(value, SIZE, (uint64_t)seed);
        if (seed % 2)
            value[0] = "@-"[seed / 2 % 2];
        FILE *const f = text_begin();
        word_print_option(f, "corpus", value, seed % 3 ? '"' : '\0');
        fputs(" --bytes 7", f);
        char *const line = text_end(f);
        const enum status st = options_parse_line(&o, line, &failure);
        cr_expect_eq(st, *value ? OK : E_USAGE, "%s: %s", line, failure.msg);
        if (st == OK)
            cr_expect_str_eq(o.corpus, value, "%s", line);
        cr_expect(st != OK || o.bytes == 7);
        options_free(&o);
    }
}
