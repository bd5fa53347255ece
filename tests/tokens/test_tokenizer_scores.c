/* SPDX-License-Identifier: MIT
 *
 * SentencePiece's merges: neighbours whose token has the highest score are joined, the leftmost
 * first, until there are none; a character without a token is its bytes. */
#include "tests/support/gguf_file.h"
#include "tests/support/tokenizers.h"

#include "harness/tokens/unicode.h"
#include "variants/base/rng.h"

TestSuite(tokenizer_scores, .init = folder_make, .fini = folder_remove, .timeout = 240);

#define KEY "tokenizer.ggml."
#define SPACE "\xe2\x96\x81"

enum { TEXT = 8, LIST = 9, I32 = 5, F32 = 6, FLAG = 7 };
enum { NORMAL = 1, UNKNOWN, CONTROL, OF_USERS, UNUSED, BYTE };
enum { SPECIAL = 3, BYTES = 256, FIRST = SPECIAL + BYTES, MOST = 40 };

struct word {
    const char *text;
    float score;
    int kind;
};

/* Some tokens have one score, and some are made in two ways. */
static const struct word words[] = {
    {SPACE, -20, NORMAL},         {"a", -21, NORMAL},          {"b", -22, NORMAL},
    {"c", -23, NORMAL},           {"\xc3\xa9", -24, NORMAL},   {"ab", -3, NORMAL},
    {"bc", -3, NORMAL},           {"abc", -5, NORMAL},         {SPACE "a", -4, NORMAL},
    {SPACE SPACE, -9, NORMAL},    {SPACE "ab", -6.5f, NORMAL}, {"aa", -2, NORMAL},
    {"aaa", -1, NORMAL},          {"c\xc3\xa9", -7, NORMAL},   {"[own]", 0, OF_USERS},
    {"[" SPACE "]", 0, OF_USERS}, {"[pad]", -1000, UNUSED},
};
enum { WORDS = sizeof(words) / sizeof(*words) };

static void begin_list(struct made *m, const char *key, int of, int n)
{
    put_key(m, key, LIST);
    put_number(m, (uint64_t)of, 4), put_number(m, (uint64_t)n, 8);
}

static void put_float(struct made *m, float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof(bits));
    put_number(m, bits, 4);
}

struct said {
    const struct word *words;
    int n;
    bool no_scores, no_prefix, no_begin, squeezes;
    const char *name; /* of the model */
};

static const char *file_of(const struct said *s)
{
    static const char *const special[SPECIAL] = {"<unk>", "<s>", "</s>"};
    static const int kinds[SPECIAL] = {UNKNOWN, CONTROL, CONTROL};
    const int n = FIRST + s->n;
    struct made m = {.n = 0};

    put_begin(&m, 0,
              3 + !s->no_scores + s->no_prefix + s->no_begin + s->squeezes + (s->name != NULL));
    if (s->name)
        put_key(&m, "general.name", TEXT), put_text(&m, s->name);
    put_key(&m, KEY "model", TEXT), put_text(&m, "llama");
    begin_list(&m, KEY "tokens", TEXT, n);
    for (int i = 0; i < SPECIAL; i++)
        put_text(&m, special[i]);
    for (int b = 0; b < BYTES; b++)
        put_text(&m, kept_text("<0x%02X>", b));
    for (int i = 0; i < s->n; i++)
        put_text(&m, s->words[i].text);
    begin_list(&m, KEY "token_type", I32, n);
    for (int i = 0; i < n; i++)
        put_number(&m,
                   (uint64_t)(i < SPECIAL ? kinds[i]
                              : i < FIRST ? BYTE
                                          : s->words[i - FIRST].kind),
                   4);
    if (!s->no_scores) {
        begin_list(&m, KEY "scores", F32, n);
        for (int i = 0; i < n; i++)
            put_float(&m, i < FIRST ? 0 : s->words[i - FIRST].score);
    }
    const char *const flags[] = {s->no_prefix ? KEY "add_space_prefix" : NULL,
                                 s->no_begin ? KEY "add_bos_token" : NULL,
                                 s->squeezes ? KEY "remove_extra_whitespaces" : NULL};
    for (int i = 0; i < 3; i++)
        if (flags[i])
            put_key(&m, flags[i], FLAG), put_number(&m, i == 2, 1);
    return made_file(&m);
}

/* ---- by definition ------------------------------------------------------------------------ */

static const struct word *word_of(const char *text, size_t n)
{
    for (int i = 0; i < WORDS; i++)
        if (words[i].kind == NORMAL && strlen(words[i].text) == n &&
            memcmp(words[i].text, text, n) == 0)
            return &words[i];
    return NULL;
}

/* Of a text that is normalized. cut[i] .. cut[i+1] are the symbols. */
static size_t by_definition(const char *text, int32_t *ids)
{
    size_t cut[128], n = 0, count = 0;

    for (size_t at = 0; text[at]; n++) {
        size_t length;
        utf8_next(text + at, strlen(text + at), &length);
        cut[n] = at;
        at += length;
    }
    cut[n] = strlen(text);
    for (;;) {
        size_t best = n;
        float score = 0;
        for (size_t i = 0; i + 1 < n; i++) {
            const struct word *const w = word_of(text + cut[i], cut[i + 2] - cut[i]);
            if (w && (best == n || w->score > score)) {
                best = i;
                score = w->score;
            }
        }
        if (best == n)
            break;
        memmove(&cut[best + 1], &cut[best + 2], (n - best - 1) * sizeof(*cut));
        n--;
    }
    for (size_t i = 0; i < n; i++) {
        const struct word *const w = word_of(text + cut[i], cut[i + 1] - cut[i]);
        for (size_t at = cut[i]; !w && at < cut[i + 1]; at++)
            ids[count++] = SPECIAL + (unsigned char)text[at];
        if (w)
            ids[count++] = FIRST + (int32_t)(w - words);
    }
    return count;
}

