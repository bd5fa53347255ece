/* SPDX-License-Identifier: MIT
 *
 * The kinds of parts that a variant is put together from. A part is a value of hooks; what one hook
 * needs of the model it reads from the config. Nothing here knows how attention is executed. */
#ifndef PART_H
#define PART_H

#include "choice.h"
#include "params.h"

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
    bool clips;     /* it tells distances apart up to config.clip */
    bool clamps;    /* distances beyond config.clamp_len share a row */
    /* E_USAGE where its own fields of the config make no sense. */
    enum status (*check)(const struct config *c, struct err *e);
    /* Longest window that it has positions for; NULL = any. */
    int (*positions)(const struct config *c);
    void (*model_params)(const struct config *c, struct params *p);
    void (*layer_params)(const struct config *c, const char *prefix, struct params *p);
    /* Constant codes, computed once per model for up to K positions and shared by its layers. */
    size_t (*n_pos_encoding)(const struct config *c, int K); /* floats */
    void (*pos_encoding)(const struct config *c, int K, float *pos_encoding);
    /* What is added to the embedding h [B,L,D]; positions count from the window's start. */
    void (*embed)(const struct config *c, const struct param *model, const float *pos_encoding,
                  float *h, int B, int L);
    /* Its backward: add to the weights' gradients, given that of h. */
    void (*embed_grad)(const struct config *c, const struct param *model, const float *d_h, int B,
                       int L);
    /* What is added to a layer's input x [B,L,D] (and stays in the stream). */
    void (*enter)(const struct config *c, const struct param *layer, float *x, int B, int L);
    /* Rotate projected queries and keys in place, before anything remembers or reads them; codes
     * are those of `codes` for at least t->rows positions. */
    void (*rotate)(const struct engine *g, const struct config *c, const float *pos_encoding,
                   const struct rotation *t);
    /* Compile the scheme to data, in two steps. reserve: take the tables for up to K keys from the
     * arena (PART_REL_POS) and point the terms of `a` at them or at the weights. lower: fill the
     * tables from the weights, when they have their values and again when they change. */
    void (*reserve)(const struct config *c, const struct param *model, const struct param *layer,
                    int K, struct arena *arena, struct attn *a);
    void (*build_tables)(const struct engine *g, const struct config *c, const struct param *model,
                         const struct param *layer, const float *pos_encoding, struct attn *a);
    /* FLOP of lowering when it happens inside a timed region (W_r R). */
    double (*build_tables_flop)(const struct config *c, int K);
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
    void (*build_tables_grad)(const struct engine *g, const struct config *c,
                              const struct param *model, const struct param *layer,
                              const float *pos_encoding, const struct attn *a,
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
struct qkv_map {
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
struct sublayer_kind;
enum feature_map { FEATURES_NONE, FEATURES_ELU, FEATURES_EXP, FEATURES_COSH };
struct mixer {
    const char *name;
    const struct sublayer_kind *kind;
    enum feature_map features;
    float eps;
};

#endif
