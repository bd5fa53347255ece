/* SPDX-License-Identifier: MIT
 *
 * Every variant: a file variants/NAME.c that defines variant_NAME, and a row here: its name, and
 * the family that people look for it in (FAMILIES in variant.h). The first four are what the others
 * are compared with. */
#ifndef LIST_H
#define LIST_H

/* clang-format off */
/* X(name, family) */
#define VARIANTS(X) \
    X(vanilla, FULL) \
    X(shaw, POSITIONS) \
    X(xl, MEMORY) \
    X(gtrxl, ARCHITECTURE) \
    X(rezero, NORM) \
    X(macaron, ARCHITECTURE) \
    X(sandwich, ARCHITECTURE) \
    X(learned, POSITIONS) \
    X(rope, POSITIONS) \
    X(alibi, POSITIONS) \
    X(t5, POSITIONS) \
    X(kerple, POSITIONS) \
    X(gqa, HEADS) \
    X(mqa, HEADS) \
    X(rtransformer, ARCHITECTURE) \
    X(universal, ARCHITECTURE) \
    X(window, SPARSE) \
    X(dilated, SPARSE) \
    X(block, SPARSE) \
    X(strided, SPARSE) \
    X(fixed, SPARSE) \
    X(longformer, SPARSE) \
    X(bigbird, SPARSE) \
    X(llama, FULL) \
    X(scalenorm, NORM) \
    X(switch, FEED_FORWARD) \
    X(delight, ARCHITECTURE) \
    X(compressive, MEMORY) \
    X(realformer, HEADS) \
    X(realformer_mean, HEADS) \
    X(talking, HEADS) \
    X(span, SPARSE) \
    X(all_attention, FEED_FORWARD) \
    X(tupe, POSITIONS) \
    X(deberta, POSITIONS) \
    X(linear, RECURRENT) \
    X(performer, RECURRENT) \
    X(retnet, RECURRENT) \
    X(gla, RECURRENT) \
    X(mamba, RECURRENT) \
    X(mamba2, RECURRENT) \
    X(deltanet, RECURRENT) \
    X(gdn, RECURRENT) \
    X(kda, RECURRENT) \
    X(gla_hybrid, RECURRENT) \
    X(mamba2_hybrid, RECURRENT) \
    X(gdn_hybrid, RECURRENT) \
    X(kda_hybrid, RECURRENT) \
    X(qwen3_next, RECURRENT) \
    X(mlstm, RECURRENT) \
    X(hgrn2, RECURRENT) \
    X(rwkv6, RECURRENT) \
    X(rwkv7, RECURRENT) \
    X(mingru, RECURRENT) \
    X(minlstm, RECURRENT) \
    X(aan, RECURRENT) \
    X(synthesizer, HEADS) \
    X(synthesizer_random, HEADS) \
    X(funnel, COMPRESSED) \
    X(nope, POSITIONS) \
    X(yarn, POSITIONS) \
    X(qknorm, HEADS) \
    X(gemma, FULL) \
    X(gemma3, FULL) \
    X(gated, HEADS) \
    X(sink, HEADS) \
    X(streaming, MEMORY) \
    X(fox, POSITIONS) \
    X(value_residual, HEADS) \
    X(diff, HEADS) \
    X(cope, POSITIONS) \
    X(mla, COMPRESSED) \
    X(adanorm, NORM) \
    X(powernorm, NORM) \
    X(pkm, FEED_FORWARD) \
    X(hash, FEED_FORWARD) \
    X(prototypes, FEED_FORWARD) \
    X(cpe, POSITIONS) \
    X(evolved, ARCHITECTURE) \
    X(transparent, ARCHITECTURE) \
    X(exit, ARCHITECTURE) \
    X(exit_patience, ARCHITECTURE) \
    X(conditional, ARCHITECTURE) \
    X(bert, BIDIRECTIONAL) \
    X(image, SPARSE) \
    X(axial, SPARSE) \
    X(star, SPARSE) \
    X(dilated_heads, SPARSE) \
    X(multiscale, SPARSE) \
    X(music, POSITIONS) \
    X(tener, POSITIONS) \
    X(gaussian, POSITIONS) \
    X(hardcoded, POSITIONS) \
    X(freq, POSITIONS) \
    X(lazy, HEADS) \
    X(localness, POSITIONS) \
    X(man, POSITIONS) \
    X(capsules, HEADS) \
    X(collaborative, HEADS) \
    X(predictive, HEADS) \
    X(complex, POSITIONS) \
    X(floater, POSITIONS) \
    X(camtl, BIDIRECTIONAL) \
    X(linformer, COMPRESSED) \
    X(linformer_bi, BIDIRECTIONAL) \
    X(mca, COMPRESSED) \
    X(bp, SPARSE) \
    X(lite, ARCHITECTURE) \
    X(erniedoc, MEMORY) \
    X(feedback, MEMORY) \
    X(memformer, MEMORY) \
    X(routing, SPARSE) \
    X(reformer, SPARSE) \
    X(sinkhorn, SPARSE) \
    X(clustered, BIDIRECTIONAL) \
    X(informer, BIDIRECTIONAL) \
    X(nystrom, BIDIRECTIONAL) \
    X(poolingformer, COMPRESSED) \
    X(poolingformer_bi, BIDIRECTIONAL) \
    X(etc, BIDIRECTIONAL) \
    X(set, BIDIRECTIONAL)
/* clang-format on */

#endif
