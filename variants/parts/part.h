/* SPDX-License-Identifier: MIT
 *
 * The kinds of parts that a variant is assembled from. A part is a struct of hooks; a hook reads
 * what it needs of the model from the config. Parts are independent of how attention is
 * executed. */
#pragma once

#include "choice.h"
#include "exclude.h"
#include "params.h"

struct config;
struct steps;

/* A part's own numbers: a struct, and a row for each number that may be chosen. A config keeps one
 * such struct for each kind of part, and one for each part of attention. */
struct part_numbers {
    const struct choice *choices; /* of that struct; the last row has no name */
    size_t size;                  /* NUMBERS_SIZE(struct) */
    const void *preset;           /* what they usually are; NULL = zeros */
    /* E_USAGE if the numbers make no sense; NULL = all do. */
    enum status (*check)(const struct config *c, const void *numbers, struct err *e);
    /* Completes the preset where it depends on the config; NULL = it does not. */
    void (*usual)(const struct config *c, void *numbers);
};
enum { MAX_NUMBERS = 160 };
#define NUMBERS_SIZE(type) sizeof(char[sizeof(type) <= MAX_NUMBERS ? (int)sizeof(type) : -1])
/* .size and .preset: {choices, PRESET(struct foo, .rank = 16)} */
#define PRESET(type, ...)                                                                          \
    .size = NUMBERS_SIZE(type), .preset = &(const type) { __VA_ARGS__ }
static inline void numbers_usual(const struct part_numbers *n, const struct config *c, void *to)
{
    if (n->preset)
        memcpy(to, n->preset, n->size);
    if (n->usual)
        n->usual(c, to);
}

/* Rows of heads that a scheme rotates: projected queries or keys, or, backwards, their
 * gradients. */
struct rotation {
    float *x;         /* [B,rows,heads,width]; the first coordinates of a head are rotated */
    ptrdiff_t stride; /* floats between sequences */
    int B, rows, heads, width;
    int64_t position; /* stream position of row 0 */
    int layer;        /* whose rows they are */
    bool back;        /* rotate by the negative angle */
};

/* What the hooks of a scheme's tables work on. */
struct pos_call {
    const struct engine *g; /* of build_tables and its backward */
    const struct config *c;
    const struct param *model, *layer; /* its first parameter of the model, of the layer */
    const float *pos_encoding;         /* of build_tables and its backward */
    struct attn *a;                    /* whose terms it fills in */
    int K;                             /* of reserve: the most keys */
    struct arena *arena;               /* of reserve */
    float *tables;                     /* of terms_grad */
    struct attn_grad *d;               /* of the two backward hooks */
};

/* A position scheme. Parameters come in two groups, per model and per layer; hooks receive pointers
 * to the first of each (in the order added). Unused hooks are NULL. */
