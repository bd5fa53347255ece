/* SPDX-License-Identifier: MIT
 *
 * The patterns by hand: at each place the first rule that fits takes its longest match. L, N and S
 * are letters, numbers and white space. */
#include "words.h"

#include "unicode.h"

#include <string.h>

#define GPT4(numbers)                                                                              \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" numbers                          \
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

#define BEFORE "[^\\r\\n\\p{L}\\p{N}]?"
#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define GPT4O(ending, numbers)                                                                     \
    BEFORE UPPER "*" LOWER "+" ending "|" BEFORE UPPER "+" LOWER "*" ending "|" numbers            \
                 "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

static const struct {
    const char *pattern;
    enum words kind;
} patterns[] = {
    {"'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
     WORDS_GPT2},
    {GPT4("\\p{N}{1,3}"), WORDS_GPT4},
    {GPT4("\\p{N}"), WORDS_QWEN},
    {GPT4O("(?i:'s|'t|'re|'ve|'m|'ll|'d)?", "\\p{N}{1,3}"), WORDS_GPT4O},
    {GPT4O("", "\\p{N}"), WORDS_TEKKEN},
};

bool words_of_pattern(const char *pattern, enum words *kind)
{
    for (size_t i = 0; i < ARRAY_LEN(patterns); i++)
        if (strcmp(patterns[i].pattern, pattern) == 0) {
            *kind = patterns[i].kind;
            return true;
        }
    return false;
}

const char *words_pattern(enum words kind)
{
    for (size_t i = 0; i < ARRAY_LEN(patterns); i++)
        if (patterns[i].kind == kind)
            return patterns[i].pattern;
    return NULL;
}

static int32_t next(const char *at, const char *end, size_t *length)
{
    *length = 0;
    return at < end ? utf8_next(at, (size_t)(end - at), length) : -1;
}

static bool is_break(int32_t c) { return c == '\r' || c == '\n'; }
static bool is_other(int32_t c) { return c >= 0 && !is_white(c) && !is_letter(c) && !is_number(c); }
static bool is_break_or_slash(int32_t c) { return is_break(c) || c == '/'; }
static bool is_no_number(int32_t c) { return !is_number(c); }

/* The end of the longest run of that class from `at`, of at most so many characters. */
static const char *run(const char *at, const char *end, bool (*is)(int32_t), int most)
{
    size_t length;

    for (int i = 0; i < most && at < end && is(next(at, end, &length)); i++)
        at += length;
    return at;
}

enum { ANY = 1 << 30 };

/* The English endings after an apostrophe; in any case, the long s is one of the letters. */
static size_t ending(const char *at, const char *end, bool any_case)
{
    static const char *const all[] = {"s", "t", "re", "ve", "m", "ll", "d"};
    const size_t left = (size_t)(end - at);

    if (left < 2 || *at != '\'')
        return 0;
    if (any_case && left >= 3 && memcmp(at + 1, "\xc5\xbf", 2) == 0)
        return 3;
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        const size_t n = strlen(all[i]);
        size_t k = 0;
        while (k < n && k + 1 < left &&
               (any_case && at[k + 1] >= 'A' && at[k + 1] <= 'Z' ? at[k + 1] + ('a' - 'A')
                                                                 : at[k + 1]) == all[i][k])
            k++;
        if (k == n)
            return n + 1;
    }
    return 0;
}

/* White space that does not end the text leaves its last character to the next word. */
static const char *white(const char *at, const char *end)
{
    const char *last = at, *to = at;
    size_t length;

    while (to < end && is_white(next(to, end, &length))) {
        last = to;
        to += length;
    }
    return to == end || last == at ? to : last;
}

static const char *gpt2(const char *at, const char *end)
{
    const size_t n = ending(at, end, false);
    const char *const from = at + (*at == ' '), *to;

    if (n > 0)
        return at + n;
    if ((to = run(from, end, is_letter, ANY)) > from)
        return to;
    if ((to = run(from, end, is_number, ANY)) > from)
        return to;
    if ((to = run(from, end, is_other, ANY)) > from)
        return to;
    return white(at, end);
}

