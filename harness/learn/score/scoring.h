/* SPDX-License-Identifier: MIT
 *
 * Inside a score: a text under a model, cut into windows or pairs, and the modes that cut it. */
#pragma once

#include "divergence.h"
#include "harness/learn/source/pairs.h"
#include "harness/learn/source/questions.h"
#include "harness/learn/source/window_sums.h"
#include "heads.h"
#include "score.h"

#include "variants/model/import/weights.h"

/* Places of tokens in their segments by powers of two: 1, 2-3, 4-7, ..., from 1024 on. */
enum { SCORE_PLACES = 11 };

struct scored {
    struct scorer *s;
    const struct scoring *mode;
    struct team team;
    struct engine engine;
    struct weights weights; /* until the model has them */
    struct lm lm;
    bool compares;      /* with the same model in f32: */
    struct lm exact;    /* that model */
    const float *state; /* what its logits are made of, for the positions that are scored */
    struct divergence apart;
    int64_t comparing_ns; /* that both took */
    struct arena arena;
    struct corpus corpus;
    struct texts text;
    enum mem_kind kind;
    bool zeros;                 /* memory begins so */
    int batch;                  /* parts of the text side by side */
    int L, M;                   /* M may be MEM_ALL */
    double mask_share;          /* of tokens that are hidden and scored; 0 = the next one is */
    int past;                   /* most tokens that are run again in front of a segment */
    int32_t *tokens, *targets;  /* [batch,past+L] */
    float *nll;                 /* [batch,L] */
    float *losses;              /* of all tokens, or NULL */
    int32_t *ran;               /* how many layers each of these ran; NULL without losses */
    bool stops;                 /* some may not run all */
    int32_t *places;            /* [L] of hidden tokens */
    struct pairs pairs;         /* target 0: no encoder and decoder */
    int32_t *source;            /* [pairs.source] */
    struct questions questions; /* with --choices */
    int likeliest;              /* tokens of a continuation that are */
    struct rule rule;           /* of windows, of document `doc` - 1 */
    struct windows windows;     /* likewise */
    struct window window;       /* that is scored */
    size_t doc, nth;            /* nth: the number of the window or pair */
    struct layers_count layers; /* that positions ran where they may stop */
    struct heads heads;         /* watched for --attention */
    struct source_memo memo;
    struct answers answers;
    double place[SCORE_PLACES], placed[SCORE_PLACES]; /* sum of nll, and tokens */
    char ckpt_xxh3[17];
};

/* What a window or pair adds. NAN: not known. */
struct summand {
    double sum, tokens, scored; /* nats, what they are divided by, tokens with a probability */
    double floor;               /* nats under the true source */
    double right;               /* tokens that are the most likely ones */
};

/* A mode of scoring. */
struct scoring {
    /* Of what reads whole texts, without a past and options of next tokens: what it reads, and what these
     * options are of. NULL = next tokens of a stream. */
    const char *reads, *next_is, *whole;
    enum status (*open)(struct scored *t,
                        struct err *e); /* before the model; NULL = nothing to do */
    /* On to the next window or pair; false: there is none. `done`: the share of the text before it. */
    bool (*next)(struct scored *t, double *done);
    enum status (*score)(struct scored *t, struct summand *to, struct err *e);
    /* Logits of the scored rows [at, at + n); NULL = not looked at. */
    void (*see)(struct scored *t, const float *logits, int at, int n);
    void (*report)(const struct scored *t, struct report *r); /* what it counted; NULL = nothing */
    const char *token; /* in front of what a token of the text is */
};
extern const struct scoring scoring_stream, scoring_masked, scoring_pairs, scoring_questions;

/* A row a continuation, as CSV. */
enum status scoring_questions_write(const struct scored *t, const char *path, struct err *e);

/* That of a model, `mask_share` of whose tokens are hidden and filled in. */
const struct scoring *scoring_of(const struct config *c, double mask_share);

/* A `next` of windows. */
bool scored_next_window(struct scored *t, double *done);
/* The past of a document's first token. */
void scored_begin(struct scored *t);
/* nll of the last `scored` of `read` tokens of B streams; with 0 only what is remembered counts. */
enum status scored_forward(struct scored *t, int B, int read, int scored, struct err *e);
/* t->nll[i], which is added to those of its place in a segment, from 0. */
double scored_nll(struct scored *t, int i, int place);
