/* SPDX-License-Identifier: MIT
 *
 * Features that do not go with all others: what a model has, how users say it, when it has it.
 * model/config/exclusions.c has the table of what each excludes; a part lists what it excludes itself.
 *
 * X(name, said, value, kind, has): in messages a feature is `said` and, where there is one, its
 * `value`; in lists it is `said` and its `kind`. `has` and `value` read the model `c`; they stand
 * in exclusions.c. Parts of attention say it themselves; `said` NULL = it is not said. */
#pragma once

#include "around_parts.h"

/* clang-format off */
#define PART_FEATURES(name) \
    X(name, name.said, NULL, "", around_has(c, SLOT_##name)) \
    X(name##_special, name.special.said ? name.said : NULL, name.special.said, name.special.said, \
      name.special.has && name.special.has(c))
#define FEATURES(X)                                                                                \
    /* which keys a query sees */                                                                  \
    X(FUTURE, "--direction both", NULL, "", !c->causal)                                            \
    X(CAUSAL, "--direction causal", NULL, "", c->causal)                                           \
    X(SAME_LENGTH, "--same-length", NULL, "", c->same_length)                                      \
    X(MASKS, "--mask", NULL, "", c->masks.n > 0)                                                   \
    X(MASKS_OF_HEADS, "--mask of several masks", NULL, "", c->masks.n > 1)                         \
    X(LAYER_MASKS, "--mask-layers", NULL, "", c->layer_masks.n > 0)                                \
    X(HEAD_WINDOWS, "--head-windows", NULL, "", c->head_windows.n > 0)                             \
    X(LAYER_WINDOWS, "--layer-windows", NULL, "", c->layer_windows.n > 0)                          \
    X(WINDOW, "a window", NULL, "", c->window > 0)                                                 \
    X(STREAM, "stream_sinks", NULL, "", c->stream_sinks > 0)                                       \
    /* positions */                                                                                \
    X(TABLES, "positions", c->pos->name, "in scores or values", c->pos->reserve)                   \
    X(UNEVEN, "positions", c->pos->name, "without a row for each distance",                        \
      c->pos->reserve && !c->pos->by_distance)                                                     \
    X(PAST_ONLY, "positions", c->pos->name, "of the past only", c->pos->past_only)                 \
    X(NO_CONTENT, "positions", c->pos->name, "in place of queries and keys", c->pos->no_content)   \
    X(ROTATED, "positions", c->pos->name, "that rotate", c->pos->rotate)                           \
    X(UNROTATED, "positions", c->pos->name, "that do not rotate", !c->pos->rotate)                 \
    X(ENTERS, "positions", c->pos->name, "added in each layer", c->pos->enter)                     \
    X(EMBEDS, "positions", c->pos->name, "added to the embedding", c->pos->embed)                  \
    X(WORDS, "positions", c->pos->name, "in place of the embedding", c->pos->from_tokens)          \
    X(ENCODED, "positions", c->pos->name, "in scores, by encodings of the model's width",          \
      c->pos->reserve && c->pos->n_pos_encoding && !c->pos->rotate)                                \
    X(UNPOOLED, "positions", c->pos->name, "that are not a table of distances",                       \
      !c->pos->terms_grad || c->pos->rotate || c->pos->enter || c->pos->positions)                 \
    X(SHARED_TABLES, "positions", c->pos->name, "in scores, with weights of all layers",           \
      c->pos->reserve && c->pos->model_params)                                                     \
    X(UNFED, "positions", c->pos->name, "of tokens, not of steps", !c->pos->by_steps)              \
    X(CLAMP, "--clamp-len", NULL, "", c->clamp_len > 0)                                            \
    X(ROPE_BASES, "--layer-rope-base", NULL, "", c->layer_rope_base.n > 0)                         \
    /* attention, and what stands in place of it */                                                \
    X(GROUPS, "--kv-heads below --heads", NULL, "", c->kv_heads != c->H)                           \
    X(ATTN_BIAS, "biases of attention", NULL, "", c->attn_bias)                                    \
    X(QKV_BIAS, "biases of queries, keys and values alone", NULL, "",                              \
      c->attn_bias == ATTN_BIASED_QKV)                                                             \
    X(EXTRA, "attention with", c->attn_extra->name, "a span, sinks or talking heads",              \
      c->attn_extra)                                                                               \
    X(QKV_MAP, "map", c->qkv_map->name, "before queries, keys and values", c->qkv_map)             \
    X(MIXER, "mixer", c->mixer->name, "in place of attention", c->mixer && !c->stack.n)            \
    X(BLIND, "mixer", c->mixer->name, "without keys", is_blind(c))                                 \
    X(UNWINDOWED, "mixer", c->mixer->name, "without windows",                                      \
      is_blind(c) && !c->mixer->windowed)                                                          \
    X(PAST_MIXER, "mixer", c->mixer->name, "of all of the past", is_blind(c) && !c->mixer->both)   \
    X(CONTENT, "mixer", c->mixer->name, "that chooses by content", is_content(c))                  \
    X(CONTENT_PAST, "mixer", c->mixer->name, "that chooses in the past only",                      \
      is_content(c) && !chooses_ahead(c))                                                           \
    X(CONTENT_WHOLE, "mixer", c->mixer->name, "that chooses in a whole text only",                 \
      is_content(c) && !c->mixer->content->past)                                                   \
    X(STACK, "--stack", NULL, "", c->stack.n > 0)                                                  \
    X(HYBRID, "--stack", NULL, "of recurrent layers", config_is_hybrid(c))                         \
    /* scores and outputs of heads */                                                              \
    AROUND_PARTS(PART_FEATURES)                                                                    \
    X(OUT_GATE, "--out-gate", out_gate_name[c->out_gate], "elementwise or headwise",               \
      c->out_gate == OUT_GATE_ELEMENTWISE || c->out_gate == OUT_GATE_HEADWISE)                     \
    X(SOFT_CAP, "a cap of scores", NULL, "", c->soft_cap != 0)                                     \
    X(DEPTH_SCALE, "depth_scale", NULL, "", c->depth_scale)                                        \
    X(SCORE_RESIDUAL, "scores of the layer before", NULL, "", c->score_residual)                   \
    X(SIGHT_OF_SCORES, "scores of the layer before, of heads that see different keys", NULL, "",    \
      c->score_residual && (c->head_windows.n || (c->masks.n > 1 && !c->layer_masks.n)))           \
    X(LAZY, "lazy_group", NULL, "", c->lazy_group > 1)                                             \
    /* layers */                                                                                   \
    X(NOT_POST, "--norm", wiring_name[c->wiring], "other than post", c->wiring != WIRING_POST)     \
    X(NOT_PLAIN, "--norm", wiring_name[c->wiring], "other than post and pre",                      \
      c->wiring != WIRING_POST && c->wiring != WIRING_PRE)                                         \
    X(PARALLEL, "--norm parallel", NULL, "", c->wiring == WIRING_PARALLEL)                         \
    X(HALVES, "feed-forward networks in halves", NULL, "", strchr(c->order, SUB_HALF_FFN) ||       \
      c->wiring == WIRING_MACARON_PRE || c->wiring == WIRING_MACARON_POST)                         \
    X(NORM_OF_ALL, "--norm-kind", norm_kind_name[c->norm_kind], "over the rows of all tokens",     \
      c->norm_kind == NORM_POWER)                                                                  \
    X(ORDER, "order of sub-layers", c->order, "", *c->order)                                       \
    X(POOLED, "order of sub-layers", c->order, "on rows of several tokens",                        \
      strpbrk(c->order, "pu"))                                                                     \
    X(SUBS, "layers of", c->subs, "other sub-layers than attention, feed-forward",                 \
      strcmp(c->subs, USUAL_SUBS) != 0)                                                            \
    X(TWICE, "layers of", c->subs, "two attentions",                                               \
      strchr(c->subs, SUB_ATTENTION) != strrchr(c->subs, SUB_ATTENTION) ||                         \
      strchr(c->subs, SUB_MANY))                                                                   \
    X(LSRA, "attention of a part of the channels", NULL, "", strchr(c->subs, SUB_LSRA))            \
    X(MASKED, "sub-layers with trained masks", NULL, "", strchr(c->subs, SUB_MASKED))              \
    X(MANY, "attention of more heads", NULL, "", strchr(c->subs, SUB_MANY))                        \
    X(SLOTS, "slots", NULL, "", strchr(c->subs, SUB_READ))                                         \
    X(RNN, "recurrent sub-layers", NULL, "", c->rnn_layers > 0)                                    \
    X(FFN_NONE, "--ffn none", NULL, "", c->ffn == &ffn_none)                                       \
    X(FFN_TOKENS, "--ffn", c->ffn->name, "that reads tokens", c->ffn && c->ffn->read_tokens)       \
    X(FFN_MIXES, "--ffn", c->ffn->name, "whose rows depend on each other",                         \
      c->ffn && c->ffn->mixes)                                                                     \
    X(FFN_LOSS, "--ffn", c->ffn->name, "with a loss of its own", c->ffn && c->ffn->aux)            \
    X(FFN_STEPS, "--ffn", c->ffn->name, "that reads the row before", c->ffn && c->ffn->build)      \
    /* depth */                                                                                    \
    X(STEPS, "steps of depth", NULL, "", c->steps > 0)                                             \
    X(EXIT, "early exit", NULL, "", c->exit)                                                       \
    X(COND, "gates that skip sub-layers", NULL, "", c->cond)                                       \
    X(AUX, "losses of layers or of further targets", NULL, "",                                       \
      c->aux_layers || c->aux_targets > 1)                                                         \
    X(ENCODER, "an encoder", NULL, "", c->enc_layers > 0)                                           \
    X(TRANSPARENT, "a sum of all layers", NULL, "", c->transparent)                                \
    /* memory */                                                                                   \
    X(MEMORY, "a memory", NULL, "", c->mem_len > 0)                                                \
    X(CACHED, "a cache of rows", NULL, "", config_mem(c)->recurrent)                               \
    X(STATE, "a state of the past", NULL, "", config_mem(c)->state)                                \
    X(COMPRESSED, "compressed memory", NULL, "", config_mem(c)->compressed)                        \
    X(COMPRESSED_ROWS, "--set cmem", NULL, "", compressive_of(c)->rows > 0)                        \
    X(RECUR_SAME, "a memory of what left a layer", NULL, "", c->recur == RECUR_SAME)               \
    X(FEEDBACK, "one memory of all layers", NULL, "", c->feedback.on)                              \
    /* words */                                                                                    \
    X(TIED, "an output tied to the embedding", NULL, "", c->tied)                                  \
    X(CLUSTERS, "--cutoffs or --d-embed", NULL, "", has_clusters(c))                               \
    X(LOGIT_CAP, "a cap of logits", NULL, "", c->logit_cap != 0)
/* clang-format on */

#define X(name, ...) HAS_##name,
enum feature {
    HAS_NO_MORE,
    FEATURES(X) FEATURES_END,
    /* in lists of what is excluded: each part of attention, each term of scores */
    HAS_PARTS,
    HAS_TERMS
};
#undef X
#define EXCLUDES(...) ((const enum feature[]){__VA_ARGS__, HAS_NO_MORE})
