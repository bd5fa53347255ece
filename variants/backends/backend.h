/* SPDX-License-Identifier: MIT
 *
 * The execution side of the backend interface. A position scheme describes attention as data
 * (`struct attn`); a backend executes that data and is independent of schemes. A backend is a table
 * of operations; those it lacks come from the backend it inherits. */
#pragma once

#include "attn.h"
#include "variants/base/cpu.h"
#include "variants/base/elem.h"
#include "variants/base/loops.h"

#include <omp.h>

struct arena;
struct engine;
struct recur_impl;
struct attn_watch;

/* ---- attention implementations ------------------------------------------------------------ */

/* Bytes that an implementation needs besides the operands. */
struct attn_need {
    size_t scores_bytes;  /* materialised scores */
    size_t scratch_bytes; /* everything else */
};

/* An ordered list; the first that accepts wins, and its name lands in the CSV column `impl`. */
struct attn_impl {
    const char *name;
    /* False with a reason in *why_not (one static line). */
    bool (*accepts)(const struct attn *a, const char **why_not);
    struct attn_need (*need)(const struct attn *a, int threads);
    /* `scratch` has scores_bytes + scratch_bytes bytes, 64-byte aligned, contents undefined. */
    void (*forward)(const struct engine *g, const struct attn *a, void *scratch);
    bool rounds; /* it takes operands that are `unrounded` */
    /* Expects a->o and a->lse from forward; recomputes the scores. The result does not depend on
     * the number of threads, unless a library sums in another order. NULL = no backward pass.
     * `backward_by` names the implementation whose backward pass this is, if it is another one; the
     * column `impl` then gives both. */
    const char *backward_by;
    struct attn_need (*need_backward)(const struct attn *a, int threads);
    void (*backward)(const struct engine *g, const struct attn *a, const struct attn_grad *d,
                     void *scratch);
};

/* ---- dense and row operations ------------------------------------------------------------- */

/* c = alpha * op(a) op(b) + beta * c
 *
 * with op(a) [m,k], op(b) [k,n], c [m,n], row-major; op transposes if ta/tb. A weight W [out,in]
 * acts on rows x as c = x W^T: tb = true. beta = 0 never reads c.
 * threads = 1 may be called from inside a parallel region, with the room of the calling thread
 * (mm_here).
 *
 * b may be a weight [n,k] of a narrower element type, with tb and without ta: its rows lie one
 * after the other from b_narrow (elem.h), and b is NULL. Where it is bf16, a is rounded to bf16 as
 * well; sums and c are float. Where it is q8 or q4, rows of a may be rounded to q8 (`quantises`;
 * q8_round_row): integers are multiplied and added for each block of 32 along k, and
 *
 *   c = alpha sum over blocks (scale_a scale_b sum q_a q_b) + beta c */
struct gemm {
    bool ta, tb;
    int m, n, k;
    float alpha, beta;
    const float *a, *b;
    float *c;
    ptrdiff_t lda, ldb, ldc;
    const float *b_packed; /* op(b) packed by the backend's pack, or NULL */
    bool rounds;           /* a and b, both floats, are rounded to bf16; not with b_packed */
    enum elem elem;        /* of b */
    const void *b_narrow;  /* NULL where it is f32 */
    bool quantises;        /* rows of a are rounded to q8 */
    int threads;
    char *room; /* the engine's, for that many threads */
};

/* Softmax along rows of scores, in place. Row i sees columns [lo_i, hi_i), the rest of [0, cols)
 * becomes 0; an empty row becomes all 0. First, where rel or bias are given:
 *
 *   s[i][j] += rel[i][r] + bias[r]
 *   r        = clamp(j + shift - i, 0, n_rel-1)
 *
 * With slope 1, lo and hi increase by one per row (causal); with slope 0
 * they are constant. Both are clipped to [0, cols]. */
struct softmax {
    float *s;
    ptrdiff_t ld;
    int rows, cols;
    int lo, hi;             /* row 0 */
    int lo_slope, hi_slope; /* 0 or 1 per row */
    const float *rel;       /* [rows, n_rel] or NULL */
    ptrdiff_t rel_ld;
    const float *bias; /* [n_rel] or NULL */
    int n_rel, shift;
    float *lse; /* [rows] or NULL */
    int threads;
};

