/* SPDX-License-Identifier: MIT
 *
 * For tests that build a config: what parts have of their own, set by its name in files. */
#pragma once

#include "failure.h"
#include "variants/model/config/settings.h"

#include <stdio.h>

static inline void set_choice(struct config *c, const char *name, const char *text)
{
    cr_assert_eq(config_set(c, name, text, &failure), OK, "%s=%s: %s", name, text, failure.msg);
}

static inline void set_number(struct config *c, const char *name, double value)
{
    char text[32];

    snprintf(text, sizeof(text), "%.17g", value);
    set_choice(c, name, text);
}
