/* SPDX-License-Identifier: MIT
 *
 * The types of what is under test. A variant is a value: position scheme + memory + residual wiring
 * + feed-forward. A `struct config` is one model of a variant: its sizes and choices, without
 * weights. Nothing here knows how attention is executed. */
#ifndef VARIANT_H
#define VARIANT_H

#include "backends/backend.h"
#include "base/arena.h"
#include "base/base.h"

/* ---- parameters --------------------------------------------------------------------------- */

enum init {
    INIT_LINEAR,
    INIT_EMBED,
    INIT_TABLE,
    INIT_ONE,
    INIT_ZERO,
    INIT_CONST,
    INIT_UNIFORM,
    INIT_NORMAL,
    INIT_EYE
};

/* One named tensor of a model; the name is that of checkpoints. */
struct param {
    char name[64];
    int rank, shape[3];
    size_t n; /* elements */
    enum init init;
    float init_arg; /* INIT_CONST: the value; INIT_UNIFORM: from 0 to it; INIT_NORMAL: deviation */
    bool bounded;   /* the optimiser keeps each element in [least, most] */
    float least, most;
    float *data;
    float *grad;   /* same shape; NULL unless the model is bound for training */
    bool borrowed; /* data and packed belong to another list: see params_borrow */
    float *packed; /* as the backend's products like to read it; NULL = as it is */
    int stack;     /* how many lie in memory as one matrix, this the first; 0 = in another's */
};
struct params {
    struct param *v;
    int n, cap;
};

/* Append a parameter; the name is printf-formatted. Returns its index. */
int params_add(struct params *p, enum init init, float init_arg, int rank, const int *shape,
               const char *fmt, ...) __attribute__((format(printf, 6, 7)));
int params_matrix(struct params *p, int out, int in, const char *prefix, const char *name);
int params_vector(struct params *p, enum init init, float init_arg, int n, const char *prefix,
                  const char *name);
/* Keep each element of parameter i in [least, most], initially and when it is trained. */
void params_bound(struct params *p, int i, float least, float most);
void param_keep_bounds(struct param *p);
const struct param *params_find(const struct params *p, const char *name);
/* Matrices [out_i,in] that multiply the same operand: data, grad and packed of the following ones
 * lie directly behind the first's, which stands for one matrix of sum out_i rows. They stay tensors
 * of their own names, shapes and values. */
void params_stack(struct params *p, int first, int count);
int param_out(const struct param *w); /* rows of W and of what is stacked behind it */
/* Take each tensor from the arena as PART_WEIGHTS. */
void params_place(struct params *p, struct arena *a);
/* Likewise each tensor's gradient, as PART_GRADIENTS. Backward passes add to them, so that layers
 * may share a tensor and a step may take several segments; params_zero_grad starts a new sum. */
void params_place_grad(struct params *p, struct arena *a);
void params_zero_grad(struct params *p);
/* Use the values of a list of the same model, which must be placed before this one is. */
void params_borrow(struct params *p, const struct params *from);
/* Take room for the packed form of every linear map, for products of up to `rows` rows, as
 * PART_SCRATCH; params_pack fills it, when the weights have their values and again when they
 * change. */
void params_place_packed(struct params *p, const struct engine *g, int rows, struct arena *a);
void params_pack(struct params *p, const struct engine *g);
/* Fill by each tensor's rule; values depend on seed and name only. */
void params_init(struct params *p, uint64_t seed);
void params_free(struct params *p);

/* ---- parts -------------------------------------------------------------------------------- */

struct config;

/* Rows of heads that a scheme rotates: queries or keys behind their projection, or gradients on
 * their way back to it. */
struct rotation {
    float *x;         /* [B,rows,heads,dh] */
    ptrdiff_t stride; /* floats between sequences */
    int B, rows, heads;
    int64_t position; /* of row 0 in the stream */
    bool back;        /* by the negative angle */
};

/* A position scheme. Parameters come in two groups: once per model, once per layer; hooks receive
 * pointers to the first of each (in the order added). Unused hooks are NULL. */
