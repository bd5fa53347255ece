/* SPDX-License-Identifier: MIT
 *
 * The linear buffer of hidden-state memory and of the KV cache. */
#include "cache.h"

void cache_bind(struct cache *c, int B, int L, int keep, int n, struct arena *a)
{
    const int slack = keep > 0 ? max_int(keep, 256) : 0;
    const int cap = keep + L + slack;
    const size_t memory = (size_t)B * (size_t)keep * (size_t)n;
    const size_t all = (size_t)B * (size_t)cap * (size_t)n;

    *c = (struct cache){.B = B, .cap = cap, .n = n, .keep = keep};
    /* One block, two ledger entries; padding between them would break the stride. */
    c->at = arena_f32(a, PART_SCRATCH, all);
    a->part[PART_SCRATCH] -= memory * sizeof(float);
    a->part[PART_MEMORY] += memory * sizeof(float);
}

ptrdiff_t cache_stride(const struct cache *c) { return (ptrdiff_t)c->cap * c->n; }

int64_t cache_base(const struct cache *c) { return c->seen - c->M; }

float *cache_rows(const struct cache *c, int b)
{
    return c->at + b * cache_stride(c) + (ptrdiff_t)c->start * c->n;
}

void cache_reserve(struct cache *c, int L)
{
    if (c->start + c->M + L <= c->cap)
        return;
    CHECK(c->M + L <= c->cap);
    for (int b = 0; b < c->B; b++) {
        float *front = c->at + b * cache_stride(c);
        memmove(front, cache_rows(c, b), sizeof(float) * (size_t)c->M * (size_t)c->n);
    }
    c->start = 0;
}

void cache_commit(struct cache *c, int L)
{
    const int have = c->M + L;
    const int keep = min_int(have, c->keep), dropped = have - keep;

    for (int b = 0; dropped && c->stay && b < c->B; b++)
        memmove(cache_rows(c, b) + (ptrdiff_t)dropped * c->n, cache_rows(c, b),
                sizeof(float) * (size_t)c->stay * (size_t)c->n);
    c->start += dropped;
    c->M = keep;
    c->seen += L;
}

void cache_clear(struct cache *c)
{
    c->start = c->M = c->compressed = 0;
    c->seen = 0;
}
