/* SPDX-License-Identifier: MIT
 *
 * See words.h. A pattern that PCRE2 might read otherwise than Oniguruma is refused by what it has:
 * tokens that are nearly right give numbers that are nearly right. */
#include "words.h"

#include "harness/util/fileio.h"

#include <ctype.h>

/* ---- patterns ----------------------------------------------------------------------------- */

/* White_Space, without U+180E, which PCRE2's \s has, too. Its ends are no ends of ranges. */
#define WHITE "\\p{Zs}\\t-\\r\\x{85}\\p{Zl}\\p{Zp}"
/* Oniguruma's \w in a class; outside it has six numbers below U+0100 besides. */
#define WORD "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}"
#define WORD_ALONE "\\x{b2}\\x{b3}\\x{b9}\\x{bc}-\\x{be}" WORD "]"

/* Escapes of a letter, in a class and outside; NULL: other ones may mean something else to PCRE2. */
static const struct {
    char letter;
    const char *inside, *outside;
} escapes[] = {
    {'s', WHITE, "[" WHITE "]"}, {'S', "\\P{White_Space}", "[^" WHITE "]"},
    {'w', WORD, "[" WORD_ALONE}, {'W', NULL, "[^" WORD_ALONE},
    {'d', "\\d", "\\d"},         {'D', "\\D", "\\D"},
    {'r', "\\r", "\\r"},         {'n', "\\n", "\\n"},
    {'t', "\\t", "\\t"},         {'f', "\\f", "\\f"},
    {'A', NULL, "\\A"},          {'z', NULL, "\\z"},
};

/* Each of these writes what stands at `at`, and returns what is behind it; NULL: not supported. */
static const char *put_escape(FILE *f, const char *at, bool inside)
{
    const bool property = strncmp(at, "\\p{", 3) == 0 || strncmp(at, "\\P{", 3) == 0;
    const size_t n = property ? strcspn(at, "}") + 1 : 2;

    if (property ? strlen(at) >= n : at[1] && !isalnum((unsigned char)at[1]))
        return fwrite(at, 1, n, f), at + n;
    for (size_t i = 0; i < ARRAY_LEN(escapes); i++)
        if (escapes[i].letter == at[1]) {
            const char *const is = inside ? escapes[i].inside : escapes[i].outside;
            return is && fputs(is, f) >= 0 ? at + 2 : NULL;
        }
    return NULL;
}

/* Classes in a class are its members to Oniguruma, and characters to PCRE2. */
static const char *put_bracket(FILE *f, const char *at, int *depth)
{
    const bool opens = *at == '[', inner = *depth > (opens ? 0 : 1);
    const char *const next = at + 1 + (opens && at[1] == '^');

    if ((opens && *next == ']') || (inner && (next > at + 1 || at[1] == '-' || at[-1] == '-')) ||
        (inner && opens && at[1] == ':'))
        return NULL;
    *depth += opens ? 1 : -1;
    if (!inner)
        fwrite(at, 1, (size_t)(next - at), f);
    return next;
}

/* Does something begin here that may mean something else to PCRE2? */
static bool is_other(const char *at, bool inside)
{
    static const char *const groups[] = {"?:", "?=", "?!", "?>", "?<=", "?<!", "?i:"};
    bool known = *at != '(' || (at[1] != '?' && at[1] != '*');

    if (inside)
        return strncmp(at, "&&", 2) == 0;
    for (size_t i = 0; i < ARRAY_LEN(groups); i++)
        known = known || strncmp(at + 1, groups[i], strlen(groups[i])) == 0;
    return !known || strncmp(at, "}+", 2) == 0 || strncmp(at, "{,", 2) == 0;
}

/* The pattern in PCRE2's words; returns what of it is not supported, else NULL. */
static const char *put_pattern(FILE *f, const char *at)
{
    int depth = 0; /* of classes */

    while (*at) {
        const char *const from = at;
        if (*at == '\\')
            at = put_escape(f, at, depth > 0);
        else if (*at == '[' || (*at == ']' && depth > 0))
            at = put_bracket(f, at, &depth);
        else
            at = is_other(at, depth > 0) || putc(*at, f) == EOF ? NULL : at + 1;
        if (!at)
            return from;
    }
    return NULL;
}

/* Steps of one match, and bytes that it may take. */
enum { STEPS = 10000000, HEAP_KB = 64 << 10, STACK_LEAST = 32 << 10, STACK_MOST = 1 << 20 };