struct pos {
    const char *name;
    bool past_only; /* it has no meaning for keys of the future */
    bool sinusoids; /* its codes are sinusoids of width D, which come in pairs */
    /* E_USAGE where its own fields of the config make no sense. */
    enum status (*check)(const struct config *c, struct err *e);
    /* Longest window that it has positions for; NULL = any. */
    int (*positions)(const struct config *c);
    void (*model_params)(const struct config *c, struct params *p);
    void (*layer_params)(const struct config *c, const char *prefix, struct params *p);
    /* Constant codes, computed once per model for up to K positions and shared by its layers. */
    size_t (*n_codes)(const struct config *c, int K); /* floats */
    void (*codes)(const struct config *c, int K, float *codes);
    /* What is added to the embedding h [B,L,D]; positions count from the window's start. */
    void (*embed)(const struct config *c, const struct param *model, const float *codes, float *h,
                  int B, int L);
    /* Its backward: add to the weights' gradients, given that of h. */
    void (*embed_grad)(const struct config *c, const struct param *model, const float *d_h, int B,
                       int L);
    /* What is added to a layer's input x [B,L,D] (and stays in the stream). */
    void (*enter)(const struct config *c, const struct param *layer, float *x, int B, int L);
    /* Rotate projected queries and keys in place, before anything remembers or reads them; codes
     * are those of `codes` for at least t->rows positions. */
    void (*rotate)(const struct engine *g, const struct config *c, const float *codes,
                   const struct rotation *t);
    /* Compile the scheme to data, in two steps. reserve: take the tables for up to K keys from the
     * arena (PART_REL_POS) and point the terms of `a` at them or at the weights. lower: fill the
     * tables from the weights, when they have their values and again when they change. */
    void (*reserve)(const struct config *c, const struct param *model, const struct param *layer,
                    int K, struct arena *arena, struct attn *a);
    void (*lower)(const struct engine *g, const struct config *c, const struct param *model,
                  const struct param *layer, const float *codes, struct attn *a);
    /* FLOP of lowering when it happens inside a timed region (W_r R). */
    double (*lower_flop)(const struct config *c, int K);
    /* Backward of enter: add to the weights' gradients, given that of the entered x. */
    void (*enter_grad)(const struct config *c, const struct param *layer, const float *d_x, int B,
                       int L);
    /* Backward of reserve and lower. terms_grad: before attention's backward of `a` (which may have
     * been resized since reserve), point the terms of `d` at the weights' gradients, or at zeroes
     * in `tables`, which has n_tables_grad floats for up to K keys. lower_grad: afterwards, map
     * what arrived in the tables back to the weights. */
    size_t (*n_tables_grad)(const struct config *c, int K);
    void (*terms_grad)(const struct config *c, const struct param *model, const struct param *layer,
                       const struct attn *a, float *tables, struct attn_grad *d);
    void (*lower_grad)(const struct engine *g, const struct config *c, const struct param *model,
                       const struct param *layer, const float *codes, const struct attn *a,
                       const struct attn_grad *d);
};

/* A gate g(x, y); y is the sub-module's output after ReLU. */
struct gate {
    const char *name;
    int n_matrices; /* D x D products per row */
    void (*params)(const struct config *c, const char *prefix, struct params *p);
    /* Floats of work space per row and unit of D. */
    int work;
    /* out [rows,D] is neither x nor y. */
    void (*forward)(const struct engine *g, const struct config *c, const struct param *w,
                    float *out, const float *x, float *y, int rows, float *work);
    /* Floats of further work space of backward per row and unit of D. */
    int work_grad;
    /* d_x, d_y [rows,D] from d_out; d_x may be d_out. x, y and `work` as forward had and left them;
     * `work` is used up. Adds to the weights' gradients. */
    void (*backward)(const struct engine *g, const struct config *c, const struct param *w,
                     float *d_x, float *d_y, const float *d_out, const float *x, const float *y,
                     int rows, float *work, float *more);
};

/* A feed-forward network. The prefix of its parameters ends in "ff." (or "ff0."), so that a layer
 * may have two. `work` is the caller's, of as many floats as the hook of that name says for `rows`
 * rows; forward leaves in it what `aux` and, where `keep` is set, backward read. */
