/* SPDX-License-Identifier: MIT
 *
 * Tokenizers as files describe them: what each part of a file does, and what is refused. */

#include "tests/support/tiny_tokenizer.h"

TestSuite(tokenizer, .init = folder_make, .fini = folder_remove);

static void expect_ids(const char *text, size_t n, const int32_t *want, size_t n_want)
{
    struct ids got = {0};

    MUST(tokenizer_encode(must_open(folder), text, n, &got, &failure));
    kept(got.v);
    cr_assert_eq(got.n, n_want, "\"%s\": %zu ids", text, got.n);
    for (size_t i = 0; i < n_want; i++)
        cr_expect_eq(got.v[i], want[i], "\"%s\": id %zu is %d", text, i, got.v[i]);
}
#define EXPECT_IDS(text, ...)                                                                      \
    expect_ids(text, sizeof(text) - 1, (const int32_t[]){__VA_ARGS__},                             \
               sizeof((const int32_t[]){__VA_ARGS__}) / sizeof(int32_t))

/* The file after a change to it: `path` leads to what becomes `value`. */
static void put_changed(const char *path, json_t *value)
{
    json_t *const all = tiny_tokenizer(), *at = all;
    const char *rest = path;

    cr_assert_not_null(all);
    for (size_t n; rest[n = strcspn(rest, ".")]; rest += n + 1) {
        const char *const key = kept_text("%.*s", (int)n, rest);
        at = json_is_array(at) ? json_array_get(at, (size_t)atoi(key)) : json_object_get(at, key);
    }
    if (value && json_is_array(at))
        json_array_set_new(at, (size_t)atoi(rest), value);
    else if (value)
        json_object_set_new(at, rest, value);
    tiny_put(all);
}

Test(tokenizer, merges_by_rank_in_words)
{
    put_changed("", NULL);
    EXPECT_IDS("the the", 't', 257, 258);
    EXPECT_IDS(" the<|end|> the", 258, 260, 258);
    EXPECT_IDS("cat", 'c', 'a', 't');
    EXPECT_IDS("\0\xc3\xa9", 0, 0xc3, 0xa9);
    expect_ids("", 0, NULL, 0);
}

Test(tokenizer, what_a_file_may_ask_for)
{
    put_changed("model.ignore_merges", json_true());
    EXPECT_IDS("cat", 259);
    put_changed("pre_tokenizer.add_prefix_space", json_true());
    EXPECT_IDS("the<|end|>the", 258, 260, 258);
    put_changed("normalizer", json_pack("{s:s}", "type", "NFC"));
    EXPECT_IDS("e\xcc\x81", 0xc3, 0xa9);
    put_changed("normalizer", json_pack("{s:s,s:{s:s},s:s}", "type", "Replace", "pattern", "String",
                                        "dog", "content", "he"));
    EXPECT_IDS("dog", 257);
    put_changed("model.merges.1", json_pack("[s,s]", "h", "e"));
    EXPECT_IDS("he", 257);
    put_changed("added_tokens.0.normalized", json_true());
    EXPECT_IDS("a<|end|>", 'a', 260);
}

/* Of two added tokens the longest that begins at the first place. */
Test(tokenizer, added_tokens)
{
    json_t *const all = tiny_tokenizer();
    json_array_append_new(
        json_object_get(all, "added_tokens"),
        json_pack("{s:i,s:s,s:b}", "id", 261, "content", "<|end|>x", "normalized", 0));
    json_array_append_new(json_object_get(all, "added_tokens"),
                          json_pack("{s:i,s:s,s:b}", "id", 262, "content", "  ", "normalized", 1));
    tiny_put(all);
    EXPECT_IDS("<|end|><|end|>x", 260, 261);
    EXPECT_IDS("a   b", 'a', 262, ' ', 'b');
}

Test(tokenizer, what_stands_in_front)
{
    put_changed("post_processor",
                json_loads("{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":"
                           "\"<|end|>\"}},{\"Sequence\":{\"id\":\"A\"}}],\"special_tokens\":"
                           "{\"<|end|>\":{\"ids\":[260]}}}",
                           0, NULL));
    struct tokenizer *const t = must_open(folder);
    int n;
    const int32_t *const front = tokenizer_prefix(t, &n);
    NUMBERS({n, 1}, {front[0], 260}, {tokenizer_vocab(t), 261});
}

