/* SPDX-License-Identifier: MIT
 *
 * For tests that build a config: what a part has of its own, set by its name in files. */
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

static inline void set_number(struct config *c, const char *name, double value)
{
    char text[32];

    snprintf(text, sizeof(text), "%.17g", value);
    set_choice(c, name, text);
}

#endif
