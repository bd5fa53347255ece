/* SPDX-License-Identifier: MIT
 *
 * What a study shows, in sentences that follow from its verdicts. */
#pragma once

#include "study_verdict.h"

/* "21 % more parameters than its control alibi"; "" within the 2 % that usual sizes differ by. */
struct study_size {
    char text[2 * TEXT_SIZE];
    int n; /* bytes of it without "than ..." */
};
struct study_size study_size_text(const struct study_entry *e);

/* Which contenders are better, worse, not shown to differ, not tested, at the largest budget; which change places on
 * the way there. A line each, or none. Nobody is ahead whose interval does not show it. */
void study_answer(FILE *f, const struct study_verdicts *v);
