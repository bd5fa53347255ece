/* SPDX-License-Identifier: MIT
 *
 * Golden files: inputs, parameters and expected outputs computed in float64 by an independent
 * program. Each is run through a backend and compared tensor by tensor. */
#pragma once

#include "variants/base/safetensors.h"
#include "variants/model/layers/sublayer_list.h"

struct tally {
    int files, tensors, passed, failed, skipped;
};

/* One comparison. `error` and `limit` are absolute; `skipped` is the reason if there was none. */
struct verdict {
    const char *file, *tensor, *backend, *skipped;
    double error, limit;
};
typedef void verdict_fn(void *arg, const struct verdict *v);

/* Run one file on an open engine and report every out.* tensor. E_IO for a file that cannot be read
 * or does not describe a model, E_UNSUPPORTED for one of a kind that this program does not read;
 * differences are verdicts, not errors. */
enum status golden_run(const struct engine *g, const char *path, struct tally *t,
                       verdict_fn *report, void *arg, struct err *e);

/* ---- for the readers of its kinds ----------------------------------------------------------- */

/* A reader is a row of a table (golden_kinds.c, tests/golden_reader/kinds.c): it reads the file's
 * description, binds its arrays, and runs forward and backward. All kinds share the rest: opening,
 * placing, loading weights, comparing, releasing. */
#define GRADIENT "out.grad."

/* One file on one engine. The first group is given, the reader fills in the second. */
struct run {
    const struct engine *g; /* from the first bind on `engine` */
    const struct safetensors *s;
    struct tally *tally;
    verdict_fn *report;
    void *arg;
    double tolerance, tolerance_abs, tolerance_grad, tolerance_grad_abs;
    int n_grad;       /* gradients compared */
    void *data;       /* golden_kind.size bytes for the reader, initially zero */
    const char *name; /* of the file in verdicts: without its folder, unless the reader says */
    struct arena arena;

    struct engine engine;   /* `g`, with work space of this arena */
    struct variant variant; /* room for one that is not in the registry */
    struct config c;
    struct extent max;
    struct params params, *weights; /* weights: what is loaded and compared; initially `params` */
    struct sublayers sublayers;     /* one, without wiring; for the kinds that use it */
    struct sublayers *list;         /* whose arrays the file may give; initially `sublayers` */
    bool grad;                      /* the file has gradients and the backend can compute them */
    const struct tensor *x, *mem, *dy; /* in.x, rows remembered before it, in.dy; NULL = none */
    size_t n_y;                        /* numbers in y */
    float *y, *d_x;                    /* results; no y if the reader compares by itself */
    float *room;                       /* [B,L,D] work space of golden_enter */
    char text[TENSOR_NAME];            /* of golden_name */
};

struct golden_kind {
    const char *name;                            /* of the metadata's kind; NULL = any */
    bool (*claims)(const struct safetensors *s); /* NULL = every file of this kind */
    size_t size;                                 /* of the reader's own part of struct run */
    /* Metadata and inputs; declares the parameters. */
    enum status (*read)(struct run *r, struct err *e);
    /* Over a counting and a placed arena, with what backward needs if r->grad. */
    enum status (*bind)(struct run *r, struct err *e);
    /* The weights, from where they are; NULL = this file has them. */
    enum status (*load)(struct run *r, struct err *e);
    /* Fills y, and compares everything else it computes. */
    enum status (*forward)(struct run *r, struct err *e);
    /* Fills d_x and the gradients of the weights; NULL = part of forward. */
    void (*backward)(struct run *r);
    void (*finish)(struct run *r);  /* after both, or NULL */
    void (*release)(struct run *r); /* the reader's own part, or NULL */
};

/* Those that this program reads, ended by NULL; the first that claims a file runs it. Most are test
 * code: only the program `golden` has them all. */
extern const struct golden_kind *const golden_kinds[];
extern const bool golden_is_all;
extern const struct golden_kind golden_operator, golden_lm, golden_recur, golden_import,
    golden_import_memory;

/* ---- metadata and inputs ------------------------------------------------------------------ */

/* More than any size in a file, than the rows of all its sequences, and than the numbers of any
 * array that a run makes: an int holds each product of sizes. */
enum { GOLDEN_WIDE = 1 << 16, GOLDEN_ROWS = 1 << 20, GOLDEN_NUMBERS = 1 << 28 };

