/* SPDX-License-Identifier: MIT
 *
 * What attention does around its core, in parts: a part adds a term to scores, or maps the queries,
 * keys, values or outputs of heads. Each is a file, term_NAME.c or head_NAME.c, and a word of
 * AROUND_PARTS; attention runs those that its config has and names none.
 *
 * attention/ holds attention to all rows that masks leave: its projections, caches, terms and maps.
 * Attention that chooses its pairs is in content/, attention to fewer keys in condensed/; kernels
 * are in variants/backends/. */
#pragma once

#include "variants/model/sublayer/sublayer.h"

/* Arrays of attention: [B,L,H,dh] [B,K,Hkv,dh] [B,K,Hkv,dh] [B,L,H,dh] and, for backward, [B,H,L]; with
 * MEM_KV keys and values are projected directly into the caches, or, where these are narrower,
 * those of new rows on their way there. Those of gradients have the same shapes, with the tables'
 * last. AT_SCORES: [B,H,L,K] score residual for the next attention. AT_POOLED: [B,L/2,D] query
 * rows, if they are means. AT_AROUND, AT_V0: what is done around the core.
 * AT_SLOTS: queries and keys rotated by slots. */
enum {
    AT_Q,
    AT_K,
    AT_V,
    AT_O,
    AT_LSE,
    AT_QKV_MAP,
    AT_SCORES,
    AT_POOLED,
    AT_AROUND,
    AT_V0,
    AT_SLOTS,
    AT_D_TABLES = AT_LSE
};

/* A call of B sequences, L queries, K projected rows and `all` keys. */
struct around_call {
    int B, L, K, all;
    bool backward; /* of arrays: those of the backward pass */
};

/* The same for all parts of a sub-layer, and for one. Arrays are those that it has asked for, NULL
 * where it has none. */
enum { AROUND_ARRAYS = 6 };
struct part_call {
    const struct engine *g;
    const struct sublayer *s;
    const struct work *w;
    struct around_call n;
    /* Of one part only: */
    const struct around_part *part;
    const struct param *param;  /* the first of its parameters */
    float *at[AROUND_ARRAYS];   /* of forward */
    float *d_at[AROUND_ARRAYS]; /* of backward */
    float *add, *d_add;         /* what the term adds to scores, and its gradient */
    double *sums, *d_sums;      /* or its running sums */
};

/* What a term adds to scores: differences of running sums [B,H,all] (struct fade), or numbers of
 * pairs, [B,H,L,all], or [B,L,all] of all heads. One term at most adds (config_check). */
enum added { ADDS_NOTHING, ADDS_SUMS, ADDS_TO_PAIRS, ADDS_TO_PAIRS_OF_ALL };

/* Scores that are made of those of the layer below in another way than by adding them, and handed
 * on in AT_SCORES. The gain of its call of the core, 0 = 1; what the core has as its scores, and
 * the core; backward likewise. */
struct score_core {
    float (*gain)(const struct sublayer *s);
    void (*scores)(const struct part_call *t, struct attn *a);
    void (*run)(const struct part_call *t, const struct attn *a);
    void (*scores_grad)(const struct part_call *t, const struct attn *a, struct attn_grad *d);
    void (*run_grad)(const struct part_call *t, const struct attn *a, const struct attn_grad *d);
};

/* Unused hooks are NULL, here and below. */
struct score_term {
    enum added added;
    const struct score_core *core;
    int (*task)(const struct config *c);   /* width of a task's vector that it reads */
    int (*cached)(const struct config *c); /* floats of a remembered row beside keys and values */
    /* What it takes from the n.K rows x that keys are projected from; what is remembered of them
     * goes after the M rows of state.attention.beside, which has room. */
    void (*source)(const struct part_call *t, struct seq_rows x);
    /* t->add, or t->sums, from the attention, whose q and k are set, and the rows that queries are
     * projected from. Backward: from d->d_add or d_fade, which may be overwritten, to weights, and
     * added to the gradients of q and k. */
    void (*add)(const struct part_call *t, const struct attn *a, struct seq_rows x);
    void (*add_grad)(const struct part_call *t, const struct attn *a, const struct attn_grad *d);
    /* Weight gradients, and those of the source rows [B, K-skip, in], added to d_in. */
    void (*input_grad)(const struct part_call *t, struct sublayer_input from, float *d_in,
                       int skip);
};

