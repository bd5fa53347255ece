/* SPDX-License-Identifier: MIT
 *
 * The parameters of a model: named tensors in the order in which parts declare them, each with its
 * initialisation. The caller decides where they are stored. */
#pragma once

#include "variants/backends/backend.h"
#include "variants/base/arena.h"

enum init {
    INIT_LINEAR,
    INIT_EMBED,
    INIT_TABLE,
    INIT_ONE,
    INIT_ZERO,
    INIT_OFF,
    INIT_CONST,
    INIT_UNIFORM,
    INIT_UNIFORM_BOTH,
    INIT_LOG,
    INIT_LOG_COUNT,
    INIT_STEP,
    INIT_RAMP,
    INIT_NORMAL,
    INIT_FREQUENCIES, /* 10000^(-f/n) of n */
    INIT_EYE,
    INIT_CENTRE, /* of a convolution [n,n,rows,columns] */
    INIT_TURNS,
    INIT_UNIT /* rows of length 1 in random directions */
};

/* Groups that optimisers treat differently: maps between layers, the map to logits, rows by token
 * or key, gains of norms, biases, and all others, such as tables of positions. */
enum param_group {
    PARAM_MATRICES,
    PARAM_OUTPUT,
    PARAM_EMBEDDINGS,
    PARAM_NORMS,
    PARAM_BIASES,
    PARAM_OTHERS,
    PARAM_GROUPS
};
extern const char *const param_group_name[PARAM_GROUPS + 1]; /* NULL-terminated */

/* Column c of n in row r: from + (to - from) x^power[r], with x = c/(n-1), or with `open` c/n,
 * which does not reach `to`. */
enum { RAMP_ROWS = 6 };
struct ramp {
    float from, to, power[RAMP_ROWS];
    bool open;
};

enum { PARAM_RANK = 4 };

/* One named tensor of a model; the name is used in checkpoints. */
struct param {
    char name[64];
    int rank, shape[PARAM_RANK];
    size_t n; /* elements */
    enum init init;
    /* INIT_CONST: value; INIT_UNIFORM: upper end, _BOTH: of both signs; INIT_LOG: the logarithm of
     * 1 to it, _COUNT: of 1, 2, 3, .. over the columns; INIT_STEP: softplus of it is 0.001 to 0.1,
     * evenly in the logarithm; INIT_NORMAL: deviation; INIT_TURNS: 0, 1, .. below it in turn;
     * INIT_CENTRE: the row whose middle tap is the identity */
    float init_arg;
    struct ramp ramp; /* INIT_RAMP */
    bool bounded;     /* the optimiser keeps each element in [least, most] */
    float least, most;
    enum param_group group; /* follows from init and rank, except for PARAM_OUTPUT */
    int maps;               /* of group matrices: how many, of the last two dimensions; else 0 */
    bool residual;          /* its products are added to the residual stream */
    bool buffer;  /* not trained: grad is the step to its next value, which the optimiser adds */
    bool frozen;  /* not trained: the optimiser leaves it as it is */
    bool narrows; /* read by linear_product and param_row only: may be of a narrower type */
    bool wide;    /* a map that is float in every model: see params_wide */
    bool chooses; /* see params_chooses */
    enum elem elem;
    bool quantises; /* elem is q8, and so are the rows that it multiplies: params_hold */
    float *data;    /* NULL if elem is not f32 */
    void *narrow;   /* rows of the last dimension (elem.h); NULL if elem is f32 */
    float *grad;    /* same shape; NULL unless the model is bound for training */
    bool borrowed;  /* data and packed belong to another list: see params_borrow */
    float *packed;  /* in the backend's preferred order; NULL = unpacked */
    int stack;      /* tensors stored as one matrix, of which this is the first; 0 = it is in
                    * another's stack */
};
struct params {
    struct param *v;
    int n, cap;
};

