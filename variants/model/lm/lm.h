/* SPDX-License-Identifier: MIT
 *
 * A language model of any variant: embedding, sub-layers, output, loss, and the memory carried from
 * segment to segment.
 *
 * lm/ holds the language model and what runs its layers (drive.h). Optimisers, files and texts are
 * not here. */
#pragma once

#include "adaptive.h"
#include "drive.h"

struct lm {
    struct config c;
    struct params params;
    /* at_embed: of the embedding, or of what words have instead; -1 = none of the others */
    int at_embed, at_model, at_final_ln, at_out, at_out_bias, at_drive;
    struct adaptive_words words; /* in clusters, if they are */
    struct sublayers sublayers;
    const struct drive *drive; /* what runs them */
    void *drive_data;          /* its own; NULL = it has none */
    int block;                 /* set before lm_bind: rows of logits at once; 0 = all */
    bool all_logits;           /* set before lm_bind: of clusters, too (lm_all) */
    enum mem_kind kind;
    struct extent max;
    float *h;         /* [B,L,D] residual stream */
    float *logits;    /* [B*L,V] of the last forward; NULL where words are in clusters */
    int n_scored;     /* positions per sequence that have them */
    int64_t position; /* of the next token: those that states have absorbed; 0 without states */
    /* Training only, else NULL. */
    float *final_in; /* [B,L,D] input of the final norm */
    float *d_h;      /* [B,L,D] gradient of the residual stream */
    float *capped;   /* [B*L,V] the logits, if they have a cap */
    /* Set by the caller before every forward whose backward follows; p = 0 (as bound) is off. With
     * dropout, lm_build_tables is part of each step. */
    struct dropout drop;
    /* NULL, or called in lm_backward: the gradients of parameters from `first` on are complete.
     * `first` falls from call to call; 0 comes once, at the end. */
    void (*complete)(void *arg, int first);
    void *complete_arg;
    /* NULL, or set before lm_backward, which then begins with it in place of the gradient of the
     * mean nll and reads no targets: [B*L,V] of the logits. Where words are in clusters, or the
     * output reads layers before the last, there is no such beginning. */
    const float *d_logits;
    /* NULL, or set before lm_forward with n_scored = L: the places [B,n_picked] of each sequence, in
     * order, that have logits and losses; targets, nll and lm_backward's mean are of these alone. */
    const int32_t *picked;
    int n_picked;
    /* With an encoder, set before lm_forward: the source [B,max.M]; its rows of each that count [B],
     * NULL = all. */
    const int32_t *source, *source_seen;
    /* NULL, or told of each block of logits [n,V], of rows [at, at + n) of those that have them, before
     * the next one takes its place. */
    void (*see_logits)(void *arg, const float *logits, int at, int n);
    void *see_arg;
    double progress; /* set before lm_backward: part of the training that is over, from 0 to 1 */
    float z_loss; /* lm_backward is of the mean of nll + z_loss logsumexp(logits)^2; as bound 0 */
};

/* List the parameters of a model of `c`; nothing is allocated for their values yet. */
enum status lm_init(struct lm *m, const struct config *c, struct err *e);

/* Count (over a counting arena) or place weights, tables, caches and work space for up to `max`;
 * with an encoder max.M is the length of its source. */
enum status lm_bind(struct lm *m, const struct engine *g, enum mem_kind kind, struct extent max,
                    struct arena *a, struct err *e);
/* Likewise for training, after lm_bind: gradients, and room for what forward keeps from then on.
 * E_UNSUPPORTED if the backend or the memory kind has no backward pass. */
enum status lm_bind_grad(struct lm *m, const struct engine *g, struct arena *a, struct err *e);
/* Build the position tables: call after the weights have values, and when they change. */
void lm_build_tables(struct lm *m, const struct engine *g);
void lm_free(struct lm *m);

/* Forward of one segment: tokens [B,L]. The last `n_scored` positions of each sequence get logits
 * (in m->logits, [B*n_scored,V], or the last m->block of them) and, if target [B,n_scored] is
 * given, nll [B*n_scored] in nats. Memory is read; new rows are written after it, and lm_commit
 * makes them memory. */
void lm_forward(struct lm *m, const struct engine *g, const int32_t *tokens, int B, int L,
                int n_scored, const int32_t *target, float *nll);
/* After lm_forward of a whole segment (n_scored = L) and before lm_commit: add the gradient of the
 * mean nll over its B*L tokens to every parameter's, memory being a constant; where positions halt
 * by themselves, also that of ponder_tau times their ponder cost. m->logits is used up. */
void lm_backward(struct lm *m, const struct engine *g, const int32_t *tokens, const int32_t *target,
                 int B, int L);
/* The sum of the auxiliary losses of the last forward, with the conditions of lm_backward, which
 * adds aux_coef times its gradient. */
double lm_aux(const struct lm *m, int B, int L);
/* Likewise the sum of the reconstruction losses of compressed memory; lm_backward adds its gradient
 * to the weights of the compression. */
