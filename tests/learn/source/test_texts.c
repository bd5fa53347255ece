/* SPDX-License-Identifier: MIT
 *
 * Texts as tokens: what stands in front of them, where they end, and which ids a model has. */
#include "harness/learn/source/counting.h"
#include "harness/learn/source/texts.h"
#include "tests/support/command_line.h"
#include "tests/support/tiny_tokenizer.h"

TestSuite(texts, .init = folder_make, .fini = folder_remove);

/* The text `name` of the folder by the options of `line`; `tokenizes` by the folder's tokenizer. */
static enum status make(struct texts *t, const char *name, const char *line, bool tokenizes,
                        struct err *e)
{
    struct options o;
    struct corpus c;

    const char *const path = in_folder(name);
    const char *const words = kept_text("eval --corpus %s%s%s", path, *line ? " " : "", line);
    cr_assert_eq(parse_words(&o, words, e), OK, "%s", e->msg);
    cr_assert_eq(counting_preset(&o, 32, e), OK, "%s", e->msg);
    kept_copy(&o, sizeof(o)); /* it has grown */
    cr_assert_eq(corpus_open(&c, path, SPLIT_TEST, (size_t)o.bytes, e), OK, "%s", e->msg);
    const enum status st = texts_make(t, &c, &o, tokenizes ? folder : NULL, e);
    kept_copy(t, sizeof(*t)), kept_copy(&c, sizeof(c));
    return st;
}

/* gpt2's form with <eos> 261; `front` puts <|end|> in front. */
static void put_tokenizer(bool front)
{
    json_t *const all = tiny_tokenizer();
    json_array_append_new(
        json_object_get(all, "added_tokens"),
        json_pack("{s:i,s:s,s:b}", "id", 261, "content", "<eos>", "normalized", 0));
    if (front)
        json_object_set_new(
            all, "post_processor",
            json_loads(
                "{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"e\"}},"
                "{\"Sequence\":{\"id\":\"A\"}}],\"special_tokens\":{\"e\":{\"ids\":[260]}}}",
                0, NULL));
    tiny_put(all);
}

static void expect(const char *line, int n, int given, int first, const char *note)
{
    struct texts t;

    cr_assert_eq(make(&t, "text", line, true, &failure), OK, "%s: %s", line, failure.msg);
    cr_expect_eq(t.n, (size_t)n, "%s: %zu ids", line, t.n);
    cr_expect(t.docs[0].given == given && t.ids[0] == first, "%s: %d", line, t.ids[0]);
    cr_expect(*note ? strstr(t.note, note) != NULL : !*t.note, "%s: \"%s\"", line, t.note);
}

Test(texts, what_stands_in_front)
{
    put_tokenizer(true);
    folder_put_text("text", "he he");
    expect("", 4, 1, 260, "");
    expect("--bos none", 3, 0, 257, "");
    expect("--bos 257", 4, 1, 257, "1 of 1 texts begin");
    folder_put_text("text", "<|end|>he");
    expect("", 3, 1, 260, "--bos none");
    expect("--bos none", 2, 0, 260, "");
    folder_put_text("tokenizer_config.json", "{\"add_bos_token\":false,\"bos_token\":\"<|end|>\"}");
    expect("", 2, 0, 260, "add_bos_token");
    folder_put_text("text", "he he");
    expect("--bos each --count hf --text-join none --seq 2", 4, 1, 260, "add_bos_token");
    put_tokenizer(false);
    folder_put_text("tokenizer_config.json", "{\"add_bos_token\":true,\"bos_token\":\"<|end|>\"}");
    expect("", 4, 1, 260, "add_bos_token");
}

/* lm-evaluation-harness puts one token in front, the tokenizer's own. */
Test(texts, lm_eval_has_one_in_front)
{
    put_tokenizer(true);
    folder_put_text("text", "he he");
    folder_put_text("config.json", "{\"bos_token_id\":3}");
    expect("--count lm-eval", 4, 1, 260, "");
    folder_put_text("tokenizer_config.json", "{\"bos_token\":null,\"eos_token\":\"<eos>\"}");
    expect("--count lm-eval", 4, 1, 261, "");
    expect("", 4, 1, 260, "");
    folder_put_text("tokenizer_config.json", "{\"bos_token\":null,\"eos_token\":null}");
    struct texts t;
    cr_expect_eq(make(&t, "text", "--count lm-eval", true, &failure), E_USAGE);
}

