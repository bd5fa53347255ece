/* SPDX-License-Identifier: MIT
 *
 * The dispatcher of requests, and the requests of a measuring child. */
#include "serve.h"

#include "exec.h"
#include "harness/cli/exit_code.h"

#include <sys/prctl.h>

/* ---- measuring ----------------------------------------------------------------------------- */

static enum status no_sense(const char *request, const char *words, struct err *e)
{
    return fail(e, E_CHILD, "unexpected request: %s %.40s", request, words);
}

/* After exec the case is rebuilt from its repro line. */
static enum status rebuild(struct server *s, const char *repro, struct err *e)
{
    plan_free(&s->plan); /* of a line refused earlier */
    options_free(&s->opt);
    TRY(options_parse_line(&s->opt, repro, e));
    cpu_limit((enum isa)s->opt.max_isa);
    TRY(plan_make(&s->plan, &s->opt, e));
    return s->plan.n == 1 ? OK : fail(e, E_CHILD, "\"%s\" makes %d cases", repro, s->plan.n);
}

static enum status obey_open(struct server *s, const char *words, struct err *e)
{
    if (s->opened || s->worker.bcase) /* one case per process, even if it could not be opened */
        return no_sense(request_open.name, words, e);
    if (!s->bcase)
        TRY(rebuild(s, words, e));
    TRY(worker_open(&s->worker, s->bcase ? s->bcase : s->plan.cases, s->role, s->reference, NULL,
                    e));
    s->opened = true;
    return report_send(&s->worker.report, &s->protocol, e);
}

static enum status obey_place(struct server *s, const char *words, struct err *e)
{
    if (!s->opened || *words)
        return no_sense(request_place.name, words, e);
    TRY(worker_place(&s->worker, e));
    return report_send(&s->worker.report, &s->protocol, e);
}

static enum status obey_reference(struct server *s, const char *words, struct err *e)
{
    double limit_s;

    if (!s->opened || s->role != ROLE_MAKE || sscanf(words, "%lf", &limit_s) != 1)
        return no_sense(request_reference.name, words, e);
    TRY(worker_reference(&s->worker, limit_s, e));
    return report_send(&s->worker.report, &s->protocol, e);
}

static enum status obey_block(struct server *s, const char *words, struct err *e)
{
    struct sample out;
    unsigned calls = 0;
    int prime = 0;

    if (!s->opened || sscanf(words, "%u %d", &calls, &prime) != 2 || calls == 0)
        return no_sense(request_block.name, words, e);
    TRY(worker_block(&s->worker, calls, prime != 0, &out, e));
    return protocol_write(&s->protocol, e, "sample %.17g %.17g %u %.17g %.17g %.17g %.17g %.17g",
                          out.wall_ns, out.cpu_ns, out.involuntary_switches, out.spin_ns,
                          out.energy_j, out.first_ns, out.token_ns, out.token_p99_ns);
}

#define REQUEST(word) const struct request request_##word = {#word, obey_##word}
REQUEST(open);
REQUEST(place);
REQUEST(reference);
REQUEST(block);
const struct request *const measuring_requests[] = {&request_open, &request_place,
                                                    &request_reference, &request_block, NULL};

/* ---- every child --------------------------------------------------------------------------- */

static enum status dispatch(struct server *s, char *line, struct err *e)
{
    char *const blank = strchr(line, ' ');
    const char *const words = blank ? blank + 1 : "";

    if (blank)
        *blank = '\0';
    for (int i = 0; s->requests[i]; i++)
        if (strcmp(s->requests[i]->name, line) == 0)
            return s->requests[i]->obey(s, words, e);
    line[strcspn(line, " ")] = '\0';
    return no_sense(line, words, e);
}

static enum status obey_all(struct server *s, struct err *e)
{
    char line[PROTOCOL_LINE];
    enum status st = protocol_write(&s->protocol, e, PROTOCOL_HELLO);

    while (st == OK && (st = protocol_read(&s->protocol, line, e)) == OK &&
           strcmp(line, "close") != 0) {
        struct err why;
        const enum status obeyed = dispatch(s, line, &why);
        if (obeyed != OK)
            st = protocol_write(&s->protocol, e, "fail %d %s", (int)obeyed, why.msg);
    }
    return st;
}

int serve(struct server *s)
{
    struct err e;

    prctl(PR_SET_NAME, "bench-worker"); /* not "exe", which profilers and ps would show */
    exec_serve(&s->protocol);
    enum status st = obey_all(s, &e);
    if (st == OK) {
        worker_close(&s->worker);
        st = report_send(&s->worker.report, &s->protocol, &e);
    }
    plan_free(&s->plan);
    options_free(&s->opt);
    return st == OK ? EXIT_FINE : EXIT_SOME_FAILED;
}
