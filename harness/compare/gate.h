/* SPDX-License-Identifier: MIT
 *
 * The gate's rules, independent of how its numbers are measured. */
#pragma once

#include "ab_run.h"

/* One case: the difference between identical programs here, and between the two programs. */
struct gate_case {
    const struct bench_case *bcase; /* NULL: numbers without times, such as a perplexity */
    struct change identical;        /* old against old */
    double threshold;               /* fraction: the user's, or three times the noise */
    int pairs;                      /* pairs wanted */
    struct change first, second;
    bool repeated; /* there was a second round */
};

/* Is the machine too noisy for the user's threshold? Then A/A is repeated with twice the pairs. */
bool gate_too_noisy(const struct change *identical, double threshold);

/* max(user's, 3 x noise). */
double gate_threshold(const struct change *identical, double threshold);

struct trial;

/* Old was measured against itself linked again: no threshold is below three times the root mean square of these
 * differences, and first rounds are judged anew. */
void gate_layout(struct trial *g);

/* Does the first round require a second? */
bool gate_flagged(const struct gate_case *g);

/* The verdict over both rounds, unclear where it is neither shown twice nor the same; `note` explains a verdict milder than that of one round. */
enum verdict gate_verdict(const struct gate_case *g, char *note, size_t size);

/* More instructions than the old program by more than 0.5 %. */
bool gate_more_instructions(double before, double after);

struct trial {
    struct ab_run ab_run;
    struct comparisons all;  /* the report; entry i belongs to cases[i] */
    struct gate_case *cases; /* [all.n] */
    double threshold;
};

/* The counts, and what to do about unclear cases. */
void gate_say(FILE *f, const struct trial *g);

/* The result as Markdown: verdict, table, and the command that repeats it. */
void gate_markdown(FILE *f, const struct trial *g, int code);
