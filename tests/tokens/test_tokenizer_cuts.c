/* SPDX-License-Identifier: MIT
 *
 * Added tokens that take white space beside them, or that are none beside a letter of a word. What is
 * wanted is what the tokenizers package (0.23.3) makes of the same file. */
#include "tests/support/tiny_tokenizer.h"

TestSuite(tokenizer_cuts, .init = folder_make, .fini = folder_remove, .timeout = 120);

enum { FIRST = 260, MOST = 3 };

/* A text and l, r and s for lstrip, rstrip and single_word. */
struct token {
    const char *text, *flags;
};

/* Their ids are 260 and so on, in this order or the other. */
static struct tokenizer *open_with(const struct token *tokens, bool normalized, bool turned)
{
    json_t *const all = tiny_tokenizer(), *const list = json_array();
    int n = 0;

    while (n < MOST && tokens[n].text)
        n++;
    for (int i = 0; i < n; i++) {
        const struct token *const k = &tokens[turned ? n - 1 - i : i];
        json_array_append_new(list,
                              json_pack("{s:i,s:s,s:b,s:b,s:b,s:b,s:b}", "id", FIRST + i, "content",
                                        k->text, "lstrip", strchr(k->flags, 'l') != NULL, "rstrip",
                                        strchr(k->flags, 'r') != NULL, "single_word",
                                        strchr(k->flags, 's') != NULL, "normalized", normalized,
                                        "special", turned));
    }
    json_object_set_new(all, "added_tokens", list);
    tiny_put(all);
    return must_open(folder);
}

/* Bytes as they are, the tokens as X, Y and Z. */
static void expect_shown(const struct token *tokens, const char *text, const char *want)
{
    for (int how = 0; how < 4; how++) {
        const struct ids ids = encoded(open_with(tokens, how % 2, how / 2), text);
        char shown[64] = "";
        int n = 0;
        while (n < MOST && tokens[n].text)
            n++;
        cr_assert_lt(ids.n, sizeof(shown));
        for (size_t i = 0; i < ids.n; i++) {
            const int at = ids.v[i] - FIRST;
            shown[i] = (char)(at < 0 ? ids.v[i] : 'X' + (how / 2 ? n - 1 - at : at));
        }
        cr_expect_str_eq(shown, want, "\"%s\" with %s: \"%s\", not \"%s\" (%d)", text,
                         tokens->flags, shown, want, how);
    }
}

