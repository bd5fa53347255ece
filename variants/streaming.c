/* SPDX-License-Identifier: MIT
 *
 * StreamingLLM: Xiao et al. 2023, "Efficient Streaming Language Models with Attention Sinks".
 *
 * The cache has the first 4 keys of the stream and the newest 1020; positions are its slots. A
 * model that was trained with rotary positions goes on for ever at the cost of a cache of that
 * length. Inference only: equations in variants/model/attention/sublayer_attention_streaming.c. */
#include "variants/parts/parts.h"

const struct variant variant_streaming = {
    .name = "streaming",
    .paper = "Xiao et al. 2023, arXiv:2309.17453",
    .about = "the first 4 keys and the newest 1020, rotated by their place in the cache",
    AS_ROPE,
    .stream_sinks = 4,
    .window = 1020,
};
