/* SPDX-License-Identifier: MIT
 *
 * Complex word embeddings: Wang et al. 2020, "Encoding word order in complex embeddings".
 *
 *   h_t = [r cos(w t + phi), r sin(w t + phi)]      r, w and phi of the token, by coordinate
 *
 * A word's position turns its coordinates, each at a rate of the word's own. Real and imaginary
 * parts stand side by side in a real network; the published one is complex throughout. */
#include "variants/parts/parts.h"

const struct variant variant_complex = {
    .name = "complex",
    .paper = "Wang et al. 2020, arXiv:1912.12333",
    .about = "as vanilla; words have a radius, a frequency and a phase for each coordinate",
    .control = "vanilla",
    .pos = &pos_complex,
    .mem = &mem_prefix,
    .untied = true,
};
