/* SPDX-License-Identifier: MIT
 *
 * Writing models: the keys that checkpoint_config reads, and where the weights come from. */
#include "checkpoint.h"
#include "variants/model/config/keys.h"

#include <inttypes.h>

enum { MAX_PAIRS = 256, TEXT = CHOICE_TEXT };
_Static_assert((int)TEXT >= (int)MAX_ORDER, "orders are not cut");

struct meta {
    char text[2 * MAX_PAIRS][TEXT];
    const char *at[2 * MAX_PAIRS];
    int n;                        /* pairs */
    const struct config *matters; /* keys that do not apply to it are left out; NULL: none is */
};

static void put(struct meta *m, const char *key, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static void put(struct meta *m, const char *key, const char *fmt, ...)
{
    char *k = m->text[2 * m->n], *v = m->text[2 * m->n + 1];

    CHECK(m->n < MAX_PAIRS);
    snprintf(k, TEXT, "%s", key);
    VPRINT(v, TEXT, fmt);
    m->at[2 * m->n] = k;
    m->at[2 * m->n + 1] = v;
    m->n++;
}

static void put_row(struct meta *m, const struct choice *row, const void *base)
{
    char text[CHOICE_TEXT];

    if (m->matters && row->applies && !row->applies(m->matters))
        return;
    if (row->elsewhere || ((row->tensor || row->of_input) && row->codec == CODEC_FLAG))
        return;
    choice_print(text, row, base);
    if (row->if_other && strcmp(text, row->absent) == 0)
        return;
    if (row->in_digits)
        snprintf(text, sizeof(text), "%d", *(const int *)((const char *)base + row->at));
    put(m, choice_key(row), "%s", *text ? text : "none");
}

static void put_model(struct meta *m, const struct config *c)
{
    const bool added = c->pos->embed || c->pos->enter || c->pos->from_tokens; /* to the stream */
    const struct choice *row;

    put(m, "format", "bench-checkpoint/1");
    put(m, "kind", "checkpoint");
    put(m, "variant", "%s", c->variant->name);
    put(m, "pos", "%s", added ? c->pos->name : "none");
    put(m, "scheme", "%s", added ? "none" : c->pos->name);
    for (int i = 0; (row = model_key(i)); i++)
        put_row(m, row, c);
    m->matters = NULL; /* parts have the rows that they need */
    if (c->steps)
        put(m, "ut", "1");
    if (c->mixer)
        put(m, "mixer", "%s", c->mixer->name);
    for (const struct extra_key *k = extra_keys; k->key; k++)
        if (c->attn_extra == k->extra ? !k->extra->numbers /* else it is one of its rows */
                                      : k->extra->layer_params != NULL)
            put(m, k->key, "%d", c->attn_extra == k->extra);
    for (enum part_slot s = 0; s < SLOT_COUNT; s++) {
        const struct part_numbers *const numbers = config_numbers_of(c, s);
        for (row = numbers ? numbers->choices : NULL; row && row->name; row++)
            put_row(m, row, config_numbers(c, s));
    }
}

bool checkpoint_same_model(const struct config *a, const struct config *b)
{
    struct meta *const m = calloc(2, sizeof(*m));
    bool same = variant_mem(a->variant) == variant_mem(b->variant);

    for (int i = 0; i < SLOT_COUNT; i++) /* some numbers follow from the variant's name */
        same = same && memcmp(a->numbers[i].bytes, b->numbers[i].bytes, MAX_NUMBERS) == 0;
    NEED(m);
    m[0].matters = a;
    m[1].matters = b;
    put_model(&m[0], a);
    put_model(&m[1], b);
    same = same && m[0].n == m[1].n;
    for (int i = 0; same && i < 2 * m[0].n; i++)
        same = strcmp(m[0].at[i], m[1].at[i]) == 0 ||
               (i > 0 && strcmp(m[0].at[i - 1], "variant") == 0);
    free(m);
    return same;
}

static void put_provenance(struct meta *m, const struct provenance *from)
{
    put(m, "step", "%d", from->step);
    put(m, "seed", "%" PRIu64, from->seed);
    if (from->mask_share > 0)
        put(m, "mask_share", "%.17g", from->mask_share);
    if (from->lora_alpha > 0)
        put(m, "lora_alpha", "%.17g", from->lora_alpha);
    if (from->lora_turned)
        put(m, "fan_in_fan_out", "1");
    if (from->unit)
        put(m, "unit", "%s", from->unit);
    if (from->corpus)
        put(m, "corpus", "%s", from->corpus);
    if (from->corpus_xxh3)
        put(m, "corpus_xxh3", "%s", from->corpus_xxh3);
    if (from->source)
        put(m, "source", "%s", from->source);
    if (from->tokenizer)
        put(m, "tokenizer", "%s", from->tokenizer);
}

struct tensor checkpoint_tensor(const struct param *p, const char *prefix, const float *data)
{
    struct tensor t = {.dtype = DTYPE_F32, .rank = p->rank, .n = p->n, .data = data};

    snprintf(t.name, sizeof(t.name), "%s%s", prefix, p->name);
    memcpy(t.shape, p->shape, sizeof(p->shape));
    return t;
}

enum status checkpoint_save(const char *path, const struct config *c, const struct params *p,
                            const struct provenance *from, struct err *e)
{
    struct meta *m = need_room(1, sizeof(*m));
    struct tensor *t = need_room((size_t)p->n, sizeof(*t));

    put_model(m, c);
    put_provenance(m, from);
    for (int i = 0; i < p->n; i++)
        t[i] = checkpoint_tensor(&p->v[i], "", p->v[i].data);
    const enum status st = safetensors_write(path, t, p->n, m->at, m->n, e);
    free(m);
    free(t);
    return st;
}
