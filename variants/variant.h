/* SPDX-License-Identifier: MIT
 *
 * The types of what is compared. A variant is a value: position scheme + memory + residual wiring +
 * feed-forward. A `struct config` is one model of a variant: its sizes and choices, without
 * weights. Both are independent of how attention is executed. */
#pragma once

#include "variants/parts/part.h"

/* How a sub-layer's f is added to the stream: equations in sublayer_forward.c. The wiring decides
 * what a layer is: attention and feed-forward; for Macaron attention between two halves of a
 * feed-forward. */
enum wiring {
    WIRING_POST,
    WIRING_PRE,
    WIRING_REORDER,
    WIRING_REZERO,
    WIRING_MACARON_PRE,
    WIRING_MACARON_POST,
    WIRING_PARALLEL,
    WIRING_PERI,
    WIRING_RES_POST,
    WIRING_ADMIN,
    WIRING_COUNT
};
extern const char *const wiring_name[WIRING_COUNT + 1]; /* "post" "pre" "reorder" ... NULL */
bool wiring_norms_first(enum wiring w);                 /* f reads normalised rows */
bool wiring_norms_after(enum wiring w);                 /* the sum is normalised */
bool wiring_norms_output(enum wiring w);                /* f itself is, before the sum */

enum { MAX_ORDER = 256, POOL_LEVELS = 8 }; /* a pool group has up to 2^8 tokens */
#define USUAL_SUBS "sf"                    /* of a layer */
enum { MAX_SUBS = 8 };                     /* letters of a layer, and the end of their text */

/* Long-short range attention (sublayer_lsra.c): channels that attend, and the convolution of the
 * others: groups of channels with weights of their own, taps, the own row included. */
struct lsra {
    int split, heads, kernel;
    bool glu, dynamic;
};

/* Which layers have a convolution at their input, if any has. */
enum cpe_layers { CPE_ALL, CPE_FIRST, CPE_LAYERS };
extern const char *const cpe_layers_name[CPE_LAYERS + 1]; /* "all" "first" NULL */

/* Which projections of attention have biases: none, all, or all but that of outputs. */
enum attn_bias { ATTN_UNBIASED, ATTN_BIASED, ATTN_BIASED_QKV, ATTN_BIASES };
extern const char *const attn_bias_name[ATTN_BIASES + 1]; /* "0" "1" "qkv" NULL */

/* Sparse masks of a model's attention; heads take head[] in turn. n = 0: none. */
enum { MAX_MASKS = 4, MASK_HEADS = 32, MASK_TEXT = 256 };
struct masks {
    int n, n_heads;
    struct mask at[MAX_MASKS];
    uint8_t head[MASK_HEADS];
};

/* The window of each head, layer by layer, both over and over; 0 = all keys. n = 0: none. */
enum { WINDOW_ROWS = 8, WINDOW_HEADS = 8 };
struct head_windows {
    int n, heads[WINDOW_ROWS];
    int at[WINDOW_ROWS][WINDOW_HEADS];
};

extern const char *const norm_kind_name[NORM_KIND_COUNT + 1]; /* "layer" "rms" "scale" ... NULL */
enum sinusoid { SINUSOID_CONCAT, SINUSOID_INTERLEAVED };
enum uv_place { UV_SHARED, UV_PER_LAYER }; /* biases u and v of pos_xl */

/* Which layers of a model attend, in turn; n = 0: all do, or all have the mixer. */
enum { MAX_STACK = 32 };
struct stack {
    int n;
    bool attends[MAX_STACK];
};

/* Words in clusters (model/lm/adaptive.h): the first word of each cluster after the first; widths
 * E / div^i, E 0 = D; whose maps are tied. n 0 and E 0: none. */
enum { MAX_CLUSTERS = 16 };
struct adaptive {
    int n, cut[MAX_CLUSTERS - 1];
    int E, div;
    int n_tie;
    bool tie[MAX_CLUSTERS];
};

/* What a memory begins with: nothing, or rows of zeros that are attended to. */
enum mem_start { MEM_START_EMPTY, MEM_START_ZEROS, MEM_STARTS };
extern const char *const mem_start_name[MEM_STARTS + 1]; /* "empty" "zeros" NULL */

