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

static void talking_reserve(const struct pos_call *t)
{
    t->a->mix_logits = t->layer[LOGITS].data;
    t->a->mix_probs = t->layer[PROBS].data;
}

static void talking_terms_grad(const struct pos_call *t)
{
    t->d->d_mix_logits = t->layer[LOGITS].grad;
    t->d->d_mix_probs = t->layer[PROBS].grad;
}

const struct pos extra_talking = {
    .name = "talking",
    /* The scores of a pair that only other heads see are mixed, but no head hands them on. */
    .excludes =
        EXCLUDES(HAS_term_localness, HAS_term_man, HAS_MASKED, HAS_term_camtl, HAS_SIGHT_OF_SCORES),
    .layer_params = talking_params,
    .reserve = talking_reserve,
    .terms_grad = talking_terms_grad,
};
