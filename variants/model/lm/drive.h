/* SPDX-License-Identifier: MIT
 *
 * A drive runs the layers of a language model: one after the other once, or as one of the files
 * depth.c, blend.c, exit.c, feedback.c, slots.c, encoder.c,
 * auxiliary.c does. A model has one drive, which drive_of chooses
 * from its config; drives exclude each other in exclusions.c. */
#pragma once

#include "variants/model/config/choices.h"
#include "variants/model/layers/sublayer_list.h"

struct lm;

/* What the last pass gave besides states and logits: an array, or a number. */
struct drive_result {
    const char *name;
    const int32_t *whole;
    const float *real;
    float number; /* where both arrays are NULL */
    size_t n;
};

/* How deep the positions of the last pass went: of[i] * each layers. n 0: all of them ran all. */
struct layers_run {
    const int32_t *of;
    int n, each;
    double ponder; /* where they halt: mean of steps and rest, R of Graves 2016; else 0 */
};

/* Positions of several passes, counted by their layers. */
struct layers_count {
    double of[MAX_LAYERS + 1];
};
void layers_count(struct layers_count *all, const struct layers_run *r);
/* Mean, and the fewest that nine of ten do not exceed; NAN of no positions. */
double layers_mean(const struct layers_count *all);
double layers_p90(const struct layers_count *all);
/* How many layers the last n positions ran; false if all ran all. */
bool layers_last(const struct layers_run *r, int32_t *to, int n);

/* Every drive has input, forward, backward, flop and grad_flop. Other hooks: NULL = nothing. */
struct drive {
    bool (*has)(const struct config *c); /* does a model of c have this drive? */
    size_t size;                         /* bytes of m->drive_data, zeros at first */
    bool heads;    /* the output reads layers before the last: all rows have logits at once, and
                  * backward begins with the losses of all layers */
    bool memory;   /* it has a memory besides the rows of each sub-layer */
    bool predicts; /* its backward reads the targets: losses are of next tokens */
    const char *undivided; /* what ranks cannot divide; NULL = nothing */

    /* Declare parameters; the first becomes m->at_drive. */
    void (*params)(struct lm *m);
    /* The largest shape of the sub-layers; NULL = that of the model, m->max. */
    struct extent (*step)(struct lm *m);
    /* Count or place; the sub-layers are bound. _grad: additionally for training. */
    enum status (*bind)(struct lm *m, const struct engine *g, struct arena *a, struct err *e);
    enum status (*bind_grad)(struct lm *m, const struct engine *g, struct arena *a, struct err *e);
    /* As lm_build_tables, of what is its own. */
    void (*build_tables)(struct lm *m, const struct engine *g);
    /* Layers of its own, besides those of the model. */
    struct sublayers *(*layers)(const struct lm *m);
    void (*free)(struct lm *m);

    /* Before the layers of a segment run. */
    void (*enter)(struct lm *m, const int32_t *tokens, int B, int L);
    /* Where forward expects its input; `out` is its output. */
    float *(*input)(const struct lm *m, float *out);
    /* out [B,L,D], which the output reads, from the input. */
    void (*forward)(struct lm *m, const struct engine *g, float *out, int B, int L);
    /* m->d_h from the gradient of what the output read, or with heads from the targets, to that of
     * the input. */
    void (*backward)(struct lm *m, const struct engine *g, const int32_t *target, int B, int L);
    /* After it, when the embedding has its gradient: the segments before. */
    void (*replay)(struct lm *m, const struct engine *g, int B, int L);

    void (*commit)(struct lm *m, int L); /* before the sub-layers do */
    void (*forget)(struct lm *m);
    size_t (*carried)(const struct lm *m, int B); /* numbers, besides those of sub-layers */

    /* Of the layers and all that the drive adds to them. */
    double (*flop)(const struct lm *m, int B, int L, int M);
    double (*grad_flop)(const struct lm *m, int B, int L, int M);
    double (*unread)(const struct lm *m); /* bytes of parameters that forward does not read */
    struct layers_run (*layers_run)(const struct lm *m); /* NULL = all run all */
    /* The i-th result; false after the last. */
    bool (*result)(const struct lm *m, int i, struct drive_result *out);
};

extern const struct drive drive_plain, drive_depth, drive_blend, drive_exit, drive_feedback,
    drive_slots, drive_encoder, drive_auxiliary;

const struct drive *drive_of(const struct config *c);

/* n floats each: TAKE(a, PART_SCRATCH, n, &t->x, &t->y). */
void arrays_take(struct arena *a, enum part part, size_t n, float **const *to);
#define TAKE(a, part, n, ...) arrays_take(a, part, n, (float **const[]){__VA_ARGS__, NULL})

/* Layer l of s, from 0, forward and backward. */
void layer_forward(struct sublayers *s, const struct engine *g, int l, float *z, float *x, int B,
                   int L);
void layer_backward(struct sublayers *s, const struct engine *g, int l, float *d, int B, int L);
/* The state after layer l, from 0 = the input, of a stream `h`; those of a forward that was kept are
 * all there. */
float *layer_state(const struct sublayers *s, int l, float *h);

/* As the plain drive does. */
float *plain_input(const struct lm *m, float *out);
void plain_backward(struct lm *m, const struct engine *g, const int32_t *target, int B, int L);
/* Its backward, with a call before each layer l, from N to 1, goes backward; NULL = none. */
typedef void before_layer(struct lm *m, const struct engine *g, const int32_t *target, int l, int B,
                          int L);
void layers_backward(struct lm *m, const struct engine *g, before_layer *before,
                     const int32_t *target, int B, int L);
double plain_flop(const struct lm *m, int B, int L, int M);
double plain_grad_flop(const struct lm *m, int B, int L, int M);
