/* SPDX-License-Identifier: MIT
 *
 * Measuring one group: the cells of one shape, together. Each cell becomes a result, whatever
 * happens to it. */
#ifndef GROUP_H
#define GROUP_H

#include "result.h"

struct group_hooks {
    /* A timed block ended; `s` is the newest of r->samples. */
    enum status (*sample)(void *arg, const struct result *r, const struct sample *s, struct err *e);
    void (*warn)(void *arg, const char *text);
    void *arg;
};

/* Measure cells[0..n) together; results[n] are filled. Returns OK, E_INTERRUPTED (results then say
 * which cells were cut short) or the first error of a hook. */
enum status group_measure(const struct bench_case *const *cases, int n,
                          const struct child_setup *setup, const struct group_hooks *hooks,
                          struct result *results, struct err *e);

#endif
