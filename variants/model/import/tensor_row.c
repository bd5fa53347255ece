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
                     int expert, const char *rest)
{
    int n = snprintf(to, TENSOR_NAME, "%s", prefix), number = layer;

    for (const char *at = pattern; *at && n < TENSOR_NAME; at++)
        if (*at == '*') {
            n += snprintf(to + n, (size_t)(TENSOR_NAME - n), "%d", number);
            number = expert;
        } else {
            n += snprintf(to + n, (size_t)(TENSOR_NAME - n), "%c", *at);
        }
    if (n < TENSOR_NAME)
        snprintf(to + n, (size_t)(TENSOR_NAME - n), "%s", rest);
}
