/* SPDX-License-Identifier: MIT
 *
 * The part of config_check for the layers of a model. */
#ifndef CONFIG_DEPTH_H
#define CONFIG_DEPTH_H

#include "variants/variant.h"

/* OK, or E_USAGE naming the choices that exclude each other. */
enum status config_check_depth(const struct config *c, struct err *e);

#endif
