/* SPDX-License-Identifier: MIT
 *
 * What labels share. */
#include "harness/compare/compare_print.h"
#include "tests/support/compared.h"

static struct comparison labelled(const char *label)
{
    struct comparison c = {0};

    snprintf(c.label, sizeof(c.label), "%s", label);
    return c;
}

Test(compare_labels, shared_words_stand_above)
{
    char shared[sizeof(((struct comparison *)0)->label)];
    struct comparison c[] = {labelled("xl layer seq=16 mem=0 threads=2 avx2"),
                             labelled("rope layer seq=16 mem=0 threads=2 avx2"),
                             labelled("xl layer seq=160 mem=0 threads=2 avx2")};

    comparisons_share(c, 3, shared);
    TEXTS({shared, "layer mem=0 threads=2 avx2"}, {c[0].label, "xl seq=16"},
          {c[1].label, "rope seq=16"});
    cr_expect_str_eq(c[2].label, "xl seq=160", "a word is not part of a longer one");
}

/* One row, rows that are equal, and rows that have nothing in common keep their labels. */
Test(compare_labels, nothing_is_taken_from_all)
{
    char shared[sizeof(((struct comparison *)0)->label)];
    struct comparison equal[] = {labelled("xl avx2"), labelled("xl avx2")},
                      other[] = {labelled("xl avx2"), labelled("perplexity seq=8")},
                      inside[] = {labelled("xl"), labelled("xl avx2")};

    comparisons_share(equal, 1, shared);
    cr_expect(*shared == '\0' && strcmp(equal[0].label, "xl avx2") == 0);
    comparisons_share(equal, 2, shared);
    cr_expect(*shared == '\0' && strcmp(equal[1].label, "xl avx2") == 0);
    comparisons_share(other, 2, shared);
    cr_expect(*shared == '\0' && strcmp(other[1].label, "perplexity seq=8") == 0);
    comparisons_share(inside, 2, shared);
    cr_expect(*shared == '\0' && strcmp(inside[0].label, "xl") == 0);
    comparisons_share(NULL, 0, shared);
    cr_expect_eq(*shared, '\0');
}
