/* SPDX-License-Identifier: MIT
 *
 * What a study shows: each contender against the baseline, or its own control, at one place: the same size on
 * the same text after the same budget, by the final rows of study.csv. Quality is the loss on the test text, or on its
 * answers if it is generated and has some: the rest of it cannot be foretold; of a task it is the
 * return. Seeds are compared in pairs (below), p is corrected by Holm over all comparisons of the study;
 * better and worse also mean that the interval lies beyond the least effect that the study is about. A mean of the seeds that
 * went well is no mean over seeds: where one has no score or collapsed, on either side, there is no verdict. Time
 * is that of training, by the rule of verdict.h over the logs of seconds per token: variants train in turns,
 * seed by seed, so the difference is the mean over seeds of those of one seed. What other programs
 * took of either side's time is doubt. */
#pragma once

#include "harness/table/record.h"
#include "verdict.h"
#include "welch.h"

enum study_verdict {
    STUDY_BETTER,
    STUDY_WORSE,
    STUDY_NOT_SHOWN, /* no difference is shown: not that there is none */
    STUDY_AT_END,    /* the rate of either side is the least or the largest that was tried */
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
    double *x;                   /* [test.n] */
    int64_t *seed;
    struct study_way way;
    int lost;              /* further seeds whose final training has no score, or */
    int collapsed;         /* collapsed: so many, with a mean loss of */
    double collapsed_nats; /* NAN: it was no number */
    double unigram_nats;   /* of the test text; NAN: it has none */
    bool is_task;          /* then: */
    int solved;            /* of test.n + lost seeds */
    double lr;             /* of its final rows; NAN: none was ok */
    struct interval tried; /* least, own and largest of the rates that were tried for it */
    int64_t parameters;    /* 0: not known */
    double more;           /* of them, as a share of those of its control; of none 0 */
    const char *against;   /* the contender that it is compared with; of none "" */
    struct welch quality;  /* against its control; of what has none NAN */
    double p, q;           /* of it, corrected by Holm, and by Benjamini and Hochberg */
    double shown_min;      /* the difference that this comparison shows in four of five studies */
    enum study_verdict verdict; /* of what has no control: not tested */
    struct interval log_time;   /* ln of the ratio of times, paired by seed */
    double time_doubt;          /* how far off, as a log, other programs may have put it */
    enum verdict time_verdict;
};

/* Did a final training end within 2 % of what single bytes tell about its text, or with a loss that is
 * no number? On generated texts this may be all that can be learnt. */
bool study_collapsed(const struct study_row *r);

/* Is its rate the least or the largest of several? A better one may lie beyond. */
bool study_rate_at_end(const struct study_entry *e);

/* The floor: a perplexity within 2 % of it; of a task, all seeds solve it. Not without all scores. */
bool study_reached(const struct study_entry *e);

struct study_verdicts {
    struct study_entry *v; /* [n] by places as they come in the table; baselines first */
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

bool study_same_text(const struct study_row *a, const struct study_row *b); /* and size */
bool study_same_place(const struct study_row *a, const struct study_row *b);

/* " 256Ki"; "" of a study without budgets. */
struct unit_text study_budget_text(const struct study_row *r);

/* Entries from the i-th on that are at its place. */
int study_at_place(const struct study_verdicts *v, int i);

/* The table; below it for people the noise floor, and what a verdict not shown rules out. */
void study_verdicts_print(FILE *f, const struct study_verdicts *v, enum format format);

/* ---- one comparison, study_pool.c ---------------------------------------------------------
 *
 * Trainings of one seed share their data order and what they begin with, so they are compared in
 * pairs, and what of the loss is the seed's own drops out. The variance of what is left is one
 * number for all contenders of a place, unless one of them spreads more than chance makes it.
 * (Leaving out the widest until the rest looks alike makes the rest too narrow: up to 80 % false
 * alarms.) */

/* Contenders of one place that vary alike: x_is = contender_i + seed_s + r_is. */
struct study_pool {
    double sd, df; /* of r; NAN: there is none */
    bool *in;      /* [n] */
};

/* Of entries at one place, without those that lost a seed or share fewer than three with the first. Free `in`. */
struct study_pool study_pool_make(const struct study_entry *e, int n);

/* e minus b, in pairs of the seeds that both have; with the variance of the pool if both are in it, else that of the
 * pairs. By Welch where fewer than three seeds make a pair. */
struct welch study_difference(const struct study_entry *e, const struct study_entry *b, bool pooled,
                              const struct study_pool *p);

/* ---- over budgets, study_budgets.c -------------------------------------------------------- */

enum { STUDY_BUDGETS_MAX = 16 };

/* Is no other entry of its text and size at a larger budget? */
bool study_is_last(const struct study_verdicts *v, const struct study_entry *e);

/* Two contenders change places between two budgets. */
struct study_crossing {
    const struct study_entry *ahead[2]; /* at the smaller budget, and at the larger one */
    struct interval by[2];              /* how far: nats, or of returns */
    int pair;                           /* its number among all pairs */
    double p; /* corrected by Holm over all pairs of contenders that share a place at two budgets */
};

/* Those of a study, malloc'ed, [*n]. That the order of a pair never changes is rejected by the larger of
 * two p: that the one is never ahead, and that the other never is, each at its best budget, times the
 * number of budgets (Bonferroni; as both must be wrong, the larger of the two decides). Between which
 * budgets is by intervals beyond the least effect: the last that shows the one ahead, and the first
 * that shows the other. */
struct study_crossing *study_crossings(const struct study_verdicts *v, int *n);

/* "xl is ahead of rope at 4Mi tokens by ..., and was behind at ..." */
void study_say_crossing(FILE *f, const struct study_crossing *c);

/* For people: means over seeds by contender and budget, with their intervals, and the crossings. */
void study_budgets_print(FILE *f, const struct study_verdicts *v, enum format format);