double lm_reconstruction(struct lm *m, const struct engine *g, int B, int L);
/* The states `last` [B,L,D] of a segment: embedding and layers. */
void lm_states(struct lm *m, const struct engine *g, const int32_t *tokens, float *last, int B,
               int L);
/* lm_forward up to what lm_score takes: the states [rows,D] of the positions that have logits. */
const float *lm_hidden(struct lm *m, const struct engine *g, const int32_t *tokens, int B, int L,
                       int n_scored);
/* Where words are in clusters, lm_forward scores targets without the logits of all words. This
 * fills m->logits [rows,V] with log p of all, for the rows of the last forward; m->all_logits must
 * have been set. Elsewhere they are there already. */
void lm_all(struct lm *m, const struct engine *g, int rows);
/* Does lm_forward fill m->logits? */
bool lm_has_logits(const struct lm *m);
/* m->logits [rows,V] of states h [rows,D] after the last layer; m->h is what they are made of. */
void lm_output(struct lm *m, const struct engine *g, const float *h, int rows);
/* Rows that a classifier reads, or their gradient, times logit_scale. */
void lm_scale(const struct lm *m, const struct engine *g, float *x, int rows);
/* Likewise what lm_forward does with them: their logits, and, if targets are given, their nll. */
void lm_score(struct lm *m, const struct engine *g, const float *h, const int32_t *target,
              float *nll, int rows);
void lm_commit(struct lm *m, int L);
void lm_forget(struct lm *m); /* empty memory */
/* Memory of as many rows of zeros as it keeps, for B sequences, as if layers had seen them.
 * E_UNSUPPORTED where the memory is none of rows. */
enum status lm_zeros(struct lm *m, const struct engine *g, int B, struct err *e);
/* Models that carry their past: set the position of the next token, as commit and forget do. */
void lm_seek(struct lm *m, int64_t position);

/* May a bound model know any token before, by what it carries besides rows of the layer below? Such
 * rows reach a memory further back in each layer. */
bool lm_reaches_all(const struct lm *m);

/* Numbers that a model carries for B sequences besides the memory of its sub-layers. */
size_t lm_carried(const struct lm *m, int B);
/* Of the last forward; n 0 before it, and where all positions run all layers. */
struct layers_run lm_layers_run(const struct lm *m);

/* Add the names of the implementations that run in a bound model, as sublayers_impl does; those of
 * an encoder come first. */
void lm_impl(const struct lm *m, bool backward, char text[IMPL_TEXT]);
/* The i-th result of its drive after lm_forward, or lm_backward; false after the last. */
bool lm_result(const struct lm *m, int i, struct drive_result *out);

/* Useful FLOP of one lm_forward of a bound model with M rows of memory; with halting, for the steps
 * of the last forward. */
double lm_flop(const struct lm *m, int B, int L, int M, int n_scored);
/* Of the logits of all words for one row. */
double lm_row_flop(const struct lm *m);
/* Of one lm_backward. */
double lm_grad_flop(const struct lm *m, int B, int L, int M);
/* Bytes of weights that the last forward, of so many rows, did not read: of embedding and output, and
 * of what only a training reads. */
double lm_unread_bytes(const struct lm *m, int rows);

/* ---- for drives and lm*.c ------------------------------------------------------------------- */

/* Rows of B sequences of L that are scored, if all or `picked` ones are. */
int lm_rows(const struct lm *m, int B, int L);
/* Those of h [B,L,D], in `to`, which may be h; where all are, h itself. */
const float *lm_pick(const struct lm *m, float *to, const float *h, int B, int L);
/* Back: the gradient d of scored rows becomes one [B,L,D], zero elsewhere. */
void lm_unpick(const struct lm *m, float *d, int B, int L);
/* Rows of logits that are computed at once. */
int lm_block(const struct lm *m, int rows);
/* From the output of states `in` to d, the gradient of these, of `share` of the mean nll. */
void lm_output_backward(struct lm *m, const struct engine *g, const int32_t *target,
                        const float *in, float *d, double share, int rows);
/* The positions of s begin at `first`: n encodings, of which so many that are trained. */
void lm_encode(struct lm *m, const struct sublayers *s, int64_t first, int n, int trained);
/* h [B,L,D]: the embedding of tokens, with the positions of s. _grad: from its gradient d, which is
 * used up; n encodings, as in part.h. */
void lm_embed(struct lm *m, const struct engine *g, const struct sublayers *s, float *h,
              const int32_t *tokens, int B, int L);
void lm_embed_grad(struct lm *m, const struct engine *g, const struct sublayers *s, int n, float *d,
                   const int32_t *tokens, int B, int L);
/* From m->d_h, the gradient of the stream after the embedding. */
void lm_embed_backward(struct lm *m, const struct engine *g, const int32_t *tokens, int B, int L);
/* Of the embedding and the output of `rows` rows. */
double lm_words_flop(const struct lm *m, int rows);
