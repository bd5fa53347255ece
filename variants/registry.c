/* SPDX-License-Identifier: MIT
 *
 * The explicit lists. Adding a variant is one file and one line here. */
#include "parts/parts.h"
#include "variants.h"

#include <string.h>

const struct variant *const variants[] = {
    &variant_vanilla, &variant_shaw,     &variant_xl,      &variant_gtrxl, &variant_rezero,
    &variant_macaron, &variant_sandwich, &variant_learned, &variant_rope,  &variant_alibi,
    &variant_t5,      &variant_kerple,   &variant_gqa,     &variant_mqa,   NULL,
};

const struct gate *const gates[] = {
    &gate_gru, &gate_input, &gate_output, &gate_highway, &gate_sigtanh, &gate_residual, NULL,
};

const struct ffn *const ffns[] = {
    &ffn_relu,  &ffn_gelu,   &ffn_gelu_tanh, &ffn_swish, &ffn_glu, &ffn_reglu,
    &ffn_geglu, &ffn_swiglu, &ffn_bilinear,  &ffn_moe,   NULL,
};

const struct pos *const positions[] = {
    &pos_none, &pos_sinusoid, &pos_learned, &pos_learned_layer, &pos_shaw, &pos_xl,
    &pos_rope, &pos_alibi,    &pos_t5,      &pos_kerple,        NULL,
};

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
