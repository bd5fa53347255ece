/* SPDX-License-Identifier: MIT
 *
 * The model that a cell measures: as a config, and as words for tables. */
#include "plan.h"

#include "variants/parts/masks.h"

#include <string.h>

enum { BYTES = 256 }; /* vocabulary of the models: tokens are bytes */

struct config case_config(const struct bench_case *c)
{
    struct config config = config_default(c->variant, c->d_model, c->heads, c->d_head, c->d_inner,
                                          c->layers, workload_is_model(c->workload) ? BYTES : 0);

    config.wiring = c->wiring;
    config.ffn = c->ffn;
    config.kv_heads = c->kv_heads;
    CHECK(config_set_masks(&config, c->variant, c->mask, c->mask_heads, NULL) == OK);
    if (c->gate)
        config.gate = c->gate;
    if (c->rnn_cell >= 0)
        config.rnn_cell = (enum rnn_cell_kind)c->rnn_cell;
    if (c->halt >= 0)
        config.halt = (enum halt_kind)c->halt;
    if (c->clip >= 0) {
        config.clip = c->clip;
        config.rel_rows = c->clip + 1; /* causal */
    }
    if (c->clamp_len >= 0)
        config.clamp_len = c->clamp_len;
    config.mem_len = c->mem;
    config_compress(&config, c->mem);
    CHECK(settings_parse(&config, c->settings, c->workload == WORK_ATTN, NULL) == OK);
    config.max_seq = c->seq + (c->mem_kind == MEM_RECOMPUTE ? c->mem : 0);
    if (c->same_length == 1) {
        config.same_length = true;
        config.window = c->mem; /* 0 = off: without memory there is nothing to even out */
    }
    return config;
}

/* Heads that take the masks in turn need no saying. */
static bool in_turn(const struct masks *m)
{
    for (int i = 0; i < m->n_heads; i++)
        if (m->head[i] != i)
            return false;
    return m->n_heads == m->n;
}

/* A model with an order of its own may be attention only. */
static bool has_ffn(const struct config *c) { return !*c->order || strpbrk(c->order, "fh"); }

void case_describe(struct case_words *w, const struct bench_case *c)
{
    const bool attn = c->workload == WORK_ATTN;
    const struct config config = case_config(c);

    *w = (struct case_words){
        .ffn = attn || !has_ffn(&config) ? "" : c->ffn->name,
        .norm_kind = attn || config.wiring == WIRING_REZERO ? "" : norm_kind_name[c->norm_kind],
        .rnn_cell = c->rnn_cell >= 0 ? rnn_cell_name[c->rnn_cell] : "",
        .halt = c->halt >= 0 ? halt_name[c->halt] : "",
    };
    masks_print(w->mask, w->mask_heads, &config.masks);
    if (in_turn(&config.masks))
        *w->mask_heads = '\0';
    settings_print(w->settings, &config, NULL, attn);
}

void case_usual_choices(struct bench_case *c)
{
    const struct variant *const v = c->variant;
    const struct config usual =
        config_default(v, c->d_model, c->heads, c->d_head, c->d_inner, c->layers, 0);
    const bool attn = c->workload == WORK_ATTN;

    c->kv_heads = usual.kv_heads;
    c->wiring = usual.wiring;
    c->norm_kind = usual.norm_kind;
    c->ffn = usual.ffn;
    c->gate = attn ? NULL : usual.gate;
    c->rnn_cell = !attn && v->axes & AXIS_RNN_CELL ? (int)usual.rnn_cell : -1;
    c->halt = workload_is_model(c->workload) && v->axes & AXIS_HALT ? (int)usual.halt : -1;
}

void case_own_settings(char text[SETTINGS_TEXT], const struct bench_case *c)
{
    struct bench_case own = *c;

    own.settings = "";
    const struct config as_chosen = case_config(c), as_usual = case_config(&own);
    settings_print(text, &as_chosen, &as_usual, c->workload == WORK_ATTN);
}
