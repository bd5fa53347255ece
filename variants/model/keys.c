/* SPDX-License-Identifier: MIT
 *
 * Keys of files. */
#include "keys.h"
#include "sublayer_list.h"
#include "variants/parts/parts.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const sinusoid_name[] = {
    [SINUSOID_CONCAT] = "concat", [SINUSOID_INTERLEAVED] = "interleaved", NULL};

static bool has_rnn(const struct config *c) { return c->rnn_layers > 0; }
static bool has_steps(const struct config *c) { return c->steps > 0; }
static bool has_order(const struct config *c) { return *c->order; }

static void print_order(char text[CHOICE_TEXT], const void *config)
{
    snprintf(text, CHOICE_TEXT, "%s", ((const struct config *)config)->order);
}

static enum status parse_order(void *config, const char *text, struct err *e)
{
    if (strlen(text) >= MAX_ORDER)
        return fail(e, E_USAGE, "order \"%.60s\" is too long  -> fewer than %d letters", text,
                    (int)MAX_ORDER);
    strcpy(((struct config *)config)->order, text);
    return OK;
}

static void print_uv(char text[CHOICE_TEXT], const void *config)
{
    const bool own = ((const struct config *)config)->uv_per_layer;

    snprintf(text, CHOICE_TEXT, "%s", own ? "layer" : "shared");
}

#define AT(field) offsetof(struct config, field)

const struct choice layer_keys[] = {
    {.name = "norm_kind",
     .codec = CODEC_WORD,
     .at = AT(norm_kind),
     .words = norm_kind_name,
     .absent = "layer"},
    {.name = "ffn", .codec = CODEC_ENTRY, .at = AT(ffn), .from = &ffn_registry},
    {.name = "ff_bias", .codec = CODEC_FLAG, .at = AT(ffn_bias), .absent = "1"},
    {.name = "rnn_layers",
     .codec = CODEC_INT,
     .at = AT(rnn_layers),
     .most = MAX_RNNS,
     .absent = "0",
     .applies = has_rnn},
    {.name = "rnn_cell",
     .codec = CODEC_WORD,
     .at = AT(rnn_cell),
     .words = rnn_cell_name,
     .applies = has_rnn},
    {.name = "rnn_window",
     .codec = CODEC_INT,
     .at = AT(rnn_window),
     .help = "tokens of a LocalRNN",
     .least = 1,
     .most = WIDE,
     .scope = SCOPE_LAYER,
     .setting = true,
     .applies = has_rnn},
    {.name = "rnn_carry",
     .codec = CODEC_FLAG,
     .at = AT(rnn_carry),
     .help = "1: its windows begin in the segment before",
     .most = 1,
     .scope = SCOPE_LAYER,
     .setting = true,
     .applies = has_rnn,
     .absent = "0"},
    {0},
};

const struct choice model_keys[] = {
    /* First: it says where the first attention is. */
    {.name = "order",
     .codec = CODEC_TEXT,
     .print = print_order,
     .parse = parse_order,
     .absent = "",
     .applies = has_order},
    {.name = "norm", .codec = CODEC_WORD, .at = AT(wiring), .words = wiring_name, .absent = "post"},
    {.name = "gate", .codec = CODEC_ENTRY, .at = AT(gate), .from = &gate_registry},
    {.name = "tied", .codec = CODEC_FLAG, .at = AT(tied), .absent = "1"},
    {.name = "out_bias", .codec = CODEC_FLAG, .at = AT(out_bias), .absent = "0"},
    {.name = "final_ln", .codec = CODEC_FLAG, .at = AT(final_ln), .absent = "0"},
    {.name = "emb_scale", .codec = CODEC_REAL, .at = AT(emb_scale), .most = INFINITY},
    {.name = "ln_eps", .codec = CODEC_REAL, .at = AT(ln_eps), .most = INFINITY},
    {.name = "scale", .codec = CODEC_REAL, .at = AT(scale), .most = INFINITY},
    {.name = "causal", .codec = CODEC_FLAG, .at = AT(causal), .absent = "1"},
    {.name = "window", .codec = CODEC_INT, .at = AT(window), .most = INT_MAX, .absent = "0"},
    {.name = "kv_heads", .codec = CODEC_INT, .at = AT(kv_heads), .most = WIDE, .absent = "0"},
    {.name = "attn_bias", .codec = CODEC_FLAG, .at = AT(attn_bias), .absent = "0"},
    {.name = "clip", .codec = CODEC_INT, .at = AT(clip), .most = WIDE, .absent = "0"},
    {.name = "rel_rows",
     .codec = CODEC_INT,
     .at = AT(rel_rows),
     .most = 2 * WIDE + 1,
     .absent = "0"},
    {.name = "rel_per_head", .codec = CODEC_FLAG, .at = AT(rel_per_head), .absent = "0"},
    {.name = "rel_k", .codec = CODEC_FLAG, .at = AT(rel_k), .tensor = "attn.rel_k"},
    {.name = "rel_v", .codec = CODEC_FLAG, .at = AT(rel_v), .tensor = "attn.rel_v"},
    {.name = "clamp_len",
     .codec = CODEC_INT,
     .at = AT(clamp_len),
     .least = INT_MIN,
     .most = INT_MAX - 1,
     .absent = "0"},
    {.name = "same_length", .codec = CODEC_FLAG, .at = AT(same_length), .absent = "0"},
    {.name = "uv",
     .codec = CODEC_TEXT,
     .at = AT(uv_per_layer),
     .print = print_uv,
     .tensor = "attn.bias_u"},
    {.name = "sinusoid",
     .codec = CODEC_WORD,
     .at = AT(sinusoid),
     .words = sinusoid_name,
     .absent = "concat"},
    {.name = "max_pos", .codec = CODEC_INT, .at = AT(max_pos), .most = WIDE, .absent = "0"},
    {.name = "realformer",
     .codec = CODEC_WORD,
     .at = AT(score_residual),
     .words = score_residual_name,
     .absent = "none"},
    {.name = "steps",
     .codec = CODEC_INT,
     .at = AT(steps),
     .most = DEEP,
     .absent = "0",
     .applies = has_steps},
    {.name = "step_base",
     .codec = CODEC_INT,
     .at = AT(step_base),
     .most = WIDE,
     .applies = has_steps},
    {.name = "act",
     .codec = CODEC_WORD,
     .at = AT(halt),
     .words = halt_name,
     .absent = "none",
     .applies = has_steps},
    {.name = "halt_eps",
     .codec = CODEC_REAL,
     .at = AT(halt_eps),
     .most = INFINITY,
     .applies = has_steps},
    {.name = "ponder_tau",
     .codec = CODEC_REAL,
     .at = AT(ponder_tau),
     .most = INFINITY,
     .applies = has_steps},
    {0},
};

const struct extra_key extra_keys[] = {
    {"talking", &extra_talking},
    {"span_ramp", &extra_span},
    {"persistent", &extra_persistent},
    {0},
};
