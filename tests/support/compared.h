/* SPDX-License-Identifier: MIT
 *
 * Rows of comparisons. A failure names the one that is wrong, what it is and what it should be. And
 * lists of texts that a test tries one after the other. */
#pragma once

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

/* Of the source text "{a, b}, {c, d}, ...": the first half of item n, and its length. */
static inline const char *compared_name(const char *all, size_t n, int *length)
{
    const char *from = NULL;
    int depth = 0;

    for (const char *c = all; *c; c++) {
        if (*c == '"')
            for (c++; *c != '"'; c++)
                c += *c == '\\';
        if (depth == 1 && *c == ',' && from) {
            *length = (int)(c - from);
            return from;
        }
        if (depth == 0 && *c == '{' && n-- == 0)
            from = c + 1;
        depth += (strchr("({[", *c) != NULL) - (strchr(")}]", *c) != NULL);
    }
    *length = 0;
    return "";
}

static inline bool number_is(const double x[3])
{
    return x[0] == x[1] || fabs(x[0] - x[1]) <= x[2] || (isnan(x[0]) && isnan(x[1]));
}

static inline bool text_is(const char *const x[2]) { return strcmp(x[0], x[1]) == 0; }

#define COMPARED(kind, n, same, shown, of, source, ...)                                            \
    do {                                                                                           \
        kind const is_[][n] = {__VA_ARGS__};                                                       \
        for (size_t i_ = 0; i_ < sizeof(is_) / sizeof(*is_); i_++) {                               \
            int length_;                                                                           \
            const char *const name_ = compared_name(source, i_, &length_);                         \
            cr_expect(same(is_[i_]), "%s %.*s is " shown ", not " shown, of, length_, name_,       \
                      is_[i_][0], is_[i_][1]);                                                     \
        }                                                                                          \
    } while (0)
#define COMPARED_NUMBERS(...) COMPARED(double, 3, number_is, "%.15g", __VA_ARGS__)
#define COMPARED_TEXTS(...) COMPARED(const char *, 2, text_is, "\"%s\"", __VA_ARGS__)

/* {got, want} or {got, want, within}, each: numbers that a double holds, and NAN, which is NAN. */
#define NUMBERS(...) COMPARED_NUMBERS("", #__VA_ARGS__, __VA_ARGS__)

/* The same; a failure also says this text. */
#define NUMBERS_OF(of, ...) COMPARED_NUMBERS(of, #__VA_ARGS__, __VA_ARGS__)

/* {got, want}, each: texts. */
#define TEXTS(...) COMPARED_TEXTS("", #__VA_ARGS__, __VA_ARGS__)

/* {call, text}, each: texts that functions return in a struct of this type, as its member s. */
#define TEXTS_IN(type, ...)                                                                        \
    do {                                                                                           \
        const struct {                                                                             \
            type is;                                                                               \
            const char *text;                                                                      \
        } is_[] = {__VA_ARGS__};                                                                   \
        for (size_t i_ = 0; i_ < sizeof(is_) / sizeof(*is_); i_++) {                               \
            int length_;                                                                           \
            const char *const name_ = compared_name(#__VA_ARGS__, i_, &length_);                   \
            cr_expect_str_eq(is_[i_].is.s, is_[i_].text, "%.*s is \"%s\", not \"%s\"", length_,    \
                             name_, is_[i_].is.s, is_[i_].text);                                   \
        }                                                                                          \
    } while (0)

/* The head of a loop: `text` is each of these texts. */
#define EACH_TEXT(text, ...)                                                                       \
    for (const char *const *text##_at = (const char *const[]){__VA_ARGS__, NULL}, *text;           \
         (text = *text##_at) != NULL; text##_at++)
