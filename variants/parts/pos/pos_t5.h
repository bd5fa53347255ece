/* SPDX-License-Identifier: MIT
 *
 * The numbers of T5's bias, for schemes that contain it: such a scheme's own struct begins with
 * struct t5, and its rows with T5_CHOICES. Files call them alike in all schemes; settings have the
 * scheme's name before theirs. */
#pragma once

#include "variants/variant.h"

struct t5 {
    int buckets, max_distance;
    bool shared; /* one table for all layers */
};

/* `at` is the member of `type`, with its dot, or nothing; `has_` as `applies` of choice.h. */
#define T5_CHOICES(type, at_, scheme, has_)                                                        \
    {.name = scheme "_buckets",                                                                    \
     .key = "t5_buckets",                                                                          \
     .help = "buckets of distances",                                                               \
     .applies = has_,                                                                              \
     SETTING,                                                                                      \
     .codec = CODEC_INT,                                                                           \
     .at = offsetof(type, at_ buckets),                                                            \
     .least = 2,                                                                                   \
     .tiny = "4",                                                                                  \
     .most = 1 << 20},                                                                             \
        {.name = scheme "_max_distance",                                                           \
         .key = "t5_max_distance",                                                                 \
         .applies = has_,                                                                          \
         SETTING,                                                                                  \
         .help = "largest distance told apart",                                                    \
         .codec = CODEC_INT,                                                                       \
         .at = offsetof(type, at_ max_distance),                                                   \
         .tiny = "6",                                                                              \
         .most = 1 << 20},

#define T5_USUAL .buckets = 32, .max_distance = 128
