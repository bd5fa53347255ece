/* SPDX-License-Identifier: MIT
 *
 * The part of config_check that is about the layers of a model. */
#ifndef CONFIG_DEPTH_H
#define CONFIG_DEPTH_H

#include "variants/variant.h"

/* OK, or E_USAGE saying what does not go together. */
enum status config_check_depth(const struct config *c, struct err *e);

#endif