struct head_map {
    /* Projected queries, keys, or values that end at stream position `end`, in place; queries and
     * keys before they are rotated, `turned` after that, or `back`. */
    void (*queries)(const struct part_call *t, struct seq_rows q);
    void (*keys)(const struct part_call *t, struct seq_rows k);
    void (*values)(const struct part_call *t, struct seq_rows v, int64_t end);
    void (*turned)(const struct part_call *t, struct seq_rows x, int rows, int heads, bool back);
    /* The gradients of q, k and v, from what the core read to what was projected. */
    void (*operands_grad)(const struct part_call *t, struct attn_grad *d);
    /* The array that all attentions share. */
    struct array (*shared)(const struct sublayer *s, struct extent max, bool backward);
    /* One of several softmaxes (config_maps), and their outputs joined in AT_O. */
    struct attn (*softmax)(const struct part_call *t, const struct attn *a, int map);
    struct attn_grad (*softmax_grad)(const struct part_call *t, const struct attn_grad *d, int map);
    /* The gradients of operands that all of them have read, before operands_grad. */
    void (*softmaxes_grad)(const struct part_call *t, struct attn_grad *d);
    /* Before the core goes backward: the gradient of its scores, which its implementation then must
     * be able to return. */
    void (*scores_grad)(const struct part_call *t, const struct attn *a, struct attn_grad *d);
    void (*join)(const struct part_call *t, float *o);
    void (*join_grad)(const struct part_call *t, float *d_o);
    /* The output, of which W_o reads `rows` in place of AT_O; x are the rows that queries are
     * projected from. */
    void (*output)(const struct part_call *t, struct seq_rows x);
    const float *(*rows)(const struct part_call *t);
    void (*output_grad)(const struct part_call *t, float *d_o);
    /* In place of W_o: outputs o of heads to w->y, followed by `epilogue`. */
    void (*unproject)(const struct part_call *t, const float *o, struct act epilogue);
    void (*unproject_grad)(const struct part_call *t, float *d_o, const float *d_y, const float *o);
    void (*input_grad)(const struct part_call *t, struct sublayer_input from, float *d_in,
                       int skip);
};

/* What FLOP follow from: the attention `a`, rows of queries and projected rows. */
struct part_cost {
    const struct sublayer *s;
    const struct attn *a;
    double rows, projected;
};

/* A part is one or the other. */
struct around_part {
    const char *said; /* by users, in messages and lists; NULL = by its option */
    /* In the slot SLOT_NAME of every model. The first row says whether a model has the part: 0, or
     * the first word, if not; its usual value is another. Files without a row's key say `absent`. */
    const struct part_numbers *numbers;
    bool (*on)(const struct config *c); /* in place of a first row: a choice says it */
    const char *form; /* golden files may say so, under the key of that name, that they have it */
    const enum feature *excludes; /* besides what all exclude (model/config/exclusions.c) */
    /* A form of it that excludes more; `said` after that of the part. */
    struct {
        const char *said;
        bool (*has)(const struct config *c);
        const enum feature *excludes;
    } special;
    bool training;    /* it adds to gradients only: models with and without it are the same */
    bool clips;       /* distances beyond config.clip share a row */
    bool reads_cache; /* it reads remembered keys or values */
    void (*params)(const struct sublayer *s, const char *prefix, struct params *p);
    /* Floats of its arrays, which are zeros before. */
    void (*arrays)(const struct sublayer *s, struct around_call n, size_t floats[AROUND_ARRAYS]);
    double (*flop)(const struct part_cost *t); /* useful FLOP, forward */
    struct score_term term;
    struct head_map map;
};

