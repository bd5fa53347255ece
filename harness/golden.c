/* SPDX-License-Identifier: MIT
 *
 * Running golden files. Probabilities are never asked of a backend: they are read off its output
 * by attending over one-hot values, so a kernel that never materialises them is tested as well. */
#include "golden.h"

#include "../variants/checkpoint.h"
#include "../variants/lm.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct run {
    const struct engine *g;
    const struct safetensors *s;
    struct tally *tally;
    verdict_fn *report;
    void *arg;
    double tolerance, tolerance_abs;
};

/* ---- verdicts ----------------------------------------------------------------------------- */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static void judge(struct run *r, const char *tensor, const char *skipped, double error,
                  double limit)
{
    const struct verdict v = {base_name(r->s->path), tensor, r->g->backend->name, skipped, error,
                              limit};

    r->tally->tensors++;
    if (skipped)
        r->tally->skipped++;
    else if (error <= limit) /* false for NaN */
        r->tally->passed++;
    else
        r->tally->failed++;
    r->report(r->arg, &v);
}

/* Pass rule of VARIANTS 10: max|g-e| <= max(tolerance * max|e|, tolerance_abs). */
static void compare(struct run *r, const char *tensor, const float *got, size_t n)
{
    const struct tensor *t = safetensors_find(r->s, tensor);
    double worst = 0, largest = 0;

    if (!t)
        return;
    if (t->n != n) {
        judge(r, tensor, NULL, INFINITY, 0);
        return;
    }
    const float *want = t->data;
    for (size_t i = 0; i < n; i++) {
        const double d = fabs((double)got[i] - (double)want[i]);
        if (d > worst || isnan(d))
            worst = d;
        largest = fmax(largest, fabs((double)want[i]));
    }
    judge(r, tensor, NULL, worst, fmax(r->tolerance * largest, r->tolerance_abs));
}

static void skip_gradients(struct run *r)
{
    for (int i = 0; i < r->s->n_tensors; i++)
        if (strncmp(r->s->tensors[i].name, "out.grad.", 9) == 0)
            judge(r, r->s->tensors[i].name, "no backward pass yet", 0, 0);
}

static const struct tensor *need(const struct run *r, const char *name, enum dtype dtype, size_t n,
                                 enum status *st, struct err *e)
{
    const struct tensor *t = safetensors_find(r->s, name);

    if (*st == OK && (!t || t->dtype != dtype || t->n != n))
        *st = fail(e, E_IO, "%s: tensor \"%s\" is missing or does not fit its metadata", r->s->path,
                   name);
    return t;
}

/* ---- kind = attention --------------------------------------------------------------------- */

struct operator_run {
    struct config c;
    struct params params;
    struct block block;
    struct work work;
    struct extent max;
    enum mem_kind kind;
    struct arena arena;
    float *x, *y, *one_hot, *slice, *probs;
};

static enum status bind_operator(struct operator_run *o, const struct engine *g, struct err *e)
{
    struct arena *a = &o->arena;
    const struct extent m = o->max;
    const size_t HD = (size_t)o->c.H * (size_t)o->c.dh, K = (size_t)(m.L + m.M);
    const size_t rows = (size_t)m.B * (size_t)m.L;

    params_place(&o->params, a);
    block_attach(&o->block, &o->c, &o->params, 0, 0);
    const enum status st = block_bind(&o->block, g, o->kind, m, a, e);
    if (st != OK)
        return st;
    work_bind(&o->work, g, &o->block, o->kind, m, a);
    o->x = arena_f32(a, PART_ACTIVATIONS, rows * (size_t)o->c.D);
    o->y = arena_f32(a, PART_ACTIVATIONS, rows * (size_t)o->c.D);
    o->one_hot = arena_f32(a, PART_ACTIVATIONS, K * HD);
    o->slice = arena_f32(a, PART_ACTIVATIONS, rows * HD);
    o->probs = arena_f32(a, PART_ACTIVATIONS, rows * (size_t)o->c.H * K);
    return OK;
}

/* Memory arrives as it does in use: in segments of at most L rows. */
static void remember(struct operator_run *o, const struct engine *g, const float *mem)
{
    const struct extent m = o->max;
    const size_t D = (size_t)o->c.D;

    for (int done = 0; done < m.M; done += m.L) {
        const int rows = min_int(m.L, m.M - done);
        for (int b = 0; b < m.B; b++)
            memcpy(o->x + (size_t)(b * rows) * D, mem + (size_t)(b * m.M + done) * D,
                   sizeof(float) * (size_t)rows * D);
        block_remember(g, &o->block, o->kind, &o->work, o->x, m.B, rows);
    }
}

