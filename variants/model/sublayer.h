/* SPDX-License-Identifier: MIT
 *
 * One sub-layer: what it computes (its kind) and how it is wired into the stream. A kind is a value
 * that sees source rows, normalised where the wiring norms first, and writes f of them; memory of
 * the rows that entered, norms, gates, residual sums and dropout of what comes out are wiring and
 * the same for all kinds. What a model is made of: sublayer_list.h. */
#ifndef SUBLAYER_H
#define SUBLAYER_H

#include "variants/parts/cache.h"
#include "variants/parts/dropout.h"
#include "variants/parts/features.h"
#include "variants/variant.h"

/* How M tokens of past reach the layer. */
enum mem_kind { MEM_NONE, MEM_HIDDEN, MEM_KV, MEM_RECOMPUTE, MEM_STATE, MEM_KIND_COUNT };
/* Can a layer of this memory have it? Which one is usual where tokens come one by one, or not? */
bool mem_can(const struct mem *m, enum mem_kind kind);
enum mem_kind mem_usual(const struct mem *m, bool decode);
extern const char *const mem_kind_name[MEM_KIND_COUNT]; /* "" "hidden" "kv" "recompute" "state" */

/* The largest shape that a bound sub-layer or model can run. */
struct extent {
    int B, L, M;
};

/* Rows of every sequence: [B, rows, n] with `stride` floats between sequences. */
struct seq_rows {
    float *at;
    ptrdiff_t stride;
};

/* ---- work space --------------------------------------------------------------------------- */

enum { SUB_ARRAYS = 8 }; /* as many arrays as a kind may have of its own */

/* An array that a kind asks for: n floats, n_kept where its forward is followed by a backward pass,
 * which reads it unless it is `shared`, that is, free for the next sub-layer. */
struct array {
    size_t n, n_kept;
    bool shared;
    enum part part;
};

/* What one sub-layer works in. At inference all of a kind have the same arrays, because they run
 * one after the other; in training each keeps its own until its backward pass. */
struct work {
    float *x; /* [B,L,D] its input; training only */
    float *n; /* [B,rows,D] its source rows after the norm (pre, reorder) */
    float *y; /* [B,L,D] f of them */
    float
        *sum; /* [B,L,D] what the norm behind it is given (post); NULL = written over the stream */
    float *gate;            /* [B*L, gate->work * D] */
    float *own[SUB_ARRAYS]; /* the kind's */
    /* Of the sub-layers of its kind in front of and behind it; NULL where there is none. At
     * inference they have the same arrays. */
    const struct work *below, *above;
    void *scratch;             /* the kind's, in any state before and after */
    const float *pos_encoding; /* the position scheme's constant codes */
    struct dropout drop;
    /* Backward only, shared by all sub-layers. */
    float *d_y;    /* [B,L,D] gradient of f */
    float *d_in;   /* [B,rows,D] of its source rows */
    float *d_gate; /* [B*L, gate->work_grad * D] */
    float *stats;  /* of norm_backward */
    float *d_own[SUB_ARRAYS];
    void *d_scratch;
};

/* ---- kinds -------------------------------------------------------------------------------- */

struct sublayer;

/* What f of a sub-layer is given: rows [m; x] of B sequences, M of memory and L new ones. */
struct sublayer_input {
    struct seq_rows at;
    int B, M, L;
};

/* Numbers that follow the stream, as they were committed, or that are given once and for all; n = 0
 * where this kind of memory has none. The name is that of files. */
struct carried {
    const char *name;
    float *at;
    size_t n;
    bool given;
};

