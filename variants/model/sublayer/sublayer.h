/* SPDX-License-Identifier: MIT
 *
 * One sub-layer: what it computes (its kind) and how it is wired into the stream. A kind reads
 * source rows, normalised if the wiring norms first, and writes f of them. Memory of earlier rows,
 * norms, gates, residual sums and dropout of the output belong to the wiring and are the same for
 * all kinds. The sub-layers of a model are listed by sublayer_list.h.
 *
 * sublayer/ holds the wiring and the kinds that are not attention: feed-forward, convolution,
 * recurrence, lists of steps. Attention has folders of its own; which sub-layers a model has is
 * said in layers/. */
#pragma once

#include "variants/parts/dropout.h"
#include "variants/steps/mix.h"

/* How M past tokens reach the layer. */
enum mem_kind { MEM_NONE, MEM_HIDDEN, MEM_KV, MEM_RECOMPUTE, MEM_STATE, MEM_KIND_COUNT };
/* In place of M: a state carried for ever, of all past tokens. */
enum { MEM_ALL = -1 };
/* Can a layer with this memory have that kind? */
bool mem_can(const struct mem *m, enum mem_kind kind);
/* The default: keys and values where they give what the model gives, as a model is deployed; they
 * have no backward pass, so that training keeps hidden states. */
enum mem_kind mem_usual(const struct mem *m, bool trains);
/* That of a text which moves on beyond the longest window. */
enum mem_kind mem_slides(const struct mem *m);
/* Does every segment of a text run the M tokens before it again? */
bool mem_reruns(const struct mem *m, enum mem_kind kind, int M);
extern const char
    *const mem_kind_name[MEM_KIND_COUNT + 1]; /* "" "hidden" "kv" "recompute" "state" NULL */

/* Rows of every sequence: [B, rows, n] with `stride` floats between sequences. */
struct seq_rows {
    float *at;
    ptrdiff_t stride;
};

/* So many floats of each of B sequences. */
void rows_copy(struct seq_rows to, struct seq_rows from, int B, size_t floats);

/* Row `row` of a cache and those behind it, of which the first M are remembered. */
static inline struct seq_rows cache_from(const struct cache *c, ptrdiff_t row)
{
    return (struct seq_rows){cache_rows(c, 0) + row * c->n, cache_stride(c)};
}

/* Where so many new rows of a cache go. */
static inline struct seq_rows cache_new_rows(struct cache *c, int rows)
{
    cache_reserve(c, rows);
    return cache_from(c, c->M);
}

/* ---- work space --------------------------------------------------------------------------- */

enum { SUB_ARRAYS = 12 }; /* most arrays of a kind */

/* An array that a kind asks for: n floats, n_kept if its forward is followed by a backward pass
 * that reads it; with `shared` it may be reused by the next sub-layer. */
struct array {
    size_t n, n_kept;
    bool shared;
    enum part part;
};

/* Work space of one sub-layer. At inference all of a kind have the same arrays, because they run
 * one after the other; in training each keeps its own until its backward pass. */
struct work {
    float *x; /* [B,L,D] its input; training only */
    /* [B,L,D] the rows that f reads, set before every call; NULL = its input, to which f is added
     */
    const float *reads;
    float *n;    /* [B,rows,D] its source rows after the norm (pre, reorder) */
    float *y;    /* [B,L,D] f of them */
    float *sum;  /* [B,L,D] input of the norm after the sum (post); NULL = computed in the stream */
    float *gate; /* [B*L, gate->work * D] */
    float *array[SUB_ARRAYS]; /* the kind's */
    /* The previous and the next sub-layer of its kind; NULL if there is none. At inference they
     * have the same arrays. */
    const struct work *below, *above;
    void *scratch;             /* the kind's, contents undefined between calls */
    const float *pos_encoding; /* the position scheme's constant encodings */
    struct dropout drop;
    float *open;           /* [B*L] the gate of each position (sublayer_skip.h) */
    const int32_t *tokens; /* [B,L] that the rows stand for; NULL = none */
    /* Backward only, shared by all sub-layers. */
    const float *d_z; /* [B,L,D] gradient of what f is added to, set before every call; NULL = d */
    float *d_y;       /* [B,L,D] gradient of f */
    float *d_in;      /* [B,rows,D] gradient of its source rows */
    float *d_gate;    /* [B*L, gate->work_grad * D] */
    float *stats;     /* of norm_backward */
    float *d_open;    /* [B*L] */
    float open_slope; /* gradient by each gate, set before every backward pass */
    float *d_array[SUB_ARRAYS];
    void *d_scratch;
};

