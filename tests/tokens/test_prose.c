/* SPDX-License-Identifier: MIT
 *
 * Texts before they are tokens: each rule on texts written by hand. */
#include "harness/tokens/prose.h"
#include "tests/support/compared.h"

static void expect_text(const struct bytes *got, const char *want)
{
    cr_expect_eq(got->n, strlen(want));
    cr_expect_str_eq(got->data, want);
    free(got->data);
}

Test(prose, two_line_ends_between_lines)
{
    static const char *const cases[][2] = {
        {"a\n\nb\n", "a\n\n\n\n\n\nb\n"}, {"a", "a"}, {"a\nb", "a\n\n\nb"}, {"", ""}};

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct bytes got;
        cr_assert_eq(prose_join(&got, cases[i][0], strlen(cases[i][0]), NULL), OK);
        expect_text(&got, cases[i][1]);
    }
}

/* Documents with bars between. */
static void expect_documents(const char *sep, const char *text, const char *want)
{
    struct documents d = {sep, text, text + strlen(text)};
    char got[256] = "";
    const char *at;
    size_t n, used = 0;

    while (document_next(&d, &at, &n))
        used += (size_t)sprintf(got + used, "%s%.*s", used ? "|" : "", (int)n, at);
    cr_expect_str_eq(got, want, "%s: %s", sep, got);
}

Test(prose, documents)
{
    expect_documents("none", "a\n\nb", "a\n\nb");
    expect_documents("line", "a\n\nb", "a\n|\n|b");
    expect_documents("blank", "a\nb\n\n \nc\n\nd", "a\nb\n\n \n|c\n\n|d");
    expect_documents("<end>", "a<end>b<end>", "a|b");
    expect_documents("wikitext", " \n = A b = \n \n x \n = = C = = \n y \n \n = D = \n z",
                     " \n = A b = \n \n x \n = = C = = \n y \n| \n = D = \n z");
    expect_documents("wikitext", "before\n\n = D = \nz\n = E = \n",
                     "before\n|\n = D = \nz\n = E = \n");
    expect_documents("none", "", "");
}

Test(prose, wikitext_as_it_was_written)
{
    static const char *const cases[][2] = {
        {"a @-@ b 1 @,@ 0 @.@ 5", "a-b 1,0.5"},
        {"a : b ; c . d ! e ? f , g", "a: b; c. d! e? f, g"},
        {"x ( a b ) [ c ] { d } \" e f \" ' g '", "x (a b) [c] {d} \"e f\" 'g'"},
        {"( ) (\xc2\xa0"
         "a\n b )",
         "() (a\nb)"},
        {"( a ( b ) c )", "(a ( b) c )"},
        {"it 's the boys ' = = = = A = = = B = = C", "it's the boys' ==== A === B == C"},
        {"20 \xc2\xb0 C \n up N times", "20\xc2\xb0"
                                        "C\nup 1 times"},
        {"/' 7/", "/'[0-9]/"},
        {" 's 's", "'s's"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct bytes got;
        cr_assert_eq(prose_detokenise(&got, cases[i][0], strlen(cases[i][0]), NULL), OK);
        expect_text(&got, cases[i][1]);
    }
}

Test(prose, words_between_white_space)
{
#define WORDS(text) prose_words(text, strlen(text))
    NUMBERS({WORDS(""), 1}, {WORDS("a"), 1}, {WORDS("a b"), 2}, {WORDS(" a b "), 4},
            {WORDS(" \n "), 2}, {WORDS("a\302\240b"), 2}, {WORDS("a\034\037b"), 2},
            {WORDS("a\xff b\xe2\x80"), 2});
}