struct dropout;
struct ffn {
    const char *name;
    enum act_kind act; /* of the hidden units */
    void (*params)(const struct config *c, const char *prefix, struct params *p);
    double (*flop)(const struct config *c, int rows);
    size_t (*work)(const struct config *c, int rows, bool keep);
    size_t (*work_grad)(const struct config *c, int rows); /* further ones of backward */
    /* y [rows,D] = FFN(x [rows,D]), which goes on to `leave`: its kind, y and add are the caller's,
     * the rest is set here. Where leave.y is not y, y is work space.
     * Hidden units are dropped by `drop`, whose p may be 0. */
    void (*forward)(const struct engine *g, const struct config *c, const struct param *w, float *y,
                    const float *x, int rows, float *work, bool keep, struct act leave,
                    const struct dropout *drop);
    /* d_x [rows,D] from d_y; x and work as forward had and left them (kept), `more` is the further
     * work space. Adds to the weights' gradients, the last bias included, and to all of them those
     * of aux_coef times the auxiliary loss. */
    void (*backward)(const struct engine *g, const struct config *c, const struct param *w,
                     float *d_x, const float *d_y, const float *x, int rows, const float *work,
                     float *more, const struct dropout *drop);
    /* The auxiliary loss of the forward call that left `work`, to be added to the loss with the
     * factor aux_coef; NULL = none. */
    double (*aux)(const struct config *c, int rows, const float *work);
};

/* A map of source rows in front of q, k and v, with parameters of its own for the nth attention of
 * a model. `work` is the caller's, of as many floats as the hook of that name says for `rows` rows;
 * what comes out, y [rows,width], is its beginning, and backward reads all of it. */
struct before_qkv {
    const char *name;
    int (*width)(const struct config *c);
    void (*params)(const struct config *c, int nth, const char *prefix, struct params *p);
    double (*flop)(const struct config *c, int nth, int rows);
    size_t (*work)(const struct config *c, int nth, int rows);
    size_t (*work_grad)(const struct config *c, int nth, int rows); /* further ones of backward */
    void (*forward)(const struct engine *g, const struct config *c, int nth, const struct param *w,
                    const float *x, int rows, float *work);
    /* d_x [rows,D] from d_y [rows,width], which is used up. Adds to the weights' gradients. */
    void (*backward)(const struct engine *g, const struct config *c, int nth, const struct param *w,
                     float *d_x, float *d_y, const float *x, int rows, const float *work,
                     float *more);
};

/* How tokens of past reach a layer. */
struct mem {
    const char *name;
    bool recurrent;  /* caches states of earlier segments; otherwise the window is recomputed */
    bool compressed; /* recurrent, and half of its rows are compressed; needs hidden states */
    bool state;      /* carries numbers of a fixed size that all of the past went into */
};

/* What stands where attention does. `features` says what its queries and keys go through, and eps
 * is what its divisors begin with by default (struct linear_attn). */
struct sub_kind;
enum feature_map { FEATURES_NONE, FEATURES_ELU, FEATURES_EXP, FEATURES_COSH };
struct mixer {
    const char *name;
    const struct sub_kind *kind;
    enum feature_map features;
    float eps;
};

/* How a sub-layer's f joins the stream: equations in sub.c. The wiring decides what a layer is:
 * attention and feed-forward, for Macaron attention between two halves of a feed-forward. */
enum wiring {
    WIRING_POST,
    WIRING_PRE,
    WIRING_REORDER,
    WIRING_REZERO,
    WIRING_MACARON_PRE,
    WIRING_MACARON_POST,
    WIRING_COUNT
};
extern const char *const wiring_name[WIRING_COUNT]; /* "post" "pre" "reorder" "rezero" ... */
bool wiring_norms_first(enum wiring w);             /* f is given normalised rows */
bool wiring_norms_after(enum wiring w);             /* the sum is normalised */

enum { ORDER_MOST = 256 };

/* Sparse masks of a model's attention; heads take head[] in turn. n = 0: none. */
enum { MASK_MOST = 4, MASK_HEADS = 32, MASK_TEXT = 256 };
struct masks {
    int n, n_heads;
    struct mask at[MASK_MOST];
    uint8_t head[MASK_HEADS];
};

extern const char *const norm_kind_name[NORM_KIND_COUNT]; /* "layer" "rms" "scale" "unbiased" */
/* How rows too old for memory become fewer. */
enum compress { COMPRESS_MEAN, COMPRESS_MAX, COMPRESS_CONV, COMPRESS_COUNT };
extern const char *const compress_name[COMPRESS_COUNT]; /* "mean" "max" "conv" */
enum sinusoid { SINUSOID_CONCAT, SINUSOID_INTERLEAVED };
enum rope_pairs { ROPE_NEIGHBOURS, ROPE_HALVES };

