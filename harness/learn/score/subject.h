/* SPDX-License-Identifier: MIT
 *
 * The subject of a score: one checkpoint on one text, the models that options make of the
 * checkpoint, and the line that repeats a row. */
#pragma once

#include "harness/plan/case.h"

struct subject {
    const struct options *opt; /* lengths, how the past is reached, bytes, and what lines repeat */
    const char *ckpt, *corpus;
    struct config stored; /* the model of the file */
    struct config config; /* as it is scored: config_at_eval */
    char ckpt_xxh3[17], corpus_xxh3[17], unit[32];
    char made_of[256]; /* the generated source that it was trained on, or "" */
    char source[256];  /* the published name of the model, or "" */
    int context;       /* tokens of a window; 0 = unknown */
    int longest;       /* tokens that a published model was made to see at once; 0 = any */
    int64_t step;      /* I64_EMPTY = unknown */
    double mask_share; /* of its tokens are hidden and filled in; 0: it predicts the next one */
    int target;        /* tokens that it makes of a source at once; 0: it has no encoder */
    bool counts;       /* the options of counting.h were meant: of eval */
    size_t tokens;
    const struct backend *backend;
    int threads;
};

/* The fastest backend of those named, or of all, and an engine of it, placed as --pin says. */
enum status subject_engine(struct subject *t, struct engine *g, struct err *e);

/* Reads the model of t->ckpt. */
enum status subject_checkpoint(struct subject *t, struct err *e);

/* That, the backend and the text. Every model can be scored, and a row has room
 * for its line. */
enum status subject_open(struct subject *t, const struct options *opt, struct err *e);

/* How many models the options make of the checkpoint, and the i-th of them: every value of each
 * choice that it has and that no weight depends on, the last choice varying fastest. *again: it is
 * one of those before it, since a choice of it does not apply. */
int subject_models(const struct subject *t);
enum status subject_choose(struct subject *t, int at, bool *again, struct err *e);

/* The line that repeats the row, malloc'ed; after the command's name it is the child's request. */
#define SUBJECT_COMMAND "eval"
char *subject_line(const struct subject *t, const struct options *opt, int seq, int mem,
                   enum mem_kind kind);
