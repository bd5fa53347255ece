/* SPDX-License-Identifier: MIT
 *
 * Attention inside groups: a query sees the rows that have its number. The rows of a group are
 * gathered, the ordinary kernel runs on them, and its output is scattered back. Where each row is
 * in one group as query and key, a group is plain causal attention with a window; otherwise a mask
 * of bits says which keys each query sees. */
#pragma once

#include "content.h"

struct groups {
    int n;      /* numbers are below it */
    int newest; /* members that a query sees at most; 0 = all */
    /* Does the own row, if it is a member, count among the newest? It is visible anyway, or with
     * self_last only where nothing else is. */
    bool own_counts, self_last;
    int numbers;          /* of a row and head (struct content) */
    int at_key, at_query; /* which of them is its group, as key and as query */
};

/* Bytes of work space; the attention that runs at most. */
size_t groups_scratch(const struct sublayer *s, struct extent max, int groups, int threads);
struct attn groups_core(const struct sublayer *s, struct extent max);

void groups_run(const struct content_call *n, const struct groups *what, const struct attn_grad *d);
/* The gathers and scatters of the last forward pass again. */
void groups_gather(const struct content_call *n, const struct groups *what);

/* Is key j visible to query i (of the new rows)? For inspection: it walks all rows. */
bool groups_visible(const struct content_call *n, const struct groups *what, int b, int h, int i,
                    int j);

/* Rows that a forward pass copies of one head of one sequence if groups are equally large: queries,
 * keys and values into groups, outputs back. */
double groups_moved(const struct groups *what, bool shared, int L, int M);

/* Pairs of one head of one sequence if groups are equally large. */
double groups_pairs(const struct groups *what, int L, int M);
