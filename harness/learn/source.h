/* SPDX-License-Identifier: MIT
 *
 * A source of generated text, for the files that define one. Probabilities are of the next symbol,
 * given the symbols within reach; which place of an episode it is counts as known, because what a
 * floor is compared with may know it. */
#ifndef SOURCE_H
#define SOURCE_H

#include "synthetic.h"

#include "variants/base/rng.h"

struct source_kind {
    const char *name, *about;
    struct keyed_key keys[KEYED_KEYS]; /* without a name: none */
    /* E_USAGE if the values do not go together; NULL = all do. */
    enum status (*check)(const struct synthetic *s, struct err *e);
    int (*vocab)(const struct synthetic *s);
    /* Symbols [0, n); `seed` is that of the split. */
    void (*fill)(const struct synthetic *s, uint64_t seed, uint8_t *x, size_t n);
    double (*nll)(const struct synthetic *s, const uint8_t *x, size_t at, size_t reach,
                  struct source_memo *memo);
    bool (*answers)(const struct synthetic *s, const uint8_t *x, size_t at); /* NULL = none are */
    struct source_pair (*pair)(const struct synthetic *s); /* NULL = its texts are no pairs */
};

extern const struct source_kind source_copy, source_recall, source_mqar, source_selcopy, source_cue,
    source_flipflop, source_group, source_markov, source_dyck, source_lookup, source_reverse,
    source_translate, source_sort, source_fuzzy, source_noisy, source_compression,
    source_memorisation;

static inline int source_int(const struct synthetic *s, int key) { return (int)s->value[key]; }

/* Number n of the stream: uniform over [0, most). */
static inline int source_draw(uint64_t seed, uint64_t stream, uint64_t n, int most)
{
    CHECK(most > 0);
    return (int)(rng_u32(seed, stream, n) % (uint32_t)most);
}

/* The first symbol within reach of `at`, not before `begin`. */
static inline size_t source_seen(size_t at, size_t reach, size_t begin)
{
    return at - reach > begin ? at - reach : begin;
}

#endif
