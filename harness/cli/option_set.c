/* SPDX-License-Identifier: MIT
 *
 * Setting an option: one function for each kind of value. */
#include "option_set.h"

#include <errno.h>

enum { CHOICE_WORDS = 64 };

/* One assignment: the option, its value, and where it comes from. */
struct assignment {
    struct options *o;
    const struct option_spec *spec;
    const char *value;
    char label[40]; /* "--seq" */
    bool replace;   /* a list starts anew */
};

static void *field(const struct assignment *s) { return (char *)s->o + s->spec->at; }

char *options_keep(struct options *o, const char *text, size_t len)
{
    char *const copy = need_text("%.*s", (int)len, text);

    GROW_SMALL(o->owned, o->n_owned);
    o->owned[o->n_owned++] = copy;
    return copy;
}

static enum status add_name(const struct assignment *s, const char *text, size_t len, struct err *e)
{
    struct names *const list = field(s);
    const char *const *const words = s->spec->words;
    const char *const name = options_keep(s->o, text, len);

    if (words && word_index(name, words) < 0)
        return unknown_word(e, s->label, name, words, NULL);
    if (names_have(list, name))
        return OK;
    TRY(GROW(list->v, list->n, e));
    list->v[list->n++] = name;
    return OK;
}

static enum status set_names(const struct assignment *s, struct err *e)
{
    if (s->replace)
        ((struct names *)field(s))->n = 0;
    for (const char *at = s->value;;) {
        const size_t len = strcspn(at, ",");
        if (len == 0)
            return fail(e, E_USAGE, "%s \"%.60s\": empty item  -> write a,b without spaces",
                        s->label, s->value);
        const enum status st = add_name(s, at, len, e);
        if (st != OK || !at[len])
            return st;
        at += len + 1;
    }
}

/* One word that is not empty. */
static enum status check_text(const struct assignment *s, struct err *e)
{
    if (!*s->value)
        return fail(e, E_USAGE, "%s has an empty value  -> write %s %s", s->label, s->label,
                    s->spec->metavar);
    if (s->spec->kind != KIND_PATH && s->spec->kind != KIND_LINES &&
        strpbrk(s->value, " \t\r\n\"'"))
        return fail(e, E_USAGE, "%s \"%.60s\" contains blanks or quotes  -> write one word",
                    s->label, s->value);
    return OK;
}

static enum status set_text(const struct assignment *s, struct err *e)
{
    const struct option_spec *const spec = s->spec;
    const bool cpus = spec->flags & OR_CPUS && s->value[strspn(s->value, "0123456789,-")] == '\0';

    if (*s->value && spec->words && !cpus && word_index(s->value, spec->words) < 0)
        return spec->flags & OR_CPUS && !nearest(s->value, spec->words)
                   ? fail(e, E_USAGE, "unknown %s \"%.64s\"  -> give the %s", s->label, s->value,
                          spec->doc)
                   : unknown_word(e, s->label, s->value, spec->words, NULL);
    TRY(check_text(s, e));
    *(const char **)field(s) = options_keep(s->o, s->value, strlen(s->value));
    return OK;
}

/* On the command line a flag takes no value; in the environment it may be switched off. */
static enum status truth(const struct assignment *s, bool *on, struct err *e)
{
    static const char *const words[] = {"0", "no", "false", "off", "1", "yes", "true", "on", NULL};
    enum { FIRST_TRUE = 4 };
    const int i = s->value ? word_index(s->value, words) : FIRST_TRUE;

    if (i < 0)
        return fail(e, E_USAGE, "%s \"%.60s\" is neither on nor off  -> write 1 or 0", s->label,
                    s->value);
    *on = i >= FIRST_TRUE;
    return OK;
}

/* The words that a choice takes, NULL-terminated; false if it takes no words. */
static bool choice_words(const struct choice *row, const char *words[CHOICE_WORDS])
{
    int n = 0;

    while (n < CHOICE_WORDS - 1 && (words[n] = choice_word(row, n)))
        n++;
    words[n] = NULL;
    return n > 0;
}