/* UPPER* LOWER+: a run of the first, given back as far as one of the second ends it. NULL = none. */
static const char *upper_lower(const char *at, const char *end)
{
    const char *const to = run(at, end, is_upper_or_none, ANY);
    const char *const more = run(to, end, is_lower_or_none, ANY), *last = NULL;
    size_t length;

    if (more > to)
        return more;
    for (; at < to; at += length)
        if (is_lower_or_none(next(at, end, &length)))
            last = at + length;
    return last;
}

static const char *upper(const char *at, const char *end)
{
    const char *const to = run(at, end, is_upper_or_none, ANY);

    return to > at ? run(to, end, is_lower_or_none, ANY) : NULL;
}

/* A character before letters goes with them, if they match then. */
static const char *cased(const char *at, const char *end)
{
    static const char *(*const rules[])(const char *at, const char *end) = {upper_lower, upper};
    size_t length;
    const int32_t c = next(at, end, &length);
    const bool before = !is_break(c) && !is_letter(c) && !is_number(c);
    const char *to = NULL;

    for (size_t i = 0; !to && i < ARRAY_LEN(rules); i++) {
        if (before)
            to = rules[i](at + length, end);
        if (!to)
            to = rules[i](at, end);
    }
    return to;
}

/* What is left of GPT4 and GPT4O. */
static const char *no_letters(const char *at, const char *end, int numbers, bool (*behind)(int32_t))
{
    const char *const from = at + (*at == ' ');
    const char *to, *last = NULL;
    size_t length;

    if ((to = run(at, end, is_number, numbers)) > at)
        return to;
    if ((to = run(from, end, is_other, ANY)) > from)
        return run(to, end, behind, ANY);
    for (to = at; to < end && is_white(next(to, end, &length)); to += length)
        last = is_break(*to) ? to + 1 : last;
    return last ? last : white(at, end);
}

static const char *gpt4(const char *at, const char *end, int numbers)
{
    const size_t n = ending(at, end, true);
    size_t length;
    const int32_t c = next(at, end, &length);
    const bool before = !is_break(c) && !is_letter(c) && !is_number(c);
    const char *const from = at + (before ? length : 0);
    const char *const to = run(from, end, is_letter, ANY);

    if (n > 0)
        return at + n;
    return to > from ? to : no_letters(at, end, numbers, is_break);
}

static const char *gpt4o(const char *at, const char *end, int numbers, bool endings)
{
    const char *const to = cased(at, end);

    if (!to)
        return no_letters(at, end, numbers, is_break_or_slash);
    return to + (endings ? ending(to, end, true) : 0);
}

/* Up to the next mark but one at `at`. */
static const char *marked(const char *at, const char *end, const char *mark)
{
    const size_t n = strlen(mark), left = (size_t)(end - at);
    const size_t own = left >= n && memcmp(at, mark, n) == 0 ? n : 0;
    const char *const found = memmem(at + own, left - own, mark, n);

    return found ? found : end;
}

bool word_next(struct word_scan *s, const char **word, size_t *n)
{
    const char *const at = s->at, *const end = s->end;
    size_t length;

    if (at >= end)
        return false;
    const bool number = is_number(next(at, end, &length));
    switch (s->kind) {
    case WORDS_WHOLE:
        s->at = end;
        break;
    case WORDS_GPT2:
        s->at = gpt2(at, end);
        break;
    case WORDS_GPT4:
        s->at = gpt4(at, end, 3);
        break;
    case WORDS_QWEN:
        s->at = gpt4(at, end, 1);
        break;
    case WORDS_GPT4O:
        s->at = gpt4o(at, end, 3, true);
        break;
    case WORDS_TEKKEN:
        s->at = gpt4o(at, end, 1, false);
        break;
    case WORDS_DIGIT:
    case WORDS_DIGITS:
        s->at = number ? run(at, end, is_number, s->kind == WORDS_DIGIT ? 1 : ANY)
                       : run(at, end, is_no_number, ANY);
        break;
    case WORDS_MARKED:
        s->at = marked(at, end, s->mark);
        break;
    }
    *word = at;
    *n = (size_t)(s->at - at);
    return true;
}
