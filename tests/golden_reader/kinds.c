/* SPDX-License-Identifier: MIT
 *
 * All kinds of golden files, in place of harness/check/golden_kinds.c. */
#include "reader.h"

const bool golden_is_all = true;
const struct golden_kind *const golden_kinds[] = {
    &golden_mixer,  &golden_channel_mix, &golden_operator,      &golden_lm,
    &golden_norm,   &golden_ffn,         &golden_map,           &golden_rnn,
    &golden_funnel, &golden_recur,       &golden_layer,         &golden_cross,
    &golden_hier,   &golden_seq2seq,     &golden_import_memory, &golden_import,
    NULL,
};
