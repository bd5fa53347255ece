/* SPDX-License-Identifier: MIT
 *
 * Has each token of a segment masks of its own? */
#pragma once

#include "tests/support/model.h"

enum { MASKED_TOKENS = 32, NOT_TOLD = -1 };

/* How many numbers of the output's rows are hidden in every token, at a dropout of a half. A large bias
 * of the last network comes through, as what is largest behind a norm, where neither its mask nor that
 * of the output drops it. One mask for all tokens would hide half of the numbers in each; with one for
 * each a number is hidden in all of 32 with a probability of 0.75^32 = 1e-4. NOT_TOLD: there is no such
 * bias, or nothing is dropped here. */
static inline int hidden_in_all_tokens(const struct config *of)
{
    const struct extent max = {1, MASKED_TOKENS, 0};
    struct config c = *of;
    struct model m = {0};
    int32_t tokens[MASKED_TOKENS];
    int hidden = NOT_TOLD;

    c.max_seq = MASKED_TOKENS;
    MUST(engine_open(&m.g, "ref", 1, NULL, &failure));
    const char *const name = kept_text("layers.%d.ff.2.bias", c.N - 1);
    const bool opened = lm_init(&m.lm, &c, &failure) == OK;
    const struct param *const bias = opened ? params_find(&m.lm.params, name) : NULL;
    if (!bias || (int)bias->n != c.D || model_bind(&m, MEM_NONE, max, true, &failure) != OK)
        goto out;
    MUST(arena_place(&m.arena, HUGE_NEVER, NULL, NULL, &failure));
    MUST(model_bind(&m, MEM_NONE, max, true, &failure));
    params_init(&m.lm.params, SEED, 1);
    for (size_t i = 0; i < bias->n; i++)
        bias->data[i] = 1e4f;
    for (int i = 0; i < MASKED_TOKENS; i++)
        tokens[i] = token_of(&m, 0, i);
    m.lm.drop = (struct dropout){.p = 0.5f, .seed = SEED};
    lm_build_tables(&m.lm, &m.g);
    lm_forward(&m.lm, &m.g, tokens, 1, MASKED_TOKENS, MASKED_TOKENS, NULL, NULL);
    hidden = 0;
    for (int k = 0; k < c.D; k++) {
        int seen = 0;
        for (int i = 0; i < MASKED_TOKENS; i++)
            seen += m.lm.h[i * c.D + k] > 0.1f;
        hidden += seen == 0;
        cr_expect_lt(seen, MASKED_TOKENS, "%s: number %d is never dropped", c.variant->name, k);
    }
out:
    if (opened)
        lm_free(&m.lm);
    arena_release(&m.arena);
    return hidden;
}
