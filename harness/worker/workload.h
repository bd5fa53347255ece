/* SPDX-License-Identifier: MIT
 *
 * The workloads, one table row each: workload_attn.c (the attention core alone), workload_cross.c
 * (attention to another sequence), workload_layer.c (one layer), workload_lm.c (a whole model:
 * segment, decode, train; encdec: with an encoder), workload_request.c (a prompt and what follows). job.c calls their
 * functions in order and names no workload. */
#pragma once

#include "job.h"

/* One gradient that a backward pass leaves. */
struct gradient {
    const char *name;
    const float *at;
    size_t n;     /* 0 = no such term */
    double terms; /* size of the terms that it is the sum of, at least, if they may cancel; 0 = no
                   * more is known than the largest gradient */
};

struct workload_ops {
    /* The bound on max|got - ref| / max|ref| for a whole case. */
    double err_limit;

    /* Declare the parameters, check the configuration, and set job.params and job.list. */
    enum status (*declare)(struct job *j, struct err *e);
    /* Count or place everything that forward works in, and set the output. Runs twice: over a
     * counting and over a placed arena. `bind_grad`: what a backward pass needs in addition. */
    enum status (*bind)(struct job *j, struct err *e);
    enum status (*bind_grad)(struct job *j, struct err *e);
    /* Fill inputs, memory and tables; the weights have their values. `fill_grad`: the incoming
     * gradients, and the optimiser's zero moments; NULL = there is nothing to fill. */
    void (*fill)(struct job *j);
    void (*fill_grad)(struct job *j);
    /* One run. `backward` starts all gradients from zero, by engine `g`, after forward; `finish`
     * follows it, or is NULL. */
    void (*forward)(struct job *j);
    void (*backward)(struct job *j, const struct engine *g);
    void (*finish)(struct job *j);

    /* Cost of a run. The _grad functions give what a backward pass adds. */
    double (*flop)(const struct job *j);
    double (*flop_grad)(const struct job *j);
    /* The part of `flop` that rows of attention's output take which need not be computed for the
     * others (engine.wanted); NULL or 0 = every row of the output takes them all. */
    double (*flop_of_rows)(const struct job *j);
    double (*bytes)(const struct job *j);
    double (*bytes_grad)(
        const struct job *j); /* NULL = gradients of all that forward read and wrote,
                                                * and both moments, each once */
    /* Closed form: the column model_predicted_bytes. */
    size_t (*predicted_bytes)(const struct job *j);

    /* Add the names of the attention implementations that run, as sublayers_impl does. */
    void (*impl)(const struct job *j, char names[IMPL_TEXT]);

    /* The check of gradients: backward by the reference `ref` on what forward left; the i-th
     * gradient, false after the last; NaN into everything that backward writes (what it adds to
     * starts from zero in each run). NULL = as job.list and job.params have them. */
    enum status (*reference_backward)(struct job *j, const struct engine *ref, struct err *e);
    bool (*gradient)(const struct job *j, int i, struct gradient *out);
    void (*poison)(struct job *j);

    void (*close)(struct job *j);
};

/* Those that are functions of these names in its file, with a backward pass. */
#define WORKLOAD_HOOKS                                                                             \
    .declare = declare, .bind = bind, .bind_grad = bind_grad, .fill = fill,                        \
    .fill_grad = fill_grad, .forward = forward, .backward = backward, .flop = flop,                \
    .flop_grad = flop_grad, .bytes = bytes, .predicted_bytes = predicted_bytes, .impl = impl,      \
    .gradient = gradient

#define X(id, name, ...) extern const struct workload_ops workload_##name;
WORKLOADS(X)
#undef X

const struct workload_ops *workload_ops(enum workload w);

/* ---- for the workloads --------------------------------------------------------------------- */

size_t job_elements(int a, int b, int c);

/* x[0..n) = N(0,1) from the case's seed, by name. */
void job_draw(const struct job *j, const char *name, float *x, size_t n);
/* Likewise tokens, of the whole vocabulary. */
void job_draw_tokens(const struct job *j, const char *name, int32_t *x, size_t n);

/* Move all weights, those of one name by the same steps, and fill in again what follows from them:
 * what begins where an idea does nothing then does something. After job_place. */
void job_move_weights(struct job *j);

/* Do the outputs of two jobs that ran differ by more than rounding? */
bool job_outputs_differ(const struct job *a, const struct job *b);

/* The output that is compared with the reference: [B, rows, width]. */
void job_set_output(struct job *j, const float *out, int rows, int width);

/* Random past for every sub-layer with memory. `x` [B,L,D] is work space. */
void job_fill_memories(struct job *j, struct sublayers *sublayers, float *x);
/* Closed form of the bytes of that memory, of M tokens. */
size_t job_memory_bytes(const struct job *j, const struct sublayers *sublayers, int M);

/* Weights, position tables and memory of a layer or a model, read once each. */
double job_bytes_of_weights(const struct job *j);
/* Rebuilding position tables for so many keys, as every training step does, and passing a layer's
 * gradient through them. */
double job_tables_flop(const struct job *j, int keys);

/* An implementation of the reference that can go backward on `like`; *most grows to the bytes that
 * it works in. */
struct reference_impl {
    const struct attn_impl *impl;
    void *scratch;
};
enum status job_find_reference_impl(struct reference_impl *with, const struct attn *like,
                                    const struct engine *ref, size_t *most, struct err *e);
/* Work space of such implementations, for free(). */
enum status job_reference_scratch(void **scratch, size_t bytes, struct err *e);
/* The i-th gradient of a parameter, false after the last. */
bool job_param_gradient(const struct params *p, int i, struct gradient *out);