/* ---- kinds -------------------------------------------------------------------------------- */

struct sublayer;

/* The source of a sub-layer's f: rows [m; x] of B sequences, M of memory and L new ones. */
struct sublayer_input {
    struct seq_rows at;
    int B, M, L;
};

/* An array carried across segments, as last committed, or given once (`given`); n = 0 if this kind
 * of memory has none. The name is used in files. */
struct carried {
    const char *name;
    float *at;
    size_t n;
    bool given;
    bool common; /* of all sequences; otherwise [B,..] */
};

/* An array that golden files show: n numbers, whole ones or not, written where `to` is not NULL. */
struct shown {
    const char *name;
    size_t n;
    bool whole;
    float *to;
};

struct sublayer_kind {
    const char *name;
    const char *memory;    /* name of its remembered rows in golden files */
    bool mixes;            /* a position's output depends on others'; declared first in a layer */
    bool attends;          /* it runs the implementation of attention in state.attention */
    bool masked;           /* windows and masks say which remembered rows it reads */
    bool positions;        /* position schemes, maps before q, k and v, extra terms and parts of
                            * attention apply to it */
    bool reads;            /* it attends to the rows that struct reading says */
    bool recurs, sums;     /* a mixer of steps: with a state; with one that sums rows */
    bool ffn;              /* it is c->ffn */
    bool own_weights;      /* each of a layer has its own */
    enum drop_place place; /* of its output */
    /* `inner` is the prefix of tensors that a layer may have several of, such as a feed-forward
     * network's or attention's; `prefix` that of all others. */
    void (*params)(const struct sublayer *s, const char *prefix, const char *inner,
                   struct params *p);
    /* Rows of its input that it remembers for this kind of memory, if M are asked for; -1 = it has
     * no such memory and reads new rows in place. NULL = always -1. */
    int (*keeps)(const struct sublayer *s, enum mem_kind mem, int M);
    /* Floats of a sequence that MEM_KV caches instead, for M tokens; NULL = nothing. */
    size_t (*caches)(const struct sublayer *s, int M);
    /* Count or place its own state; select its implementation. */
    enum status (*bind)(struct sublayer *s, const struct engine *g, struct extent max,
                        struct arena *a, struct err *e);
    /* Its arrays for up to `max`: of forward, and further ones of backward (n_kept only), which may
     * be NULL for those of sublayer_arrays_grad. */
    void (*arrays)(const struct sublayer *s, struct extent max, struct array out[SUB_ARRAYS]);
    void (*arrays_grad)(const struct sublayer *s, struct extent max, struct array out[SUB_ARRAYS]);
    struct attn_need (*scratch)(const struct sublayer *s, const struct engine *g, bool backward);
    /* Call once the weights have values, and again when they change. */
    void (*build_tables)(const struct engine *g, struct sublayer *s, const float *pos_encoding);
    /* f of the source, followed by `epilogue`: its kind, y and add are the caller's. If epilogue.y
     * is not w->y, w->y is work space. */
    void (*forward)(const struct engine *g, struct sublayer *s, struct work *w,
                    struct sublayer_input from, struct act epilogue);
    /* From d_y [B,L,D] of f to d_in [B, M+L-skip, D], the gradient of its source rows without the
     * first `skip` of each sequence, which are constants; accumulates all weight gradients. */
    void (*backward)(const struct engine *g, struct sublayer *s, const struct work *w,
                     struct sublayer_input from, float *d_in, const float *d_y, int skip);
    /* The auxiliary loss of a forward pass of `rows` rows with kept work space, before its factor;
     * NULL = none. */
    double (*aux)(const struct sublayer *s, const struct work *w, int rows);
    /* Its own memory, besides rows of its input. remember: as if these source rows had been run;
     * commit: make those of the last forward memory. */
    void (*remember)(const struct engine *g, struct sublayer *s, struct work *w,
                     struct sublayer_input from);
    /* In place of remember and of all that the wiring does for it: rows x [B,rows,D]. */
    void (*take)(const struct engine *g, struct sublayer *s, const float *x, int B, int rows);
    void (*commit)(struct sublayer *s, int L);
    void (*forget)(struct sublayer *s);
    /* The i-th array that it carries besides rows of its input; false after the last. */
    bool (*carries)(const struct sublayer *s, int i, struct carried *out);
    /* The i-th array of the last forward pass of this shape that golden files show; false after the
     * last. NULL = none. */
    bool (*shows)(const struct sublayer *s, const struct work *w, struct extent now, int i,
                  struct shown *out);
    /* Names of its implementations, forward and backward; NULL = those of attention, or nothing. */
    void (*impl)(const struct sublayer *s, const char **forward, const char **backward);
    /* Of a call with M rows of memory. */
    struct sublayer_cost (*cost)(const struct sublayer *s, int B, int L, int M);
};