/* y = N(x + add) over the last axis, n long; below, x is a row and xc = x - mean(x):
 *   LAYER     weight (.) xc / sqrt(mean(xc^2) + eps) + bias
 *   RMS       weight (.) x / sqrt(mean(x^2) + eps) + bias
 *   SCALE     weight x / max(|x|, eps)         weight is one number; no bias, heads at most 1
 *   UNBIASED  weight (.) xc / (sqrt(sum(xc^2) / (n-1)) + eps) + bias         n > 1
 * add may be NULL, and so may bias; y may be x or add. Rows are contiguous. Heads that follow each
 * other as rows may have weights and biases of their own, [heads, n]: row i those of i % heads. 0
 * heads = 1. LAYER and UNBIASED may be adaptive: with ada_c not 0, weight is ada_c (1 - ada_k
 * xhat), xhat being what it multiplies, and weight and bias are NULL. */
enum norm_kind {
    NORM_LAYER,
    NORM_RMS,
    NORM_SCALE,
    NORM_UNBIASED,
    NORM_OP_KINDS,
    NORM_ADA = NORM_OP_KINDS, /* of models only, parts/norm.c */
    NORM_POWER,
    NORM_KIND_COUNT
};
struct norm {
    enum norm_kind kind;
    float *y;
    const float *x, *add, *weight, *bias;
    int rows, n, heads;
    float eps, ada_c, ada_k;
    int threads;
};
static inline ptrdiff_t norm_weights_at(int heads, int n, int row)
{
    return heads > 1 ? (ptrdiff_t)(row % heads) * n : 0;
}

/* y = factor f(x + bias) + add; bias [n] and add may be NULL; y may be x or add.
 *   RELU   max(0, x)     SIGMOID  s(x) = 1 / (1 + e^-x)     SWISH      x s(beta x)
 *   GELU   x Phi(x)      Phi: normal distribution           GELU_TANH  x s(2 c (x + 0.044715 x^3))
 *   TANH   tanh(beta x)  EXP      e^x                       RELU_SQUARED  max(0, x)^2
 *   SOFTPLUS     log(1 + e^x)                               LOG_SIGMOID   log s(x)
 *   ELU1         x + 1 where x > 0, else e^x
 *   HALF_SIGMOID x + 1/2 where x >= 0, else s(x)
 * with c = sqrt(2/pi). beta and factor are one number each, NULL = 1. Rows of y and add are
 * contiguous, those of x are x_row floats apart, 0 = n. ReLU propagates NaN, except that a
 * library's ReLU fused into a product may return 0. */
enum act_kind {
    ACT_NONE,
    ACT_RELU,
    ACT_SIGMOID,
    ACT_SWISH,
    ACT_GELU,
    ACT_GELU_TANH,
    ACT_ELU1,
    ACT_TANH,
    ACT_RELU_SQUARED,
    ACT_SOFTPLUS,
    ACT_LOG_SIGMOID,
    ACT_EXP,
    ACT_HALF_SIGMOID,
    ACT_KINDS
};
struct act {
    enum act_kind kind;
    float *y;
    const float *x, *bias, *add, *beta, *factor;
    ptrdiff_t x_row;
    int rows, n;
    int threads;
};
static inline ptrdiff_t act_x_row(ptrdiff_t x_row, int n) { return x_row ? x_row : n; }

/* Gated units (Shazeer 2020, arXiv:2002.05202): y = f(a + a_bias) (.) (b + b_bias), f as in struct
 * act with its beta. a and b are columns of one product, ld floats between rows; those of y are
 * contiguous. Biases [n] may be NULL. With a limit (OpenAI 2025, arXiv:2508.10925), of the operands
 * with their biases, y = f(min(a, limit)) (.) (max(-limit, min(b, limit)) + 1). */
struct glu {
    enum act_kind kind;
    float *y;
    const float *a, *b, *a_bias, *b_bias;
    float beta, limit; /* 0 = 1; 0 = none */
    ptrdiff_t ld;
    int rows, n;
    int threads;
};

static inline float glu_beta(float beta) { return beta != 0 ? beta : 1; }

