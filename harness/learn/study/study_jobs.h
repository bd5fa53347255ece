/* SPDX-License-Identifier: MIT
 *
 * From a study to its jobs, as plan.h makes cases of options. A job is one training, and at the end
 * of a `final` one its scores. A group is what one variant has at one size on one text: jobs that
 * tune its learning rate, then the final ones at the best rate, its own or another group's. A shard is
 * made of whole groups, and of those that take their rates. Opens texts and counts parameters; nothing runs.
 *
 * With budgets a seed has a job for each. All are of one training (Haegele et al. 2024, arXiv:2405.18392): that of
 * the largest budget, with schedule wsd, passes the point where the rate of a smaller one would begin to
 * fall, and leaves a copy there that goes on as the smaller one. It is that training to the bit. */
#pragma once

#include "harness/measure/estimate.h"
#include "study_file.h"

enum study_role { STUDY_TUNE, STUDY_FINAL };
extern const char *const study_role_name[]; /* "tune" "final" */

/* The model of a group, and the options that all of its trainings have. */
struct study_model {
    const struct study_corpus *corpus;
    const struct study_item *size, *variant;
    const struct study_item *control; /* what it is compared with; NULL: with none */
    bool baseline;                    /* others are compared with it, or it with none */
    const struct study_model *rates;  /* whose rate it takes, often its own */
    char *line; /* "bench train ..." without steps, rate, seed, checkpoint and where it runs */
    struct options o; /* of that line, settled */
    struct config config;
    int64_t parameters;
    int steps, tune_steps;          /* of the largest budget; of tuning */
    const struct study_model *same; /* the model before it that it is, too; NULL: there is none */
    char why[256];                  /* not empty: it is not trained, and why */
    char remark[128];               /* of one that is: what is not as the study asks, or "" */
};

struct study_job {
    const struct study_model *model;
    int group;
    enum study_role role;
    int seed;
    double lr;  /* NAN: the best of the group's */
    int budget; /* tokens; 0: the study has none */
    int steps;  /* of the training */
    int stable; /* the first of them, which it takes from the training of the largest budget; 0: none */
    int before;  /* those of them that the job of the budget below has trained */
    bool maybe;  /* a search may end without it */
    char id[17]; /* 16 hex digits: the same in every run of the same study */
};

struct study_plan {
    struct study_model *models; /* [n_models]: for each corpus, size and variant, baselines first */
    struct study_job *jobs;     /* [n], by group; of one the tuning jobs first */
    int n, n_models;
    const struct study *study;
};

/* `opt` says --backend, --threads and --shard. E_USAGE, E_UNSUPPORTED and E_IO name the part of the
 * study. Keeps pointers into `s`. Free in any case. */
enum status study_plan_make(struct study_plan *p, const struct study *s, const struct options *opt,
                            struct err *e);
void study_plan_free(struct study_plan *p);

/* Find models of one place, [n] with baselines first, that are one: the later ones are not trained, and what has one
 * of them as its control, or takes its rate, has the first. */
void study_find_same(struct study_model *m, int n);

/* The malloc'ed command of a training of a job's model at `lr` (NAN: not known yet) with so many steps,
 * without its checkpoint. */
char *study_train_line(const struct study_job *j, double lr, int steps);

/* The malloc'ed command that scores `ckpt`, which it trained. */
char *study_eval_line(const struct study *s, const struct study_job *j, const char *ckpt);

/* Seconds of a job: training, validations, scores; 0 = unknown. */
double study_job_s(const struct study *s, const struct study_job *j, const struct speeds *speeds);