/* Memory whose oldest rows are compressed, sublayer_compress.c. */
struct compressed {
    int most;  /* most compressed rows, at the beginning of the memory; 0 = no compression */
    int plain; /* uncompressed rows, without those that wait for their group */
    int n_fresh;
    float *fresh; /* [B,n_fresh,D] compressed rows of this segment */
    float *group; /* the rows that they replace, as the convolution reads them */
};

/* Lists of steps: recurrences, sums, feed-forward networks, attention to the rows of one text, and to
 * rows of memory, too. */
extern const struct sublayer_kind sublayer_steps, sublayer_sums, sublayer_steps_ffn,
    sublayer_attending, sublayer_remembering, sublayer_condensed, sublayer_cpe, sublayer_sep,
    sublayer_branches;
extern const struct sublayer_kind sublayer_rnn, sublayer_attention, sublayer_ffn, sublayer_lsra,
    sublayer_feedback, sublayer_read, sublayer_content;
/* What config's mixer says of itself (struct mixer), or its kind of steps. */
double mixer_amplifies(const struct config *c);

/* Attention's own state. */
struct feedback;
struct attention {
    const struct param *pos;      /* the position scheme's parameters of this layer */
    int reach;                    /* keys that tables have room for */
    struct attn prepared;         /* tables and terms for the largest shape; q, k, v, o unset */
    const float *pos_encoding;    /* the position scheme's, from the last build_tables */
    const struct attn_impl *impl; /* its implementation */
    struct cache keys, values;    /* MEM_KV; keys are latents where these are attended to */
    const float *task;            /* [B,width] given by the caller; NULL = zeros */
    float *d_task;                /* its gradient is added here; NULL = not wanted */
    struct feedback *feedback;    /* the model's memory, of sublayer_feedback; NULL = none */
    int seen;                     /* rows of it that the next forward attends to */
    bool again;                   /* this forward is part of backward */
    struct cache beside;          /* likewise what else is remembered of rows: by a term of scores
                                   * (around.h), or the numbers of rows (content.h) */
    struct extent largest, last;  /* content.h: of the bound, and of the last forward pass */
    int workers;                  /* content.h: threads that there is work space for */
    struct engine inner;          /* content.h: that of its core */
};

