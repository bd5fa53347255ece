/* SPDX-License-Identifier: MIT
 *
 * The context that a layer or a model starts from: random rows that its sub-layers remember, drawn
 * from the seed by names, so that every case of a group computes the same. Also its size, in closed
 * form. */
#include "workload.h"

#include "variants/model/attention/sublayer_attention.h"
#include "variants/model/sublayer/sublayer_compress.h"

/* Past states of the nth sub-layer with memory: one stream of numbers per (nth, sequence,
 * position), independent of the memory kind and the piece size. `x` [B,L,D] is work space. */
static void fill_memory(struct job *j, const struct sublayers *sublayers, int nth, float *x)
{
    const struct extent s = j->shape;
    const int D = j->config.D, at = sublayers_remembering(sublayers, nth);

    const int reach = max_int(s.M, compressed_reach(&sublayers->at[at]));

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

void job_fill_memories(struct job *j, struct sublayers *sublayers, float *x)
{
    const bool any = j->kind != MEM_NONE && j->kind != MEM_RECOMPUTE;

    if (any)
        sublayers_forget(sublayers);
    for (int nth = 0; any && sublayers_remembering(sublayers, nth) >= 0; nth++)
        fill_memory(j, sublayers, nth, x);
}

/* Rows between those that are seen need no place. */
static int seen_rows(const struct sublayer *s, int M)
{
    return s->kind->masked ? attention_needed(s, M) : M;
}

/* Of a sequence, floats of remembered rows of a sub-layer's input, and of what MEM_KV caches of M
 * tokens, or only of those that are seen. */
static size_t remembered(const struct sublayer *s, int M, bool seen)
{
    const int rows = s->kind->keeps ? max_int(s->kind->keeps(s, s->mem, M), 0) : 0;
    const size_t cached =
        s->mem == MEM_KV && s->kind->caches ? s->kind->caches(s, seen ? seen_rows(s, M) : M) : 0;

    return (size_t)rows * (size_t)s->c->D + cached;
}

/* Floats of the states that it carries. */
static size_t states(const struct sublayer *s)
{
    struct carried c;
    size_t n = 0;

    for (int k = 0; s->kind->carries && s->kind->carries(s, k, &c); k++)
        n += c.given ? 0 : c.n;
    return n;
}

/* In a stack, beside the rows of its attention. */
static bool carries_states(const struct job *j)
{
    return j->kind == MEM_STATE || (config_is_hybrid(&j->config) && j->kind != MEM_NONE);
}

static size_t memory_bytes(const struct job *j, const struct sublayers *sublayers, int M, bool seen)
{
    size_t floats = 0;

    for (int i = 0; i < sublayers->n; i++) {
        const struct sublayer *const s = &sublayers->at[i];
        floats += remembered(s, M, seen) * (size_t)j->shape.B + (carries_states(j) ? states(s) : 0);
    }
    return 4 * floats;
}

size_t job_memory_bytes(const struct job *j, const struct sublayers *sublayers, int M)
{
    return memory_bytes(j, sublayers, M, false);
}

/* ---- what a deployment keeps ---------------------------------------------------------------- */

/* Can every sub-layer go on from rows that it caches, although the variant is run without? */
static bool can_cache(const struct config *c, const struct sublayers *sublayers)
{
    bool can = c->causal && !around_hands_on(c); /* to the next query, too */

    for (int i = 0; i < sublayers->n && can; i++) {
        const struct sublayer *const s = &sublayers->at[i];
        can = (!s->kind->mixes || s->kind->caches || s->keeps) && !s->level && !s->pools;
    }
    return can;
}

/* Keys and values of `rows` tokens in a layer of attention. */
static size_t keys_and_values(const struct bench_case *c, int rows)
{
    const struct config *const of = &c->config;
    const size_t row = 2 * elem_heads_bytes(of->kv_dtype, config_kv_width(of) / of->dh, of->dh);

    return job_elements(c->batch, rows, 1) * row;
}

/* Of a second job, which decodes on the reference and is only counted. */
size_t job_cache_bytes(const struct job *j)
{
    const struct bench_case *const c = j->bcase;
    const struct mem *const mem = config_mem(&c->config);
    const int M = case_kept(c);
    struct bench_case way = *c;
    struct job with;

    const enum context context = workload_context(c->workload);

    if (context == CONTEXT_KEYS)
        return keys_and_values(c, config_needed(&c->config, 0, M));
    if (context == CONTEXT_ROWS || context == CONTEXT_SOURCE)
        return keys_and_values(c, M) * (size_t)(context == CONTEXT_ROWS ? 1 : c->config.N);
    way.workload = workload_is_model(c->workload) ? WORK_DECODE : WORK_LAYER;
    way.phase = PHASE_FWD;
    way.seq = 1;
    way.mem = c->mem == MEM_ALL ? MEM_ALL : M;
    way.mem_kind = mem_can(mem, MEM_STATE)                             ? MEM_STATE
                   : mem_can(mem, MEM_HIDDEN) && !mem_can(mem, MEM_KV) ? MEM_HIDDEN
                                                                       : MEM_KV;
    way.backend = &backend_ref;
    way.threads = 1;
    way.config.dtype = ELEM_F32; /* of weights */
    way.config.act_dtype = ROWS_F32;
    const bool opens = job_open(&with, &way, NULL) == OK;
    const bool model = workload_is_model(way.workload);
    const struct sublayers *const all = model ? &with.lm.lm.sublayers : &with.layer.sublayers;
    size_t bytes = job_elements(c->batch, M, sizeof(int32_t));
    if (opens && (mem_can(mem, way.mem_kind) || can_cache(&with.config, all)))
        bytes = memory_bytes(&with, all, with.shape.M, true) +
                (model ? 4 * lm_carried(&with.lm.lm, c->batch) : 0);
    job_close(&with);
    return bytes;
}
