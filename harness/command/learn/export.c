/* SPDX-License-Identifier: MIT
 *
 * bench export: a run in the format of another program, on standard output. */
#include "harness/export/export.h"
#include "harness/command/commands.h"
#include "harness/compare/baseline.h"
#include "harness/table/rundir.h"

/* A run has no model, a model no rows. */
static enum status check_options(const struct options *o, bool model, struct err *e)
{
    static const char *const others[2][5] = {{"ckpt", "from", "force", "lora"}, {"filter", "out"}};

    for (const char *const *at = others[model]; *at; at++)
        if (options_written(o, *at))
            return fail(e, E_USAGE, "export --to %s does not take --%s  -> leave it out",
                        export_name[o->to], *at);
    return OK;
}

enum status cmd_export(struct options *opt, int *code, struct err *e)
{
    const bool model = opt->to >= EXPORT_HF;

    TRY(check_options(opt, model, e));
    if (model)
        return export_model(opt, e);
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
