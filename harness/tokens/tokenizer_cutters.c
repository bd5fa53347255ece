/* SPDX-License-Identifier: MIT
 *
 * pre_tokenizer: what cuts a text into words, one cutter after the other. */
#include "tokenizer_json.h"

#include <string.h>

static enum status unknown_words(const struct tokenizer *t, const json_t *j, struct err *e)
{
    const json_t *const given = json_object_get(j, "pattern");
    const char *const pattern =
        *word_of(given, "String") ? word_of(given, "String") : word_of(given, "Regex");

    return tokenizer_fail(t, E_IO, e,
                          "pre_tokenizer %.40s%s%.80s%s is not one of the known patterns  -> use "
                          "one of gpt2, Pythia, SmolLM2, Llama, Qwen, gpt-oss or Mistral Nemo",
                          word_of(j, "type"), *pattern ? " \"" : "", pattern, *pattern ? "\"" : "");
}

#define KEYS(t, j, e, ...)                                                                         \
    tokenizer_keys(t, "pre_tokenizer", j, (const struct key[]){{"type", MAY_TEXT}, __VA_ARGS__},   \
                   ARRAY_LEN(((const struct key[]){{"type", MAY_TEXT}, __VA_ARGS__})), e)

/* Its words are by gpt2's pattern, unless something before it has cut them. */
static enum status read_byte_level(struct tokenizer *t, const json_t *j, struct cutter *c,
                                   struct err *e)
{
    t->bytes = true;
    c->words = flag_of(j, "use_regex", true) ? WORDS_GPT2 : WORDS_WHOLE;
    c->blank = flag_of(j, "add_prefix_space", true) ? BLANK_EACH : BLANK_NONE;
    memcpy(c->text, " ", 2);
    return KEYS(t, j, e, {"add_prefix_space", MAY_FLAG}, {"trim_offsets", MAY_FLAG},
                {"use_regex", MAY_FLAG});
}

static enum status read_metaspace(struct tokenizer *t, const json_t *j, struct cutter *c,
                                  struct err *e)
{
    const char *const text = word_of(j, "replacement");
    const bool named = json_object_get(j, "prepend_scheme") != NULL;
    const bool old = flag_of(j, "add_prefix_space", true);
    const char *const scheme = named ? word_of(j, "prepend_scheme") : old ? "always" : "never";
    size_t length = 0;
    const enum status st =
        KEYS(t, j, e, {"replacement", MAY_TEXT}, {"prepend_scheme", MAY_TEXT},
             {"split", MAY_FLAG | MAY_NULL}, {"add_prefix_space", MAY_FLAG | MAY_NULL},
             {"str_rep", MAY_TEXT | MAY_NULL});

    if (st != OK)
        return st;
    if (*text)
        utf8_next(text, strlen(text), &length);
    if (!*text || text[length] || length >= sizeof(c->text))
        return tokenizer_fail(t, E_IO, e,
                              "pre_tokenizer Metaspace: \"replacement\" is not one character");
    if (!old && strcmp(scheme, "never") != 0)
        return tokenizer_fail(t, E_IO, e,
                              "pre_tokenizer Metaspace: add_prefix_space false and prepend_scheme "
                              "%.20s contradict each other  -> one of them",
                              scheme);
    memcpy(c->text, text, length + 1);
    c->replaces = true;
    c->words = flag_of(j, "split", true) ? WORDS_MARKED : WORDS_WHOLE;
    if (strcmp(scheme, "always") == 0)
        c->blank = BLANK_EACH;
    else if (strcmp(scheme, "first") == 0)
        c->blank = BLANK_FIRST;
    else if (strcmp(scheme, "never") != 0)
        return unknown_words(t, j, e);
    /* What begins the text is said by places in the original, which these two may move. */
    if (c->blank == BLANK_FIRST && (t->n_cutters > 0 || t->n_normalizers > 0))
        return tokenizer_fail(t, E_IO, e,
                              "pre_tokenizer Metaspace with prepend_scheme first behind another or "
                              "a normalizer: not supported");
    return OK;
}

static enum status read_split(struct tokenizer *t, const json_t *j, struct cutter *c, struct err *e)
{
    const json_t *const pattern = json_object_get(j, "pattern");
    const enum status st =
        KEYS(t, j, e, {"pattern", MAY_OBJECT}, {"behavior", MAY_TEXT}, {"invert", MAY_FLAG});

