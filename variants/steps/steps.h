/* SPDX-License-Identifier: MIT
 *
 * A layer as a list of steps. A step computes a matrix from others, row by row or along each
 * sequence, and knows its backward pass; a list of them, run forwards and then backwards, is a
 * layer with its gradients. Mixers are made of them (variants/gla.c): each is a function that adds
 * its steps in order, which declares its parameters, its states and its work space at once.
 *
 * Values are numbered; value STEPS_INPUT is the layer's input. Columns of a value are a value too.
 * No step changes what another one has written, but by rotations in place, whose backward pass reads
 * no value; so all values are there when backward runs. Where no backward pass follows, the room of a
 * value that has been read by all goes to later ones. */
#pragma once

#include "variants/backends/watch.h"
#include "variants/parts/cache.h"
#include "variants/parts/parts.h"

enum {
    MAX_STEPS = 64,
    MAX_VALUES = 96,
    MAX_STATES = 8,
    STEP_IN = 8,
    STEP_OUT = 2,
    STEP_PARAMS = 2,
    STEP_STATES = 3,
    STEP_NUMBERS = 8,
    STEP_CACHES = 4,
    STEPS_INPUT = 0,
    NO_VALUE = -1,
};

/* Sequences, new rows of each, rows of memory before them. */
struct extent {
    int B, L, M;
};

/* Rows of n numbers, `row` floats apart, and sequences of them, `batch` apart; at NULL = absent. A
 * gradient may lack the first `skip` rows of each sequence. */
struct matrix {
    float *at;
    ptrdiff_t row;
    int n;
    ptrdiff_t batch;
    int skip;
};

static inline float *matrix_row(const struct matrix *m, ptrdiff_t i) { return m->at + i * m->row; }

/* So many rows of memory stand in front of each sequence of the layer's input, whose first new rows
 * are `stride` floats apart. */
struct rows_in_front {
    int n;
    ptrdiff_t stride;
};

struct step;

/* One step of one call: B sequences of L rows each, in this order: those of its first output, which
 * may be others than the layer's. */
struct step_call {
    const struct engine *g;
    const struct step *s;
    int B, L;
    int length, M;    /* new rows of the layer, rows of memory before them */
    int far;          /* rows for groups before those of memory, see struct grouping */
    int64_t position; /* in their streams, of the first row of all sequences */
    struct rows_in_front front, d_front;
    struct matrix in[STEP_IN], out[STEP_OUT];
    struct matrix d_in[STEP_IN], d_out[STEP_OUT]; /* backward only */
    const struct param *param[STEP_PARAMS];       /* NULL = absent */
    const struct param *model;                    /* those that all layers share; NULL = none */
    const struct steps *steps;
    const struct attn_impl *core;     /* of steps that attend */
    const struct attn_place *place;   /* of their layer */
    const float *encoding;            /* of positions, where the position scheme has some */
    const struct attn *sight;         /* what it sees; NULL = as the step says */
    const float *before[STEP_STATES]; /* states [B, n] before the first row; NULL = 0 */
    float *after[STEP_STATES];        /* after the last; NULL = not wanted */
    void *scratch;
};

/* Threads of a loop over the numbers of the first output. */
static inline int step_team(const struct step_call *c)
{
    return team_for(c->g->threads, (ptrdiff_t)c->B * c->L * c->out->n);
}

/* Add the first output's gradient to that of an input of the same width. */
void step_add_gradient(const struct step_call *c, int input);
/* Add the column sums of a gradient to that of a parameter: in the order of rows. */
void matrix_add_columns(const struct matrix *m, int rows, float *sums);

/* Add the first `rows` rows of each of B sequences to others. */
void matrix_add_rows(const struct matrix *to, const struct matrix *from, int B, int rows);

/* Useful FLOP: products, each visible pair once. Maps count in both passes, twice in backward. */
struct sublayer_cost {
    double forward, backward, maps;
};

/* The attention that a step runs, without operands; what is added to scores points somewhere. `part`
 * is the step's number STEP_PART. */
enum { STEP_PART };
typedef struct attn step_core(const struct steps *t, int part, struct extent now);

