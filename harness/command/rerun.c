/* SPDX-License-Identifier: MIT
 *
 * bench rerun CASE_ID [RUN]: one row again, a time or a perplexity, from its repro line in the
 * newest run below --out that has it, or in RUN. */
#include "commands.h"
#include "harness/command/check/find_case.h"

/* The row's case, with the options for measuring and printing of this command line. */
static enum status read_case(struct options *again, const struct search *s,
                             const struct options *opt, bool *scored, struct err *e)
{
    TRY(options_parse_line(again, s->repro, e));
    *scored = strcmp(again->command, "eval") == 0;
    TRY(options_take(again, opt, e));
    if (!*scored)
        again->ckpt = "none"; /* one row, without the scores of its variant */
    again->command = opt->command;
    again->argc = opt->argc;
    again->argv = opt->argv;
    cpu_limit((enum isa)again->max_isa);
    return OK;
}

enum status cmd_rerun(struct options *opt, int *code, struct err *e)
{
    struct options again = {0};
    struct search s;
    bool scored = false;

    TRY(find_case(&s, opt, e));
    enum status st = read_case(&again, &s, opt, &scored, e);
    if (st == OK)
        st = scored ? cmd_eval(&again, code, e) : cmd_sweep(&again, code, e);
    again.argv = NULL; /* opt's */
    options_free(&again);
    return st;
}
