/* SPDX-License-Identifier: MIT
 *
 * The judge of a cell, and the rule of the check. */
#include "reference.h"

#include <math.h>
#include <stdio.h>

enum status case_as_ref(struct bench_case *ref, struct options *opt, const struct bench_case *c,
                        struct err *e)
{
    struct options preset = {0};
    enum status st = options_parse_line(&preset, "", e);

    *opt = *c->opt;
    opt->impl = NULL;
    *ref = *c;
    ref->backend = &backend_ref;
    ref->opt = opt;
    ref->repro = st == OK ? case_repro(ref, &preset) : NULL;
    options_free(&preset);
    if (st == OK && !ref->repro)
        st = fail(e, E_NOMEM, "no memory for a line of options");
    return st;
}

bool report_is_wrong(const struct bench_case *c, const struct report *r, char detail[LINE_SIZE])
{
    const struct bound bound = job_bound(c);

    if (within_bound(r->max_rel_err, r->nmse, bound))
        return false;
    if (r->max_rel_err <= bound.rel)
        snprintf(detail, LINE_SIZE, "mean square error %.1e > %.0e of the reference", r->nmse,
                 bound.nmse);
    else
        snprintf(detail, LINE_SIZE, "max_rel_err %.1e > %.0e at %s", fabs(r->max_rel_err),
                 bound.rel, r->worst_at);
    return true;
}
