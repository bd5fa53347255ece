/* SPDX-License-Identifier: MIT
 *
 * Attention as a kind of sub-layer, backward: W_o, the implementation's own backward pass, the
 * position scheme's tables, and the projections of memory and new rows. */
#include "sublayer_attention.h"

/* From d_y to the gradients of q, k, v and of the position scheme's weights. */
static void core_backward(const struct engine *g, struct sublayer *s, const struct work *w,
                          const float *d_y, int B, int L)
{
    const struct config *c = s->c;
    const struct attention *t = &s->state.attention;
    struct attn a = attention_operands(s, w, B, L);
    const int64_t base = attention_base(s);
    const struct term_params p = attention_term_params(s);
    struct attn_grad d = {.d_o = w->d_array[AT_O], .d_v = w->d_array[AT_V]};

    const struct part_call all = attention_call(g, s, w, B, L);
    struct part_call one;

    if (s->asks) {
        d.d_q = w->d_array[AT_Q];
        d.d_k = w->d_array[AT_K];
    }
    const float *const o = attention_output(&all);
    if (AROUND_ONE(map.unproject_grad, &all, &one))
        one.part->map.unproject_grad(&one, w->d_array[AT_O], d_y, o);
    else
        project_out_grad(g, s, w->d_array[AT_O], d_y, o, B * a.L);
    AROUND_EACH(map.output_grad, &all, w->d_array[AT_O]);
    AROUND_EACH(map.join_grad, &all, w->d_array[AT_O]);
    if (!s->lazy)
        terms_grad(c, &p, t->reach, &a, w->d_array[AT_D_TABLES], &d);
    attention_score_residual_grad(s, w, &a, &d);
    around_scores_grad(&all, &a, &d);
    const bool done = AROUND_ONE(term.core, &all, &one);
    if (done)
        one.part->term.core->run_grad(&one, &a, &d);
    for (int map = 0; map < config_maps(c) && !done; map++) {
        const struct attn softmax = around_softmax(&all, &a, map);
        const struct attn_grad d_softmax = around_softmax_grad(&all, &d, map);
        t->impl->backward(g, &softmax, &d_softmax, w->d_scratch);
    }
    AROUND_EACH(term.add_grad, &all, &a, &d);
    const struct seq_rows d_q = {d.d_q, a.q_at.batch}, d_k = {d.d_k, a.k_at.batch};
    if (s->asks) {
        AROUND_EACH(map.turned, &all, d_q, a.L, c->H, true);
        AROUND_EACH(map.turned, &all, d_k, a.M + a.L, c->kv_heads, true);
        attention_rotate(g, s, d_q, B, a.L, config_maps(c) * c->H, base + a.M, true);
        attention_rotate(g, s, d_k, B, a.M + a.L, config_maps(c) * c->kv_heads, base, true);
        around_operands_grad(&all, &d);
    }
    if (!s->lazy)
        terms_build_tables_grad(g, c, &p, w->pos_encoding, &a, &d);
}

void attention_backward_projections(const struct engine *g, struct sublayer *s,
                                    const struct work *w, struct sublayer_input from, float *d_in,
                                    const float *d_y, int skip)
{
    const struct project_grad d = {w->d_array[AT_Q], w->d_array[AT_K], w->d_array[AT_V]};
    const struct part_call all = attention_call(g, s, w, from.B, from.L);

    CHECK(s->mem != MEM_KV);
    core_backward(g, s, w, d_y, from.B, from.L);
    if (s->pools)
        project_pooled_backward(g, s, from, w->array[AT_POOLED], d_in, w->d_array[AT_POOLED], d);
    else
        project_backward(g, s, from, d_in, d, skip);
    AROUND_EACH(term.input_grad, &all, from, d_in, skip);
    AROUND_EACH(map.input_grad, &all, from, d_in, skip);
}

double attention_grad_flop(const struct sublayer *s, int B, int L, int M)
{
    const struct config *c = s->c;
    const double HD = config_q_width(c), kv_width = config_kv_width(c);
    const double rows = (double)B * attention_query_rows(s, L), in = attention_width(c);
    /* Memory is a constant unless a norm or a map with weights is applied to it. */
    const double fresh = (double)B * L, all = (double)B * (attention_kept(s, M) + L);
    const double projected = s->mem == MEM_HIDDEN ? all : fresh;
    const double reached = wiring_norms_first(s->wiring) || c->qkv_map ? projected : fresh;
    const struct attn a = attention_for_flop(s, B, L, M);
    const double q_in = s->asks ? in : 0;
    return config_maps(c) * attn_grad_flop(&a) +
           4 * rows * (q_in + c->D) * HD            /* W_q, W_o: dX and dW */
           + 2 * projected * (q_in + in) * kv_width /* dW_k, dW_v */
           + 2 * reached * (q_in + in) * kv_width   /* dX through them */
           + 2 * around_flop(s, &a, rows, reached) + 2 * attention_map_flop(s, projected);
}