/* The element-wise half of the gates; a and c are pre-activations, b the bias.
 *   INPUT    sigma(a) x + y                    HIGHWAY  t x + (1-t) y, t = sigma(a + b)
 *   OUTPUT   x + sigma(a - b) y                SIGTANH  x + sigma(a - b) tanh(c)
 *   RESET    sigma(a) x                        UPDATE   (1-z) x + z tanh(c), z = sigma(a - b)
 * out may be any of the inputs. Rows of out, x, y are contiguous; rows of a and c, which may be
 * columns of one wider product, are ld floats apart. */
enum gate_kind { GATE_INPUT, GATE_OUTPUT, GATE_HIGHWAY, GATE_SIGTANH, GATE_RESET, GATE_UPDATE };
struct gate_op {
    enum gate_kind kind;
    float *out;
    const float *x, *y, *a, *c, *b;
    ptrdiff_t ld; /* of a and c */
    int rows, n;
    int threads;
};

/* One step of a recurrent cell with n units: the element-wise part after its two products. x is
 * W_ih in + b_ih and h is W_hh state, rows of `rnn_cell_gates` groups of n; b is b_hh, a the sum of
 * all three, s the logistic function:
 *   RNN   out = tanh(a)
 *   GRU   r = s(a_0), z = s(a_1), m = tanh(x_2 + r (h_2 + b_2))
 *         out = (1-z) m + z state
 *   LSTM  i = s(a_0), f = s(a_1), g = tanh(a_2), o = s(a_3)
 *         c_out = f c + i g
 *         out = o tanh(c_out)
 * Rows of x are x_row floats apart (0 repeats one row); all others are contiguous. NULL for h,
 * state or c stands for zeros. out may be state, c_out may be c. */
enum rnn_cell_kind { CELL_RNN, CELL_GRU, CELL_LSTM, CELL_KINDS };
extern const char *const rnn_cell_name[CELL_KINDS + 1]; /* "rnn" "gru" "lstm" NULL */
int rnn_cell_gates(enum rnn_cell_kind kind);            /* 1, 3, 4 */
struct rnn_step {
    enum rnn_cell_kind kind;
    float *out, *c_out;
    const float *x, *h, *b, *state, *c;
    ptrdiff_t x_row;
    int rows, n;
    int threads;
};

/* nll[t] = logsumexp(logits[t]) - logits[t][target[t]], nats. */
struct nll_op {
    float *nll;
    const float *logits; /* [rows, n] contiguous */
    const int32_t *target;
    int rows, n;
    int threads;
};

/* ---- gradients of the row operations -------------------------------------------------------
 *
 * Gradients of data are overwritten and may alias an operand; NULL = not wanted. Gradients of
 * weights [n] are accumulated; they are column sums in a fixed order, the same for any number of
 * threads. Rows are contiguous unless a stride is given. */

/* From the gradient of the probabilities to that of the scores, with r as in struct softmax:
 *
 *   d' = d + rel[i][r]
 *   d  = p (d' - sum_j p_j d'_j)
 *
 * p is 0 where masked. */
struct softmax_grad {
    float *d;       /* [rows, cols] in place */
    const float *p; /* [rows, cols] */
    ptrdiff_t ld;   /* of both */
    int rows, cols;
    const float *rel; /* [rows, n_rel] or NULL */
    ptrdiff_t rel_ld;
    int n_rel, shift;
    int threads;
};

/* Of struct norm without add; x is its input. The factor of an adaptive one is a constant. */
struct norm_grad {
    enum norm_kind kind;
    float *d_x, *d_weight, *d_bias;
    const float *d_y, *x, *weight;
    float *stats; /* [NORM_STATS * rows] work space */
    int rows, n, heads;
    float eps, ada_c, ada_k;
    int threads;
};
enum { NORM_STATS = 4 };

/* Of struct act without add: d_x = d_y factor f'(x + bias). For ReLU x may be the output; NONE
 * needs no x. d_beta, of SWISH, is one number, accumulated; it needs `sums` [n] as work space. Rows
 * of d_x and d_y are contiguous. */
struct act_grad {
    enum act_kind kind;
    float *d_x, *d_bias, *d_beta, *sums;
    const float *d_y, *x, *bias, *beta, *factor;
    ptrdiff_t x_row;
    int rows, n;
    int threads;
};

