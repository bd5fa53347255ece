/* SPDX-License-Identifier: MIT
 *
 * The sub-layers of a model in the order in which they run. The wiring groups them into layers
 * (attention and feed-forward; for Macaron half a feed-forward before and after), unless the model
 * has its own order.
 *
 * layers/ lists the sub-layers of a model, names their tensors, and places their work space. It
 * knows all kinds; what a kind computes is in the folders before it, what runs the list in lm/. */
#pragma once

#include "variants/model/sublayer/sublayer.h"

/* How sub-layers see the model that are not as it says: the mixers and the attention of a stack,
 * attention with trained masks, with more heads, and of a part of the channels, feed-forward
 * networks of layers without experts. */
enum model_view {
    VIEW_MIXERS,
    VIEW_ATTENTION,
    VIEW_MASKS,
    VIEW_MANY,
    VIEW_PART,
    VIEW_DENSE,
    VIEW_COUNT
};

struct sublayers {
    int n;
    struct config *view; /* [VIEW_COUNT], c itself where it has none */
    int once;            /* sub-layers until weights repeat */
    struct sublayer *at; /* [n] */
    struct work *work;   /* [n] */
    int at_model;        /* first of the parameters that all layers share */
    enum mem_kind mem;
    struct extent max;
    float *mid;            /* [B,L,D] second stream, if a gate cannot write over its x; else NULL */
    float *pos_encoding;   /* the position scheme's constant encodings */
    const int32_t *tokens; /* [B,L] of the next forward, set by the caller; NULL = none */
    float *unpooled;       /* [B,L,D] the stream before pooling, if there is any */
    float *entered;        /* [B,L,D] what entered a layer, if all of its sub-layers read that */
    /* Training only. */
    bool kept;           /* every sub-layer keeps what its backward pass reads */
    struct dropout drop; /* set by the caller before every forward whose backward follows */
    float *d_unpooled;   /* its gradient */
    float *d_left;       /* [B,L,D] gradient of what leaves a layer, likewise */
    float open_slope;    /* gradient of the loss by each gate of a sub-layer, besides f's */
    float *space;        /* [n_space] everything backward passes write except weight gradients */
    size_t n_space;
};

enum { MAX_RNNS = 4 }; /* LocalRNNs in a layer */

/* Is it one of enum sub_letter? */
bool sublayer_letter(char letter);

/* Append the parameters that layers share. */
void sublayers_model_params(const struct config *c, struct params *p);

/* List the sub-layers of a model of `c`, which must stay valid, and append their parameters. Model
 * parameters that positions share over layers begin at `at_model`. */
void sublayers_init(struct sublayers *s, const struct config *c, struct params *p, int at_model);
/* A single sub-layer of this letter, tensors named without prefix, no wiring. */
void sublayers_init_bare(struct sublayers *s, const struct config *c, char letter, struct params *p,
                         int at_model);
void sublayers_free(struct sublayers *s);

/* Count or place memory, tables and work space for up to `max`; the parameters must be placed.
 * _grad: likewise for training, afterwards: room for what forward keeps from then on, and for
 * backward. E_UNSUPPORTED if a sub-layer has no backward pass. */
enum status sublayers_bind(struct sublayers *s, const struct engine *g, const struct params *p,
                           enum mem_kind mem, struct extent max, struct arena *a, struct err *e);
enum status sublayers_bind_grad(struct sublayers *s, const struct engine *g, struct arena *a,
                                struct err *e);
enum status sublayers_can_grad(const struct sublayers *s, const struct engine *g, struct err *e);
/* Fill everything that backward writes except gradients with NaN, so that reads of unwritten data
 * show. */
void sublayers_poison(const struct sublayers *s);

/* The two halves of binding work space, sublayer_work.c. */
void works_bind(struct sublayers *s, const struct engine *g, struct arena *a);
void works_bind_grad(struct sublayers *s, const struct engine *g, struct arena *a);

/* Fill the position tables: call once encodings and weights have values, and when they change. */
void sublayers_build_tables(struct sublayers *s, const struct engine *g);

/* Where to put the input of a forward whose result may go to z: in training the first sub-layer
 * keeps it. */
float *sublayers_input(const struct sublayers *s, float *z);
/* z [B,L,D] from x [B,L,D], which is z, sublayers_input(z) or, except in training, elsewhere. */
void sublayers_forward(struct sublayers *s, const struct engine *g, float *z, float *x, int B,
                       int L);
/* After it, and before sublayers_commit: d [B,L,D] from the gradient of z to that of x. */
void sublayers_backward(struct sublayers *s, const struct engine *g, float *d, int B, int L);
/* First sub-layer of layer l, from 0; the number of all after the last. */
int sublayers_first(const struct sublayers *s, int l);
/* The same for sub-layers [first, first + count) only, whose results are needed in between. */
float *sublayers_part_input(const struct sublayers *s, int first, int count, float *z);
void sublayers_part_forward(struct sublayers *s, const struct engine *g, int first, int count,
                            float *z, float *x, int B, int L);
void sublayers_part_backward(struct sublayers *s, const struct engine *g, int first, int count,
                             float *d, int B, int L);
void sublayers_commit(struct sublayers *s, int L);
void sublayers_forget(struct sublayers *s);

/* Add the names of the implementations that the sub-layers run to text, each once, in the order of
 * their first use, joined by '+': "fused+composed". With `backward`, a name is "sdpa/composed"
 * where another implementation goes backward. */
enum { IMPL_TEXT = 128 };
void sublayers_impl(const struct sublayers *s, bool backward, char text[IMPL_TEXT]);
/* One name. */
void impl_add(char text[IMPL_TEXT], const char *forward, const char *backward);
/* Does any of them have memory other than rows? */
bool sublayers_carry(const struct sublayers *s);

/* The i-th attention sub-layer, NULL after the last; their number; the list index of the i-th
 * sub-layer that may remember its input, -1 after the last. */
struct sublayer *sublayers_attention(const struct sublayers *s, int i);
int sublayers_attentions(const struct sublayers *s);
int sublayers_remembering(const struct sublayers *s, int i);

/* Its only attention, if no row of the output depends on attention of another row: rows can then be
 * computed without the attention of the others (engine.wanted). NULL if there is no such. */
const struct sublayer *sublayers_row_by_row(const struct sublayers *s);

/* The gradient of the budget's loss by each gate that skips a sub-layer (sublayer_skip.h), after a
 * forward that was kept. */
float sublayers_skip_slope(const struct sublayers *s, int B, int L);

/* Why kernels with only plain terms cannot run a model's attention; NULL: they can. */
const char *sublayers_refusal(const struct engine *g, const struct config *c);

double sublayers_flop(const struct sublayers *s, int B, int L, int M);
/* Shares of it: attention and what is in its place, with their maps; of that, what attention computes
 * of pairs of queries and keys. */
struct flop_shares {
    double mixing, pairs;
};
struct flop_shares sublayers_shares(const struct sublayers *s, int B, int L, int M);
/* Bytes of gathered and scattered rows of a forward (content_moves); and the same copies
 * again after one, if all that have some can, else false. */
double sublayers_moves(const struct sublayers *s, int B, int L, int M);
bool sublayers_gather(struct sublayers *s, const struct engine *g, int B, int L);
double sublayers_grad_flop(const struct sublayers *s, int B, int L, int M);
