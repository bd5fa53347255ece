/* SPDX-License-Identifier: MIT
 *
 * The Routing Transformer's own numbers, and its published form. */
#pragma once

#include "content.h"

enum route { ROUTE_NEAREST, ROUTE_TOPK };
enum route_norm { ROUTE_L2, ROUTE_LN };
struct routing {
    enum route route;
    enum route_norm norm;
    int clusters, window;
    bool self_last;
    float mu_decay, commit_coef;
};
const struct routing *routing_of(const struct config *c);

/* mu_c . N(x), x of head h. */
double routing_score(const struct sublayer *s, int h, int c, const float *x);
/* Row i of the new ones before rotation, as a query and as a key. */
const float *routing_query(const struct content_call *n, int b, int h, int i);
const float *routing_key(const struct content_call *n, int b, int h, int i);

/* ---- top k, routing_topk.c ---------------------------------------------------------------- */

size_t routing_topk_scratch(const struct sublayer *s, struct extent max, int threads);
content_head routing_topk_head;
