/* SPDX-License-Identifier: MIT
 *
 * Which features of a model exclude each other. */
#pragma once

#include "variants/variant.h"

/* OK, or E_USAGE naming two features of the model that exclude each other. */
enum status exclusions_check(const struct config *c, struct err *e);

/* The table as lists have it: each feature, then each part that excludes some by itself. The name of
 * entry i; false after the last. */
enum { FEATURE_TEXT = 128 };
bool exclusions_name(char name[FEATURE_TEXT], int i);
bool exclusions_between(int i, int j);
