/* SPDX-License-Identifier: MIT
 *
 * Layers without experts in a model whose others have them: which, and their feed-forward network. */
#pragma once

#include "variants/variant.h"

/* Can it have such layers? */
bool dense_layers_possible(const struct config *c);
/* Has it any? */
bool dense_layers_any(const struct config *c);
bool dense_layers_has(const struct config *c, int layer);

/* The model as their feed-forward networks see it. */
struct config config_of_dense(const struct config *c);

/* "0-2,5": layers from 0, in order; "" = none. */
void dense_layers_print(char text[CHOICE_TEXT], const void *config);
enum status dense_layers_parse(void *config, const char *text, struct err *e);

/* Feed-forward networks without numbers of their own: a model has one set of these. NULL-terminated. */
extern const char *const dense_ffn_name[];
void dense_ffn_print(char text[CHOICE_TEXT], const void *config);
enum status dense_ffn_parse(void *config, const char *text, struct err *e);

/* OK, or E_USAGE naming a layer that the model does not have, or what is said of none. */
enum status dense_layers_check(const struct config *c, struct err *e);
