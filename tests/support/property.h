/* SPDX-License-Identifier: MIT
 *
 * What variants promise, for a table of all of them: each test that asks every variant says what
 * came out. The file $PROPERTIES, if there is one, gets a line for each answer;
 * scripts/properties.sh makes the table. */
#pragma once

#include "variants/variant.h"

/* `answer` is "yes", or why the property does not hold by design. */
static inline void property(const struct variant *v, const char *name, const char *answer)
{
    const char *const path = getenv("PROPERTIES");
    FILE *const f = path ? fopen(path, "a") : NULL;

    if (!f)
        return;
    fprintf(f, "%s\t%s\t%s\n", v->name, name, answer);
    fclose(f);
}
