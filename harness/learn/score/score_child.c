/* SPDX-License-Identifier: MIT
 *
 * The request "score OPTIONS": a text under a checkpoint. */
#include "score_child.h"

#include "score.h"

/* To the parent; a lost one is noticed elsewhere. */
static void send_share(void *arg, double share)
{
    protocol_write(arg, &(struct err){""}, "share %.4f", share);
}

/* `to` is the parent; NULL = this process. */
static enum status score_line(struct report *r, const char *line, struct protocol *to,
                              struct err *e)
{
    struct options opt = {0};
    struct topo *topo = NULL;
    enum status st = options_parse_line(&opt, line, e);

    if (st == OK) {
        cpu_limit((enum isa)opt.max_isa);
        st = topo_open(&topo, NULL, e);
    }
    struct scorer s = {.opt = &opt,
                       .topo = topo,
                       .at = to ? send_share : NULL,
                       .arg = to,
                       .report = {.rss_before_bytes = vm_hwm_bytes()}};
    if (st == OK)
        st = score_run(&s, SPLIT_TEST, e);
    *r = s.report;
    topo_close(topo);
    options_free(&opt);
    return st;
}

static enum status obey(struct server *s, const char *words, struct err *e)
{
    struct report r;
    const enum status st = score_line(&r, words, &s->protocol, e);

    return st == OK ? report_send(&r, &s->protocol, e) : st;
}

const struct request request_score = {"score", obey};

struct listener {
    struct report *report;
    struct progress_line *show;
};

static void hear(void *arg, const char *name, const char *value)
{
    const struct listener *l = arg;

    if (strcmp(name, "share") != 0)
        report_field(l->report, name, value);
    else if (l->show)
        progress_at(l->show, strtod(value, NULL), NULL);
}

enum status score_in_child(struct report *r, const char *line, const struct child_setup *setup,
                           struct progress_line *show, struct err *e)
{
    const bool apart = setup->isolate != ISOLATE_NONE;

    *r = (struct report){0};
    const enum status st =
        apart ? child_ask(setup, &request_score, line, hear, &(struct listener){r, show}, e)
              : score_line(r, line, NULL, e);
    if (!apart)
        child_unpin(setup);
    if (st == OK && !isfinite(exp(r->nll)))
        return fail(e, E_WRONG,
                    "a score of %g nats per token is not a perplexity  -> check the weights and "
                    "scales of the checkpoint",
                    r->nll);
    return st;
}