struct step_kind {
    const char *name;
    void (*forward)(const struct step_call *c);
    /* Adds to d_in and to the gradients of the parameters. With `overwrites` it writes d_in
     * instead, so no other step may read its inputs after it: copy them first. NULL = its outputs
     * are constants. */
    void (*backward)(const struct step_call *c);
    bool overwrites;
    /* Backward does not read its outputs, and does not write over their gradients. */
    bool pure;
    bool reads_front; /* rows of memory in front of the layer's input, too */
    /* Make `next`, which alone reads the whole of its output, a part of this step; false if it
     * cannot be. NULL = never. */
    bool (*joins)(struct steps *t, struct step *s, const struct step *next);
    /* Bytes, for up to so many rows, new ones being those of its first output; NULL = none. Of a step
     * that attends they lie before those of the core. */
    size_t (*scratch)(const struct engine *g, const struct step *s, struct extent max,
                      bool backward);
    /* The implementation that runs it; NULL = none of its own. */
    const char *(*impl)(const struct engine *g, const struct step *s, int B, int L, bool backward);
    /* Useful FLOP of B sequences of L rows; NULL = element-wise, not counted. */
    double (*flop)(const struct step *s, int B, int L);
    /* Likewise of a call whose rows begin with a group, where rows do not say it; of a step that
     * attends in place of its core. */
    struct sublayer_cost (*cost)(const struct steps *t, const struct step *s, struct extent now);
};

struct step {
    const struct step_kind *kind;
    const struct config *c;
    int in[STEP_IN], out[STEP_OUT];
    int param[STEP_PARAMS], state[STEP_STATES];
    int width[STEP_IN], result; /* of its inputs and of its first output */
    int n[STEP_NUMBERS];        /* what they mean is the kind's */
    float x[STEP_NUMBERS];
    bool to_states;  /* a state, or what layers share, depends on it */
    step_core *core; /* NULL = it does not attend */
};

/* Rows of each sequence of a value in a call. */
typedef int value_rows(const struct steps *t, struct extent now);
/* All rows that the layer is given: where they are not cached, those of memory, too; all that there
 * are. */
value_rows steps_given_rows, steps_all_rows;

/* Each `size` tokens, counted from the stream's beginning, become `rows` far rows; size 0: a whole
 * text does. Caches then hold far rows, and others only of the group that is not complete. `beside`:
 * so many more rows have room behind far ones. */
struct grouping {
    int size, rows, beside;
};
/* Of rows from this stream position on: how many are before the first whole group; whole groups. */
int grouping_lead(struct grouping of, int64_t first);
int grouping_whole(struct grouping of, int64_t first, int rows);
/* Rows of far values: as many as a call may have. */
value_rows steps_far_rows;

/* `width` columns from `at` on of value `of`, which is not a part of another one. That has `before`
 * columns of others before it where a backward pass follows; its gradient, and without a backward
 * pass the value itself, has `live_before`: it shares its room with values that the steps [from, to]
 * do not read or write. */
struct value {
    int of, at, width, before, live_before, from, to;
    bool of_backward; /* backward alone reads it, and it has no gradient */
    /* NULL = the layer's new ones; others lie behind those, or with `pairs`, numbers of pairs of
     * rows, in an array of their own, and none shares its room. */
    value_rows *rows;
    bool pairs;
    int cache;         /* its number, from 1, where a model caches rows; 0 = none */
    const char *shown; /* name in golden files; NULL = not there */
};

/* A state that a step carries from segment to segment: [B, n] floats, `start` at the start. A given
 * one is the same [n] for all rows: a table, or an input of files, which `draw` may fill before. */
struct state {
    const char *name;
    int n;
    float start;
    bool given, in_files;
    void (*draw)(const struct config *c, float *at);
};

