/* SPDX-License-Identifier: MIT
 *
 * Models on disk: metadata to a config, tensors to parameters. Golden files and
 * checkpoints share the format; the former put "param." in front of every name.
 *
 * checkpoint/ holds the files of this program; those of others are in import/. */
#pragma once

#include "variants/base/safetensors.h"
#include "variants/variant.h"

/* The model that a file describes. E_IO naming the file and the key that is missing, unknown or
 * wrong: files obey the same rows and config_check as command lines. `prefix` ("" or
 * "param.") stands before the names of tensors. */
enum status checkpoint_config(const struct safetensors *s, const char *prefix, struct config *c,
                              struct err *e);

/* Likewise of a variant that is given: in golden files its name decides nothing that fields say. */
enum status checkpoint_config_as(const struct safetensors *s, const char *prefix,
                                 const struct variant *v, struct config *c, struct err *e);
/* The variant of a golden file: the one of its name, or a plain one of a name that is unknown, with
 * the memory that the file's fields ask for. `room` holds it if it is none of the registry. */
const struct variant *checkpoint_variant(const struct safetensors *s, struct variant *room);

/* Is the key a model's, and says what this model is? */
bool checkpoint_agrees(const struct safetensors *s, const char *key, const struct config *c);

/* Does it describe something in place of attention (struct mixer)? */
bool checkpoint_mixes(const struct safetensors *s);

/* Only what norms, feed-forward networks and LocalRNNs are, and the numbers of the config's parts,
 * into a config that has the other sizes. */
enum status checkpoint_parts(const struct safetensors *s, const char *prefix, struct config *c,
                             struct err *e);
/* Only the map in front of q, k and v, into a config that has its other sizes. */
enum status checkpoint_map(const struct safetensors *s, struct config *c, struct err *e);
/* config_check of what the two have read: E_IO naming the file. */
enum status checkpoint_check(const struct safetensors *s, const struct config *c, struct err *e);

/* Does the file hold these parameters and no others under `prefix`? With a prefix all but buffers.
 * E_IO naming the first tensor that is missing, of another type or shape, outside its bounds, or
 * not one of these parameters. */
enum status checkpoint_fits(const struct safetensors *s, const char *prefix, const struct params *p,
                            struct err *e);

/* Copy the values of these parameters from a file that fits. */
enum status checkpoint_load(const struct safetensors *s, const char *prefix, struct params *p,
                            struct err *e);

/* The language model that a checkpoint holds, whole: its config and tensors fit each other, no key
 * is unknown, it is of the variant that it says, and tokens see their past only. Allocates nothing
 * for the weights. */
enum status checkpoint_lm(const struct safetensors *s, struct config *c, struct err *e);

/* What a checkpoint says besides its model; NULL texts are left out. */
struct provenance {
    const char *unit, *corpus, *corpus_xxh3;
    const char *source;    /* the published model that it was */
    const char *tokenizer; /* the folder of its tokenizer, beside the file */
    int step;
    uint64_t seed;
    double mask_share; /* see checkpoint_mask_share */
    double lora_alpha; /* of products of low rank (optimise/lora.h); 0 = there are none */
    bool lora_turned;  /* of maps that are published as [in,out] */
};

/* The share of the tokens that were hidden in training; the model fills them in, and predicts no
 * next token. Its last word stands for a hidden one. 0: it predicts the next token. */
enum status checkpoint_mask_share(const struct safetensors *s, double *share, struct err *e);

/* Write config and parameters to `path`, atomically (safetensors_write). */
enum status checkpoint_save(const char *path, const struct config *c, const struct params *p,
                            const struct provenance *from, struct err *e);

/* Would files say the same of both but the variant's name? Then they are one model. */
bool checkpoint_same_model(const struct config *a, const struct config *b);

/* One parameter-shaped tensor under another name, for files that hold more than weights. */
struct tensor checkpoint_tensor(const struct param *p, const char *prefix, const float *data);