struct pos {
    const char *name;
    const struct part_numbers *numbers; /* of this and the other kinds: NULL = none */
    const char *form; /* golden files name it so, under the key of that name; NULL = they don't */
    bool past_only;   /* not defined for future keys */
    bool no_content;  /* scores are positions only: no queries and keys */
    bool sinusoids;   /* its encodings are sinusoids of width D, which must be even */
    bool clips;       /* distances beyond config.clip share a row */
    bool clamps;      /* distances beyond config.clamp_len share a row */
    bool sinks;       /* keys that every query sees */
    bool by_distance; /* unclamped, its tables have a row for each distance, and no bias */
    bool by_steps;    /* one memory of all layers can have it (model/lm/feedback.h) */
    const enum feature *excludes; /* up to HAS_NO_MORE; NULL = none besides those of all */
    /* E_USAGE if its own numbers make no sense. */
    enum status (*check)(const struct config *c, struct err *e);
    /* Longest window that it has positions for; NULL = unlimited. */
    int (*positions)(const struct config *c);
    void (*model_params)(const struct config *c, struct params *p);
    void (*layer_params)(const struct config *c, const char *prefix, struct params *p);
    /* Constant encodings, computed once per model for up to K positions and shared by its
     * layers. `first` is the position of the first; schemes without `embed` are only given 0. */
    size_t (*n_pos_encoding)(const struct config *c, int K); /* floats */
    void (*pos_encoding)(const struct config *c, int64_t first, int K, float *pos_encoding);
    /* Likewise encodings that follow from weights, whenever these have changed. */
    void (*encode)(const struct config *c, const struct param *model, int K, float *pos_encoding);
    /* Add to the embedding h [B,L,D], whose first token has encoding `first` of pos_encoding. */
    void (*embed)(const struct config *c, const struct param *model, const float *pos_encoding,
                  int64_t first, float *h, int B, int L);
    /* Its backward: accumulate weight gradients, given d_h; K: rows of pos_encoding, which has room
     * for what its floats are besides. */
    void (*embed_grad)(const struct config *c, const struct param *model, float *pos_encoding,
                       int K, const float *d_h, int B, int L);
    /* In place of an embedding matrix: parameters that words have, h [B,L,D] from tokens, and the
     * backward of that. The output then has a matrix of its own. */
    void (*word_params)(const struct config *c, struct params *p);
    void (*from_tokens)(const struct config *c, const struct param *words, const int32_t *tokens,
                        int64_t first, float *h, int B, int L, int threads);
    void (*from_tokens_grad)(const struct config *c, const struct param *words,
                             const int32_t *tokens, const float *d_h, int B, int L, int threads);
    /* Add to a layer's input x [B,L,D], likewise; the sum stays in the residual stream. */
    void (*enter)(const struct config *c, const struct param *layer, int64_t first, float *x, int B,
                  int L);
    /* Rotate projected queries and keys in place, before they are stored or read; pos_encoding
     * covers at least t->rows positions. */
    void (*rotate)(const struct engine *g, const struct config *c, const float *pos_encoding,
                   const struct rotation *t);
    /* Translate the scheme to data, in two steps. reserve: take the tables for up to K keys from
     * the arena (PART_REL_POS) and point the terms of `a` at them or at the weights. build_tables:
     * compute the tables from the weights, initially and after each change of the weights. */
    void (*reserve)(const struct pos_call *t);
    const struct attn_weigh *weigh; /* in place of softmax; NULL = softmax */
    /* How much larger errors of scores may become of weights, or relative ones of their gradients,
     * than by softmax; NULL = not at all. */
    double (*amplifies)(bool backward);
    void (*build_tables)(const struct pos_call *t);
    /* FLOP of build_tables when it runs inside a timed region (W_r R). */
    double (*build_tables_flop)(const struct config *c, int K);
    /* Backward of enter: accumulate weight gradients, given that of its result. */
    void (*enter_grad)(const struct config *c, const struct param *layer, const float *d_x, int B,
                       int L);
    /* Backward of reserve and build_tables. terms_grad: before attention's backward of `a` (which
     * may have been resized since reserve), point the terms of `d` at the weights' gradients, or at
     * zeros in `tables`, which has n_tables_grad floats for up to K keys. build_tables_grad:
     * afterwards, map the gradients of the tables back to the weights. */
    size_t (*n_tables_grad)(const struct config *c, int K);
    void (*terms_grad)(const struct pos_call *t);
    void (*build_tables_grad)(const struct pos_call *t);
};

/* A gate g(x, y); y is the sub-module's output after ReLU. */
struct gate {
    const char *name;
    const struct part_numbers *numbers;
    int n_matrices; /* D x D products per row */
    void (*params)(const struct config *c, const char *prefix, struct params *p);
    /* Work space per row and unit of D, in floats. */
    int work;
    /* out [rows,D] is neither x nor y. */
    void (*forward)(const struct engine *g, const struct config *c, const struct param *w,
                    float *out, const float *x, float *y, int rows, float *work);
    /* Further work space of backward, likewise. */
    int work_grad;
    /* d_x, d_y [rows,D] from d_out; d_x may be d_out. x, y and `work` as in and after forward;
     * `work` is overwritten. Accumulates weight gradients. */
    void (*backward)(const struct engine *g, const struct config *c, const struct param *w,
                     float *d_x, float *d_y, const float *d_out, const float *x, const float *y,
                     int rows, float *work, float *grad_work);
};

/* A feed-forward network. The prefix of its parameters ends in "ff." (or "ff0."), so that a layer
 * may have two. The caller provides `work`, of the size given by the hook of that name for `rows`
 * rows; forward leaves in it what `aux` and, with `keep`, backward read. */
