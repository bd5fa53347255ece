/* SPDX-License-Identifier: MIT
 *
 * Talking heads (Shazeer et al. 2020): two matrices [H,H] that mix heads, of scores and of
 * probabilities. */
#include "parts.h"

enum { LOGITS, PROBS };

static void talking_params(const struct config *c, const char *prefix, struct params *p)
{
    static const char *const names[] = {[LOGITS] = "mix_logits", [PROBS] = "mix_probs"};

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        params_add(p, INIT_EYE, 0, 2, (const int[]){c->H, c->H}, "%sattn.%s", prefix, names[i]);
}

static void talking_reserve(const struct config *c, const struct param *model,
                            const struct param *own, int K, struct arena *arena, struct attn *a)
{
    (void)c, (void)model, (void)K, (void)arena;
    a->mix_logits = own[LOGITS].data;
    a->mix_probs = own[PROBS].data;
}

static void talking_terms_grad(const struct config *c, const struct param *model,
                               const struct param *own, const struct attn *a, float *tables,
                               struct attn_grad *d)
{
    (void)c, (void)model, (void)a, (void)tables;
    d->d_mix_logits = own[LOGITS].grad;
    d->d_mix_probs = own[PROBS].grad;
}

const struct pos extra_talking = {
    .name = "talking",
    .layer_params = talking_params,
    .reserve = talking_reserve,
    .terms_grad = talking_terms_grad,
};
