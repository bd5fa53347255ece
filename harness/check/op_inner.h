/* SPDX-License-Identifier: MIT
 *
 * The description of one case of an operation: its operands, its outputs, and how it is run. */
#pragma once

#include "attn_operands.h"
#include "op_bounds.h"

#include "variants/backends/recur.h"

enum { MAX_OUTPUTS = 10, MAX_BUFFERS = 32 };

/* One array that the operation writes, `n` floats between guard words. Before each run it holds
 * `first`, or guard words if that is NULL. `bound` is 0 for elements that must not change. */
struct output {
    const char *name;
    size_t n;
    const float *first;
    float *want, *one, *got; /* of the reference; of the subject on one thread, on several */
    double *bound;           /* INFINITY = any value will do */
    bool zero_for_nan;       /* 0 is accepted for a NaN */
};

struct buffer {
    float *at;
    size_t n;
    bool scratch; /* NaN before each run */
};

/* One case. The first group is given, makers fill in the rest as they need it; only
 * what `subject` of the row does depends on the subject. */
struct trial {
    const struct engine *subject;
    bool is_subject; /* the subject is running, not the reference */
    bool in_place; /* outputs lie over operands in the current run: in the subject's if `over` asks
                    * for it */
    bool timed;    /* work space may be in any state */
    int threads;   /* of the subject's second run; a case may ask for more */

    enum elem elem; /* of the weights: the row's */
    bool over;
    int kind, mode, rows, n;
    ptrdiff_t ld;
    size_t size;  /* rows * n */
    double scale; /* of the bound */
    char name[128];
    struct {
        struct gemm gemm;
        struct softmax softmax;
        struct norm norm;
        struct act act;
        struct glu glu;
        struct gate_op gate;
        struct rnn_step cell;
        struct nll_op nll;
        struct softmax_grad softmax_grad;
        struct norm_grad norm_grad;
        struct act_grad act_grad;
        struct glu_grad glu_grad;
        struct gate_grad gate_grad;
        struct rnn_step_grad cell_grad;
        struct nll_grad nll_grad;
        struct attn_grad attn_grad;
        struct recur recur;
        struct recur_grad recur_grad;
    } a;
    struct operands attn;
    bool has_attn;
    int32_t target[64];
    bool packs;         /* where the subject can */
    float *packed;      /* op(b) as the subject keeps it, or NULL */
    struct err refusal; /* of the engine that ran; "" = none */
    unsigned char *work;
    size_t work_bytes;

    struct output out[MAX_OUTPUTS];
    int n_out;
    struct buffer buffer[MAX_BUFFERS];
    int n_buffers;
};

/* A large shape to time: its amount of work, in units of 1e9. */
struct op_timing {
    const char *shape, *unit;
    double work;
};
enum { MAX_TIMINGS = 4 };

struct op_row {
    const char *name;
    int op;    /* enum op; -1 = none of them */
    int cases; /* all combinations of what `make` picks */
    /* Case `at`; from `cases` on, those to time. */
    void (*make)(struct trial *t, int at);
    /* `out` are the outputs' arrays, in their order. */
    void (*run)(const struct engine *g, struct trial *t, float *const *out);
    /* Fill the outputs' bounds; the reference's results are available. */
    void (*bounds)(struct trial *t);
    /* Set-up that depends on the subject; NULL = none. */
    void (*subject)(struct trial *t);
    bool same_bits;   /* for any number of threads and in place, unless a library adds */
    bool mean_square; /* the normalised mean-square error is below 1e-10 as well */
    /* Does the backend implement this itself? NULL = as engine.from says. */
    bool (*has)(const struct engine *g);
    struct op_timing timing[MAX_TIMINGS];
    enum elem elem; /* of the weights; a backend that lacks it is left out */
};

#define TIMED_ELEMENTS(n) "Gelem/s", 1e-9 * (n)

/* OP_run(), the `run` of an operation: the rest says where its arguments `o` differ from those of the
 * trial. */
#define RUN(op, type, ...)                                                                         \
    static void op##_run(const struct engine *g, struct trial *t, float *const *out)               \
    {                                                                                              \
        struct type o = t->a.op;                                                                   \
        __VA_ARGS__;                                                                               \
        o.threads = g->threads;                                                                    \
        g->ops.op(&o);                                                                             \
    }

/* Rows of the table by file. */
enum {
    PRODUCT_ROWS = 11,
    SOFTMAX_ROWS = 4,
    NORM_ROWS = 2,
    ACT_ROWS = 4,
    GATE_ROWS = 4,
    ATTN_ROWS = 3,
    RECUR_ROWS = 4
};
extern const struct op_row op_products[PRODUCT_ROWS], op_softmaxes[SOFTMAX_ROWS],
    op_norms[NORM_ROWS], op_acts[ACT_ROWS], op_gates[GATE_ROWS], op_attns[ATTN_ROWS],
    op_recurs[RECUR_ROWS];

/* A case and its end; outputs as they are before a run, scratch full of NaN. */
struct trial *trial_new(const struct op_row *row, int at);
void trial_free(struct trial *t);
void trial_reset(struct trial *t, float *const *out);

/* ---- for makers --------------------------------------------------------------------------- */

/* Take a digit below `count` off *at. */
static inline int pick(int *at, int count)
{
    const int digit = *at % count;

    *at /= count;
    return digit;
}
/* Operands with these values, checked for guard words and released with the trial. */
float *operand(struct trial *t, size_t n, const char *name, float mean, float sd);
float *operand_positive(struct trial *t, size_t n, const char *name);
float *constant(struct trial *t, size_t n, float value);
float *scratch(struct trial *t, size_t n);
/* The next output; NULL for `first` = guard words. */
struct output *output(struct trial *t, const char *name, size_t n, const float *first);
/* Likewise gradients of weights, which are added to; and their bound, if each term of the sum is
 * off by `each`. */
struct output *output_sums(struct trial *t, const char *name, size_t n);
double sum_bound(double each, double total);

/* Rows and columns around vector widths; the last are large enough for several threads. */
enum { OP_SIZES = 14, OP_GRAD_SIZES = 9 };
extern const int op_sizes[OP_SIZES][2], op_grad_sizes[OP_GRAD_SIZES][2], op_square[2];
/* rows, n and size. */
void set_size(struct trial *t, const int size[2]);
double largest(const float *x, size_t n); /* finite magnitude */
/* `bytes` of 64-byte aligned work space, NaN unless the run is timed; the bytes after it are
 * checked after the run. */
void *workspace(struct trial *t, size_t bytes);