Test(tokenizer, texts_that_are_no_utf8)
{
    put_changed("", NULL);
    struct ids got = {0};
    REFUSED(tokenizer_encode(must_open(folder), "ab\xff", 3, &got, &failure), E_IO, "byte 2");
    free(got.v);
}

#define SEQUENCE(parts) "{\"type\":\"Sequence\",\"pretokenizers\":[" parts "]}"
#define TEMPLATE(parts)                                                                            \
    "{\"type\":\"TemplateProcessing\",\"single\":[" parts "],\"special_tokens\":{\"e\":{\"ids\":"  \
    "[260]}}}"
#define GPT2                                                                                       \
    "\"'s|'t|'re|'ve|'m|'ll|'d| ?\\\\p{L}+| ?\\\\p{N}+| "                                          \
    "?[^\\\\s\\\\p{L}\\\\p{N}]+|\\\\s+(?!\\\\S)|"                                                  \
    "\\\\s+\""
#define GPT4                                                                                       \
    "\"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}{1,3}| ?"      \
    "[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+\""

/* Cutters one behind the other; the ids are those that the tokenizers package makes of the same
 * file. */
Test(tokenizer, cutters)
{
    static const struct {
        const char *cutters, *text;
        int n, ids[8];
    } cases[] = {
        {"{\"type\":\"Split\",\"pattern\":{\"Regex\":" GPT4
         "},\"behavior\":\"Isolated\",\"invert\":"
         "false},{\"type\":\"ByteLevel\",\"add_prefix_space\":true,\"use_regex\":false}",
         "the1the, the",
         7,
         {258, ' ', '1', 258, ' ', ',', 258}},
        {"{\"type\":\"Split\",\"pattern\":{\"Regex\":" GPT4 "},\"behavior\":\"Isolated\"},"
         "{\"type\":\"ByteLevel\",\"add_prefix_space\":false}",
         "the1's",
         5,
         {'t', 257, '1', '\'', 's'}},
        {"{\"type\":\"Digits\",\"individual_digits\":true},{\"type\":\"ByteLevel\"}",
         "the12the",
         6,
         {258, ' ', '1', ' ', '2', 258}},
        {"{\"type\":\"Digits\",\"individual_digits\":false},{\"type\":\"ByteLevel\"}",
         "the12the",
         5,
         {258, ' ', '1', '2', 258}},
        {"{\"type\":\"Digits\",\"individual_digits\":true},{\"type\":\"ByteLevel\","
         "\"add_prefix_space\":false,\"use_regex\":false}",
         "the 1 the",
         5,
         {'t', 257, ' ', '1', 258}},
        {"{\"type\":\"Metaspace\",\"replacement\":\"_\",\"split\":true},{\"type\":\"ByteLevel\","
         "\"add_prefix_space\":false}",
         "the the",
         6,
         {'_', 't', 257, '_', 't', 257}},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *const all = kept_text(SEQUENCE("%s"), cases[i].cutters);
        put_changed("pre_tokenizer", json_loads(all, 0, NULL));
        expect_ids(cases[i].text, strlen(cases[i].text), cases[i].ids, (size_t)cases[i].n);
    }
}

/* Behaviors of a Split, in a sequence of sequences; the ids are those that the tokenizers package makes
 * of the same file. */