/* The sub-layers of a model, by the letters of config.order and config.subs. */
enum sub_letter {
    SUB_ATTENTION = 's',
    SUB_FFN = 'f',
    SUB_HALF_FFN = 'h', /* Macaron's: half of its output is added */
    SUB_RNN = 'r',      /* LocalRNN, sublayer_rnn.c */
    SUB_POOLED = 'p', /* attention whose queries are means of two rows; halves the rows after it */
    SUB_UNPOOLED = 'u',  /* attention before which every token gets its row again */
    SUB_CPE = 'c',       /* convolution at a layer's input, sublayer_conv.c */
    SUB_SEP = 'w',       /* separable convolution, sublayer_conv.c */
    SUB_MASKED = 'd',    /* attention with its own weights and a trained mask */
    SUB_MANY = 'm',      /* attention with its own weights and twice as many heads */
    SUB_BRANCHES = 'b',  /* convolutions side by side, sublayer_conv.c */
    SUB_LSRA = 'l',      /* attention of some channels, convolution of the others */
    SUB_READ = 'x',      /* cross attention, sublayer_read.c */
    SUB_READ_BOTH = 'e', /* attention in both directions to rows that count, sublayer_read.c */
};

/* ---- variants ----------------------------------------------------------------------------- */

/* How the scores of one attention enter the next: not at all, added, or added with a softmax of
 * their mean. */
enum score_residual {
    SCORE_RESIDUAL_NONE,
    SCORE_RESIDUAL_SUM,
    SCORE_RESIDUAL_MEAN,
    SCORE_RESIDUAL_COUNT
};
extern const char
    *const score_residual_name[SCORE_RESIDUAL_COUNT + 1]; /* "none" "sum" "mean" NULL */

/* When a position of a model that repeats its layers halts: never, or when its halting weights sum
 * to nearly 1, as published (Graves 2016) or as in the authors' program (Tensor2Tensor). Equations:
 * depth.c. */
enum halt_kind { HALT_NEVER, HALT_GRAVES, HALT_T2T, HALT_KINDS };
extern const char *const halt_name[HALT_KINDS + 1]; /* "none" "graves" "t2t" NULL */

/* What the output reads: the last layer, or a sum of all (blend.c); with an encoder, what each layer
 * of the decoder reads of it (encoder.c). */
enum transparent { TRANSPARENT_NONE, TRANSPARENT_TOP, TRANSPARENT_KINDS };
extern const char *const transparent_name[TRANSPARENT_KINDS + 1]; /* "none" "top" NULL */

/* What a layer remembers of a segment: the rows that entered it, or those that left it. */
enum recur_kind { RECUR_SHIFTED, RECUR_SAME, RECUR_KINDS };
extern const char *const recur_name[RECUR_KINDS + 1]; /* "shifted" "same" NULL */

/* One memory of all layers (model/lm/feedback.h); shared: all layers have its keys and values. */
struct feedback_form {
    bool on, shared;
};

/* Rows that stand for earlier segments (model/lm/slots.h); 0 = none. What writes them: attention to
 * a segment, all of them; or its mean, one row for each segment. */
enum slot_write { SLOTS_ATTEND, SLOTS_MEAN, SLOT_WRITES };
extern const char *const slot_write_name[SLOT_WRITES + 1]; /* "attend" "mean" NULL */
struct slot_form {
    int n;
    enum slot_write write;
    float temp;
    bool bptt;
    int replay;
};

/* When a position stops before the last layer: never; or in training only, every layer having a
 * loss; or by these rules, and in training so (exit.h). */
enum exit_kind {
    EXIT_NONE,
    EXIT_TRAIN,
    EXIT_ENTROPY,
    EXIT_PATIENCE,
    EXIT_VOTES,
    EXIT_WINDOW,
    EXIT_KINDS
};
extern const char *const exit_name[EXIT_KINDS + 1]; /* "none" "train" "entropy" ... NULL */