struct dropout;
/* Whole numbers that a forward pass chose, under their name in golden files. */
struct ffn_choice {
    const char *name;
    const int32_t *at;
    size_t n;
};
struct ffn {
    const char *name;
    const struct part_numbers *numbers;
    void (*build)(struct steps *t); /* its steps, in place of all that follows; NULL = none */
    bool mixes;                     /* a row's output may depend on the other rows */
    bool no_hidden;                 /* it has no hidden units: F means nothing */
    bool by_expert;                 /* hidden units lie expert by expert, not row by row */
    enum act_kind act;              /* of the hidden units */
    void (*params)(const struct config *c, const char *prefix, struct params *p);
    double (*flop)(const struct config *c, int rows);
    size_t (*work)(const struct config *c, int rows, bool keep);
    size_t (*work_grad)(const struct config *c, int rows); /* further work space of backward */
    /* Before forward: which token each row is; tokens NULL = the rows are of no text. NULL = it
     * does not depend on tokens. */
    void (*read_tokens)(const struct config *c, const struct param *w, const int32_t *tokens,
                        int rows, float *work);
    /* y [rows,D] = FFN(x [rows,D]), followed by `epilogue`: the caller sets its kind, y and add,
     * the rest is set here. If epilogue.y is not y, y is work space. `drop` applies to hidden
     * units; its p may be 0. */
    void (*forward)(const struct engine *g, const struct config *c, const struct param *w, float *y,
                    const float *x, int rows, float *work, bool keep, struct act epilogue,
                    const struct dropout *drop);
    /* d_x [rows,D] from d_y; x and work as in and after forward (with keep), `grad_work` is the
     * further work space. Accumulates weight gradients, including the last bias and those of
     * the weighted auxiliary loss. */
    void (*backward)(const struct engine *g, const struct config *c, const struct param *w,
                     float *d_x, const float *d_y, const float *x, int rows, const float *work,
                     float *grad_work, const struct dropout *drop);
    /* The auxiliary loss of the forward call that left `work`; it is added to the loss with a
     * weight of the part's own. NULL = none. */
    double (*aux)(const struct config *c, int rows, const float *work);
    /* What the forward call that left `work` chose; NULL = nothing. */
    struct ffn_choice (*chose)(const struct config *c, int rows, const float *work);
};

/* A map applied to source rows before q, k and v, with its own parameters in each attention of a
 * model. The caller provides `work`, of the size given by the hook of that name for `rows` rows;
 * the output y [rows,width] is at its beginning, and backward reads all of it. */
struct qkv_map {
    const char *name;
    const struct part_numbers *numbers;
    int (*width)(const struct config *c);
    void (*params)(const struct config *c, int nth, const char *prefix, struct params *p);
    double (*flop)(const struct config *c, int nth, int rows);
    size_t (*work)(const struct config *c, int nth, int rows);
    size_t (*work_grad)(const struct config *c, int nth, int rows); /* further work space of
                                                                     * backward */
    void (*forward)(const struct engine *g, const struct config *c, int nth, const struct param *w,
                    const float *x, int rows, float *work);
    /* d_x [rows,D] from d_y [rows,width], which is overwritten. Accumulates weight gradients. */
    void (*backward)(const struct engine *g, const struct config *c, int nth, const struct param *w,
                     float *d_x, float *d_y, const float *x, int rows, const float *work,
                     float *grad_work);
};

/* How past tokens reach a layer. */
struct mem {
    const char *name;
    const struct part_numbers *numbers;
    bool recurrent;  /* caches rows of earlier segments; otherwise the window is recomputed */
    bool cached;     /* not recurrent, but keys and values stay while its positions reach */
    bool compressed; /* recurrent, and half of its rows are compressed; needs hidden states */
    bool state;      /* carries a state of fixed size instead of rows, or in some of its layers */
    bool sums;       /* a state that forgets nothing: to hold M tokens it begins M tokens ago */
};

/* A replacement of attention. `build` lists its steps (steps/); `features` is the feature map of
 * its queries and keys, eps the default of its divisors' (struct recur). */
struct sublayer_kind;
struct content;
enum feature_map {
    FEATURES_NONE,
    FEATURES_TAYLOR,
    FEATURES_ELU,
    FEATURES_EXP,
    FEATURES_COSH,
    FEATURES_TRIG,
    FEATURES_RELU
};
struct mixer {
    const char *name;
    const struct part_numbers *numbers;
    const struct sublayer_kind *kind;
    enum feature_map features;
    float eps;
    bool unscaled; /* no product of queries and keys has the model's scale */
    bool gated;    /* the output has a gate (out_gate), of recurrent mixers */
    void (*build)(struct steps *t);
    const char *prefix; /* of the tensors of its steps in a layer; NULL = "attn." */
    bool counts;        /* its state is a sum of rows, whose number files call "count" */
    void (*model_params)(const struct config *c, struct params *p); /* that all layers share */
    bool attends; /* a softmax over keys: windows, masks and rotated positions apply to it */
    /* Attention whose pairs are chosen by content (model/content/content.h): rotated positions
     * apply to it, but no window or mask. */
    const struct content *content;
    bool both;                    /* it may see the keys after a query, if its numbers say so */
    const enum feature *excludes; /* as of struct pos */
    bool windowed;                /* it does not attend, but a window applies to it */
    bool has_ffn;                 /* a feed-forward network of width F is part of it */
    /* Its layers may stand between layers of attention, which see blocks of so many tokens; NULL =
     * they do not. */
    int (*block)(const struct config *c);
    bool wide; /* alone, its output is as wide as all heads, not as the stream */
    /* How much larger, relative to its output, errors of its input may become than sums of products
     * make them; NULL = mixer_amplifies says. */
    double (*amplifies)(const struct config *c);
};