/* Append a parameter; the name is printf-formatted. Returns its index. */
int params_add(struct params *p, enum init init, float init_arg, int rank, const int *shape,
               const char *fmt, ...) __attribute__((format(printf, 6, 7)));
int params_matrix(struct params *p, int out, int in, const char *prefix, const char *name);
/* A matrix that is read by linear_product and param_row only, which take every element type. */
int params_map(struct params *p, int out, int in, const char *prefix, const char *name);
int params_narrows(struct params *p, int i); /* parameter i is one; returns i */
/* Parameter i is float whatever the others are: a map that tables are made of, once, or a small one
 * that does not multiply rows as the others do (over positions, tasks, taps, pairs of a head). */
void params_wide(struct params *p, int i);
/* Parameter i is float, and what it computes chooses: where rows are rounded, as in bf16, another
 * choice is as right, so no backend could be checked. */
void params_chooses(struct params *p, int i);
int params_vector(struct params *p, enum init init, float init_arg, int n, const char *prefix,
                  const char *name);
/* Parameter i writes to the residual stream: --init depth makes it smaller. Returns i. */
int params_residual(struct params *p, int i);
/* Parameter i, of as many rows as the ramp has powers, begins as this ramp. */
void params_ramp(struct params *p, int i, struct ramp ramp);
/* Keep each element of parameter i in [least, most], at initialisation and in training. */
void params_bound(struct params *p, int i, float least, float most);
void param_keep_bounds(struct param *p);
/* Parameter i is a buffer: a running statistic, or a fixed table. */
void params_buffer(struct params *p, int i);
const struct param *params_find(const struct params *p, const char *name);
/* Stack matrices [out_i,in] that multiply the same operand: data, grad and packed of the following
 * ones come directly after the first's, which stands for one matrix of sum out_i rows. They remain
 * tensors with their own names, shapes and values. */
void params_stack(struct params *p, int first, int count);
int param_out(const struct param *w); /* rows of W and of the tensors stacked after it */
/* Before they are placed: let maps and embeddings be of this type; all else is float. Weights in
 * blocks may multiply rows of q8. E_UNSUPPORTED where a part reads one of them in another way, and
 * where the engine has no such products. */
enum status params_hold(struct params *p, enum elem elem, enum row_elem rows,
                        const struct engine *g, struct err *e);
/* Give it these values, rounded to its type. */
void param_set(struct param *p, const float *values);
/* n rows of the last dimension from row `first` on, as a matrix: a head's or an expert's part. */
struct param param_rows(const struct param *p, ptrdiff_t first, int n);
/* Row i of a matrix, as floats. */
void param_row(const struct param *p, ptrdiff_t i, float *to);
/* Take each tensor from the arena as PART_WEIGHTS. */
void params_place(struct params *p, struct arena *a);
/* Likewise each tensor's gradient, as PART_GRADIENTS. Backward passes accumulate, so that layers
 * may share a tensor and a step may have several segments; params_zero_grad starts a new sum. */
void params_place_grad(struct params *p, struct arena *a);
void params_zero_grad(struct params *p);
/* Use the values of another list of the same model. That list must be placed first. */
void params_borrow(struct params *p, const struct params *from);
/* Take room for the packed form of every linear map, for products of up to `rows` rows, as
 * PART_SCRATCH. params_pack fills it once the weights have values, and again when they change. */
void params_place_packed(struct params *p, const struct engine *g, int rows, struct arena *a);
void params_pack(struct params *p, const struct engine *g);
/* Initialise every tensor, `threads` of them at a time; values depend on seed and name only. */
void params_init(struct params *p, uint64_t seed, int threads);
/* Initial values for training: as above, but factors of norms are 1, biases and factors of whole
 * sub-layers 0, and tables normal of deviation 0.02 (Devlin et al. 2019, and the code of most
 * papers). In a benchmark they spread, so that each has an effect. Those that write to the residual
 * stream are multiplied by `residual`. */
void params_init_training(struct params *p, uint64_t seed, float residual, int threads);
void params_free(struct params *p);
