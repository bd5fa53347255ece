/* SPDX-License-Identifier: MIT
 *
 * Keys of a tokenizer in a GGUF file: each that names a token, each flag and each list, with values of
 * every other type and out of bounds, in tokenizers of either kind. */
#include "tests/support/gguf_file.h"
#include "tests/support/tiny_tokenizer.h"

TestSuite(tokenizer_gguf_keys, .init = folder_make, .fini = folder_remove, .timeout = 240);

#define KEY "tokenizer.ggml."

enum { U8, I8, U16, I16, U32, I32, F32, FLAG, TEXT, LIST, U64, I64, F64 };
enum { NORMAL = 1, CONTROL = 3, USER, UNUSED, BYTE };
enum { BYTES = 256, MOST = BYTES + 8, ABSENT = -1 };

/* In place of the key, or besides the others: a value, a text for TEXT, a list of `n` items of type
 * `of`, which are those of the file but item `at`; type ABSENT: nothing. */
struct change {
    const char *key;
    int type;
    double x;
    const char *text;
    int of, n, at;
};

struct vocab {
    char text[MOST][16];
    int kind[MOST], n;
    float score[MOST];
};

static void add(struct vocab *v, const char *text, int kind, float score)
{
    snprintf(v->text[v->n], sizeof(v->text[0]), "%s", text);
    v->kind[v->n] = kind;
    v->score[v->n++] = score;
}

/* <s> of users is special in either, and stands behind the bytes. */
static struct vocab vocab_of(bool scored)
{
    struct vocab v = {.n = 0};
    char name[16];

    for (int b = 0; b < BYTES; b++) {
        if (scored)
            snprintf(name, sizeof(name), "<0x%02X>", b);
        else
            tiny_byte_name(name, b);
        add(&v, name, scored ? BYTE : NORMAL, 0);
    }
    add(&v, "<s>", CONTROL, 0);
    if (scored) {
        add(&v, "h", NORMAL, -3);
        add(&v, "e", NORMAL, -4);
    }
    add(&v, "he", NORMAL, -1);
    if (scored)
        add(&v, "eh", NORMAL, -2);
    return v;
}

static void put_value(struct made *m, int type, double x)
{
    static const int bytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    const float narrow = (float)x;

    if (type == F32)
        put(m, &narrow, sizeof(narrow));
    else if (type == F64)
        put(m, &x, sizeof(x));
    else
        put_number(m, (uint64_t)(int64_t)x, bytes[type]);
}

/* A list of the file's n tokens, kinds, scores or merges, changed. */
static void put_list(struct made *m, const char *key, const struct vocab *v, int of, int n,
                     const struct change *c)
{
    const bool here = strcmp(c->key, key) == 0;
    const int type = here ? c->of : of, count = here ? c->n : n;

    const char *const text = kept_text(KEY "%s", key);
    put_key(m, text, LIST), put_number(m, (uint64_t)type, 4), put_number(m, (uint64_t)count, 8);
    for (int i = 0; i < count; i++) {
        const int k = i % n;
        const bool changed = here && i == c->at;
        const char *const word = strcmp(key, "merges") == 0 ? "h e" : v->text[k];
        const double x = *key == 's' ? (double)v->score[k] : v->kind[k];
        if (type == TEXT)
            put_text(m, changed ? c->text : word);
        else
            put_value(m, type, changed ? c->x : x);
    }
}

static const char *write_file(bool scored, const struct change *c)
{
    static const char *const lists[] = {"tokens", "token_type", "scores", "merges"};
    static const int types[] = {TEXT, I32, F32, TEXT};
    const struct vocab v = vocab_of(scored);
    struct made m = {.n = 0};
    char key[96];
    int keys = 2;

    put_begin(&m, 0, 0);
    put_key(&m, KEY "model", TEXT), put_text(&m, scored ? "llama" : "gpt2");
    put_key(&m, KEY "pre", TEXT), put_text(&m, scored ? "default" : "gpt-2");
    for (int i = 0; i < 4; i++) {
        if (i == (scored ? 3 : 2) || (strcmp(c->key, lists[i]) == 0 && c->type != LIST))
            continue;
        put_list(&m, lists[i], &v, types[i], i == 3 ? 1 : v.n, c);
        keys++;
    }
    if (strcmp(c->key, "bos_token_id") != 0)
        keys++, put_key(&m, KEY "bos_token_id", U32), put_number(&m, BYTES, 4);
    if (c->type != ABSENT && c->type != LIST) {
        snprintf(key, sizeof(key), KEY "%s", c->key);
        keys++, put_key(&m, key, (uint32_t)c->type);
        if (c->type == TEXT)
            put_text(&m, c->text);
        else
            put_value(&m, c->type, c->x);
    }
    m.bytes[16] = (unsigned char)keys;
    return made_file(&m);
}

static void expect_wrong(bool scored, const struct change *c)
{
    const char *const path = write_file(scored, c);

    const char *const what = kept_text("%s of type %d, %g, \"%s\" (%d)", c->key, c->type, c->x,
                                       c->text ? c->text : "", scored);
    expect_refused(path, c->key, what);
    expect_refused(path, "  -> ", what);
}

static void expect_read(bool scored, const struct change *c, int n_front, int front)
{
    int n;
    const int32_t *const ids = tokenizer_prefix(must_open(write_file(scored, c)), &n);

    cr_expect(n == n_front && (n == 0 || ids[0] == front), "%s (%d): %d in front", c->key, scored,
              n);
}

