/* SPDX-License-Identifier: MIT
 *
 * Values of settings that tests try, and what has to be set before some of them mean anything. */
#pragma once

#include "variants/parts/choice.h"

enum { SETTING_LINE = 96 };

/* "" where the setting stands for itself. */
static inline const char *setting_needs(const char *name)
{
    static const char *const needs[][2] = {
        {"lsh", "lsh_chunk=40"},
        {"lsh_chunk", "lsh=chunked,lsh_chunk=40"},
        {"lsh_within", "lsh=chunked,lsh_chunk=40"},
        {"lsh_duplicates", "lsh=chunked,lsh_chunk=40,lsh_rounds=2,lsh_within=1"},
        {"pred_beta", "pred_form=evolving"},
        {"tupe_buckets", "tupe_bias=1"},
        {"tupe_max_distance", "tupe_bias=1"},
        {"feature_eps", "feature_map=relu"},
        {"guide", "guide_previous=1"},
        {"guide_previous", "guide=1"},
        {"guide_next", "guide=1"},
        {"guide_first", "guide=1"},
        {"guide_token", "guide=1"},
        {"guide_symbol", "guide=1,guide_token=1"},
        {"moe_shared_gate", "moe_shared=3"},
        {"dense_inner", "dense_layers=0"},
        {"dense_ffn", "dense_layers=0"},
        {"moe_beta", "moe_act=swiglu_clamped"},
        {"moe_limit", "moe_act=swiglu_clamped"},
        {"route_groups", "moe_k=2"},
        {"route_within", "moe_k=2,route_groups=2"},
    };

    for (size_t i = 0; i < ARRAY_LEN(needs); i++)
        if (strcmp(needs[i][0], name) == 0)
            return needs[i][1];
    return "";
}

/* The i-th value to try, as --set reads it, after what it needs; false after the last. */
static inline bool setting_try(char line[SETTING_LINE], const struct choice *s, int i)
{
    static const char *const tries[] = {"0",   "1",   "2",     "3",   "0.25", "0.5",
                                        "4",   "8",   "40",    "16",  "32",   "mean",
                                        "max", "2:3", "layer", "ssf", "sfsf"};
    const bool word = s->codec == CODEC_WORD || (s->codec == CODEC_TEXT && s->words);
    const char *const needs = setting_needs(s->name);

    if (word ? !s->words[(int)s->least + i] : i == ARRAY_LEN(tries))
        return false;
    snprintf(line, SETTING_LINE, "%s%s%s=%s", needs, *needs ? "," : "", s->name,
             word ? s->words[(int)s->least + i] : tries[i]);
    return true;
}
