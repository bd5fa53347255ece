/* SPDX-License-Identifier: MIT
 *
 * Words: each rule of the patterns, written out by hand from their definitions. */
#include "harness/tokens/words.h"

#include "harness/tokens/unicode.h"

#include <criterion/criterion.h>
#include <string.h>

/* Words with bars between. */
static void cut(char *shown, enum words kind, const char *text)
{
    struct word_scan s = {kind, text, text + strlen(text), "_"};
    const char *word, *end = text;
    size_t n, used = 0;

    *shown = '\0';
    while (word_next(&s, &word, &n)) {
        cr_assert_eq(word, end, "\"%s\": words leave nothing out", text);
        cr_assert_gt(n, 0);
        end = word + n;
        used += (size_t)sprintf(shown + used, "%s%.*s", used ? "|" : "", (int)n, word);
    }
    cr_assert_eq(*end, '\0');
}

Test(words, rules)
{
    static const struct {
        enum words kind;
        const char *text, *want;
    } cases[] = {
        {WORDS_WHOLE, "a b  c", "a b  c"},
        {WORDS_GPT2, "", ""},
        {WORDS_GPT2, "it's we'll I'M", "it|'s| we|'ll| I|'|M"},
        {WORDS_GPT2, "a12 345?! b", "a|12| 345|?!| b"},
        {WORDS_GPT2, "a   b", "a|  | b"},
        {WORDS_GPT2, "a  \n", "a|  \n"},
        {WORDS_GPT2, "a\nb", "a|\n|b"},
        {WORDS_GPT2, " \t\tx", " \t|\t|x"},
        {WORDS_GPT2, "\xc3\xa9\xc2\xb2\xe2\x82\xac", "\xc3\xa9|\xc2\xb2|\xe2\x82\xac"},
        {WORDS_GPT4, "it'S \xc3\xa9'\xc5\xbf", "it|'S| \xc3\xa9|'\xc5\xbf"},
        {WORDS_GPT4, "a12345", "a|123|45"},
        {WORDS_GPT4, " 12", " |12"},
        {WORDS_GPT4, "(abc)\r\n\nx", "(abc|)\r\n\n|x"},
        {WORDS_GPT4, "\tx ?y", "\tx| ?|y"},
        {WORDS_GPT4, "a \n b", "a| \n| b"},
        {WORDS_GPT4, "a  \n\n  b", "a|  \n\n| | b"},
        {WORDS_GPT4, "a  ", "a|  "},
        {WORDS_QWEN, "a123 4", "a|1|2|3| |4"},
        /* what the package tokenizers 0.23 makes of the patterns */
        {WORDS_GPT4O, "ABCdef", "ABCdef"},
        {WORDS_GPT4O, "AbC", "Ab|C"},
        {WORDS_GPT4O, "ABC", "ABC"},
        {WORDS_GPT4O,
         "\xcc\x81"
         "ABC",
         "\xcc\x81|ABC"},
        {WORDS_GPT4O,
         " \xcc\x81"
         "ABC",
         " \xcc\x81|ABC"},
        {WORDS_GPT4O,
         "a\xcc\x81"
         "b",
         "a\xcc\x81"
         "b"},
        {WORDS_GPT4O,
         "A\xcc\x81"
         "B",
         "A\xcc\x81|B"},
        {WORDS_GPT4O,
         "\xe4\xb8\xad\xe6\x96\x87"
         "ABC",
         "\xe4\xb8\xad\xe6\x96\x87|ABC"},
        {WORDS_GPT4O, "ABC\xe4\xb8\xad", "ABC\xe4\xb8\xad"},
        {WORDS_GPT4O,
         "ABC\xe4\xb8\xad"
         "DEF",
         "ABC\xe4\xb8\xad|DEF"},
        {WORDS_GPT4O,
         "\xc7\x85"
         "abc",
         "\xc7\x85"
         "abc"},
        {WORDS_GPT4O, "abc\xc7\x85", "abc|\xc7\x85"},
        {WORDS_GPT4O,
         "\xca\xb0"
         "ABC",
         "\xca\xb0|ABC"},
        {WORDS_GPT4O,
         "ABC\xca\xb0"
         "D",
         "ABC\xca\xb0|D"},
        {WORDS_GPT4O, "it's IT'S I'LL'VE", "it's| IT'S| I'LL|'VE"},
        {WORDS_GPT4O, "x'\xc5\xbf", "x'\xc5\xbf"},
        {WORDS_GPT4O, "//\r\n/a", "//\r\n/|a"},
        {WORDS_GPT4O, "a/b//\n", "a|/b|//\n"},
        {WORDS_GPT4O, "1234567", "123|456|7"},
        {WORDS_GPT4O,
         "\xc2\xb2\xc2\xbd"
         "12345",
         "\xc2\xb2\xc2\xbd"
         "1|234|5"},
        {WORDS_GPT4O, "  \n\n x", "  \n\n| x"},
        {WORDS_GPT4O, "helloWorld fooBARBaz", "hello|World| foo|BARBaz"},
        {WORDS_GPT4O, "!ABC ?abc", "!ABC| ?|abc"},
        {WORDS_GPT4O, "'s", "'s"},
        {WORDS_GPT4O, "'sx", "'sx"},
        {WORDS_GPT4O,
         "\xc2\xaa"
         "A",
         "\xc2\xaa|A"},
        {WORDS_GPT4O,
         "A\xc2\xaa"
         "A",
         "A\xc2\xaa|A"},
        {WORDS_GPT4O, "\xd9\x85\xd8\xb1\xd8\xad\xd8\xa8\xd8\xa7",
         "\xd9\x85\xd8\xb1\xd8\xad\xd8\xa8\xd8\xa7"},
        {WORDS_GPT4O, "\xe0\xa4\x95\xe0\xa4\xbf\xe0\xa4\xa4\xe0\xa4\xbe\xe0\xa4\xac ABC",
         "\xe0\xa4\x95\xe0\xa4\xbf\xe0\xa4\xa4\xe0\xa4\xbe\xe0\xa4\xac| ABC"},
        {WORDS_TEKKEN,
         "ABC\xe4\xb8\xad"
         "DEF",
         "ABC\xe4\xb8\xad|DEF"},
        {WORDS_TEKKEN, "it's IT'S I'LL'VE", "it|'s| IT|'S| I|'LL|'VE"},
        {WORDS_TEKKEN, "//\r\n/a", "//\r\n/|a"},
        {WORDS_TEKKEN, "1234567", "1|2|3|4|5|6|7"},
        {WORDS_TEKKEN, "helloWorld fooBARBaz", "hello|World| foo|BARBaz"},
        {WORDS_DIGIT, "ab12 c 3d", "ab|1|2| c |3|d"},
        {WORDS_DIGIT, "1", "1"},
        {WORDS_DIGITS, "ab12 c \xc2\xb2", "ab|12| c |\xc2\xb2"},
        {WORDS_MARKED, "a_b__c_", "a|_b|_|_c|_"},
        {WORDS_MARKED, "_", "_"},
    };

    if (unicode_ready(NULL) != OK)
        cr_skip_test("utf8proc is not built in");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char shown[128];
        cut(shown, cases[i].kind, cases[i].text);
        cr_expect_str_eq(shown, cases[i].want, "case %zu", i);
    }
}

Test(words, patterns_by_their_text)
{
    enum words kind = WORDS_WHOLE;

    cr_expect(!words_of_pattern("\\s+", &kind) && kind == WORDS_WHOLE);
    cr_expect(words_of_pattern("'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|"
                               "\\s+(?!\\S)|\\s+",
                               &kind) &&
              kind == WORDS_GPT2);
    cr_expect(words_of_pattern("[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*"
                               "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+|[^\\r\\n\\p{L}\\p{N}]?"
                               "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+"
                               "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*|\\p{N}| ?[^\\s\\p{L}\\p{N}]+"
                               "[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
                               &kind) &&
              kind == WORDS_TEKKEN);
    cr_expect(words_of_pattern(words_pattern(WORDS_GPT4O), &kind) && kind == WORDS_GPT4O);
    cr_expect_null(words_pattern(WORDS_MARKED));
}
