/* SPDX-License-Identifier: MIT
 *
 * The files of a training: its checkpoint, and what lies beside it to go on from. */
#pragma once

#include "trainer.h"

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

/* The step that `path` was saved at; -1 if it cannot be read. */
int trainer_saved_step(const char *path);

/* Copy what a training needs to go on as another: checkpoint `to` comes last, whole or not at all. `from` was saved
 * and closed. */
enum status trainer_copy(const char *from, const char *to, struct err *e);

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
