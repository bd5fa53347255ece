/* SPDX-License-Identifier: MIT
 *
 * The golden files that users have: language models, attention, recurrences, published models.
 * tests/golden_reader/kinds.c takes the place of this file where tests' own are read, too. */
#include "golden.h"

const bool golden_is_all = false;
const struct golden_kind *const golden_kinds[] = {
    &golden_operator, &golden_lm, &golden_recur, &golden_import_memory, &golden_import, NULL,
};
