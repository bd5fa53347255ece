/* SPDX-License-Identifier: MIT
 *
 * Linformer: Wang et al. 2020, "Linformer: Self-Attention with Linear Complexity".
 *
 *   o = softmax(scale q (E k)^T) (F v)        E, F [r, T] learned, for texts of up to T tokens
 *
 * Every row of E k is of the whole text, so this is for whole texts (linformer-bi). The causal form
 * maps complete blocks of c tokens to r rows each, E, F [r, c] (after Zhu et al. 2021, "Long-Short
 * Transformer", arXiv:2107.02192): a query sees these rows of all blocks before its own, and of its
 * own block the tokens up to itself. Remembered are r K/c rows, and those of the block that is not
 * complete. */
#include "variant.h"
#include "variants/model/sublayer/sublayer.h"
#include "variants/parts/parts.h"

const struct mixer mixer_linformer = {
    .name = "linformer", .numbers = &linformer_numbers, .kind = &sublayer_linformer, .both = true};

const struct variant variant_linformer = {
    .name = "linformer",
    .paper = "Wang et al. 2020, arXiv:2006.04768",
    .about = "blocks before a query's own are mapped to fewer rows; causal",
    .control = "vanilla",
    .pos = &pos_none,
    .mem = &mem_segment,
    .ffn = &ffn_relu,
    .mixer = &mixer_linformer,
    .wiring = WIRING_POST,
};

const struct variant variant_linformer_bi = {
    .name = "linformer-bi",
    .paper = "Wang et al. 2020, arXiv:2006.04768",
    .about = "keys and values of a whole text are mapped to fewer rows",
    .control = "bert",
    .pos = &pos_learned,
    .mem = &mem_none,
    .ffn = &ffn_gelu,
    .mixer = &mixer_linformer,
    .wiring = WIRING_POST,
    .attn_bias = ATTN_BIASED,
    .bidirectional = true,
};
