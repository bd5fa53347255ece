/* SPDX-License-Identifier: MIT
 *
 * bench eval: perplexity of one checkpoint on one text. */
#include "commands.h"
#include "harness/learn/perplexity.h"

int cmd_eval(struct options *opt)
{
    struct session s;
    struct err e;
    enum status st = session_open(&s, opt, &e);

    if (st == OK)
        st = perplexity_eval(&s, &e);
    if (st != OK && st != E_INTERRUPTED)
        report_error(st, &e);
    const int code = s.started ? session_exit_code(&s, st) : exit_of(st);
    session_close(&s);
    return code;
}
