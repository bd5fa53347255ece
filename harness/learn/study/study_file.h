/* SPDX-License-Identifier: MIT
 *
 * The file that describes a study: lines of `KEY = VALUE`, comments from # on. Words and options
 * are those of the command line, so that nothing has a second grammar. Which keys there are, and
 * what they mean, is the table in study_file.c. Reading is all that happens here; study_jobs.h
 * plans.
 *
 * study/ plans the trainings of a study; harness/command/learn/study.c runs them. */
#pragma once

#include "harness/cli/options.h"
#include "harness/util/fileio.h"
#include "variants/model/config/skeleton.h"

/* A value with a name of its own: "NAME: WORDS". */
struct study_item {
    const char *name;  /* in the study: letters, digits and -_.+ */
    const char *words; /* options as one line that can be read again; of a corpus: see below */
    int line;
    int control; /* of variants: the one that it is compared with; -1: with none */
    int rates;   /* of variants: the one whose rate it takes; -1: its own */
};
struct study_items {
    struct study_item *v;
    int n;
};

/* Texts of a corpus: one generated source, three files, one file whose last part is left to validate
 * and compare on, as bench train does, or a memory task in their place. */
struct study_corpus {
    const char *name, *train, *valid,
        *test; /* generated, a task: valid is NULL, test is train; of one
                                              * file valid is NULL, test is "" */
    bool is_task;
};

struct study {
    char *text;       /* the file as it was read */
    const char *path; /* for messages */
    struct study_items variants, sizes;
    struct study_corpus *corpora; /* all texts, or all tasks */
    int n_corpora;
    int baseline; /* index into variants; -1: each has its own control, which may be added to them */
    double *rates; /* of a search its start, twice, half, four times it ..., to RATES_OUT steps */
    int n_rates;
    bool search; /* rates = auto: from the first, until the best has worse ones on both sides */
    int seeds, baseline_seeds, tune_seeds;
    int steps;           /* 0: by tokens */
    int tokens;          /* 0: by steps; with budgets the largest of them */
    struct ints budgets; /* tokens at which a training is compared, ascending; none: at its end */
    int tune_tokens;     /* of a training that chooses a rate; 0: as many as others */
    double effect;       /* least difference that counts: nats, or of returns */
    double sd;           /* of seeds, from earlier runs; 0: not known */
    bool equal_parameters;
    int skeleton;             /* enum skeleton, of models whose options say none */
    const char *train, *eval; /* options, "" if none */
    struct options words;     /* owns the texts */
};

/* The copy of the file in the folder of a run: what is continued and merged is the same study. */
extern const char study_copy[];

/* Read and check the file: E_IO if it cannot be read, else E_USAGE with file and line. What the
 * options in it mean is checked when the jobs are planned. Free in any case. */
enum status study_read(struct study *s, const char *path, struct err *e);
void study_free(struct study *s);

/* Does it compare returns of tasks, in place of losses? */
static inline bool study_of_tasks(const struct study *s) { return s->corpora[0].is_task; }

/* Does it score models on a test text? */
bool study_scores(const struct study *s);

/* ---- controls, study_controls.c: the same model without the idea, which the variant names ----- */

/* Give each variant its control, and add those that the file does not have, once each: an added one
 * is named as a command line names it, and compared with none. The options of a variant's line are
 * its control's, too; they and the skeleton come before what its control says itself. E_USAGE for a
 * line whose words name no variant. */
enum status study_add_controls(struct study *s, struct err *e);

/* The skeleton of a variant's models: what its options say, or those of all trainings, or the file. */
enum skeleton study_skeleton(const struct study *s, const struct study_item *variant);
