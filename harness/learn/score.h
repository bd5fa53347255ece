/* SPDX-License-Identifier: MIT
 *
 * The negative log-likelihood of a text under a checkpoint: segments in order, token t predicting
 * token t+1, memory carried from segment to segment, or the tokens before each run again in front
 * of it (mem_reruns). Runs in a measuring child. */
#ifndef SCORE_H
#define SCORE_H

#include "corpus.h"
#include "divergence.h"
#include "harness/cli/options.h"
#include "harness/machine/pin.h"

#include "variants/model/sublayer/sublayer_list.h"
#include "variants/model/weights.h"

/* Places of tokens in their segments by powers of two: 1, 2-3, 4-7, ..., from 1024 on. */
enum { SCORE_PLACES = 11 };

struct score {
    double nll;          /* mean, nats per token: sum / tokens */
    double sum;          /* nats, weighed as --count says */
    double words, bytes; /* of the text; NAN where part of it is dropped */
    double oov;          /* words read as <unk>; NAN without a list of words */
    const char *unit;    /* what a token is */
    char note[256];      /* on the text; "" = nothing */
    double floor;        /* of the true source on these tokens; NAN for a file */
    double accuracy; /* of pairs: share of target tokens that are the most likely ones; else NAN */
    struct answers answers;   /* of a generated text */
    double nll_low, nll_high; /* 95 % interval, from the spread of the segments' means */
    double tokens, segments;  /* tokens: what the sum is divided by */
    double scored;            /* tokens with a probability */
    double eval_ns;
    struct divergence_means apart; /* from the same model in f32; NAN for that itself */
    double layers_run;             /* mean over tokens; NAN where they run all */
    double layers_p90;             /* nine of ten tokens run no more */
    double nll_at[SCORE_PLACES];   /* mean, nats; NAN: no segment is so long */
};

/* What to score: `opt` has one value of seq and mem, one backend, one number of threads, and
 * --ckpt, --corpus, --bytes, and those of counting.h. --losses is a file to write the losses of all
 * tokens to (losses.h). */
struct scorer {
    const struct options *opt;
    const struct topo *topo;
    int batch; /* parts of the text side by side; 0 = 1 */
    struct team team;
    struct engine engine;
    char impl[IMPL_TEXT];                /* the implementations that ran, as lm_impl names them */
    void (*at)(void *arg, double share); /* called as it goes on, with what is done; may be NULL */
    void *arg;
    struct score score;
};
enum status score_run(struct scorer *s, enum split split, struct err *e);

/* E_USAGE if M is MEM_ALL and the model carries no state. */
enum status past_is_carried(const struct config *c, int M, struct err *e);

/* E_USAGE if a checkpoint that fills in hidden tokens is to be scored otherwise, or with a past. */
enum status score_masked_check(const struct options *o, int M, struct err *e);

/* Likewise if one with an encoder is. */
enum status score_pairs_check(const struct options *o, int M, struct err *e);

/* Where every query sees as many keys, M tokens of past are how many. */
void see_past(struct config *c, int M);

/* How a checkpoint's variant reaches M tokens of past, by --mem-kind: E_USAGE if it cannot. */
enum status score_mem_kind(enum mem_kind *kind, const struct config *c, const struct options *opt,
                           int M, struct err *e);

#endif
