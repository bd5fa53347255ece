/* SPDX-License-Identifier: MIT
 *
 * Small tokenizers in the test's folder, in the form of published ones. */
#pragma once

#include "tmp_folder.h"
#include "tokenizers.h"
#include "utf8_put.h"

#include <jansson.h>

/* How files write byte b: the others than what can be seen in order from U+0100 on. */
static inline void tiny_byte_name(char name[static 5], int b)
{
    int32_t other = 0x100;

    for (int k = 0; k < b; k++)
        other += !((k >= 33 && k <= 126) || (k >= 161 && k <= 172) || k >= 174);
    const bool seen = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
    name[utf8_put(name, seen ? b : other)] = '\0';
}

/* Byte b has id b; then " t" 256, "he" 257, " the" 258 and, of no merge, "cat" 259. */
static inline json_t *tiny_vocab(void)
{
    json_t *const vocab = kept(json_object());
    char name[8];

    for (int b = 0; b < 256; b++) {
        tiny_byte_name(name, b);
        json_object_set_new(vocab, name, json_integer(b));
    }
    json_object_set_new(vocab, "\xc4\xa0t", json_integer(256));
    json_object_set_new(vocab, "he", json_integer(257));
    json_object_set_new(vocab, "\xc4\xa0the", json_integer(258));
    json_object_set_new(vocab, "cat", json_integer(259));
    return vocab;
}

/* gpt2's form, with <|end|> 260 as an added token. */
static inline json_t *tiny_tokenizer(void)
{
    return kept(json_pack("{s:[{s:i,s:s,s:b}],s:n,s:{s:s,s:b},s:n,s:{s:s},s:{s:s,s:o,s:[s,s,s]}}",
                          "added_tokens", "id", 260, "content", "<|end|>", "normalized", 0,
                          "normalizer", "pre_tokenizer", "type", "ByteLevel", "add_prefix_space", 0,
                          "post_processor", "decoder", "type", "ByteLevel", "model", "type", "BPE",
                          "vocab", tiny_vocab(), "merges", "\xc4\xa0 t", "h e", "\xc4\xa0t he"));
}

static inline void tiny_put_json(const char *name, const json_t *j)
{
    char *const text = kept(json_dumps(j, 0));

    cr_assert_not_null(text);
    folder_put_text(name, text);
}

static inline void tiny_put(const json_t *all) { tiny_put_json("tokenizer.json", all); }
