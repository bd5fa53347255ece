/* SPDX-License-Identifier: MIT
 *
 * FLOP of every variant of the registry, counted as it runs: products by an operation that counts
 * what it multiplies, attention pair by pair by the rule of visibility; and bytes of its operands. */
#include "tests/support/model.h"

enum { B = 2, L = 7, MOST_MEM = 5 };

static struct {
    double products, pairs; /* FLOP of matrix products; of attention */
    bool plain;             /* attention has no further terms */
    void (*product)(const struct gemm *);
    const struct attn_impl *impl;
} counted;

static void count_product(const struct gemm *p)
{
    counted.products += 2.0 * p->m * p->n * p->k;
    counted.product(p);
}

static bool visible(const struct attn *a, int h, int i, int j)
{
    const int dist = a->M + i - j, window = a->window_of_head ? a->window_of_head[h] : a->window;
    const struct mask *const mask =
        a->mask && a->mask_of_head ? &a->mask[a->mask_of_head[h]] : a->mask;

    return (!a->causal || dist >= 0) && (!window || dist < window) &&
           (!mask || mask_visible(mask, a->base + a->M + i, a->base + j));
}

/* Each number of q, k, v and o once, where there is nothing else. */
static void expect_bytes(const struct attn *a)
{
    const unsigned none = TERM_WINDOW | TERM_SHARED_KEYS | TERM_LSE | TERM_MASK |
                          TERM_WINDOW_OF_HEAD | TERM_SOFT_CAP | TERM_GAIN;
    const double query = (double)a->B * a->L * a->H, key = (double)a->B * (a->M + a->L) * a->Hkv;

    if ((attn_terms(a) & ~none) == 0 && !a->no_content && !a->q_step && !a->K)
        cr_expect_eq(attn_bytes(a), sizeof(float) * (query + key) * (a->dh + attn_dv(a)));
}

/* q.k and p.v of each pair; what queries and keys have besides is not counted. */
static void count_pairs(const struct engine *g, const struct attn *a, void *scratch)
{
    const unsigned plain = TERM_WINDOW | TERM_SHARED_KEYS | TERM_U | TERM_BIAS | TERM_LSE |
                           TERM_MASK | TERM_WINDOW_OF_HEAD | TERM_SOFT_CAP | TERM_GAIN;
    double pairs = 0;

    counted.plain = counted.plain && (attn_terms(a) & ~plain) == 0;
    for (int h = 0; h < a->H && !a->q_step && !a->K; h++)
        for (int i = 0; i < a->L; i++)
            for (int j = 0; j < a->M + a->L; j++)
                pairs += visible(a, h, i, j);
    counted.pairs += 2.0 * a->B * pairs * ((a->no_content ? 0 : a->dh) + attn_dv(a));
    expect_bytes(a);
    counted.impl->forward(g, a, scratch);
}

/* Are its sub-layers nothing but attention and networks of products? */
static bool products_only(const struct lm *m)
{
    for (int i = 0; i < m->sublayers.n; i++) {
        const struct sublayer *const s = &m->sublayers.at[i];
        if ((s->kind != &sublayer_attention && s->kind != &sublayer_ffn) || s->level || s->skip)
            return false;
    }
    return !around_has(&m->c, SLOT_head_capsules) && !around_has(&m->c, SLOT_term_cope) &&
           (m->drive == &drive_plain || (m->drive == &drive_depth && m->c.halt == HALT_NEVER));
}

/* Exactly, where all of it is counted here: returns whether it is. Otherwise nearly as much at
 * least: what is useful leaves out a little of what is multiplied, such as rows before a text. */
static bool expect_flop(int v)
{
    const struct form form = {v, -1, (int)variants[v]->wiring};
    struct config c = wired(&form, 0);
    const enum mem_kind kind = mem_can(config_mem(&c), MEM_KV) ? MEM_KV : MEM_NONE;
    const int M = kind == MEM_KV ? MOST_MEM : 0;
    struct attn_impl count = {0};
    struct model m;

    c.gate = variants[v]->gate;
    model_open(&m, &c, "ref", 1, kind, (struct extent){B, L, M});

    for (int t = 0; t < M; t++) { /* as many tokens as are remembered: the oldest is the first */
        model_segment(&m, 0, B, t, 1, 1);
        lm_commit(&m.lm, 1);
    }
    counted.product = m.g.ops.gemm;
    m.g.ops.gemm = count_product;
    counted.products = counted.pairs = 0;
    counted.plain = true;
    for (int i = 0; i < m.lm.sublayers.n; i++) {
        struct sublayer *const s = &m.lm.sublayers.at[i];
        if (s->kind != &sublayer_attention)
            continue;
        counted.impl = s->state.attention.impl;
        count = *counted.impl;
        count.forward = count_pairs;
        s->state.attention.impl = &count;
    }
    model_segment(&m, 0, B, M, L, L);
    const double said = lm_flop(&m.lm, B, L, M, L), found = counted.products + counted.pairs;
    const bool whole = counted.plain && products_only(&m.lm);
    if (whole)
        cr_expect_eq(said, found, "%s: %.0f, not %.0f", variants[v]->name, said, found);
    if (!m.lm.c.exit) /* every layer has logits here */
        cr_expect_geq(said, 0.9 * found, "%s: %.0f of %.0f", variants[v]->name, said, found);
    return whole;
}

Test(counted, flop_of_every_variant, .timeout = 240)
{
    int whole = 0;

    for (int v = 0; variants[v]; v++)
        whole += expect_flop(v);
    cr_expect_geq(whole, 33, "%d variants counted exactly", whole);
}
