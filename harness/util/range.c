/* SPDX-License-Identifier: MIT
 *
 * Numbers, lists and ranges of the command line. Works on one item of a list at a time, copied into
 * a small buffer, so that an error can quote it. */
#include "range.h"

#include <ctype.h>

struct item {
    const char *label; /* "--seq" */
    const char *text;  /* the item, for quoting */
    int lo, hi;        /* bounds of every value */
};

bool names_have(const struct names *n, const char *word)
{
    for (int i = 0; i < n->n; i++)
        if (strcmp(n->v[i], word) == 0)
            return true;
    return false;
}

/* Digits, of which some may stand behind a point, and suffix of [from, end); false if it is not a whole
 * number. Saturates far above every bound. */
static bool scan_number(long long *out, const char *from, const char *end)
{
    static const struct {
        const char *suffix;
        long long factor;
    } units[] = {{"", 1}, {"k", 1000}, {"Ki", 1 << 10}, {"M", 1000000}, {"Mi", 1 << 20}};
    const bool negative = from < end && *from == '-';
    long long n = 0, parts = 1;

    from += negative;
    if (from == end || !isdigit((unsigned char)*from))
        return false;
    for (; from < end && isdigit((unsigned char)*from); from++)
        n = n > INT_MAX ? n : n * 10 + (*from - '0');
    if (from < end - 1 && *from == '.')
        for (from++; from < end && isdigit((unsigned char)*from) && n <= INT_MAX; parts *= 10)
            n = n * 10 + (*from++ - '0');
    for (size_t i = 0; i < ARRAY_LEN(units); i++) {
        const size_t len = strlen(units[i].suffix);
        if ((size_t)(end - from) == len && memcmp(from, units[i].suffix, len) == 0) {
            *out = (negative ? -n : n) * units[i].factor / parts;
            return n * units[i].factor % parts == 0;
        }
    }
    return false;
}

static enum status read_number(long long *out, const struct item *it, const char *from,
                               const char *end, struct err *e)
{
    *out = 0;
    if (!scan_number(out, from, end))
        return fail(
            e, E_USAGE,
            "%s \"%.60s\": not a whole number  -> write one such as 128, 4k (4000) or 4Ki (4096)",
            it->label, it->text);
    return OK;
}

static enum status read_bounded(long long *out, const struct item *it, const char *from,
                                const char *end, struct err *e)
{
    TRY(read_number(out, it, from, end, e));

    const long long n = *out;
    if (n < it->lo)
        return fail(e, E_USAGE, "%s \"%.60s\" is too small  -> use %d or more", it->label, it->text,
                    it->lo);
    if (n > it->hi)
        return fail(e, E_USAGE, "%s \"%.60s\" is too large  -> use at most %d", it->label, it->text,
                    it->hi);
    return OK;
}

static enum status append(struct ints *out, int n, const struct item *it, struct err *e)
{
    for (int i = 0; i < out->n; i++)
        if (out->v[i] == n)
            return OK;
    if (out->n == VALUES_MAX)
        return fail(e, E_USAGE, "%s \"%.60s\": more than %d values  -> take larger steps",
                    it->label, it->text, VALUES_MAX);
    GROW_SMALL(out->v, out->n);
    out->v[out->n++] = n;
    return OK;
}

/* One item with ".."; dots points at it. */
static enum status range_item(struct ints *out, const struct item *it, const char *dots,
                              struct err *e)
{
    const char *const end = it->text + strlen(it->text);
    const char *const hi_at = dots + 2;
    const char *const step_at = hi_at + strcspn(hi_at, "*+");
    long long lo, hi, step = 2;

