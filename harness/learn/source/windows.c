/* SPDX-License-Identifier: MIT
 *
 * Windows of a text. Positions are those of ids in their document. */
#include "windows.h"

void windows_begin(struct windows *w, const struct rule *rule, const struct span *doc)
{
    *w = (struct windows){.rule = *rule,
                          .doc = *doc,
                          .part = (doc->end - doc->begin) / (size_t)max_int(1, rule->batch)};
}

static size_t least_of(size_t a, size_t b) { return a < b ? a : b; }
static size_t most_of(size_t a, size_t b) { return a > b ? a : b; }

/* The ids [from, to) are read; those from `first` on predict. */
static bool put(struct windows *w, struct window *out, size_t from, size_t to, size_t first,
                double weight)
{
    *out = (struct window){.at = w->doc.begin + from,
                           .read = (int)(to - from),
                           .fresh_ids = (int)(to - from),
                           .scored = (int)(to - first),
                           .fresh = true,
                           .weight = weight};
    return true;
}

static bool next_of_stream(struct windows *w, struct window *out)
{
    const size_t from = w->next, last = w->part - 1;
    const size_t past = least_of(from, (size_t)w->rule.past);
    const size_t given = (size_t)(w->doc.given > 1 ? w->doc.given - 1 : 0);

    if (w->part < 2 || from >= last)
        return false;
    const size_t to = least_of(from + (size_t)w->rule.P, last);
    put(w, out, from - past, to, least_of(to, most_of(from, given)), 0);
    out->fresh_ids = (int)(to - from);
    out->fresh = from == 0;
    out->weight = out->scored;
    w->next = to;
    return true;
}

static bool next_of_hf(struct windows *w, struct window *out)
{
    const size_t n = w->doc.end - w->doc.begin, P = (size_t)w->rule.P, from = w->next;
    const size_t end = least_of(from + P, n), t = end - w->scored_to;

    if (w->done || n < 2)
        return false;
    const size_t first = most_of(end - t, from + 1);
    w->done = end == n;
    w->next = from + (size_t)(w->rule.stride ? w->rule.stride : w->rule.P);
    w->scored_to = end;
    if (first >= end) /* one token, with nothing before it */
        return false;
    return put(w, out, from, end - 1, first - 1, (double)t - 1);
}

static bool next_of_lm_eval(struct windows *w, struct window *out)
{
    const size_t n = w->doc.end - w->doc.begin, P = (size_t)w->rule.P, from = w->next;

    if (n < 2 || from >= n - 1)
        return false;
    const size_t to = least_of(from + P, n - 1);
    const size_t begin = to == from + P ? from : to > P ? to - P : 0;
    w->next = to;
    return put(w, out, begin, to, from, (double)(to - from));
}

bool windows_next(struct windows *w, struct window *out)
{
    static bool (*const next[])(struct windows *,
                                struct window *) = {[COUNT_STREAM] = next_of_stream,
                                                    [COUNT_HF] = next_of_hf,
                                                    [COUNT_LM_EVAL] = next_of_lm_eval};

    return next[w->rule.count](w, out);
}
