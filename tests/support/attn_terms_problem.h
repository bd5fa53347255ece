/* SPDX-License-Identifier: MIT
 *
 * For tests of attention's backward pass with all of its terms: operands, their gradients, and one
 * pass with guards around all of them. */
#ifndef ATTN_TERMS_PROBLEM_H
#define ATTN_TERMS_PROBLEM_H

#include "attn_terms.h"
#include "finite.h"

/* An operand, its gradient, and the bound of one pair's contribution to it. */
struct operand {
    const char *name;
    float *x, *d;
    size_t n;
    double one;
};
enum { OPERANDS = 16 };

struct problem {
    struct wide w;
    struct attn_grad d;
    float *d_o, *d_scores, *d_fade;
    struct operand operands[OPERANDS];
    int n;
};

static inline float *filled(size_t n, float value)
{
    float *x = guarded(n);

    for (size_t i = 0; i < n; i++)
        x[i] = value;
    return x;
}

/* Terms start at 0 and are added to; q, k and v at the guard's value and are written. */
static inline float *operand(struct problem *p, const char *name, float *x, size_t n, bool wanted,
                             bool added, double one)
{
    if (!wanted)
        return NULL;
    float *d = filled(n, added ? 0 : GUARD_VALUE);
    p->operands[p->n++] = (struct operand){name, x, d, n, one};
    quantise(x, n);
    return d;
}

/* A query's probabilities sum to 1, so its G sums to at most 2 |dO| |v| times the factors of mixing
 * and gain, plus what arrives; scale G multiplies keys or queries. */
static inline void list_operands(struct problem *p, const struct shape *s)
{
    struct operands *x = &p->w.x;
    const struct attn *a = &x->a;
    const int dh = a->dh, tables = a->rel_head ? a->H : 1, rows = a->R + a->Rf;
    const size_t uw = (size_t)(a->H * dh), rel = (size_t)(tables * rows * dh);
    const size_t bias = (size_t)((a->bias_head ? a->H : 1) * rows);
    const double d_o = widest(p->d_o, s->B, s->L, a->o_at, a->H * attn_dv(a));
    const double length = sqrt(max_int(dh, attn_dv(a))) * 6;
    const double dA = 2 * d_o * length * widest_mix(a->mix_probs, a->H);
    const double G = (dA + 4) * fmax(1, widest_mix(a->mix_logits, a->H));
    const double q = fabs((double)a->scale) * G * length;

    p->d.d_q = operand(p, "d_q", x->q, (size_t)(s->B * a->q_at.batch), a->q, false, q);
    p->d.d_k = operand(p, "d_k", x->k, (size_t)(s->B * a->k_at.batch), a->k, false, q);
    p->d.d_v = operand(p, "d_v", x->v, (size_t)(s->B * a->v_at.batch), true, false, d_o);
    p->d.d_u = operand(p, "d_u", x->u, uw, a->u, true, q);
    p->d.d_w = operand(p, "d_w", x->w, uw, a->w && a->rel_k, true, q);
    p->d.d_rel_k = operand(p, "d_rel_k", x->rel_k, rel, a->rel_k, true, q);
    p->d.d_rel_v = operand(p, "d_rel_v", x->rel_v, rel, a->rel_v, true, d_o);
    p->d.d_rel_q = operand(p, "d_rel_q", p->w.rel_q, rel, a->rel_q, true, q);
    p->d.d_bias = operand(p, "d_bias", x->bias, bias, a->bias, true, G);
    p->d.d_add = operand(p, "d_add", p->w.add, p->w.add_n, a->add.at, true, G);
    p->d_fade = operand(p, "d_fade", p->w.fade, p->w.fade_n, a->fade.at, true, G);
    p->d.d_fade = p->d_fade ? calloc(p->w.fade_n, sizeof(double)) : NULL;
    set_fade(&p->w); /* of what `operand` has rounded */
    p->d.d_mix_logits = operand(p, "d_mix_logits", p->w.mix_logits, p->w.mix_n, a->mix_logits, true,
                                G * widest_score(&p->w));
    p->d.d_mix_probs =
        operand(p, "d_mix_probs", p->w.mix_probs, p->w.mix_n, a->mix_probs, true, dA);
    p->d.d_sink_k = operand(p, "d_sink_k", p->w.sink_k, p->w.sink_n, a->sink_k, true, q);
    p->d.d_sink_v = operand(p, "d_sink_v", p->w.sink_v, p->w.sink_v_n, a->sink_v, true, d_o);
    p->d.d_sink_logit = operand(p, "d_sink_logit", x->sink_logit, (size_t)(a->H * SINK_LOGITS),
                                a->sink_logit, true, G);
}

static inline void make_problem(struct problem *p, const struct shape *s, const struct scheme *t,
                                const struct more *m)
{
    *p = (struct problem){.n = 0};
    make_wide(&p->w, s, t, m);
    struct attn *a = &p->w.x.a;
    a->lse = p->w.x.lse;
    p->d_o = normal(p->w.x.o_size, "d_o", 0, 1);
    quantise(p->d_o, p->w.x.o_size);
    p->d.d_o = p->d_o;
    p->d_scores = normal(p->w.scores_n, "d_scores", 0, 1);
    quantise(p->d_scores, p->w.scores_n);
    for (size_t x = 0; x < p->w.scores_n; x++) {
        const int j = (int)x % (s->L + s->M), row = (int)x / (s->L + s->M);
        if (!loop_sees(a, row / s->L % s->H, row % s->L, j))
            p->d_scores[x] = NAN; /* must not be read */
    }
    p->d.d_scores_out = a->scores_out ? p->d_scores : NULL;
    list_operands(p, s);
}

static inline void free_problem(struct problem *p)
{
    for (int n = 0; n < p->n; n++)
        release(p->operands[n].d);
    release(p->d_o), release(p->d_scores), free(p->d.d_fade);
    free_wide(&p->w);
}

/* Scratch of exactly the size asked for, full of NaN. */
static inline void backward(const struct engine *g, const struct problem *p)
{
    const struct attn *a = &p->w.x.a;
    const struct attn_impl *impl;
    struct err e = {""};

    cr_assert_eq(engine_attn(g, a, &impl, &e), OK, "%s", e.msg);
    const struct attn_need need = impl->need_backward(a, g->threads);
    const size_t size = need.scores_bytes + need.scratch_bytes;
    unsigned char *scratch = aligned_alloc(64, round_up(size + 64, 64));
    cr_assert_not_null(scratch);
    memset(scratch, 0xff, round_up(size + 64, 64));
    impl->backward(g, a, &p->d, scratch);
    for (int i = 0; i < 64; i++)
        cr_expect_eq(scratch[size + (size_t)i], 0xff, "scratch overrun");
    free(scratch);
    for (size_t x = 0; p->d_fade && x < p->w.fade_n; x++)
        p->d_fade[x] = (float)p->d.d_fade[x];
    for (int n = 0; n < p->n; n++)
        cr_expect(guards_intact(p->operands[n].d, p->operands[n].n), "%s", p->operands[n].name);
    cr_expect(guards_intact(p->w.scores_out, p->w.scores_n));
}

static inline void run(const struct engine *g, const struct problem *p)
{
    attend(g, &p->w.x.a);
    backward(g, p);
}

#endif
