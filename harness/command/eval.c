/* SPDX-License-Identifier: MIT
 *
 * bench eval: perplexity of one checkpoint on one text. */
#include "commands.h"
#include "harness/export/export.h"
#include "harness/learn/perplexity.h"

/* Scores have columns of their own: --columns chooses them in other formats. */
static enum status print_document(const struct session *s, struct err *e)
{
    struct run run;
    enum status st = run_read(&run, s->dir.path, e);

    if (st == OK)
        st = s->console.format == FORMAT_JSON ? export_json(stdout, &run, &(struct names){0}, e)
                                              : export_run(stdout, EXPORT_FOM, &run, e);
    run_free(&run);
    return st;
}

int cmd_eval(struct options *opt)
{
    struct session s;
    struct err e;
    enum status st = session_continue(opt, &e);

    if (st != OK)
        return report_error(st, &e);
    if ((st = perplexity_presets(opt, &e)) != OK)
        return report_error(st, &e);
    st = session_open(&s, opt, &e);

    if (st == OK && opt->format == FORMAT_JSON && opt->columns.n > 0)
        st = fail(&e, E_USAGE,
                  "--columns does not choose columns of --format json  -> use --format jsonl");
    if (st == OK)
        st = perplexity_eval(&s, &e);
    if (st == OK && console_at_end(s.console.format))
        st = print_document(&s, &e);
    if (st != OK && st != E_INTERRUPTED)
        report_error(st, &e);
    const int code = s.started ? session_exit_code(&s, st) : exit_of(st);
    session_close(&s);
    return code;
}