/* probs [B,H,L,K]: with v_j = e_{j-j0} the output of query i is p[i, j0 .. j0+dh). */
static void read_probs(struct operator_run *o, const struct engine *g, struct attn a)
{
    const int K = a.M + a.L, HD = a.H * a.dh;

    a.rel_v = NULL;
    a.v = o->one_hot;
    a.v_at = (struct stride){.batch = 0, .row = HD};
    a.o = o->slice;
    for (int j0 = 0; j0 < K; j0 += a.dh) {
        const int n = min_int(a.dh, K - j0);
        memset(o->one_hot, 0, sizeof(float) * (size_t)K * (size_t)HD);
        for (int j = 0; j < n; j++)
            for (int h = 0; h < a.H; h++)
                o->one_hot[(j0 + j) * HD + h * a.dh + j] = 1;
        o->block.impl->forward(g, &a, o->work.attn);
        for (int row = 0; row < a.B * a.H * a.L; row++) {
            const int b = row / (a.H * a.L), h = row / a.L % a.H, i = row % a.L;
            memcpy(o->probs + row * K + j0, o->slice + (b * a.L + i) * HD + h * a.dh,
                   sizeof(float) * (size_t)n);
        }
    }
}

static void run_operator(struct run *r, struct operator_run *o, const struct tensor *x,
                         const struct tensor *mem)
{
    const struct engine *g = r->g;
    const struct extent m = o->max;
    const float *bias = block_output_bias(&o->block);

    if (o->c.pos->codes)
        o->c.pos->codes(&o->c, m.L + m.M, o->work.codes);
    block_lower(g, &o->block, &o->work);
    if (mem)
        remember(o, g, mem->data);
    memcpy(o->x, x->data, x->n * sizeof(float));
    const struct attn a = block_project(g, &o->block, o->kind, &o->work, o->x, m.B, m.L);
    o->block.impl->forward(g, &a, o->work.attn);
    block_unproject(g, &o->block, &o->work, o->y, m.B, m.L);
    if (bias)
        g->ops.act(&(struct act){.y = o->y, .x = o->y, .bias = bias, .rows = m.B * m.L,
                                 .n = o->c.D, .threads = g->threads});
    compare(r, "out.y", o->y, x->n);
    read_probs(o, g, a);
    compare(r, "out.probs", o->probs, (size_t)(m.B * a.H * m.L * (m.L + m.M)));
}

static enum status whole(const struct run *r, const char *key, int *out, struct err *e)
{
    return safetensors_int(r->s, key, 0, 0, 1 << 16, out, e);
}

static enum status golden_attention(struct run *r, struct operator_run *o, struct err *e)
{
    struct extent *m = &o->max;
    enum status st = checkpoint_config(r->s, "param.", &o->c, e);

    if (st != OK || (st = whole(r, "batch", &m->B, e)) != OK ||
        (st = whole(r, "seq", &m->L, e)) != OK || (st = whole(r, "mem", &m->M, e)) != OK)
        return st;
    const size_t row = (size_t)m->B * (size_t)o->c.D;
    const struct tensor *mem = NULL;
    const struct tensor *x = need(r, "in.x", DTYPE_F32, row * (size_t)m->L, &st, e);
    if (m->M)
        mem = need(r, "in.mem", DTYPE_F32, row * (size_t)m->M, &st, e);
    o->kind = m->M ? MEM_HIDDEN : MEM_NONE;
    block_operator_params(&o->c, "", &o->params);
    if (st != OK || (st = bind_operator(o, r->g, e)) != OK ||
        (st = arena_place(&o->arena, HUGE_NEVER, NULL, NULL, e)) != OK ||
        (st = bind_operator(o, r->g, e)) != OK ||
        (st = checkpoint_load(r->s, "param.", &o->params, e)) != OK)
        return st;
    run_operator(r, o, x, mem);
    return OK;
}

/* ---- kind = lm ---------------------------------------------------------------------------- */

struct lm_run {
    struct lm m;
    struct arena arena;
    float *nll;
};

static enum status bind_lm(struct lm_run *o, const struct engine *g, enum mem_kind kind,
                           struct extent max, struct err *e)
{
    const enum status st = lm_bind(&o->m, g, kind, max, &o->arena, e);

    o->nll = arena_f32(&o->arena, PART_ACTIVATIONS, (size_t)max.B * (size_t)max.L);
    return st;
}

