/* SPDX-License-Identifier: MIT
 *
 * A family of published models: which keys of config.json are which of ours, and where each tensor
 * of ours stands in the published files. A new family is a file with these rows. */
#pragma once

#include "config_json.h"
#include "variants/variant.h"

/* How the numbers of a tensor of ours lie in a published one that holds `parts` alike:
 *   ROWS     [parts * rows, columns], part after part; of experts [experts, parts * rows, columns]
 *   COLUMNS  [columns, parts * rows], transposed, likewise; vectors as ROWS
 *   HEADS    [heads, parts, rows / heads, columns]; where parts differ, `before` says the rows of a
 *            head before each, and `heads` how many heads there are
 *   STACK    rows of several tensors, one after the other, each with as many as it has
 *   JOIN     the other way round: of ours, `parts` published ones hold some rows each, one after the
 *            other; as many rows of the table say which
 *   EXPERTS  of ours, each expert has a published one, whose number is the second '*'
 *   FUSED    [experts, columns, parts * rows], transposed, the rows of all parts in turn; vectors
 *            [experts, parts * rows]
 *   MXFP4    in blocks of 4 bits (mxfp4.h), of all experts, with `scales` */
enum layout {
    LAYOUT_ROWS,
    LAYOUT_COLUMNS,
    LAYOUT_HEADS,
    LAYOUT_STACK,
    LAYOUT_JOIN,
    LAYOUT_EXPERTS,
    LAYOUT_FUSED,
    LAYOUT_MXFP4
};

/* Names are whole, or stand for what has ".weight" or ".bias" behind them; '*' is the layer. The
 * first row that matches a tensor applies. Tensors that the model ties are not read: the
 * output's table to the embedding's, a map of a cluster's output to that of its embedding, biases
 * of positions in all layers to one pair. */
enum tie { TIE_NONE, TIE_WORDS, TIE_MAP, TIE_LAYERS };
struct tensor_row {
    const char *ours, *published;
    enum layout layout;
    enum { EVERY_LAYER, ATTENDS, RECURS } of; /* of a model with layers of two kinds */
    int part, parts;                          /* parts 0 = 1 */
    /* STACK, JOIN: rows before part `part`; of all, if it is `parts`. */
    int64_t (*before)(const struct config *c, int part);
    int (*heads)(const struct config *c);
    bool if_there; /* where the files lack it, the next row that matches applies */
    bool taps;     /* [rows, 1, columns] */
    bool flat;     /* one row, without a dimension that says so */
    /* It may have fewer of these than ours, whose further ones are 0. */
    enum { PAD_NOTHING, PAD_ROWS, PAD_COLUMNS } pads;
    const char *scales; /* MXFP4: the published name of those of its blocks */
    const char *normed; /* rows pass this layer norm, where the config says so; NULL = none */
    bool plus_one;      /* its numbers are what is added to 1; computed, with it */
    bool log;           /* computed, its numbers are -exp of ours */
    bool bare;          /* has no prefix */
    bool bare_rest;     /* the published name is whole, whatever ours ends in */
    enum tie tie;
    const char *with; /* the published name of what it is tied to */
    bool backwards;   /* in files without a prefix its rows stand in reverse order */
};

/* Does `pattern` cover `name`, whole or up to its last dot? Then *layer is what stands for its '*',
 * -1 without, and *rest the suffix. */
bool tensor_row_covers(const char *pattern, const char *name, int *layer, const char **rest);
/* The name that `pattern` makes, with this prefix before it. */
void tensor_row_name(char to[TENSOR_NAME], const char *pattern, const char *prefix, int layer,
                     int expert, const char *rest);

/* A key of config.json that is one of ours. */
struct key_row {
    const char *published, *ours;
    enum { KEY_WHOLE, KEY_REAL, KEY_FLAG } type;
    double absent; /* the publisher's default; REQUIRED */
    double least, most;
};

/* A size that files of a family lack if it is this one. */
struct usual_size {
    const char *key;
    int is;
};

