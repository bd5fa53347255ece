/* SPDX-License-Identifier: MIT
 *
 * Reading models. Every complaint names the file and the key or tensor. */
#include "checkpoint.h"
#include "sublayer_list.h"
#include "variants/parts/masks.h"
#include "variants/parts/parts.h"

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

static enum wiring read_wiring(struct reader *r)
{
    const char *name = word(r, "norm");

    for (int i = 0; i < WIRING_COUNT; i++)
        if (strcmp(wiring_name[i], name) == 0)
            return (enum wiring)i;
    if (strcmp(name, "none") != 0) /* the bare operator has neither norm nor residual */
        complain(r, "norm");
    return WIRING_POST;
}

static void read_order(struct reader *r, char order[MAX_ORDER])
{
    const char *const text = word(r, "order");

    *order = '\0';
    if (strlen(text) >= MAX_ORDER)
        complain(r, "order");
    else if (strcmp(text, "none") != 0)
        strcpy(order, text);
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
static bool has_tensor(const struct reader *r, const struct config *c, const char *prefix,
                       const char *name)
{
    const int first = (int)strcspn(c->order, "spu");
    char full[TENSOR_NAME];

    snprintf(full, sizeof(full), "%s%s", prefix, name);
    if (safetensors_find(r->s, full))
        return true;
    snprintf(full, sizeof(full), "%ssub.%d.%s", prefix, first, name);
    if (safetensors_find(r->s, full))
        return true;
    snprintf(full, sizeof(full), "%slayers.0.%s", prefix, name);
    return safetensors_find(r->s, full) != NULL;
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
    c->syn_inner = whole(r, "syn_inner", 0, 0, WIDE);
    c->mixer = mixer_find(name);
    if (!c->mixer && strcmp(name, "none") != 0)
        complain(r, other ? "synth" : "mixer");
    c->features = whole(r, "features", c->features, 1, DEEP);
    c->lin_eps = (float)real(r, "lin_eps", 0);
}

static enum score_residual read_score_residual(struct reader *r)
{
    for (int i = 0; i < SCORE_RESIDUAL_COUNT; i++)
        if (strcmp(score_residual_name[i], word(r, "realformer")) == 0)
            return (enum score_residual)i;
    complain(r, "realformer");
    return SCORE_RESIDUAL_NONE;
}

/* The further scheme: the one whose key is set. */
static void read_more(struct reader *r, struct config *c)
{
    const bool talking = flag(r, "talking");
    const int ramp = whole(r, "span_ramp", 0, 0, WIDE), n = whole(r, "persistent", 0, 0, WIDE);

    c->score_residual = read_score_residual(r);
    c->attn_extra = talking ? &extra_talking : ramp ? &extra_span : n ? &extra_persistent : NULL;
    if ((talking + (ramp > 0) + (n > 0)) > 1 && r->st == OK)
        r->st = fail(r->e, E_IO, "%s: talking, span_ramp and persistent  -> one of them at most",
                     r->s->path);
    c->persistent = n;
    c->span_ramp = ramp;
    c->span_max = whole(r, "span_max", c->span_max, 0, WIDE);
    c->span_cost = (float)real(r, "span_cost", 0);
}

static void read_rope(struct reader *r, struct config *c)
{
    const char *pairs = word(r, "rope_pairs");
    const int dim = whole(r, "rope_dim", 0, 0, WIDE);

    if (dim > 0)
        c->rope_dim = dim;
    c->rope_base = real(r, "rope_base", c->rope_base);
    c->rope_pairs = strcmp(pairs, "half") == 0 ? ROPE_HALVES : ROPE_NEIGHBOURS;
    if (c->rope_pairs == ROPE_NEIGHBOURS && strcmp(pairs, "interleaved") != 0 &&
        strcmp(pairs, "none") != 0)
        complain(r, "rope_pairs");
}

static void read_positions(struct reader *r, struct config *c, const char *prefix)
{
    read_rope(r, c);
    c->max_pos = whole(r, "max_pos", 0, 0, WIDE);
    c->t5_buckets = whole(r, "t5_buckets", c->t5_buckets, 0, WIDE);
    c->t5_max_distance = whole(r, "t5_max_distance", c->t5_max_distance, 0, WIDE);
    c->t5_per_layer = !flag(r, "share_attn_bias");
    c->tupe_bias = c->pos == pos_find("tupe") && has_tensor(r, c, prefix, "attn.rel_bias");
    c->p2c_code = strcmp(word(r, "p2c"), "code") == 0;
    if (!c->p2c_code && strcmp(word(r, "p2c"), "paper") != 0 && strcmp(word(r, "p2c"), "none") != 0)
        complain(r, "p2c");
    c->pos_q_bias = flag(r, "pos_q_bias");
}

static void read_attention(struct reader *r, struct config *c, const char *prefix)
{
    c->scale = (float)real(r, "scale", (double)c->scale);
    c->causal = whole(r, "causal", 1, 0, 1) != 0;
    c->window = whole(r, "window", 0, 0, INT_MAX);
    c->kv_heads = whole(r, "kv_heads", c->H, 0, WIDE);
    if (c->kv_heads == 0)
        c->kv_heads = c->H;
    c->attn_bias = flag(r, "attn_bias");
    c->clip = whole(r, "clip", 0, 0, WIDE);
    c->rel_rows = whole(r, "rel_rows", c->clip + 1, 0, 2 * WIDE + 1);
    if (c->rel_rows == 0) /* what variants without tables say */
        c->rel_rows = c->clip + 1;
    c->rel_per_head = flag(r, "rel_per_head");
    c->rel_k = has_tensor(r, c, prefix, "attn.rel_k");
    c->rel_v = has_tensor(r, c, prefix, "attn.rel_v");
    c->clamp_len = max_int(0, whole(r, "clamp_len", 0, INT_MIN, INT_MAX - 1));
    c->same_length = flag(r, "same_length");
    c->uv_per_layer = has_tensor(r, c, prefix, "attn.bias_u");
    c->sinusoid =
        strcmp(word(r, "sinusoid"), "interleaved") == 0 ? SINUSOID_INTERLEAVED : SINUSOID_CONCAT;
    if (c->sinusoid == SINUSOID_CONCAT && strcmp(word(r, "sinusoid"), "concat") != 0 &&
        strcmp(word(r, "sinusoid"), "none") != 0)
        complain(r, "sinusoid");
}

/* Which of `names` the key says; the first where it says nothing. */
static int choice(struct reader *r, const char *key, const char *const *names, int n)
{
    const char *text = safetensors_meta(r->s, key);

    for (int i = 0; i < n; i++)
        if (!text || strcmp(names[i], text) == 0)
            return i;
    complain(r, key);
    return 0;
}

static void read_rnn(struct reader *r, struct config *c)
{
    c->rnn_layers = whole(r, "rnn_layers", 0, 0, MAX_RNNS);
    c->rnn_window = whole(r, "rnn_window", c->rnn_window, 0, WIDE);
    c->rnn_carry = flag(r, "rnn_carry");
    if (safetensors_meta(r->s, "rnn_cell"))
        c->rnn_cell = (enum rnn_cell_kind)choice(r, "rnn_cell", rnn_cell_name, CELL_KINDS);
}

static void read_depth(struct reader *r, struct config *c)
{
    c->steps = flag(r, "ut") ? whole(r, "steps", 0, 1, DEEP) : 0;
    c->step_base = whole(r, "step_base", c->step_base, 0, WIDE);
    c->halt = (enum halt_kind)choice(r, "act", halt_name, HALT_KINDS);
    c->halt_eps = (float)real(r, "halt_eps", (double)c->halt_eps);
    c->ponder_tau = (float)real(r, "ponder_tau", (double)c->ponder_tau);
}

static enum norm_kind read_norm_kind(struct reader *r)
{
    const char *name = word(r, "norm_kind");

    for (int i = 0; i < NORM_KIND_COUNT; i++)
        if (strcmp(norm_kind_name[i], name) == 0)
            return (enum norm_kind)i;
    if (strcmp(name, "none") != 0)
        complain(r, "norm_kind");
    return NORM_LAYER;
}

static void read_ffn(struct reader *r, struct config *c, const char *prefix)
{
    const char *name = word(r, "ffn");

    c->norm_kind = read_norm_kind(r);
    if (ffn_find(name))
        c->ffn = ffn_find(name);
    else if (strcmp(name, "none") != 0)
        complain(r, "ffn");
    c->ffn_bias = whole(r, "ff_bias", 1, 0, 1) != 0;
    c->ffn_beta = has_tensor(r, c, prefix, "ff.beta");
    c->experts = whole(r, "experts", c->experts, 0, DEEP);
    c->moe_k = whole(r, "moe_k", c->moe_k, 0, DEEP);
    c->capacity = whole(r, "capacity", 0, 0, WIDE);
    c->aux_coef = (float)real(r, "aux_coef", (double)c->aux_coef);
}

enum status checkpoint_parts(const struct safetensors *s, const char *prefix, struct config *c,
                             struct err *e)
{
    struct reader r = {.s = s, .e = e};

    read_ffn(&r, c, prefix);
    read_rnn(&r, c);
    return r.st;
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
    c->wiring = read_wiring(&r);
    read_order(&r, c->order);
    c->pos = read_pos(&r, v);
    c->gate = gate_find(word(&r, "gate"));
    if (!c->gate && strcmp(word(&r, "gate"), "none") != 0)
        complain(&r, "gate");
    c->mem_len = whole(&r, "mem", 0, 0, WIDE);
    c->max_seq = longest(&r, "seq");
    read_attention(&r, c, prefix);
    read_ffn(&r, c, prefix);
    read_positions(&r, c, prefix);
    read_mixer(&r, c);
    read_masks(&r, c);
    read_more(&r, c);
    read_rnn(&r, c);
    read_depth(&r, c);
    if (r.st == OK)
        r.st = checkpoint_map(s, c, e);
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
