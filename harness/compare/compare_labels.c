/* SPDX-License-Identifier: MIT
 *
 * Words that labels share. */
#include "compare_print.h"

enum { LABEL = sizeof(((struct comparison *)0)->label) };

static bool has_word(const char *text, const char *word, size_t n)
{
    for (const char *at = text; (at = strstr(at, word)); at++)
        if ((at == text || at[-1] == ' ') && (at[n] == ' ' || at[n] == '\0'))
            return true;
    return false;
}

/* Words of `label` that are in `others` or, if not `inside`, that are not. */
static void pick(char out[LABEL], const char *label, const char *others, bool inside)
{
    char word[LABEL];

    out[0] = '\0';
    for (const char *at = label; *at; at += strspn(at, " ")) {
        const size_t n = strcspn(at, " ");
        snprintf(word, sizeof(word), "%.*s", (int)n, at);
        if (has_word(others, word, n) == inside)
            text_join(out, LABEL, " ", word);
        at += n;
    }
}

void comparisons_share(struct comparison *c, int n, char shared[LABEL])
{
    char common[LABEL], rest[LABEL];

    shared[0] = '\0';
    if (n < 2)
        return;
    memcpy(common, c[0].label, sizeof(common));
    for (int i = 1; i < n; i++) {
        pick(rest, common, c[i].label, true);
        memcpy(common, rest, sizeof(common));
    }
    for (int i = 0; i < n; i++) {
        pick(rest, c[i].label, common, false);
        if (!*rest)
            return;
    }
    for (int i = 0; i < n; i++) {
        pick(rest, c[i].label, common, false);
        memcpy(c[i].label, rest, sizeof(rest));
    }
    memcpy(shared, common, sizeof(common));
}
