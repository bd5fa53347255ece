/* SPDX-License-Identifier: MIT
 *
 * Rotary frequencies that a GGUF file changes by a tensor, "rope_freqs.weight": what each is divided
 * by. Converters write it for llama3's scaling, in place of the scaling's numbers. */
#ifndef GGUF_ROPE_H
#define GGUF_ROPE_H

#include "variants/base/safetensors.h"

#include <jansson.h>

#define GGUF_ROPE_FREQS "rope_freqs.weight"

/* The scaling that these divisors of base^(-f/n) are of, n = t->n, as rope_scaling of config.json
 * says it, to be released: NULL if all are 1. E_IO naming the checkpoint if they are none of
 * llama3's. */
enum status gguf_rope_scaling(json_t **scaling, const struct tensor *t, double base,
                              const char *path, struct err *e);

#endif
