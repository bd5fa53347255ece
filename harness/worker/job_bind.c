/* SPDX-License-Identifier: MIT
 *
 * Building a job, workload by workload: its model is declared, what it works in is counted or
 * placed, and weights, inputs and memory are drawn from the seed, by names, so that every cell of a
 * group computes the same thing. */
#include "job_inner.h"

#include "variants/base/rng.h"
#include "variants/model/sublayer_attention.h"
#include "variants/model/sublayer_compress.h"
#include "variants/parts/masks.h"
#include "variants/parts/terms.h"

#include <stdio.h>
#include <string.h>

void job_draw(const struct job *j, const char *name, float *x, size_t n)
{
    rng_normal(x, n, j->bcase->opt->seed, rng_stream(name), 0, 1);
}

static size_t elements(int a, int b, int c) { return (size_t)a * (size_t)b * (size_t)c; }

static void set_output(struct job *j, const float *out, int rows, int width)
{
    j->out = out;
    j->n_out = elements(j->shape.B, rows, width);
    memcpy(j->out_shape, (const int[]){j->shape.B, rows, width}, sizeof(j->out_shape));
}

/* ---- attn --------------------------------------------------------------------------------- */

static struct term_params attn_params(const struct attn_job *t)
{
    const struct param *const all = t->params.v;

    return (struct term_params){all, all + t->at_layer, all + t->at_attn_extra};
}

/* Scores arrive as from the attention below, and go on to the one above. */
static void attn_bind_carried(struct job *j)
{
    struct attn *const at = &j->attn.attn;
    const size_t pairs = elements(at->B, at->H, at->L * (at->M + at->L));
    const ptrdiff_t K = at->M + at->L;

    if (!j->config.score_residual)
        return;
    at->add =
        (struct dense){arena_f32(&j->arena, PART_SCORES, pairs), at->H * at->L * K, at->L * K, K};
    at->scores_out = arena_f32(&j->arena, PART_SCORES, pairs);
    at->gain = j->config.score_residual == SCORE_RESIDUAL_MEAN ? 0.5f : 0;
}

static enum status attn_bind(struct job *j, struct err *e)
{
    const struct config *c = &j->config;
    const struct extent s = j->shape;
    const int K = s.L + s.M, HD = c->H * c->dh, kv_width = c->kv_heads * c->dh;
    struct attn_job *t = &j->attn;
    struct arena *a = &j->arena;

    params_place(&t->params, a);
    t->attn = attn_of_config(c, s.B, s.L, s.M);
    t->trained = c->pos->terms_grad || (c->attn_extra && c->attn_extra->terms_grad);
    const struct term_params p = attn_params(t);
    terms_reserve(c, &p, s.L, K, a, &t->attn);
    attn_bind_carried(j);
    if (c->pos->build_tables && c->pos->n_pos_encoding)
        t->pos_encoding = arena_f32(a, PART_SCRATCH, c->pos->n_pos_encoding(c, K));
    t->attn.q = arena_f32(a, PART_ACTIVATIONS, elements(s.B, s.L, HD));
    t->attn.k = arena_f32(a, PART_ACTIVATIONS, elements(s.B, K, kv_width));
    t->attn.v = arena_f32(a, PART_ACTIVATIONS, elements(s.B, K, kv_width));
    t->attn.o = arena_f32(a, PART_ACTIVATIONS, elements(s.B, s.L, HD));
    if (j->bcase->phase == PHASE_FWD_BWD)
        t->attn.lse = arena_f32(a, PART_ACTIVATIONS, elements(s.B, s.L, c->H));
    const struct attn asked = masks_placeholder(&t->attn);
    const enum status st = engine_attn(&j->engine, &asked, &t->impl, e);
    if (st != OK)
        return st;
    const struct attn_need need = t->impl->need(&t->attn, j->engine.threads);
    t->scratch = arena_take(a, PART_SCORES, need.scores_bytes + need.scratch_bytes);
    a->part[PART_SCORES] -= need.scratch_bytes;
    a->part[PART_SCRATCH] += need.scratch_bytes;
    set_output(j, t->attn.o, s.L, HD);
    j->predicted_bytes = (size_t)attn_bytes(&t->attn);
    return OK;
}

