/* SPDX-License-Identifier: MIT
 *
 * What a model is made of: its sub-layers in the order in which they run. A layer is the few that
 * the wiring makes one (attention and feed-forward; for Macaron half a feed-forward on either
 * side), unless the model has an order of its own. */
#ifndef SUBLAYER_LIST_H
#define SUBLAYER_LIST_H

#include "sublayer.h"

struct sublayers {
    int n;
    int once;            /* of them until the same weights come again */
    struct sublayer *at; /* [n] */
    struct work *work;   /* [n] */
    int at_model;        /* the first of the parameters that all layers share */
    enum mem_kind mem;
    struct extent max;
    float *mid; /* [B,L,D] the other stream, where a gate cannot write over its x; else NULL */
    float *pos_encoding; /* the position scheme's constant codes */
    float *near;         /* [B,L,D] the stream in front of the first cells, where there are any */
    /* Training only. */
    bool kept;           /* every sub-layer keeps what its backward pass reads */
    struct dropout drop; /* the caller's, for every forward whose backward follows */
    float *d_near;       /* its gradient */
    float *space;        /* [n_space] all that backward passes write besides gradients of weights */
    size_t n_space;
};

enum { MAX_RNNS = 4 }; /* LocalRNNs in a layer */

/* Letters of config.order: s attention, f feed-forward, h half of its output (Macaron's), r
 * LocalRNN, p attention that asks from means of two rows, so that half as many are behind it, u
 * attention in front of which every token has its row again. */
bool sublayer_letter(char letter);

/* List the sub-layers of a model of `c`, which must stay where it is, and append their parameters.
 * The model's own, that positions share over layers, begin at `at_model`. */
enum status sublayers_init(struct sublayers *s, const struct config *c, struct params *p,
                           int at_model, struct err *e);
/* Only one sub-layer of this letter, its tensors named without prefix, and no wiring at all; the
 * bare operator: attention with tensors named without prefix, and no wiring at all. */
enum status sublayers_init_bare(struct sublayers *s, const struct config *c, char letter,
                                struct params *p, int at_model, struct err *e);
enum status sublayers_init_operator(struct sublayers *s, const struct config *c, struct params *p,
                                    int at_model, struct err *e);
void sublayers_free(struct sublayers *s);

/* Count or place memory, tables and work space for up to `max`, the parameters having been placed.
 * The same for training, in addition and after it: room for what forward keeps from then on, and
 * for backward. E_UNSUPPORTED where one of them cannot run backward. */
enum status sublayers_bind(struct sublayers *s, const struct engine *g, const struct params *p,
                           enum mem_kind mem, struct extent max, struct arena *a, struct err *e);
enum status sublayers_bind_grad(struct sublayers *s, const struct engine *g, struct arena *a,
                                struct err *e);
enum status sublayers_can_grad(const struct sublayers *s, const struct engine *g, struct err *e);
/* All that backward writes besides gradients becomes NaN, so that what it reads without having
 * written it shows. */
void sublayers_poison(const struct sublayers *s);

/* The two halves of binding work space, sublayer_work.c. */
void works_bind(struct sublayers *s, const struct engine *g, struct arena *a);
void works_bind_grad(struct sublayers *s, const struct engine *g, struct arena *a);

/* Fill the position tables: once codes and weights have their values, and when they change. */
void sublayers_build_tables(struct sublayers *s, const struct engine *g);

/* Where the input of a forward belongs whose result may be in z: in training the first sub-layer
 * keeps it. */
float *sublayers_input(const struct sublayers *s, float *z);
/* z [B,L,D] from x [B,L,D], which is z, subs_input(z) or, not in training, elsewhere. */
void sublayers_forward(struct sublayers *s, const struct engine *g, float *z, float *x, int B,
                       int L);
/* After it, and before subs_commit: d [B,L,D] from the gradient of z to that of x. */
void sublayers_backward(struct sublayers *s, const struct engine *g, float *d, int B, int L);
/* The same for sub-layers [first, first + count) alone, whose results are needed between them. */
float *sublayers_part_input(const struct sublayers *s, int first, int count, float *z);
void sublayers_part_forward(struct sublayers *s, const struct engine *g, int first, int count,
                            float *z, float *x, int B, int L);
void sublayers_part_backward(struct sublayers *s, const struct engine *g, int first, int count,
                             float *d, int B, int L);
void sublayers_commit(struct sublayers *s, int L);
void sublayers_forget(struct sublayers *s);

/* Names of what executes the first sub-layer that has such a thing; *backward is NULL where it does
 * both. Without one, empty. */
void sublayers_impl(const struct sublayers *s, const char **forward, const char **backward);
/* Has any of them memory of its own that is no rows? */
bool sublayers_carry(const struct sublayers *s);

/* The i-th attention sub-layer; NULL behind the last. How many there are. The place in the list of
 * the i-th sub-layer that may remember its input; -1 behind the last. */
struct sublayer *sublayers_attention(const struct sublayers *s, int i);
int sublayers_attentions(const struct sublayers *s);
int sublayers_remembering(const struct sublayers *s, int i);

double sublayers_flop(const struct sublayers *s, int B, int L, int M);
double sublayers_grad_flop(const struct sublayers *s, int B, int L, int M);

#endif
