/* SPDX-License-Identifier: MIT
 *
 * For tests of whole models backward: a model bound for training with memory from an earlier
 * segment where there is one, its loss, and weights that keep it off corners. Everything except
 * weights starts as NaN. */
#pragma once

#include "gradients.h"
#include "model.h"
#include "trains.h"
#include "variants/model/lm/exit.h"
#include "variants/parts/ffn/moe.h"

enum { B = 2, L = 5, MEM = 4, FIRST = 3 }; /* FIRST tokens become memory before the segment */

struct trained {
    struct model m;
    int32_t tokens[B * L], targets[B * L];
    int32_t source[B * (MEM + 1)]; /* of an encoder */
    float nll[B * L];
    enum mem_kind kind;
};

/* Bound for longer segments and more memory than are run, so that tables have spare rows. */
static const struct extent bound = {B, L + 2, MEM + 1};

static inline void open_trained(struct trained *t, const struct config *config, const char *backend,
                                int threads)
{
    struct model *m = &t->m;
    struct config c = *config;

    *t = (struct trained){.kind = variant_mem(c.variant)->recurrent && !c.enc_layers ? MEM_HIDDEN
                                                                                     : MEM_NONE};
    c.max_seq = bound.L;
    c.slots.bptt = false; /* what an earlier segment wrote is memory here, a constant */
    model_open_trained(m, &c, backend, threads, t->kind, bound);
    for (int i = 0; i < B * bound.M; i++)
        t->source[i] = token_of(m, i / bound.M, 100 + i % bound.M);
    m->lm.source = t->source;
    for (int i = 0; i < B * L; i++) {
        t->tokens[i] = token_of(m, i / L, FIRST + i % L);
        t->targets[i] = token_of(m, i / L, FIRST + i % L + 1);
    }
}

/* The loss where every layer has one: layer l counts l / (1 + .. + N). */
static inline double mean_of_layers(struct trained *t)
{
    struct lm *const m = &t->m.lm;
    const struct early_exit *const exits = m->drive_data;
    const int N = m->c.N;
    double sum = 0;

    for (int l = 1; l <= N; l++) {
        lm_output(m, &t->m.g, layer_state(exits->sublayers, l, exits->h), B * L);
        t->m.g.ops.nll(&(struct nll_op){.nll = t->nll,
                                        .logits = m->logits,
                                        .target = t->targets,
                                        .rows = B * L,
                                        .n = m->c.V,
                                        .threads = 1});
        for (int i = 0; i < B * L; i++)
            sum += 2.0 * l / (N * (N + 1.0)) * (double)t->nll[i] / (B * L);
    }
    return sum;
}

/* What a budget of gates adds. */
static inline double over_budget(const struct trained *t)
{
    const struct lm *const m = &t->m.lm;
    double mean = 0;

    for (int k = 0; m->c.cond && k < m->sublayers.n; k++)
        for (int i = 0; i < B * L; i++)
            mean += (double)m->sublayers.work[k].open[i] / (m->sublayers.n * B * L);
    return m->c.cond ? (double)m->c.budget_coef * pow(mean - (double)m->c.budget, 2) : 0;
}

/* The tables follow the weights; memory, made with the earlier weights, stays. */
static inline double loss(void *ctx)
{
    struct trained *t = ctx;
    double sum = 0;

    lm_build_tables(&t->m.lm, &t->m.g);
    lm_forward(&t->m.lm, &t->m.g, t->tokens, B, L, L, t->targets, t->nll);
    for (int i = 0; i < B * L; i++)
        sum += (double)t->nll[i];
    const struct config *const c = &t->m.lm.c;
    const double weight = c->ffn->aux ? (double)moe_of(c)->aux_coef : 0;
    const double mean = c->exit ? mean_of_layers(t) : sum / (B * L);
    return mean + pondering(&t->m.lm) + weight * lm_aux(&t->m.lm, B, L) + over_budget(t);
}

static inline void remember(struct trained *t)
{
    int32_t tokens[B * FIRST];

    if (t->kind != MEM_HIDDEN)
        return;
    for (int i = 0; i < B * FIRST; i++)
        tokens[i] = token_of(&t->m, i / FIRST, i % FIRST);
    lm_build_tables(&t->m.lm, &t->m.g);
    lm_forward(&t->m.lm, &t->m.g, tokens, B, FIRST, FIRST, NULL, NULL);
    lm_commit(&t->m.lm, FIRST);
}

static inline void run_backward(struct trained *t)
{
    params_zero_grad(&t->m.lm.params);
    loss(t);
    lm_backward(&t->m.lm, &t->m.g, t->tokens, t->targets, B, L);
}

/* Small maps with biases of +1 and -1 before every ReLU: half of it is off, and no step comes near
 * its corner. */
