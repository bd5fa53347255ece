/* SPDX-License-Identifier: MIT
 *
 * Which windows of a tokenised text are scored, and how they are weighed: the ways in which
 * published perplexities are counted (--count). A rule makes windows from lengths alone, without a
 * model.
 *
 *   stream   L new tokens after the past, which goes on: every token once
 *   hf       P tokens, moved by a stride; those that the window before had are context. A window
 *            weighs t - 1, with t its new tokens (documentation of the transformers library)
 *   lm-eval  P predictions, disjoint; the last window is moved back (lm-evaluation-harness)
 *
 * A stream may be cut into B parts side by side, as Transformer-XL counts. */
#pragma once

#include "harness/cli/options.h"

/* A document: ids [begin, end), of which the first `given` stand in front and are not scored. */
struct span {
    size_t begin, end;
    int given;
};

struct rule {
    enum count count;
    int P;      /* tokens of a window, new ones of a stream */
    int past;   /* stream: most tokens that are run again in front of it */
    int stride; /* hf */
    int batch;  /* stream: parts; each has as many ids, the rest is dropped */
};

struct window {
    size_t at;     /* the first id that is read, in the first part */
    int read;      /* ids that are read; the last `scored` of them predict the id after them */
    int fresh_ids; /* of these, the last so many are new to the memory */
    int scored;
    bool fresh;    /* what was before is forgotten */
    double weight; /* of the mean of its losses, for each part */
};

struct windows {
    struct rule rule;
    struct span doc;
    size_t part; /* ids of a part */
    size_t next, scored_to;
    bool begun, done;
};

void windows_begin(struct windows *w, const struct rule *rule, const struct span *doc);
bool windows_next(struct windows *w, struct window *out);