struct steps {
    const struct config *c;
    int layer; /* of the model, from 0 */
    const char *prefix;
    struct params *declares; /* NULL = parameters have been declared */
    int n, n_values, n_params, n_states, n_caches;
    bool cached; /* the layer is given new rows, and its caches have those of memory */
    struct step step[MAX_STEPS];
    struct value value[MAX_VALUES];
    struct state state[MAX_STATES];
    int width;         /* of all values but the input, together */
    int live_width;    /* of the most that live at one time */
    const char *model; /* parameters that all layers share, if any */
    /* Computes given states from these, if there are any, or from each other. */
    void (*tables)(const struct steps *t, const struct param *model, float *const state[]);
    /* A value of the first of these layers that the others read; -1 = none. */
    int first;
    bool reads_front; /* its steps that read the input do */
    bool outside;     /* the result is the output, and lies outside, as its gradient does */
    const char
        *positions;   /* name in files of the row's position, which a step reads; NULL = none */
    bool alone;       /* a bare operator: it counts as one of several layers, not as the first */
    const char *last; /* the layer's last map, W_o; NULL = none, the result is the output */
    const char *last_bias; /* NULL = none */
    int o, o_bias;         /* their parameters; -1 = they follow those of the steps */
    int result;            /* the value that the layer's last map, W_o, reads */
    struct mask mask;      /* that a core may have */
    struct grouping groups;
    const char *no_past; /* why it has none, and what to do; NULL = it may have one */
    int longest;         /* text that it has weights for; 0 = any */
    const char *lacks;   /* the first thing that is wrong with it; NULL = nothing */
};

/* ---- building ----------------------------------------------------------------------------- */

/* What a mixer adds its steps with. */
typedef void steps_build(struct steps *t);

/* Build the list for one layer, appending its parameters to p if that is given; their names follow
 * `prefix`. */
void steps_make(struct steps *t, steps_build *build, const struct config *c, int layer, bool alone,
                const char *prefix, struct params *p);
/* Whether that would be a mistake: what the list of a layer lacks, and what to do; NULL = nothing. */
const char *steps_lack(steps_build *build, const struct config *c);
/* Say so while it is built, unless something was said before. */
void steps_need(struct steps *t, bool has, const char *lacks);

/* A new value; columns [first, first + n) of one. */
int steps_value(struct steps *t, int width);
int steps_columns(struct steps *t, int value, int first, int n);
/* A new one of other rows than the layer's. */
int steps_value_of(struct steps *t, int width, value_rows *rows, bool pairs);
int steps_rows(const struct steps *t, int value, struct extent now);
/* One of all given rows that is remembered, and cached; shown: its name in golden files or NULL. */
int steps_remembered(struct steps *t, int width, const char *shown);
/* One of far rows, likewise. */
int steps_far(struct steps *t, int width);
/* Nothing reads or writes this value any more. */
void steps_drop(struct steps *t, int value);
/* A step of this kind, with nothing set; add inputs and outputs in order. */
struct step *steps_add(struct steps *t, const struct step_kind *kind);
/* One that reads these values, in this order. */
struct step *steps_reading(struct steps *t, const struct step_kind *kind, const int *value,
                           size_t n);
#define STEP_READING(t, kind, ...)                                                                 \
    steps_reading(t, kind, (const int[]){__VA_ARGS__}, ARRAY_LEN(((const int[]){__VA_ARGS__})))
void step_reads(struct steps *t, struct step *s, int value); /* NO_VALUE keeps the place */
/* A new value, which it returns, of as many rows as the step's first input. */
int step_writes(struct steps *t, struct step *s, int width);
int step_writes_to(struct steps *t, struct step *s, int value); /* the value */
struct state *step_given(struct steps *t, struct step *s, const char *name, int n);
/* Index of the state of that name: one that is given may be of several steps. */
int steps_state(const struct steps *t, const char *name);
void step_state(struct steps *t, struct step *s, const char *name, int n, float start);
/* The value that the first layer shares with the others, from outside the list. */
int steps_first(struct steps *t, int width);
/* Parameters, declared in this order. A step may use one that another step has declared. */
void step_matrix(struct steps *t, struct step *s, int out, int in, const char *name);
void step_vector(struct steps *t, struct step *s, enum init init, float arg, int n,
                 const char *name);
void step_tensor(struct steps *t, struct step *s, enum init init, float arg, int rank,
                 const int *shape, const char *name);
void step_shares(struct step *s, int param);
/* The matrix that was declared last ends the layer (params_residual); the parameter begins as this
 * ramp (parts/params.h). */
