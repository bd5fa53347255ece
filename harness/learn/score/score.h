/* SPDX-License-Identifier: MIT
 *
 * The negative log-likelihood of a text under a checkpoint: segments in order, token t predicting
 * token t+1, memory carried from segment to segment, or the tokens before each run again in front
 * of it (mem_reruns). Runs in a measuring child.
 *
 * score/ holds what a trained model is asked: losses of texts, returns of tasks, texts that go on,
 * what heads attend to. */
#pragma once

#include "harness/learn/source/corpus.h"
#include "harness/worker/report.h"

/* What to score: `opt` has one value of seq and mem, one backend, one number of threads, and
 * --ckpt, --corpus, --bytes, and those of counting.h. --losses is a file to write the losses of all
 * tokens to (losses.h), --attention one for what heads attend to (heads.h). */
struct scorer {
    const struct options *opt;
    const struct topo *topo;
    void (*at)(void *arg, double share); /* called as it goes on, with what is done; may be NULL */
    void *arg;
    struct report report; /* gets SCORE_NUMBERS, and what ran */
};
enum status score_run(struct scorer *s, enum split split, struct err *e);

/* E_USAGE if M is MEM_ALL and the model carries no state. */
enum status past_is_carried(const struct config *c, int M, struct err *e);

/* Does a model read whole texts: pairs, or windows with hidden tokens, of which mask_share is the share? */
bool score_reads_whole(const struct config *c, double mask_share);
/* E_USAGE if such a one is to be scored otherwise, or with a past. */
enum status score_whole_check(const struct config *c, double mask_share, const struct options *o,
                              int M, struct err *e);

/* Where every query sees as many keys, M tokens of past are how many. */
void see_past(struct config *c, int M);

/* How a checkpoint's variant reaches M tokens of past, by --mem-kind: E_USAGE if it cannot. */
enum status score_mem_kind(enum mem_kind *kind, const struct config *c, const struct options *opt,
                           int M, struct err *e);