static enum status set_numbers(const struct assignment *s, struct err *e)
{
    const struct choice *const row = s->spec->row;
    struct ints list = {0};
    enum status st = range_parse(&list, s->label, s->value, (int)row->least, (int)row->most, e);

    for (int i = 0; i < list.n && st == OK; i++) {
        char digits[16];
        snprintf(digits, sizeof(digits), "%d", list.v[i]);
        st = add_name(s, digits, strlen(digits), e);
    }
    free(list.v);
    return st;
}

/* Values are kept as text; a mask is parsed when it is applied to a model. */
static enum status set_choice(const struct assignment *s, struct err *e)
{
    const char *words[CHOICE_WORDS];
    struct assignment one = *s;
    struct option_spec spec = *s->spec;
    bool on = false;

    one.spec = &spec;
    spec.words = choice_words(spec.row, words) ? words : NULL;
    if (spec.words)
        return set_names(&one, e);
    if (s->replace || spec.row->codec >= CODEC_LIST)
        ((struct names *)field(s))->n = 0;
    switch (spec.row->codec) {
    case CODEC_FLAG:
        TRY(truth(s, &on, e));
        return on ? add_name(s, "1", 1, e) : OK;
    case CODEC_INT:
        return set_numbers(s, e);
    case CODEC_REAL:
        TRY(check_text(s, e));
        return set_names(s, e);
    default:
        TRY(check_text(s, e));
        return add_name(s, s->value, strlen(s->value), e);
    }
}

/* A word that an option had once; the message says what to use. */
static enum status gone_or_unknown(const struct assignment *s, struct err *e)
{
    static const char *const gone[][2] = {
        {"--count chunks", "--count hf --seq 512 --stride 256, which is most like it"},
        {"--count gptq", "--count hf --seq 2048, which is most like it"},
        {"--count xl", "--seq 128 --mem 1600 --bos none, which is the same"},
        {"--to github-action-benchmark", "--to json and a line of jq: docs/measuring.md"},
        {"--to bencher", "--to json and a line of jq: docs/measuring.md"},
    };
    char said[128];

    snprintf(said, sizeof(said), "%s %s", s->label, s->value);
    for (size_t i = 0; i < ARRAY_LEN(gone); i++)
        if (strcmp(said, gone[i][0]) == 0)
            return fail(e, E_USAGE, "%s is gone  -> use %s", said, gone[i][1]);
    return unknown_word(e, s->label, s->value, s->spec->words, NULL);
}

static enum status set_word(const struct assignment *s, struct err *e)
{
    const int i = word_index(s->value, s->spec->words);

    if (i < 0)
        return gone_or_unknown(s, e);
    *(int *)field(s) = i;
    return OK;
}

static enum status set_seed(const struct assignment *s, struct err *e)
{
    char *end;

    errno = 0;
    const unsigned long long n = strtoull(s->value, &end, 10);
    if (*s->value < '0' || *s->value > '9' || *end || errno)
        return fail(e, E_USAGE,
                    "%s \"%.60s\": not a seed  -> write a whole number from 0 to 2^64 - 1",
                    s->label, s->value);
    *(uint64_t *)field(s) = n;
    return OK;
}

static enum status set_flag(const struct assignment *s, struct err *e)
{
    bool on = false;

    TRY(truth(s, &on, e));
    *(bool *)field(s) = on == (s->spec->kind == KIND_FLAG);
    return OK;
}

static enum status set_count(const struct assignment *s, struct err *e)
{
    if (s->value)
        return number_parse(field(s), s->label, s->value, 0, 9, e);
    ++*(int *)field(s);
    return OK;
}

