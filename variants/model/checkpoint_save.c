/* SPDX-License-Identifier: MIT
 *
 * Writing models: the keys that checkpoint_config reads, and where the weights come from. */
#include "checkpoint.h"
#include "variants/parts/masks.h"
#include "variants/parts/parts.h"

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

static void put_model(struct meta *m, const struct config *c)
{
    const bool added = c->pos->embed || c->pos->enter; /* to the stream */

    put(m, "format", "bench-checkpoint/1");
    put(m, "kind", "checkpoint");
    put(m, "variant", "%s", c->variant->name);
    put(m, "gate", "%s", c->gate ? c->gate->name : "none");
    put(m, "norm", "%s", wiring_name[c->wiring]);
    if (*c->order)
        put(m, "order", "%s", c->order);
    put(m, "n_head", "%d", c->H);
    put(m, "d_model", "%d", c->D);
    put(m, "d_head", "%d", c->dh);
    put(m, "d_inner", "%d", c->F);
    put(m, "n_layer", "%d", c->N);
    put(m, "vocab", "%d", c->V);
    put(m, "pos", "%s", added ? c->pos->name : "none");
    put(m, "scheme", "%s", added ? "none" : c->pos->name);
    put(m, "tied", "%d", c->tied);
    put(m, "out_bias", "%d", c->out_bias);
    put(m, "final_ln", "%d", c->final_ln);
    put(m, "emb_scale", "%.9g", (double)c->emb_scale);
    put(m, "ln_eps", "%.9g", (double)c->ln_eps);
}

static void put_ffn(struct meta *m, const struct config *c)
{
    put(m, "norm_kind", "%s", norm_kind_name[c->norm_kind]);
    put(m, "ffn", "%s", c->ffn->name);
    put(m, "ff_bias", "%d", c->ffn_bias);
    if (!c->ffn->aux)
        return;
    put(m, "experts", "%d", c->experts);
    put(m, "moe_k", "%d", c->moe_k);
    put(m, "capacity", "%d", c->capacity);
    put(m, "aux_coef", "%.9g", (double)c->aux_coef);
}

static void put_attention(struct meta *m, const struct config *c)
{
    put(m, "scale", "%.9g", (double)c->scale);
    put(m, "causal", "%d", c->causal);
    put(m, "window", "%d", c->window);
    put(m, "kv_heads", "%d", c->kv_heads);
    put(m, "attn_bias", "%d", c->attn_bias);
    put(m, "clip", "%d", c->clip);
    put(m, "rel_rows", "%d", c->rel_rows);
    put(m, "rel_per_head", "%d", c->rel_per_head);
    put(m, "clamp_len", "%d", c->clamp_len);
    put(m, "same_length", "%d", c->same_length);
    put(m, "uv", "%s", c->uv_per_layer ? "layer" : "shared");
    put(m, "sinusoid", "%s", c->sinusoid == SINUSOID_INTERLEAVED ? "interleaved" : "concat");
}

static void put_mixer(struct meta *m, const struct config *c)
{
    if (!c->mixer)
        return;
    put(m, "mixer", "%s", c->mixer->name);
    put(m, "features", "%d", c->features);
    put(m, "syn_inner", "%d", c->syn_inner);
    put(m, "lin_eps", "%.9g", (double)c->lin_eps);
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

static void put_more(struct meta *m, const struct config *c)
{
    put(m, "realformer", "%s", score_residual_name[c->score_residual]);
    put(m, "talking", "%d", c->attn_extra == &extra_talking);
    put(m, "persistent", "%d", c->attn_extra == &extra_persistent ? c->persistent : 0);
    put(m, "span_ramp", "%d", c->attn_extra == &extra_span ? c->span_ramp : 0);
    if (c->attn_extra != &extra_span)
        return;
    put(m, "span_max", "%d", c->span_max);
    put(m, "span_cost", "%.9g", (double)c->span_cost);
}

static void put_positions(struct meta *m, const struct config *c)
{
    put(m, "max_pos", "%d", c->max_pos);
    put(m, "rope_dim", "%d", c->rope_dim);
    put(m, "rope_base", "%.17g", c->rope_base);
    put(m, "rope_pairs", "%s", c->rope_pairs == ROPE_HALVES ? "half" : "interleaved");
    put(m, "t5_buckets", "%d", c->t5_buckets);
    put(m, "t5_max_distance", "%d", c->t5_max_distance);
    put(m, "share_attn_bias", "%d", !c->t5_per_layer);
    put(m, "p2c", "%s", c->p2c_code ? "code" : "paper");
    put(m, "pos_q_bias", "%d", c->pos_q_bias);
}

static void put_map(struct meta *m, const struct config *c)
{
    if (!c->qkv_map)
        return;
    put(m, "dextra", c->dextra_code ? "code" : "paper");
    put(m, "dextra_depth", "%d,%d", c->dextra_depth[0], c->dextra_depth[1]);
    put(m, "dextra_width", "%.9g,%.9g", (double)c->dextra_width[0], (double)c->dextra_width[1]);
    put(m, "glt_max_groups", "%d", c->glt_groups);
    put(m, "glt_shuffle", "%d", c->glt_shuffle);
    put(m, "glt_norm", "%d", c->glt_norm);
    put(m, "glt_act", "%s", checkpoint_act_name(c->glt_act));
}

static void put_depth(struct meta *m, const struct config *c)
{
    if (c->rnn_layers) {
        put(m, "rnn_layers", "%d", c->rnn_layers);
        put(m, "rnn_cell", "%s", rnn_cell_name[c->rnn_cell]);
        put(m, "rnn_window", "%d", c->rnn_window);
        put(m, "rnn_carry", "%d", c->rnn_carry);
    }
    if (!c->steps)
        return;
    put(m, "ut", "1");
    put(m, "steps", "%d", c->steps);
    put(m, "step_base", "%d", c->step_base);
    put(m, "act", "%s", halt_name[c->halt]);
    put(m, "halt_eps", "%.9g", (double)c->halt_eps);
    put(m, "ponder_tau", "%.9g", (double)c->ponder_tau);
}

static void put_compress(struct meta *m, const struct config *c)
{
    if (!c->cmem)
        return;
    put(m, "compress", "%s", compress_name[c->compress]);
    put(m, "cmem", "%d", c->cmem);
    put(m, "c_ratio", "%d", c->c_ratio);
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

    CHECK(m && t);
    put_model(m, c);
    put_ffn(m, c);
    put_attention(m, c);
    put_mixer(m, c);
    put_masks(m, c);
    put_more(m, c);
    put_positions(m, c);
    put_map(m, c);
    put_compress(m, c);
    put_depth(m, c);
    put_provenance(m, from);
    for (int i = 0; i < p->n; i++)
        t[i] = checkpoint_tensor(&p->v[i], "", p->v[i].data);
    const enum status st = safetensors_write(path, t, p->n, m->at, m->n, e);
    free(m);
    free(t);
    return st;
}