void steps_residual(struct steps *t);
void steps_ramp(struct steps *t, struct ramp ramp);

/* The end of it: all steps have been added, and the result is known. */
void steps_plan(struct steps *t);
/* Has a value room among the others', and a gradient? */
bool value_lies_here(const struct steps *t, int value);

/* ---- kinds of steps ------------------------------------------------------------------------
 *
 * Each returns the value it computes; x, a, b are values. Names are those of parameters. */

/* W x, with "NAME.weight" [width, n]; affine: plus "NAME.bias". _to: into columns of a value. A
 * function that alone reads their result runs as their epilogue. */
int step_linear(struct steps *t, int x, int width, const char *name);
int step_affine(struct steps *t, int x, int width, const char *name);
void step_linear_to(struct steps *t, int to, int x, const char *name);
void step_affine_to(struct steps *t, int to, int x, const char *name);
/* Likewise with parameters declared before; bias: -1 = none. */
int step_product(struct steps *t, int x, int width, int weight, int bias);
void step_product_to(struct steps *t, int to, int x, int weight, int bias);
/* With rows of a map from the first on, as many as there are columns of the value. */
void step_part_to(struct steps *t, int to, int x, int weight, int first);

/* The four maps of an attention, "PREFIXq.weight" and so on, then their biases, as attn_bias says: the
 * first parameter of them; the last ends the layer; x mapped by one of them. */
enum { ATTN_Q, ATTN_K, ATTN_V, ATTN_O, ATTN_WEIGHTS };
int steps_projections(struct steps *t, const char *prefix);
void steps_end_with(struct steps *t, int projections);
int step_project(struct steps *t, int x, int projections, int which);
void step_project_to(struct steps *t, int to, int x, int projections, int which);

/* Depth-wise causal convolution of `taps` rows, with `silu` that function of it; "conv.weight" [width,
 * taps] (and "conv.bias"). Its state is the rows before: "conv" [B, taps-1, width]. */
int step_conv(struct steps *t, int x, int taps, bool bias, bool silu);

/* The same without SiLU, of the layer's input and the rows of memory in front of it, in place of a
 * state; "WEIGHT" [taps, D] and, unless NULL, "BIAS". */
int step_taps(struct steps *t, int taps, const char *weight, const char *bias);
/* Likewise of any value, before whose first row there are zeros; "WEIGHT" [taps, width]. */
int step_window(struct steps *t, int x, int taps, const char *weight);

/* x_{t-1} - x_t; its state is the last row: NAME [B, width]. */
int step_shift(struct steps *t, int x, const char *name);

/* The mean of all rows so far. Its state is their sum: NAME [B, width], and their number, the
 * position of the next row, which files call `count`. */
int step_mean(struct steps *t, int x, const char *name, const char *count);

/* apply: y = factor f(x); for CAP y = factor tanh(x / factor). curve: of x + bias, a vector of that
 * name. */
enum curve {
    CURVE_NONE = ACT_NONE,
    CURVE_RELU = ACT_RELU,
    CURVE_RELU_SQUARED = ACT_RELU_SQUARED,
    CURVE_TANH = ACT_TANH,
    CURVE_SIGMOID = ACT_SIGMOID,
    CURVE_SILU = ACT_SWISH,
    CURVE_LOG_SIGMOID = ACT_LOG_SIGMOID,
    CURVE_SOFTPLUS = ACT_SOFTPLUS,
    CURVE_EXP = ACT_EXP,
    CURVE_GELU = ACT_GELU,
    CURVE_HALF_SIGMOID = ACT_HALF_SIGMOID,
    CURVE_CAP = ACT_KINDS
};
int step_apply(struct steps *t, int x, enum curve curve, float factor);
int step_curve(struct steps *t, int x, enum curve curve, float factor, const char *bias,
               enum init init, float arg);

/* f(w) in every row, w a vector of that name. */
int step_same(struct steps *t, int width, enum curve curve, const char *name, enum init init,
              float arg);

