/* SPDX-License-Identifier: MIT
 *
 * A case bound in this process, ready to run, and kept until the test ends; a failed assertion where it
 * cannot be. */
#pragma once

#include "failure.h"
#include "harness/worker/job.h"

static inline void must_open_job(struct job *j, const struct bench_case *c)
{
    cr_assert_eq(job_open(j, c, &failure), OK, "%s: %s", c->repro, failure.msg);
    kept_copy(j, sizeof(*j));
}

static inline void must_place(struct job *j)
{
    cr_assert_eq(job_place(j, NULL, NULL, &failure), OK, "%s: %s", j->bcase->repro, failure.msg);
    kept_copy(j, sizeof(*j));
}

static inline void must_start(struct job *j, const struct bench_case *c)
{
    must_open_job(j, c);
    must_place(j);
}
