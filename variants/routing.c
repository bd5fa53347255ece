/* SPDX-License-Identifier: MIT
 *
 * Routing Transformer: Roy et al. 2020, "Efficient Content-Based Sparse Attention with Routing
 * Transformers" (equations: model/content/routing.c).
 *
 * Rows find each other by the centroid that is nearest to them, each for itself, so that a token
 * knows nothing of later ones; the published centroids choose among all rows of a segment. Queries
 * and keys are shared, as published for language models. Each group is gathered for the ordinary
 * kernel. */
#include "variants/model/content/content.h"

const struct mixer mixer_routing = {.name = "routing",
                                    .numbers = &routing_numbers,
                                    .kind = &sublayer_content,
                                    .attends = true,
                                    .content = &content_routing};

const struct variant variant_routing = {
    .name = "routing",
    .paper = "Roy et al. 2020, arXiv:2003.05997",
    .about = "each token sees the newest tokens of its own cluster",
    .control = "rope",
    .pos = &pos_rope,
    .mixer = &mixer_routing,
    .wiring = WIRING_PRE,
    .share_qk = true,
};