struct sublayer_kind {
    const char *name;
    const char *memory;    /* what golden files call the rows that it remembers */
    bool mixes;            /* a position's output depends on others'; declared first in a layer */
    enum drop_place place; /* of its output */
    /* `own` is the prefix of what a layer may have several of, such as a feed-forward; `prefix`
     * that of all others. */
    void (*params)(const struct config *c, const char *prefix, const char *own, struct params *p);
    /* How many rows of its input it remembers for this kind of memory, M being what is asked for;
     * -1 = it has no memory of them, and reads new rows where they are. NULL = -1 always. */
    int (*keeps)(const struct config *c, enum mem_kind mem, int M);
    /* Count or place state of its own; choose what executes it. */
    enum status (*bind)(struct sublayer *s, const struct engine *g, struct extent max,
                        struct arena *a, struct err *e);
    /* OK, or E_UNSUPPORTED where it cannot run backward. */
    enum status (*can_grad)(const struct sublayer *s, const struct engine *g, struct err *e);
    /* What it works in for up to `max`: forward, and further arrays of backward (n_kept only). */
    void (*arrays)(const struct sublayer *s, struct extent max, struct array out[SUB_ARRAYS]);
    void (*arrays_grad)(const struct sublayer *s, struct extent max, struct array out[SUB_ARRAYS]);
    struct attn_need (*scratch)(const struct sublayer *s, int threads, bool backward);
    /* Once the weights have their values, and again when they change. */
    void (*build_tables)(const struct engine *g, struct sublayer *s, const float *pos_encoding);
    /* What it adds to the stream before anything else, and the backward of that. */
    void (*enter)(const struct sublayer *s, float *x, int B, int L);
    void (*enter_grad)(const struct sublayer *s, const float *d_x, int B, int L);
    /* f of the source, handed to `leave`: its kind, y and add are the caller's. Where leave.y is
     * not w->y, w->y is work space. */
    void (*forward)(const struct engine *g, struct sublayer *s, struct work *w,
                    struct sublayer_input from, struct act epilogue);
    /* From d_y [B,L,D] of f to d_in [B, M+L-skip, D], the gradient of its source rows but for the
     * first `skip` of each sequence, which are constants; adds to the gradients of all weights. */
    void (*backward)(const struct engine *g, struct sublayer *s, const struct work *w,
                     struct sublayer_input from, float *d_in, const float *d_y, int skip);
    /* The auxiliary loss of a forward pass of `rows` rows with kept work space, before its factor;
     * NULL = none. */
    double (*aux)(const struct sublayer *s, const struct work *w, int rows);
    /* Memory of its own, besides the rows of its input. remember: as if these source rows had been
     * run; commit: those of the last forward count from now on. */
    void (*remember)(const struct engine *g, struct sublayer *s, struct work *w,
                     struct sublayer_input from);
    void (*commit)(struct sublayer *s, int L);
    void (*forget)(struct sublayer *s);
    /* What it carries besides rows of its input: the i-th array; false behind the last. */
    bool (*carries)(const struct sublayer *s, int i, struct carried *out);
    /* The attention that its last forward pass of B sequences of L rows ended in, for those who
     * look inside; NULL = it ends in none. */
    struct attn (*ends_in)(const struct sublayer *s, const struct work *w, int B, int L);
    /* Names of what executes it forward and backward; NULL = nothing of its own. */
    void (*impl)(const struct sublayer *s, const char **forward, const char **backward);
    /* Useful FLOP of a call with M rows of memory: products, each visible pair once. */
    double (*flop)(const struct sublayer *s, int B, int L, int M);
    double (*grad_flop)(const struct sublayer *s, int B, int L, int M);
};

/* Memory whose oldest rows are compressed, sublayer_compress.c. */
struct compressed {
    int most;  /* compressed rows, at the beginning of the memory; 0 = does not compress */
    int plain; /* rows that are not, but for those that wait for their group */
    int n_fresh;
    float *fresh; /* [B,n_fresh,D] what this segment's leaving rows became */
    float *group; /* those rows, as the convolution reads them */
};

extern const struct sublayer_kind sublayer_rnn, sublayer_attention, sublayer_ffn, sublayer_linear,
    sublayer_aan, sublayer_synthesizer;

