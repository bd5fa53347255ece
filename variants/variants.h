/* SPDX-License-Identifier: MIT
 *
 * Every variant's value, for registry.c. */
#ifndef VARIANTS_H
#define VARIANTS_H

#include "variant.h"

extern const struct variant variant_vanilla, variant_shaw, variant_xl, variant_gtrxl,
    variant_rezero, variant_macaron, variant_sandwich, variant_learned, variant_rope, variant_alibi,
    variant_t5, variant_kerple, variant_gqa, variant_mqa;

#endif
