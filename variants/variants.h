/* SPDX-License-Identifier: MIT
 *
 * Every variant's value, for registry.c. */
#ifndef VARIANTS_H
#define VARIANTS_H

#include "variant.h"

extern const struct variant variant_vanilla, variant_shaw, variant_xl, variant_gtrxl;

#endif
