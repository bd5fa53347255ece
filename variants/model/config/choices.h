/* SPDX-License-Identifier: MIT
 *
 * What can be chosen of a model beside its variant and its sizes. One row is an option, a column, a
 * filter key, a word of the repro line, a part of what makes two cases the same, and a line of
 * --help. Numbers that belong to one part are that part's own (settings.h).
 *
 * X(name, type, codec, field, option, metavar, shown, unit, help, empty, scope, ...): `name` is the
 * column and the filter key, `type` that of the column, `field` the one of struct config, `option`
 * without dashes, `shown` the default in --help, `empty` when the column has no value; the rest is
 * what else the row of choice.h says, such as what files call it. The order is that of repro lines.
 *
 * config/ holds what a model is as values: its choices, settings and sizes, which of them go
 * together, and what files call them. It computes nothing of a model. */
#pragma once

#include "variants/variant.h"

enum { ROPE_FACTOR = 4 }; /* what is scaled without a factor has this one */

/* clang-format off */
#define MODEL_CHOICES(X)                                                                           \
    X(gate, text, ENTRY, gate, "gate", "LIST", "the variant's own", "",                            \
      "residual gate", "; empty where the variant has none", LAYER, .list = &gate_registry,        \
      .special = true, .applies = has_gate)                                                        \
    X(rnn_cell, text, WORD, rnn_cell, "rnn-cell", "LIST", "the variant's own", "",                 \
      "cell of the recurrence before attention", "; empty where there is none", LAYER,             \
      .words = rnn_cell_name, .special = true, .applies = has_rnn)                                 \
    X(halt, text, WORD, halt, "halt", "LIST", "the variant's own", "",                             \
      "when a position stops repeating layers", "; empty where nothing is repeated", MODEL,        \
      .words = halt_name, .special = true, .applies = has_steps,                                   \
      .key = "act", .absent = "none")                                                              \
    X(halt_eps, text, REAL, halt_eps, "halt-eps", "LIST", "0.01", "",                              \
      "what is left of the probability where a position stops repeating layers",                   \
      "; empty where none stops by it", MODEL, .most = 1, .special = true, .applies = ponders,     \
      .at_eval = true)                                                                             \
    X(exit_tau, text, REAL, exit_tau, "exit-tau", "LIST", "0.5", "",                               \
      "relative entropy of the prediction below which a position stops, 0 = never",                \
      "; empty where none stops by it", MODEL, .most = 1, .special = true,                         \
      .applies = has_exit_tau, .at_eval = true)                                                    \
    X(exit_patience, i64, INT, exit_patience, "exit-patience", "RANGE", "2", "layers",             \
      "layers with the same prediction after which a position stops",                              \
      "; empty where none stops by it", MODEL, .least = 1, .most = MAX_LAYERS, .special = true,    \
      .applies = has_exit_patience, .at_eval = true)                                               \
    X(direction, text, WORD, causal, "direction", "LIST", "causal", "",                            \
      "keys that a query sees: causal (none after it), or both (attn and layer without context, "     \
      "and train --objective mlm)",                                                                \
      "; empty where causal", CORE, .words = direction_name, .special = true,                      \
      .applies = has_direction, .unsaid = "causal",                                                \
      .key = "causal", .absent = "causal", .in_digits = true, .most = DIRECTION_COUNT - 1)              \
    X(clip, i64, INT, clip, "clip", "RANGE", "the variant's own", "tokens",                                       \
      "largest distance that has a row of its own", "; empty where positions have none", CORE, .most = MAX_DISTANCE, \
      .special = true, .applies = has_clip, .absent = "0")                                         \
    X(clamp_len, i64, INT, clamp_len, "clamp-len", "RANGE", "0", "tokens",                         \
      "distances beyond it share a row, 0 = off", "; empty where positions have none", CORE,       \
      .most = MAX_DISTANCE, .special = true, .applies = has_clamp, .at_eval = true, .absent = "0") \
    X(same_length, i64, FLAG, same_length, "same-length", NULL, NULL, "0/1",                       \
      "every query sees the same number of keys", "; empty without a cache", CORE,                 \
      .special = true, .applies = has_same_length, .at_eval = true, .absent = "0")                 \
    X(mask, line, TEXT, masks, "mask", "MASKS", "the variant's own", "",                           \
      "sparse masks: window=W,dilation=R block=B,back=N,memory=N,random=N stride=L "               \
      "fixed=L,summary=C global=G rect=HxW,row=N,margin=MxM, joined by commas; masks for the heads, in turn, are separated by semicolons", \
      "; empty where all keys are seen", CORE,                                                     \
      .special = true, .applies = has_masks,                                                       \
      .at_eval = true, .print = print_mask, .parse = parse_mask,                                   \
      .key = "masks", .absent = "")                                                                \
    X(mask_heads, text, TEXT, masks, "mask-heads", "HEADS", "in turn", "",                         \
      "number of the mask of each head, repeated, such as 0,0,1", "; empty where they take them in turn", \
      CORE,                                                                                        \
      .applies = has_masks, .at_eval = true, .print = print_mask_heads, .parse = parse_mask_heads, \
      .key = "mask_head", .absent = "")                                                            \
    X(mask_layers, text, LIST, layer_masks, "mask-layers", "MASKS", "by heads", "",                \
      "number of the mask of each layer, for all of its heads, repeated, such as 0,1",             \
      "; empty where heads have theirs", MODEL,                                                    \
      .applies = has_layer_masks,                                                                  \
      .at_eval = true, .most = MAX_MASKS - 1, .whole = true,                                       \
      .key = "mask_layer", .absent = "")                                                           \
    X(head_windows, text, TEXT, head_windows, "head-windows", "LIST", "the variant's own", "tokens", \
      "keys that a query sees: a number for each head, layers separated by semicolons, "           \
      "both repeated, 0 = all, such as 64,256;512,0", "; empty where heads are alike", CORE,       \
      .special = true, .applies = has_head_windows, .at_eval = true, .print = print_head_windows,  \
      .parse = parse_head_windows, .key = "windows", .absent = "")                                 \
    X(stack, line, TEXT, stack, "stack", "LIST", "the variant's own", "",                          \
      "mixer of each layer, repeated: the variant's own, or attention with positions (rope), "     \
      "without (nope) or in blocks (local), such as gdn,gdn,rope",                                 \
      "; empty where all layers are alike", MODEL,                                                 \
      .special = true, .applies = has_stack, .print = print_stack, .parse = parse_stack,           \
      .key = "layer_mixers", .absent = "")                                                         \
    X(mla, text, WORD, mla, "mla", "LIST", "absorbed to decode, otherwise expanded", "",           \
      "form of latent attention (absorbed: the latents are keys and values of one head)",          \
      "; empty where there are no latents", CORE, .words = mla_form_name,                          \
      .special = true, .applies = has_latents,                                                     \
      .at_eval = true, .key = "absorbed", .absent = "expanded",                                    \
      .in_digits = true, .most = MLA_FORMS - 1, .tiny = "expanded|absorbed")                                                    \
    X(layer_dims, text, TEXT, recurrent, "layer-dims", "H/K/V/S", "the variant's own", "",         \
      "recurrent layers of a stack: heads, widths of keys and of values, scale, such as "          \
      "8/32/64/0.18", "; empty where layers are alike", MODEL,                                     \
      .special = true, .applies = config_is_hybrid, .print = print_dims, .parse = parse_dims,      \
      .absent = "")                                                                                \
    X(layer_windows, text, LIST, layer_windows, "layer-windows", "LIST", "the variant's own", "tokens", \
      "keys that a query sees in each layer, repeated, 0 = all, such as 4096,0",                   \
      "; empty where all layers see all", CORE,                                                    \
      .special = true, .applies = has_layer_windows, .at_eval = true, .most = MAX_DISTANCE,        \
      .whole = true, .absent = "")                                                                 \
    X(layer_rope_base, text, LIST, layer_rope_base, "layer-rope-base", "LIST", "the variant's own", "", \
      "base of rotary frequencies of each layer, repeated, 0 = no positions, such as "             \
      "10000,0", "; empty where layers are alike", LAYER,                                          \
      .special = true, .applies = has_layer_bases,                                                 \
      .at_eval = true, .most = 1e12, .absent = "")                                                                                \
    X(rope_scaling, text, TEXT, rope_scaling, "rope-scaling", "LIST", "the variant's own", "",     \
      "how rotary frequencies change for longer contexts", "; empty where positions are others", LAYER, \
      .words = rope_scaling_name, .special = true, .applies = has_rope,                            \
      .at_eval = true, .print = print_scaling,                                                     \
      .parse = parse_scaling, .absent = "none")                                                    \
    X(rope_factor, text, REAL, rope_factor, "rope-factor", "X", "4", "",                           \
      "factor by which --rope-scaling lengthens the context", "; empty without it", LAYER,         \
      .least = 1, .most = 1 << 20, .special = true, .applies = has_rope_factor,                    \
      .at_eval = true, .absent = "1")                                                              \
    X(out_gate, text, WORD, out_gate, "out-gate", "LIST", "the variant's own", "",          \
      "gate on the output of attention: elementwise, headwise; of recurrent mixers: swish, sigmoid", \
      "; empty where it is not a choice", LAYER, .words = out_gate_name,                           \
      .special = true, .applies = has_out_gate, .absent = "none")                                  \
    X(norm_place, text, WORD, wiring, "norm", "LIST", "the variant's own", "",                     \
      "place of norms and sums", "; empty for attention alone", LAYER, .words = wiring_name, .skeleton = true,       \
      .key = "norm", .absent = "post")                                                             \
    X(ffn, text, ENTRY, ffn, "ffn", "LIST", "the variant's own", "",                               \
      "feed-forward network", "; empty where there is none", LAYER, .list = &ffn_registry, .skeleton = true,         \
      .applies = has_ffn)                                                                          \
    X(norm, text, WORD, norm_kind, "norm-kind", "LIST", "the variant's own", "",                   \
      "kind of norm", "; empty where there are none", LAYER, .words = norm_kind_name, .skeleton = true,              \
      .applies = has_norms, .key = "norm_kind", .absent = "layer")                                 \
    X(pos, text, TEXT, pos, "pos", "LIST", "the variant's own", "",                                \
      "positions added to the embedding", "; empty where they are not a choice", MODEL,               \
      .words = added_pos_name, .special = true, .applies = has_added_pos, .print = print_pos,      \
      .parse = parse_pos, .elsewhere = true)                                                       \
    X(cutoffs, text, TEXT, adaptive, "cutoffs", "LIST", "no clusters", "",                         \
      "first word of each cluster of rarer words, for adaptive embedding and softmax, "            \
      "such as 20,40", "; empty where all words are alike", MODEL,                                 \
      .applies = has_words, .print = print_cutoffs, .parse = parse_cutoffs, .absent = "")          \
    X(d_embed, text, TEXT, adaptive, "d-embed", "N", "--d-model", "",                              \
      "width of the embedding of the first cluster", "; empty where it is that of rows", MODEL,    \
      .applies = has_words, .print = print_width, .parse = parse_width, .absent = "")              \
    X(div_val, i64, INT, adaptive.div, "div-val", "RANGE", "1", "",                                \
      "factor by which each cluster's embedding is narrower than the one before",                  \
      "; empty without clusters", MODEL, .least = 1, .most = MAX_WIDTH,                            \
      .special = true, .applies = is_adaptive, .absent = "1")                                      \
    X(tie_projs, text, TEXT, adaptive, "tie-projs", "LIST", "none", "0/1",                         \
      "for each cluster, 1: its output shares the map of its embedding, such as 0,1,1",            \
      "; empty where none has", MODEL, .special = true,                                            \
      .applies = is_adaptive, .print = print_tie, .parse = parse_tie, .absent = "")                             \
    X(dtype, text, WORD, dtype, "dtype", "LIST", "f32", "",                                        \
      "element type of weights; bf16 rounds the rows that they multiply, too", "", CORE,           \
      .words = elem_name, .at_eval = true, .elsewhere = true)                                       \
    X(kv_dtype, text, WORD, kv_dtype, "kv-dtype", "LIST", "f32", "",                               \
      "element type of cached keys and values", "; empty where none can be cached",                 \
      CORE, .words = kv_elem_name, .special = true, .applies = has_kv, .at_eval = true,             \
      .elsewhere = true)                                                                           \
    X(act_dtype, text, WORD, act_dtype, "act-dtype", "LIST", "f32", "",                            \
      "element type of rows that q8, q4 and q4_1 weights multiply: f32, or q8 (rounded; integers are multiplied)", \
      "; empty where f32", CORE, .words = row_elem_name, .special = true,                          \
      .applies = has_blocks, .unsaid = "f32", .at_eval = true,                                     \
      .elsewhere = true)
/* clang-format on */

#define X(name, ...) CHOICE_##name,
enum { MODEL_CHOICES(X) MODEL_CHOICE_COUNT };
#undef X

extern const struct choice model_choices[MODEL_CHOICE_COUNT];

/* Give it the choices that are usual where one token at a time is decoded, before others. */
void model_choices_decode(struct config *c);
/* Does its output need a norm, because a stream that is never normalised reaches it? */
bool model_ends_in_norm(const struct config *c);
/* Set what follows from its choices: rows of tables by distance, the window of --same-length. */
void model_choices_settle(struct config *c);

/* Print the value of row i for a model, or the part of one, of that scope: "" where the row does
 * not apply. */
void model_choice_print(char text[CHOICE_TEXT], int i, const struct config *c, enum scope scope);
