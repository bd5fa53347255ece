/* SPDX-License-Identifier: MIT
 *
 * The terms of an attention and who supports them: each is detected, refused by name by
 * implementations that do not support it, and left to products by the fused kernels only where they
 * say so. */
#include "tests/support/kernel/attn_terms.h"

static const struct {
    struct more more;
    unsigned terms;
} cases[] = {
    {{T_MASK, 0}, TERM_MASK},
    {{T_MASKS, 0}, TERM_MASK},
    {{T_WINDOWS, 0}, TERM_WINDOW_OF_HEAD},
    {{T_STEPS, 0}, TERM_STEPS},
    {{T_NO_CONTENT, 0}, TERM_NO_CONTENT},
    {{T_REL_Q, 0}, TERM_REL_Q},
    {{T_ADD, 0}, TERM_ADD},
    {{T_SCORES_OUT, 0}, TERM_SCORES_OUT},
    {{T_GAIN, 0}, TERM_GAIN},
    {{T_MIX_LOGITS, 0}, TERM_MIX},
    {{T_MIX_PROBS, 0}, TERM_MIX},
    {{T_SINKS, 0}, TERM_SINKS},
};
static const struct shape shape = {2, 4, 2, 6, 5, 3};

Test(attn_known, each_is_noticed)
{
    const struct scheme table = {0, 3, 0, 0};

    for (size_t n = 0; n < ARRAY_LEN(cases); n++) {
        struct wide w;
        const char *why = NULL, *other = NULL;
        make_wide(&w, &shape, &table, &cases[n].more);
        const struct attn *a = &w.x.a;
        cr_expect_eq(attn_terms(a), cases[n].terms | TERM_SHARED_KEYS, "case %zu", n);
        cr_expect(attn_supports(a, cases[n].terms | TERM_SHARED_KEYS, &why) && !why);
        cr_expect(!attn_supports(a, cases[n].terms, &other));
        cr_expect_str_eq(other, "does not support shared key/value heads");
        cr_expect(!attn_supports(a, TERM_SHARED_KEYS, &why) && why);
        cr_expect_str_neq(why, other);
        free_wide(&w);
    }
}

/* Every term alone: the fused kernels take the terms they support, forward and backward alike, and
 * products take the rest. */
static void expect_fused(const struct engine *g, const struct attn *a, size_t n)
{
    const struct attn_impl *impl;
    const bool known = !(attn_terms(a) & ~(unsigned)TERMS_FUSED);

    cr_assert_eq(engine_attn(g, a, &impl, NULL), OK);
    cr_expect_str_eq(impl->name, known ? "fused" : "composed", "%s, case %zu", g->backend->name, n);
    cr_expect_null(impl->backward_by);
}

Test(attn_known, fused_kernels_take_what_they_know)
{
    const struct scheme table = {0, 3, 0, 0};

    for (int b = 0; backends[b]; b++)
        for (size_t n = 0; n < ARRAY_LEN(cases); n++) {
            if (backend_usable(backends[b], NULL) != OK)
                continue;
            const struct engine g = open_engine(backends[b]->name, 1);
            struct wide w;
            if (strcmp(g.attn[0]->name, "fused") != 0)
                continue;
            make_wide(&w, &shape, &table, &cases[n].more);
            expect_fused(&g, &w.x.a, n);
            free_wide(&w);
        }
}
