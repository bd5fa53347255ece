/* SPDX-License-Identifier: MIT
 *
 * bench export: a run in the format of another program, on standard output. */
#include "harness/export/export.h"
#include "commands.h"
#include "harness/compare/baseline.h"
#include "harness/table/rundir.h"

int cmd_export(struct options *opt)
{
    struct run run = {0};
    char dir[FILE_PATH];
    struct err e;
    enum status st = opt->words.n > 0 ? baseline_or_run(dir, opt, opt->words.v[0], &e)
                                      : rundir_find(dir, opt->out, NULL, &e);

    if (st != OK && opt->words.n == 0)
        fail(&e, st, "there is no run in %.400s  -> bench export RUN", opt->out);
    if (st == OK)
        st = run_read(&run, dir, &e);
    if (st == OK)
        st = run_filter(&run, &opt->filters, &e);
    if (st == OK)
        st = export_run(stdout, (enum export_to)opt->to, &run, &e);
    run_free(&run);
    return st == OK ? EXIT_FINE : report_error(st, &e);
}
