/* SPDX-License-Identifier: MIT
 *
 * Attention through the library: the bits of the kernels for every mixture of terms, forward and
 * backward. */
#include "tests/support/attn_terms_problem.h"
#include "tests/support/every_backend.h"
#include "tests/support/library.h"

#include <stdio.h>

static const struct shape shapes[] = {
    {1, 1, 1, 1, 0, 1}, {2, 4, 2, 6, 5, 3}, {1, 2, 1, 70, 21, 9}, {1, 2, 2, 140, 170, 40}};
static const struct scheme schemes[] = {
    {0, 0, 0, 0},
    {HAS_U | HAS_W | REL_K | PER_HEAD, ALL_KEYS, 0, 0},
    {HAS_U | REL_V | BIAS | PER_HEAD | FULL, 4, 3, 6},
    {REL_K | REL_V | BIAS, 3, 0, 0},
};

/* A member of a struct of the library's that the kernels' struct has by the same name. */
#define SAME(m) x.m = from->m
#define STRIDE(m)                                                                                  \
    x.m = (struct ba_stride) { from->m.batch, from->m.row }

static struct ba_mask mask_of(const struct mask *from)
{
    struct ba_mask x = {.size = sizeof(x)};

    SAME(window), SAME(block), SAME(back), SAME(memory), SAME(stride), SAME(fixed), SAME(summary),
        SAME(global), SAME(rect_rows), SAME(rect), SAME(row), SAME(margin_rows), SAME(margin),
        SAME(n_random), SAME(random_from);
    x.dilation = from->window ? from->dilation : 0;
    if (from->n_random)
        SAME(random_blocks), SAME(random);
    return x;
}

/* What nothing reads is left out, as a caller would. */
static struct ba_attention call_of(const struct attn *from, struct ba_mask masks[3])
{
    const bool tables = from->rel_k || from->rel_v || from->rel_q;
    struct ba_attention x = {.size = sizeof(x)};

    SAME(B), SAME(H), SAME(L), SAME(M), SAME(dh), SAME(Hkv), SAME(K), SAME(dv), SAME(causal),
        SAME(scale), SAME(q), SAME(k), SAME(v), SAME(o), SAME(lse), SAME(u), SAME(rel_k),
        SAME(rel_v), SAME(rel_q), SAME(bias), SAME(q_step), SAME(k_step), SAME(q_first),
        SAME(sinks), SAME(base), SAME(mask_of_head), SAME(window_of_head), SAME(scores_out),
        SAME(mix_logits), SAME(mix_probs), SAME(sink_k), SAME(sink_v), SAME(sink_logit),
        SAME(soft_cap), SAME(gain), SAME(no_content);
    STRIDE(q_at), STRIDE(k_at), STRIDE(v_at), STRIDE(o_at);
    if (!from->window_of_head)
        SAME(window);
    if (tables || from->bias)
        SAME(R), SAME(Rf);
    if (tables)
        SAME(rel_head);
    if (from->rel_k)
        SAME(w);
    if (from->bias)
        SAME(bias_head);
    for (; from->mask && x.n_masks < 3; x.n_masks++)
        masks[x.n_masks] = mask_of(&from->mask[x.n_masks]);
    x.masks = from->mask ? masks : NULL;
    x.add = from->add.at, x.add_batch = from->add.batch, x.add_head = from->add.head,
    x.add_row = from->add.row;
    x.fade = from->fade.at, x.fade_batch = from->fade.batch, x.fade_head = from->fade.head;
    return x;
}

static struct ba_attention_grad grad_call_of(const struct attn_grad *from)
{
    struct ba_attention_grad x = {.size = sizeof(x)};

    SAME(d_o), SAME(d_scores_out), SAME(d_q), SAME(d_k), SAME(d_v), SAME(d_u), SAME(d_w),
        SAME(d_rel_k), SAME(d_rel_v), SAME(d_rel_q), SAME(d_bias), SAME(d_add), SAME(d_fade),
        SAME(d_mix_logits), SAME(d_mix_probs), SAME(d_sink_k), SAME(d_sink_v), SAME(d_sink_logit);
    return x;
}

static void expect_same_bits(const struct problem *got, const struct problem *want)
{
    const struct operands *const x = &got->w.x, *const y = &want->w.x;

    cr_expect_arr_eq(x->o, y->o, x->o_size * sizeof(float));
    cr_expect_arr_eq(x->lse, y->lse, x->lse_size * sizeof(float));
    cr_expect_arr_eq(got->w.scores_out, want->w.scores_out, want->w.scores_n * sizeof(float));
    for (int n = 0; n < want->n; n++)
        cr_expect_arr_eq(got->operands[n].d, want->operands[n].d,
                         want->operands[n].n * sizeof(float), "%s", want->operands[n].name);
    if (want->d.d_fade)
        cr_expect_arr_eq(got->d.d_fade, want->d.d_fade, want->w.fade_n * sizeof(double));
}

static void through_library(struct ba_engine *engine, const struct problem *p, const char *what)
{
    struct ba_mask masks[3];
    const struct ba_attention a = call_of(&p->w.x.a, masks);
    const struct ba_attention_grad d = grad_call_of(&p->d);
    char why[256] = "?";

    expect_status(ba_attention_forward(engine, &a, why, sizeof(why)), BA_OK, why, what);
    expect_status(ba_attention_backward(engine, &a, &d, why, sizeof(why)), BA_OK, why, what);
    for (int n = 0; n < p->n; n++)
        if (strcmp(p->operands[n].name, "d_fade") == 0)
            for (size_t x = 0; x < p->w.fade_n; x++)
                p->d_fade[x] = (float)p->d.d_fade[x];
}

ParameterizedTestParameters(library_attention, has_the_bits_of_the_kernels)
{
    return every_backend();
}
ParameterizedTest(int *b, library_attention, has_the_bits_of_the_kernels, .timeout = 120)
{
    const struct engine g = open_engine(backends[*b]->name, 2);
    struct ba_engine *const engine = library_engine(backends[*b]->name, 2);

    for (int s = 0; s < (int)ARRAY_LEN(shapes); s++)
        for (int t = 0; t < (int)ARRAY_LEN(schemes); t++)
            for (int m = 0; m < MORES; m++) {
                struct problem want, got;
                char what[64];
                if (!in_turn(&shapes[s], t, m))
                    continue;
                snprintf(what, sizeof(what), "shape %d, scheme %d, more %d", s, t, m);
                make_problem(&want, &shapes[s], &schemes[t], &mores[m]);
                make_problem(&got, &shapes[s], &schemes[t], &mores[m]);
                run(&g, &want);
                through_library(engine, &got, what);
                expect_same_bits(&got, &want);
                free_problem(&want), free_problem(&got);
            }
    ba_engine_close(engine);
}
