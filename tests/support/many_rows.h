/* SPDX-License-Identifier: MIT
 *
 * A run that has two values of every axis: a row for each combination, and a time, an arena and a loss
 * that tell which row they are of. */
#pragma once

#include "run_folder.h"

enum { MANY_AXES = 6, MANY = 1 << MANY_AXES }; /* variant backend seq mem batch threads */

struct many_row {
    struct made_case is;
    char id[17];
    int mem, batch, threads;
};

static inline struct many_row many_row(int i)
{
    struct many_row r = {.is = {.variant = i & 1 ? "rope" : "xl",
                                .backend = i & 2 ? "openblas" : "avx2",
                                .seq = i & 4 ? 256 : 64,
                                .ns = 1000 + 37 * i},
                         .mem = i & 8 ? 128 : 0,
                         .batch = i & 16 ? 4 : 1,
                         .threads = i & 32 ? 2 : 1};

    snprintf(r.id, sizeof(r.id), "%016x", 0xabc0 + i);
    return r;
}

/* Its row; -1 = of none. */
static inline int many_of_ns(double ns)
{
    const int i = (int)((ns - 1000) / 37);

    return i >= 0 && i < MANY && ns == 1000 + 37 * i ? i : -1;
}

/* All rows in a drawn order, each with some blocks, times `factor` of the number of its row. */
static inline void many_write(struct rundir *d, int stride, double (*factor)(int i))
{
    for (int k = 0; k < MANY; k++) {
        const int i = k * stride % MANY; /* stride is odd: each once */
        struct many_row r = many_row(i);
        r.is.id = r.id;
        struct key_row key = made_key(d, &r.is, "host");
        key.mem_tokens = r.mem, key.batch_size = r.batch, key.threads = r.threads;
        snprintf(key.repro, sizeof(key.repro), "repro %d", i);
        struct latency_row latency = ROW_OF(latency, LATENCY, &key);
        struct memory_row memory = ROW_OF(memory, MEMORY, &key);
        struct perplexity_row scored = ROW_OF(perplexity, PERPLEXITY, &key);
        const double ns = r.is.ns * (factor ? factor(i) : 1);
        latency.median_ns = ns, latency.ci95_low_ns = 0.99 * ns, latency.ci95_high_ns = 1.01 * ns;
        memory.arena_peak_bytes = 10000 + i;
        scored.nll_nats_per_token = 1 + 0.01 * i, scored.ppl = exp(1 + 0.01 * i);
        scored.tokens_scored = 1000;
        text_put(scored.checkpoint_xxh3, TEXT_SIZE, "weights");
        text_put(scored.corpus_xxh3, TEXT_SIZE, "text");
        made_write(d, TABLE_MEMORY, &memory);
        made_write(d, TABLE_LATENCY, &latency);
        made_write(d, TABLE_PERPLEXITY, &scored);
        for (int round = 0; round < 6; round++)
            made_sample(d, r.id, round, ns, 0);
    }
}
