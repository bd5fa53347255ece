/* SPDX-License-Identifier: MIT
 *
 * Measuring one group: the cases of one shape, together. Each case gets a result, also if it fails.
 */
#pragma once

#include "result.h"

enum group_wait {
    WAIT_REFERENCE, /* for its reference output */
    WAIT_PLACE,     /* until it is placed and compared */
    WAIT_AGAIN,     /* until another launch of it is placed */
    WAIT_MEASURE,   /* samples follow */
};

struct group_hooks {
    /* A timed block ended; `s` is the newest of r->samples. */
    enum status (*sample)(void *arg, const struct result *r, const struct sample *s, struct err *e);
    void (*warn)(void *arg, const char *text);
    /* Something long begins: `what` is done for the case. Returns the seconds that it is expected
     * to take, 0 = unknown. May be NULL. */
    double (*waits)(void *arg, const struct bench_case *c, enum group_wait what);
    void *arg;
};

/* Measure cases[0..n) together; results[n] are filled. Returns OK, E_INTERRUPTED (results then say
 * which cases were cut short) or the first error of a hook. */
enum status group_measure(const struct bench_case *const *cases, int n,
                          const struct child_setup *setup, const struct group_hooks *hooks,
                          struct result *results, struct err *e);