Test(tokenizer, splits)
{
    static const struct {
        const char *how;
        int n, ids[8];
    } cases[] = {
        {"\"Isolated\",\"invert\":false", 5, {'t', 257, ' ', 't', 257}},
        {"\"Removed\",\"invert\":false", 4, {'t', 257, 't', 257}},
        {"\"Removed\",\"invert\":true", 1, {' '}},
        {"\"MergedWithPrevious\",\"invert\":false", 5, {'t', 257, ' ', 't', 257}},
        {"\"MergedWithNext\",\"invert\":false", 3, {'t', 257, 258}},
        {"\"Contiguous\",\"invert\":false", 5, {'t', 257, ' ', 't', 257}},
    };
    static const char *const patterns[] = {"{\"Regex\":\"\\\\s\"}", "{\"String\":\" \"}"};

    for (size_t i = 0; i < 2 * ARRAY_LEN(cases); i++) {
        const char *const all = kept_text(
            SEQUENCE(SEQUENCE(
                "{\"type\":\"Split\",\"pattern\":%s,\"behavior\":%s}") ",{\"type\":"
                                                                       "\"ByteLevel\",\"add_"
                                                                       "prefix_space\":false,"
                                                                       "\"use_regex\":false}"),
            patterns[i % 2], cases[i / 2].how);
        put_changed("pre_tokenizer", json_loads(all, 0, NULL));
        expect_ids("the the", 7, cases[i / 2].ids, (size_t)cases[i / 2].n);
    }
}

/* A tokenizer whose merges broke off would make a byte of each byte; a few words of no merge, and
 * words that are whole before they are merged, are as published. */
Test(tokenizer, merges_that_broke_off)
{
    json_t *const vocab = tiny_vocab();
    for (int i = 0; i < 20; i++) {
        const char *const word = kept_text("word%c", (char)('a' + i));
        json_object_set_new(vocab, word, json_integer(260 + i));
    }
    tiny_put_json("vocab.json", vocab);
    EACH_TEXT (broken, "", "#version: 0.2\n", "h e\n") {
        folder_put_text("merges.txt", broken);
        expect_refused(folder, "broke off", broken);
    }
    put_changed("model.merges", json_array());
    EXPECT_IDS("he", 'h', 'e'); /* four words of no merge */
    json_t *const all = tiny_tokenizer();
    json_object_set_new(all, "added_tokens", json_array());
    json_t *const model = json_object_get(all, "model");
    json_object_set_new(model, "vocab", vocab);
    tiny_put_json("tokenizer.json", all);
    expect_refused(folder, "broke off", "a file of many words");
    json_object_set_new(model, "ignore_merges", json_true());
    tiny_put(all);
    EXPECT_IDS("wordd", 263);
}

/* Decoders differ, ids do not depend on them. */
Test(tokenizer, decoders_that_are_not_known)
{
    struct bytes back;

    EACH_TEXT (other, "null", "{\"type\":\"WordPiece\"}") {
        put_changed("decoder", json_loads(other, JSON_DECODE_ANY, NULL));
        EXPECT_IDS("he", 257);
        cr_expect_eq(
            tokenizer_decode(must_open(folder), (const int32_t[]){257}, 1, &back, &failure),
            E_UNSUPPORTED);
    }
}

