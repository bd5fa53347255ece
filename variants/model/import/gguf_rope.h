/* SPDX-License-Identifier: MIT
 *
 * Rotary frequencies that a GGUF file changes by tensors of what each is divided by. Converters write
 * "rope_freqs.weight" for llama3's scaling, in place of the scaling's numbers, and
 * "rope_factors_short.weight" and "rope_factors_long.weight" for longrope. Other scaling has keys. */
#pragma once

#include "variants/base/safetensors.h"

#include <jansson.h>

#define GGUF_ROPE_FREQS "rope_freqs.weight"

/* Is this key, without the family's name in front, of the scaling? */
bool gguf_rope_is_key(const char *key);

/* Say in `config`, as config.json would, how the keys of the family and the tensors of the n files
 * change frequencies; those tensors leave their file. E_IO naming the checkpoint and what is not
 * said there. */
enum status gguf_rope_put(json_t *config, const json_t *keys, const char *family,
                          struct safetensors *files, int n, const char *path, struct err *e);

/* The scaling that these divisors of base^(-f/n) are of, n = t->n, as rope_scaling of config.json
 * says it, to be released: NULL if all are 1. E_IO naming the checkpoint if they are none of
 * llama3's. */
enum status gguf_rope_scaling(json_t **scaling, const struct tensor *t, double base,
                              const char *path, struct err *e);

/* The file of this tensor, the first of n, and its place in it; NULL if none has it. */
struct safetensors *gguf_rope_find(struct safetensors *files, int n, const char *name, int *at);

/* Take tensor `at` out of the file. */
void gguf_rope_remove(struct safetensors *s, int at);

/* Take the two lists of longrope out of the n files, which become numbers of `scaling`; *found: one
 * has them. E_IO naming the checkpoint if there is one without the other, or one that is no list. */
enum status gguf_rope_lists(json_t *scaling, bool *found, struct safetensors *files, int n,
                            const char *path, struct err *e);
