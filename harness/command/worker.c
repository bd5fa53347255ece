/* SPDX-License-Identifier: MIT
 *
 * `bench cell TALK REFERENCE ROLE` (hidden): one measuring child. Its orders come as lines over the
 * socket TALK; see protocol.h. It prints nothing. */
#include "commands.h"
#include "harness/worker/protocol.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum status answer_block(struct protocol *t, struct worker *s, const char *line,
                                struct err *e)
{
    struct sample out;
    unsigned calls = 0;
    int prime = 0;

    if (sscanf(line, "block %u %d", &calls, &prime) != 2 || calls == 0)
        return fail(e, E_CHILD, "an order that makes no sense: %.40s", line);
    const enum status st = worker_block(s, calls, prime != 0, &out, e);
    return st == OK ? protocol_write(t, e, "sample %.17g %.17g %u", out.wall_ns, out.cpu_ns,
                                     out.involuntary_switches)
                    : st;
}

/* Obey until "close". Failures are told; only a broken pipe ends it early. */
static enum status obey(struct protocol *t, struct worker *s, struct err *e)
{
    char line[TALK_LINE];

    for (;;) {
        struct err why;
        enum status st = protocol_read(t, line, e);
        if (st != OK)
            return st;
        if (strcmp(line, "place") == 0) {
            st = worker_place(s, &why);
            if (st == OK)
                st = protocol_write_report(t, &s->report, &why);
        } else if (strcmp(line, "close") == 0) {
            worker_close(s);
            return protocol_write_report(t, &s->report, e);
        } else {
            st = answer_block(t, s, line, &why);
        }
        if (st != OK && protocol_write(t, e, "fail %d %s", (int)st, why.msg) != OK)
            return E_CHILD;
    }
}

/* After exec the cell is rebuilt from its own line. */
static enum status rebuild(struct plan *plan, struct options *opt, const char *repro, struct err *e)
{
    enum status st = options_parse_line(opt, repro, e);

    if (st != OK)
        return st;
    cpu_limit((enum isa)opt->max_isa);
    st = plan_make(plan, opt, e);
    if (st == OK && plan->n != 1)
        st = fail(e, E_CHILD, "\"%s\" makes %d cells", repro, plan->n);
    return st;
}

/* The order that follows `first` in the line, or NULL. */
static const char *after(const char *line, const char *first)
{
    return strncmp(line, first, strlen(first)) == 0 ? line + strlen(first) : NULL;
}

static enum status score(struct report *r, const char *line, struct err *e)
{
    struct options opt = {0};
    enum status st = options_parse_line(&opt, line, e);

    if (st == OK)
        cpu_limit((enum isa)opt.max_isa);
    if (st == OK)
        st = worker_score(r, &opt, e);
    options_free(&opt);
    return st;
}

int worker_loop(struct protocol *t, const struct bench_case *bcase, enum role role, int reference)
{
    struct worker s = {0};
    struct err e;
    char line[TALK_LINE];
    struct options opt = {0};
    struct plan plan = {0};
    enum status st = protocol_write(t, &e, TALK_HELLO);

    if (st == OK)
        st = protocol_read(t, line, &e);
    if (st != OK)
        return EXIT_SOME_FAILED;
    const char *open = after(line, "open "), *text = after(line, "score ");
    if (!open && !text)
        st = fail(&e, E_CHILD, "the first order is %.40s", line);
    else if (text)
        st = score(&s.report, text, &e);
    else if (!bcase)
        st = rebuild(&plan, &opt, open, &e);
    if (st == OK && open)
        st = worker_open(&s, bcase ? bcase : plan.cases, role, reference, &e);
    if (st == OK)
        st = protocol_write_report(t, &s.report, &e);
    else
        protocol_write(t, &(struct err){""}, "fail %d %s", (int)st, e.msg);
    if (st == OK)
        st = obey(t, &s, &e);
    plan_free(&plan);
    options_free(&opt);
    return st == OK ? EXIT_FINE : EXIT_SOME_FAILED;
}

int cmd_worker(struct options *opt)
{
    struct protocol t = {.fd = -1};

    if (opt->words.n != 3)
        return EXIT_BAD_USAGE;
    t.fd = atoi(opt->words.v[0]);
    return worker_loop(&t, NULL, (enum role)atoi(opt->words.v[2]), atoi(opt->words.v[1]));
}
