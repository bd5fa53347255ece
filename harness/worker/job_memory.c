/* SPDX-License-Identifier: MIT
 *
 * The context that a layer or a model starts from: random rows that its sub-layers remember, drawn
 * from the seed by names, so that every case of a group computes the same. Also its size, in closed
 * form. */
#include "workload.h"

#include "variants/model/sublayer/sublayer_compress.h"

#include <stdio.h>

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

/* Of a sequence, floats of remembered rows of a sub-layer's input, and of what MEM_KV caches of M
 * tokens. */
static size_t remembered(const struct sublayer *s, int M)
{
    const int rows = s->kind->keeps ? max_int(s->kind->keeps(s, s->mem, M), 0) : 0;
    const size_t cached = s->mem == MEM_KV && s->kind->caches ? s->kind->caches(s, M) : 0;

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
    return j->kind == MEM_STATE || (j->config.stack.n && j->kind != MEM_NONE);
}

size_t job_memory_bytes(const struct job *j, const struct sublayers *sublayers, int M)
{
    size_t floats = 0;

    for (int i = 0; i < sublayers->n; i++) {
        const struct sublayer *const s = &sublayers->at[i];
        floats += remembered(s, M) * (size_t)j->shape.B + (carries_states(j) ? states(s) : 0);
    }
    return 4 * floats;
}
