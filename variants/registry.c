/* SPDX-License-Identifier: MIT
 *
 * The explicit lists. Adding a variant takes one file and one line here. */
#include "variants.h"
#include "variants/parts/parts.h"

#include <string.h>

const struct variant *const variants[] = {
    /* BASE_VARIANTS */
    &variant_vanilla,
    &variant_shaw,
    &variant_xl,
    &variant_gtrxl,
    /* further ones */
    &variant_rezero,
    &variant_macaron,
    &variant_sandwich,
    &variant_learned,
    &variant_rope,
    &variant_alibi,
    &variant_t5,
    &variant_kerple,
    &variant_gqa,
    &variant_mqa,
    &variant_rtransformer,
    &variant_universal,
    &variant_window,
    &variant_dilated,
    &variant_block,
    &variant_strided,
    &variant_fixed,
    &variant_longformer,
    &variant_bigbird,
    &variant_llama,
    &variant_scalenorm,
    &variant_switch,
    &variant_delight,
    &variant_compressive,
    &variant_realformer,
    &variant_realformer_mean,
    &variant_talking,
    &variant_span,
    &variant_all_attention,
    &variant_tupe,
    &variant_deberta,
    &variant_linear,
    &variant_performer,
    &variant_aan,
    &variant_synthesizer,
    &variant_synthesizer_random,
    &variant_funnel,
    NULL,
};

const struct gate *const gates[] = {
    &gate_gru, &gate_input, &gate_output, &gate_highway, &gate_sigtanh, &gate_residual, NULL,
};

const struct ffn *const ffns[] = {
    &ffn_relu,  &ffn_gelu,   &ffn_gelu_tanh, &ffn_swish, &ffn_glu, &ffn_reglu,
    &ffn_geglu, &ffn_swiglu, &ffn_bilinear,  &ffn_moe,   NULL,
};

const struct pos *const positions[] = {
    &pos_none,  &pos_sinusoid, &pos_learned, &pos_learned_layer, &pos_shaw,    &pos_xl, &pos_rope,
    &pos_alibi, &pos_t5,       &pos_kerple,  &pos_tupe,          &pos_deberta, NULL,
};

const struct mixer *const mixers[] = {
    &mixer_linear_elu,   &mixer_favor, &mixer_favor_hyp, &mixer_aan, &mixer_synth_dense,
    &mixer_synth_random, NULL};

const struct variant *variant_find(const char *name)
{
    for (int i = 0; variants[i]; i++)
        if (strcmp(variants[i]->name, name) == 0 ||
            (variants[i]->alias && strcmp(variants[i]->alias, name) == 0))
            return variants[i];
    return NULL;
}

const struct gate *gate_find(const char *name)
{
    for (int i = 0; gates[i]; i++)
        if (strcmp(gates[i]->name, name) == 0)
            return gates[i];
    return NULL;
}

const struct ffn *ffn_find(const char *name)
{
    for (int i = 0; ffns[i]; i++)
        if (strcmp(ffns[i]->name, name) == 0)
            return ffns[i];
    return NULL;
}

const struct pos *pos_find(const char *name)
{
    for (int i = 0; positions[i]; i++)
        if (strcmp(positions[i]->name, name) == 0)
            return positions[i];
    return NULL;
}

const struct mixer *mixer_find(const char *name)
{
    for (int i = 0; mixers[i]; i++)
        if (strcmp(mixers[i]->name, name) == 0)
            return mixers[i];
    return NULL;
}