/* Gates that skip sub-layers (sublayer_skip.h). */
enum cond_kind { COND_NONE, COND_SOFT, COND_HARD, COND_KINDS };
extern const char *const cond_name[COND_KINDS + 1]; /* "none" "soft" "hard" NULL */

/* Does a query see the keys after it, too? As a truth value: is attention causal? */
enum direction { DIRECTION_BOTH, DIRECTION_CAUSAL, DIRECTION_COUNT };
extern const char *const direction_name[DIRECTION_COUNT + 1]; /* "both" "causal" NULL */

/* What multiplies the outputs of heads; equations: model/attention/head_gate.c, steps/mix.h. */
enum out_gate {
    OUT_GATE_NONE,
    OUT_GATE_ELEMENTWISE, /* of attention: a logistic of each number, or of each head */
    OUT_GATE_HEADWISE,
    OUT_GATE_SWISH, /* of recurrent mixers */
    OUT_GATE_SIGMOID,
    OUT_GATE_COUNT
};
extern const char *const out_gate_name[OUT_GATE_COUNT + 1]; /* "none" "elementwise" ... NULL */

enum { MOST_AROUND = 4 }; /* parts of attention that a variant names */

/* How latent attention computes (variants/mla.c). */
enum mla_form { MLA_EXPANDED, MLA_ABSORBED, MLA_FORMS };
extern const char *const mla_form_name[MLA_FORMS + 1]; /* "expanded" "absorbed" NULL */

/* How pos_rope.c changes frequencies for longer contexts. */
enum rope_scaling {
    ROPE_PLAIN,
    ROPE_LINEAR,
    ROPE_NTK,
    ROPE_YARN,
    ROPE_LLAMA3,
    ROPE_LONGROPE,
    ROPE_DYNAMIC,
    ROPE_SCALINGS
};
extern const char *const rope_scaling_name[ROPE_SCALINGS + 1]; /* "none" "linear" ... NULL */

/* What longrope divides the frequency of each pair by. n = 0: nothing. */
enum { MAX_ROPE_PAIRS = 64 };
struct rope_list {
    int n;
    float at[MAX_ROPE_PAIRS];
};

/* Some layers: ranges that do not touch, in order. */
enum { MAX_LAYER_RANGES = 64 };
struct layer_ranges {
    int n;
    struct layer_range {
        short first, last;
    } at[MAX_LAYER_RANGES];
};

/* What a variant says and a choice of a model may replace: the parts, and numbers that have the same
 * meaning in both. */
#define CHOICES_OF_VARIANTS                                                                        \
    const struct pos *pos;                                                                         \
    const struct gate *gate; /* NULL = none: a plain residual without ReLU */                      \
    const struct ffn *ffn;                                                                         \
    const struct qkv_map *qkv_map; /* NULL = none */                                               \
    const struct mixer *mixer;     /* NULL = attention */                                          \
    enum wiring wiring;                                                                            \
    enum norm_kind norm_kind;                                                                      \
    /* The second scheme, for terms other than positions: its hooks check, layer_params, */        \
    /* reserve, build_tables and their backward are called after those of pos; NULL = none. */     \
    const struct pos *attn_extra;                                                                  \
    /* What is added to the embedding begins anew after every max_seq tokens, though a */          \
    /* memory of them stays; else it counts on with the stream. */                                 \
    bool pos_restart;                                                                              \
    struct stack stack; /* layers that alternate between the mixer and attention */                \
    enum score_residual score_residual; /* of scores from layer to layer */                        \
    /* Only the first of so many layers has queries and keys; the others have its */               \
    /* probabilities. 0 = every layer has. */                                                      \
    int lazy_group;                                                                                \
    int window;                      /* keys visible per query including itself; 0 = all */        \
    struct layer_list layer_windows; /* besides `window`; 0 = all keys */                          \
    /* Positions are slots of a cache of the first keys, so many, and the `window` newest; */      \
    /* 0 = off. Equations: sublayer_attention_streaming.c. */                                      \
    int stream_sinks;                                                                              \
    struct layer_list layer_rope_base; /* replaces rope_base; 0 = no positions in that layer */    \
    enum rope_scaling rope_scaling;                                                                \
    enum attn_bias attn_bias;                                                                      \
    bool share_qk;           /* of attention by content: keys are the unit vectors of queries */   \
    enum out_gate out_gate;  /* a choice, and recurrent mixers have it, too */                     \
    enum out_gate attn_gate; /* of the layers of a stack that attend */                            \
    float soft_cap;          /* of scores, a number of the core (struct attn); 0 = off */          \
    float head_eps;  /* of norms of a head, in attention and mixers; a variant's 0 is 1e-5 */      \
    float logit_cap; /* logits become cap tanh(logits / cap); 0 = off */                           \
    int rnn_layers;  /* LocalRNNs (sublayer_rnn.c) before each attention */                        \
    enum halt_kind halt;                                                                           \
    enum transparent transparent;                                                                  \
    /* Losses of training only (model/lm/auxiliary.h): of all layers; tokens that a state */       \
    /* predicts, the next included; a variant's 0 is 1. */                                         \
    bool aux_layers;                                                                               \
    int aux_targets;                                                                               \
    enum exit_kind exit;                                                                           \
    enum recur_kind recur;                                                                         \
    struct feedback_form feedback;                                                                 \
    enum cond_kind cond
