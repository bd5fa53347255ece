/* SPDX-License-Identifier: MIT
 *
 * A sink (OpenAI 2025, gpt-oss, arXiv:2508.10925): one trained number per head that joins the
 * softmax like the score of a key whose value is zero, so that a head may attend to nothing. */
#include "parts.h"

static void sink_params(const struct config *c, const char *prefix, struct params *p)
{
    params_vector(p, INIT_ZERO, 0, c->H, prefix, "attn.sink");
}

static void sink_reserve(const struct config *c, const struct param *model, const struct param *own,
                         int K, struct arena *arena, struct attn *a)
{
    (void)c, (void)model, (void)K, (void)arena;
    a->sinks = 1;
    a->sink_logit = own->data;
}

static void sink_terms_grad(const struct config *c, const struct param *model,
                            const struct param *own, const struct attn *a, float *tables,
                            struct attn_grad *d)
{
    (void)c, (void)model, (void)a, (void)tables;
    d->d_sink_logit = own->grad;
}

const struct pos extra_sink = {
    .name = "sink",
    .sinks = true,
    .layer_params = sink_params,
    .reserve = sink_reserve,
    .terms_grad = sink_terms_grad,
};
