/* SPDX-License-Identifier: MIT
 *
 * Golden files: inputs, parameters and expected outputs computed in float64 by an independent
 * program. Each is run through a backend and compared tensor by tensor. */
#ifndef GOLDEN_H
#define GOLDEN_H

#include "variants/backends/backend.h"

struct tally {
    int files, tensors, passed, failed, skipped;
};

/* One comparison. `error` and `limit` are absolute; `skipped` is the reason if there was none. */
struct verdict {
    const char *file, *tensor, *backend, *skipped;
    double error, limit;
};
typedef void verdict_fn(void *arg, const struct verdict *v);

/* Run one file on an open engine and report every out.* tensor. E_IO for a file that cannot be read
 * or does not describe a model, E_UNSUPPORTED for one of a kind that this program does not read;
 * differences are verdicts, not errors. */
enum status golden_run(const struct engine *g, const char *path, struct tally *t,
                       verdict_fn *report, void *arg, struct err *e);

#endif