/* out.mem.s.l [B,M_s,D] is the memory of layer l after segment s. */
static void compare_memory(struct run *r, const struct lm *m, int segment)
{
    const size_t D = (size_t)m->c.D;

    for (int l = 0; l < m->c.N; l++) {
        const struct cache *c = &m->blocks[l].hidden;
        const size_t rows = (size_t)c->M;
        char name[64];
        float *flat = malloc((size_t)c->B * rows * D * sizeof(float));
        CHECK(flat);
        for (int b = 0; b < c->B; b++)
            memcpy(flat + (size_t)b * rows * D, cache_rows(c, b), rows * D * sizeof(float));
        snprintf(name, sizeof(name), "out.mem.%d.%d", segment, l);
        compare(r, name, flat, (size_t)c->B * rows * D);
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
    tokens = need(r, name, DTYPE_I32, (size_t)B * (size_t)L, &st, e);
    snprintf(name, sizeof(name), "in.targets.%d", segment);
    const struct tensor *targets = need(r, name, DTYPE_I32, (size_t)B * (size_t)L, &st, e);
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
    lm_commit(m, L);
    snprintf(name, sizeof(name), "out.logits.%d", segment);
    compare(r, name, m->logits, (size_t)(B * L) * (size_t)m->c.V);
    snprintf(name, sizeof(name), "out.nll.%d", segment);
    compare(r, name, o->nll, (size_t)(B * L));
    if (m->kind == MEM_HIDDEN)
        compare_memory(r, m, segment);
    return OK;
}

static enum status golden_lm(struct run *r, struct lm_run *o, struct err *e)
{
    struct config c;
    struct extent max = {0};
    int segments = 0;
    enum status st = checkpoint_config(r->s, "param.", &c, e);

    if (st != OK || (st = whole(r, "batch", &max.B, e)) != OK ||
        (st = whole(r, "n_seg", &segments, e)) != OK)
        return st;
    if (c.V < 1 || max.B < 1)
        return fail(e, E_IO, "%s: vocab %d, batch %d  -> both must be 1 or more", r->s->path, c.V,
                    max.B);
    if (c.same_length)
        c.window = c.mem_len;
    max.L = c.max_seq;
    max.M = c.mem_len;
    const enum mem_kind kind = max.M ? MEM_HIDDEN : MEM_NONE;
    if ((st = lm_init(&o->m, &c, e)) != OK || (st = bind_lm(o, r->g, kind, max, e)) != OK ||
        (st = arena_place(&o->arena, HUGE_NEVER, NULL, NULL, e)) != OK ||
        (st = bind_lm(o, r->g, kind, max, e)) != OK ||
        (st = checkpoint_load(r->s, "param.", &o->m.params, e)) != OK)
        return st;
    lm_lower(&o->m, r->g);
    for (int s = 0; st == OK && s < segments; s++)
        st = run_segment(r, o, s, e);
    return st;
}

/* ---- one file ----------------------------------------------------------------------------- */

static enum status run_kind(struct run *r, struct err *e)
{
    const char *kind = safetensors_meta(r->s, "kind");
    enum status st;

    if (kind && strcmp(kind, "attention") == 0) {
        struct operator_run o = {0};
        st = golden_attention(r, &o, e);
        params_free(&o.params);
        arena_release(&o.arena);
    } else if (kind && strcmp(kind, "lm") == 0) {
        struct lm_run o = {0};
        st = golden_lm(r, &o, e);
        lm_free(&o.m);
        arena_release(&o.arena);
    } else {
        return fail(e, E_IO, "%s: kind \"%s\" is not attention or lm  -> is it a golden file?",
                    r->s->path, kind ? kind : "");
    }
    if (st == OK)
        skip_gradients(r);
    return st;
}

enum status golden_run(const struct engine *g, const char *path, struct tally *t,
                       verdict_fn *report, void *arg, struct err *e)
{
    struct safetensors s;
    struct run r = {.g = g, .s = &s, .tally = t, .report = report, .arg = arg};
    enum status st = safetensors_open(&s, path, e);

    if (st != OK)
        return st;
    st = safetensors_real(&s, "tolerance", 0, &r.tolerance, e);
    if (st == OK)
        st = safetensors_real(&s, "tolerance_abs", 0, &r.tolerance_abs, e);
    if (st == OK)
        st = run_kind(&r, e);
    if (st == OK)
        t->files++;
    safetensors_close(&s);
    return st;
}
