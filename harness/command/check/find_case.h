/* SPDX-License-Identifier: MIT
 *
 * The case that a command names: CASE_ID [RUN]. */
#pragma once

#include "harness/table/run.h"

struct search {
    const char *id; /* or its first digits */
    char found_id[TEXT_SIZE], repro[LINE_SIZE];
    char run[FILE_PATH];  /* the folder that it is in */
    int found;            /* cases of the run that was looked at last */
    size_t doubled;       /* rows of that run, see struct rows */
    int runs;             /* that were looked at */
    struct err ambiguous; /* found > 1 */
};

/* The case of opt->words, in the run that is named, or in the newest below --out that has it: a time
 * or a perplexity. E_USAGE, E_IO. */
enum status find_case(struct search *s, const struct options *opt, struct err *e);