/* Of struct glu; d_a and d_b have the row stride of a and b. */
struct glu_grad {
    enum act_kind kind;
    float *d_a, *d_b, *d_a_bias, *d_b_bias;
    const float *d_y, *a, *b, *a_bias, *b_bias;
    float beta, limit; /* what is beyond the limit has no gradient */
    ptrdiff_t ld;      /* of a, b, d_a, d_b */
    int rows, n;
    int threads;
};

/* Of struct gate_op; d_x, d_y, d_a, d_c for those of x, y, a, c that the kind has. */
struct gate_grad {
    enum gate_kind kind;
    float *d_x, *d_y, *d_a, *d_c, *d_b;
    const float *d_out, *x, *y, *a, *c, *b;
    ptrdiff_t ld; /* of a, c, d_a, d_c */
    int rows, n;
    int threads;
};

/* Of struct rnn_step, whose c_out is read and out is not. d_x and d_h [rows, gates n] are the
 * gradients of x and h. They differ only in GRU's last group; for the other kinds both may be the
 * same array. d_state [rows,n] is written for GRU only, without the part that goes through h; it
 * may alias d_out. d_c [rows,n], LSTM only: on entry the gradient of c_out apart from the part
 * through out, on return that of c. */
struct rnn_step_grad {
    struct rnn_step step;
    float *d_x, *d_h, *d_state, *d_c;
    const float *d_out;
};

/* The gradient of scale (nll + z lse^2), the z-loss of PaLM (Chowdhery et al. 2022,
 * arXiv:2204.02311, section 5):
 *
 *   d_logits = scale ((1 + 2 z lse) softmax(logits) - onehot(target))
 *   lse      = logsumexp(logits) */
struct nll_grad {
    float *d_logits; /* [rows, n], may be logits */
    const float *logits;
    const int32_t *target;
    float scale, z;
    int rows, n;
    int threads;
};

/* This list generates the table, the names and the inheritance. X(member, argument type) */
#define OPS(X)                                                                                     \
    X(gemm, gemm)                                                                                  \
    X(softmax, softmax)                                                                            \
    X(norm, norm)                                                                                  \
    X(act, act)                                                                                    \
    X(glu, glu)                                                                                    \
    X(gate, gate_op)                                                                               \
    X(rnn_cell, rnn_step)                                                                          \
    X(nll, nll_op)                                                                                 \
    X(softmax_grad, softmax_grad)                                                                  \
    X(norm_grad, norm_grad)                                                                        \
    X(act_grad, act_grad)                                                                          \
    X(glu_grad, glu_grad)                                                                          \
    X(gate_grad, gate_grad)                                                                        \
    X(rnn_cell_grad, rnn_step_grad)                                                                \
    X(nll_grad, nll_grad)

struct ops {
#define X(op, type) void (*op)(const struct type *);
    OPS(X)
#undef X
};
enum op {
#define X(op, type) OP_##op,
    OPS(X)
#undef X
        OP_COUNT
};

/* ---- backends ----------------------------------------------------------------------------- */

