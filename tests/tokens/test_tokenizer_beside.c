/* SPDX-License-Identifier: MIT
 *
 * What the files beside a tokenizer say of it: what begins a text, and whose rules are meant. */
#include "tests/support/tiny_tokenizer.h"

TestSuite(tokenizer_beside, .init = folder_make, .fini = folder_remove);

/* These two files alone are gpt2's: what stands beside them may say that they are another's. */
Test(tokenizer_beside, vocab_and_merges_of_others)
{
    static const struct {
        const char *name, *text, *part;
    } wrong[] = {
        {"config.json", "{\"model_type\":\"qwen2\"}", "qwen2"},
        {"config.json", "{\"model_type\":\"llama\"}", "llama"},
        {"config.json", "{", "config.json"},
        {"tokenizer_config.json", "{\"tokenizer_class\":\"Qwen2Tokenizer\"}", "Qwen2Tokenizer"},
        {"tokenizer_config.json", "{\"add_prefix_space\":true}", "add_prefix_space"},
        {"added_tokens.json", "{\"<x>\":260}", "added_tokens.json"},
    };
    tiny_put_json("vocab.json", tiny_vocab());
    folder_put_text("merges.txt", "\xc4\xa0 t\nh e\n\xc4\xa0t he\n");
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        folder_put_text(wrong[i].name, wrong[i].text);
        expect_refused(folder, wrong[i].part, wrong[i].text);
        remove(in_folder(wrong[i].name));
    }
    folder_put_text("config.json", "{\"model_type\":\"gpt2\"}");
    folder_put_text("tokenizer_config.json", "{\"tokenizer_class\":\"GPT2TokenizerFast\"}");
    must_open(folder);
}

/* <|end|> 260 and <eos> 261, and the first in front of a text, or nothing. */
static void put_two_added(bool in_front)
{
    json_t *const all = tiny_tokenizer();

    json_array_append_new(
        json_object_get(all, "added_tokens"),
        json_pack("{s:i,s:s,s:b}", "id", 261, "content", "<eos>", "normalized", 0));
    if (in_front)
        json_object_set_new(
            all, "post_processor",
            json_loads(
                "{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"e\"}},{"
                "\"Sequence\":{\"id\":\"A\"}}],\"special_tokens\":{\"e\":{\"ids\":[260]}}}",
                0, NULL));
    tiny_put(all);
}

/* What begins a text, by the files beside tokenizer.json: n ids in front, the first of them, and
 * the one where one must be. */
Test(tokenizer_beside, what_the_files_beside_it_say)
{
    static const struct {
        bool puts; /* tokenizer.json, 260 */
        const char *config, *map, *model;
        int n, first, begin;
        enum switched switched;
    } cases[] = {
        {false, NULL, NULL, NULL, 0, 0, -1, SWITCHED_NOT},
        {true, NULL, NULL, NULL, 1, 260, 260, SWITCHED_NOT},
        {false, NULL, NULL, "{\"bos_token_id\":3,\"eos_token_id\":4}", 0, 0, 3, SWITCHED_NOT},
        {false, NULL, NULL, "{\"eos_token_id\":[4,5]}", 0, 0, 4, SWITCHED_NOT},
        {true, NULL, NULL, "{\"bos_token_id\":3}", 1, 260, 260, SWITCHED_NOT},
        {false, "{\"bos_token\":null,\"eos_token\":\"<eos>\"}", NULL, "{\"bos_token_id\":3}", 0, 0,
         261, SWITCHED_NOT},
        {false, "{\"bos_token\":{\"content\":\"<|end|>\"},\"eos_token\":\"<eos>\"}", NULL,
         "{\"bos_token_id\":3}", 0, 0, 260, SWITCHED_NOT},
        {false, "{\"bos_token\":null}", NULL, "{\"bos_token_id\":3}", 0, 0, -1, SWITCHED_NOT},
        {false, "{}", "{\"eos_token\":\"<eos>\"}", "{\"bos_token_id\":3}", 0, 0, 261, SWITCHED_NOT},
        {true, "{\"add_bos_token\":false,\"bos_token\":\"<|end|>\"}", NULL, NULL, 0, 0, 260,
         SWITCHED_OFF},
        {true, "{\"add_bos_token\":true,\"bos_token\":\"<|end|>\"}", NULL, NULL, 1, 260, 260,
         SWITCHED_NOT},
        {false, "{\"add_bos_token\":true,\"bos_token\":\"<|end|>\"}", NULL, NULL, 1, 260, 260,
         SWITCHED_ON},
        {false, "{\"add_bos_token\":false}", NULL, NULL, 0, 0, -1, SWITCHED_NOT},
        {false, NULL, "{\"add_bos_token\":true,\"bos_token\":\"<|end|>\"}", NULL, 0, 0, 260,
         SWITCHED_NOT}, /* its switches say nothing */
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        int n;
        put_two_added(cases[i].puts);
        folder_put_text("tokenizer_config.json", cases[i].config ? cases[i].config : "{}");
        folder_put_text("special_tokens_map.json", cases[i].map ? cases[i].map : "{}");
        folder_put_text("config.json", cases[i].model ? cases[i].model : "{}");
        struct tokenizer *const t = must_open(folder);
        const int32_t *const front = tokenizer_prefix(t, &n);
        cr_expect_eq(n, cases[i].n, "case %zu: %d", i, n);
        cr_expect(n == 0 || front[0] == cases[i].first, "case %zu", i);
        cr_expect_eq(tokenizer_begin(t), cases[i].begin, "case %zu: %d", i, tokenizer_begin(t));
        cr_expect_eq(tokenizer_switched(t), cases[i].switched, "case %zu", i);
    }
}