/* Of letters of the vocabulary and others; as the text has it, and normalized. */
static void draw(uint64_t seed, bool prefix, char *text, char *normal)
{
    static const char *const letters[] = {"a",   "a",        "b", "c",  " ",
                                          SPACE, "\xc3\xa9", "z", "\n", "\xe4\xb8\xad"};
    const int n = (int)(rng_uniform(seed, 1, 0) * MOST);

    *text = *normal = '\0';
    if (n > 0 && prefix)
        strcat(normal, SPACE);
    for (int i = 0; i < n; i++) {
        const char *const one =
            letters[(size_t)(rng_uniform(seed, 2, (uint64_t)i) * ARRAY_LEN(letters))];
        strcat(text, one);
        strcat(normal, *one == ' ' ? SPACE : one);
    }
}

Test(tokenizer_scores, by_definition)
{
    for (int prefix = 0; prefix < 2; prefix++) {
        const struct said s = {.words = words, .n = WORDS, .no_prefix = !prefix};
        struct tokenizer *const t = must_open(file_of(&s));
        for (uint64_t seed = 0; seed < 400; seed++) {
            char text[4 * MOST], normal[4 * MOST];
            int32_t want[4 * MOST];
            draw(seed, prefix, text, normal);
            const size_t n = by_definition(normal, want);
            const struct ids got = encoded(t, text);
            cr_assert(got.n == n && (n == 0 || memcmp(got.v, want, n * sizeof(*want)) == 0),
                      "seed %d: \"%s\"", (int)seed, text);
        }
    }
}

/* Tokens of users and of control stand apart; decoding gives the text. */
Test(tokenizer_scores, tokens_that_are_cut_out)
{
    enum { OWN = FIRST + 14, OWN_SPACE, S = 1 };
    const struct said s = {.words = words, .n = WORDS};
    const int32_t want[] = {FIRST + 8, OWN, FIRST + 10, OWN_SPACE, S};
    static const char text[] = "a[own]ab[ ]<s>";
    static const char plain[] = " ab\n z\u00e9";
    struct tokenizer *t = must_open(file_of(&s));
    int n;

    struct ids got = encoded(t, text);
    cr_expect(got.n == ARRAY_LEN(want) && memcmp(got.v, want, sizeof(want)) == 0);
    got = encoded(t, plain);
    const struct bytes back = decoded(t, got.v, got.n);
    cr_expect(back.n == strlen(plain) && memcmp(back.data, plain, back.n) == 0, "%s", back.data);
    const int32_t *const front = tokenizer_prefix(t, &n);
    cr_expect(n == 1 && front[0] == 1, "its usual place");
    t = must_open(file_of(&(struct said){.words = words, .n = WORDS, .no_begin = true}));
    tokenizer_prefix(t, &n);
    cr_expect(n == 0 && tokenizer_begin(t) == 1);
}

/* Tokens of Phi-3 take the white space behind them, but for <s> and <unk>. */
Test(tokenizer_scores, tokens_of_phi3)
{
    static const struct {
        const char *name;
        bool takes;
    } cases[] = {{"Phi-3 mini", true}, {"my-phi3", true}, {"PHI-3.5", true}, {"Phi 3", false},
                 {"phi-2", false},     {"Llama", false},  {NULL, false}};
    static const char text[] = "<s> a</s> \t\xe3\x80\x80"
                               "b[own]\n a <unk> c[ ]  </s> ";
    static const char taken[] = "<s> a</s>b[own]a <unk> c[ ]</s>";

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct said named = {.words = words, .n = WORDS, .name = cases[i].name},
                          plain = {.words = words, .n = WORDS};
        const char *const same = cases[i].takes ? taken : text;
        const struct ids got = encoded(must_open(file_of(&named)), text),
                         want = encoded(must_open(file_of(&plain)), same);
        cr_expect(got.n == want.n && memcmp(got.v, want.v, got.n * sizeof(*got.v)) == 0,
                  "%s: %zu, %zu", cases[i].name ? cases[i].name : "", got.n, want.n);
    }
}

Test(tokenizer_scores, what_is_refused)
{
    static const struct word alike[] = {
        {"a", -1, NORMAL}, {"b", -1, NORMAL}, {"ab", -1, NORMAL}, {"ba", -1, NORMAL}};
    static const struct word unused[] = {{"a", -3, NORMAL}, {"b", -4, NORMAL}, {"ab", -1, UNUSED}};
    static const struct word odd[] = {{"a", -1, NORMAL}, {"b", -1, 0}};
    static const struct {
        struct said said;
        const char *says;
    } cases[] = {
        {{.words = words, .n = WORDS, .no_scores = true}, "scores"},
        {{.words = alike, .n = 4}, "no order"},
        {{.words = unused, .n = 3}, "unused"},
        {{.words = odd, .n = 2}, "token_type"},
        {{.words = words, .n = WORDS, .squeezes = true}, "remove_extra_whitespaces"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *const path = file_of(&cases[i].said);
        expect_refused(path, cases[i].says, cases[i].says);
        expect_refused(path, "  -> ", cases[i].says);
    }
}
