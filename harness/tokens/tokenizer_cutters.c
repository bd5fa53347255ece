/* SPDX-License-Identifier: MIT
 *
 * pre_tokenizer: what cuts a text into words, one cutter after the other. */
#include "tokenizer_json.h"

#include "harness/util/suggest.h"

/* Words by the matches of a pattern. */
static enum status cut_by(const struct tokenizer *t, struct cutter *c, const char *pattern,
                          bool literal, enum split split, struct err *e)
{
    struct err why = {""};
    const enum status st = words_open(&c->words, pattern, literal, &why);

    c->words.split = split;
    return st == OK
               ? OK
               : fail(e, st, "tokenizer %s: pre_tokenizer with the pattern %s", t->dir, why.msg);
}

static bool is_one_character(const char *text)
{
    size_t length = 0;

    if (*text)
        utf8_next(text, strlen(text), &length);
    return *text && !text[length];
}

#define KEYS(t, j, e, ...)                                                                         \
    tokenizer_keys(t, "pre_tokenizer", j, (const struct key[]){{"type", MAY_TEXT}, __VA_ARGS__},   \
                   ARRAY_LEN(((const struct key[]){{"type", MAY_TEXT}, __VA_ARGS__})), e)

/* Its words are by gpt2's pattern, unless something before it has cut them. */
static enum status read_byte_level(struct tokenizer *t, const json_t *j, struct cutter *c,
                                   struct err *e)
{
    TRY(KEYS(t, j, e, {"add_prefix_space", MAY_FLAG}, {"trim_offsets", MAY_FLAG},
             {"use_regex", MAY_FLAG}));
    t->bytes = true;
    c->blank = flag_of(j, "add_prefix_space", true) ? BLANK_EACH : BLANK_NONE;
    memcpy(c->text, " ", 2);
    return flag_of(j, "use_regex", true) ? cut_by(t, c, WORDS_GPT2, false, SPLIT_ISOLATED, e) : OK;
}

static enum status read_metaspace(struct tokenizer *t, const json_t *j, struct cutter *c,
                                  struct err *e)
{
    static const char *const schemes[] = {
        [BLANK_NONE] = "never", [BLANK_EACH] = "always", [BLANK_FIRST] = "first", NULL};
    const char *const text = word_of(j, "replacement");
    const bool named = json_object_get(j, "prepend_scheme") != NULL;
    const bool old = flag_of(j, "add_prefix_space", true);
    const char *const scheme = named ? word_of(j, "prepend_scheme") : old ? "always" : "never";
    const int blank = word_index(scheme, schemes);

    TRY(KEYS(t, j, e, {"replacement", MAY_TEXT}, {"prepend_scheme", MAY_TEXT},
             {"split", MAY_FLAG | MAY_NULL}, {"add_prefix_space", MAY_FLAG | MAY_NULL},
             {"str_rep", MAY_TEXT | MAY_NULL}));
    if (!is_one_character(text) || strlen(text) >= sizeof(c->text))
        return tokenizer_bad(t, e, "pre_tokenizer Metaspace: \"replacement\" is not one character");
    if (!old && blank != BLANK_NONE)
        return tokenizer_bad(t, e,
                             "pre_tokenizer Metaspace: add_prefix_space false and prepend_scheme "
                             "%.20s contradict each other  -> one of them",
                             scheme);
    memcpy(c->text, text, strlen(text) + 1);
    c->replaces = true;
    if (blank < 0)
        return tokenizer_bad(t, e,
                             "pre_tokenizer Metaspace with prepend_scheme \"%.20s\": not supported "
                             " -> always, first or never",
                             scheme);
    c->blank = (enum blank)blank;
    /* What begins the text is said by places in the original, which these two may move. */
    if (c->blank == BLANK_FIRST && (c > t->cutter || t->n_normalizers > 0))
        return tokenizer_bad(t, e,
                             "pre_tokenizer Metaspace with prepend_scheme first behind another or "
                             "a normalizer: not supported");
    return flag_of(j, "split", true) ? cut_by(t, c, text, true, SPLIT_MERGED_WITH_NEXT, e) : OK;
}

static enum status read_split(struct tokenizer *t, const json_t *j, struct cutter *c, struct err *e)
{
    static const char *const splits[SPLITS + 1] = {"Isolated", "Removed", "MergedWithPrevious",
                                                   "MergedWithNext", "Contiguous"};
    const json_t *const pattern = json_object_get(j, "pattern");
    const char *const literal = word_of(pattern, "String"), *const regex =
                                                                word_of(pattern, "Regex");
    const char *const behavior = word_of(j, "behavior");
    const int split = word_index(behavior, splits);

    TRY(KEYS(t, j, e, {"pattern", MAY_OBJECT}, {"behavior", MAY_TEXT}, {"invert", MAY_FLAG}));
    if (json_object_size(pattern) != 1 || !(*literal || *regex))
        return tokenizer_bad(t, e, "pre_tokenizer Split without a pattern  -> a whole file");
    if (split < 0)
        return tokenizer_bad(
            t, e, "pre_tokenizer Split with behavior \"%.40s\": not supported  -> Isolated",
            behavior);
    c->words.invert = flag_of(j, "invert", false);
    return cut_by(t, c, *literal ? literal : regex, *literal, (enum split)split, e);
}

static enum status read_digits(struct tokenizer *t, const json_t *j, struct cutter *c,
                               struct err *e)
{
    TRY(KEYS(t, j, e, {"individual_digits", MAY_FLAG}));
    return cut_by(t, c, "\\p{N}", false,
                  flag_of(j, "individual_digits", false) ? SPLIT_ISOLATED : SPLIT_CONTIGUOUS, e);
}

static enum status read_delimiter(struct tokenizer *t, const json_t *j, struct cutter *c,
                                  struct err *e)
{
    const char *const text = word_of(j, "delimiter");

    TRY(KEYS(t, j, e, {"delimiter", MAY_TEXT}));
    return is_one_character(text) ? cut_by(t, c, text, true, SPLIT_REMOVED, e)
                                  : tokenizer_bad(t, e,
                                                  "pre_tokenizer CharDelimiterSplit: \"delimiter\" "
                                                  "is not one character  -> a whole file");
}

enum status tokenizer_read_cutter(struct tokenizer *t, const json_t *j, struct err *e)
{
    static const struct {
        const char *type;
        enum status (*read)(struct tokenizer *t, const json_t *j, struct cutter *c, struct err *e);
    } kinds[] = {{"ByteLevel", read_byte_level},
                 {"Metaspace", read_metaspace},
                 {"Split", read_split},
                 {"Digits", read_digits},
                 {"CharDelimiterSplit", read_delimiter}};
    const char *const type = word_of(j, "type");

    if (t->bytes) /* the next one would see bytes as characters */
        return tokenizer_bad(t, e, "pre_tokenizer %.40s behind ByteLevel: not supported", type);
    if (t->n_cutters == MAX_CUTTERS)
        return tokenizer_bad(t, e, "more than %d pre_tokenizers: not supported", MAX_CUTTERS);
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (strcmp(kinds[i].type, type) == 0)
            return kinds[i].read(t, j, &t->cutter[t->n_cutters++], e);
    return tokenizer_bad(t, e,
                         "pre_tokenizer %.40s is not supported  -> Split with its pattern, "
                         "ByteLevel, Metaspace or Digits",
                         type);
}
