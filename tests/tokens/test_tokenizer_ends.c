/* SPDX-License-Identifier: MIT
 *
 * Which tokens end a text, by the files of a model and of its tokenizer. */
#include "tests/support/tiny_tokenizer.h"

TestSuite(tokenizer_ends, .init = folder_make, .fini = folder_remove);

static void put_or_remove(const char *name, const char *text)
{
    if (text)
        folder_put_text(name, text);
    else
        remove(in_folder(name));
}

static struct tokenizer *open_tiny(void)
{
    tiny_put(tiny_tokenizer());
    return must_open(folder);
}

/* The first file that names some decides. */
Test(tokenizer_ends, by_the_files_of_a_folder)
{
    static const struct {
        const char *generation, *model, *config, *map;
        struct ends want;
    } cases[] = {
        {NULL, NULL, NULL, NULL, {.n = 0}},
        {"{\"eos_token_id\":7}", "{\"eos_token_id\":8}", NULL, NULL, {{7}, 1}},
        {"{\"eos_token_id\":[260,3,999]}", NULL, NULL, NULL, {{260, 3, 999}, 3}},
        {"{\"eos_token_id\":null}", "{\"eos_token_id\":8}", NULL, NULL, {{8}, 1}},
        {"{}", "{\"eos_token_id\":[8,9]}", "{\"eos_token\":\"<|end|>\"}", NULL, {{8, 9}, 2}},
        {"{}", "{}", "{\"eos_token\":\"<|end|>\"}", NULL, {{260}, 1}},
        {NULL, NULL, "{\"bos_token\":\"<|end|>\"}", "{\"eos_token\":\"<|end|>\"}", {{260}, 1}},
        {NULL, NULL, "{\"eos_token\":\"<|end|>\"}", "{}", {{260}, 1}},
        {NULL, NULL, "{\"bos_token\":\"<|end|>\"}", NULL, {.n = 0}},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct ends ends;
        put_or_remove("generation_config.json", cases[i].generation);
        put_or_remove("config.json", cases[i].model);
        put_or_remove("tokenizer_config.json", cases[i].config);
        put_or_remove("special_tokens_map.json", cases[i].map);
        MUST(tokenizer_ends(open_tiny(), "", &ends, &failure));
        cr_expect_eq(ends.n, cases[i].want.n, "case %zu: %d", i, ends.n);
        for (int k = 0; k < ends.n; k++)
            cr_expect_eq(ends.id[k], cases[i].want.id[k], "case %zu: %d", i, ends.id[k]);
    }
}

/* A model's own folder stands before that of a tokenizer from elsewhere. */
Test(tokenizer_ends, the_models_folder_first)
{
    struct ends ends;

    const char *const path = in_folder("model");
    cr_assert_eq(mkdir(path, 0777), 0);
    folder_put_text("generation_config.json", "{\"eos_token_id\":5}");
    struct tokenizer *const t = open_tiny();
    MUST(tokenizer_ends(t, path, &ends, &failure));
    cr_expect(ends.n == 1 && ends.id[0] == 5);
    folder_put_text("model/config.json", "{\"eos_token_id\":6}");
    MUST(tokenizer_ends(t, path, &ends, &failure));
    cr_expect(ends.n == 1 && ends.id[0] == 6);
}

Test(tokenizer_ends, a_list_of_words_has_none)
{
    struct ends ends;

    const char *const path = in_folder("words");
    cr_assert_eq(mkdir(path, 0777), 0);
    folder_put_text("words/vocab.txt", "<eos>\n<unk>\na\n");
    folder_put_text("words/config.json", "{\"eos_token_id\":0}");
    MUST(tokenizer_ends(must_open(path), path, &ends, &failure));
    cr_expect_eq(ends.n, 0);
}

Test(tokenizer_ends, what_is_refused)
{
    static const struct {
        const char *text, *says;
    } wrong[] = {
        {"{\"eos_token_id\":\"<|end|>\"}", "eos_token_id is not a token"},
        {"{\"eos_token_id\":-1}", "eos_token_id is not a token"},
        {"{\"eos_token_id\":[1,2.5]}", "eos_token_id is not a token"},
        {"{\"eos_token_id\":4294967296}", "eos_token_id is not a token"},
        {"{\"eos_token_id\":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]}", "more than 16"},
        {"[]", "not a JSON object"},
    };

    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct ends ends;
        folder_put_text("generation_config.json", wrong[i].text);
        REFUSED(tokenizer_ends(open_tiny(), "", &ends, &failure), E_IO, wrong[i].says,
                "generation_config.json");
    }
}
