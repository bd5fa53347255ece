/* SPDX-License-Identifier: MIT
 *
 * Tokenizers in GGUF files give the ids of the same tokenizer in its folder, or are refused. */
#include "tests/support/gguf_file.h"
#include "tests/support/tiny_tokenizer.h"

TestSuite(tokenizer_gguf, .init = folder_make, .fini = folder_remove, .timeout = 240);

enum { TEXT = 8, U32 = 4, LIST = 9, I32 = 5, FLAG = 7 };

#define KEY "tokenizer.ggml."

/* What a file may lack or have otherwise. */
struct said {
    const char *model, *pre;
    bool merges, twice, front; /* front: and the ends of a text and of a turn */
    bool begin;                /* bos_token_id alone */
    bool behind;               /* add_eos_token */
    bool digits;               /* "12" in place of "he", of the only merge */
};

static void put_texts(struct made *m, const char *key, const char *const *texts, int n)
{
    put_key(m, key, LIST);
    put_number(m, TEXT, 4), put_number(m, (uint64_t)n, 8);
    for (int i = 0; i < n; i++)
        put_text(m, texts[i]);
}

/* The tokens of tiny_tokenizer. */
static const char *tiny_gguf(const struct said *s)
{
    enum { TOKENS = 261, CONTROL = 3 };
    static const char *const merges[] = {"\xc4\xa0 t", "h e", "\xc4\xa0t he"}, *const digits =
                                                                                   "1 2";
    json_t *const vocab = tiny_vocab();
    const char *tokens[TOKENS] = {[260] = "<|end|>"}, *text;
    struct made m = {.n = 0};
    json_t *id;

    json_object_foreach(vocab, text, id) tokens[json_integer_value(id)] = text;
    if (s->twice)
        tokens[259] = tokens[258];
    if (s->digits)
        tokens[257] = "12";
    put_begin(&m, 0, 4 + s->merges + 4 * s->front + s->begin + s->behind);
    put_key(&m, KEY "model", TEXT), put_text(&m, s->model);
    put_key(&m, KEY "pre", TEXT), put_text(&m, s->pre);
    put_texts(&m, KEY "tokens", tokens, TOKENS);
    put_key(&m, KEY "token_type", LIST), put_number(&m, I32, 4), put_number(&m, TOKENS, 8);
    for (int i = 0; i < TOKENS; i++)
        put_number(&m, i == 260 ? CONTROL : 1, 4);
    if (s->merges)
        put_texts(&m, KEY "merges", s->digits ? &digits : merges, s->digits ? 1 : 3);
    if (s->front) {
        put_key(&m, KEY "bos_token_id", U32), put_number(&m, 260, 4);
        put_key(&m, KEY "add_bos_token", FLAG), put_number(&m, 1, 1);
        put_key(&m, KEY "eos_token_id", U32), put_number(&m, 260, 4);
        put_key(&m, KEY "eot_token_id", U32), put_number(&m, 259, 4);
    }
    if (s->begin)
        put_key(&m, KEY "bos_token_id", U32), put_number(&m, 260, 4);
    if (s->behind)
        put_key(&m, KEY "add_eos_token", FLAG), put_number(&m, 1, 1);
    return made_file(&m);
}

Test(tokenizer_gguf, gives_the_ids_of_its_folder)
{
    const struct said plain = {.model = "gpt2", .pre = "gpt-2", .merges = true};
    struct tokenizer *const of_file = must_open(tiny_gguf(&plain));

    tiny_put(tiny_tokenizer());
    struct tokenizer *const of_folder = must_open(in_folder(""));
    EACH_TEXT (text, "the cat", " the the", "hehe<|end|>the", "caf\u00e9 12", "", "a  b\n\n c") {
        const struct ids a = encoded(of_file, text), b = encoded(of_folder, text);
        cr_expect(a.n == b.n && (a.n == 0 || memcmp(a.v, b.v, a.n * sizeof(*a.v)) == 0), "%s",
                  text);
        const struct bytes back = decoded(of_file, a.v, a.n);
        cr_expect(back.n == strlen(text) && (back.n == 0 || memcmp(back.data, text, back.n) == 0),
                  "%s", text);
    }
    int n;
    tokenizer_prefix(of_file, &n);
    cr_expect_eq(n, 0);
}

