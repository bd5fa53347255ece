/* SPDX-License-Identifier: MIT
 *
 * Golden files of a whole funnel (those that have blocks of layers), forward and backward, without
 * embedding and head: sub-layers in a given order, causal or not
 * (variants/model/layers/sublayer_pool.c).
 */
#include "reader.h"

#include "variants/model/checkpoint/checkpoint.h"
#include "variants/model/config/settings.h"

enum { MAX_SUBLAYERS = MAX_ORDER - 1 };

struct funnel_run {
    char prefix[MAX_SUBLAYERS / 2][32]; /* "enc.B.L." or "dec.L.", the file's name of each layer */
    int joins; /* the sub-layer before which the stream returns to one row per token */
};

/* From "sub.I.REST" to the file's names; of biases of queries it has none: they are 0. */
static void name_params(struct run *r)
{
    const struct funnel_run *const o = r->data;
    struct params *const p = &r->params;
    char from[32], to[48];

    for (int i = 0; i < p->n; i++)
        if (strstr(p->v[i].name, "attn.q.bias"))
            params_buffer(p, i);
    for (int k = 0; k < (int)strlen(r->c.order); k++) {
        const char *const prefix = o->prefix[k / 2];
        snprintf(from, sizeof(from), "sub.%d.ln.", k);
        snprintf(to, sizeof(to), "%sln%d.", prefix, 1 + k % 2);
        params_rename(p, 0, from, to);
        snprintf(from, sizeof(from), "sub.%d.", k);
        params_rename(p, 0, from, prefix);
    }
}

/* Append attention of this letter and a feed-forward network. False if there is no room. */
static bool add_layer(struct config *c, char letter)
{
    const size_t n = strlen(c->order);

    if (n + 2 >= MAX_ORDER)
        return false;
    c->order[n] = letter;
    c->order[n + 1] = 'f';
    c->order[n + 2] = '\0';
    return true;
}

/* Layers of each block, "1,2,1", and those after the blocks. */
static enum status read_order(struct run *r, int after, struct err *e)
{
    struct funnel_run *const o = r->data;
    struct config *const c = &r->c;
    const char *const text = safetensors_meta(r->s, "blocks"), *at = text;
    bool fits = true;

    *c->order = '\0';
    for (int b = 0; at && fits; b++) {
        char *end;
        const long layers = strtol(at, &end, 10);
        if (end == at || layers < 1 || (*end != ',' && *end != '\0'))
            break;
        for (int l = 0; l < layers && fits; l++) {
            const size_t layer = strlen(c->order) / 2;
            fits = add_layer(c, b && l == 0 ? 'p' : 's');
            if (fits)
                snprintf(o->prefix[layer], sizeof(o->prefix[layer]), "enc.%d.%d.", b, l);
        }
        if (*end == '\0') {
            o->joins = (int)strlen(c->order);
            for (int l = 0; l < after && fits; l++) {
                const size_t layer = strlen(c->order) / 2;
                fits = add_layer(c, l == 0 ? 'u' : 's');
                if (fits)
                    snprintf(o->prefix[layer], sizeof(o->prefix[layer]), "dec.%d.", l);
            }
            if (fits)
                return OK;
        }
        at = end + 1;
    }
    return safetensors_fail(r->s, e,
                            "blocks \"%.64s\" and %d layers after them  -> write numbers of layers "
                            "such as 1,2,1, at most %d in all",
                            text ? text : "", after, (int)MAX_SUBLAYERS / 2);
}

static enum status read_config(struct run *r, struct err *e)
{
    const char *const scheme = safetensors_meta(r->s, "scheme");
    int after = 0, causal = 0, bias = 0;
    struct err why;

    TRY(golden_part(r, golden_variant(r), "DHdF", e));
    TRY(safetensors_int(r->s, "dec_layers", 0, 0, MAX_SUBLAYERS, &after, e));
    TRY(safetensors_int(r->s, "causal", 0, 0, 1, &causal, e));
    TRY(safetensors_int(r->s, "attn_bias", 1, 0, 1, &bias, e));
    TRY(golden_eps(r, e));
    if (r->max.M)
        return safetensors_fail(r->s, e, "mem %d with blocks of layers  -> use mem 0", r->max.M);
    r->c.V = 1;
    r->c.uv_per_layer = true;
    r->c.max_seq = r->max.L;
    r->c.causal = causal;
    if (scheme && !(r->c.pos = pos_find(scheme)))
        return safetensors_fail(r->s, e, "unknown scheme \"%.64s\"  -> xl", scheme);
    TRY(safetensors_int(r->s, "clamp_len", 0, 0, GOLDEN_WIDE, &r->c.clamp_len, e));
    if (safetensors_meta(r->s, "sinusoid") &&
        config_set(&r->c, "sinusoid", safetensors_meta(r->s, "sinusoid"), &why) != OK)
        return safetensors_fail(r->s, e, "%s", why.msg);
    r->c.attn_bias = bias; /* of k, v and o; the file has none of q */
    TRY(checkpoint_parts(r->s, "param.", &r->c, e));
    TRY(read_order(r, after, e));
    return checkpoint_check(r->s, &r->c, e);
}

static enum status read(struct run *r, struct err *e)
{
    TRY(read_config(r, e));
    TRY(golden_inputs(r, r->c.D, e));
    sublayers_init(&r->sublayers, &r->c, &r->params, 0);
    name_params(r);
    return OK;
}

/* The output of the last block is compared before the sub-layers after it run. */
static enum status forward(struct run *r, struct err *e)
{
    struct funnel_run *const o = r->data;
    struct sublayers *const s = &r->sublayers;
    const int B = r->max.B, L = r->max.L, last = o->joins - 1;

    golden_tables(r, L);
    float *in = sublayers_part_input(s, 0, o->joins, r->y);
    memcpy(in, r->x->data, r->x->n * sizeof(float));
    sublayers_part_forward(s, r->g, 0, o->joins, r->y, in, B, L);
    const int tokens = 1 << s->at[last].level; /* of a pool group */
    const size_t top = (size_t)((L + (r->c.causal ? 0 : tokens - 1)) / tokens) * (size_t)r->c.D;
    golden_compare_first(r, "out.top", r->y, (size_t)B, top);
    in = sublayers_part_input(s, o->joins, s->n - o->joins, r->y);
    if (in != r->y)
        memcpy(in, r->y, (size_t)B * top * sizeof(float));
    sublayers_part_forward(s, r->g, o->joins, s->n - o->joins, r->y, in, B, L);
    return OK;
}

static bool claims(const struct safetensors *s) { return safetensors_meta(s, "blocks"); }

const struct golden_kind golden_funnel = {
    .claims = claims,
    .size = sizeof(struct funnel_run),
    .read = read,
    .bind = golden_bind_layers,
    .forward = forward,
    .backward = golden_backward_layers,
};