static enum status compile(struct words *w, const char *pattern, size_t n, uint32_t options,
                           const char *said, struct err *e)
{
    int why = PCRE2_ERROR_HEAP_FAILED;
    size_t place;
    char text[120];

    w->how = pcre2_compile_context_create(NULL);
    w->limits = pcre2_match_context_create(NULL);
    w->match = pcre2_match_data_create(1, NULL);
    if (w->how && w->limits && w->match) {
        pcre2_set_newline(w->how, PCRE2_NEWLINE_LF);
        w->code = pcre2_compile((PCRE2_SPTR)pattern, n, options | PCRE2_UTF, &why, &place, w->how);
    }
    if (!w->code && why == PCRE2_ERROR_HEAP_FAILED)
        return fail(e, E_NOMEM, "no memory for a pattern of %zu bytes", n);
    if (!w->code) {
        pcre2_get_error_message(why, (PCRE2_UCHAR *)text, sizeof(text));
        return fail(e, E_IO, "\"%.80s\": %s  -> a whole file, or --tokens made elsewhere", said,
                    text);
    }
    pcre2_set_match_limit(w->limits, STEPS);
    pcre2_set_heap_limit(w->limits, HEAP_KB);
    /* Where there is none, matches take longer. */
    if (pcre2_jit_compile(w->code, PCRE2_JIT_COMPLETE) == 0 &&
        (w->stack = pcre2_jit_stack_create(STACK_LEAST, STACK_MOST, NULL)))
        pcre2_jit_stack_assign(w->limits, NULL, w->stack);
    return OK;
}

enum status words_open(struct words *w, const char *pattern, bool literal, struct err *e)
{
    struct bytes ours = {0};

    if (literal)
        return compile(w, pattern, strlen(pattern), PCRE2_LITERAL, pattern, e);
    FILE *const f = bytes_open(&ours, e);
    if (!f)
        return E_NOMEM;
    const char *const other = put_pattern(f, pattern);
    TRY(bytes_close(f, &ours, e));
    const enum status st =
        other ? fail(e, E_IO, "\"%.80s\": \"%.8s\" is not supported  -> --tokens made elsewhere",
                     pattern, other)
              : compile(w, ours.data, ours.n, PCRE2_MULTILINE | PCRE2_UCP, pattern, e);
    free(ours.data);
    return st;
}

void words_close(struct words *w)
{
    pcre2_code_free(w->code);
    pcre2_match_data_free(w->match);
    pcre2_match_context_free(w->limits);
    pcre2_compile_context_free(w->how);
    pcre2_jit_stack_free(w->stack);
}

/* ---- words -------------------------------------------------------------------------------- */

/* s->found becomes the next match: not an empty one where the last one ended, as in the publisher's
 * library. */
static enum status find(struct word_scan *s, struct err *e)
{
    const struct words *const w = s->words;
    const bool behind = s->found.kind == SPAN_MATCH;

    s->found = (struct span){s->n, s->n, SPAN_END};
    for (size_t at = s->at; w->code && at <= s->n; at++) {
        if (at > s->at && at < s->n && ((unsigned char)s->text[at] & 0xc0) == 0x80)
            continue;
        const int got = pcre2_match(w->code, (PCRE2_SPTR)s->text, s->n, at, PCRE2_NO_UTF_CHECK,
                                    w->match, w->limits);
        const size_t *const v = pcre2_get_ovector_pointer(w->match);
        if (got == PCRE2_ERROR_NOMATCH)
            return OK;
        if (got < 0)
            return fail(e, E_IO,
                        "the pattern of its words takes too many steps (PCRE2 error %d)  -> "
                        "another text, or --tokens made elsewhere",
                        got);
        if (v[0] == v[1] && behind && v[0] == s->at)
            continue;
        s->found = (struct span){v[0], v[1], SPAN_MATCH};
        return OK;
    }
    return OK;
}

/* s->ahead becomes the next piece: a match, or what lies before it. */
static enum status look_ahead(struct word_scan *s, struct err *e)
{
    const bool between = s->at < s->found.from;

    s->ahead = between ? (struct span){s->at, s->found.from, SPAN_BETWEEN} : s->found;
    s->at = s->ahead.to;
    TRY(s->ahead.kind == SPAN_MATCH ? find(s, e) : OK);
    if (s->words->invert && s->ahead.kind != SPAN_END)
        s->ahead.kind = between ? SPAN_MATCH : SPAN_BETWEEN;
    return OK;
}

enum status word_scan(struct word_scan *s, const struct words *w, const char *text, size_t n,
                      struct err *e)
{
    *s = (struct word_scan){.words = w, .text = text, .n = n};
    TRY(find(s, e));
    return look_ahead(s, e);
}

/* Is the second of two pieces one word with the first? */
static bool joins(enum split split, enum span_kind one, enum span_kind next)
{
    switch (split) {
    case SPLIT_MERGED_WITH_PREVIOUS:
        return one == SPAN_BETWEEN && next == SPAN_MATCH;
    case SPLIT_MERGED_WITH_NEXT:
        return one == SPAN_MATCH && next == SPAN_BETWEEN;
    case SPLIT_CONTIGUOUS:
        return one == next;
    default:
        return false;
    }
}

enum status word_next(struct word_scan *s, const char **word, size_t *n, struct err *e)
{
    const enum split split = s->words->split;
    struct span is;

    for (*n = 0; *n == 0 && s->ahead.kind != SPAN_END; *word = s->text + is.from) {
        enum span_kind last;
        is = s->ahead;
        do {
            last = s->ahead.kind;
            is.to = s->ahead.to;
            TRY(look_ahead(s, e));
        } while (joins(split, last, s->ahead.kind));
        *n = split == SPLIT_REMOVED && is.kind == SPAN_MATCH ? 0 : is.to - is.from;
    }
    return OK;
}
