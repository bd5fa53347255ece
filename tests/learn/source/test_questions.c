/* SPDX-License-Identifier: MIT
 *
 * Questions of choice as tokens. What lm-evaluation-harness makes of such: scripts/crosscheck/choices.py. */
#include "harness/learn/source/questions.h"
#include "tests/support/tiny_tokenizer.h"

TestSuite(questions, .init = folder_make, .fini = folder_remove);

enum { BEGIN = 260, T = 256, HE, THE };

/* Of the tiny tokenizer, whose texts <|end|> begins, or bytes. */
static enum status make(struct questions *q, struct texts *t, const char *lines, int most,
                        bool tokenizes, struct err *e)
{
    const struct corpus c = {.bytes = (const uint8_t *)lines, .n = strlen(lines), .vocab = 256};
    const struct options o = {.choices = "file"};

    *q = (struct questions){0};
    const enum status st = questions_make(q, t, &c, &o, tokenizes ? folder : NULL, most, e);
    kept_copy(q, sizeof(*q)), kept_copy(t, sizeof(*t));
    return st;
}

#define Q(context, list, gold)                                                                     \
    "{\"context\":" context ",\"continuations\":[" list "],\"gold\":" gold "}"

Test(questions, tokens_of_context_and_continuation)
{
    static const struct {
        const char *line;
        bool front;
        int most, given, n;
        int32_t ids[6];
        double chars, bytes;
    } cases[] = {
        {Q("\"a the\"", "\"y\"", "0"), false, 9, 2, 3, {'a', THE, 'y'}, 1, 1},
        {Q("\"a \"", "\"the\"", "0"), false, 9, 1, 2, {'a', THE}, 3, 3}, /* the space is moved */
        {Q("\"\\u00a0\\u001c \"", "\"b\"", "0"),
         false,
         9,
         1,
         6,
         {BEGIN, 0xc2, 0xa0, 28, 32, 'b'},
         1,
         1},
        {Q("\"a t\"", "\"hexy\"", "0"),
         false,
         9,
         2,
         4,
         {'a', T, 'x', 'y'},
         4,
         4}, /* merged across */
        {Q("\"a\"", "\"\\u00e9\\u20ac\"", "0"),
         false,
         9,
         1,
         6,
         {'a', 0xc3, 0xa9, 0xe2, 0x82, 0xac},
         2,
         5},
        {Q("\"\"", "\"<|end|>he\"", "0"), false, 9, 1, 2, {BEGIN, HE}, 9, 9},
        {Q("\"abcdef\"", "\"gh\"", "0"), false, 3, 2, 4, {'e', 'f', 'g', 'h'}, 2, 2},
        {Q("\"\"", "\"abc\"", "0"), false, 3, 1, 4, {BEGIN, 'a', 'b', 'c'}, 3, 3},
        {Q("\"he\"", "\" the\"", "0"), true, 9, 2, 3, {BEGIN, HE, THE}, 4, 4},
        {Q("\"<|end|>he\"", "\" the\"", "0"),
         true,
         9,
         2,
         3,
         {BEGIN, HE, THE},
         4,
         4}, /* not twice */
        {Q("\" \"", "\"a\"", "0"), true, 9, 1, 3, {BEGIN, ' ', 'a'}, 1, 1},
    };

    tiny_put(tiny_tokenizer());
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct questions q;
        struct texts t;
        folder_put_text("tokenizer_config.json",
                        cases[i].front ? "{\"add_bos_token\":true,\"bos_token\":\"<|end|>\"}"
                                       : "{\"bos_token\":\"<|end|>\"}");
        MUST(make(&q, &t, cases[i].line, cases[i].most, true, &failure));
        cr_assert_eq(t.n, (size_t)cases[i].n, "case %zu: %zu", i, t.n);
        cr_expect_arr_eq(t.ids, cases[i].ids, t.n * sizeof(int32_t), "case %zu", i);
        const double own = cases[i].n - cases[i].given,
                     want[] = {1, cases[i].chars, cases[i].bytes, own};
        cr_expect_arr_eq(q.continuation[0].length, want, sizeof(want), "case %zu", i);
        cr_expect_eq(t.docs[0].given, cases[i].given, "case %zu", i);
    }
}

Test(questions, what_is_no_question)
{
    static const char *const cases[][2] = {
        {"", "not JSON"},
        {"[1]", "no context"},
        {Q("3", "\"a\"", "0"), "no context"},
        {Q("\"a\"", "", "0"), "continuations"},
        {Q("\"a\"", "\"a\",\"\"", "0"), "continuation 1"},
        {Q("\"a\"", "4", "0"), "continuation 0"},
        {Q("\"a\"", "\"a\"", "null"), "gold"},
        {Q("\"a\"", "\"a\"", "1"), "gold"},
        {Q("\"a\"", "\"a\"", "-1"), "gold"},
        {Q("\"\"", "\"a\"", "0"), "begins a text"},
        {Q("\"a\"", "\"abcd\"", "0"), "4 tokens of at most 3"},
        {Q("\"a t\"", "\"he\"", "0"), "no token"}, /* of the tokenizer */
    };
    struct questions q;
    struct texts t;

    tiny_put(tiny_tokenizer());
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *const lines =
            kept(need_text("%s\n%s\n", Q("\"a\"", "\"b\"", "0"), cases[i][0]));
        REFUSED(make(&q, &t, lines, 3, i + 1 == ARRAY_LEN(cases), &failure), E_IO,
                "file: line 2: ", cases[i][1], "  -> ");
    }
}
