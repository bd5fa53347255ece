/* SPDX-License-Identifier: MIT
 *
 * flipflop:ignore=P (Liu et al. 2023, "Exposing Attention Glitches with Flip-Flop Language
 * Modeling"). Pairs of an instruction and a bit: write, read or ignore with probabilities (1-P)/2,
 * (1-P)/2 and P, the first a write. The bit of a read is that of the last write; others are
 * uniform. A read costs nothing if a write or another read is within reach, otherwise ln 2; so do
 * other bits. */
#include "synthetic.h"

enum { IGNORE };
enum { WRITES, READS, IGNORES, BIT };

static int vocab(const struct synthetic *s) { return BIT + 2; }

static void fill(const struct synthetic *s, uint64_t seed, uint8_t *x, size_t n)
{
    const uint64_t word = rng_stream("source.flipflop.word"),
                   bit = rng_stream("source.flipflop.bit");
    const double ignore = s->value[IGNORE];
    int last = 0;

    for (size_t t = 0; t < n; t++) {
        const double u = t % 2 ? 0 : rng_uniform(seed, word, t);
        if (t % 2 == 0) {
            x[t] = t == 0 ? WRITES : u < ignore ? IGNORES : u < (1 + ignore) / 2 ? WRITES : READS;
            continue;
        }
        const int fresh = source_draw(seed, bit, t, 2);
        last = x[t - 1] == WRITES ? fresh : last;
        x[t] = (uint8_t)(BIT + (x[t - 1] == READS ? last : fresh));
    }
}

static bool answers(const struct synthetic *s, const uint8_t *x, size_t at)
{
    return at % 2 && x[at - 1] == READS;
}

static double nll(const struct synthetic *s, const uint8_t *x, size_t at, struct source_view view)
{
    const double ignore = s->value[IGNORE];

    if (at % 2 == 0)
        return -log(x[at] == IGNORES ? ignore : (1 - ignore) / 2);
    for (size_t back = 2; answers(s, x, at) && back <= view.reach; back += 2)
        if (x[at - back - 1] != IGNORES)
            return 0;
    return log(2);
}

const struct source_kind source_flipflop = {
    .name = "flipflop",
    .about =
        "an instruction (write, read or ignore) and a bit; a read repeats the last written bit",
    .keys = {{"ignore", 0.8, 0, 0.999999, true, NULL}},
    SOURCE_HOOKS,
    .answers = answers,
};