/* --bytes cuts bytes; a tokenizer reads characters. */
Test(texts, bytes_that_cut_a_character)
{
    struct texts t;

    put_tokenizer(false);
    folder_put_text("text", "h\xc3\xa9 \xe4\xb8\x80 \xf0\x9f\x98\x80");
    static const int whole[] = {0, 0, 1, 3, 4, 4, 4, 7, 8, 8, 8, 8, 12};
    for (int n = 2; n <= 12; n++) {
        const char *const line = kept_text("--bytes %d", n);
        cr_assert_eq(make(&t, "text", line, true, &failure), OK, "%s: %s", line, failure.msg);
        cr_expect_eq(t.bytes, whole[n], "%s: %g", line, t.bytes);
        cr_expect_eq(*t.note != '\0', whole[n] != n, "%s: \"%s\"", line, t.note);
        cr_assert_eq(make(&t, "text", line, false, &failure), OK, "%s: %s", line, failure.msg);
        cr_expect(t.bytes == n && t.n == (size_t)n && !*t.note, "%s", line);
    }
    folder_put_text("text", "h\xc3"); /* the file itself is cut */
    cr_expect_eq(make(&t, "text", "--bytes 9", true, &failure), E_IO);
}

/* Places are those of the file, whatever becomes of the text first. */
Test(texts, places_of_what_is_no_utf8)
{
    struct texts t;

    put_tokenizer(false);
    folder_put_text("text", "he\n\nhe\n\xff he\n");
    EACH_TEXT (line, "", "--doc-sep blank", "--text-join blank --detok wikitext", "--bytes 9")
        REFUSED(make(&t, "text", line, true, &failure), E_IO, "byte 7", "text");
}

static void expect_fits(const char *line, int V, enum status want, const char *part)
{
    struct options o;
    struct corpus c;
    struct texts t;
    struct err e = {""};

    const char *const path = in_folder("ids");
    const char *const words = kept_text("eval --tokens %s --corpus %s%s", path, path, line);
    cr_assert_eq(parse_words(&o, words, &e), OK, "%s", e.msg);
    cr_assert_eq(corpus_open(&c, path, SPLIT_TEST, 0, &e), OK, "%s", e.msg);
    cr_assert_eq(texts_make(&t, &c, &o, NULL, &e), OK, "%s", e.msg);
    kept_copy(&t, sizeof(t)), kept_copy(&c, sizeof(c));
    cr_expect_eq(texts_fit(&t, &o, c.name, V, &e), want, "%s %d: %s", line, V, e.msg);
    cr_expect(want == OK || strstr(e.msg, part), "%s %d: %s", line, V, e.msg);
    cr_expect(want != E_IO || strstr(e.msg, path), "%s", e.msg);
}

/* Of an id that the model lacks: the file, the id as it stands there, its place, and what it may be
 * instead. */
Test(texts, ids_that_a_model_lacks)
{
    static const unsigned char ids[] = {5, 0, 7, 0,
                                        9, 0, 3, 0}; /* 458757, 196617; uint16: 5 7 9 3 */
    static const unsigned char large[] = {5, 0, 0, 0, 255, 255, 255, 127};

    const char *const path = in_folder("ids");
    cr_assert_eq(file_replace(path, (const char *)ids, sizeof(ids), &failure), OK);
    expect_fits("", 458758, OK, "");
    expect_fits("", 458757, E_IO, "id 458757 at place 0");
    expect_fits("", 458757, E_IO, "--tokens-type uint16");
    expect_fits("", 9, E_IO, "published with"); /* uint16 would not fit either */
    expect_fits(" --bos 3", 300000, E_IO, "id 458757 at place 0");
    expect_fits(" --bos 500000", 458758, E_USAGE, "--bos 500000");
    expect_fits(" --tokens-type uint16", 10, OK, "");
    expect_fits(" --tokens-type uint16", 9, E_IO, "id 9 at place 2");
    cr_assert_eq(file_replace(path, (const char *)large, sizeof(large), &failure), OK);
    expect_fits("", 99, E_IO, "id 2147483647 at place 1");
}