struct backend {
    const char *name, *about;
    const char *inherits; /* NULL: nothing; "simd": the best of ref < avx2 < avx512 allowed here */
    enum isa needs;       /* instructions that its own code may execute */
    enum elem adds;       /* all that it adds to what it inherits: products of that type; f32 = no
                           * such limit */
    const char *incomplete; /* why it cannot be used in a case yet; NULL = it can */
    /* Prepares the process and checks that the requirements are really met; may be NULL. */
    enum status (*open)(int threads, struct err *e);
    /* The library's names for its kernels ("SkylakeX") and its build, and the ISA level of its
     * kernels; may be NULL. */
    const char *(*core)(void);
    const char *(*config)(void);
    /* Optional, with ops.gemm: store a constant b in the order in which the kernel reads it.
     * packed_floats is the size of the packed op(b) for products like this one, 0 if packing gains
     * nothing. */
    size_t (*packed_floats)(const struct gemm *like);
    void (*pack)(float *dst, const struct gemm *like);
    /* Optional, with ops.gemm: bytes of work space that each thread of a product needs, whole cache
     * lines. Stacks may be small: no frame of ours has more than 32 KiB. */
    size_t (*gemm_room)(void);
    /* Optional, with ops.gemm: a product fused with the element-wise operation after it; see
     * engine_gemm_act and engine_gemm_gate. */
    void (*gemm_act)(const struct gemm *g, const struct act *epilogue);
    void (*gemm_gate)(const struct gemm *g, const struct gate_op *gate);
    enum isa (*core_isa)(enum elem elem);
    /* Optional: the kernels that executed its products since the last call, e.g.
     * "gemm:jit+brg:avx512_core", for the CSV column `impl`; E_UNSUPPORTED with the reason if a
     * product failed and its result is NaN. `names` has room for `size` characters. */
    enum status (*ran)(char *names, size_t size, struct err *e);
    /* Optional, with ops.gemm: the instruction that multiplies rows of q8, which `needs` does not
     * tell, e.g. "vpdpbusd", for the column `impl`. */
    const char *(*int8_by)(void);
    /* Optional: bytes of work space held outside the arena, without what its library allocates
     * unseen. */
    size_t (*held_bytes)(void);
    /* With ops.gemm: why its products cannot have weights of an element type on this machine, or
     * NULL if they can; no function = they have f32 only. */
    const char *(*lacks)(enum elem elem);
    /* With ops.gemm: it can round both operands of a product (struct gemm). */
    bool rounds;
    /* It generates a kernel for each new shape: one run at bind generates them outside the measured
     * time. */
    bool makes_kernels;
    struct ops ops;                        /* NULL members are inherited */
    const struct attn_impl *const *attn;   /* NULL-terminated; NULL = inherited */
    const struct recur_impl *const *recur; /* recur.h; likewise */
    /* Those of them that have no products, which are tried first; likewise. */
    const struct recur_impl *const *recur_rows;
};

extern const struct backend *const backends[]; /* in display order (list.h), NULL-terminated */
extern const struct backend backend_ref;
#define X(ID, name, flags) extern const struct backend backend_##name;
ISA_LIST(X)
#undef X

/* `lacks` of a backend whose products have every type. */
const char *lacks_nothing(enum elem elem);

/* NULL where there is no such backend in this build. */
const struct backend *backend_find(const char *name);

/* The backend it inherits from on this machine and under this CPU mask; NULL = none. */
const struct backend *backend_parent(const struct backend *b);

/* Whose code computes with weights of a type: b, or what it inherits where b adds another type. */
const struct backend *backend_acting(const struct backend *b, enum elem elem);

/* OK if cases may use it on this machine and build; otherwise E_UNSUPPORTED with the reason. */
enum status backend_usable(const struct backend *b, struct err *e);

/* A backend opened in this process: its operations with inheritance resolved. */
struct engine {
    const struct backend *backend;
    struct ops ops;
    const char *provider[OP_COUNT]; /* the backend that provides each op */
    const struct attn_impl *const *attn;
    const struct recur_impl *const *recur, *const *recur_rows; /* the second NULL = none */
    /* From the backend that provides gemm; or NULL. */
    size_t (*packed_floats)(const struct gemm *like);
    void (*pack)(float *dst, const struct gemm *like);
    void (*gemm_act)(const struct gemm *g, const struct act *epilogue);
    void (*gemm_gate)(const struct gemm *g, const struct gate_op *gate);
    const char *(*int8_by)(void);
    const char *lacks[ELEM_COUNT]; /* why its products cannot have such weights; NULL = they can */
    bool can_round;                /* `rounds` of the backend that provides gemm */
    bool rounds;                   /* linear maps round their operands to bf16: engine_train_in */
    const char *impl; /* the only attention implementation to use; NULL = the first that accepts */
    int threads;
    char *room;       /* work space of products, [threads, room_each]: engine_bind */
    size_t room_each; /* bytes, 0 = they need none */
    /* [B,L] queries of attention whose output is wanted; NULL = all. The ref backend computes no
     * others and leaves 0 there; the other backends compute all. */
    const bool *wanted;
    /* Where a batch is divided among processes: x [n] becomes its mean over them. What a loss says
     * of the batch as a whole needs it; NULL = all rows are here. */
    void (*mean)(void *arg, double *x, int n);
    void *mean_arg;
    const struct attn_watch *watch; /* who sees the probabilities of attention: watch.h; or NULL */
    enum isa isa; /* ISA level of the kernels that dominate its time: CSV column isa_used */
};

