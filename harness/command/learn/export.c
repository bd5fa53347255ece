/* SPDX-License-Identifier: MIT
 *
 * bench export: a run in the format of another program, on standard output. */
#include "harness/export/export.h"
#include "harness/command/commands.h"
#include "harness/compare/baseline.h"
#include "harness/table/rundir.h"

enum status cmd_export(struct options *opt, int *code, struct err *e)
{
    struct run run;
    char dir[FILE_PATH];
    enum status st = opt->words.n > 0 ? baseline_or_run(dir, opt, opt->words.v[0], e)
                                      : rundir_find(dir, opt->out, NULL, e);

    if (st != OK && opt->words.n == 0)
        return fail(e, st, "there is no run in %.400s  -> bench export RUN", opt->out);
    TRY(st);
    TRY(run_read(&run, dir, e));
    st = run_filter(&run, &opt->filters, e);
    if (st == OK)
        st = export_run(stdout, (enum export_to)opt->to, &run, e);
    run_free(&run);
    return st;
}
