/* SPDX-License-Identifier: MIT
 *
 * The generated text "copy:lag=D,p=P,alphabet=A": each symbol repeats the one D positions back with
 * probability P and is otherwise uniform over A symbols. What a model can reach at best is known
 * exactly: with the symbol D back in sight the next one has probability q = P + (1-P)/A if it is
 * that one and r = (1-P)/A if not; out of sight everything is 1/A. */
#ifndef SYNTHETIC_H
#define SYNTHETIC_H

#include "variants/base/base.h"

/* Streams of the same source that share no numbers. */
enum split { SPLIT_TRAIN, SPLIT_VALID, SPLIT_TEST, SPLIT_COUNT };

struct synthetic {
    int lag, alphabet;
    double p;
};

#define SOURCE_DEFAULT "copy:lag=192,p=0.9,alphabet=16"

/* Does the text name a generated source rather than a file? */
bool synthetic_named(const char *text);

/* "copy:..." with the three keys in any order, missing ones as in SOURCE_DEFAULT. E_USAGE for what
 * makes no sense. */
enum status synthetic_parse(struct synthetic *s, const char *text, struct err *e);

/* The first n symbols of a split. */
void synthetic_fill(const struct synthetic *s, enum split split, uint8_t *symbols, size_t n);

/* At most so many symbols can be seen in front of the target of position i of a segment: the window
 * where the past is recomputed; with memory of M states in each of N layers, M more per layer, and
 * up to a segment of L on the way. An upper bound, so that what follows from it is a floor. */
size_t synthetic_reach(bool recompute, int N, int M, int L, int i);

/* Nats that the true source pays for symbols[at], when a model sees `reach` symbols before it. */
double synthetic_nll(const struct synthetic *s, const uint8_t *symbols, size_t at, size_t reach);

#endif
