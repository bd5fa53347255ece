/* SPDX-License-Identifier: MIT
 *
 * Training a model of one variant: batches of contiguous streams, memory carried from segment to
 * segment, AdamW, validation, and files that continue to the same numbers. Runs in a measuring
 * child; the caller prints.
 *
 * train/ holds trainings: texts, options, ranks, files, state. It validates by score/. */
#pragma once

#include "trainer.h"

/* The variant's config at the sizes of `opt`, for texts of this vocabulary. */
enum status train_config(struct config *to, const struct variant *v, const struct options *opt,
                         int vocab, struct err *e);

/* The options of one training, complete and possible, also of a job of a study: fill in what depends
 * on the machine and the build (text, `threads`, the fastest backend) and check the rest: one value
 * of each axis, a file for the weights, a model that can be trained. E_USAGE, E_UNSUPPORTED. */
enum status train_settle(struct options *o, int threads, struct err *e);

/* Open texts, bind model, gradients and optimiser, fill the weights from the seed. `opt` names one
 * variant and one value of every axis. All of `ranks` call it: --batch is divided among them.
 * E_USAGE if it cannot be, or if two ranks would run on one core; E_UNSUPPORTED for what is not the
 * same when a batch is divided. */
enum status trainer_open_ranked(struct trainer *t, const struct options *opt,
                                const struct ranks *ranks, struct err *e);
void trainer_close(struct trainer *t);

/* ", 1.2 k of them trained" where --train-only or --lora leaves others as they are, else "". */
struct trainer_frozen {
    char s[64];
} trainer_frozen(const struct trainer *t);

/* One optimiser step on the next L tokens of each sequence. Where the past is run again
 * (mem_reruns), the window is those before them too, and the gradient that of the loss of the whole
 * window (Al-Rfou et al. 2018): the model is trained with every length of past up to the one it
 * will have. `progress` in [0,1] is the position in the learning rate's schedule. */
struct step_report trainer_step(struct trainer *t, double progress);

/* On the validation text, or in episodes that are never trained on. */
struct validation trainer_validate(struct trainer *t);

/* Do all ranks have the weights of rank 0, to the bit? Collective. */
bool trainer_agrees(const struct trainer *t);