static enum status set_resume(const struct assignment *s, struct err *e)
{
    if (s->value && !*s->value)
        return fail(e, E_USAGE,
                    "%s= without a folder  -> write --resume=DIR, or --resume for the latest run",
                    s->label);
    if (s->value)
        s->o->resume_dir = options_keep(s->o, s->value, strlen(s->value));
    s->o->resume = true;
    return OK;
}

/* Does a value from here take effect? *replace: a list starts anew. */
static bool claim(struct options *o, int index, enum option_source from, int depth, bool *replace)
{
    const bool user = from == FROM_USER && o->given[index] == FROM_USER;

    if (user && depth > o->depth[index])
        return false;
    *replace = o->given[index] < from || (user && depth < o->depth[index]);
    o->given[index] = (unsigned char)from;
    o->depth[index] = (unsigned char)depth;
    return true;
}

static enum status set_quick(const struct assignment *s, enum option_source from, int depth,
                             struct err *e)
{
    static const char *const stands_for[][2] = {
        {"max-time", "0.1"}, {"min-samples", "6"}, {"warmup-ms", "20"}};
    const int command = command_find(s->o->command);
    enum status st = truth(s, &s->o->quick, e);

    for (size_t i = 0; i < ARRAY_LEN(stands_for) && st == OK && s->o->quick; i++) {
        const int index = option_find(stands_for[i][0]);
        struct assignment one = {s->o, &option_specs[index], stands_for[i][1], "--quick", true};
        /* compare and gate stop by their samples: they take no time limit, and nobody gave one. */
        if (!option_is_for(one.spec, command) || !claim(s->o, index, from, depth, &one.replace))
            continue;
        st = one.spec->kind == KIND_INT
                 ? number_parse(field(&one), one.label, one.value, one.spec->lo, one.spec->hi, e)
                 : decimal_parse(field(&one), one.label, one.value, one.spec->lo, one.spec->hi, 0,
                                 e);
    }
    return st;
}

static enum status set_kind(const struct assignment *s, enum option_source from, int depth,
                            struct err *e)
{
    const struct option_spec *const spec = s->spec;

    switch (spec->kind) {
    case KIND_FLAG:
    case KIND_OFF:
        return set_flag(s, e);
    case KIND_COUNT:
        return set_count(s, e);
    case KIND_INT:
        return number_parse(field(s), s->label, s->value, spec->lo, spec->hi, e);
    case KIND_SEED:
        return set_seed(s, e);
    case KIND_DECIMAL:
        return decimal_parse(
            field(s), s->label, s->value, spec->lo, spec->hi,
            (spec->flags & ABOVE ? OPEN_LOW : 0) | (spec->flags & BELOW ? OPEN_HIGH : 0), e);
    case KIND_WORD:
        return set_word(s, e);
    case KIND_TEXT:
    case KIND_PATH:
        return set_text(s, e);
    case KIND_INTS:
        if (s->replace)
            ((struct ints *)field(s))->n = 0;
        return range_parse_words(field(s), s->label, s->value, spec->words, spec->lo, spec->hi, e);
    case KIND_NAMES:
        return set_names(s, e);
    case KIND_LINES:
    case KIND_FILTER:
        if (s->replace)
            ((struct names *)field(s))->n = 0;
        TRY(check_text(s, e));
        return add_name(s, s->value, strlen(s->value), e);
    case KIND_CHOICE:
        return set_choice(s, e);
    case KIND_RESUME:
        return set_resume(s, e);
    case KIND_QUICK:
        return set_quick(s, from, depth, e);
    }
    return OK;
}

enum status option_set(struct options *o, int index, const char *value, enum option_source from,
                       int depth, struct err *e)
{
    const struct option_spec *const spec = &option_specs[index];
    struct assignment s = {o, spec, value, "", false};

    if (!claim(o, index, from, depth, &s.replace))
        return OK;
    snprintf(s.label, sizeof(s.label), "--%s", spec->name);
    return set_kind(&s, from, depth, e);
}