/* ---- variants ----------------------------------------------------------------------------- */

/* Options of the command line that mean something for a variant; an axis that does not apply
 * neither multiplies cells nor fills its column. */
/* What becomes of the scores of one attention in the next: nothing, they are added to its own, or
 * that and softmax sees the mean of them. */
enum carry { CARRY_NONE, CARRY_SUM, CARRY_MEAN, CARRY_COUNT };
extern const char *const carry_name[CARRY_COUNT]; /* "none" "sum" "mean" */

enum axis { AXIS_CLIP = 1, AXIS_CLAMP = 2, AXIS_SAME_LENGTH = 4, AXIS_GATE = 8, AXIS_MASK = 16 };

/* How a position of a model that runs its layers several times decides that it is done: never, or
 * when its halting weights add up to nearly 1, as published (Graves 2016) or in the form of the
 * authors' program (Tensor2Tensor). Equations: depth.c. */
enum halt_kind { HALT_NEVER, HALT_GRAVES, HALT_T2T, HALT_KINDS };
extern const char *const halt_name[HALT_KINDS]; /* "none" "graves" "t2t" */

struct variant {
    const char *name, *alias; /* alias may be NULL */
    const char *paper, *about;
    const struct pos *pos;
    const struct mem *mem;
    const struct gate *gate; /* default; NULL = plain residual without ReLU */
    const struct ffn *ffn;
    const struct before_qkv *before_qkv; /* NULL = none */
    const struct mixer *mixer;           /* NULL = attention */
    enum wiring wiring;                  /* default */
    enum norm_kind norm_kind;            /* default */
    /* The order of a model's sub-layers, one letter each (sub_list.h), where it is not layer after
     * layer; NULL = it is. */
    void (*order)(char order[ORDER_MOST], int N);
    /* Head width and width of the feed-forward network for D and H, where nobody says otherwise;
     * NULL = D / H and 4 D. */
    void (*sizes)(int D, int H, int *dh, int *F);
    int products;  /* that make a score, each of variance dh: scale 1/sqrt(products dh); 0 = 1 */
    int kv_heads;  /* most heads of keys and values by default; 0 = all */
    bool untied;   /* logits have a matrix of their own by default */
    bool bare_ffn; /* the feed-forward network has no biases by default */
    const struct pos *more; /* a further scheme: see struct config */
    enum carry carry;
    int rnn_layers;      /* LocalRNNs in front of each attention by default */
    bool loops;          /* one layer, run N times */
    enum halt_kind halt; /* default */
    bool attn_bias;      /* projections have biases by default */
    bool bare_top;       /* no norm behind the last layer, even where norms come first */
    const char *mask;    /* sparse masks by default, as masks_parse reads them; NULL = none */
    unsigned axes;       /* enum axis */
};

extern const struct variant *const variants[];        /* the explicit list, NULL-terminated */
extern const struct gate *const gates[];              /* NULL-terminated */
extern const struct ffn *const ffns[];                /* NULL-terminated */
extern const struct pos *const positions[];           /* NULL-terminated */
extern const struct mixer *const mixers[];            /* NULL-terminated */
const struct variant *variant_find(const char *name); /* by name or alias; NULL */
const struct gate *gate_find(const char *name);
const struct ffn *ffn_find(const char *name);
const struct pos *pos_find(const char *name);
const struct mixer *mixer_find(const char *name);

/* One model of a variant. The shape alphabet has one meaning in the whole tree:
 * B sequences, L new positions, M remembered ones, K = M+L, D model width, H heads, dh head width
 * (H*dh need not equal D), F feed-forward width, N layers, V vocabulary. */
