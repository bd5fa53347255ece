/* SPDX-License-Identifier: MIT
 *
 * Hidden tokens of whole windows, which a masked language model fills in. */
#include "harness/learn/source/masked.h"
#include "scoring.h"

/* Tokens of a window that stand in front of its text. */
static int in_front(const struct scored *t)
{
    const size_t before = t->window.at - t->windows.doc.begin, given = (size_t)t->windows.doc.given;

    return before < given ? min_int(t->window.read, (int)(given - before)) : 0;
}

/* What stands in front of a text is not hidden. */
static enum status score(struct scored *t, struct summand *to, struct err *e)
{
    const struct window *const w = &t->window;
    const int first = in_front(t), own = w->read - first;
    const int hidden = own ? masked_count(t->mask_share, own) : 0;

    *to = (struct summand){.tokens = hidden, .scored = hidden, .floor = NAN, .right = NAN};
    if (!hidden)
        return OK;
    memcpy(t->tokens, t->text.ids + w->at, sizeof(int32_t) * (size_t)w->read);
    masked_hide(hidden, MASKED_SCORED, t->nth++, t->lm.c.V - 1, t->tokens + first, own, t->places,
                t->targets);
    for (int i = 0; i < hidden; i++)
        t->places[i] += first;
    t->lm.picked = t->places;
    t->lm.n_picked = hidden;
    scored_begin(t);
    TRY(scored_forward(t, 1, w->read, w->read, e));
    for (int i = 0; i < hidden; i++)
        to->sum += scored_nll(t, i, t->places[i] - first);
    return OK;
}

const struct scoring scoring_masked = {.reads = "fills in hidden tokens",
                                       .next_is = "next ones",
                                       .whole = " of whole windows",
                                       .next = scored_next_window,
                                       .score = score,
                                       .token = "masked "};