/* Programs add what these files name to the tokenizer, and cut it out of texts. */
Test(tokenizer_beside, files_beside_it_that_contradict)
{
    static const struct {
        const char *name, *text, *part; /* NULL: none */
    } cases[] = {
        {"tokenizer_config.json", "{\"add_eos_token\":true}", "add_eos_token"},
        {"tokenizer_config.json", "{\"add_prefix_space\":true}", "add_prefix_space"},
        {"tokenizer_config.json", "{\"add_prefix_space\":false}", NULL},
        {"tokenizer_config.json", "{\"bos_token\":\"<x>\"}", "<x>"},
        {"tokenizer_config.json", "{\"mask_token\":{\"content\":\"<x>\"}}", "<x>"},
        {"tokenizer_config.json", "{\"eos_token\":{\"content\":\"<eos>\",\"rstrip\":true}}",
         "rstrip"},
        {"tokenizer_config.json", "{\"additional_special_tokens\":[\"<eos>\",\"<x>\"]}", "<x>"},
        {"tokenizer_config.json", "{\"extra_special_tokens\":{\"image\":\"<x>\"}}", "<x>"},
        {"tokenizer_config.json", "{\"added_tokens_decoder\":{\"262\":{\"content\":\"<x>\"}}}",
         "<x>"},
        {"tokenizer_config.json",
         "{\"added_tokens_decoder\":{\"261\":{\"content\":\"<eos>\"}},\"pad_token\":null,"
         "\"unk_token\":\"<eos>\",\"additional_special_tokens\":[]}",
         NULL},
        {"tokenizer_config.json", "{\"add_bos_token\":1}", "add_bos_token"},
        {"tokenizer_config.json", "{\"add_bos_token\":\"true\"}", "add_bos_token"},
        {"tokenizer_config.json", "{\"add_eos_token\":\"true\"}", "add_eos_token"},
        {"tokenizer_config.json", "{\"add_prefix_space\":0}", "add_prefix_space"},
        {"tokenizer_config.json", "{\"add_bos_token\":null,\"add_eos_token\":null}", NULL},
        {"tokenizer_config.json", "{\"bos_token\":260}", "bos_token"},
        {"special_tokens_map.json", "{\"eos_token\":true}", "eos_token"},
        {"config.json", "{\"bos_token_id\":\"260\"}", "bos_token_id"},
        {"config.json", "{\"bos_token_id\":260.0,\"eos_token_id\":261}", "bos_token_id"},
        {"config.json", "{\"bos_token_id\":null,\"eos_token_id\":[true]}", "eos_token_id"},
        {"config.json", "{\"bos_token_id\":null,\"eos_token_id\":[260,261]}", NULL},
        {"tokenizer_config.json",
         "{\"add_bos_token\":false,\"model_max_length\":1000000000000000019884624838656}", NULL},
        {"config.json", "{\"bos_token_id\":1000000000000000019884624838656}", "bos_token_id"},
        {"tokenizer_config.json", "[", "tokenizer_config.json"},
        {"special_tokens_map.json", "{\"pad_token\":\"<x>\"}", "<x>"},
        {"added_tokens.json", "{\"<x>\":262}", "<x>"},
        {"added_tokens.json", "{\"<eos>\":261}", NULL},
    };

    put_two_added(false);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        folder_put_text(cases[i].name, cases[i].text);
        if (cases[i].part)
            expect_refused(folder, cases[i].part, cases[i].text);
        else
            must_open(folder);
        remove(in_folder(cases[i].name));
    }
}