static inline void avoid_corners(struct params *p)
{
    static const char *const maps[] = {
        "ff.1.weight",  "ff.2.weight",   "ff0.1.weight",  "ff0.2.weight", "attn.o.weight",
        "halt.weight",  "w_ih",          "w_hh",          "e.1.weight",   "e.2.weight",
        "syn.1.weight", "attn.h.weight", "attn.i.weight", "read.o.weight"};
    static const char *const biases[] = {
        "ff.1.bias", "ff.2.bias", "ff0.1.bias", "ff0.2.bias",  "attn.o.bias", "b_ih",
        "e.1.bias",  "e.2.bias",  "syn.1.bias", "attn.h.bias", "attn.i.bias", "read.o.bias"};

    /* sinusoids at every step make a long stream */
    const float small = params_find(p, "halt.weight") ? 0.0625f : 0.25f;

    for (int i = 0; i < p->n; i++) {
        struct param *w = &p->v[i];
        if (ends_in(w->name, ".alpha")) /* starts near 0, where f would hardly count */
            *w->data = 0.25f;
        if (ends_in(w->name, "aan.gate.bias")) /* nearly all of the average, which has a bias */
            for (size_t e = 0; e < w->n; e++)
                w->data[e] = e < w->n / 2 ? -4 : 4;
        for (size_t k = 0; k < ARRAY_LEN(maps); k++)
            for (size_t e = 0; e < w->n; e++) {
                if (ends_in(w->name, maps[k]))
                    w->data[e] *= small;
                if (k < ARRAY_LEN(biases) && ends_in(w->name, biases[k]))
                    w->data[e] = e % 2 ? -1 : 1;
            }
        quantise(w->data, w->n);
    }
}

/* The training loss of a case may be off by 1e-4; a gradient, which sums over a longer way, by twice
 * as much of its largest entry or, if it cancels to nothing, of the model's typical one. */
static inline void expect_like(const struct trained *got, const struct trained *want)
{
    const struct params *p = &got->m.lm.params, *q = &want->m.lm.params;
    double typical = 0;

    for (int i = 0; i < q->n; i++)
        for (size_t e = 0; e < q->v[i].n; e++)
            typical = fmax(typical, fabs((double)q->v[i].grad[e]));
    typical *= 1e-3;
    for (int i = 0; i < p->n; i++) {
        double largest = typical, worst = 0;
        for (size_t e = 0; e < p->v[i].n; e++)
            largest = fmax(largest, fabs((double)q->v[i].grad[e]));
        for (size_t e = 0; e < p->v[i].n; e++)
            worst = fmax(
                worst, in_bounds((double)p->v[i].grad[e], (double)q->v[i].grad[e], 2e-4 * largest));
        cr_expect(worst <= 1, "%s, %s, %s, %s: %.3f of the bound", got->m.g.backend->name,
                  got->m.lm.c.variant->name, got->m.lm.c.ffn->name, p->v[i].name, worst);
    }
    cr_expect_lt(case_error(got->nll, want->nll, B * L), 1, "%s, %s, %s", got->m.g.backend->name,
                 got->m.lm.c.variant->name, got->m.lm.c.ffn->name);
}

/* What run_backward leaves in the parameters are differences of f; false: corners are near. */
static inline bool expect_derivatives_of(struct trained *t, const struct scalar *f,
                                         const char *what)
{
    run_backward(t);
    return expect_gradients_aside(f, what, &t->m.lm.params, 64 * U);
}

/* A model's gradient is another than the other's, its loss is not. */
static inline void expect_other_gradient(const struct config *with, const struct config *without)
{
    struct trained a, b;
    size_t n, m;

    open_trained(&a, with, "ref", 1), open_trained(&b, without, "ref", 1);
    cr_expect_eq(loss(&a), loss(&b));
    run_backward(&a), run_backward(&b);
    float *const x = copy_gradients(&a.m.lm.params, &n), *const y =
                                                             copy_gradients(&b.m.lm.params, &m);
    cr_expect(n == m && memcmp(x, y, n * sizeof(*x)) != 0);
}

/* A backend like the reference, and like itself the second time, to the last bit. */
static inline void as_reference(const struct config *c, const char *backend)
{
    struct trained got, want;
    size_t n;

    open_trained(&got, c, backend, 2); /* first: it may not run here */
    open_trained(&want, c, "ref", 2);
    avoid_corners(&want.m.lm.params), avoid_corners(&got.m.lm.params);
    remember(&want), remember(&got);
    run_backward(&want), run_backward(&got);
    expect_like(&got, &want);

    float *first = copy_gradients(&got.m.lm.params, &n);
    run_backward(&got);
    float *second = copy_gradients(&got.m.lm.params, &n);
    cr_expect(memcmp(first, second, n * sizeof(*first)) == 0);
}