Test(tokenizer_cuts, white_space_and_words)
{
    static const char *const texts[] = {"a <x> b",
                                        "\t\n <x>\xe3\x80\x80\xc2\xa0z",
                                        "<x>",
                                        " <x> ",
                                        "a<x>",
                                        "_ <x>b",
                                        "a <x><x> .",
                                        " <x> <y> <x>",
                                        "\xc3\xa9<x>.<x>\xcc\x81", /* a letter, a mark */
                                        "<y><x>\n"};
    static const struct {
        const char *flags, *want[ARRAY_LEN(texts)];
    } cases[] = {
        {"",
         {"a X b", "\t\n X\xe3\x80\x80\xc2\xa0z", "X", " X ", "aX", "_ Xb", "a XX .", " X YX",
          "\xc3\xa9X.X\xcc\x81", "YX\n"}},
        {"l",
         {"aX b", "X\xe3\x80\x80\xc2\xa0z", "X", "X ", "aX", "_Xb", "aXX .", "X YX",
          "\xc3\xa9X.X\xcc\x81", "YX\n"}},
        {"r",
         {"a Xb", "\t\n Xz", "X", " X", "aX", "_ Xb", "a XX.", " XYX", "\xc3\xa9X.X\xcc\x81",
          "YX"}},
        {"lr", {"aXb", "Xz", "X", "X", "aX", "_Xb", "aXX.", "XYX", "\xc3\xa9X.X\xcc\x81", "YX"}},
        {"s",
         {"a X b", "\t\n X\xe3\x80\x80\xc2\xa0z", "X", " X ", "a<x>", "_ <x>b", "a XX .", " X YX",
          "\xc3\xa9<x>.<x>\xcc\x81", "YX\n"}},
        {"ls",
         {"aX b", "X\xe3\x80\x80\xc2\xa0z", "X", "X ", "a<x>", "_ <x>b", "aXX .", "X YX",
          "\xc3\xa9<x>.<x>\xcc\x81", "YX\n"}},
        {"rs",
         {"a Xb", "\t\n Xz", "X", " X", "a<x>", "_ <x>b", "a XX.", " XYX",
          "\xc3\xa9<x>.<x>\xcc\x81", "YX"}},
        {"lrs",
         {"aXb", "Xz", "X", "X", "a<x>", "_ <x>b", "aXX.", "XYX", "\xc3\xa9<x>.<x>\xcc\x81", "YX"}},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        for (size_t k = 0; k < ARRAY_LEN(texts); k++)
            expect_shown((const struct token[]){{"<x>", cases[i].flags}, {"<y>", "r"}, {"x>", ""}},
                         texts[k], cases[i].want[k]);
}

/* Tokens that are white space, or begin with it, behind one that takes it; one that covers another. */
Test(tokenizer_cuts, beside_each_other)
{
    static const struct {
        struct token tokens[MOST];
        const char *text, *want;
    } cases[] = {
        {{{"<x>", "r"}, {"\n", ""}}, "a<x> \n b", "aXY b"},
        {{{"<x>", "r"}, {"\n", ""}}, "a<x>\n  b", "aXY  b"},
        {{{"<x>", "r"}, {"\n", "l"}}, "a<x>\nb", "aXb"},
        {{{"<x>", "r"}, {" <x>", "l"}}, "a<x>  <x>b", "aXYb"},
        {{{"  ", "r"}}, "a    b", "aXXb"},
        {{{"  ", "lr"}}, "a    b", "aXb"},
        {{{"<x>", "s"}, {"<x>b", ""}}, "<x>b <x>", "Y X"},
        {{{"<x>", ""}, {"<x>b", "s"}}, "a<x>b <x>b", "a<x>b Y"},
        {{{"\n", "lr"}, {"<x>", "lr"}}, "a \n <x> \n b", "aXYb"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        expect_shown(cases[i].tokens, cases[i].text, cases[i].want);
}

/* Files beside it name the same flags, and a flag that is not named is false. */
Test(tokenizer_cuts, flags_of_files_beside_it)
{
    static const struct {
        const char *flags, *says;
        bool good;
    } cases[] = {
        {"r", "\"rstrip\":true,\"lstrip\":false", true},
        {"r", "\"rstrip\":true", true},
        {"r", "\"rstrip\":false", false},
        {"r", "\"lstrip\":false", false},
        {"r", "\"rstrip\":true,\"lstrip\":true", false},
        {"ls", "\"lstrip\":true,\"single_word\":true", true},
        {"ls", "\"lstrip\":true", false},
        {"", "\"normalized\":false", true},
        {"", "\"single_word\":true", false},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        for (int map = 0; map < 2; map++) {
            const char *const name = map ? "special_tokens_map.json" : "tokenizer_config.json";
            struct tokenizer *t;
            struct err e = {""};
            open_with((const struct token[MOST]){{"<x>", cases[i].flags}}, false, false);
            const char *const text =
                kept_text("{\"eos_token\":{\"content\":\"<x>\",%s}}", cases[i].says);
            folder_put_text(name, text);
            cr_expect_eq(tokenizer_open(&t, folder, &e), cases[i].good ? OK : E_IO,
                         "%s with %s: %s", text, cases[i].flags, e.msg);
            cr_expect(cases[i].good || (strstr(e.msg, "<x>") && strstr(e.msg, "  -> ")), "%s",
                      e.msg);
            tokenizer_close(t);
            remove(in_folder(name));
        }
}
