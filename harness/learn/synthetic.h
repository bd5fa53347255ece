/* SPDX-License-Identifier: MIT
 *
 * The generated text "copy:lag=D,p=P,alphabet=A": each symbol repeats the one D positions back with
 * probability P and is otherwise uniform over A symbols. The best possible loss is known exactly:
 * if the symbol D back is in reach, the next one has probability q = P + (1-P)/A if it is the same
 * and r = (1-P)/A if not; out of reach everything is 1/A. */
#ifndef SYNTHETIC_H
#define SYNTHETIC_H

#include "variants/base/base.h"

/* Independent streams of the same source. */
enum split { SPLIT_TRAIN, SPLIT_VALID, SPLIT_TEST, SPLIT_COUNT };

struct synthetic {
    int lag, alphabet;
    double p;
};

#define SOURCE_DEFAULT "copy:lag=192,p=0.9,alphabet=16"

/* Does the text name a generated source rather than a file? */
bool synthetic_named(const char *text);

/* "copy:..." with the three keys in any order, missing ones as in SOURCE_DEFAULT. E_USAGE for
 * invalid values. */
enum status synthetic_parse(struct synthetic *s, const char *text, struct err *e);

/* The first n symbols of a split. */
void synthetic_fill(const struct synthetic *s, enum split split, uint8_t *symbols, size_t n);

/* Upper bound of the symbols that can be reached before the target of position i of a segment, so
 * that the loss derived from it is a floor: the window if the past is recomputed; with memory of M
 * states in each of N layers, M more per layer, and up to a segment of L on the way. */
size_t synthetic_reach(bool recompute, int N, int M, int L, int i);

/* Nats of symbols[at] under the true source, if the model reaches `reach` symbols before it. */
double synthetic_nll(const struct synthetic *s, const uint8_t *symbols, size_t at, size_t reach);

#endif
