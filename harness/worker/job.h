/* SPDX-License-Identifier: MIT
 *
 * A case bound in this process: engine, arena, weights, inputs, and one function that does one
 * measured run. Independent of clocks and pipes. */
#pragma once

#include "agree.h"
#include "harness/plan/plan.h"
#include "variants/model/attention/cross.h"
#include "variants/model/lm/lm.h"
#include "variants/model/optimise/optimizer.h"

/* Attention alone: projected operands and the scheme's tables. */
struct attn_job {
    struct params params;
    int at_attn_extra; /* parameters from it on belong to the second scheme */
    int at_layer;      /* parameters before it belong to the model, from it on to the layer */
    struct attn attn;
    const struct attn_impl *impl;
    float *pos_encoding;
    void *scratch;
    /* With a backward pass. */
    bool trained; /* the scheme maps gradients of its tables to weights */
    struct attn_grad d;
    float *d_o;    /* [B,L,H,dh] */
    float *d_fade; /* d.d_fade as floats */
    void *scratch_grad;
};

/* One layer. */
struct layer_job {
    struct params params;
    struct sublayers sublayers;
    float *x, *z; /* [B,L,D] input, which is preserved, and the stream */
    float *given; /* [B,L,D] the input, where positions are added to x; else NULL */
    /* With a backward pass. */
    float *d_z, *d; /* [B,L,D] gradient of z, and of the stream, which becomes that of x */
};

/* Cross attention. */
struct cross_job {
    struct params params;
    struct cross t;
    float *x, *y, *ctx; /* [B,L,D] input and output, [B,S,D] */
    /* With a backward pass. */
    float *d_y, *d_x, *d_ctx;
};

/* A whole model: segment, decode, train, request and encdec. */
struct lm_job {
    struct lm lm;
    int32_t *tokens, *targets, *source; /* source: encdec */
    float *nll;
    int n_scored;
    struct optimizer optimizer; /* train */
    /* request: the tokens of one reading [B,..], and all rows of the output */
    int32_t *run;
    float *all;
};

struct job {
    const struct bench_case *bcase;
    const struct workload_ops *ops;
    struct config config;
    enum mem_kind kind;
    struct extent shape; /* L as executed: recompute runs the past with the segment */
    struct engine engine;
    struct arena arena;
    struct params *params; /* its weights, from declaration on; the layers, if it has some, and */
    struct sublayers *list[2]; /* those of an encoder */
    union {                    /* by workload */
        struct attn_job attn;
        struct layer_job layer;
        struct cross_job cross;
        struct lm_job lm;
    };
    bool *wanted;     /* [B,L] rows of a reference that was asked for some only; NULL = all */
    const float *out; /* what is compared with the reference */
    size_t n_out;
    int out_shape[3];     /* sequences, positions, width */
    char impl[IMPL_TEXT]; /* as sublayers_impl names them */
    /* Where a run makes several tokens: the time of its beginning and of each token, for the latest
     * run, if there is a clock. */
    int64_t (*clock_ns)(void);
    int64_t *mark_ns; /* [n_marks] */
    int n_marks;
};

/* Open the engine and count the arena: job->arena.used is what job_place will take. Costs are known
 * once it is placed or mapped. */
enum status job_open(struct job *j, const struct bench_case *c, struct err *e);

/* Place the arena, fill weights, inputs and memory from the seed, build the tables. `bind` as in
 * arena_place. */
enum status job_place(struct job *j,
                      enum status (*bind)(void *arg, void *base, size_t size, struct err *e),
                      void *arg, struct err *e);

/* Place the arena without values, which takes no time and touches little memory: FLOP and bytes can
 * then be asked for, up to what depends on weights. Such a job cannot run. */
enum status job_map(struct job *j, struct err *e);

bool job_goes_backward(const struct job *j);

/* Bytes of rows that a run copies so that those that meet lie together, and back (a part of
 * job_bytes). */
double job_moved_bytes(struct job *j);
/* Repeats the copies of the forward pass after job_run; false where they cannot be timed alone. */
bool job_gather(struct job *j);

/* One measured run. Leaves memory and weights unchanged: a training step has a learning rate of 0.
 */
void job_run(struct job *j);
void job_run_forward(struct job *j); /* its first part */

/* The bound of the check of a case. */
struct bound job_bound(const struct bench_case *c);

/* The rows of the output of which `each` of every sequence are compared. */
struct checked_rows job_rows(const struct job *j, int each);

/* Of a job on the ref backend: let its runs compute these rows; others may come out as anything. */
enum status job_want_rows(struct job *j, const struct checked_rows *r, struct err *e);

/* Copy those rows of the output [B,each,width]. */
void job_copy_rows(const struct job *j, const struct checked_rows *r, float *to);

/* After job_run: those rows of the output against the reference's [B,each,width]; `where` is the
 * worst one's [sequence,position,feature]. E_NOMEM. */
enum status job_check_output(const struct job *j, const struct checked_rows *r, const float *want,
                             struct agreement *a, struct err *e);

/* Expected gradients: run forward, then backward by the ref backend on the same activations that
 * forward left. (Activations computed separately would differ in the last bits; where one of them
 * is the input of a ReLU within rounding of 0, gradients jump.) Leaves NaN where a backward pass
 * writes. *want is malloc'ed, or NULL if the case has no backward pass. */
enum status job_expect_gradients(struct job *j, float **want, struct err *e);

/* After job_run: each gradient against the expected one, relative to its largest entry or, if it
 * cancels to nothing, to a hundredth of the largest of all; `where` names the worst. */
void job_check_gradients(const struct job *j, const float *want, struct agreement *a);
void job_close(struct job *j);

/* The attention implementation, "FORWARD/BACKWARD" if another one does the backward pass. */
const char *job_impl(const struct job *j);
double job_flop(const struct job *j); /* useful FLOP of a run, backward included */
/* Shares of the FLOP of its layers, forward; NAN = it has none. */
struct flop_shares job_shares(struct job *j);
double job_bytes(struct job *j); /* compulsory bytes of a run: each operand once */

/* Closed form: the column model_predicted_bytes. */
size_t job_predicted_bytes(const struct job *j);
/* Likewise cache_bytes: what the model keeps from token to token, whatever the case keeps. */
size_t job_cache_bytes(const struct job *j);

/* Tokens that a run advances: B * seq, regardless of what is recomputed for them. */
double job_tokens(const struct job *j);
