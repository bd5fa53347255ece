/* SPDX-License-Identifier: MIT
 *
 * A score in this process, as `bench eval` computes it. */
#pragma once

#include "command_line.h"
#include "harness/learn/score/score.h"
#include "harness/learn/source/counting.h"
#include "harness/util/fileio.h"

#include <criterion/criterion.h>

/* The options of bench eval in one thread; --count takes 32 for the context of the model. */
__attribute__((format(printf, 3, 4))) static inline enum status
score_line(struct report *r, struct err *e, const char *fmt, ...)
{
    static struct topo *topo; /* opened once: it takes longer than a score */
    struct scorer s = {0};
    struct options o;
    char line[5 * FILE_PATH] = "eval --pin none --threads 1 ";
    const size_t n = strlen(line);
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(line + n, sizeof(line) - n, fmt, ap);
    va_end(ap);
    cr_assert(topo || topo_open(&topo, NULL, e) == OK, "%s", e->msg);
    enum status st = parse_words(&o, line, e);
    if (st == OK)
        st = counting_preset(&o, 32, e);
    s.opt = &o;
    s.topo = topo;
    if (st == OK)
        st = score_run(&s, SPLIT_TEST, e);
    *r = s.report;
    options_free(&o);
    return st;
}

/* The numbers by place in a segment: nll_at_1, nll_at_2, nll_at_4, ... */
enum { SCORE_PLACES = 11 };
static inline void score_places(const struct report *r, double at[SCORE_PLACES])
{
    int k = 0;

#define X(n, ...) at[k++] = r->nll_at_##n;
    NLL_PLACES(X, )
#undef X
}
