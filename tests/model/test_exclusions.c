/* SPDX-License-Identifier: MIT
 *
 * Which features exclude each other: every pair of changes to the model of every variant. What is
 * taken stands in tests/model/exclusions.txt, a line a variant; scripts/screens.sh writes it anew.
 * A line that changes says that more or less runs than before: that is intended, or a mistake. */
#include "tests/support/failure.h"
#include "tests/support/pairs.h"
#include "variants/model/config/exclusions.h"
#include "variants/model/config/settings.h"
#include "variants/model/lm/drive.h"

#include <stdlib.h>
#include <string.h>

static const char tracked[] = "tests/model/exclusions.txt";

static const char rewrites[] = "REWRITE_SCREENS";

Test(exclusions, what_is_taken_stays, .timeout = 300)
{
    FILE *const f = fopen(tracked, getenv(rewrites) ? "w" : "r");
    char want[PAIRS_TEXT] = "", line[PAIRS_TEXT];

    cr_assert_not_null(f, "%s", tracked);
    for (int v = 0; variants[v]; v++) {
        pairs_line(line, variants[v]);
        if (getenv(rewrites))
            fputs(line, f);
        else
            cr_expect(fgets(want, sizeof(want), f) && strcmp(want, line) == 0,
                      "%s has %s, and now it is %s", tracked, want, line);
    }
    cr_expect(getenv(rewrites) || !fgets(want, sizeof(want), f), "%s", want);
    fclose(f);
}

/* A list names features by their places: each says something of its own. */
Test(exclusions, features_have_names)
{
    char name[FEATURE_TEXT], other[FEATURE_TEXT];

    for (int i = 0; exclusions_name(name, i); i++) {
        bool any = false;
        for (int j = 0; exclusions_name(other, j); j++) {
            cr_expect(i == j || strcmp(name, other) != 0, "%s twice", name);
            cr_expect_eq(exclusions_between(i, j), exclusions_between(j, i));
            any = any || exclusions_between(i, j);
        }
        cr_expect(any && !exclusions_between(i, i), "%s", name);
    }
}

static const struct drive *drive_at(struct config *c, int n)
{
    switch (n) {
    case 0:
        c->steps = 2;
        return &drive_depth;
    case 1:
        c->transparent = TRANSPARENT_TOP;
        return &drive_blend;
    case 2:
        c->exit = EXIT_ENTROPY;
        return &drive_exit;
    case 3:
        c->feedback.on = true;
        return &drive_feedback;
    case 4:
        c->slots.n = 4;
        set_text(c->subs, sizeof(c->subs), "sxf");
        return &drive_slots;
    default:
        return NULL;
    }
}

/* drive_of returns the first that a model has: one that has two is refused. */
Test(exclusions, a_model_has_one_drive)
{
    struct config none = config_default(variant_find("vanilla"), 48, 4, 12, 96, 2, 256);

    none.pos = pos_find("none");
    cr_expect_eq(drive_of(&none), &drive_plain);
    for (int i = 0;; i++) {
        struct config one = none;
        const struct drive *const drive = drive_at(&one, i);
        if (!drive)
            break;
        cr_expect_eq(drive_of(&one), drive);
        cr_expect_eq(config_check(&one, &failure), OK, "%s", failure.msg);
        for (int k = 0; k < i; k++) {
            struct config two = one;
            drive_at(&two, k);
            cr_expect_eq(config_check(&two, NULL), E_USAGE, "%d and %d", i, k);
        }
    }
}

/* Both are named as users say them. */
Test(exclusions, the_message_names_two)
{
    static const struct {
        const char *variant, *key, *value, *says;
    } cases[] = {
        {"gla", "masks", "window=4",
         "gla: mixer gla and --mask exclude each other  -> leave one of them out"},
        {"mla", "attn_bias", "1",
         "mla: mixer mla and biases of attention exclude each other  -> leave one of them out"},
        {"alibi", "causal", "both",
         "alibi: positions alibi and --direction both exclude each other  -> leave one of them "
         "out"},
        {"span", "clamp_len", "4",
         "span: attention with span and --clamp-len exclude each other  -> leave one of them out"},
        {"fox", "cope", "5",
         "fox: forgetting and contextual positions exclude each other  -> leave one of them out"},
        {"diff", "dman", "1",
         "diff: differences of heads and trained masks exclude each other  -> leave one of them "
         "out"},
        {"fox", "realformer", "sum",
         "fox: forgetting and scores of the layer before exclude each other  -> leave one of them "
         "out"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct config c = config_default(variant_find(cases[i].variant), 48, 4, 12, 96, 2, 256);
        struct err e = {""};
        cr_assert_eq(config_check(&c, &e), OK, "%s", e.msg);
        cr_assert_eq(config_set(&c, cases[i].key, cases[i].value, &e), OK, "%s", e.msg);
        cr_expect_eq(config_check(&c, &e), E_USAGE);
        cr_expect_str_eq(e.msg, cases[i].says);
    }
}
