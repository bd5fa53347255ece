/* SPDX-License-Identifier: MIT
 *
 * Attention that chooses its pairs, keys or queries by the contents of rows, a kind of sub-layer.
 * content.c does what all forms share: projections, shared queries and keys, rotation, memory, W_o.
 * A form (struct content) says which rows attend to which. */
#pragma once

#include "variants/base/sort.h"
#include "variants/model/sublayer/sublayer_project.h"

/* Rows of all heads: element e of head h in row j of sequence b is at[b batch + j row + h dh + e].
 * NULL = there are none. */
struct head_rows {
    float *at;
    ptrdiff_t batch, row;
};

/* One call. M rows of memory lie before L new ones; queries are the new rows. */
struct content_call {
    const struct engine *g;
    const struct sublayer *s;
    struct attn a; /* q, k, v as they are multiplied, and o; lse where backward follows */
    /* Queries and keys before rotation, of all rows that were projected in this call; shared
     * queries and keys are one array, whose rows the keys are unit vectors of. Kept for forms that
     * number rows. */
    struct head_rows raw_q, raw_k;
    int first; /* rows before the projected ones: those of a cache */
    /* So many whole numbers of each row and head: [B,M+L,H,n] */
    struct head_rows numbers;
    float *kept;   /* the form's array */
    void *scratch; /* content_scratch: work space of g's or the reference's implementation first */
    bool grad;     /* is it a backward pass? */
};

/* Run one head of one sequence. */
typedef void content_head(const struct content_call *n, int head, const struct attn_grad *d);

struct groups;

struct content {
    bool past, both; /* is it defined with a view of the past only; of the future, too? */
    bool both_ahead; /* of the future only in the form that looks ahead anyway */
    bool no_memory;  /* keys of an earlier segment mean nothing to it */
    /* Numbers of a row and head; NULL = none. number: fill in those of the projected rows. */
    int (*numbers)(const struct config *c);
    void (*number)(const struct content_call *n);
    void (*params)(const struct sublayer *s, const char *prefix, struct params *p);
    size_t (*kept)(const struct sublayer *s, struct extent max); /* floats; NULL = 0 */
    /* The attention that it runs, at its largest: an implementation is selected for it. */
    struct attn (*core)(const struct sublayer *s, struct extent max);
    /* Groups that rows attend inside of; n = 0: this model has none. Where there are some, work space,
     * runs and copies are theirs, not those of the hooks here. NULL = never. */
    struct groups (*groups)(const struct config *c);
    /* Bytes of work space for `threads` threads besides that of the core; each thread has its own
     * core. NULL = none. */
    size_t (*scratch)(const struct sublayer *s, struct extent max, int threads);
    /* Forward, or with d backward: adds to d->d_q, d_k and d_v, of the strides of q, k and v. One
     * head, shared out to threads; or else all. */
    content_head *head;
    void (*run)(const struct content_call *n, const struct attn_grad *d);
    /* Of a loss of its own: adds to the gradients of raw queries and keys, strides as theirs, and
     * leaves steps of buffers. NULL = none. */
    void (*raw_grad)(const struct content_call *n, struct head_rows d_q, struct head_rows d_k);
    double (*aux)(const struct content_call *n); /* that loss before its factor; NULL = none */
    bool (*shows)(const struct content_call *n, int i, struct shown *out);
    /* Useful products of one call, besides projections: of the choice, and of the pairs. */
    double (*flop)(const struct sublayer *s, int B, int L, int M);
    double (*choice_flop)(const struct sublayer *s, int B, int L, int M);
    /* Rows of one head of one sequence, dh floats each, that forward copies; NULL = 0. */
    double (*moved_rows)(const struct config *c, int L, int M);
    /* See content_looks_ahead; NULL = never. */
    const char *(*looks_ahead)(const struct config *c);
};

/* Hooks of a form that are functions of these names in its file. */
#define CONTENT_HOOKS                                                                              \
    .params = params, .scratch = scratch, .shows = shows, .flop = flop, .choice_flop = choice_flop

/* Its arrays: projections before rotation (queries, or both where shared; keys), then as they are
 * multiplied, values, outputs, log-sum-exp, numbers, the form's. */
