/* SPDX-License-Identifier: MIT
 *
 * Names of tensors, ours and published, by their rows. */
#include "model_type.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool tensor_row_covers(const char *pattern, const char *name, int *layer, const char **rest)
{
    *layer = -1;
    for (; *pattern; pattern++)
        if (*pattern == '*') {
            char *end;
            *layer = (int)strtol(name, &end, 10);
            if (end == name)
                return false;
            name = end;
        } else if (*pattern != *name++)
            return false;
    *rest = name;
    return !*name || strcmp(name, ".weight") == 0 || strcmp(name, ".bias") == 0;
}

void tensor_row_name(char to[TENSOR_NAME], const char *pattern, const char *prefix, int layer,
                     const char *rest)
{
    const char *const star = strchr(pattern, '*');
    const int before = star ? (int)(star - pattern) : (int)strlen(pattern);

    if (star)
        snprintf(to, TENSOR_NAME, "%s%.*s%d%s%s", prefix, before, pattern, layer, star + 1, rest);
    else
        snprintf(to, TENSOR_NAME, "%s%s%s", prefix, pattern, rest);
}
