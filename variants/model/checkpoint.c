/* SPDX-License-Identifier: MIT
 *
 * Reading models. Every complaint names the file and the key or tensor. */
#include "checkpoint.h"
#include "keys.h"
#include "sublayer_list.h"
#include "variants/parts/masks.h"
#include "variants/parts/parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- metadata ----------------------------------------------------------------------------- */

/* The first error sticks; later reads do nothing. */
struct reader {
    const struct safetensors *s;
    const char *prefix;
    enum status st;
    struct err *e;
};

static int whole(struct reader *r, const char *key, int fallback, int lo, int hi)
{
    int value = fallback;

    if (r->st == OK)
        r->st = safetensors_int(r->s, key, fallback, lo, hi, &value, r->e);
    return value;
}

static const char *word(const struct reader *r, const char *key)
{
    const char *value = safetensors_meta(r->s, key);

    return value ? value : "none";
}

static void complain(struct reader *r, const char *key)
{
    if (r->st == OK)
        r->st = fail(r->e, E_IO, "%s: unknown %s \"%s\"  -> is it made for a newer program?",
                     r->s->path, key, word(r, key));
}

/* Positions added to the stream come from `pos`, those of attention from `scheme`; files older than
 * that key leave the latter to the variant. */
static const struct pos *read_pos(struct reader *r, const struct variant *v)
{
    const struct pos *absolute = pos_find(word(r, "pos"));
    const struct pos *relative = pos_find(word(r, "scheme"));

    if (!absolute)
        complain(r, "pos");
    if (!relative)
        complain(r, "scheme");
    if (!absolute || !relative || r->st != OK)
        return NULL;
    if (!safetensors_meta(r->s, "scheme"))
        return v->mem->recurrent ? v->pos : absolute;
    if (relative != pos_find("none") && absolute != pos_find("none"))
        r->st = fail(r->e, E_IO, "%s: pos \"%s\" and scheme \"%s\"  -> one of them is none",
                     r->s->path, absolute->name, relative->name);
    return relative == pos_find("none") ? absolute : relative;
}

/* Does the bare operator, the first layer, or the first attention of an order of sub-layers have
 * it? */
static bool has_tensor(const struct reader *r, const struct config *c, const char *name)
{
    const int first = (int)strcspn(c->order, "spu");
    char full[TENSOR_NAME];

    snprintf(full, sizeof(full), "%s%s", r->prefix, name);
    if (safetensors_find(r->s, full))
        return true;
    snprintf(full, sizeof(full), "%ssub.%d.%s", r->prefix, first, name);
    if (safetensors_find(r->s, full))
        return true;
    snprintf(full, sizeof(full), "%slayers.0.%s", r->prefix, name);
    return safetensors_find(r->s, full) != NULL;
}

/* A number of the file, where it has the key. */
static void read_number(struct reader *r, const struct choice *row, void *at)
{
    double real = 0;
    int n = 0;

    if (row->codec == CODEC_REAL || row->codec == CODEC_WIDE) {
        r->st = safetensors_real(r->s, row->name, 0, &real, r->e);
        if (row->codec == CODEC_REAL)
            *(float *)at = (float)real;
        else
            *(double *)at = real;
        return;
    }
    const bool flag = row->codec == CODEC_FLAG;
    r->st = safetensors_int(r->s, row->name, 0, flag ? 0 : (int)row->least,
                            flag ? 1 : (int)row->most, &n, r->e);
    if (flag)
        *(bool *)at = n;
    else if (n != 0 || !row->zero_is_absent)
        *(int *)at = n;
}

/* Where the file has no such key, or says "none", the value stays or is what the row says. */
static void read_row(struct reader *r, const struct choice *row, void *base, const struct config *c)
{
    const char *const text = safetensors_meta(r->s, row->name);
    void *const at = (char *)base + row->at;
    struct err why;

    if (r->st != OK)
        return;
    if (row->tensor)
        *(bool *)at = has_tensor(r, c, row->tensor);
    else if (!text || strcmp(text, "none") == 0)
        CHECK(!row->absent || choice_parse(row, base, row->absent, NULL) == OK);
    else if (row->codec <= CODEC_WIDE)
        read_number(r, row, at);
    else if (choice_parse(row, base, text, &why) == OK)
        return;
    else if (row->codec == CODEC_TEXT)
        r->st = fail(r->e, E_IO, "%s: %s", r->s->path, why.msg);
    else
        complain(r, row->name);
}

static void read_rows(struct reader *r, const struct choice *row, void *base,
                      const struct config *c)
{
    for (; row->name; row++)
        read_row(r, row, base, c);
}

/* The longest of "6,6,8". */
static int longest(struct reader *r, const char *key)
{
    const char *text = safetensors_meta(r->s, key), *next = text;
    int most = 1;

    while (next && r->st == OK) {
        char *end;
        const long n = strtol(next, &end, 10);
        if (end == next || n < 1 || n > WIDE || (*end != ',' && *end != '\0'))
            r->st = fail(r->e, E_IO, "%s: %s \"%s\" is no list of lengths  -> such as 128 or 6,6,8",
                         r->s->path, key, text);
        most = n > most && n <= WIDE ? (int)n : most;
        next = *end == ',' ? end + 1 : NULL;
    }
    return most;
}

/* A single mask is every head's. */
static void read_masks(struct reader *r, struct config *c)
{
    const char *text = word(r, "masks"), *heads = word(r, "mask_head");
    struct err why;

    if (strcmp(text, "none") == 0)
        text = "";
    if (!*text || strcmp(heads, "none") == 0)
        heads = "";
    if (masks_parse(&c->masks, text, heads, &why) != OK && r->st == OK)
        r->st = fail(r->e, E_IO, "%s: masks: %s", r->s->path, why.msg);
}