struct choices_of_variant {
    CHOICES_OF_VARIANTS;
};

/* What a variant leaves out it has from the original Transformer: `ffn` NULL is ffn_relu, `wiring` 0
 * is post. `mem` NULL is mem_segment, or mem_none where it is bidirectional. */
struct variant {
    const char *name, *alias; /* alias may be NULL */
    const char *paper, *about;
    /* The same model without the idea, or the nearest one, as a command line names it: a variant,
     * and options; NULL = none. */
    const char *control;
    union {
        struct {
            CHOICES_OF_VARIANTS;
        };
        struct choices_of_variant is;
    };
    const struct mem *mem;
    /* The order of a model's sub-layers, one letter each (sublayer_list.h), if it is not layer
     * after layer; NULL = layer after layer. */
    void (*order)(char order[MAX_ORDER], int N);
    const char *subs; /* the sub-layers of every layer, if they are not "sf" */
    /* Default head width and feed-forward width for D and H; NULL = D / H and 4 D. */
    void (*sizes)(int D, int H, int *dh, int *F);
    int (*d_value)(int D, int H, int dh); /* default width of a head of values; NULL = dh */
    const struct variant *recurrent;      /* whose mixer's sizes its recurrent layers have */
    bool unscaled;                        /* the scale is 1 by default */
    int products;  /* summed in a score, each of variance dh: scale 1/sqrt(products dh); 0 = 1 */
    int kv_heads;  /* most key/value heads by default; 0 = all */
    bool untied;   /* logits have their own matrix by default */
    bool bare_ffn; /* the feed-forward network has no biases by default */
    bool loops;    /* one layer, run N times */
    int slots;
    enum slot_write slot_write;
    bool bare_top;    /* no norm after the last layer, even if norms come first */
    const char *mask; /* default sparse masks, as text for masks_parse; NULL = none */
    /* Its parts of attention (around_parts.h), with their usual numbers. */
    const struct around_part *around[MOST_AROUND];
    struct { /* of pos_shaw by default: tables of each head, none of values, clip (0 = 16) */
        bool per_head, keys_only;
        int clip;
    } shaw;
    bool em_routing;          /* of head_capsules by default: EM, not dynamic routing */
    const char *head_windows; /* default, as text; NULL = none */
    bool whole;               /* its layers run in a model only */
    bool bidirectional;       /* it is defined for whole texts only: no past, no next token */
};

/* Fields of a variant whose layers are as in Touvron et al. 2023, but for attention. */
#define LLAMA_LAYERS                                                                               \
    .ffn = &ffn_swiglu, .wiring = WIRING_PRE, .norm_kind = NORM_RMS, .bare_ffn = true

