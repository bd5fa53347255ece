/* SPDX-License-Identifier: MIT
 *
 * The part of config_check for the layers of a model. */
#pragma once

#include "variants/variant.h"

/* OK, or E_USAGE naming the choices that exclude each other. */
enum status config_check_depth(const struct config *c, struct err *e);

/* The model as the layers of its encoder are (model/lm/encoder.h). */
struct config config_of_encoder(const struct config *c);