struct model_type {
    const char *name;                 /* model_type */
    const char *prefix;               /* of its tensors, with or without */
    const char *embedding;            /* the tensor that shows which */
    const char *layers;               /* the key that counts layers, for messages */
    const char *context;              /* the key of the longest window, and its default */
    int usual_context;                /* without the key */
    const char *aside;                /* tensors that begin so score no text; NULL = none */
    bool endless;                     /* its memory carries texts of any length */
    const struct alias *aliases;      /* of its keys */
    const struct usual_size *usual;   /* the last one has no key; NULL = none */
    const struct key_row *keys;       /* the last one has no name */
    const struct tensor_row *tensors; /* likewise */
    /* All that is no row: choices, and what is refused. */
    void (*more)(struct config_json *j);
};

/* Of a file with one kind of model. */
#define ROWS_OF_FILE .keys = keys, .tensors = tensors, .more = more

/* In the order of messages. */
#define MODEL_TYPES(X)                                                                             \
    X(cohere2)                                                                                     \
    X(deepseek_v2)                                                                                 \
    X(gated_deltanet)                                                                              \
    X(gemma2)                                                                                      \
    X(gemma3_text)                                                                                 \
    X(gla)                                                                                         \
    X(glm)                                                                                         \
    X(glm4)                                                                                        \
    X(gpt2)                                                                                        \
    X(gpt_neox)                                                                                    \
    X(gpt_oss)                                                                                     \
    X(granite)                                                                                     \
    X(granitemoehybrid)                                                                            \
    X(lfm2)                                                                                        \
    X(llama)                                                                                       \
    X(mamba2)                                                                                      \
    X(mistral)                                                                                     \
    X(mixtral)                                                                                     \
    X(olmo2)                                                                                       \
    X(phi3)                                                                                        \
    X(qwen2)                                                                                       \
    X(qwen2_moe)                                                                                   \
    X(qwen3)                                                                                       \
    X(qwen3_5_text)                                                                                \
    X(qwen3_moe)                                                                                   \
    X(qwen3_next)                                                                                  \
    X(rwkv7)                                                                                       \
    X(rwkv7_fla)                                                                                   \
    X(smollm3)                                                                                     \
    X(starcoder2)                                                                                  \
    X(transfo_xl)
#define X(name) extern const struct model_type model_type_##name;
MODEL_TYPES(X)
#undef X

/* NULL if it is unknown; their names, joined by commas. */
const struct model_type *model_type_find(const char *name);
const char *model_type_names(void);

/* ---- what families share ------------------------------------------------------------------ */

/* After all keys that a family has: what is left must change nothing. */
void import_refuse_strangers(struct config_json *j);

/* Which of our feed-forward networks an activation is; `gated` ones have other names. */
struct act_name {
    const char *published, *ours;
};
extern const struct act_name plain_acts[]; /* of networks without a gate */
/* Say the ffn of the key's activation. */
void import_put_ffn(struct config_json *j, const char *key, const char *absent,
                    const struct act_name *names);

/* Rotary frequencies: base, scaling and how many coordinates of a head, from either spelling. */
struct rotary {
    const char *base, *share; /* the family's own keys of the older one; NULL = rope_theta, and
                               * partial_rotary_factor */
    double usual_share;       /* of a head that is rotated; 0 = 1 */
    double usual_base;        /* 0 = 10000 */
    bool whole;               /* its program rotates whole heads only */
    const char *const *idle;  /* further keys, which say nothing of a text; NULL = none */
    int original;             /* tokens of the training where no key says it; 0 = the context */
    bool longrope_alone;      /* no other scaling; "su" and "yarn" are its older words for it */
};
/* Returns the base. */
double import_put_rotary(struct config_json *j, const struct rotary *r, int head);
/* Two bases: of layers that see a window, and of those that see all (full[l]), which `base` says. */
struct rotary_kinds {
    const char *base, *window_base; /* keys of the older spelling */
    double usual, usual_window;
};
void import_put_rotary_kinds(struct config_json *j, const struct rotary_kinds *r, const bool *full,
                             int head);

/* Refuse what a flag says other than `usual`, and a word other than the one that is supported, which
 * stands for an absent one. */
void import_need_flag(struct config_json *j, const char *key, bool usual);
void import_need_word(struct config_json *j, const char *key, const char *only);
/* Keys that say nothing of a text, such as those of training: the list ends with NULL. */
void import_skip(struct config_json *j, const char *const *keys);
#define SKIP(j, ...) import_skip(j, (const char *const[]){__VA_ARGS__, NULL})

/* What all families are where ours has a choice. */
void import_put_common(struct config_json *j, const char *variant);
