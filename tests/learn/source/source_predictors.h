/* SPDX-License-Identifier: MIT
 *
 * What the floors of the generated sources are compared with: for each source a predictor that gives
 * the distribution of the next symbol from tables of what it has seen. */
#pragma once

#include "variants/base/base.h"

enum { SOURCE_TEXT = 40000, SOURCE_SYMBOLS = 256 };

/* The text that predictors read. */
extern uint8_t source_text[SOURCE_TEXT];

/* p becomes the distribution of symbol `at`, given `reach` symbols before it; calls are in order of
 * `at` and begin with 1. False where there is none. */
typedef bool source_predict(double p[SOURCE_SYMBOLS], size_t at, size_t reach);

struct source_case {
    const char *text;
    source_predict *predict;
    size_t little; /* a reach that some answers need more than */
};

/* All of them, then one without text. */
extern const struct source_case source_cases[];
