/* SPDX-License-Identifier: MIT
 *
 * Generated texts whose best possible loss is known: "NAME:key=value,...". Each is a row of the
 * table of sources (synthetic.c); its file says what it generates and derives the floor. Symbols
 * are drawn by their number, so a text is the same on every machine, and a longer one begins like a
 * shorter one.
 *
 * source/ holds what a training or a score reads: files, generated texts, pairs, masks, and the
 * windows that texts are cut into. Nothing here runs a model. */
#pragma once

#include "keyed.h"
#include "variants/base/rng.h"

/* Independent streams of the same source. */
enum split { SPLIT_TRAIN, SPLIT_VALID, SPLIT_TEST, SPLIT_COUNT };

struct source_kind;
struct synthetic {
    const struct source_kind *kind;
    double value[KEYED_KEYS]; /* of its keys */
    uint64_t seed;
};

#define SOURCE_DEFAULT "copy:lag=192,p=0.9,alphabet=16,groups=4"

/* The i-th source as it is usually written, such as SOURCE_DEFAULT, and what it is, in a few words;
 * false after the last. */
bool synthetic_source(int i, char text[KEYED_TEXT], const char **about);

/* Does the text name a generated source rather than a file? */
bool synthetic_named(const char *text);

/* "NAME:..." with the keys of the source and `seed` in any order, missing ones as usual. E_USAGE
 * for what it lacks or cannot be. */
enum status synthetic_parse(struct synthetic *s, const char *text, struct err *e);

/* Symbols are from 0 to below this, which is at most 256. */
int synthetic_vocab(const struct synthetic *s);

/* The first n symbols of a split. */
void synthetic_fill(const struct synthetic *s, enum split split, uint8_t *symbols, size_t n);

/* Upper bound of the symbols that can be reached before the target of position i of a segment, so
 * that the loss derived from it is a floor: the window if the past is recomputed; with memory of M
 * states in each of N layers, M more per layer, and up to a segment of L on the way. */
size_t synthetic_reach(bool recompute, int N, int M, int L, int i);

/* Texts that are pairs: so many symbols of a source, a mark, so many of what is made of it, and again.
 */
struct source_pair {
    int source, target;
};
/* That of the text; zeros where it has none. */
struct source_pair synthetic_pair(const struct synthetic *s);
/* The sources whose texts are pairs, "--corpus reverse:, ..." */
const char *synthetic_pairs(char text[KEYED_TEXT]);

/* What the call before has found out about a text; {0} at first. Others than those in order cost
 * more time, nothing else. */
struct source_memo {
    size_t at;
    int value;
};

/* Nats of symbols[at] under the true source, if the model reaches `reach` <= at symbols before it
 * and knows where in an episode it is. NAN where the source has no floor. */
double synthetic_nll(const struct synthetic *s, const uint8_t *symbols, size_t at, size_t reach,
                     struct source_memo *memo);

/* Does the text name a source that calls some symbols answers? */
bool synthetic_asks(const char *text);
/* Is symbols[at] an answer: one that earlier symbols tell something about? */
bool synthetic_answers(const struct synthetic *s, const uint8_t *symbols, size_t at);

/* ---- for the files that define a source ----------------------------------------------------- */

/* Which symbols before the one count as known, and what the call before has found out. */
struct source_view {
    size_t reach;
    struct source_memo *memo; /* never NULL */
};

/* Probabilities are of the next symbol, given the symbols within reach; which place of an episode it
 * is counts as known, because what a floor is compared with may know it. */
struct source_kind {
    const char *name, *about;
    struct keyed_key keys[KEYED_KEYS]; /* without a name: none */
    /* E_USAGE if the values do not go together; NULL = all do. */
    enum status (*check)(const struct synthetic *s, struct err *e);
    int (*vocab)(const struct synthetic *s);
    /* Symbols [0, n); `seed` is that of the split. */
    void (*fill)(const struct synthetic *s, uint64_t seed, uint8_t *x, size_t n);
    double (*nll)(const struct synthetic *s, const uint8_t *x, size_t at, struct source_view view);
    bool (*answers)(const struct synthetic *s, const uint8_t *x, size_t at); /* NULL = none are */
    struct source_pair (*pair)(const struct synthetic *s); /* NULL = its texts are no pairs */
};
/* Those that are functions of these names in its file. */
#define SOURCE_HOOKS .vocab = vocab, .fill = fill, .nll = nll

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
