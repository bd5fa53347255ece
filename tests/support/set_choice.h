/* SPDX-License-Identifier: MIT
 *
 * For tests that build a config: what parts have of their own, set by its name in files, and
 * compared. */
#ifndef SET_CHOICE_H
#define SET_CHOICE_H

#include "variants/model/settings.h"

#include <criterion/criterion.h>
#include <stdio.h>

static inline void set_choice(struct config *c, const char *name, const char *text)
{
    struct err e = {""};

    cr_assert_eq(config_set(c, name, text, &e), OK, "%s=%s: %s", name, text, e.msg);
}

/* Two models of the same parts: is what these have of their own the same, too? */
static inline void expect_same_own(const struct config *a, const struct config *b)
{
    for (enum part_slot s = 0; s < SLOT_COUNT; s++) {
        const struct part_numbers *const numbers = config_numbers_of(a, s);
        cr_assert_eq(numbers, config_numbers_of(b, s));
        for (const struct choice *row = numbers ? numbers->choices : NULL; row && row->name; row++)
            cr_expect(choice_equal(row, config_numbers(a, s), config_numbers(b, s)), "%s: %s",
                      a->variant->name, row->name);
    }
}

static inline void set_number(struct config *c, const char *name, double value)
{
    char text[32];

    snprintf(text, sizeof(text), "%.17g", value);
    set_choice(c, name, text);
}

#endif
