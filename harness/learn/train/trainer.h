/* SPDX-License-Identifier: MIT
 *
 * A training in progress, as its parts share it: what it reads (struct train_kind), the model, the
 * optimiser, its place among the ranks. train.h opens one and goes on; train_files.h keeps it. */
#pragma once

#include "grad_sum.h"
#include "harness/learn/source/pairs.h"
#include "harness/learn/source/texts.h"
#include "harness/learn/task/actor_critic.h"
#include "harness/learn/task/player.h"
#include "harness/machine/pin.h"
#include "harness/table/record.h"
#include "harness/util/lock.h"

#include "variants/model/optimise/lora.h"
#include "variants/model/optimise/optimizer.h"

struct text_part { /* symbols of a corpus */
    const uint8_t *at;
    const int32_t *ids; /* in their place; NULL: they are bytes */
    size_t n;
};
static inline int32_t text_token(const struct text_part *t, size_t i)
{
    return t->ids ? t->ids[i] : t->at[i];
}

/* A task in place of a text. All sequences of the batch are at the same step of an episode, because
 * all episodes have the same length; which follows from the optimiser's step. */
struct play {
    struct player player;
    float *after, *advantages, *targets;
    float *out, *d_out; /* [B,L,V] of the segment; [B,past+L,V] */
};

struct trainer {
    const struct options *opt;
    const struct train_kind *reads;
    struct topo *topo;
    struct team team;
    struct engine engine;
    struct arena arena;
    struct lm lm;
    struct lm valid_lm; /* the same weights, one sequence, its own memory */
    struct optimizer optimizer;
    struct lora lora; /* its A and B are parameters of lm, behind the model's */
    struct corpus corpus, valid_corpus;
    struct texts tokens_made, valid_made; /* of them, by a tokenizer */
    struct text_part text, valid;
    /* Of the tokenizer: its folder, "" = none, and the name of its copy beside the checkpoint. */
    char tokenizer[FILE_PATH], beside[FILE_PATH];
    char origin[256];   /* what the weights that it began with were published as */
    struct ranks ranks; /* who train this model together */
    struct grad_sum sum;
    int all_B; /* sequences of the batch; this rank has B of them, from the one numbered `first` */
    int first;
    int B, L, M; /* M rows of memory are kept */
    int past;    /* most tokens that are run again in front of a segment */
    enum mem_kind kind;
    int32_t *tokens, *targets; /* [B,past+L] */
    float *nll;                /* [B,past+L] */
    int hidden;                /* tokens of a segment that are; 0 = the next one is predicted */
    int32_t *places;           /* [B,hidden] */
    struct pairs pairs;        /* target 0: the text is none of pairs */
    int32_t *source;           /* [B,pairs.source] */
    double best_valid;         /* nats, or what a return lacks; INFINITY before the first */
    struct play *play;         /* NULL = a text */
    double trained_s;          /* in earlier sessions of the run */
};

/* The result of one step. */
struct step_report {
    double loss, grad_norm, lr; /* mean nats per new token, norm before clipping */
    /* Of a task, else NAN; the return only where episodes end. */
    double entropy, returned;
    double ponder; /* steps and rest of a token where they halt, else NAN */
};

/* Symbols of the validation text, at most. */
enum { VALID_TOKENS = 32768 };

/* Mean nats per token on the validation text, from empty memory; `floor` is the true source's loss
 * on the same tokens (NAN for a file). */
struct validation {
    double nll, floor;
    double
        accuracy; /* share of the target tokens of pairs that are the most likely ones, else NAN */
    double returned, returned_error; /* of a task: mean, standard error; else NAN */
    struct answers answers;
};

/* What a training reads, and learns of it. */
struct train_kind {
    enum status (*open)(struct trainer *t, struct err *e); /* after the text, or in place of one */
    void (*bind)(struct trainer *t, struct arena *a);      /* may be NULL */
    int (*batch)(struct trainer *t); /* the next segments; tokens of each that are run */
    void (*gradient)(struct trainer *t, struct step_report *r); /* of them; their memory is kept */
    size_t (*position)(
        const struct trainer *t); /* where the next segment begins: in its part of the
                                                    text, or of the episodes */
    struct validation (*validate)(struct trainer *t);
};
extern const struct train_kind train_next, train_masked, train_pairs, train_play;

/* Make the last n tokens the past of the next segment; with --mem 0 each is alone, whatever a model
 * could carry. */
static inline void trainer_commit(const struct trainer *t, struct lm *m, int n)
{
    if (t->opt->mem.v[0] != 0)
        lm_commit(m, n);
}
