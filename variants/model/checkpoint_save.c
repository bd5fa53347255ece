/* SPDX-License-Identifier: MIT
 *
 * Writing models: the keys that checkpoint_config reads, and where the weights come from. */
#include "checkpoint.h"
#include "keys.h"
#include "variants/parts/masks.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PAIRS = 96, TEXT = MAX_ORDER };
_Static_assert((int)TEXT >= (int)MASK_TEXT, "masks are not cut");

struct meta {
    char text[2 * MAX_PAIRS][TEXT];
    const char *at[2 * MAX_PAIRS];
    int n; /* pairs */
};

static void put(struct meta *m, const char *key, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static void put(struct meta *m, const char *key, const char *fmt, ...)
{
    char *k = m->text[2 * m->n], *v = m->text[2 * m->n + 1];
    va_list ap;

    CHECK(m->n < MAX_PAIRS);
    snprintf(k, TEXT, "%s", key);
    va_start(ap, fmt);
    vsnprintf(v, TEXT, fmt, ap);
    va_end(ap);
    m->at[2 * m->n] = k;
    m->at[2 * m->n + 1] = v;
    m->n++;
}

/* The rows that apply to the model, of the struct at `base`. */
static void put_rows(struct meta *m, const struct choice *row, const void *base,
                     const struct config *c)
{
    for (; row && row->name; row++) {
        char text[CHOICE_TEXT];
        if (!choice_applies(row, c, SCOPE_MODEL) || (row->tensor && !row->print))
            continue;
        choice_print(text, row, base);
        put(m, row->name, "%s", *text ? text : "none");
    }
}

static void put_model(struct meta *m, const struct config *c)
{
    const bool added = c->pos->embed || c->pos->enter; /* to the stream */

    put(m, "format", "bench-checkpoint/1");
    put(m, "kind", "checkpoint");
    put(m, "variant", "%s", c->variant->name);
    put(m, "n_head", "%d", c->H);
    put(m, "d_model", "%d", c->D);
    put(m, "d_head", "%d", c->dh);
    put(m, "d_inner", "%d", c->F);
    put(m, "n_layer", "%d", c->N);
    put(m, "vocab", "%d", c->V);
    put(m, "pos", "%s", added ? c->pos->name : "none");
    put(m, "scheme", "%s", added ? "none" : c->pos->name);
    put_rows(m, model_keys, c, c);
    put_rows(m, layer_keys, c, c);
    if (c->steps)
        put(m, "ut", "1");
    if (c->mixer)
        put(m, "mixer", "%s", c->mixer->name);
    for (const struct extra_key *k = extra_keys; k->key; k++)
        if (c->attn_extra != k->extra || !k->extra->own) /* else it is one of its rows */
            put(m, k->key, "%d", c->attn_extra == k->extra);
    for (enum part_slot s = 0; s < SLOT_COUNT; s++) {
        const struct own *const own = config_own_of(c, s);
        if (own)
            put_rows(m, own->choices, config_own(c, s), c);
    }
}

static void put_masks(struct meta *m, const struct config *c)
{
    char text[MASK_TEXT], heads[MASK_TEXT];

    masks_print(text, heads, &c->masks);
    if (!c->masks.n)
        return;
    put(m, "masks", "%s", text);
    put(m, "mask_head", "%s", heads);
}

static void put_provenance(struct meta *m, const struct provenance *from)
{
    put(m, "seq", "%d", from->seq);
    put(m, "mem", "%d", from->mem);
    put(m, "step", "%d", from->step);
    put(m, "seed", "%" PRIu64, from->seed);
    if (from->unit)
        put(m, "unit", "%s", from->unit);
    if (from->corpus)
        put(m, "corpus", "%s", from->corpus);
    if (from->corpus_xxh3)
        put(m, "corpus_xxh3", "%s", from->corpus_xxh3);
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
    struct meta *m = calloc(1, sizeof(*m));
    struct tensor *t = calloc((size_t)p->n, sizeof(*t));

    if (!m || !t) {
        free(m);
        free(t);
        return fail(e, E_NOMEM, "checkpoint %s: no memory for its header  -> free some", path);
    }
    put_model(m, c);
    put_masks(m, c);
    put_provenance(m, from);
    for (int i = 0; i < p->n; i++)
        t[i] = checkpoint_tensor(&p->v[i], "", p->v[i].data);
    const enum status st = safetensors_write(path, t, p->n, m->at, m->n, e);
    free(m);
    free(t);
    return st;
}
