/* SPDX-License-Identifier: MIT
 *
 * Words: each rule of the patterns, written out by hand from their definitions. */
#include "harness/tokens/words.h"
#include "tests/support/failure.h"

/* Words with bars between; `literal` and how they are cut: a letter each. */
static void cut(char *shown, const char *pattern, const char *how, const char *text)
{
    static const char letters[] = "irpnc"; /* of enum split */
    struct words w = {0};
    struct word_scan s;
    const char *word;
    size_t n, used = 0;

    *shown = '\0';
    if (pattern)
        MUST(words_open(&w, pattern, strchr(how, 'l'), &failure));
    w.split = (enum split)(strchr(letters, *how) - letters);
    w.invert = strchr(how, '!');
    MUST(word_scan(&s, &w, text, strlen(text), &failure));
    for (;;) {
        MUST(word_next(&s, &word, &n, &failure));
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
        {WORDS_GPT2, "\u00e9\u00b2\u20ac", "\u00e9|\u00b2|\u20ac", ""},
        {WORDS_LLAMA3, "it'S \u00e9'\u017f", "it|'S| \u00e9|'\u017f", ""},
        {WORDS_LLAMA3, "a12345", "a|123|45", ""},
        {WORDS_LLAMA3, " 12", " |12", ""},
        {WORDS_LLAMA3, "(abc)\r\n\nx", "(abc|)\r\n\n|x", ""},
        {WORDS_LLAMA3, "\tx ?y", "\tx| ?|y", ""},
        {WORDS_LLAMA3, "a \n b", "a| \n| b", ""},
        {WORDS_LLAMA3, "a  \n\n  b", "a|  \n\n| | b", ""},
        {WORDS_LLAMA3, "a  ", "a|  ", ""},
        {WORDS_QWEN, "a123 4", "a|1|2|3| |4", ""},
        /* what the package tokenizers 0.23 makes of the patterns */
        {WORDS_GPT_4O, "ABCdef", "ABCdef", ""},
        {WORDS_GPT_4O, "AbC", "Ab|C", ""},
        {WORDS_GPT_4O, "ABC", "ABC", ""},
        {WORDS_GPT_4O, "\u0301ABC", "\u0301|ABC", ""},
        {WORDS_GPT_4O, " \u0301ABC", " \u0301|ABC", ""},
        {WORDS_GPT_4O, "a\u0301b", "a\u0301b", ""},
        {WORDS_GPT_4O, "A\u0301B", "A\u0301|B", ""},
        {WORDS_GPT_4O, "\u4e2d\u6587ABC", "\u4e2d\u6587|ABC", ""},
        {WORDS_GPT_4O, "ABC\u4e2d", "ABC\u4e2d", ""},
        {WORDS_GPT_4O, "ABC\u4e2dDEF", "ABC\u4e2d|DEF", ""},
        {WORDS_GPT_4O, "\u01c5abc", "\u01c5abc", ""},
        {WORDS_GPT_4O, "abc\u01c5", "abc|\u01c5", ""},
        {WORDS_GPT_4O, "\u02b0ABC", "\u02b0|ABC", ""},
        {WORDS_GPT_4O, "ABC\u02b0D", "ABC\u02b0|D", ""},
        {WORDS_GPT_4O, "it's IT'S I'LL'VE", "it's| IT'S| I'LL|'VE", ""},
        {WORDS_GPT_4O, "x'\u017f", "x'\u017f", ""},
        {WORDS_GPT_4O, "//\r\n/a", "//\r\n/|a", ""},
        {WORDS_GPT_4O, "a/b//\n", "a|/b|//\n", ""},
        {WORDS_GPT_4O, "1234567", "123|456|7", ""},
        {WORDS_GPT_4O, "\u00b2\u00bd12345", "\u00b2\u00bd1|234|5", ""},
        {WORDS_GPT_4O, "  \n\n x", "  \n\n| x", ""},
        {WORDS_GPT_4O, "helloWorld fooBARBaz", "hello|World| foo|BARBaz", ""},
        {WORDS_GPT_4O, "!ABC ?abc", "!ABC| ?|abc", ""},
        {WORDS_GPT_4O, "'s", "'s", ""},
        {WORDS_GPT_4O, "'sx", "'sx", ""},
        {WORDS_GPT_4O, "\u00aaA", "\u00aa|A", ""},
        {WORDS_GPT_4O, "A\u00aaA", "A\u00aa|A", ""},
        {WORDS_GPT_4O, "\u0645\u0631\u062d\u0628\u0627", "\u0645\u0631\u062d\u0628\u0627", ""},
        {WORDS_GPT_4O, "\u0915\u093f\u0924\u093e\u092c ABC", "\u0915\u093f\u0924\u093e\u092c| ABC",
         ""},
        {WORDS_NEMO, "ABC\u4e2dDEF", "ABC\u4e2d|DEF", ""},
        {WORDS_NEMO, "it's IT'S I'LL'VE", "it|'s| IT|'S| I|'LL|'VE", ""},
        {WORDS_NEMO, "//\r\n/a", "//\r\n/|a", ""},
        {WORDS_NEMO, "1234567", "1|2|3|4|5|6|7", ""},
        {WORDS_NEMO, "helloWorld fooBARBaz", "hello|World| foo|BARBaz", ""},
        {"\\p{N}", "ab12 c 3d", "ab|1|2| c |3|d", ""},
        {"\\p{N}", "1", "1", ""},
        {"\\p{N}", "ab12 c \u00b2", "ab|12| c |\u00b2", "c"},
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
        {"x*", "\u00e9\u4e2d", "\u00e9|\u4e2d", "i"},
        /* where Oniguruma and PCRE2 differ */
        {"\\s+", "a\u180e b", "a\u180e|b", "r"},
        {"[^\\S\\n]+", "a \nb\t", "a|\nb", "r"},
        {"\\w+", "e\u0301_1\u00b2\u24d0 \u2460", "e\u0301_1\u00b2\u24d0", "r!"},
        {"[\\w'-]+", "it's-a\u00b2 b", "it's-a|b", "r!"},
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
        REFUSED(words_open(&w, wrong[i][0], false, &failure), E_IO, wrong[i][1], "  -> ");
        words_close(&w);
    }
}

/* A pattern that would try all ways to cut a text ends. */
Test(words, patterns_that_take_too_long, .timeout = 120)
{
    struct words w = {0};
    struct word_scan s;
    char text[4096];

    memset(text, 'a', sizeof(text));
    MUST(words_open(&w, "(?:a+)+b", false, &failure));
    text[sizeof(text) - 1] = 'c'; /* and not before the search: a b further on */
    text[sizeof(text) - 2] = 'b';
    memcpy(text + 2000, "cb", 2);
    cr_expect_eq(word_scan(&s, &w, text, 2001, &failure), OK, "%s", failure.msg); /* no b at all */
    REFUSED(word_scan(&s, &w, text + 1, sizeof(text) - 1, &failure), E_IO, "steps", "  -> ");
    words_close(&w);
}
