/* SPDX-License-Identifier: MIT
 *
 * Byte-pair encoding: Sennrich et al. 2016, "Neural Machine Translation of Rare Words with Subword
 * Units". A word begins as its smallest tokens; of all neighbours that a rule joins, those of the
 * lowest rank are joined, the leftmost first, until no rule fits. */
#pragma once

#include "variants/base/base.h"

/* A rule: tokens left and right become token `joint`. */
struct merge {
    int32_t left, right, rank, joint;
};

struct merges {
    struct merge *at; /* by the hash of the pair; joint -1 = free */
    size_t slots;
    int n, room;
};

/* Room for n rules. */
enum status merges_open(struct merges *m, size_t n, struct err *e);
/* A rule; the first of a pair counts. At most as many as there is room for. Rules may have one
 * rank: of those the leftmost is joined first. */
void merges_put(struct merges *m, struct merge rule);
bool merges_has(const struct merges *m, int32_t left, int32_t right);
void merges_free(struct merges *m);

/* Symbols in a row, and candidates; work space that grows and is kept from word to word. */
struct bpe_work {
    struct symbol {
        int32_t id, before, after; /* neighbours, -1 = none; id -1 = joined to the one before */
    } * symbol;
    struct candidate {
        int32_t rank, at; /* the left one of the pair */
    } * heap;
    size_t room, n, queued;
};

/* Begin a word of up to n smallest tokens, append them, and join. What is left then is symbol[0],
 * if there was any, and what comes after each. */
enum status bpe_begin(struct bpe_work *w, size_t n, struct err *e);
void bpe_add(struct bpe_work *w, int32_t id);
void bpe_run(struct bpe_work *w, const struct merges *m);
void bpe_free(struct bpe_work *w);