/* Attention to a pyramid of means (variants/bp.c). With MEM_KV a row of level l is the
 * mean of the 2^l tokens that end with its own: it stays true wherever the oldest token lies. */
enum { TREE_LEVELS = 32 };
struct tree {
    struct cache keys[TREE_LEVELS], values[TREE_LEVELS];
    int rows;     /* that there is room for in a call */
    int levels;   /* of caches */
    int reach, M; /* tokens that are remembered at most, at present */
};

/* A mixer that is a list of steps, with its states of all committed rows; `after` includes the last
 * forward's. NULL where nothing is carried. */
struct steps_memory {
    struct attention attention; /* its implementation, if a step attends */
    struct cache last;          /* beside those of attention: the fourth of steps */
    struct steps steps;
    struct extent max;
    const struct param *shared; /* with all layers; NULL = none */
    const char *impl, *impl_grad;
    float *before[MAX_STATES], *after[MAX_STATES]; /* [B, n] */
    float *first;                                  /* given; NULL = as usual */
    float *position; /* rows committed, where a step reads them: high and low part */
};

/* Say at which stream position the next row of a list of steps stands. */
void sublayer_steps_seek(struct sublayer *s, int64_t position);

/* The context of cross attention, set by its owner before each forward; kept by bind. */
struct slots;
struct reading {
    int S;               /* rows of it */
    bool self;           /* it is the sub-layer's own source */
    const int32_t *seen; /* [B] rows that count; NULL = all */
    const float *ctx;    /* [B,S,D] */
    float *d_ctx;        /* its gradient, to which backward adds; NULL = not wanted */
    struct slots *slots; /* the owner, if it is carried; NULL */
    struct extent max;
    const struct attn_impl *impl;
};

/* ---- a sub-layer -------------------------------------------------------------------------- */

/* What attention does around its core (attention/around.h), in order, and where the parameters of
 * each begin. */
struct around_part;
struct part_of {
    const struct around_part *part;
    int param;
};

/* Means of some numbers and of their squares. */
struct moments {
    double mean, square;
};

/* Its parameters in groups: weights of its kind, its norm and that of f, gates, factors of f and of
 * x in the residual sum, those of c->qkv_map, of compression, of c->attn_extra, of parts, and of the
 * gate that skips it. */
#define EACH_OWN_GROUP(X)                                                                          \
    X(weights)                                                                                     \
    X(norm)                                                                                        \
    X(norm_out) X(gate) X(alpha) X(omega) X(qkv_map) X(compress) X(attn_extra) X(around) X(skip)
#define X(name) OWN_##name,
enum own_group { EACH_OWN_GROUP(X) OWN_GROUPS };
#undef X

struct sublayer {
    const struct sublayer_kind *kind;
    const struct config *c;
    enum wiring wiring;
    float scale; /* of f in the residual sum: 1, or 0.5 for the halves of Macaron */
    int nth;     /* sub-layers of its kind before it in the model */
    int layer;   /* that it belongs to */
    bool bare;   /* alone: it counts as one of several */
    bool asks;   /* attention: it has queries and keys */
    bool bare_o; /* attention: it has no W_o, but a part in place of it (around.h) */
    int lazy;    /* it reuses the probabilities of the lazy-th attention before it; 0: its own */
    const struct config *narrow;  /* of a part of the channels; NULL = none */
    int reach;                    /* remembered rows that this part may read */
    steps_build *build;           /* of sublayer_steps */
    const struct sublayer *first; /* the first of its kind */
    int level;                    /* its rows are pool groups of 2^level tokens (sublayer_pool.c) */
    bool pools;                   /* its queries are means of two of the rows before it */
    bool joins;                   /* before it every token gets its own row again */
    const struct param *model;    /* parameters of all layers */
    /* Its own: indices in the model's list, -1 = none; once bound, pointers. */
    int at[OWN_GROUPS];
#define X(name) const struct param *name;
    union {
        const struct param *group[OWN_GROUPS];
        struct {
            EACH_OWN_GROUP(X)
        };
    };
#undef X
    int n_parts;
    struct part_of parts[AROUND_COUNT];
    struct reading reading;
    bool profiled;         /* let the next forward set of_f */
    struct moments of_f;   /* of the numbers of f in that forward */
    double n_open, n_rows; /* positions of the last forward: that it served, all */
    enum mem_kind mem;
    bool keeps;          /* it has a memory of its input, possibly of 0 rows */
    struct cache memory; /* [m; x] */
    float *left;         /* [B,L,D] to be remembered in place of its input; NULL = its input is */
    int n_left;          /* rows of the last forward; 0 = none */
    struct compressed compressed;
    union {
        struct attention attention;
        struct tree tree;
        struct steps_memory steps;
    } state;
};

