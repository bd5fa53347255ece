/* SPDX-License-Identifier: MIT
 *
 * Cases beside the same of the reference, and plans of one case that cannot run. */
#pragma once

#include "tests/support/command_line.h"
#include "tests/support/started_job.h"

/* What two cases that ran computed is alike within the bound of the first. */
static inline void expect_alike(const struct job *j, const struct job *other)
{
    const struct agreement a = agree(j->out, other->out, j->n_out, job_bound(j->bcase));

    cr_expect(a.within, "%s: %g", j->bcase->repro, a.max_rel);
}

/* The case on the reference, ready to run; once for cases in a row that differ in their backend only. */
static inline const struct job *job_of_reference(const struct bench_case *c)
{
    static struct bench_case like;
    static struct job ref;
    struct bench_case same = *c;

    same.backend = &backend_ref;
    if (like.opt != same.opt || !same_shape(&like, &same) || like.variant != same.variant ||
        memcmp(&like.config, &same.config, sizeof(same.config)) != 0) {
        like = same;
        must_start(&ref, &like);
        job_run(&ref);
    }
    return &ref;
}

/* The case runs, and as on the reference; or it is refused, which says this. Returns whether it ran. */
static inline bool runs_as_reference(struct job *j, const struct bench_case *c, bool must_refuse,
                                     const char *said)
{
    failure = (struct err){""};
    const enum status st = job_open(j, c, &failure);
    if (must_refuse || st != OK) {
        cr_expect_eq(st, E_UNSUPPORTED, "%s: %s", c->repro, failure.msg);
        HAS(failure.msg, said, "  -> ");
        job_close(j);
        return false;
    }
    must_place(j);
    job_run(j);
    expect_alike(j, job_of_reference(c));
    return true;
}

static inline void expect_unsupported(const char *line, const char *why)
{
    const struct plan p = planned("%s", line);

    cr_assert(p.n == 1 && p.cases[0].unsupported, "%s", line);
    cr_expect_str_eq(p.cases[0].unsupported, why, "%s", line);
}
