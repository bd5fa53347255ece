/* SPDX-License-Identifier: MIT
 *
 * What a model is made of: its sub-layers in the order in which they run. A layer is the few that
 * the wiring makes one (attention and feed-forward; for Macaron half a feed-forward on either
 * side), unless the model has an order of its own. */
#ifndef SUBLAYER_LIST_H
#define SUBLAYER_LIST_H

#include "sublayer.h"

struct subs {
    int n;
    int once;          /* of them until the same weights come again */
    struct sub *at;    /* [n] */
    struct work *work; /* [n] */
    int at_model;      /* the first of the parameters that all layers share */
    enum mem_kind mem;
    struct extent max;
    float *mid;   /* [B,L,D] the other stream, where a gate cannot write over its x; else NULL */
    float *codes; /* the position scheme's constant codes */
    float *near;  /* [B,L,D] the stream in front of the first cells, where there are any */
    /* Training only. */
    bool kept;           /* every sub-layer keeps what its backward pass reads */
    struct dropout drop; /* the caller's, for every forward whose backward follows */
    float *d_near;       /* its gradient */
    float *space;        /* [n_space] all that backward passes write besides gradients of weights */
    size_t n_space;
};

enum { RNN_MOST = 4 }; /* LocalRNNs in a layer */

/* Letters of config.order: s attention, f feed-forward, h half of its output (Macaron's), r
 * LocalRNN, p attention that asks from means of two rows, so that half as many are behind it, u
 * attention in front of which every token has its row again. */
bool sub_letter(char letter);

/* List the sub-layers of a model of `c`, which must stay where it is, and append their parameters.
 * The model's own, that positions share over layers, begin at `at_model`. */
enum status subs_init(struct subs *s, const struct config *c, struct params *p, int at_model,
                      struct err *e);
/* Only one sub-layer of this letter, its tensors named without prefix, and no wiring at all; the
 * bare operator: attention with tensors named without prefix, and no wiring at all. */
enum status subs_init_bare(struct subs *s, const struct config *c, char letter, struct params *p,
                           int at_model, struct err *e);
enum status subs_init_operator(struct subs *s, const struct config *c, struct params *p,
                               int at_model, struct err *e);
void subs_free(struct subs *s);

/* Count or place memory, tables and work space for up to `max`, the parameters having been placed.
 * The same for training, in addition and after it: room for what forward keeps from then on, and
 * for backward. E_UNSUPPORTED where one of them cannot run backward. */
enum status subs_bind(struct subs *s, const struct engine *g, const struct params *p,
                      enum mem_kind mem, struct extent max, struct arena *a, struct err *e);
enum status subs_bind_grad(struct subs *s, const struct engine *g, struct arena *a, struct err *e);
enum status subs_can_grad(const struct subs *s, const struct engine *g, struct err *e);
/* All that backward writes besides gradients becomes NaN, so that what it reads without having
 * written it shows. */
void subs_spoil(const struct subs *s);

/* The two halves of binding work space, sublayer_work.c. */
void works_bind(struct subs *s, const struct engine *g, struct arena *a);
void works_bind_grad(struct subs *s, const struct engine *g, struct arena *a);

/* Fill the position tables: once codes and weights have their values, and when they change. */
void subs_lower(struct subs *s, const struct engine *g);

/* Where the input of a forward belongs whose result may be in z: in training the first sub-layer
 * keeps it. */
float *subs_input(const struct subs *s, float *z);
/* z [B,L,D] from x [B,L,D], which is z, subs_input(z) or, not in training, elsewhere. */
void subs_forward(struct subs *s, const struct engine *g, float *z, float *x, int B, int L);
/* After it, and before subs_commit: d [B,L,D] from the gradient of z to that of x. */
void subs_backward(struct subs *s, const struct engine *g, float *d, int B, int L);
/* The same for sub-layers [first, first + count) alone, whose results are needed between them. */
float *subs_part_input(const struct subs *s, int first, int count, float *z);
void subs_part_forward(struct subs *s, const struct engine *g, int first, int count, float *z,
                       float *x, int B, int L);
void subs_part_backward(struct subs *s, const struct engine *g, int first, int count, float *d,
                        int B, int L);
void subs_commit(struct subs *s, int L);
void subs_forget(struct subs *s);

/* Names of what executes the first sub-layer that has such a thing; *backward is NULL where it does
 * both. Without one, empty. */
void subs_impl(const struct subs *s, const char **forward, const char **backward);
/* Has any of them memory of its own that is no rows? */
bool subs_carry(const struct subs *s);

/* The i-th attention sub-layer; NULL behind the last. How many there are. The place in the list of
 * the i-th sub-layer that may remember its input; -1 behind the last. */
struct sub *subs_attention(const struct subs *s, int i);
int subs_attentions(const struct subs *s);
int subs_remembering(const struct subs *s, int i);

double subs_flop(const struct subs *s, int B, int L, int M);
double subs_grad_flop(const struct subs *s, int B, int L, int M);

#endif
