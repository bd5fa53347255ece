/* SPDX-License-Identifier: MIT
 *
 * For tests of golden files: one of them through a backend, and which of its tensors fail. */
#pragma once

#include "harness/check/golden.h"
#include "tests/support/edited_file.h"
#include "tests/support/loaded.h"
#include "tests/support/tmp_folder.h"

struct seen {
    struct tally t;
    int n, failed;
    char first[128]; /* the first failure */
};

static inline void look(void *arg, const struct verdict *v)
{
    struct seen *s = arg;

    s->n++;
    cr_expect(v->skipped || v->limit > 0, "%s %s: compared with a limit of 0", v->file, v->tensor);
    if (!v->skipped && !(v->error <= v->limit) && s->failed++ == 0)
        snprintf(s->first, sizeof(s->first), "%s", v->tensor);
}

static inline enum status run_golden(const char *backend, int threads, const char *path,
                                     struct seen *s)
{
    struct engine g;
    const enum status st = engine_open(&g, backend, threads, NULL, &failure);

    *s = (struct seen){.n = 0};
    if (st == E_UNSUPPORTED)
        cr_skip_test("%s", failure.msg);
    return st == OK ? golden_run(&g, path, &s->t, look, s, &failure) : st;
}
