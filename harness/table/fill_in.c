/* SPDX-License-Identifier: MIT
 *
 * What older rows leave unsaid. */
#include "fill_in.h"
#include "harness/measure/result.h"

#include <string.h>

static bool between(int64_t n, int64_t least, int64_t most) { return n >= least && n <= most; }

/* Sizes of a file are not trusted: those that no product or table here minds. */
static bool sane(const struct key_row *k)
{
    enum { WIDE = 1 << 20, DEEP = 1 << 12 };

    return between(k->d_model, 1, WIDE) && between(k->heads, 1, WIDE) &&
           between(k->d_head, 1, WIDE) && between(k->d_inner, 1, 16 * WIDE) &&
           between(k->layers, 1, DEEP) && between(k->seq_tokens, 1, INT32_MAX / 2) &&
           between(k->mem_tokens, 0, INT32_MAX / 2);
}

static enum workload workload_of(const char *name)
{
    int w = 0;

    while (w < WORK_COUNT && strcmp(workload_name[w], name) != 0)
        w++;
    return (enum workload)w;
}

static void fill_in(struct key_row *k)
{
    const struct variant *const v = variant_find(k->variant);
    const enum workload w = workload_of(k->workload);

    if (k->kv_heads != I64_EMPTY || !v || w == WORK_COUNT || !sane(k))
        return;
    struct bench_case c = {
        .variant = v,
        .workload = w,
        .seq = (int)k->seq_tokens,
        .mem = (int)k->mem_tokens,
        .layers = (int)k->layers,
        .d_model = (int)k->d_model,
        .heads = (int)k->heads,
        .d_head = (int)k->d_head,
        .d_inner = (int)k->d_inner,
        .mask = "",
        .mask_heads = "",
        .settings = "",
        .clip = -1,
        .clamp_len = -1,
        .same_length = -1,
    };
    case_usual_choices(&c);
    result_model(k, &c);
}

void rows_fill_in(const struct table *t, struct rows *rows)
{
    if (t != &tables[TABLE_LATENCY] && t != &tables[TABLE_MEMORY] && t != &tables[TABLE_PERPLEXITY])
        return;
    for (size_t i = 0; i < rows->n; i++) {
        char *const row = (char *)rows->row + i * t->row_size;
        struct key_row key;
        row_get_key(t, row, &key);
        fill_in(&key);
        row_set_key(t, row, &key);
    }
}
