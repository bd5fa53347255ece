/* SPDX-License-Identifier: MIT
 *
 * Lists of names, written as one text, and what stands in a text. */
#pragma once

#include "kept.h"

/* How often it stands in a text. */
static inline int count_in(const char *text, const char *what)
{
    int n = 0;

    for (; (text = strstr(text, what)); text += strlen(what))
        n++;
    return n;
}

/* The parts of a text between these characters, and NULL, kept until the test ends. */
static inline char **words_between(const char *text, const char *between)
{
    char **const word = room(strlen(text) + 2, sizeof(*word)), *rest = kept(strdup(text));

    for (int n = 0; rest; n++)
        word[n] = strsep(&rest, between);
    return word;
}

static inline char **words_of(const char *text) { return words_between(text, " "); }

static inline bool is_word_of(const char *text, const char *name)
{
    for (char **word = words_of(text); *word; word++)
        if (strcmp(*word, name) == 0)
            return true;
    return false;
}
