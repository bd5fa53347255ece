/* SPDX-License-Identifier: MIT
 *
 * Which features exclude each other: every pair of changes to the model of every variant. What is
 * taken stands in tests/model/exclusions.txt, a line a variant; scripts/screens.sh writes it anew.
 * A line that changes says that more or less runs than before: that is intended, or a mistake. */
#include "tests/support/failure.h"
#include "tests/support/pairs.h"
#include "variants/model/config/exclusions.h"
#include "variants/model/lm/drive.h"

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

static const struct drive *const drives[] = {&drive_depth, &drive_blend, &drive_exit,
                                             &drive_feedback, &drive_slots};

/* What gives a model the n-th of them. */
static bool drive_at(struct config *c, int n)
{
    CHANGE(c->steps = 2);
    CHANGE(c->transparent = TRANSPARENT_TOP);
    CHANGE(c->exit = EXIT_ENTROPY);
    CHANGE(c->feedback.on = true);
    CHANGE(c->slots.n = 4, set_text(c->subs, sizeof(c->subs), "sxf"));
    return false;
}

/* drive_of returns the first that a model has: one that has two is refused. */
Test(exclusions, a_model_has_one_drive)
{
    struct config none = config_default(variant_find("vanilla"), 48, 4, 12, 96, 2, 256), one = none;

    none.pos = pos_find("none");
    cr_expect_eq(drive_of(&none), &drive_plain);
    for (int i = 0; one = none, drive_at(&one, i); i++) {
        cr_expect_eq(drive_of(&one), drives[i]);
        cr_expect_eq(config_check(&one, &failure), OK, "%s", failure.msg);
        for (int k = 0; k < i; k++) {
            struct config two = one;
            drive_at(&two, k);
            cr_expect_eq(config_check(&two, NULL), E_USAGE, "%d and %d", i, k);
        }
    }
}
