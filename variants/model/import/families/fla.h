/* SPDX-License-Identifier: MIT
 *
 * What models of flash-linear-attention share. */
#pragma once

#include "llama.h"

#define ATTENTION(name, in) .ours = "layers.*.attn." name, .published = "layers.*.attn." in

#define FLA_FAMILY                                                                                 \
    .prefix = "model.", .embedding = "embeddings.weight", .layers = "num_hidden_layers",           \
    .context = "max_position_embeddings", .usual_context = 2048, .endless = true

/* A width; null is as if it were absent. */
int fla_width(struct config_json *j, const char *key, int absent);
/* The feed-forward network, gated or not, is as wide as is said, or by a rule from the model's. */
void fla_put_inner(struct config_json *j, int width, bool gated);
/* Keys of how it is computed and trained. */
void fla_check_idle(struct config_json *j);
