/* SPDX-License-Identifier: MIT
 *
 * The context that a layer or a model starts from: random rows that its sub-layers remember, drawn
 * from the seed by names, so that every case of a group computes the same. Also its size, in closed
 * form. */
#include "workload.h"

#include "variants/model/attention/sublayer_attention.h"
#include "variants/model/sublayer/sublayer_compress.h"

#include <stdio.h>

/* Past states of the nth sub-layer with memory: one stream of numbers per (nth, sequence,
 * position), independent of the memory kind and the piece size. `x` [B,L,D] is work space. */
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

void job_fill_memories(struct job *j, struct sublayers *sublayers, float *x)
{
    const bool any = j->kind != MEM_NONE && j->kind != MEM_RECOMPUTE;

    if (any)
        sublayers_forget(sublayers);
    for (int nth = 0; any && sublayers_remembering(sublayers, nth) >= 0; nth++)
        fill_memory(j, sublayers, nth, x);
}

/* State of sub-layers other than rows. */
static size_t carried_bytes(const struct sublayers *sublayers)
{
    struct carried c;
    size_t n = 0;

    for (int i = 0; i < sublayers->n; i++)
        for (int k = 0; sublayers->at[i].kind->carries &&
                        sublayers->at[i].kind->carries(&sublayers->at[i], k, &c);
             k++)
            n += c.given ? 0 : c.n;
    return 4 * n;
}

/* Rows of their input that sub-layers other than plain attention remember. */
static size_t tail_bytes(const struct job *j, const struct sublayers *sublayers)
{
    size_t rows = 0;

    for (int i = 0; i < sublayers->n; i++)
        if (sublayers->at[i].memory.n && sublayers->at[i].kind != &sublayer_attention)
            rows += (size_t)sublayers->at[i].memory.keep;
    return 4 * rows * job_elements(j->shape.B, j->config.D, 1);
}

/* Rows that a sub-layer of attention keeps: M, or as many as its queries see. */
static size_t kept_rows(const struct job *j, const struct sublayer *s)
{
    return (size_t)attention_kept(s, j->shape.M) * (size_t)j->shape.B;
}

/* Keys and values that MEM_KV caches. */
static size_t cached_bytes(const struct job *j, const struct sublayers *sublayers)
{
    size_t floats = 0;

    for (int i = 0; i < sublayers->n; i++) {
        const struct sublayer *const s = &sublayers->at[i];
        floats += s->kind->caches ? s->kind->caches(s, j->shape.M) : 0;
    }
    return 4 * floats * (size_t)j->shape.B;
}

static size_t attention_rows(const struct job *j, const struct sublayers *sublayers)
{
    size_t rows = 0;

    for (int i = 0; i < sublayers_attentions(sublayers); i++)
        rows += kept_rows(j, sublayers_attention(sublayers, i));
    return rows;
}

/* Of attention: hidden 4 D bytes for each row, projected keys and values 8 Hkv dh, or what their
 * kind caches. */
size_t job_memory_bytes(const struct job *j, const struct sublayers *sublayers)
{
    const struct config *c = &j->config;
    const size_t rows = attention_rows(j, sublayers);

    return j->kind == MEM_KV       ? cached_bytes(j, sublayers) + tail_bytes(j, sublayers)
           : j->kind == MEM_HIDDEN ? 4 * rows * (size_t)c->D + tail_bytes(j, sublayers)
           : j->kind == MEM_STATE  ? carried_bytes(sublayers)
                                   : 0;
}
