/* SPDX-License-Identifier: MIT
 *
 * Edit distance, optimal string alignment, over three rows of a table. */
#include "suggest.h"

enum { WORD_MAX = 64 }; /* longer words are not compared */

static int distance(const char *a, const char *b)
{
    const int n_a = (int)strlen(a), n_b = (int)strlen(b);
    int row[3][WORD_MAX + 1]; /* distances of prefixes: rows i-2, i-1, i */
    int *before = row[0], *last = row[1], *now = row[2];

    for (int j = 0; j <= n_b; j++)
        last[j] = j;
    for (int i = 1; i <= n_a; i++) {
        now[0] = i;
        for (int j = 1; j <= n_b; j++) {
            const int replace = last[j - 1] + (a[i - 1] != b[j - 1]);
            int d = min_int(replace, min_int(last[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                d = min_int(d, before[j - 2] + 1);
            now[j] = d;
        }
        int *const oldest = before;
        before = last;
        last = now;
        now = oldest;
    }
    return last[n_b];
}

const char *nearest(const char *word, const char *const *words)
{
    const size_t len = strlen(word);
    const char *best = NULL;
    int best_distance = 2 + (int)len / 4; /* one more than the largest distance that counts as a
                                           * typing error */

    if (len == 0 || len > WORD_MAX)
        return NULL;
    for (; *words; words++) {
        if (strlen(*words) > WORD_MAX)
            continue;
        const int d = distance(word, *words);
        /* Words with no letter in common are not near, however short they are. */
        if (d < best_distance && d < (int)len) {
            best = *words;
            best_distance = d;
        }
    }
    return best;
}

enum status unknown_word(struct err *e, const char *what, const char *word,
                         const char *const *words, const char *see)
{
    char list[320] = "";
    const char *const guess = nearest(word, words);

    const char *const *w = words;
    for (; *w && strlen(list) + strlen(*w) + sizeof(", ...") <= sizeof(list); w++)
        text_append(list, sizeof(list), "%s%s", w == words ? "" : ", ", *w);
    if (*w)
        text_append(list, sizeof(list), ", ...");
    const char *const sep = see ? "; see: " : "";
    if (guess)
        return fail(e, E_USAGE, "unknown %s \"%.64s\"  -> did you mean %s?  (%s%s)", what, word,
                    guess, see ? "see: " : "", see ? see : list);
    return fail(e, E_USAGE, "unknown %s \"%.64s\"  -> use one of %s%s%s", what, word, list, sep,
                see ? see : "");
}