/* Without the folder's name these are nearly-right files: each is refused, and says what it has. */
Test(tokenizer, what_is_refused)
{
    static const struct {
        const char *path, *value, *part;
    } wrong[] = {
        {"model.type", "\"Unigram\"", "Unigram"},
        {"model.dropout", "0.1", "dropout"},
        {"model.continuing_subword_prefix", "\"##\"", "continuing_subword_prefix"},
        {"model.vocab", "[]", "vocabulary"},
        {"model.vocab.he", "-1", "id -1"},
        {"model.vocab.he", "4194304", "id 4194304"},
        {"model.vocab.he", "1.5", "\"he\""},
        {"model.vocab.he", "256", "id 256"},
        {"model.merges.1", "\"h x\"", "\"h x\""},
        {"model.merges.1", "\"he\"", "not a pair"},
        {"model.merges.1", "[\"h\"]", "not a pair"},
        {"model.merges.1", "7", "not a pair"},
        {"model.merges", "{}", "no merges"},
        {"normalizer", "{\"type\":\"Precompiled\"}", "Precompiled"},
        {"normalizer", "{\"type\":\"Replace\",\"pattern\":{\"Regex\":\" +\"},\"content\":\"\"}",
         "Replace"},
        {"normalizer",
         "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFC\"},{\"type\":\"NFC\"},{\"type\":"
         "\"NFC\"},{\"type\":\"NFC\"},{\"type\":\"NFC\"}]}",
         "more than"},
        {"pre_tokenizer", "{\"type\":\"Whitespace\"}", "Whitespace"},
        {"pre_tokenizer",
         "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"\\\\h+\"},\"behavior\":\"Isolated\"}",
         "\\h+"},
        {"pre_tokenizer", "{\"type\":\"Split\",\"pattern\":{},\"behavior\":\"Isolated\"}",
         "pattern"},
        {"pre_tokenizer", "null", "without bytes"},
        {"post_processor", "{\"type\":\"BertProcessing\"}", "BertProcessing"},
        {"added_tokens.0.lstrip", "1", "lstrip"},
        {"added_tokens.0.content", "\"\"", "without a text"},
        {"added_tokens.0.id", "97", "id 97"},
        {"added_tokens.0.id", "261", "id 261"},
        {"added_tokens.0.content", "\"he\"", "id 260, but"},
        {"added_tokens.0.special", "\"no\"", "special"},
        {"added_tokens.0.trim", "true", "trim"},
        {"added_tokens", "{}", "added_tokens"},
        {"version", "\"2.0\"", "2.0"},
        {"truncation", "{\"max_length\":8}", "truncation"},
        {"padding", "{\"strategy\":{\"Fixed\":8}}", "padding"},
        {"padding", "{\"strategy\":\"BatchLongest\",\"pad_to_multiple_of\":8}", "padding"},
        {"rules", "[]", "rules"},
        {"model.new_rule", "true", "new_rule"},
        {"model.dropout", "\"0.1\"", "dropout"},
        {"model.ignore_merges", "1", "ignore_merges"},
        {"model.end_of_word_suffix", "\"</w>\"", "end_of_word_suffix"},
        {"model.merges.1", "\"h e e\"", "not a pair"},
        {"model.merges.1", "\"#version he\"", "not a pair"},
        {"model.merges.1", "\"\u0120 t\"", "twice"},
        {"normalizer", "{\"type\":\"Prepend\",\"prepend\":\"\"}", "Prepend"},
        {"normalizer", "{\"type\":\"NFC\",\"strict\":true}", "strict"},
        {"normalizer", "{\"type\":\"Sequence\"}", "normalizers"},
        {"normalizer", "{\"type\":\"Sequence\",\"normalizers\":[null]}", "normalizer"},
        {"normalizer", "\"NFC\"", "normalizer"},
        {"normalizer",
         "{\"type\":\"Replace\",\"pattern\":{\"String\":\"a\",\"Regex\":\"b\"},\"content\":\"\"}",
         "Replace"},
        {"pre_tokenizer.add_prefix_space", "\"false\"", "add_prefix_space"},
        {"pre_tokenizer.keep", "1", "keep"},
        {"pre_tokenizer", SEQUENCE("{\"type\":\"ByteLevel\"},{\"type\":\"ByteLevel\"}"),
         "behind ByteLevel"},
        {"pre_tokenizer",
         SEQUENCE("{\"type\":\"Split\",\"pattern\":{\"Regex\":" GPT2 "},\"behavior\":\"Kept\"}"),
         "Kept"},
        {"pre_tokenizer",
         SEQUENCE("{\"type\":\"Digits\"},{\"type\":\"Metaspace\",\"replacement\":\"_\","
                  "\"prepend_scheme\":\"first\"}"),
         "first"},
        {"pre_tokenizer",
         "{\"type\":\"Metaspace\",\"replacement\":\"_\",\"prepend_scheme\":\"always\","
         "\"add_prefix_space\":false}",
         "contradict"},
        {"pre_tokenizer", "{\"type\":\"Metaspace\",\"replacement\":\"__\"}", "replacement"},
        {"post_processor", "{\"type\":\"Sequence\"}", "processors"},
        {"post_processor", TEMPLATE("{\"Sequence\":{\"id\":\"B\"}}"), "part"},
        {"post_processor", TEMPLATE("{\"SpecialToken\":{\"id\":\"e\"}}"), "without the text"},
        {"post_processor",
         TEMPLATE("{\"SpecialToken\":{\"id\":\"x\"}},{\"Sequence\":{\"id\":\"A\"}}"), "no ids"},
        {"post_processor",
         TEMPLATE("{\"Sequence\":{\"id\":\"A\"}},{\"SpecialToken\":{\"id\":\"e\"}}"), "behind"},
    };

    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        put_changed(wrong[i].path, json_loads(wrong[i].value, JSON_DECODE_ANY, NULL));
        expect_refused(folder, wrong[i].part, wrong[i].value);
        expect_refused(folder, folder, wrong[i].value);
    }
}