/* The room of the calling thread of a team of the engine's threads. */
char *engine_room_here(const struct engine *g);

/* c = alpha op(a) op(b) + beta c of plain floats (struct gemm), in BLAS's order of arguments. The
 * letters say which operands are transposed: NT is c = a b^T. mm_here runs on the calling thread,
 * as in a parallel region; mm_of is the product itself, for callers that add to it. */
enum mm_form { NN, NT, TN };
static inline struct gemm mm_of(const struct engine *g, enum mm_form form, int m, int n, int k,
                                float alpha, const float *a, ptrdiff_t lda, const float *b,
                                ptrdiff_t ldb, float beta, float *c, ptrdiff_t ldc)
{
    return (struct gemm){.ta = form == TN,
                         .tb = form == NT,
                         .m = m,
                         .n = n,
                         .k = k,
                         .alpha = alpha,
                         .beta = beta,
                         .a = a,
                         .b = b,
                         .c = c,
                         .lda = lda,
                         .ldb = ldb,
                         .ldc = ldc,
                         .threads = g->threads,
                         .room = g->room};
}
static inline void mm(const struct engine *g, enum mm_form form, int m, int n, int k, float alpha,
                      const float *a, ptrdiff_t lda, const float *b, ptrdiff_t ldb, float beta,
                      float *c, ptrdiff_t ldc)
{
    const struct gemm p = mm_of(g, form, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);

    g->ops.gemm(&p);
}
static inline void mm_here(const struct engine *g, enum mm_form form, int m, int n, int k,
                           float alpha, const float *a, ptrdiff_t lda, const float *b,
                           ptrdiff_t ldb, float beta, float *c, ptrdiff_t ldc)
{
    struct gemm p = mm_of(g, form, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);

    p.threads = 1;
    p.room = engine_room_here(g);
    g->ops.gemm(&p);
}

/* Rows of a or b lie closer than they are wide, which BLAS refuses and a caller's strides may say: then
 * the product is made here, by ref. */
bool gemm_of_overlapping_rows(const struct gemm *g);

/* `impl` may be NULL. E_UNSUPPORTED as backend_usable, or if the backend has no implementation
 * `impl`. */
enum status engine_open(struct engine *g, const char *name, int threads, const char *impl,
                        struct err *e);

/* Take the work space of its products, for its threads; once for each bind, before a product runs. */
void engine_bind(struct engine *g, struct arena *a);

/* The same in an arena of its own, which the caller releases. */
enum status engine_place(struct engine *g, struct arena *a, struct err *e);

/* The ISA level of its products with weights of a type. */
enum isa engine_isa(const struct engine *g, enum elem elem);

/* Train in mixed precision (Micikevicius et al. 2018, arXiv:1710.03740): with ELEM_BF16 linear maps
 * round their operands, forward and backward; weights, gradients, sums and all else stay f32.
 * E_UNSUPPORTED if the products cannot. ELEM_F32 changes nothing; weights in blocks are not trained. */
enum status engine_train_in(struct engine *g, enum elem elem, struct err *e);

/* y = f(c + bias) + add with c = op(a) op(b) + beta c: a product and its epilogue, in one pass
 * where the backend can. epilogue->x is c, with contiguous rows; if epilogue->y is not c, c is work
 * space and undefined afterwards. y may be add, but nothing that the product reads. */
void engine_gemm_act(const struct engine *g, const struct gemm *p, const struct act *epilogue);

/* Likewise a gate whose last pre-activation is this product: c is gate->c if the kind has one, else
 * gate->a, with gate->ld = ldc. If gate->n is less than the product's n, the gate applies to the
 * first columns. c is kept, since backward needs it. out may be x or y, but nothing that the
 * product reads. */
void engine_gemm_gate(const struct engine *g, const struct gemm *p, const struct gate_op *gate);

/* The implementation that will execute `a`. E_UNSUPPORTED with the refusals of all candidates. */
enum status engine_attn(const struct engine *g, const struct attn *a, const struct attn_impl **impl,
                        struct err *e);

/* OK if `impl`, chosen by engine_attn, can run backward; else E_UNSUPPORTED naming it. */
enum status engine_attn_backward(const struct engine *g, const struct attn_impl *impl,
                                 struct err *e);
