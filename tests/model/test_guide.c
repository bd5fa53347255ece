/* SPDX-License-Identifier: MIT
 *
 * Guided heads: the gradient is that of the definition, for every pattern, with memory, masks and
 * terms of scores, and nothing else changes; patterns that a model cannot see are refused. */
#include "variants/model/attention/sublayer_attention.h"

#include "tests/support/trained.h"

static struct config of(const char *variant, const char *settings)
{
    struct config c = config_default(variant_find(variant), 12, 3, 4, 17, 2, 11);

    c.max_seq = 64;
    MUST(settings_parse(&c, settings, false, &failure));
    return c;
}

/* Does the pattern name key j of query i? */
static bool names(char pattern, const struct attn *a, const int32_t *tokens, int i, int j)
{
    switch (pattern) {
    case 'p':
        return j + 1 == a->M + i;
    case 'n':
        return j - 1 == a->M + i;
    case 'f':
        return j == 0;
    default:
        return j >= a->M && tokens[j - a->M] == 3;
    }
}

/* Of one query of a head with scores S. */
static double distance(char pattern, const struct attn *a, const int32_t *tokens, int h, int i,
                       const float *S)
{
    double p[L + 2 + MEM + 1], sum = 0, off = 0;
    const int K = attn_keys(a);
    int named = 0;

    for (int j = 0; j < K; j++) {
        struct range r = {0};
        bool seen = false;
        while (attn_next_keys(a, h, 1, i, &r))
            seen = seen || (j >= r.from && j < r.to);
        p[j] = seen ? exp((double)S[j]) : 0;
        sum += p[j];
        named += seen && names(pattern, a, tokens, i, j);
    }
    for (int j = 0; j < K && named; j++) {
        const double P = p[j] > 0 && names(pattern, a, tokens, i, j) ? 1.0 / named : 0;
        off += pow(p[j] / sum - P, 2);
    }
    return off;
}

struct guided {
    struct trained t;
    const char *patterns; /* of the first heads */
};

/* After a forward pass. */
static double guidance(struct guided *x)
{
    struct trained *const t = &x->t;
    const struct sublayers *const s = &t->m.lm.sublayers;
    const int n = (int)strlen(x->patterns);
    double sum = 0;

    for (int k = 0; k < s->n; k++) {
        if (s->at[k].kind != &sublayer_attention)
            continue;
        struct attn a = attention_operands(&s->at[k], &s->work[k], B, L);
        float *const scores = room((size_t)(B * a.H * L * attn_keys(&a)), sizeof(float));
        float *const o = room((size_t)(B * L * a.H * attn_dv(&a)), sizeof(float));
        a.scores_out = scores;
        a.o = o;
        a.lse = NULL;
        s->at[k].state.attention.impl->forward(&t->m.g, &a, s->work[k].scratch);
        for (int b = 0; b < B; b++)
            for (int h = 0; h < n; h++)
                for (int i = 0; i < L; i++)
                    sum += 0.75 / (B * L * n) *
                           distance(x->patterns[h], &a, t->tokens + b * L, h, i,
                                    scores + attn_scores_at(&a, b, h, i));
    }
    return sum;
}

static double loss_and_guidance(void *ctx)
{
    struct guided *const x = ctx;

    return loss(&x->t) + guidance(x);
}

Test(guide, has_its_derivative, .timeout = 120)
{
    static const struct {
        const char *variant, *settings, *patterns;
    } cases[] = {
        {"vanilla", "guide=0.75,guide_previous=1", "p"},
        {"vanilla", "guide=0.75,guide_previous=1,guide_first=1,guide_token=1,guide_symbol=3",
         "pft"},
        {"xl", "guide=0.75,guide_previous=1,guide_first=2", "pff"},
        {"shaw", "guide=0.75,guide_token=2,guide_symbol=3", "tt"},
        {"alibi", "guide=0.75,guide_first=1", "f"},
        {"gqa", "guide=0.75,guide_previous=2", "pp"},
        {"strided", "guide=0.75,guide_previous=1,guide_first=1", "pf"},
        {"gtrxl", "guide=0.75,guide_previous=3", "ppp"},
        {"fox", "guide=0.75,guide_previous=1", "p"},
        {"bert", "guide=0.75,guide_previous=1,guide_next=2", "pnn"},
    };

    for (size_t k = 0; k < ARRAY_LEN(cases); k++) {
        const struct config c = of(cases[k].variant, cases[k].settings);
        struct guided x = {.patterns = cases[k].patterns};
        struct trained *const t = &x.t;
        open_trained(t, &c, "ref", 1);
        avoid_corners(&t->m.lm.params);
        remember(t);
        const struct scalar f = {loss_and_guidance, &x, 8 * U * log(c.V), 0x1p-6};
        expect_derivatives_of(t, &f, kept_text("%s, %s", cases[k].variant, cases[k].settings));
    }
}

/* The gradient is another, the loss of the text is not; backends agree. */
Test(guide, changes_the_gradient_only)
{
    const struct config with = of("xl", "guide=1,guide_previous=2"), without = of("xl", "");

    expect_other_gradient(&with, &without);
    as_reference(&with, "avx2");
}