Test(tokenizer, folders_without_one)
{
    expect_refused(folder, "", "nothing");
    folder_put_text("vocab.pkl", "\x80");
    expect_refused(folder, "pickle", "a pickle");
    EACH_TEXT (wrong, "", "[]", "{", "{}", "{\"model\":{\"type\":\"BPE\"}}") {
        folder_put_text("tokenizer.json", wrong);
        expect_refused(folder, "", wrong);
    }
}

/* A list of words would read its lines as words. */
Test(tokenizer, pointers_of_lfs)
{
    static const char pointer[] = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\n"
                                  "size 12345\n";
    json_t *const vocab = tiny_vocab();

    EACH_TEXT (file, "vocab.txt", "merges.txt", "vocab.json", "tokenizer.json") {
        if (strcmp(file, "merges.txt") == 0)
            tiny_put_json("vocab.json", vocab);
        folder_put_text(file, pointer);
        expect_refused(folder, file, file);
        expect_refused(folder, "a pointer of Git LFS", file);
    }
}

Test(tokenizer, vocab_and_merges)
{
    json_t *const vocab = tiny_vocab();
    json_object_set_new(vocab, "<|endoftext|>", json_integer(260));
    tiny_put_json("vocab.json", vocab);
    folder_put_text("merges.txt", "#version: 0.2\n\xc4\xa0 t\r\nh e\n\n\xc4\xa0t he");
    EXPECT_IDS("the the<|endoftext|>'s", 't', 257, 258, 260, '\'', 's');
    EACH_TEXT (wrong, "#version\nhe\n", "h \xc4\xa0\n", "\xff e\n") {
        folder_put_text("merges.txt", wrong);
        expect_refused(folder, "", wrong);
    }
}

/* Characters, and bytes where there is no token for one; the text is one word. */
static json_t *characters(bool metaspace)
{
    json_t *const vocab = json_object();

    for (int b = 0; b < 256; b++)
        json_object_set_new(vocab, kept_text("<0x%02X>", b), json_integer(b));
    json_object_set_new(vocab, "a", json_integer(256));
    json_object_set_new(vocab, "\xe2\x96\x81", json_integer(257));
    json_object_set_new(vocab,
                        "\xe2\x96\x81"
                        "a",
                        json_integer(258));
    json_t *const all =
        kept(json_pack("{s:{s:s,s:b,s:o,s:[[s,s]]}}", "model", "type", "BPE", "byte_fallback", 1,
                       "vocab", vocab, "merges", "\xe2\x96\x81", "a"));
    if (metaspace)
        json_object_set_new(all, "pre_tokenizer",
                            json_pack("{s:s,s:s,s:s,s:b}", "type", "Metaspace", "replacement",
                                      "\xe2\x96\x81", "prepend_scheme", "first", "split", 0));
    else
        json_object_set_new(
            all, "normalizer",
            json_loads("{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Prepend\",\"prepend\":"
                       "\"\\u2581\"},{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},"
                       "\"content\":\"\\u2581\"}]}",
                       0, NULL));
    json_object_set_new(
        all, "decoder",
        json_loads("{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\",\"pattern\":"
                   "{\"String\":\"\\u2581\"},\"content\":\" \"},{\"type\":\"ByteFallback\"},"
                   "{\"type\":\"Fuse\"},{\"type\":\"Strip\",\"content\":\" \",\"start\":1,"
                   "\"stop\":0}]}",
                   0, NULL));
    json_object_set_new(all, "added_tokens",
                        json_pack("[{s:i,s:s,s:b}]", "id", 259, "content", "<s>", "normalized", 0));
    return all;
}