Test(tokenizer_gguf, a_token_in_front_and_ends)
{
    const struct said s = {.model = "gpt2", .pre = "gpt-2", .merges = true, .front = true};
    const char *const path = tiny_gguf(&s);
    struct tokenizer *const t = must_open(path);
    struct ends ends;
    int n;

    const int32_t *const front = tokenizer_prefix(t, &n);
    cr_expect(n == 1 && front[0] == 260);
    MUST(tokenizer_ends(t, path, &ends, &failure));
    cr_expect(ends.n == 2 && ends.id[0] == 260 && ends.id[1] == 259);
}

/* Where no key says whether the token that begins texts is in front, the rules do. */
Test(tokenizer_gguf, a_token_in_front_by_the_rules)
{
    static const struct {
        const char *pre;
        int n;
    } cases[] = {{"llama-bpe", 1}, {"gpt-2", 0}, {"qwen2", 0}};

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct said s = {.model = "gpt2", .pre = cases[i].pre, .merges = true, .begin = true};
        struct tokenizer *const t = must_open(tiny_gguf(&s));
        int n;
        tokenizer_prefix(t, &n);
        NUMBERS_OF(cases[i].pre, {n, cases[i].n}, {tokenizer_begin(t), 260});
    }
}

/* By how many tokens texts become: of two digits that a merge joins, of an e and a combining acute
 * accent, of a word that is a token but that no merge makes; and in front. */
Test(tokenizer_gguf, rules_by_their_names)
{
    static const struct {
        const char *pre;
        int digits, accent, word, front;
    } rules[] = {
        {"gpt-2", 1, 3, 3, 0},     {"phi-2", 1, 3, 3, 0},  {"mpt", 1, 2, 3, 0},
        {"olmo", 1, 2, 3, 0},      {"smollm", 2, 3, 3, 0}, {"starcoder", 2, 3, 3, 0},
        {"refact", 2, 3, 3, 0},    {"dbrx", 1, 3, 3, 0},   {"smaug-bpe", 1, 3, 3, 0},
        {"llama-bpe", 1, 3, 1, 1}, {"llama3", 1, 3, 1, 1}, {"llama-v3", 1, 3, 1, 1},
        {"qwen2", 2, 2, 3, 0},     {"gpt-4o", 1, 3, 3, 0}, {"tekken", 2, 3, 1, 1},
    };
    static const char *const texts[] = {"12", "e\xcc\x81", "cat"};

    for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
        const int want[] = {rules[i].digits, rules[i].accent, rules[i].word};
        const struct said s = {
            .model = "gpt2", .pre = rules[i].pre, .merges = true, .begin = true, .digits = true};
        struct tokenizer *const t = must_open(tiny_gguf(&s));
        int n;
        tokenizer_prefix(t, &n);
        cr_expect_eq(n, rules[i].front, "%s: %d in front", rules[i].pre, n);
        for (size_t k = 0; k < ARRAY_LEN(texts); k++) {
            const int is = (int)encoded(t, texts[k]).n;
            cr_expect_eq(is, want[k], "%s: %s is %d tokens", rules[i].pre, texts[k], is);
        }
    }
}

Test(tokenizer_gguf, what_is_refused)
{
    static const struct {
        struct said said;
        const char *says;
    } cases[] = {
        {{"t5", "default", .merges = true}, KEY "model is t5"},
        {{"llama", "default", .merges = true}, "scores"},
        {{"gpt2", "bloom", .merges = true}, KEY "pre is bloom"},
        {{"gpt2", "gpt-2", .merges = false}, "merges"},
        {{"gpt2", "gpt-2", .merges = true, .twice = true}, "twice, as 258 and 259"},
        {{"gpt2", "gpt-2", .merges = true, .behind = true}, KEY "add_eos_token"},
        {{"gpt2", "llama-bpe", .merges = true}, KEY "bos_token_id is missing"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *const path = tiny_gguf(&cases[i].said);
        expect_refused(path, cases[i].says, cases[i].says);
        expect_refused(path, "  -> ", cases[i].says);
    }
}
