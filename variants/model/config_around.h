/* SPDX-License-Identifier: MIT
 *
 * Internal to config.c. */
#ifndef CONFIG_AROUND_H
#define CONFIG_AROUND_H

#include "variants/variant.h"

enum status config_check_around(const struct config *c, struct err *e);

#endif
