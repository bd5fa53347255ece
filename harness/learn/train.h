/* SPDX-License-Identifier: MIT
 *
 * Training a model of one variant: batches of contiguous streams, memory carried from segment to
 * segment, AdamW, validation, and files that continue to the same numbers. Runs in a measuring
 * child; the caller prints. */
#ifndef TRAIN_H
#define TRAIN_H

#include "actor_critic.h"
#include "corpus.h"
#include "grad_sum.h"
#include "harness/cli/options.h"
#include "harness/machine/pin.h"
#include "harness/table/record.h"
#include "harness/util/fileio.h"
#include "harness/util/lock.h"
#include "pairs.h"
#include "player.h"
#include "texts.h"

#include "variants/model/lm.h"
#include "variants/model/optimizer.h"

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
    struct topo *topo;
    struct team team;
    struct engine engine;
    struct arena arena;
    struct lm lm;
    struct lm valid_lm; /* the same weights, one sequence, its own memory */
    struct optimizer optimizer;
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

/* The variant's config at the sizes of `opt`, for texts of this vocabulary. */
enum status train_config(struct config *to, const struct variant *v, const struct options *opt,
                         int vocab, struct err *e);

/* Open texts, bind model, gradients and optimiser, fill the weights from the seed. `opt` names one
 * variant and one value of every axis. All of `ranks` call it: --batch is divided among them.
 * E_USAGE if it cannot be, or if two ranks would run on one core; E_UNSUPPORTED for what is not the
 * same when a batch is divided. */
enum status trainer_open_ranked(struct trainer *t, const struct options *opt,
                                const struct ranks *ranks, struct err *e);
void trainer_close(struct trainer *t);

/* ", 1.2 k of them trained" where --train-only leaves others as they are, else "". */
struct trainer_frozen {
    char s[64];
} trainer_frozen(const struct trainer *t);

/* One optimiser step on the next L tokens of each sequence. Where the past is run again
 * (mem_reruns), the window is those before them too, and the gradient that of the loss of the whole
 * window (Al-Rfou et al. 2018): the model is trained with every length of past up to the one it
 * will have. `progress` in [0,1] is the position in the learning rate's schedule. */
struct step_report trainer_step(struct trainer *t, double progress);

/* Make the last n tokens the past of the next segment; with --mem 0 each is alone, whatever a model
 * could carry. */
void trainer_commit(const struct trainer *t, struct lm *m, int n);

/* Where in its part of the text the next segment of each sequence begins. */
size_t trainer_position(const struct trainer *t);

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
struct validation trainer_validate(struct trainer *t);

/* Do all ranks have the weights of rank 0, to the bit? Collective. */
bool trainer_agrees(const struct trainer *t);

/* Files are written by rank 0; the others hand it their memories. Collective, as trainer_load. */
/* Save weights to `path` (checkpoint_save), optimiser and memory to path.opt. Whatever interrupts
 * it, trainer_load finds the new pair or the one before. */
enum status trainer_save(struct trainer *t, const char *path, double trained_s, struct err *e);
enum status trainer_save_weights(struct trainer *t, const char *path, struct err *e);
enum status trainer_save_best(struct trainer *t, const char *path, struct err *e); /* path.best */

/* Continue from both files. E_IO if they are damaged or do not belong together; E_USAGE if the
 * model is not the one that `opt` describes. */
enum status trainer_load(struct trainer *t, const char *path, struct err *e);

/* A malloc'ed options_canonical() of the training that saved `path`; "" if its files cannot be read
 * or are of a version that did not write it. */
char *trainer_options(const char *path);

/* Seconds that the training which saved `path` took until then, of all its sessions; NAN if its
 * files cannot be read. */
double trainer_saved_s(const char *path);

/* Whoever writes a checkpoint holds its lock, `path`.lock. E_UNSUPPORTED names who does. */
enum status trainer_lock(struct lock *l, const char *path, struct err *e);

/* Remove the state of a training beside its checkpoint, and its best weights. */
enum status trainer_forget(const char *path, struct err *e);

/* Remove what killed trainings left half written; unless one is resumed, also its files. Nobody
 * else may be training `path`. */
enum status trainer_clear(const char *path, bool resume, struct err *e);

/* Open CKPT.train.csv to write rows after `step`: new, or with the rows up to it where --resume goes on. */
enum status trainer_table(struct table_file *to, const struct options *o, int step, struct err *e);

#endif