/* Element-wise. times: b may be narrower, a whole fraction: each of its numbers then multiplies a
 * group of a's. plus: a + b, b in the first columns if it is narrower. skip: a + w b, w "NAME" of one number per group of `per`. */
int step_copy(struct steps *t, int a);
void step_copy_to(struct steps *t, int to, int a);
int step_scale(struct steps *t, int a, const char *name, float initial); /* a (.) w */
int step_times(struct steps *t, int a, int b);
int step_plus(struct steps *t, int a, int b);
int step_blend(struct steps *t, int f, int a, int g, int b); /* f (.) a + g (.) b */
int step_skip(struct steps *t, int a, int b, int per, const char *name);
/* -exp(w) a, w "NAME". Each number of w is for a group of `per` columns of a, or with `wide` each
 * column of a for a group of `per` numbers of w [n, per], which are then the columns of the result,
 * and begin as rates 1, 2, .., per. */
int step_rate(struct steps *t, int a, int per, bool wide, const char *name);

/* Heads of `width` columns: each divided by sqrt(sum of squares + eps), or with `clamped` by
 * max(norm, eps). */
int step_unit(struct steps *t, int x, int width, float eps, bool clamped);
/* Root-mean-square or layer norm of each head of `width` columns, times "norm.weight": one for all
 * heads or, with `each`, one of their own, plus "norm.bias". */
struct head_norm {
    int width;
    bool layer, each, bias;
    float eps;
    int weights; /* a parameter declared before, and with `bias` the one after it; 0 = none */
};
int step_norm(struct steps *t, int x, struct head_norm n);

/* x + d (.) (w_r + m_r) for rows r of [from, from + n) of a parameter w [.., D], side by side; m [n
 * D] may be NO_VALUE. */
struct mix_weights {
    int param, from, n;
};
int step_mixes(struct steps *t, int x, int d, int m, struct mix_weights w);
/* A parameter that steps share, declared before them; a map of theirs. */
int steps_tensor(struct steps *t, enum init init, float arg, int rank, const int *shape,
                 const char *name);
int steps_map(struct steps *t, int out, int in, const char *name);
/* n maps side by side: columns c of the result are W_c of columns c of x, "NAME" [n, width, rank].
 */
int step_blocks(struct steps *t, int x, int n, int width, const char *name);

/* Rotary positions of heads of `width` columns at stream positions, see parts/rotary.h. */
int step_rotate(struct steps *t, int x, int width, double base, bool halves);

/* Features of heads of queries or keys, parts/features.h. Their directions are given: "omega". */
int step_features(struct steps *t, int x, bool queries);

/* A linear recurrence, backends/recur.h: o [.., H dv]. Its states are `state`, NULL = "state_s",
 * and, where used, "state_z" and "state_m". Inputs are values, NO_VALUE where the term is absent.
 * q and k may have fewer heads than states: groups of heads share one. In a model in bf16 that is
 * not trained, operands are rounded (`bf16` there), unless states are single numbers. */
struct recurrence {
    int heads, dk, dv;
    float scale;
    int q, k, v, g, beta, a, b, i;
    int states;           /* heads that share one are neighbours; 0 = one each */
    int q_heads, k_heads; /* 0 = heads, states */
    int rows;             /* of it in each of the list's, side by side in all values; 0 = 1 */
    const char *bonus;    /* name of u [H, dk], or NULL */
    const char *state;    /* its name, or NULL */
    int norm;             /* enum recur_norm */
    float eps;
};
int step_recur(struct steps *t, struct recurrence r);

/* softmax(scale q k^T + add) v of the backend's core; members that are 0 are absent. What is added,
 * if the core has it, is a value or a parameter. Without v the values are the first columns of keys,
 * that of one head. No later step reads q, k or v. */
struct attend {
    int q, k, v, add;
    int table;   /* the parameter, not the first */
    int width;   /* of its outputs */
    int part;    /* attentions of the layer before it */
    bool last;   /* its queries are the layer's last rows, otherwise the first */
    bool unseen; /* its probabilities are not of the layer's rows: a watcher is not shown them */
    value_rows *rows; /* of its outputs; NULL = the layer's */
    step_core *core;
};
int step_attend(struct steps *t, struct attend a);
/* The same by another kind of step, with these inputs and outputs; backward reads the log-sum-exps
 * [B,H,L]. */