/* What a key says that is left out: 0 or none. */
bool golden_says_nothing(const char *text);
/* The file's tensor; NULL, and E_IO in *st, if it is missing, of another type or of another size.
 */
const struct tensor *golden_need(const struct run *r, const char *name, enum dtype dtype, size_t n,
                                 enum status *st, struct err *e);
/* A number from 0, which it is without the key; one from 1 to `most`, which the file must have. */
enum status golden_whole(const struct run *r, const char *key, int *out, struct err *e);
enum status golden_size(const struct run *r, const char *key, int most, int *out, struct err *e);
const struct variant *golden_variant(struct run *r);
/* The file's model, in c. */
enum status golden_config(struct run *r, struct err *e);
/* A norm with stored statistics as in evaluation or in training. */
enum status golden_norm_mode(struct run *r, struct err *e);
/* in.mask_random [blocks of queries, random] holds the random blocks of the model's masks, for so
 * many tokens of the stream. */
enum status golden_mask_random(struct run *r, int tokens, struct err *e);
/* batch, seq and mem, which is 0 if the file has none. */
enum status golden_extent(struct run *r, struct err *e);
/* E_IO if these are more than GOLDEN_ROWS. */
enum status golden_rows(const struct run *r, struct err *e);
/* E_IO if an array of so many numbers is more than GOLDEN_NUMBERS. */
enum status golden_few(const struct run *r, double numbers, struct err *e);
/* in.x [B,L,D], in.mem [B,M,D], and in.dy [B,L,width] if the file has gradients. */
enum status golden_inputs(struct run *r, int width, struct err *e);

/* ---- comparisons -------------------------------------------------------------------------- */

/* The name of a tensor, until the next. */
const char *golden_name(struct run *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Compare `got` with the file's tensor, if it has one. Pass rule: max|g-e| <= max(tolerance *
 * max|e|, tolerance_abs); gradients have tolerances of their own. */
void golden_compare(struct run *r, const char *tensor, const float *got, size_t n);
/* Only the first n numbers of each of `parts` equal parts of the file's tensor. */
void golden_compare_first(struct run *r, const char *tensor, const float *got, size_t parts,
                          size_t n);
/* Rows [first, first + rows) of a memory, [B,rows,n]; the newest of the file's, which has M, if no
 * query sees the others. */
void golden_compare_memory(struct run *r, const char *tensor, const struct cache *c, int first,
                           int rows);
void golden_compare_grad(struct run *r, const struct params *p);
/* Whole numbers must be equal: the error is the number that differ. */
void golden_compare_whole(struct run *r, const char *tensor, const int32_t *got, size_t n);
/* A number of the metadata, if it is there, to a part `relative` of it. */
void golden_compare_meta(struct run *r, const char *key, double got, double relative);
/* total_nll, as far off as each of these losses may be. */
void golden_compare_total(struct run *r, const float *nll, size_t n);
/* Number of gradients in the file. */
int golden_count_grad(const struct run *r);
/* Report every gradient of the file as skipped, for want of a backward pass; or every result that
 * nothing has asked for. */
void golden_skip(struct run *r, bool unread);

/* ---- kinds that are one sub-layer --------------------------------------------------------- */

/* Place parameters and sub-layer, y [B,L,D], and what backward needs if the backend can compute
 * gradients; else clears r->grad. */
enum status golden_bind_sublayer(struct run *r, enum mem_kind kind, struct err *e);
/* Positions of so many tokens, and the tables that the weights give. */
void golden_tables(struct run *r, int tokens);
/* Remember r->mem by segments of at most L, as in use. Then pass in.x to the sub-layer. */
struct sublayer_input golden_enter(struct run *r);
void golden_backward_sublayer(struct run *r);

/* ---- probabilities ------------------------------------------------------------------------ */

/* The probabilities of one attention, not requested from the implementation but derived from its
 * output: heads of all sequences are `head` floats apart, queries `row`. */
void golden_weights(const struct engine *g, const struct attn *a, const struct attn_impl *impl,
                    void *scratch, float *to, ptrdiff_t head, ptrdiff_t row);

/* Compare the probabilities [B,H,maps,L,sinks+K] of attentions whose operands are set, one for each
 * map of a head, which differ in their queries and keys. Sinks without values are left out. */
void golden_probs(struct run *r, const struct attn *maps, int n_maps, const struct attn_impl *impl,
                  void *scratch);
