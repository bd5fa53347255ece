/* SPDX-License-Identifier: MIT
 *
 * Golden files of whole language models (kind = lm), segment after segment with their memory. */
#include "golden_inner.h"

#include "../variants/checkpoint.h"
#include "../variants/lm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct lm_run {
    struct lm m;
    struct arena arena;
    float *nll;
    int grad_segment; /* whose gradients the file has; -1 = none, or none here */
};

static enum status bind_lm(struct lm_run *o, const struct engine *g, enum mem_kind kind,
                           struct extent max, struct err *e)
{
    enum status st = lm_bind(&o->m, g, kind, max, &o->arena, e);

    if (st == OK && o->grad_segment >= 0 && subs_can_grad(&o->m.subs, g, NULL) != OK)
        o->grad_segment = -1;
    if (st == OK && o->grad_segment >= 0)
        st = lm_bind_grad(&o->m, g, &o->arena, e);
    o->nll = arena_f32(&o->arena, PART_ACTIVATIONS, (size_t)max.B * (size_t)max.L);
    return st;
}

/* out.mem.s.l [B,M_s,D] is the memory of the l-th sub-layer that has one after segment s. */
static void compare_memory(struct run *r, const struct lm *m, int segment)
{
    const size_t D = (size_t)m->c.D;

    for (int l = 0, at; (at = subs_remembering(&m->subs, l)) >= 0; l++) {
        const struct cache *c = &m->subs.at[at].memory;
        const size_t rows = (size_t)c->M;
        char name[64];
        float *flat = malloc((size_t)c->B * rows * D * sizeof(float));
        CHECK(flat);
        for (int b = 0; b < c->B; b++)
            memcpy(flat + (size_t)b * rows * D, cache_rows(c, b), rows * D * sizeof(float));
        snprintf(name, sizeof(name), "out.mem.%d.%d", segment, l);
        golden_compare(r, name, flat, (size_t)c->B * rows * D);
        free(flat);
    }
}

static enum status run_segment(struct run *r, struct lm_run *o, int segment, struct err *e)
{
    struct lm *m = &o->m;
    const int B = m->max.B;
    char name[64];
    enum status st = OK;

    snprintf(name, sizeof(name), "in.tokens.%d", segment);
    const struct tensor *tokens = safetensors_find(r->s, name);
    const int L = tokens && tokens->rank == 2 ? tokens->shape[1] : 0;
    tokens = golden_need(r, name, DTYPE_I32, (size_t)B * (size_t)L, &st, e);
    snprintf(name, sizeof(name), "in.targets.%d", segment);
    const struct tensor *targets = golden_need(r, name, DTYPE_I32, (size_t)B * (size_t)L, &st, e);
    if (st != OK)
        return st;
    if (L < 1 || L > m->max.L)
        return fail(e, E_IO, "%s: segment %d has %d tokens, its metadata says at most %d",
                    r->s->path, segment, L, m->max.L);
    const int32_t *token = tokens->data, *target = targets->data;
    for (int t = 0; t < B * L; t++)
        if (token[t] < 0 || token[t] >= m->c.V || target[t] < 0 || target[t] >= m->c.V)
            return fail(e, E_IO, "%s: segment %d has a token outside the vocabulary of %d",
                        r->s->path, segment, m->c.V);

    lm_forward(m, r->g, token, B, L, L, target, o->nll);
    snprintf(name, sizeof(name), "out.logits.%d", segment);
    golden_compare(r, name, m->logits, (size_t)B * (size_t)L * (size_t)m->c.V);
    snprintf(name, sizeof(name), "out.nll.%d", segment);
    golden_compare(r, name, o->nll, (size_t)B * (size_t)L);
    if (segment == o->grad_segment) {
        params_zero_grad(&m->params);
        lm_backward(m, r->g, token, target, B, L);
        golden_compare_grad(r, &m->params);
    }
    lm_commit(m, L);
    if (m->kind == MEM_HIDDEN)
        compare_memory(r, m, segment);
    return OK;
}

static enum status run_lm(struct run *r, struct lm_run *o, struct err *e)
{
    struct config c;
    struct extent max = {0};
    int segments = 0;
    enum status st = checkpoint_config(r->s, "param.", &c, e);

    if (st != OK || (st = golden_whole(r, "batch", &max.B, e)) != OK ||
        (st = golden_whole(r, "n_seg", &segments, e)) != OK)
        return st;
    if (c.V < 1 || max.B < 1)
        return fail(e, E_IO, "%s: vocab %d, batch %d  -> both must be 1 or more", r->s->path, c.V,
                    max.B);
    if (c.same_length)
        c.window = c.mem_len;
    max.L = c.max_seq;
    max.M = c.mem_len;
    if ((st = safetensors_int(r->s, "grad_segment", -1, -1, 1 << 16, &o->grad_segment, e)) != OK)
        return st;
    const enum mem_kind kind = max.M ? MEM_HIDDEN : MEM_NONE;
    if ((st = lm_init(&o->m, &c, e)) != OK || (st = bind_lm(o, r->g, kind, max, e)) != OK ||
        (st = arena_place(&o->arena, HUGE_NEVER, NULL, NULL, e)) != OK ||
        (st = bind_lm(o, r->g, kind, max, e)) != OK ||
        (st = checkpoint_load(r->s, "param.", &o->m.params, e)) != OK ||
        (st = golden_no_strangers(r, &o->m.params, e)) != OK)
        return st;
    lm_lower(&o->m, r->g);
    for (int s = 0; st == OK && s < segments; s++)
        st = run_segment(r, o, s, e);
    if (st == OK && o->grad_segment < 0)
        golden_skip_grad(r, "no backward pass");
    return st;
}

enum status golden_lm(struct run *r, struct err *e)
{
    struct lm_run o = {0};
    const enum status st = run_lm(r, &o, e);

    lm_free(&o.m);
    arena_release(&o.arena);
    return st;
}
