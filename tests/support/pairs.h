/* SPDX-License-Identifier: MIT
 *
 * Changes to models, as options and files make them, and which pairs of them config_check takes. */
#pragma once

#include "variants/model/config/settings.h"
#include "variants/parts/masks.h"
#include "variants/parts/mem.h"
#include "variants/parts/parts.h"

#include <inttypes.h>
#include <stdio.h>

/* The n-th entry of a registry, of a kind of part that models have one of. */
#define PART(kind, all, field)                                                                     \
    static bool kind##_at(struct config *c, int n)                                                 \
    {                                                                                              \
        c->field = all[n];                                                                         \
        return all[n];                                                                             \
    }
PART(pos, positions, pos)
PART(ffn, ffns, ffn)
PART(mixer, mixers, mixer)
PART(gate, gates, gate)
#undef PART

static bool extra_at(struct config *c, int n)
{
#define X(name) &extra_##name,
    static const struct pos *const extras[] = {EXTRAS(X) NULL};
#undef X

    c->attn_extra = extras[n];
    return extras[n];
}

static bool map_at(struct config *c, int n)
{
    c->qkv_map = &qkv_map_dextra;
    return n == 0;
}

static bool words(struct config *c, int n)
{
    if (n < WIRING_COUNT)
        c->wiring = (enum wiring)n;
    else if (n < WIRING_COUNT + NORM_KIND_COUNT)
        c->norm_kind = (enum norm_kind)(n - WIRING_COUNT);
    else if (n < WIRING_COUNT + NORM_KIND_COUNT + OUT_GATE_COUNT)
        c->out_gate = (enum out_gate)(n - WIRING_COUNT - NORM_KIND_COUNT);
    else
        return false;
    return true;
}

static bool set_masks(struct config *c, const char *masks)
{
    CHECK(masks_parse(&c->masks, masks, "", NULL) == OK);
    return true;
}

static bool sees(struct config *c, int n)
{
    switch (n) {
    case 0:
        c->causal = DIRECTION_BOTH;
        c->rel_rows = 2 * c->clip + 1;
        return true;
    case 1:
        c->causal = DIRECTION_CAUSAL;
        c->rel_rows = c->clip + 1;
        return true;
    case 2:
        c->same_length = true;
        c->window = c->mem_len = 4;
        return true;
    case 3:
        return set_masks(c, "window=4");
    case 4:
        return set_masks(c, "window=4;block=4");
    case 5:
        c->layer_masks = (struct layer_list){1, {0}};
        return set_masks(c, "window=4");
    case 6:
        c->window = 4;
        return true;
    case 7:
        c->layer_windows = (struct layer_list){2, {4, 0}};
        return true;
    case 8:
        CHECK(head_windows_parse(&c->head_windows, "4,0", NULL) == OK);
        return true;
    case 9:
        c->mem_len = 4;
        return true;
    case 10:
        c->clamp_len = 4;
        return true;
    case 11:
        c->layer_rope_base = (struct layer_list){2, {1e4, 0}};
        return true;
    case 12:
        c->rope_scaling = ROPE_LINEAR;
        c->rope_factor = 2;
        return true;
    case 13:
        c->stream_sinks = 4;
        c->window = 16;
        return true;
    default:
        return false;
    }
}

static bool set_text(char *to, size_t size, const char *text)
{
    snprintf(to, size, "%s", text);
    return true;
}

static bool sublayers(struct config *c, int n)
{
    static const char *const orders[] = {"", "sfsf", "ssff", "sfpsfusf", "hsh", "rsf", "ssss"};
    static const char *const subs[] = {"sf", "csf", "wsf", "ssf", "dsf", "dwsf"};
    enum { ORDERS = ARRAY_LEN(orders), SUBS = ARRAY_LEN(subs) };

    if (n < ORDERS)
        return set_text(c->order, sizeof(c->order), orders[n]);
    if ((n -= ORDERS) < SUBS)
        return set_text(c->subs, sizeof(c->subs), subs[n]);
    switch (n - SUBS) {
    case 0:
        c->lsra = (struct lsra){24, 4, 3, false, false};
        return set_text(c->subs, sizeof(c->subs), "lf");
    case 1:
        c->slots.n = 4;
        return set_text(c->subs, sizeof(c->subs), "sxf");
    case 2:
        c->rnn_layers = 1;
        return true;
    case 3:
        c->stack = (struct stack){2, {false, true}};
        return true;
    case 4:
        c->stack = (struct stack){2, {true, true}};
        return true;
    default:
        return false;
    }
}

static bool depth(struct config *c, int n)
{
    if (n < HALT_KINDS) {
        c->steps = 2;
        c->halt = (enum halt_kind)n;
        return true;
    }
    if ((n -= HALT_KINDS) < EXIT_KINDS) {
        c->exit = (enum exit_kind)n;
        return true;
    }
    if ((n -= EXIT_KINDS) < COND_KINDS) {
        c->cond = (enum cond_kind)n;
        return true;
    }
    switch (n - COND_KINDS) {
    case 0:
        c->transparent = TRANSPARENT_TOP;
        return true;
    case 1:
        c->recur = RECUR_SAME;
        return true;
    case 2:
        c->feedback.on = true;
        return true;
    case 3:
        c->lazy_group = 1;
        return true;
    case 4:
        c->lazy_group = 2;
        return true;
    case 5:
        c->halt = HALT_GRAVES;
        return true;
    case 6:
        c->score_residual = SCORE_RESIDUAL_SUM;
        return true;
    case 7:
        c->score_residual = SCORE_RESIDUAL_MEAN;
        return true;
    default:
        return false;
    }
}

