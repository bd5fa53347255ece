/* SPDX-License-Identifier: MIT
 *
 * Words: each rule of the patterns, written out by hand from their definitions. */
#include "harness/tokens/words.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#define GPT4(numbers)                                                                              \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" numbers                          \
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define BEFORE "[^\\r\\n\\p{L}\\p{N}]?"
#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define GPT4O(ending, numbers)                                                                     \
    BEFORE UPPER "*" LOWER "+" ending "|" BEFORE UPPER "+" LOWER "*" ending "|" numbers            \
                 "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

static const char llama3[] = GPT4("\\p{N}{1,3}"), qwen[] = GPT4("\\p{N}"),
                  gpt_4o[] = GPT4O("(?i:'s|'t|'re|'ve|'m|'ll|'d)?", "\\p{N}{1,3}"),
                  nemo[] = GPT4O("", "\\p{N}");

/* Words with bars between; `literal` and how they are cut: a letter each. */
static void cut(char *shown, const char *pattern, const char *how, const char *text)
{
    static const char letters[] = "irpnc"; /* of enum split */
    struct words w = {0};
    struct word_scan s;
    struct err e = {""};
    const char *word;
    size_t n, used = 0;

    *shown = '\0';
    if (pattern)
        cr_assert_eq(words_open(&w, pattern, strchr(how, 'l'), &e), OK, "%s", e.msg);
    w.split = (enum split)(strchr(letters, *how) - letters);
    w.invert = strchr(how, '!');
    cr_assert_eq(word_scan(&s, &w, text, strlen(text), &e), OK, "%s", e.msg);
    for (;;) {
        cr_assert_eq(word_next(&s, &word, &n, &e), OK, "%s", e.msg);
        if (n == 0)
            break;
        used += (size_t)sprintf(shown + used, "%s%.*s", used ? "|" : "", (int)n, word);
    }
    words_close(&w);
}