static void read_mixer(struct reader *r, struct config *c)
{
    const char *const synth = word(r, "synth");
    const bool other = strcmp(synth, "none") != 0;
    char synthesizer[32];

    snprintf(synthesizer, sizeof(synthesizer), "synth_%.20s", synth);
    const char *const name = other ? synthesizer : word(r, "mixer");
    c->mixer = mixer_find(name);
    if (!c->mixer && strcmp(name, "none") != 0)
        complain(r, other ? "synth" : "mixer");
}

/* The second scheme: the one whose key is set. */
static void read_extra(struct reader *r, struct config *c)
{
    c->attn_extra = NULL;
    for (const struct extra_key *k = extra_keys; k->key; k++) {
        if (whole(r, k->key, 0, 0, WIDE) == 0)
            continue;
        if (c->attn_extra && r->st == OK)
            r->st = fail(r->e, E_IO, "%s: both %s and %s  -> one of them at most", r->s->path,
                         c->attn_extra->name, k->key);
        c->attn_extra = k->extra;
    }
}

static void read_map(struct reader *r, struct config *c)
{
    c->qkv_map = strcmp(word(r, "dextra"), "none") == 0 ? NULL : &qkv_map_dextra;
}

/* The numbers of the parts, once these are known. */
static void read_own(struct reader *r, struct config *c)
{
    config_own_reset(c);
    for (enum part_slot s = 0; s < SLOT_COUNT; s++) {
        const struct own *const own = config_own_of(c, s);
        if (own)
            read_rows(r, own->choices, c->own[s].bytes, c);
    }
}

/* What one key says only together with others. */
static void settle(struct reader *r, struct config *c)
{
    if (whole(r, "ut", 0, 0, 1) == 0)
        c->steps = 0;
    if (c->kv_heads == 0)
        c->kv_heads = c->H;
    if (c->rel_rows == 0) /* what variants without tables say */
        c->rel_rows = c->clip + 1;
    c->clamp_len = max_int(0, c->clamp_len);
}

enum status checkpoint_parts(const struct safetensors *s, const char *prefix, struct config *c,
                             struct err *e)
{
    struct reader r = {.s = s, .prefix = prefix, .e = e};

    read_rows(&r, layer_keys, c, c);
    read_own(&r, c);
    return r.st;
}

enum status checkpoint_map(const struct safetensors *s, struct config *c, struct err *e)
{
    struct reader r = {.s = s, .prefix = "", .e = e};

    read_map(&r, c);
    read_own(&r, c);
    return r.st;
}

enum status checkpoint_config(const struct safetensors *s, const char *prefix, struct config *c,
                              struct err *e)
{
    struct reader r = {.s = s, .prefix = prefix, .e = e};
    const struct variant *v = variant_find(word(&r, "variant"));

    if (!v)
        return fail(e, E_IO, "%s: unknown variant \"%s\"  -> see: bench list variants", s->path,
                    word(&r, "variant"));
    const int D = whole(&r, "d_model", 0, 1, WIDE), H = whole(&r, "n_head", 0, 1, WIDE);
    const int dh = whole(&r, "d_head", D / max_int(1, H), 1, WIDE);
    *c = config_default(v, D, H, dh, whole(&r, "d_inner", 4 * D, 0, WIDE),
                        whole(&r, "n_layer", 1, 1, DEEP), whole(&r, "vocab", 0, 0, WIDE));
    c->gate = NULL;
    c->pos = read_pos(&r, v);
    c->mem_len = whole(&r, "mem", 0, 0, WIDE);
    c->max_seq = longest(&r, "seq");
    read_rows(&r, model_keys, c, c);
    read_rows(&r, layer_keys, c, c);
    settle(&r, c);
    read_mixer(&r, c);
    read_masks(&r, c);
    read_extra(&r, c);
    read_map(&r, c);
    read_own(&r, c);
    if (r.st != OK)
        return r.st;
    if ((int64_t)H * dh > WIDE)
        return fail(e, E_IO, "%s: n_head %d of d_head %d is too wide  -> at most %d together",
                    s->path, H, dh, (int)WIDE);
    struct err why;
    if (config_check(c, &why) != OK)
        return fail(e, E_IO, "%s: %s", s->path, why.msg);
    return OK;
}

/* ---- tensors ------------------------------------------------------------------------------ */

static bool same_shape(const struct tensor *t, const struct param *p)
{
    return t->rank == p->rank && memcmp(t->shape, p->shape, sizeof(int) * (size_t)p->rank) == 0;
}

enum status checkpoint_load(const struct safetensors *s, const char *prefix, struct params *p,
                            struct err *e)
{
    for (int i = 0; i < p->n; i++) {
        struct param *to = &p->v[i];
        char name[TENSOR_NAME];
        snprintf(name, sizeof(name), "%s%s", prefix, to->name);
        const struct tensor *from = safetensors_find(s, name);
        if (!from)
            return fail(e, E_IO, "checkpoint %s: tensor \"%s\" missing (file is variant %s)",
                        s->path, name, safetensors_meta(s, "variant"));
        if (from->dtype != DTYPE_F32 || !same_shape(from, to))
            return fail(e, E_IO,
                        "checkpoint %s: tensor \"%s\" is not F32 [%d%s%.0d%s%.0d]  -> its "
                        "metadata says otherwise",
                        s->path, name, to->shape[0], to->rank > 1 ? "," : "", to->shape[1],
                        to->rank > 2 ? "," : "", to->shape[2]);
        memcpy(to->data, from->data, to->n * sizeof(float));
    }
    return OK;
}
