/* SPDX-License-Identifier: MIT
 *
 * A sink (OpenAI 2025, gpt-oss, arXiv:2508.10925): one trained number per head that joins the
 * softmax like the score of a key whose value is zero, so that a head may attend to nothing. */
#include "parts.h"

static void sink_params(const struct config *c, const char *prefix, struct params *p)
{
    params_vector(p, INIT_ZERO, 0, c->H, prefix, "attn.sink");
}

static void sink_reserve(const struct pos_call *t)
{
    t->a->sinks = 1;
    t->a->sink_logit = t->layer->data;
}

static void sink_terms_grad(const struct pos_call *t) { t->d->d_sink_logit = t->layer->grad; }

const struct pos extra_sink = {
    .name = "sink",
    .sinks = true,
    .excludes = EXCLUDES(HAS_term_forget),
    .layer_params = sink_params,
    .reserve = sink_reserve,
    .terms_grad = sink_terms_grad,
};