/* Attention's own state. */
struct attention {
    const struct param *pos;      /* the position scheme's parameters of this layer */
    int reach;                    /* keys that tables were reserved for */
    struct attn lowered;          /* tables and terms for the largest shape; q, k, v, o unset */
    const float *pos_encoding;    /* the position scheme's, from the last lowering */
    const struct attn_impl *impl; /* what executes it */
    struct cache keys, values;    /* MEM_KV */
};

/* That of linear attention: s [B,Hkv,m,dh] and z [B,Hkv,m] of all rows that were committed, and of
 * those and the last forward's. */
struct linear_impl;
struct linear_memory {
    int B;
    const struct linear_impl *impl; /* what executes it, for its name: each call asks its engine */
    float *s, *z, *s_next, *z_next; /* NULL where nothing is carried */
    struct directions of;
    bool drawn;
};

/* That of average attention: the sum [B,D] of all rows that were committed and how many they were,
 * as high and low part; sum_next as above. */
struct average_memory {
    int B;
    float *sum, *sum_next, *count;
};

/* ---- a sub-layer -------------------------------------------------------------------------- */

struct sublayer {
    const struct sublayer_kind *kind;
    const struct config *c;
    enum wiring wiring;
    float scale; /* of f in the residual sum: 1, or 0.5 for the halves of Macaron */
    int nth;     /* how many of its kind stand before it in the model */
    int level;   /* its rows are cells of 2^level tokens (sublayer_pool.c) */
    bool pools;  /* it asks from the means of two of the rows in front of it */
    bool joins;  /* in front of it every token is given a row of its own again */
    /* Its parameters: where they are in the model's list, -1 = none, and, once bound, themselves.
     */
    int at_own, at_norm, at_gate, at_alpha, at_before, at_attn_extra;
    const struct param *model, *own, *norm, *gate, *alpha; /* model: those of all layers */
    const struct param *before;                            /* those of c->before_qkv */
    const struct param *attn_extra;                        /* those of c->more */
    enum mem_kind mem;
    bool keeps;          /* it has a memory of its input, even if it is 0 rows long */
    struct cache memory; /* [m; x] */
    struct compressed compressed;
    int at_compress; /* of its weights, -1 = none */
    const struct param *compress;
    union {
        struct attention attention;
        struct linear_memory linear;
        struct average_memory average;
    } of;
};

/* Find the parameters in a list that has been placed; count or place memory and tables. */
enum status sublayer_bind(struct sublayer *s, const struct engine *g, const struct params *p,
                          int at_model, enum mem_kind mem, struct extent max, struct arena *a,
                          struct err *e);

/* z [B,L,D] from x [B,L,D] and the rows that it remembers. The new rows are written behind the
 * memory but not committed: sub_commit makes them memory. z may be x unless there is a gate; x
 * itself is changed by schemes that add positions to a layer's input. */
void sublayer_forward(const struct engine *g, struct sublayer *s, struct work *w, float *z,
                      float *x, int B, int L);
/* After sub_forward with kept work space, x having been w->x, and before sub_commit: turn d [B,L,D]
 * from the gradient of z into that of x, and add to the gradients of all weights. Memory is a
 * constant, its rows count for the weights that act on them. */
void sublayer_backward(const struct engine *g, struct sublayer *s, struct work *w, float *d, int B,
                       int L);

/* Make inputs x [B,rows,D] its newest memory, as if they had been run. rows <= the bound L. */
void sublayer_remember(const struct engine *g, struct sublayer *s, struct work *w, const float *x,
                       int B, int rows);
void sublayer_commit(struct sublayer *s, int L);
void sublayer_forget(struct sublayer *s);

double sublayer_flop(const struct sublayer *s, int B, int L, int M);
double sublayer_grad_flop(const struct sublayer *s, int B, int L, int M);

/* The source rows of the new rows x, joined to the memory and normalised where the wiring norms
 * first; and the same again for backward, after a forward. */
struct sublayer_input sublayer_source(const struct engine *g, struct sublayer *s, struct work *w,
                                      const float *x, int B, int L);
struct sublayer_input sublayer_source_again(const struct sublayer *s, const struct work *w, int B,
                                            int L);

#endif