/* Of one that differs from rope, or from xl with norms first, in what it says besides. */
#define AS_ROPE .control = "rope", .pos = &pos_rope, .wiring = WIRING_PRE
#define AS_XL_PRE .control = "xl --norm pre", .pos = &pos_xl, .wiring = WIRING_PRE

/* Families of variants, in the order of lists: X(family, name, what its variants have). */
#define FAMILIES(X)                                                                                \
    X(FULL, "full", "every query sees all keys before it, and nothing else is new")                \
    X(POSITIONS, "positions", "how scores or rows tell where a token stands")                      \
    X(HEADS, "heads", "how scores, probabilities and outputs of heads are made")                   \
    X(SPARSE, "sparse", "a query sees some keys only")                                             \
    X(COMPRESSED, "compressed", "fewer or smaller keys and values: low rank, latents, means")      \
    X(RECURRENT, "recurrent", "a state in place of keys: linear attention, recurrences, hybrids")  \
    X(MEMORY, "memory", "what is kept of earlier segments")                                        \
    X(FEED_FORWARD, "feed-forward", "another feed-forward network: experts, memories")             \
    X(NORM, "norm", "another norm, or none")                                                       \
    X(ARCHITECTURE, "architecture", "other sub-layers, their order, depth, gates")                 \
    X(BIDIRECTIONAL, "bidirectional", "defined for whole texts only: attn and layer, no past")

#define X(family, name, about) FAMILY_##family,
enum family { FAMILIES(X) FAMILY_COUNT };
#undef X
extern const char *const family_name[FAMILY_COUNT + 1]; /* "full" "positions" ... NULL */
extern const char *const family_about[FAMILY_COUNT];
/* Of the i-th variant of the list. */
enum family variant_family(int i);

/* The explicit list, NULL-terminated. The first ones are the baselines. */
enum { BASE_VARIANTS = 4 };
extern const struct variant *const variants[];
extern const struct gate *const gates[];    /* NULL-terminated */
extern const struct ffn *const ffns[];      /* NULL-terminated */
extern const struct pos *const positions[]; /* NULL-terminated */
extern const struct mixer *const mixers[];  /* NULL-terminated */
extern const struct registry variant_registry, gate_registry, ffn_registry, pos_registry,
    mixer_registry;
const struct variant *variant_find(const char *name); /* by name or alias; NULL */
const struct gate *gate_find(const char *name);
const struct ffn *ffn_find(const char *name);
const struct pos *pos_find(const char *name);
const struct mixer *mixer_find(const char *name);

/* The kinds of parts that may have numbers of their own, and the parts of attention, of which a
 * model may have several. */
enum part_slot {
    SLOT_FFN,
    SLOT_MIXER,
    SLOT_MEM,
    SLOT_EXTRA,
    SLOT_POS,
    SLOT_QKV_MAP,
    SLOT_GATE,
    SLOT_NORM,
#define X(name) SLOT_##name,
    AROUND_PARTS(X)
#undef X
        SLOT_COUNT,
    SLOT_AROUND = SLOT_NORM + 1, /* the first of them */
    AROUND_COUNT = SLOT_COUNT - SLOT_AROUND
};

/* One model of a variant. The shape alphabet has one meaning in the whole tree:
 * B sequences, L new positions, M remembered ones, K = M+L, D model width, H heads, dh head width
 * (H*dh need not equal D), F feed-forward width, N layers, V vocabulary. */
