/* SPDX-License-Identifier: MIT
 *
 * The numbers of a parameter that there is. */
#pragma once

#include "variants/parts/params.h"

#include <criterion/criterion.h>

__attribute__((format(printf, 2, 3))) static inline float *data_of(const struct params *p,
                                                                   const char *fmt, ...)
{
    char name[96];
    va_list args;

    va_start(args, fmt);
    vsnprintf(name, sizeof(name), fmt, args);
    va_end(args);
    const struct param *const w = params_find(p, name);
    cr_assert(w, "no %s", name);
    return w->data;
}
