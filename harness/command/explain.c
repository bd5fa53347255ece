/* SPDX-License-Identifier: MIT
 *
 * bench explain CASE_ID [RUN]: how a time came about. */
#include "harness/measure/explain.h"
#include "commands.h"
#include "harness/command/check/find_case.h"

static enum status explain(const struct search *s, struct err *e)
{
    struct run run;
    enum status st = OK;

    TRY(run_read(&run, s->run, e));
    const struct latency_row *const row = run.latency.row;
    size_t i = 0;
    while (i < run.latency.n && strcmp(row[i].case_id, s->found_id) != 0)
        i++;
    if (i < run.latency.n)
        explain_row(stdout, &run, &row[i]);
    else
        st = fail(e, E_USAGE, "%s is a score, not a time  -> give a case_id of latency.csv",
                  s->found_id);
    run_free(&run);
    return st;
}

enum status cmd_explain(struct options *opt, int *code, struct err *e)
{
    struct search s;

    TRY(find_case(&s, opt, e));
    return explain(&s, e);
}