struct config {
    const struct variant *variant;
    union { /* by default as its variant */
        struct {
            CHOICES_OF_VARIANTS;
        };
        struct choices_of_variant is;
    };
    char order[MAX_ORDER]; /* of its sub-layers, such as "ssfsff"; "" = layer after layer */
    char subs[MAX_SUBS];   /* the sub-layers of a layer in order, usually "sf" */
    int D, H, dh, F, N, V;
    int kv_heads; /* heads of k and v; divides H */
    int dv;       /* width of a head of values; 0 = dh */
    int mem_len;  /* positions of past that a layer keeps */
    int max_seq;  /* longest segment */
    int max_pos;  /* rows of a learned table of positions; 0 = max_seq */
    /* attention */
    float scale;      /* 1/sqrt(dh) unless a file says otherwise */
    bool depth_scale; /* the scores of layer l, from 0, are divided by l + 1 */
    enum direction causal;
    struct masks masks;
    struct layer_list layer_masks;    /* the mask of all heads of a layer, in place of masks.head */
    struct head_windows head_windows; /* besides `window` */
    enum mla_form mla;                /* of latent attention */
    struct recurrent_sizes {          /* of the mixer, in a stack */
        int H, dh, dv;                /* H 0 = those of attention */
        float scale;
    } recurrent;
    /* position schemes */
    int clip, rel_rows; /* Shaw: clip+1 rows (causal) or 2*clip+1 */
    bool rel_per_head, rel_k, rel_v;
    int clamp_len;    /* 0 = off */
    bool same_length; /* window = mem_len */
    enum sinusoid sinusoid;
    enum uv_place uv_per_layer;
    bool u_off, v_off;                      /* of pos_xl */
    float rope_factor;                      /* how many times as long the context becomes */
    struct rope_list rope_short, rope_long; /* of longrope: for texts up to rope_original, beyond */
    int text_len; /* tokens of its text, where that is known; 0 = all it sees; no part of files */
    /* feed-forward */
    bool ffn_bias;
    /* Layers without experts in a model with them (model/layers/dense_layers.h). */
    struct dense_layers {
        struct layer_ranges layers;
        int inner; /* 0 = F */
        const struct ffn *ffn;
    } dense;
    int rnn_window;
    enum rnn_cell_kind rnn_cell;
    bool rnn_carry; /* windows reach into the segment before */
    /* convolutions (sublayer_conv.c): taps, the own row included */
    int cpe_kernel, sep_kernel;
    enum cpe_layers cpe_layers;
    struct lsra lsra;
    /* depth (depth.c) */
    int steps; /* how often the N layers are run at most, with the same weights; 0 = plainly once */
    int step_base;              /* number of the first step */
    float halt_eps, ponder_tau; /* from 1 - eps on it is nearly 1; what pondering costs */
    float halt_bias;            /* of halting weights, before training */
    float aux_weight;           /* of the losses of later tokens */
    int enc_layers;             /* of an encoder (model/lm/encoder.h); 0 = the model has none */
    bool enc_padded; /* its texts differ in length: attention sees the rows that count; no part of
                      * files */
    struct slot_form slots;
    float exit_tau;            /* relative entropy below which a position stops */
    float budget, budget_coef; /* of gates, and the weight of its loss */
    int exit_patience;         /* layers with the same prediction after which it stops */
    float exit_power;          /* of the number of layers, which votes are divided by */
    int exit_window;           /* positions before it that must be certain, too */
    enum elem dtype;           /* of weights (params_hold); no part of files, which are float */
    enum elem kv_dtype;        /* of cached keys and values (MEM_KV); no part of files */
    enum row_elem act_dtype;   /* of rows that weights in blocks multiply; no part of files */
    /* language model */
    bool tied, out_bias, final_ln;
    float emb_scale, ln_eps;
    float logit_scale; /* logits are multiplied by it */
    float res_scale;   /* what a sub-layer adds is */
    bool ln_bias;      /* norms that have one have a bias */
    bool one_norm;     /* the sub-layers of a layer, side by side, read the same norm */
    struct adaptive adaptive;
    enum mem_start mem_start;
    /* The numbers of each part, in its own struct (struct part_numbers); zeros where it has none. */
    union part_values {
        double align;
        unsigned char bytes[MAX_NUMBERS];
    } numbers[SLOT_COUNT];
};

/* What the part in a slot has of its own; NULL = nothing. */
const struct part_numbers *config_numbers_of(const struct config *c, enum part_slot slot);
/* The part's struct. Only the part itself knows which. */
static inline const void *config_numbers(const struct config *c, enum part_slot slot)
{
    return c->numbers[slot].bytes;
}
/* Give all parts their usual numbers: after a part, mem_len or a size has been replaced. */
void config_numbers_reset(struct config *c);