struct config {
    const struct variant *variant;
    const struct pos *pos;
    const struct gate *gate; /* NULL = none */
    const struct ffn *ffn;
    const struct before_qkv *before_qkv; /* NULL = none */
    const struct mixer *mixer;           /* NULL = attention */
    int features;                        /* random ones of a mixer that has them */
    float lin_eps;                       /* what the divisors of linear attention begin with */
    enum wiring wiring;
    char order[ORDER_MOST]; /* of its sub-layers, such as "ssfsff"; "" = layer after layer */
    enum norm_kind norm_kind;
    int D, H, dh, F, N, V;
    int kv_heads; /* heads of k and v; divides H */
    int mem_len;  /* positions of past that a layer keeps */
    enum compress compress;
    int cmem,
        c_ratio; /* compressed ones among the rows of memory, 0 = none; rows that become one */
    int max_seq; /* longest segment */
    int max_pos; /* rows of a learned table of positions; 0 = max_seq */
    /* attention */
    float scale; /* 1/sqrt(dh) unless a file says otherwise */
    bool causal, attn_bias;
    int window; /* keys visible per query including itself; 0 = all */
    struct masks masks;
    enum carry carry; /* of scores from layer to layer */
    /* What attention has beside positions: a scheme of its own, whose hooks check, layer_params,
     * reserve, lower and their backward are called behind those of pos; NULL = nothing. */
    const struct pos *more;
    int persistent;          /* keys and values that are parameters, per head */
    int span_ramp, span_max; /* adaptive span: tokens of its soft end, longest span */
    float span_cost;         /* what the mean span of a layer adds to the loss, per token */
    /* position schemes */
    int clip, rel_rows; /* Shaw: clip+1 rows (causal) or 2*clip+1 */
    bool rel_per_head, rel_k, rel_v;
    int clamp_len;    /* 0 = off */
    bool same_length; /* window = mem_len */
    enum sinusoid sinusoid;
    bool uv_per_layer;
    int rope_dim; /* coordinates of a head that are rotated */
    double rope_base;
    enum rope_pairs rope_pairs;
    int t5_buckets, t5_max_distance;
    bool t5_per_layer; /* else the layers share one table */
    bool tupe_bias;    /* TUPE with T5's bias in each layer */
    bool p2c_code;     /* DeBERTa: embeddings of the last term as in the authors' program */
    bool pos_q_bias;
    int syn_inner; /* Synthesizer: hidden units of a head; 0 = dh */
    /* DExTra: of the first and of the last layer, those between lie on a line */
    bool dextra_code;      /* the form of the authors' program, else that of the paper */
    int dextra_depth[2];   /* group linear transforms */
    float dextra_width[2]; /* the widest of them, of D */
    int glt_groups;        /* most groups */
    bool glt_shuffle, glt_norm;
    enum act_kind glt_act;
    /* feed-forward */
    bool ffn_bias;
    bool ffn_beta;                /* swish has a trained beta; else it is 1 */
    int experts, moe_k, capacity; /* moe: experts, those of a row, rows of one (0 = any number) */
    float aux_coef;               /* moe: what its auxiliary loss counts */
    /* LocalRNN (sub_rnn.c); carry: windows reach into the segment before */
    int rnn_layers, rnn_window;
    enum cell_kind rnn_cell;
    bool rnn_carry;
    /* depth (depth.c) */
    int steps; /* how often the N layers are run at most, with the same weights; 0 = plainly once */
    int step_base; /* number of the first step */
    enum halt_kind halt;
    float halt_eps, ponder_tau; /* from 1 - eps on it is nearly 1; what pondering costs */
    /* language model */
    bool tied, out_bias, final_ln;
    float emb_scale, ln_eps;
};

/* The variant's defaults for these sizes: scale 1/sqrt(dh), causal, tied, out_bias, emb_scale
 * sqrt(D), ln_eps 1e-5, clip 16, uv shared, all pairs of coordinates rotated, 32 shared buckets up
 * to distance 128. */
struct config config_default(const struct variant *v, int D, int H, int dh, int F, int N, int V);

/* Masks of a model of `v`: those that the text describes, "" = its own (parts/masks.h). */
enum status config_set_masks(struct config *c, const struct variant *v, const char *text,
                             const char *heads, struct err *e);

/* Heads of keys and values that it has by default: the most that H divides into, up to its own
 * number. */
int variant_kv_heads(const struct variant *v, int H);
/* Its sizes, see above. */
void variant_sizes(const struct variant *v, int D, int H, int *dh, int *F);

/* Divide M rows of memory into plain and compressed ones where the variant does. */
void config_compress(struct config *c, int M);
/* Rows of memory of a model that keeps mem_len plain ones: compressed and waiting ones are added.
 */
int config_memory(const struct config *c);

/* OK, or E_USAGE saying which choice makes no sense ("--clip 0..": ..., odd D with sinusoids). */
enum status config_check(const struct config *c, struct err *e);

#endif
