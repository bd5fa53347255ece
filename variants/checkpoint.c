/* SPDX-License-Identifier: MIT
 *
 * Reading models. Every complaint names the file and the key or tensor. */
#include "checkpoint.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Sizes of a file are not trusted: the largest that are believed, so that no product of a few of
 * them leaves its type. */
enum { WIDE = 1 << 20, DEEP = 1 << 12 };

/* ---- metadata ----------------------------------------------------------------------------- */

/* The first error sticks; later reads do nothing. */
struct reader {
    const struct safetensors *s;
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

static bool flag(struct reader *r, const char *key) { return whole(r, key, 0, 0, 1) != 0; }

static double real(struct reader *r, const char *key, double fallback)
{
    double value = fallback;

    if (r->st == OK)
        r->st = safetensors_real(r->s, key, fallback, &value, r->e);
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

static enum norm_place read_norm(struct reader *r)
{
    const char *name = word(r, "norm");

    for (int i = 0; i < NORM_COUNT; i++)
        if (strcmp(norm_name[i], name) == 0)
            return (enum norm_place)i;
    if (strcmp(name, "none") != 0) /* the bare operator has neither norm nor residual */
        complain(r, "norm");
    return NORM_POST;
}

/* Positions added to the stream come from `pos`, relative ones from the variant. */
static const struct pos *read_pos(struct reader *r, const struct variant *v)
{
    const char *name = word(r, "pos");
    const struct pos *absolute = pos_find(name);

    if (!absolute)
        complain(r, "pos");
    return v->mem->recurrent ? v->pos : absolute;
}

static bool has_tensor(const struct safetensors *s, const char *prefix, const char *name)
{
    char full[TENSOR_NAME];

    snprintf(full, sizeof(full), "%s%s", prefix, name);
    if (safetensors_find(s, full))
        return true;
    snprintf(full, sizeof(full), "%slayers.0.%s", prefix, name);
    return safetensors_find(s, full) != NULL;
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

static void read_attention(struct reader *r, struct config *c, const char *prefix)
{
    c->scale = (float)real(r, "scale", (double)c->scale);
    c->causal = whole(r, "causal", 1, 0, 1) != 0;
    c->window = whole(r, "window", 0, 0, INT_MAX);
    c->attn_bias = flag(r, "attn_bias");
    c->clip = whole(r, "clip", 0, 0, WIDE);
    c->rel_rows = whole(r, "rel_rows", c->clip + 1, 0, 2 * WIDE + 1);
    if (c->rel_rows == 0) /* what variants without tables say */
        c->rel_rows = c->clip + 1;
    c->rel_per_head = flag(r, "rel_per_head");
    c->rel_k = has_tensor(r->s, prefix, "attn.rel_k");
    c->rel_v = has_tensor(r->s, prefix, "attn.rel_v");
    c->clamp_len = max_int(0, whole(r, "clamp_len", 0, INT_MIN, INT_MAX - 1));
    c->same_length = flag(r, "same_length");
    c->uv_per_layer = has_tensor(r->s, prefix, "attn.bias_u");
    c->sinusoid =
        strcmp(word(r, "sinusoid"), "interleaved") == 0 ? SINUSOID_INTERLEAVED : SINUSOID_CONCAT;
    if (c->sinusoid == SINUSOID_CONCAT && strcmp(word(r, "sinusoid"), "concat") != 0 &&
        strcmp(word(r, "sinusoid"), "none") != 0)
        complain(r, "sinusoid");
}

enum status checkpoint_config(const struct safetensors *s, const char *prefix, struct config *c,
                              struct err *e)
{
    struct reader r = {.s = s, .e = e};
    const struct variant *v = variant_find(word(&r, "variant"));

    if (!v)
        return fail(e, E_IO, "%s: unknown variant \"%s\"  -> see: bench list variants", s->path,
                    word(&r, "variant"));
    const int D = whole(&r, "d_model", 0, 1, WIDE), H = whole(&r, "n_head", 0, 1, WIDE);
    const int dh = whole(&r, "d_head", D / max_int(1, H), 1, WIDE);
    *c = config_default(v, D, H, dh, whole(&r, "d_inner", 4 * D, 0, WIDE),
                        whole(&r, "n_layer", 1, 1, DEEP), whole(&r, "vocab", 0, 0, WIDE));
    c->norm = read_norm(&r);
    c->pos = read_pos(&r, v);
    c->gate = gate_find(word(&r, "gate"));
    if (!c->gate && strcmp(word(&r, "gate"), "none") != 0)
        complain(&r, "gate");
    c->mem_len = whole(&r, "mem", 0, 0, WIDE);
    c->max_seq = longest(&r, "seq");
    read_attention(&r, c, prefix);
    c->tied = whole(&r, "tied", 1, 0, 1) != 0;
    c->out_bias = flag(&r, "out_bias");
    c->final_ln = flag(&r, "final_ln");
    c->emb_scale = (float)real(&r, "emb_scale", (double)c->emb_scale);
    c->ln_eps = (float)real(&r, "ln_eps", (double)c->ln_eps);
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