enum { ATTEND_Q, ATTEND_K, ATTEND_V, ATTEND_ADD };
enum { ATTEND_RESULT, ATTEND_LSE };
int step_attend_as(struct steps *t, const struct step_kind *kind, struct attend a);
/* The attention of such a step with its operands, and of any call; sight: NULL = as the step says. */
struct attn step_operands(const struct step_call *c);
struct attn step_attention(const struct steps *t, const struct step *s, struct extent now,
                           const struct attn *sight);
/* Such a step may run several attentions of parts of its queries, one of them being `a`, whose first
 * query is that of new row `first`. The core's work space lies behind so many bytes. */
void step_part_forward(const struct step_call *c, const struct attn *a, int first, size_t beside);
/* d: gradients of sinks. Those of keys and values are left in `one`, shaped as the step's, which are
 * in step_beside bytes of scratch. */
void step_part_backward(const struct step_call *c, const struct attn *a, struct attn_grad d,
                        struct matrix one[2]);
/* Of keys and values of these rows. */
size_t step_beside(int B, int rows, int width);

/* ---- running ------------------------------------------------------------------------------ */

/* Floats of values, for up to so many rows: of all, if a backward pass follows, or of those that live
 * at one time, as their gradients do; of values of pairs; bytes of scratch. */
size_t steps_floats(const struct steps *t, struct extent max, bool kept);
size_t steps_pairs(const struct steps *t, struct extent max, bool kept);
size_t steps_scratch(const struct steps *t, const struct engine *g, struct extent max,
                     bool backward);
double steps_flop(const struct steps *t, struct extent now);
/* The attention of its last step that attends, with as many queries and keys as any has, and as few
 * key heads; false if none does. What the implementation needs. */
bool steps_core(const struct steps *t, struct extent max, struct attn *a);
struct attn_need steps_core_need(const struct steps *t, const struct attn_impl *core,
                                 const struct engine *g, struct extent max,
                                 const struct attn *sight, bool backward);
/* Name of the implementation that runs the recurrence in it. */
const char *steps_impl(const struct steps *t, const struct engine *g, int B, int L, bool backward);

/* What one run of a list works on. states: as in struct steps, one array each, before and after. */
struct steps_run {
    const struct engine *g;
    const struct param *params;          /* the list's first */
    const struct param *model;           /* of all layers, NULL = none */
    int B, L, M;                         /* as in struct extent */
    int far;                             /* as in struct step_call */
    int64_t position;                    /* of the first new row */
    const float *x;                      /* [B L, D], or the first new row if rows stand in front */
    ptrdiff_t x_batch;                   /* of given rows; 0 = without gaps */
    int skip;                            /* given rows without a gradient */
    struct rows_in_front front, d_front; /* of x and d_x, if a step reads them */
    float *result;                       /* [B L, D] that lies outside */
    const float *d_result;               /* backward: likewise */
    float *values, *pairs;               /* steps_floats, steps_pairs */
    bool kept;                           /* a backward pass follows */
    float *first, *d_first;              /* [B L, width] of the value that layers share */
    float *before[MAX_STATES], *after[MAX_STATES];
    float *d_x, *d_values, *d_pairs; /* backward: likewise, as if not kept */
    const struct attn_impl *core;    /* of steps that attend */
    const float *encoding;           /* as in struct step_call */
    const struct attn *sight;
    struct cache *cache[STEP_CACHES];
    struct attn_place place;
    void *scratch;
};
void steps_forward(const struct steps *t, const struct steps_run *r);
/* Of that, what states and the value that layers share need. */
void steps_remember(const struct steps *t, const struct steps_run *r);
/* After a kept run: the result's gradient is given; d_x, with the rows in front of it, and everything
 * else is overwritten. */
void steps_backward(const struct steps *t, const struct steps_run *r);
/* The value in a run, and its gradient. */
struct matrix steps_matrix(const struct steps *t, const struct steps_run *r, int value);
struct matrix steps_gradient(const struct steps *t, const struct steps_run *r, int value);
