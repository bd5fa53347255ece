/* SPDX-License-Identifier: MIT
 *
 * What a study shows: each contender against the baseline, or its own control, at the same size on
 * the same text, by the final rows of study.csv. Quality is the loss on the test text, or on its
 * answers if it is generated and has some: the rest of it cannot be foretold; of a task it is the
 * return. One value a seed, by Welch's
 * interval and p; p is corrected by Holm over all comparisons of the study. A mean of the seeds that
 * went well is no mean over seeds: where one has no score, on either side, there is no verdict. Time
 * is that of training, by the rule of verdict.h over the logs of seconds per token: variants train in turns,
 * seed by seed, so the difference is the mean over seeds of those of one seed. What other programs
 * took of either side's time is doubt. */
#ifndef STUDY_VERDICT_H
#define STUDY_VERDICT_H

#include "harness/table/record.h"
#include "verdict.h"
#include "welch.h"

enum study_verdict {
    STUDY_BETTER,
    STUDY_WORSE,
    STUDY_NOT_SHOWN, /* no difference is shown: not that there is none */
    STUDY_NOT_TESTED,
    STUDY_VERDICT_COUNT
};
extern const char *const study_verdict_name[STUDY_VERDICT_COUNT + 1]; /* NULL-terminated */

/* Fewest seeds that a difference is tested with, of the contender and of the baseline, and that a
 * ratio of times has an interval with. */
enum { STUDY_LEAST_SEEDS = 3 };

/* How much of what the past tells about the answers of a generated text a model has learnt: from
 * the loss of the true source without any past (0) to that with all that is in reach (1); of a task,
 * from the return of actions at random to that of the best policy. */
struct study_way {
    double mean, least, most; /* over seeds; NAN: the text has no answers */
    double above;             /* mean nats above the floor */
};

/* One contender at one size on one text. */
struct study_entry {
    const struct study_row *row; /* the first of its rows */
    char why[LINE_SIZE];         /* not tested: why not, else "" */
    const char *remark;          /* what its ok rows say, such as of unequal parameters, or "" */
    struct group_stats test;     /* nats on the test text, or its answers, or returns, over seeds */
    struct study_way way;
    int lost;                   /* further seeds whose final training has no score */
    bool is_task;               /* then: */
    int solved;                 /* of test.n + lost seeds */
    double lr;                  /* of its final rows; NAN: none was ok */
    bool at_end;                /* of the tried rates, that is the least or the largest */
    int64_t parameters;         /* 0: not known */
    double more;                /* of them, as a share of those of its control; of none 0 */
    const char *against;        /* the contender that it is compared with; of none "" */
    struct welch quality;       /* against its control; of what has none NAN */
    double p;                   /* of it, corrected */
    enum study_verdict verdict; /* of what has no control: not tested */
    struct interval log_time;   /* ln of the ratio of times, paired by seed */
    double time_doubt;          /* how far off, as a log, other programs may have put it */
    enum verdict time_verdict;
};

/* The floor: a perplexity within 2 % of it; of a task, all seeds solve it. Not without all scores. */
bool study_reached(const struct study_entry *e);

struct study_verdicts {
    struct study_entry *v; /* [n] by text and size as they come in the table; baselines first */
    int n, tested;
    double noise;  /* nats, or of returns: seed standard deviation of baselines, pooled */
    int noise_of;  /* how many of them that is from: those that lost no seed */
    bool controls; /* contenders have controls of their own, not one baseline */
};

/* `rows` of TABLE_STUDY, which stay the caller's. `threshold`: a fraction, as in verdict_of. */
struct study_verdicts study_verdicts_make(const struct rows *rows, double threshold);
void study_verdicts_free(struct study_verdicts *v);

/* The entry that a row of theirs is of. */
const struct study_entry *study_entry_of(const struct study_verdicts *v, const struct study_row *r);

/* The table; below it for people the noise floor, and what a verdict not shown rules out. */
void study_verdicts_print(FILE *f, const struct study_verdicts *v, enum format format);

#endif
