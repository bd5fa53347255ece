/* SPDX-License-Identifier: MIT
 *
 * The numbers of T5's bias, for schemes that contain it: such a scheme's own struct begins with
 * struct t5, and its rows with T5_CHOICES. */
#ifndef POS_T5_H
#define POS_T5_H

#include "variants/variant.h"

struct t5 {
    int buckets, max_distance;
    bool shared; /* one table for all layers */
};

/* `at` is the member of `type`, with its dot, or nothing. */
#define T5_CHOICES(type, at_)                                                                      \
    {.name = "t5_buckets",                                                                         \
     .help = "of distances",                                                                       \
     .codec = CODEC_INT,                                                                           \
     .at = offsetof(type, at_ buckets),                                                            \
     .least = 2,                                                                                   \
     .most = 1 << 20},                                                                             \
        {.name = "t5_max_distance",                                                                \
         .help = "largest distance told apart",                                                    \
         .codec = CODEC_INT,                                                                       \
         .at = offsetof(type, at_ max_distance),                                                   \
         .most = 1 << 20},                                                                         \
        {.name = "share_attn_bias",                                                                \
         .help = "one table for all layers",                                                       \
         .codec = CODEC_FLAG,                                                                      \
         .at = offsetof(type, at_ shared),                                                         \
         .absent = "0"},

void t5_usual(const struct config *c, void *numbers);

#endif
