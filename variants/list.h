/* SPDX-License-Identifier: MIT
 *
 * Every variant: a file variants/NAME.c that defines variant_NAME, and a word here. The first four
 * are what the others are compared with. */
#ifndef LIST_H
#define LIST_H

/* clang-format off */
#define VARIANTS(X) \
    X(vanilla) \
    X(shaw) \
    X(xl) \
    X(gtrxl) \
    X(rezero) \
    X(macaron) \
    X(sandwich) \
    X(learned) \
    X(rope) \
    X(alibi) \
    X(t5) \
    X(kerple) \
    X(gqa) \
    X(mqa) \
    X(rtransformer) \
    X(universal) \
    X(window) \
    X(dilated) \
    X(block) \
    X(strided) \
    X(fixed) \
    X(longformer) \
    X(bigbird) \
    X(llama) \
    X(scalenorm) \
    X(switch) \
    X(delight) \
    X(compressive) \
    X(realformer) \
    X(realformer_mean) \
    X(talking) \
    X(span) \
    X(all_attention) \
    X(tupe) \
    X(deberta) \
    X(linear) \
    X(performer) \
    X(retnet) \
    X(gla) \
    X(mamba) \
    X(mamba2) \
    X(deltanet) \
    X(gdn) \
    X(kda) \
    X(gla_hybrid) \
    X(mamba2_hybrid) \
    X(gdn_hybrid) \
    X(kda_hybrid) \
    X(mlstm) \
    X(hgrn2) \
    X(rwkv6) \
    X(rwkv7) \
    X(mingru) \
    X(minlstm) \
    X(aan) \
    X(synthesizer) \
    X(synthesizer_random) \
    X(funnel) \
    X(nope) \
    X(yarn) \
    X(qknorm) \
    X(gemma) \
    X(gated) \
    X(sink) \
    X(streaming) \
    X(fox) \
    X(value_residual) \
    X(diff) \
    X(cope) \
    X(mla) \
    X(adanorm) \
    X(powernorm) \
    X(pkm) \
    X(hash) \
    X(prototypes) \
    X(cpe) \
    X(evolved) \
    X(transparent) \
    X(exit) \
    X(exit_patience) \
    X(conditional) \
    X(bert) \
    X(image) \
    X(axial) \
    X(star) \
    X(dilated_heads) \
    X(multiscale) \
    X(music) \
    X(tener) \
    X(gaussian) \
    X(hardcoded) \
    X(freq) \
    X(lazy) \
    X(localness) \
    X(man)
/* clang-format on */

#endif
