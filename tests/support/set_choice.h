/* SPDX-License-Identifier: MIT
 *
 * For tests that build a config: what parts have of their own, set by its name in files. */
#pragma once

#include "failure.h"
#include "variants/model/config/settings.h"
#include "variants/parts/parts.h"

static inline void set_choice(struct config *c, const char *name, const char *text)
{
    cr_assert_eq(config_set(c, name, text, &failure), OK, "%s=%s: %s", name, text, failure.msg);
}

static inline void set_number(struct config *c, const char *name, double value)
{
    const char *const text = kept_text("%.17g", value);
    set_choice(c, name, text);
}

static inline enum status try_one(struct config *c, const char *name, const char *value,
                                  struct err *e)
{
    if (strcmp(name, "pos") != 0) /* options and files have fewer of them to choose from */
        return config_set(c, name, value, e);
    c->pos = pos_find(value);
    cr_assert_not_null(c->pos, "%s", value);
    return OK;
}

/* "name=value name=value", in order: parts before their numbers, which begin as usual. */
static inline enum status try_choices(struct config *c, const char *text, struct err *e)
{
    static const char *const parts[] = {"ffn", "pos", "norm_kind", "mem"};
    char all[256], *at = all;

    cr_assert_lt(snprintf(all, sizeof(all), "%s", text), (int)sizeof(all));
    for (char *name; *text && (name = strsep(&at, " "));) {
        char *const value = strchr(name, '=');
        *value = '\0';
        TRY(try_one(c, name, value + 1, e));
        for (size_t i = 0; i < ARRAY_LEN(parts); i++)
            if (strcmp(name, parts[i]) == 0)
                config_numbers_reset(c);
    }
    return OK;
}

static inline void set_choices(struct config *c, const char *text)
{
    cr_assert_eq(try_choices(c, text, &failure), OK, "%s: %s", text, failure.msg);
}