static void attn_fill(struct job *j)
{
    const struct config *c = &j->config;
    const struct extent s = j->shape;
    const size_t queries = elements(s.B, s.L, c->H * c->dh);
    const size_t keys = elements(s.B, s.L + s.M, c->kv_heads * c->dh);
    struct attn_job *t = &j->attn;

    job_draw(j, "attn.q", (float *)t->attn.q, queries);
    job_draw(j, "attn.k", (float *)t->attn.k, keys);
    job_draw(j, "attn.v", (float *)t->attn.v, keys);
    masks_draw(&c->masks, 0, &t->attn);
    if (t->pos_encoding)
        c->pos->pos_encoding(c, s.L + s.M, t->pos_encoding);
    if (c->score_residual)
        job_draw(j, "attn.scores", (float *)t->attn.add.at, elements(s.B, c->H, s.L * (s.L + s.M)));
    const struct term_params p = attn_params(t);
    terms_build_tables(&j->engine, c, &p, t->pos_encoding, &t->attn);
}

static void attn_declare(struct job *j)
{
    const struct config *c = &j->config;
    struct params *p = &j->attn.params;

    /* Absolute schemes have nothing to do with the attention core. */
    const bool relative = c->pos->reserve != NULL;
    if (relative && c->pos->model_params)
        c->pos->model_params(c, p);
    j->attn.at_layer = p->n;
    if (relative && c->pos->layer_params)
        c->pos->layer_params(c, "", p);
    j->attn.at_attn_extra = p->n;
    if (c->attn_extra)
        c->attn_extra->layer_params(c, "", p);
}

/* ---- memory of layer and lm ---------------------------------------------------------------- */

/* Past states of the nth sub-layer that remembers: one stream of numbers per (nth, sequence,
 * position), so that neither the memory kind nor the piece size changes them. `x` [B,L,D] is work
 * space. */
static void fill_memory(struct job *j, const struct sublayers *sublayers, int nth, float *x)
{
    const struct extent s = j->shape;
    const int D = j->config.D, at = sublayers_remembering(sublayers, nth);

    const int reach = sublayers->at[at].keeps ? compressed_reach(&sublayers->at[at]) : s.M;

    for (int done = 0; done < reach; done += s.L) {
        const int rows = min_int(s.L, reach - done);
        for (int seq = 0; seq < s.B; seq++)
            for (int r = 0; r < rows; r++) {
                char name[64];
                snprintf(name, sizeof(name), "memory.%d.%d.%d", nth, seq, done + r);
                job_draw(j, name, x + (size_t)(seq * rows + r) * (size_t)D, (size_t)D);
            }
        sublayer_remember(&j->engine, &sublayers->at[at], &sublayers->work[at], x, s.B, rows);
    }
}

static void fill_memories(struct job *j, const struct sublayers *sublayers, float *x)
{
    const bool any = j->kind != MEM_NONE && j->kind != MEM_RECOMPUTE;

    for (int nth = 0; any && sublayers_remembering(sublayers, nth) >= 0; nth++)
        fill_memory(j, sublayers, nth, x);
}

/* What sub-layers carry besides rows. */
static size_t carried_bytes(const struct job *j)
{
    const struct sublayers *const sublayers = job_sublayers(j);
    struct carried c;
    size_t n = 0;

    for (int i = 0; i < sublayers->n; i++)
        for (int k = 0; sublayers->at[i].kind->carries &&
                        sublayers->at[i].kind->carries(&sublayers->at[i], k, &c);
             k++)
            n += c.given ? 0 : c.n;
    return 4 * n;
}

/* Rows that sub-layers other than attention remember, however long its memory is. */
static size_t tail_bytes(const struct job *j)
{
    const struct sublayers *const sublayers = job_sublayers(j);
    size_t rows = 0;

    for (int i = 0; i < sublayers->n; i++)
        if (sublayers->at[i].keeps && sublayers->at[i].kind != &sublayer_attention)
            rows += (size_t)sublayers->at[i].memory.keep;
    return 4 * rows * elements(j->shape.B, j->config.D, 1);
}

/* Of N attention sub-layers: hidden 4 N B M D bytes, projected keys and values 8 N B M Hkv dh. */
static size_t memory_bytes(const struct job *j)
{
    const struct config *c = &j->config;
    const size_t rows = elements(sublayers_attentions(job_sublayers(j)), j->shape.B, j->shape.M);

    return j->kind == MEM_KV       ? 8 * rows * elements(c->kv_heads, c->dh, 1) + tail_bytes(j)
           : j->kind == MEM_HIDDEN ? 4 * rows * (size_t)c->D + tail_bytes(j)
           : j->kind == MEM_STATE  ? carried_bytes(j)
                                   : 0;
}

/* ---- layer -------------------------------------------------------------------------------- */