/* The variant's defaults for these sizes: scale 1/sqrt(dh), causal, tied, out_bias, emb_scale
 * sqrt(D), ln_eps 1e-5, clip 16, uv shared, and the usual numbers of its parts. */
struct config config_default(const struct variant *v, int D, int H, int dh, int F, int N, int V);

/* Softmaxes of a head. It has as many queries and keys, and values and outputs are as many times as
 * wide; so are rows of all heads. Only head_diff.c has two, if its first number says so; widths are
 * asked for in every call, so that no list is searched here. */
static inline int config_maps(const struct config *c)
{
    return *(const bool *)config_numbers(c, SLOT_head_diff) ? 2 : 1;
}
static inline int config_q_width(const struct config *c) { return config_maps(c) * c->H * c->dh; }
static inline int config_kv_width(const struct config *c)
{
    return config_maps(c) * c->kv_heads * c->dh;
}

/* Does attention do more than project, attend and project (around_parts.h)? */
bool config_has_around(const struct config *c);
/* Can its queries see the keys after them? */
bool config_can_look_ahead(const struct config *c);

/* Can it attend to the rows of another sequence (cross.h)? Its scores are q.k and nothing else. */
bool config_can_cross(const struct config *c);

/* The window of a layer: the shorter of its own and that of all; 0 where it is part of a mask. */
int config_window(const struct config *c, int layer);

/* The window of one head of a layer, 0 = all keys. */
int config_head_window(const struct config *c, int layer, int h);

/* Of M remembered keys of a layer, those back to the first that a later query of any of its heads
 * may see; without what lies between them that none will see. */
int config_kept(const struct config *c, int layer, int M);
int config_needed(const struct config *c, int layer, int M);

/* The masks of a layer, or the one that streaming is. */
struct masks config_masks(const struct config *c, int layer);

/* Masks of a model of `v`: those that the text describes, "" = its own (parts/masks.h). */
enum status config_set_masks(struct config *c, const struct variant *v, const char *text,
                             const char *heads, struct err *e);

/* Heads of keys and values that it has by default: the most that H divides into, up to its own
 * number. */
int variant_kv_heads(const struct variant *v, int H);
static inline int config_dv(const struct config *c) { return c->dv ? c->dv : c->dh; }
/* Words in clusters (model/lm/adaptive.h), and the width of those of cluster i. */
static inline bool has_clusters(const struct config *c)
{
    return c->adaptive.n > 0 || c->adaptive.E > 0;
}
int config_cluster_width(const struct config *c, int i);
/* Its memory: that of its variant, or of a stack. */
const struct mem *config_mem(const struct config *c);
const struct mem *variant_mem(const struct variant *v);
/* The model as its recurrent layers see it, or its attention: c itself without a stack. */
struct config config_of_layers(const struct config *c, bool attends);
/* E_USAGE where its recurrent layers, whose states have H x keys x dv numbers, have more than
 * MAX_STATE (model/config/choices.h). `keys`: the width of a head's keys, or of their features. */
enum status config_check_state(const struct config *c, int keys, struct err *e);
/* As its sub-layers with trained masks see it: all of the past, whatever its window is. */
struct config config_of_masks(const struct config *c);
/* As its sub-layers with more heads see it: twice as many, half as wide, rounded up. */
struct config config_of_many(const struct config *c);
/* Are its layers recurrent ones and ones that attend? */
static inline bool config_is_hybrid(const struct config *c)
{
    return c->stack.n && !(c->mixer && c->mixer->block);
}
static inline bool config_attends(const struct config *c, int layer)
{
    return c->stack.n ? c->stack.attends[layer % c->stack.n] : !c->mixer;
}
/* Can several query heads share keys and values? */
bool config_groups(const struct config *c);
/* Its sizes, see above. */
void variant_sizes(const struct variant *v, int D, int H, int *dh, int *F);

/* Rows of memory of a model that keeps mem_len plain ones: compressed and waiting ones are added.
 */
int config_memory(const struct config *c);

/* OK, or E_USAGE saying which number is outside its bounds, or which choice makes no sense (odd D
 * with sinusoids). */
enum status config_check(const struct config *c, struct err *e);
