/* SPDX-License-Identifier: MIT
 *
 * The target of each pair of a text, whose source an encoder reads. */
#include "scoring.h"

static enum status open_pairs(struct scored *t, struct err *e)
{
    TRY(pairs_of(&t->pairs, &t->corpus, e));
    if (t->L != t->pairs.target)
        return fail(e, E_USAGE, "targets of %s have %d symbols  -> use --seq %d", t->corpus.name,
                    t->pairs.target, t->pairs.target);
    return OK;
}

static bool next(struct scored *t, double *done)
{
    *done = (double)t->nth / (double)t->pairs.n;
    return t->nth < t->pairs.n;
}

static enum status score(struct scored *t, struct summand *to, struct err *e)
{
    const size_t nth = t->nth++;

    pairs_read(&t->pairs, t->corpus.bytes, nth, t->source, t->tokens, t->targets);
    TRY(scored_forward(t, 1, t->L, t->L, e));
    *to = (struct summand){.tokens = t->L,
                           .scored = t->L,
                           .floor = pairs_floor(&t->pairs, &t->corpus, nth, t->nll, &t->answers),
                           .right = lm_has_logits(&t->lm)
                                        ? pairs_right(t->lm.logits, t->targets, t->L, t->lm.c.V)
                                        : NAN};
    for (int k = 0; k < t->L; k++)
        to->sum += scored_nll(t, k, k);
    return OK;
}

const struct scoring scoring_pairs = {.reads = "has an encoder and reads pairs of texts",
                                      .next_is = "one text",
                                      .whole = "",
                                      .open = open_pairs,
                                      .next = next,
                                      .score = score,
                                      .token = "target "};