/* Are there rows of the past, of its input or cached? */
static inline bool sublayer_remembers(const struct sublayer *s)
{
    return s->mem == MEM_HIDDEN || s->mem == MEM_KV;
}

/* `keeps` of a kind that remembers each token's row, or caches what it makes of it. */
static inline int sublayer_keeps_rows(const struct sublayer *s, enum mem_kind mem, int M)
{
    return mem == MEM_HIDDEN ? M : -1;
}

/* E_UNSUPPORTED: what its MEM_KV caches cannot have the type that the model says. */
enum status kv_unsupported(const struct config *c, struct err *e);

/* The arrays of a backward pass: gradients of those of forward, which all sub-layers share. What
 * forward writes only if backward follows has none. */
void sublayer_arrays_grad(const struct sublayer *s, struct extent max,
                          struct array out[SUB_ARRAYS]);
static inline struct attn_need larger_need(struct attn_need a, struct attn_need b)
{
    return a.scores_bytes + a.scratch_bytes > b.scores_bytes + b.scratch_bytes ? a : b;
}

/* Look up the parameters in a list that has been placed; count or place memory and tables. */
enum status sublayer_bind(struct sublayer *s, const struct engine *g, const struct params *p,
                          int at_model, enum mem_kind mem, struct extent max, struct arena *a,
                          struct err *e);

/* z [B,L,D] from x [B,L,D] and the remembered rows. The new rows are written after the memory but
 * not committed: sublayer_commit makes them memory. z may be x unless there is a gate; schemes that
 * add positions to a layer's input change x. */
void sublayer_forward(const struct engine *g, struct sublayer *s, struct work *w, float *z,
                      float *x, int B, int L);
/* After sublayer_forward with kept work space, x having been w->x, and before sublayer_commit: turn
 * d [B,L,D] from the gradient of z into that of x, and accumulate all weight gradients. Memory is a
 * constant; its rows count for the gradients of the weights applied to them. */
void sublayer_backward(const struct engine *g, struct sublayer *s, struct work *w, float *d, int B,
                       int L);

/* Make inputs x [B,rows,D] its newest memory, as if they had been run. rows <= the bound L. */
void sublayer_remember(const struct engine *g, struct sublayer *s, struct work *w, const float *x,
                       int B, int rows);
/* After it, where layers remember what left them: rows x [B,L,D] did. */
void sublayer_left(const struct engine *g, struct sublayer *s, struct work *w, const float *x,
                   int B, int L);
void sublayer_commit(struct sublayer *s, int L);
void sublayer_forget(struct sublayer *s);

double sublayer_flop(const struct sublayer *s, int B, int L, int M);
double sublayer_grad_flop(const struct sublayer *s, int B, int L, int M);

/* The source rows for new rows x: joined to the memory, and normalised if the wiring norms first;
 * _again: the same for backward, after a forward. */
struct sublayer_input sublayer_source(const struct engine *g, struct sublayer *s, struct work *w,
                                      const float *x, int B, int L);
struct sublayer_input sublayer_source_again(const struct sublayer *s, const struct work *w, int B,
                                            int L);