static bool set_parts(struct config *c, const char *const keys[][2])
{
    for (int i = 0; keys[i][0]; i++)
        CHECK(config_set(c, keys[i][0], keys[i][1], NULL) == OK);
    return true;
}

static bool scores(struct config *c, int n)
{
#define PREDICTED                                                                                  \
    {"pred_alpha", "0.5"}, {"pred_beta", "0.5"}, {"pred_rows", "3"}, { "pred_cols", "3" }
    static const char *const parts[][6][2] = {
        {{"qk_norm", "1"}},
        {{"forget", "1"}},
        {{"cope", "4"}},
        {{"gauss_form", "relative"}, {"gauss_span", "4"}},
        {{"gauss_form", "published"}, {"gauss_span", "4"}},
        {{"dman", "1"}},
        {{"value_residual", "1"}},
        {{"agg", "dynamic"}, {"capsules", "2"}, {"agg_iters", "2"}},
        {{"pred_form", "convex"}, PREDICTED},
        {{"pred_form", "evolving"}, PREDICTED},
        {{"camtl", "1"}, {"camtl_m", "0"}, {"camtl_n", "4"}, {"task_dim", "3"}},
        {{"diff", "1"}}};
#undef PREDICTED
    enum { PARTS = ARRAY_LEN(parts) };

    if (n < PARTS)
        return set_parts(c, parts[n]);
    switch (n - PARTS) {
    case 0:
        c->soft_cap = 10;
        return true;
    case 1:
        c->attn_bias = ATTN_BIASED;
        return true;
    case 2:
        c->attn_bias = ATTN_BIASED_QKV;
        return true;
    case 3:
        return c->depth_scale = true;
    case 4:
        return c->share_qk = true;
    case 5:
        c->kv_heads = 2;
        return true;
    default:
        return false;
    }
}

static bool text(struct config *c, int n)
{
    switch (n) {
    case 0:
        c->logit_cap = 10;
        return true;
    case 1:
        c->tied = false;
        return true;
    case 2:
        c->adaptive.cut[0] = 20;
        c->adaptive.n = 1;
        return true;
    case 3:
        c->V = 0;
        return true;
    default:
        return false;
    }
}

/* Compressed rows: the only number of a part that decides what it goes with. */
static bool compresses(struct config *c, int n)
{
    if (n == 0 && variant_mem(c->variant)->compressed) {
        ((struct compressive *)(void *)c->numbers[SLOT_MEM].bytes)->rows = 2;
        c->mem_len = 4;
    }
    return n == 0;
}

/* Every change: the kind of it, and its number there. Those of parts come before the others. */
enum { MOST_CHANGES = 512, PART_KINDS = 6 };
struct change {
    bool (*make)(struct config *c, int n);
    int n;
    bool part;
};

static int pairs_changes(struct change all[MOST_CHANGES])
{
    static bool (*const kinds[])(struct config *, int) = {
        pos_at, ffn_at,    mixer_at, gate_at, extra_at, map_at,    words,
        sees,   sublayers, depth,    scores,  text,     compresses};
    const struct config plain = config_default(variants[0], 48, 4, 12, 96, 2, 256);
    int many = 0;

    for (size_t k = 0; k < ARRAY_LEN(kinds); k++)
        for (int n = 0;; n++) {
            struct config c = plain;
            if (!kinds[k](&c, n))
                break;
            CHECK(many < MOST_CHANGES);
            all[many++] = (struct change){kinds[k], n, k < PART_KINDS};
        }
    return many;
}

/* A part comes with the numbers that are usual for it, and everything else is changed after it. */
static bool pairs_taken(const struct config *of, const struct change *x, const struct change *y)
{
    struct config c = *of;

    if (x->part)
        x->make(&c, x->n);
    if (y->part)
        y->make(&c, y->n);
    config_numbers_reset(&c);
    if (!x->part)
        x->make(&c, x->n);
    if (!y->part)
        y->make(&c, y->n);
    return config_check(&c, NULL) == OK;
}

/* "NAME: changes taken, pairs taken, hash of all answers". */
enum { PAIRS_TEXT = 256 };
static void pairs_line(char line[PAIRS_TEXT], const struct variant *v)
{
    struct config c = config_default(v, 48, 4, 12, 96, 2, 256);
    struct change change[MOST_CHANGES];
    const int n = pairs_changes(change);
    uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */
    int single = 0, both = 0;

    c.max_seq = 8;
    for (int i = 0; i < n; i++)
        for (int j = i; j < n; j++) {
            const bool taken = pairs_taken(&c, &change[i], &change[j]);
            *(i == j ? &single : &both) += taken;
            hash = (hash ^ taken) * UINT64_C(1099511628211);
        }
    snprintf(line, PAIRS_TEXT, "%s: %d of %d changes, %d pairs, %016" PRIx64 "\n", v->name, single,
             n, both, hash);
}