/* Whatever the id is for. */
Test(tokenizer_gguf_keys, tokens)
{
    static const char *const names[] = {"bos_token_id",    "eos_token_id",     "eot_token_id",
                                        "eom_token_id",    "unknown_token_id", "seperator_token_id",
                                        "mask_token_id",   "padding_token_id", "cls_token_id",
                                        "fim_pre_token_id"};
    static const struct change wrong[] = {
        {.type = U32, .x = 4294967295.0}, {.type = U32, .x = 5000},    {.type = I32, .x = -1},
        {.type = I64, .x = -1},           {.type = F32, .x = 1},       {.type = F64, .x = 1},
        {.type = FLAG, .x = 1},           {.type = TEXT, .text = "1"},
    };
    static const int right[] = {U8, I8, U16, I16, U32, I32, U64, I64};

    for (int scored = 0; scored < 2; scored++)
        for (size_t k = 0; k < ARRAY_LEN(names); k++) {
            for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
                struct change c = wrong[i];
                c.key = names[k];
                expect_wrong(scored, &c);
            }
            expect_wrong(scored,
                         &(struct change){.key = names[k], .type = U32, .x = vocab_of(scored).n});
            for (size_t i = 0; i < ARRAY_LEN(right); i++)
                expect_read(scored, &(struct change){.key = names[k], .type = right[i], .x = 2},
                            scored, k == 0 ? 2 : BYTES);
        }
}

Test(tokenizer_gguf_keys, flags)
{
    static const struct {
        const char *name;
        bool may[2]; /* be true with merges, with scores */
    } flags[] = {{"add_bos_token", {true, true}},
                 {"add_eos_token", {false, false}},
                 {"add_sep_token", {false, false}},
                 {"add_space_prefix", {false, true}},
                 {"remove_extra_whitespaces", {false, false}}};
    static const struct change wrong[] = {
        {.type = U8, .x = 1},  {.type = U8, .x = 0},           {.type = U32, .x = 1},
        {.type = F32, .x = 1}, {.type = TEXT, .text = "true"}, {.type = TEXT, .text = ""},
    };

    for (int scored = 0; scored < 2; scored++)
        for (size_t k = 0; k < ARRAY_LEN(flags); k++) {
            for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
                struct change c = wrong[i];
                c.key = flags[k].name;
                expect_wrong(scored, &c);
            }
            for (int on = 0; on < 2; on++) {
                const struct change c = {.key = flags[k].name, .type = FLAG, .x = on};
                if (on && !flags[k].may[scored])
                    expect_wrong(scored, &c);
                else
                    expect_read(scored, &c, k == 0 ? on : scored, BYTES);
            }
        }
}

Test(tokenizer_gguf_keys, lists)
{
    for (int scored = 0; scored < 2; scored++) {
        const int n = vocab_of(scored).n;
        const struct change wrong[] = {
            {.key = "tokens", .type = ABSENT},
            {.key = "tokens", .type = TEXT, .text = "a"},
            {.key = "tokens", .type = LIST, .of = TEXT, .n = 0},
            {.key = "tokens", .type = LIST, .of = U32, .n = n},
            {.key = "tokens", .type = LIST, .of = TEXT, .n = n, .at = n - 1, .text = "<s>"},
            {.key = "tokens", .type = LIST, .of = TEXT, .n = n, .at = n - 1, .text = "\xff"},
            {.key = "token_type", .type = ABSENT},
            {.key = "token_type", .type = I32, .x = 1},
            {.key = "token_type", .type = LIST, .of = I32, .n = n - 1, .at = -1},
            {.key = "token_type", .type = LIST, .of = I32, .n = n + 1, .at = -1},
            {.key = "token_type", .type = LIST, .of = I32, .n = 0},
            {.key = "token_type", .type = LIST, .of = I32, .n = n, .x = 0, .at = n - 1},
            {.key = "token_type", .type = LIST, .of = I32, .n = n, .x = 7, .at = BYTES},
            {.key = "token_type", .type = LIST, .of = I32, .n = n, .x = 9, .at = 0},
            {.key = "token_type", .type = LIST, .of = I32, .n = n, .x = -1, .at = 5},
            {.key = "token_type", .type = LIST, .of = F32, .n = n, .at = -1},
            {.key = "token_type", .type = LIST, .of = FLAG, .n = n, .at = -1},
            {.key = "scores", .type = F32, .x = 1},
            {.key = "scores", .type = TEXT, .text = "1"},
            {.key = scored ? "scores" : "merges", .type = ABSENT},
            {.key = scored ? "scores" : "merges", .type = LIST, .of = U8, .n = 3, .at = -1},
            {.key = "scores", .type = scored ? LIST : U8, .of = F32, .n = n - 1, .at = -1},
            {.key = "scores", .type = scored ? LIST : U8, .of = F32, .n = n + 1, .at = -1},
            {.key = "scores", .type = scored ? LIST : U8, .of = F32, .n = n, .x = NAN, .at = n - 1},
            {.key = "scores", .type = scored ? LIST : U8, .of = FLAG, .n = n, .at = -1},
            {.key = "merges", .type = TEXT, .text = "h e"},
            {.key = "precompiled_charsmap", .type = TEXT, .text = ""},
        };

        for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
            expect_wrong(scored, &wrong[i]);
    }
    expect_read(true, &(struct change){.key = "scores", .type = LIST, .of = F64, .n = BYTES + 5}, 1,
                BYTES);
}

/* Without bos_token_id: SentencePiece's is token 1; merges have none. */
Test(tokenizer_gguf_keys, no_token_that_begins_texts)
{
    expect_read(true, &(struct change){.key = "bos_token_id", .type = ABSENT}, 1, 1);
    expect_read(false, &(struct change){.key = "bos_token_id", .type = ABSENT}, 0, 0);
}