    if (st != OK)
        return st;
    if (json_object_size(pattern) != 1 || !words_of_pattern(word_of(pattern, "Regex"), &c->words))
        return unknown_words(t, j, e);
    /* The patterns match all of a text: what is between their matches is nothing. */
    const char *const behavior = word_of(j, "behavior");
    const bool keeps = strcmp(behavior, "Isolated") == 0 ||
                       strcmp(behavior, "MergedWithPrevious") == 0 ||
                       strcmp(behavior, "MergedWithNext") == 0;
    if (!keeps && !(strcmp(behavior, "Removed") == 0 && flag_of(j, "invert", false)))
        return tokenizer_fail(t, E_IO, e,
                              "pre_tokenizer Split with behavior \"%.40s\": not "
                              "supported  -> Isolated",
                              behavior);
    return OK;
}

static enum status read_digits(struct tokenizer *t, const json_t *j, struct cutter *c,
                               struct err *e)
{
    c->words = flag_of(j, "individual_digits", false) ? WORDS_DIGIT : WORDS_DIGITS;
    return KEYS(t, j, e, {"individual_digits", MAY_FLAG});
}

/* Do normalizers leave nothing of this one character? One replaces it, and none behind puts it back:
 * composition makes no space. */
static bool is_gone(const struct tokenizer *t, const char *text)
{
    bool gone = false;
    size_t length = 0;

    if (*text)
        utf8_next(text, strlen(text), &length);
    for (int i = 0; i < t->n_normalizers; i++) {
        const struct normalizer *const k = &t->normalizer[i];
        const bool replaced = k->kind == NORMALIZE_REPLACE && strcmp(k->from, text) == 0;
        const bool back =
            k->kind == NORMALIZE_NFC ? strcmp(text, " ") != 0 : strstr(k->to, text) != NULL;
        gone = (gone || replaced) && !back;
    }
    return gone && !text[length];
}

/* One that cuts at a character that no text has any more, as of gemma. */
static enum status read_idle(const struct tokenizer *t, const json_t *j, bool *idle, struct err *e)
{
    static const char *const behaviors[] = {"Isolated", "Removed", "MergedWithPrevious",
                                            "MergedWithNext", "Contiguous"};
    const char *const type = word_of(j, "type"), *const behavior = word_of(j, "behavior");
    const bool split = strcmp(type, "Split") == 0;
    const char *const at = split ? word_of(json_object_get(j, "pattern"), "String")
                           : strcmp(type, "CharDelimiterSplit") == 0 ? word_of(j, "delimiter")
                                                                     : "";
    bool known = !split;

    for (size_t i = 0; i < ARRAY_LEN(behaviors); i++)
        known = known || strcmp(behaviors[i], behavior) == 0;
    *idle = known && is_gone(t, at) && !flag_of(j, "invert", false);
    if (!*idle)
        return OK;
    return split ? KEYS(t, j, e, {"pattern", MAY_OBJECT}, {"behavior", MAY_TEXT},
                        {"invert", MAY_FLAG})
                 : KEYS(t, j, e, {"delimiter", MAY_TEXT});
}

static enum status read_cutter(struct tokenizer *t, const json_t *j, struct err *e)
{
    static const struct {
        const char *type;
        enum status (*read)(struct tokenizer *t, const json_t *j, struct cutter *c, struct err *e);
    } kinds[] = {{"ByteLevel", read_byte_level},
                 {"Metaspace", read_metaspace},
                 {"Split", read_split},
                 {"Digits", read_digits}};
    struct cutter c = {.words = WORDS_WHOLE};
    bool idle;
    const enum status st = read_idle(t, j, &idle, e);

    if (st != OK || idle)
        return st;
    if (t->bytes) /* the next one would see bytes as characters */
        return tokenizer_fail(t, E_IO, e, "pre_tokenizer %.40s behind ByteLevel: not supported",
                              word_of(j, "type"));
    if (t->n_cutters == MAX_CUTTERS)
        return tokenizer_fail(t, E_IO, e, "more than %d pre_tokenizers: not supported",
                              MAX_CUTTERS);
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (strcmp(kinds[i].type, word_of(j, "type")) == 0) {
            const enum status read = kinds[i].read(t, j, &c, e);
            if (read == OK)
                t->cutter[t->n_cutters++] = c;
            return read;
        }
    return unknown_words(t, j, e);
}

enum status tokenizer_read_cutters(struct tokenizer *t, const json_t *j, struct err *e)
{
    return tokenizer_parts(t, "pre_tokenizer", j, "pretokenizers", read_cutter, e);
}