Test(words, rules)
{
    static const struct {
        const char *pattern, *text, *want;
        char how[4]; /* "": alone */
    } cases[] = {
        {NULL, "a b  c", "a b  c", ""},
        {WORDS_GPT2, "", "", ""},
        {WORDS_GPT2, "it's we'll I'M", "it|'s| we|'ll| I|'|M", ""},
        {WORDS_GPT2, "a12 345?! b", "a|12| 345|?!| b", ""},
        {WORDS_GPT2, "a   b", "a|  | b", ""},
        {WORDS_GPT2, "a  \n", "a|  \n", ""},
        {WORDS_GPT2, "a\nb", "a|\n|b", ""},
        {WORDS_GPT2, " \t\tx", " \t|\t|x", ""},
        {WORDS_GPT2, "\xc3\xa9\xc2\xb2\xe2\x82\xac", "\xc3\xa9|\xc2\xb2|\xe2\x82\xac", ""},
        {llama3, "it'S \xc3\xa9'\xc5\xbf", "it|'S| \xc3\xa9|'\xc5\xbf", ""},
        {llama3, "a12345", "a|123|45", ""},
        {llama3, " 12", " |12", ""},
        {llama3, "(abc)\r\n\nx", "(abc|)\r\n\n|x", ""},
        {llama3, "\tx ?y", "\tx| ?|y", ""},
        {llama3, "a \n b", "a| \n| b", ""},
        {llama3, "a  \n\n  b", "a|  \n\n| | b", ""},
        {llama3, "a  ", "a|  ", ""},
        {qwen, "a123 4", "a|1|2|3| |4", ""},
        /* what the package tokenizers 0.23 makes of the patterns */
        {gpt_4o, "ABCdef", "ABCdef", ""},
        {gpt_4o, "AbC", "Ab|C", ""},
        {gpt_4o, "ABC", "ABC", ""},
        {gpt_4o,
         "\xcc\x81"
         "ABC",
         "\xcc\x81|ABC", ""},
        {gpt_4o,
         " \xcc\x81"
         "ABC",
         " \xcc\x81|ABC", ""},
        {gpt_4o,
         "a\xcc\x81"
         "b",
         "a\xcc\x81"
         "b",
         ""},
        {gpt_4o,
         "A\xcc\x81"
         "B",
         "A\xcc\x81|B", ""},
        {gpt_4o,
         "\xe4\xb8\xad\xe6\x96\x87"
         "ABC",
         "\xe4\xb8\xad\xe6\x96\x87|ABC", ""},
        {gpt_4o, "ABC\xe4\xb8\xad", "ABC\xe4\xb8\xad", ""},
        {gpt_4o,
         "ABC\xe4\xb8\xad"
         "DEF",
         "ABC\xe4\xb8\xad|DEF", ""},
        {gpt_4o,
         "\xc7\x85"
         "abc",
         "\xc7\x85"
         "abc",
         ""},
        {gpt_4o, "abc\xc7\x85", "abc|\xc7\x85", ""},
        {gpt_4o,
         "\xca\xb0"
         "ABC",
         "\xca\xb0|ABC", ""},
        {gpt_4o,
         "ABC\xca\xb0"
         "D",
         "ABC\xca\xb0|D", ""},
        {gpt_4o, "it's IT'S I'LL'VE", "it's| IT'S| I'LL|'VE", ""},
        {gpt_4o, "x'\xc5\xbf", "x'\xc5\xbf", ""},
        {gpt_4o, "//\r\n/a", "//\r\n/|a", ""},
        {gpt_4o, "a/b//\n", "a|/b|//\n", ""},
        {gpt_4o, "1234567", "123|456|7", ""},
        {gpt_4o,
         "\xc2\xb2\xc2\xbd"
         "12345",
         "\xc2\xb2\xc2\xbd"
         "1|234|5",
         ""},
        {gpt_4o, "  \n\n x", "  \n\n| x", ""},
        {gpt_4o, "helloWorld fooBARBaz", "hello|World| foo|BARBaz", ""},
        {gpt_4o, "!ABC ?abc", "!ABC| ?|abc", ""},
        {gpt_4o, "'s", "'s", ""},
        {gpt_4o, "'sx", "'sx", ""},
        {gpt_4o,
         "\xc2\xaa"
         "A",
         "\xc2\xaa|A", ""},
        {gpt_4o,
         "A\xc2\xaa"
         "A",
         "A\xc2\xaa|A", ""},
        {gpt_4o, "\xd9\x85\xd8\xb1\xd8\xad\xd8\xa8\xd8\xa7",
         "\xd9\x85\xd8\xb1\xd8\xad\xd8\xa8\xd8\xa7", ""},
        {gpt_4o, "\xe0\xa4\x95\xe0\xa4\xbf\xe0\xa4\xa4\xe0\xa4\xbe\xe0\xa4\xac ABC",
         "\xe0\xa4\x95\xe0\xa4\xbf\xe0\xa4\xa4\xe0\xa4\xbe\xe0\xa4\xac| ABC", ""},
        {nemo,
         "ABC\xe4\xb8\xad"
         "DEF",
         "ABC\xe4\xb8\xad|DEF", ""},
        {nemo, "it's IT'S I'LL'VE", "it|'s| IT|'S| I|'LL|'VE", ""},
        {nemo, "//\r\n/a", "//\r\n/|a", ""},
        {nemo, "1234567", "1|2|3|4|5|6|7", ""},
        {nemo, "helloWorld fooBARBaz", "hello|World| foo|BARBaz", ""},
        {"\\p{N}", "ab12 c 3d", "ab|1|2| c |3|d", ""},
        {"\\p{N}", "1", "1", ""},
        {"\\p{N}", "ab12 c \xc2\xb2", "ab|12| c |\xc2\xb2", "c"},
        {"_", "a_b__c_", "a|_b|_|_c|_", "nl"},
        {"_", "_", "_", "nl"},
        /* each way of cutting */
        {"x", "axxbx", "a|x|x|b|x", "i"},
        {"x", "axxbx", "a|b", "r"},
        {"x", "axxbx", "x|x|x", "r!"},
        {"x", "axxbx", "ax|x|bx", "p"},
        {"x", "axxbx", "a|x|xb|x", "p!"},
        {"x", "axxbx", "a|x|xb|x", "n"},
        {"x", "axxbx", "ax|x|bx", "n!"},
        {"x", "axxbx", "a|xx|b|x", "c"},
        {"x", "", "", "c"},
        {".", "a.b", "a|b", "rl"},
        {".", "a.b", "", "r"},
        /* empty matches */
        {"(?=[A-Z])", "aBcD", "a|Bc|D", "i"},
        {"x*", "axxb", "a|xx|b", "i"},
        {"x*", "\xc3\xa9\xe4\xb8\xad", "\xc3\xa9|\xe4\xb8\xad", "i"},
        /* where Oniguruma and PCRE2 differ */
        {"\\s+", "a\xe1\xa0\x8e b", "a\xe1\xa0\x8e|b", "r"},
        {"[^\\S\\n]+", "a \nb\t", "a|\nb", "r"},
        {"\\w+", "e\xcc\x81_1\xc2\xb2\xe2\x93\x90 \xe2\x91\xa0", "e\xcc\x81_1\xc2\xb2\xe2\x93\x90",
         "r!"},
        {"[\\w'-]+", "it's-a\xc2\xb2 b", "it's-a|b", "r!"},
        {" ?[^(\\s|[.,])]+", "a (b.c", "a|b|c", "r!"},
        {"[a[bS]]+", "xabSy", "abS", "r!"},
        {"^.$", "ab\nc\nd", "c|d", "r!"},
        {"\\A.|.\\z", "ab\nc", "a|c", "r!"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char shown[128];
        cut(shown, cases[i].pattern, *cases[i].how ? cases[i].how : "i", cases[i].text);
        cr_expect_str_eq(shown, cases[i].want, "case %zu", i);
    }
}

/* What PCRE2 might read otherwise, and what is no pattern: by what is wrong with it. */
Test(words, patterns_that_are_refused)
{
    static const char *const wrong[][2] = {
        {"a\\bc", "\\b"},      {"[[:alpha:]]", "[:alpha"}, {"[a&&b]", "&&"},  {"(?i)a", "(?i)"},
        {"(*UTF)a", "(*UTF)"}, {"a{1,2}+", "}+"},          {"a{,2}", "{,"},   {"[x-[yz]]", "[yz]"},
        {"[[x]-y]", "]-y"},    {"[a[-x]]", "[-x]"},        {"[a[x-]]", "]]"}, {"[a[^b]]", "[^b"},
        {"[]a]", "[]a"},       {"[\\W]", "\\W"},           {"\\p", "\\p"},    {"\\pL", "\\pL"},
        {"a\\", "\\"},         {"(a", "parenthes"},        {"[a", "["},       {"\\p{X}", "\\p{X}"},
        {"\\p{L", "\\p{L"},    {"[\\s-z]", "range"}};

    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct words w = {0};
        struct err e = {""};
        cr_expect_eq(words_open(&w, wrong[i][0], false, &e), E_IO, "%s", wrong[i][0]);
        cr_expect(strstr(e.msg, wrong[i][1]) && strstr(e.msg, "  -> "), "%s: %s", wrong[i][0],
                  e.msg);
        words_close(&w);
    }
}

/* A pattern that would try all ways to cut a text ends. */
Test(words, patterns_that_take_too_long, .timeout = 120)
{
    struct words w = {0};
    struct word_scan s;
    struct err e = {""};
    char text[4096];

    memset(text, 'a', sizeof(text));
    cr_assert_eq(words_open(&w, "(?:a+)+b", false, &e), OK, "%s", e.msg);
    text[sizeof(text) - 1] = 'c'; /* and not before the search: a b further on */
    text[sizeof(text) - 2] = 'b';
    memcpy(text + 2000, "cb", 2);
    cr_expect_eq(word_scan(&s, &w, text, 2001, &e), OK, "%s", e.msg); /* no b at all */
    cr_expect_eq(word_scan(&s, &w, text + 1, sizeof(text) - 1, &e), E_IO);
    cr_expect(strstr(e.msg, "steps") && strstr(e.msg, "  -> "), "%s", e.msg);
    words_close(&w);
}
