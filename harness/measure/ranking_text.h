/* SPDX-License-Identifier: MIT
 *
 * Pieces of text that the rankings for people and their answer have in common. */
#pragma once

#include "ranking.h"

/* Words that go on to the next line where they do not fit. */
struct flow {
    FILE *f;
    int width, at, indent;
};
void flow_put(struct flow *l, const char *text);

/* "layer", "layer fwd_bwd threads=2": the workload, and what tells the rankings apart. */
void ranking_setting(const struct rankings *all, const struct ranking *r, char *buf, size_t size);

/* The backends of its shapes, each once, joined by `between`. */
void contestant_backends(const struct ranking *r, const struct contestant *v, const char *between,
                         char *buf, size_t size);

/* Of a ranking of variants whose networks differ: a line for each with what differs, then what can be
 * made alike, and how. */
void ranking_print_networks(FILE *f, const struct ranking *r);