    if (dots == it->text)
        return fail(e, E_USAGE, "%s \"%.60s\": range has no start  -> write 128..1024", it->label,
                    it->text);
    TRY(read_bounded(&lo, it, it->text, dots, e));
    if (step_at == hi_at) {
        const int from = (int)lo ? (int)lo : 128;
        const long long to = 8LL * from, next = lo ? 2 * lo : from;
        if (lo == 0)
            return fail(e, E_USAGE, "%s \"%.60s\": range has no end  -> write 0..%lld+%d or 0,%lld",
                        it->label, it->text, to, from, next);
        return fail(e, E_USAGE,
                    "%s \"%.60s\": range has no end  -> write %lld..%lld, %lld..%lld*2, "
                    "%lld..%lld+%lld or %lld,%lld",
                    it->label, it->text, lo, to, lo, to, lo, to, lo, lo, next);
    }
    TRY(read_bounded(&hi, it, hi_at, step_at, e));
    if (hi < lo)
        return fail(e, E_USAGE, "%s \"%.60s\": range goes down  -> write %lld..%lld", it->label,
                    it->text, hi, lo);
    if (step_at < end)
        TRY(read_number(&step, it, step_at + 1, end, e));

    const bool add = *step_at == '+';
    if (add && step < 1)
        return fail(e, E_USAGE, "%s %.60s never ends  -> use a step of 1 or more", it->label,
                    it->text);
    if (!add && step < 2)
        return fail(e, E_USAGE, "%s %.60s never ends  -> use a factor of 2 or more", it->label,
                    it->text);
    if (!add && lo == 0)
        return fail(e, E_USAGE, "%s %.60s never ends  -> write 0,1..%lld, or 0..%lld+k with a step",
                    it->label, it->text, hi, hi);
    if (step > VALUE_MAX)
        step = VALUE_MAX; /* beyond every hi, and the product below still fits */
    for (long long n = lo; n <= hi; n = add ? n + step : n * step)
        TRY(append(out, (int)n, it, e));
    return OK;
}

enum status range_parse(struct ints *out, const char *label, const char *text, int lo, int hi,
                        struct err *e)
{
    return range_parse_words(out, label, text, NULL, lo, hi, e);
}

enum status range_parse_words(struct ints *out, const char *label, const char *text,
                              const char *const *words, int lo, int hi, struct err *e)
{
    const char *at = text;

    if (!*text)
        return fail(e, E_USAGE, "%s has an empty value  -> write 128, 128,256 or 128..1024", label);
    for (;;) {
        const size_t len = strcspn(at, ",");
        char buf[64];
        const struct item it = {label, buf, lo, hi};

        if (len == 0)
            return fail(e, E_USAGE, "%s \"%.60s\": empty item  -> write 128,256 without spaces",
                        label, text);
        if (len >= sizeof(buf))
            return fail(e, E_USAGE,
                        "%s \"%.60s...\": not a number  -> write 128, 128,256 or 128..1024", label,
                        at);
        memcpy(buf, at, len);
        buf[len] = '\0';

        const char *const dots = strstr(buf, "..");
        const int word = words ? word_index(buf, words) : -1;
        long long n;
        if (word >= 0) {
            TRY(append(out, -1 - word, &it, e));
        } else if (dots) {
            TRY(range_item(out, &it, dots, e));
        } else {
            TRY(read_bounded(&n, &it, buf, buf + len, e));
            TRY(append(out, (int)n, &it, e));
        }
        if (!at[len])
            return OK;
        at += len + 1;
    }
}

enum status number_parse(int *out, const char *label, const char *text, int lo, int hi,
                         struct err *e)
{
    const struct item it = {label, text, lo, hi};
    long long n;

    TRY(read_bounded(&n, &it, text, text + strlen(text), e));
    *out = (int)n;
    return OK;
}

enum status decimal_parse(double *out, const char *label, const char *text, double lo, double hi,
                          int open, struct err *e)
{
    char *end;
    const double x = strtod(text, &end);

    if (!*text || *end || !isfinite(x) || strpbrk(text, "xXnN \t"))
        return fail(e, E_USAGE, "%s \"%.60s\": not a number  -> write one such as 3 or 0.5", label,
                    text);
    if (x < lo || (open & OPEN_LOW && x <= lo))
        return fail(e, E_USAGE, "%s %.60s is too small  -> use %s %g", label, text,
                    open & OPEN_LOW ? "more than" : "at least", lo);
    if (x > hi || (open & OPEN_HIGH && x >= hi))
        return fail(e, E_USAGE, "%s %.60s is too large  -> use %s %g", label, text,
                    open & OPEN_HIGH ? "less than" : "at most", hi);
    *out = x;
    return OK;
}
