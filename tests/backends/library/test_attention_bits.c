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
static const struct more mores[] = {
    {0, 0},
    {T_MASK, 5},
    {T_MASKS | T_WINDOWS, 8},
    {T_STEPS, 1},
    {T_NO_CONTENT | T_ADD | T_ADD_ALL_SEQUENCES | T_MASK, 4},
    {T_REL_Q | T_STEPS | T_ADD, 5},
    {T_ADD | T_SCORES_OUT | T_GAIN | T_MASK, 6},
    {T_ADD | T_ADD_ALL_ROWS | T_ADD_ALL_HEADS, 0},
    {T_MIX_LOGITS | T_MIX_PROBS | T_SINKS | T_ADD | T_REL_Q | T_GAIN | T_SCORES_OUT | T_MASKS, 7},
    {T_SINK_LOGIT | T_SINKS | T_CAP | T_NARROW_V, 0},
    {T_FADE | T_WINDOWS | T_GAIN | T_SCORES_OUT | T_SINKS, 0},
    {T_WIDE_V | T_CAP, 0},
};

static struct ba_stride stride_of(struct stride s) { return (struct ba_stride){s.batch, s.row}; }

static struct ba_mask mask_of(const struct mask *m)
{
    return (struct ba_mask){.size = sizeof(struct ba_mask),
                            .window = m->window,
                            .dilation = m->window ? m->dilation : 0,
                            .block = m->block,
                            .back = m->back,
                            .memory = m->memory,
                            .stride = m->stride,
                            .fixed = m->fixed,
                            .summary = m->summary,
                            .global = m->global,
                            .rect_rows = m->rect_rows,
                            .rect = m->rect,
                            .row = m->row,
                            .margin_rows = m->margin_rows,
                            .margin = m->margin,
                            .n_random = m->n_random,
                            .random_blocks = m->n_random ? m->random_blocks : 0,
                            .random_from = m->random_from,
                            .random = m->n_random ? m->random : NULL};
}

/* What nothing reads is left out, as a caller would. */
static struct ba_attention call_of(const struct attn *a, struct ba_mask masks[3])
{
    const bool tables = a->rel_k || a->rel_v || a->rel_q, rows = tables || a->bias;

    for (int i = 0; a->mask && i < 3; i++)
        masks[i] = mask_of(&a->mask[i]);
    return (struct ba_attention){
        .size = sizeof(struct ba_attention),
        .B = a->B,
        .H = a->H,
        .L = a->L,
        .M = a->M,
        .dh = a->dh,
        .Hkv = a->Hkv,
        .K = a->K,
        .dv = a->dv,
        .causal = a->causal,
        .window = a->window_of_head ? 0 : a->window,
        .R = rows ? a->R : 0,
        .Rf = rows ? a->Rf : 0,
        .scale = a->scale,
        .n_masks = a->mask ? 3 : 0,
        .q = a->q,
        .k = a->k,
        .v = a->v,
        .q_at = stride_of(a->q_at),
        .k_at = stride_of(a->k_at),
        .v_at = stride_of(a->v_at),
        .o_at = stride_of(a->o_at),
        .o = a->o,
        .lse = a->lse,
        .u = a->u,
        .w = a->rel_k ? a->w : NULL,
        .rel_k = a->rel_k,
        .rel_v = a->rel_v,
        .rel_q = a->rel_q,
        .bias = a->bias,
        .rel_head = tables ? a->rel_head : 0,
        .bias_head = a->bias ? a->bias_head : 0,
        .q_step = a->q_step,
        .k_step = a->k_step,
        .q_first = a->q_first,
        .sinks = a->sinks,
        .base = a->base,
        .masks = a->mask ? masks : NULL,
        .mask_of_head = a->mask_of_head,
        .window_of_head = a->window_of_head,
        .add = a->add.at,
        .add_batch = a->add.batch,
        .add_head = a->add.head,
        .add_row = a->add.row,
        .fade = a->fade.at,
        .fade_batch = a->fade.batch,
        .fade_head = a->fade.head,
        .scores_out = a->scores_out,
        .mix_logits = a->mix_logits,
        .mix_probs = a->mix_probs,
        .sink_k = a->sink_k,
        .sink_v = a->sink_v,
        .sink_logit = a->sink_logit,
        .soft_cap = a->soft_cap,
        .gain = a->gain,
        .no_content = a->no_content,
    };
}

static struct ba_attention_grad grad_call_of(const struct attn_grad *d)
{
    return (struct ba_attention_grad){.size = sizeof(struct ba_attention_grad),
                                      .d_o = d->d_o,
                                      .d_scores_out = d->d_scores_out,
                                      .d_q = d->d_q,
                                      .d_k = d->d_k,
                                      .d_v = d->d_v,
                                      .d_u = d->d_u,
                                      .d_w = d->d_w,
                                      .d_rel_k = d->d_rel_k,
                                      .d_rel_v = d->d_rel_v,
                                      .d_rel_q = d->d_rel_q,
                                      .d_bias = d->d_bias,
                                      .d_add = d->d_add,
                                      .d_fade = d->d_fade,
                                      .d_mix_logits = d->d_mix_logits,
                                      .d_mix_probs = d->d_mix_probs,
                                      .d_sink_k = d->d_sink_k,
                                      .d_sink_v = d->d_sink_v,
                                      .d_sink_logit = d->d_sink_logit};
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
            for (int m = 0; m < (int)ARRAY_LEN(mores); m++) {
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