enum { CT_RAW_Q, CT_RAW_K, CT_Q, CT_K, CT_V, CT_O, CT_LSE, CT_NUMBERS, CT_KEPT };

/* The form's parameters, which are buffers. */
const struct param *content_buffer(const struct sublayer *s, int i);
static inline const struct content *content_of(const struct sublayer *s)
{
    return s->c->mixer->content;
}

/* The call whose operands lie in `w`: B sequences of L rows after the present memory. */
struct content_call content_call_of(const struct engine *g, const struct sublayer *s,
                                    const struct work *w, int B, int L);

/* Run the selected implementation on `a`, or g's if that is the reference: forward, or with d backward.
 * One thread, for a call inside a parallel region. */
void content_core(const struct content_call *n, const struct attn *a, const struct attn_grad *d);
/* The form's work space, after that of all threads' cores. */
void *content_own_scratch(const struct content_call *n);
/* This thread's part of it, where each has so many bytes. */
void *content_room(const struct content_call *n, size_t bytes);
/* The next array of n elements from `base` on, which may be NULL to count. */
void *content_place(void *base, size_t *at, size_t n, size_t size);
/* Threads of a call: no more than there is work space for. */
int content_team(const struct content_call *n);

/* What the form does with a call. */
void content_run(const struct content_call *n, const struct attn_grad *d);
/* Run one head of each sequence after the other, shared out to threads. */
void content_each_head(const struct content_call *n, content_head *run, const struct attn_grad *d);

/* Element rows of head h. */
static inline float *head_row(struct head_rows x, int b, int j, int h, int dh)
{
    return x.at + b * x.batch + j * x.row + (ptrdiff_t)h * dh;
}
static inline const float *content_q(const struct attn *a, int b, int h, int i)
{
    return a->q + b * a->q_at.batch + i * a->q_at.row + (ptrdiff_t)h * a->dh;
}
static inline const float *content_k(const struct attn *a, int b, int h, int j)
{
    return a->k + b * a->k_at.batch + j * a->k_at.row + (ptrdiff_t)h * a->dh;
}
static inline const float *content_v(const struct attn *a, int b, int h, int j)
{
    return a->v + b * a->v_at.batch + j * a->v_at.row + (ptrdiff_t)h * a->dh;
}
static inline float *content_o(const struct attn *a, int b, int h, int i)
{
    return a->o + b * a->o_at.batch + i * a->o_at.row + (ptrdiff_t)h * a->dh;
}
static inline double content_dot(const float *x, const float *y, int n)
{
    return (double)dot_in_lanes(x, y, n);
}

/* Why causal attention of this model depends on later rows all the same; NULL: it does not. */
const char *content_looks_ahead(const struct config *c);

/* May it look ahead? Not if it is a language model. */
bool content_is_alone(const struct config *c);

/* OK, or E_USAGE naming what attention by content does not have; content_config.c. */
enum status content_check(const struct config *c, struct err *e);

/* Backward, content_grad.c. */
void content_backward(const struct engine *g, struct sublayer *s, const struct work *w,
                      struct sublayer_input from, float *d_in, const float *d_y, int skip);
double content_grad_flop(const struct sublayer *s, int B, int L, int M);
double content_maps_flop(const struct sublayer *s, double rows, double projected);

double content_moved_rows(const struct config *c, int L, int M); /* of one head of one sequence */
/* Bytes of rows that forward gathers and of outputs that it scatters back; these copies alone, after
 * a forward of this shape, whose output they overwrite: false if none can be timed alone. */
double content_moves(const struct sublayer *s, int B, int L, int M);
bool content_gather(const struct engine *g, struct sublayer *s, struct work *w, int B, int L);

enum { CONTENT_Q, CONTENT_K, CONTENT_V, CONTENT_O };
/* W or its bias; with shared queries and keys there is no CONTENT_K. */
const struct param *content_weight(const struct sublayer *s, int which);
const struct param *content_bias(const struct sublayer *s, int which);

extern const struct content content_routing, content_lsh, content_sinkhorn, content_clustered,
    content_informer;
extern const struct part_numbers routing_numbers, lsh_numbers, sinkhorn_numbers, clustered_numbers,
    informer_numbers;
