/* SPDX-License-Identifier: MIT
 *
 * A language model on disk: a checkpoint of ours, or a published model.
 *
 * import/ holds published models: a file of rows for each kind, the formats that they are stored
 * in, and the choice between them and checkpoints. */
#pragma once

#include "published.h"
#include "variants/model/checkpoint/checkpoint.h"
#include "variants/model/lm/lm.h"

struct weights {
    struct config config;
    double mask_share; /* checkpoint_mask_share */
    bool is_published;
    struct safetensors file; /* of ours */
    struct published published;
};

/* Its config and its tensors fit each other. E_IO, see checkpoint_lm and published_open. */
enum status weights_open(struct weights *w, const char *path, struct err *e);
/* Likewise with an adapter (adapter.h) of a published model; NULL = none. */
enum status weights_open_adapted(struct weights *w, const char *path, const char *adapter,
                                 struct err *e);
void weights_close(struct weights *w);
/* Into the parameters of a model of w->config, or of one that differs in lengths only. */
enum status weights_load(const struct weights *w, struct params *p, struct err *e);

/* Place a model, and what runs beside it: `bind` takes all memory from the arena and is called twice,
 * first to count it. `map` (may be NULL) places it on a node, see arena_place. Both get `arg`. */
enum status lm_place(struct arena *a, enum huge_pages huge,
                     enum status (*bind)(void *arg, struct err *e),
                     enum status (*map)(void *arg, void *base, size_t size, struct err *e),
                     void *arg, struct err *e);
/* Then its weights, and the tables that follow from them. */
enum status lm_load(struct lm *m, const struct weights *w, struct engine *g, struct err *e);

/* The name under which the model was published, or "". */
const char *weights_source(const struct weights *w);
/* A value of our metadata; NULL if it is missing or the model is not ours. */
const char *weights_meta(const struct weights *w, const char *key);
/* The folder of its tokenizer: that of a published model, or one beside ours; "" = it has none. */
enum status weights_tokenizer(const struct weights *w, char folder[PUBLISHED_PATH], struct err *e);
/* 16 hex digits, XXH3 of all bytes of its files of weights, in the order of their tensors, and of its adapter. */
void weights_xxh3(const struct weights *w, char text[17]);
