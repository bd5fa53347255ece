/* SPDX-License-Identifier: MIT
 *
 * The request "score OPTIONS": a text under a checkpoint. */
#include "score_child.h"

#include "counting.h"
#include "harness/table/columns.h"
#include "score.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* To the parent; a lost one is noticed elsewhere. */
static void send_share(void *arg, double share)
{
    protocol_write(arg, &(struct err){""}, "share %.4f", share);
}

/* `to` is the parent; NULL = this process. */
static enum status score(struct report *r, const struct options *opt, struct protocol *to,
                         struct err *e)
{
    struct topo *topo = NULL;
    enum status st = topo_open(&topo, NULL, e);
    struct scorer s = {.opt = opt,
                       .topo = topo,
                       .batch = counting_batch(opt),
                       .at = to ? send_share : NULL,
                       .arg = to};

    *r = (struct report){.rss_before_bytes = vm_hwm_bytes()};
    if (st == OK)
        st = score_run(&s, SPLIT_TEST, e);
    if (st == OK) {
        report_describe(r, &s.engine, &s.team);
        snprintf(r->impl, sizeof(r->impl), "%s", s.impl);
        r->nll = s.score.nll;
        r->nll_low = s.score.nll_low;
        r->nll_high = s.score.nll_high;
        r->nll_floor = s.score.floor;
        r->accuracy = s.score.accuracy;
        r->answers = s.score.answers.tokens;
        r->answer_nll = s.score.answers.nll;
        r->answer_floor = s.score.answers.floor;
        r->answer_blind = s.score.answers.blind;
        r->tokens_scored = s.score.scored;
        r->nll_sum = s.score.sum;
        r->tokens_counted = s.score.tokens;
        r->words = s.score.words;
        r->text_bytes = s.score.bytes;
        r->oov = s.score.oov;
        snprintf(r->token_is, sizeof(r->token_is), "%s", s.score.unit);
        snprintf(r->note, sizeof(r->note), "%s", s.score.note);
        r->segments = s.score.segments;
        r->eval_ns = s.score.eval_ns;
        r->kl = s.score.apart.kl;
        r->kl_p99 = s.score.apart.kl_p99;
        r->same_top_pct = s.score.apart.same_pct;
        r->layers_run = s.score.layers_run;
        r->layers_p90 = s.score.layers_p90;
        int at = 0;
#define X(n) r->nll_at_##n = s.score.nll_at[at++];
        NLL_PLACES(X)
#undef X
    }
    topo_close(topo);
    return st;
}

static enum status score_line(struct report *r, const char *line, struct protocol *to,
                              struct err *e)
{
    struct options opt = {0};
    enum status st = options_parse_line(&opt, line, e);

    if (st == OK) {
        cpu_limit((enum isa)opt.max_isa);
        st = score(r, &opt, to, e);
    }
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

static enum status score_apart(struct report *r, const char *line, const struct child_setup *setup,
                               struct progress_line *show, struct err *e)
{
    struct listener l = {r, show};
    struct child child;
    enum status st = child_begin(&child, setup, &request_score, line, e);

    if (st == OK)
        st = child_answer(&child, hear, &l, e);
    child_close(&child);
    return st;
}

enum status score_in_child(struct report *r, const char *line, const struct child_setup *setup,
                           struct progress_line *show, struct err *e)
{
    const bool apart = setup->isolate != ISOLATE_NONE;

    *r = (struct report){0};
    const enum status st =
        apart ? score_apart(r, line, setup, show, e) : score_line(r, line, NULL, e);
    if (!apart)
        child_unpin(setup);
    if (st == OK && !isfinite(exp(r->nll)))
        return fail(e, E_WRONG,
                    "a score of %g nats per token is not a perplexity  -> check the weights and "
                    "scales of the checkpoint",
                    r->nll);
    return st;
}
