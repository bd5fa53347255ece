/* SPDX-License-Identifier: MIT
 *
 * Every variant's value, for registry.c. */
#ifndef VARIANTS_H
#define VARIANTS_H

#include "variant.h"

extern const struct variant variant_vanilla, variant_shaw, variant_xl, variant_gtrxl,
    variant_rezero, variant_macaron, variant_sandwich, variant_learned, variant_rope, variant_alibi,
    variant_t5, variant_kerple, variant_gqa, variant_mqa, variant_rtransformer, variant_universal,
    variant_window, variant_dilated, variant_block, variant_strided, variant_fixed,
    variant_longformer, variant_bigbird, variant_llama, variant_scalenorm, variant_switch,
    variant_delight, variant_compressive, variant_realformer, variant_realformer_mean,
    variant_talking, variant_span, variant_all_attention, variant_tupe, variant_deberta,
    variant_linear, variant_performer, variant_aan, variant_synthesizer, variant_synthesizer_random,
    variant_funnel;

#endif
