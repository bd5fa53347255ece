/* SPDX-License-Identifier: MIT
 *
 * The reference child of a case, and the rule of the check. */
#include "reference.h"

#include <sys/mman.h>

enum status case_as_ref(struct bench_case *ref, struct options *opt, const struct bench_case *c,
                        int threads, struct err *e)
{
    struct options preset = {0};
    enum status st = options_parse_line(&preset, "", e);

    *opt = *c->opt;
    opt->impl = NULL;
    *ref = *c;
    ref->backend = &backend_ref;
    ref->opt = opt;
    if (threads > 0) {
        ref->threads = threads;
        opt->pin = "none";
    }
    ref->repro = st == OK ? case_repro(ref, &preset) : NULL;
    options_free(&preset);
    return st;
}

enum status reference_open(int *file, struct err *e)
{
    if (*file < 0)
        *file = memfd_create("reference", MFD_CLOEXEC);
    return *file >= 0
               ? OK
               : fail(e, E_CHILD, "no memory file for a reference output: %s", strerror(errno));
}

enum status reference_make(int *file, const struct bench_case *like,
                           const struct child_setup *setup, double limit_s, struct err *e)
{
    struct bench_case ref = {0};
    struct options opt;
    struct child child = {.protocol = {.fd = -1}};
    enum status st = reference_open(file, e);

    if (st == OK)
        st = case_as_ref(&ref, &opt, like, setup->reference_threads, e);
    if (st == OK)
        st = child_open(&child, &ref, setup, ROLE_MAKE, *file, e);
    if (st == OK)
        st = child_reference(&child, limit_s, e);
    child_close(&child);
    free(ref.repro);
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