static enum status layer_bind(struct job *j, struct err *e)
{
    struct layer_job *t = &j->layer;
    const struct extent s = j->shape;
    const size_t n = elements(s.B, s.L, j->config.D);
    struct arena *a = &j->arena;

    params_place(&t->params, a);
    params_place_packed(&t->params, &j->engine, s.B * s.L, a);
    const enum status st = sublayers_bind(&t->sublayers, &j->engine, &t->params, j->kind, s, a, e);
    if (st != OK)
        return st;
    if (j->bcase->phase == PHASE_FWD)
        t->x = arena_f32(a, PART_ACTIVATIONS, n);
    t->z = arena_f32(a, PART_ACTIVATIONS, n);
    set_output(j, t->z, s.L, j->config.D);
    j->predicted_bytes = memory_bytes(j);
    return OK;
}

static void layer_fill(struct job *j)
{
    struct layer_job *t = &j->layer;

    if (j->config.pos->pos_encoding)
        j->config.pos->pos_encoding(&j->config, j->shape.L + j->shape.M, t->sublayers.pos_encoding);
    params_pack(&t->params, &j->engine);
    sublayers_build_tables(&t->sublayers, &j->engine);
    fill_memories(j, &t->sublayers, t->x);
    job_draw(j, "x", t->x, j->n_out);
}

/* ---- whole models ------------------------------------------------------------------------- */

static enum status lm_job_bind(struct job *j, struct err *e)
{
    struct lm_job *t = &j->lm;
    const struct extent s = j->shape;
    struct arena *a = &j->arena;
    const enum status st = lm_bind(&t->lm, &j->engine, j->kind, s, a, e);

    if (st != OK)
        return st;
    t->tokens = arena_take(a, PART_ACTIVATIONS, elements(s.B, s.L, 1) * sizeof(int32_t));
    t->targets = arena_take(a, PART_ACTIVATIONS, elements(s.B, s.L, 1) * sizeof(int32_t));
    t->nll = arena_f32(a, PART_ACTIVATIONS, elements(s.B, s.L, 1));
    t->n_scored = j->bcase->workload == WORK_TRAIN ? s.L : j->bcase->seq;
    if (j->bcase->workload == WORK_TRAIN) /* backward uses the logits up */
        set_output(j, t->nll, t->n_scored, 1);
    else
        set_output(j, t->lm.logits, t->n_scored, j->config.V);
    j->predicted_bytes = memory_bytes(j);
    return OK;
}

static void lm_fill(struct job *j)
{
    struct lm_job *t = &j->lm;
    const uint64_t seed = j->bcase->opt->seed;
    const uint32_t V = (uint32_t)j->config.V;
    const size_t n = elements(j->shape.B, j->shape.L, 1);

    lm_build_tables(&t->lm, &j->engine);
    fill_memories(j, &t->lm.sublayers, t->lm.h);
    for (size_t i = 0; i < n; i++) {
        t->tokens[i] = (int32_t)(rng_u32(seed, rng_stream("tokens"), i) % V);
        t->targets[i] = (int32_t)(rng_u32(seed, rng_stream("targets"), i) % V);
    }
}

/* ---- each in its turn ---------------------------------------------------------------------- */

enum status job_declare(struct job *j, struct err *e)
{
    struct params *p = &j->layer.params;
    enum status st;

    switch (j->bcase->workload) {
    case WORK_ATTN:
        attn_declare(j);
        return config_check(&j->config, e);
    case WORK_LAYER:
        st = config_check(&j->config, e);
        if (st == OK && j->config.pos->model_params)
            j->config.pos->model_params(&j->config, p);
        return st == OK ? sublayers_init(&j->layer.sublayers, &j->config, p, 0, e) : st;
    default:
        return lm_init(&j->lm.lm, &j->config, e);
    }
}

enum status job_bind_forward(struct job *j, struct err *e)
{
    switch (j->bcase->workload) {
    case WORK_ATTN:
        return attn_bind(j, e);
    case WORK_LAYER:
        return layer_bind(j, e);
    case WORK_SEGMENT:
    case WORK_DECODE:
    case WORK_TRAIN:
        return lm_job_bind(j, e);
    case WORK_COUNT:
        break;
    }
    CHECK(!"a workload");
}

void job_fill_forward(struct job *j)
{
    if (j->bcase->workload == WORK_ATTN)
        attn_fill(j);
    else if (j->bcase->workload == WORK_LAYER)
        layer_fill(j);
    else
        lm_fill(j);
}