Test(tokenizer, characters_with_bytes_behind_them)
{
    json_t *all = characters(false);
    tiny_put(all);
    EXPECT_IDS("a a\xc3\xa9", 258, 258, 0xc3, 0xa9);
    EXPECT_IDS(" a", 257, 258);
    EXPECT_IDS("a<s>a", 258, 259, 258);
    all = characters(true);
    tiny_put(all);
    EXPECT_IDS("a a", 258, 258);
    EXPECT_IDS(" a", 258);
    EXPECT_IDS("a<s>a", 258, 259, 256);
    const int32_t ids[] = {258, 257, 0xc3, 0xa9, 256, 0xc3, 0xc3, 258};
    cr_expect_str_eq(decoded(must_open(folder), ids, ARRAY_LEN(ids)).data,
                     "a \u00e9a\ufffd\ufffd a");
}

/* Nothing is put in front of what another normalizer has emptied. */
Test(tokenizer, normalizers_that_leave_nothing)
{
    json_t *const all = characters(false);
    json_t *const list = json_object_get(json_object_get(all, "normalizer"), "normalizers");

    json_array_insert_new(
        list, 0,
        json_pack("{s:s,s:{s:s},s:s}", "type", "Replace", "pattern", "String", "x", "content", ""));
    tiny_put(all);
    EXPECT_IDS("x<s>a", 259, 258);
}

/* A cutter at spaces, where no text has a space any more: as of gemma. */
Test(tokenizer, cutters_that_cut_nothing)
{
    static const char *const cutters[] = {"\"behavior\":\"Isolated\"",
                                          "\"behavior\":\"Removed\"",
                                          "\"behavior\":\"MergedWithPrevious\"",
                                          "\"behavior\":\"MergedWithNext\"",
                                          "\"behavior\":\"Contiguous\"",
                                          "\"behavior\":\"Isolated\",\"invert\":true",
                                          NULL}; /* CharDelimiterSplit */
    json_t *const all = characters(false);

    for (size_t i = 0; i < ARRAY_LEN(cutters); i++) {
        char text[256] = "{\"type\":\"CharDelimiterSplit\",\"delimiter\":\" \"}";
        if (cutters[i])
            snprintf(text, sizeof(text), "{\"type\":\"Split\",\"pattern\":{\"String\":\" \"},%s}",
                     cutters[i]);
        json_object_set_new(all, "pre_tokenizer", json_loads(text, 0, NULL));
        tiny_put_json("tokenizer.json", all);
        EXPECT_IDS("a a", 258, 258);
    }
    EACH_TEXT (word, "", "ab") {
        json_object_set_new(
            all, "pre_tokenizer",
            json_pack("{s:s,s:s}", "type", "CharDelimiterSplit", "delimiter", word));
        tiny_put_json("tokenizer.json", all);
        expect_refused(folder, "", word);
    }
}

Test(tokenizer, lists_of_words)
{
    struct ids got = {0};
    struct bytes back;

    folder_put_text("vocab.txt", "<eos>\nthe\n<unk>\n=\n");
    EXPECT_IDS("the = the\n\n the dog", 1, 3, 1, 0, 0, 1, 2, 0);
    EXPECT_IDS("the\r\nthe\rthe\x1d\u00a0the\n", 1, 0, 1, 0, 1, 1, 0);
    struct tokenizer *const t = must_open(folder);
    cr_expect_eq(tokenizer_decode(t, (const int32_t[]){1}, 1, &back, &failure), E_UNSUPPORTED);
    cr_expect_eq(encoded(t, "a dog = <unk> the cat").unknown, 3,
                 "a, dog, cat; not the <unk> of the text");
    folder_put_text("vocab.txt", "<eos>\nthe");
    REFUSED(tokenizer_encode(must_open(folder), "the dog", 7, &got, &failure), E_IO, "dog");
    free(got.v);
    folder_put_text("vocab.txt", "the\n");
    expect_refused(folder, "", "no end of lines");
}