/* The part of a slot; whether a model has it; let it have it, its other numbers as they are. */
const struct around_part *around_of(enum part_slot slot);
bool around_has(const struct config *c, enum part_slot slot);
void around_switch_on(struct config *c, enum part_slot slot);

/* Find the parts of a sub-layer and declare their parameters; has it all that its config names? */
void around_params(struct sublayer *s, const char *prefix, struct params *p);
bool around_complete(const struct sublayer *s);

/* Does its term add to the score of each pair? Numbers of what is added, and where they are; of
 * running sums. */
bool around_adds(const struct config *c);
size_t around_add_floats(const struct config *c, struct around_call n);
struct dense around_dense(const struct config *c, struct around_call n, const float *at);
size_t around_sums_count(const struct config *c, struct around_call n);
struct fade around_sums(const struct config *c, struct around_call n, const double *at);
/* Point what the term adds somewhere: to select implementations and to count FLOP. */
void around_placeholder(const struct config *c, struct attn *a);
/* Does it make its scores from those of the layer below, other than by adding them? The gain, see
 * struct score_core. The width of a task's vector, 0 = it reads none. Floats of struct
 * score_term. */
bool around_hands_on(const struct config *c);
float around_gain(const struct sublayer *s);
int around_task_width(const struct config *c);
int around_cached(const struct config *c);
bool around_reads_cache(const struct config *c);
/* Has it a part that clips distances, one that reads what the first attention leaves, one in place
 * of W_o? */
bool around_clips(const struct config *c);
bool around_shares(const struct config *c);
bool around_unprojects(const struct config *c);
/* Has it one with a gradient of scores? */
bool around_guides(const struct config *c);

/* Work space of all parts, of forward or backward; the shared array. */
struct array around_array(const struct sublayer *s, struct extent max, bool backward);
struct array around_shared(const struct sublayer *s, struct extent max, bool backward);

/* What a call is to its i-th part. */
struct part_call around_part_call(const struct part_call *all, int i);
/* Run a hook of all parts, in order. */
#define AROUND_EACH(hook, all, ...)                                                                \
    for (int i_ = 0; i_ < (all)->s->n_parts; i_++)                                                 \
        if ((all)->s->parts[i_].part->hook) {                                                      \
            const struct part_call t_ = around_part_call(all, i_);                                 \
            t_.part->hook(&t_, __VA_ARGS__);                                                       \
        }
/* What a call is to the only part that has a hook; false if none has. */
#define AROUND_ONE(hook, all, t) around_one(all, offsetof(struct around_part, hook), t)
bool around_one(const struct part_call *all, size_t hook, struct part_call *t);

/* What the core has as its scores; one of its softmaxes. */
void around_scores(const struct part_call *all, struct attn *a);
struct attn around_softmax(const struct part_call *all, const struct attn *a, int map);

/* Backward, around_grad.c. around_scores_grad also makes room for the gradient of what is added. */
void around_scores_grad(const struct part_call *all, const struct attn *a, struct attn_grad *d);
struct attn_grad around_softmax_grad(const struct part_call *all, const struct attn_grad *d,
                                     int map);
void around_operands_grad(const struct part_call *all, struct attn_grad *d);

/* Of the attention `a`, for rows of queries and projected rows, forward. */
double around_flop(const struct sublayer *s, const struct attn *a, double rows, double projected);

/* ---- for parts ---------------------------------------------------------------------------- */

/* The numbers of a part that has only one, whether a model has it: the row's key, help and further
 * members. */
struct around_switch {
    bool on;
};
#define AROUND_SWITCH(...)                                                                         \
    (&(const struct part_numbers){                                                                 \
        (const struct choice[]){ROW_FLAG(struct around_switch, on, __VA_ARGS__), {0}},             \
        PRESET(struct around_switch, true)})

/* Zeros for the gradient of what the term adds. */
float *around_add_zeros(const struct part_call *t);

/* The gradients of a root mean square norm of n rows, in place of d. */
void around_norm_grad(const struct part_call *t, const struct param *weight, float *d,
                      const float *raw, float *stats, int rows);

/* Visible pairs of all heads. */
double around_pairs(const struct attn *a);
