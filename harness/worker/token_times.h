/* SPDX-License-Identifier: MIT
 *
 * Times inside the runs of a block that make several tokens: what a user waits for. */
#pragma once

#include "job.h"
#include "sample.h"

struct token_times {
    double *ns; /* [room] of single tokens but the first of each run */
    size_t n, room;
    double first_ns; /* sum over runs, each from its beginning to its first token */
    int runs;
};

/* Before a block of so many runs: room for all of their tokens. E_NOMEM. */
enum status token_times_reserve(struct token_times *t, const struct job *j, uint32_t runs,
                                struct err *e);
/* After each run of it: its marks, if it has any. */
void token_times_add(struct token_times *t, const struct job *j);
/* At the end of a block: its fields of the sample, in nanoseconds; then begin anew. */
void token_times_put(struct token_times *t, struct sample *s);
void token_times_free(struct token_times *t);
