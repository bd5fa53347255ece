/* SPDX-License-Identifier: MIT
 *
 * Keys of files. */
#include "keys.h"
#include "choices.h"
#include "variants/model/sublayer/sublayer_list.h"
#include "variants/parts/latent.h"
#include "variants/parts/parts.h"

#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const sinusoid_name[] = {
    [SINUSOID_CONCAT] = "concat", [SINUSOID_INTERLEAVED] = "interleaved", NULL};

static bool has_rnn(const struct config *c) { return c->rnn_layers > 0; }
static bool has_cpe(const struct config *c) { return strchr(c->subs, SUB_CPE); }
static bool has_sep(const struct config *c) { return strchr(c->subs, SUB_SEP); }
static bool has_lsra(const struct config *c) { return strchr(c->subs, SUB_LSRA); }
static bool has_feedback(const struct config *c) { return c->feedback.on; }
static bool has_slots(const struct config *c) { return strchr(c->subs, SUB_READ); }
static bool ponders(const struct config *c) { return c->halt != HALT_NEVER; }
static bool has_budget(const struct config *c) { return c->cond != COND_NONE; }
static bool has_sinusoids(const struct config *c)
{
    return c->steps || (c->pos && c->pos->sinusoids);
}
static bool has_stack(const struct config *c) { return c->stack.n > 0; }
static const char *const attn_gate_name[] = {"none", "elementwise", "headwise", NULL};
static bool is_shaw(const struct config *c) { return c->pos == &pos_shaw; }
static bool is_lazy(const struct config *c) { return c->variant->lazy_group > 0; }
static bool streams(const struct config *c) { return c->variant->stream_sinks > 0; }

static void print_order(char text[CHOICE_TEXT], const void *config)
{
    snprintf(text, CHOICE_TEXT, "%s", ((const struct config *)config)->order);
}

static enum status parse_order(void *config, const char *text, struct err *e)
{
    if (strlen(text) >= MAX_ORDER)
        return fail(e, E_USAGE, "order \"%.60s\" is too long  -> use fewer than %d letters", text,
                    (int)MAX_ORDER);
    strcpy(((struct config *)config)->order, text);
    return OK;
}

static enum status parse_subs(void *config, const char *text, struct err *e)
{
    if (strlen(text) >= MAX_SUBS || !*text)
        return fail(e, E_USAGE, "subs \"%.60s\"  -> use 1 to %d letters", text, MAX_SUBS - 1);
    strcpy(((struct config *)config)->subs, text);
    return OK;
}

static void print_subs(char text[CHOICE_TEXT], const void *config)
{
    snprintf(text, CHOICE_TEXT, "%s", ((const struct config *)config)->subs);
}

static void print_longest(char text[CHOICE_TEXT], const void *config)
{
    snprintf(text, CHOICE_TEXT, "%d", ((const struct config *)config)->max_seq);
}

/* The longest of "6,6,8". */
static enum status parse_longest(void *config, const char *text, struct err *e)
{
    long most = 1;

    for (const char *at = text; at;) {
        char *end;
        const long n = strtol(at, &end, 10);
        if (end == at || n < 1 || n > MAX_DISTANCE || (*end != ',' && *end != '\0'))
            return fail(e, E_USAGE,
                        "seq \"%.60s\" is no list of lengths  -> write for example 128 or 6,6,8",
                        text);
        most = n > most ? n : most;
        at = *end == ',' ? end + 1 : NULL;
    }
    ((struct config *)config)->max_seq = (int)most;
    return OK;
}

static void print_uv(char text[CHOICE_TEXT], const void *config)
{
    const bool own = ((const struct config *)config)->uv_per_layer;

    snprintf(text, CHOICE_TEXT, "%s", own ? "layer" : "shared");
}

static const struct choice sizes[] = {
    ROW_INT(struct config, D, "d_model", 1, MAX_WIDTH, NULL),
    ROW_INT(struct config, H, "n_head", 1, MAX_WIDTH, NULL),
    ROW_INT(struct config, dh, "d_head", 1, MAX_WIDTH, NULL),
    ROW_INT(struct config, F, "d_inner", 0, 4 * MAX_WIDTH, NULL),
    ROW_INT(struct config, N, "n_layer", 1, MAX_LAYERS, NULL),
    ROW_INT(struct config, V, "vocab", 0, MAX_WIDTH, NULL),
};
_Static_assert(ARRAY_LEN(sizes) == MODEL_SIZES, "keys.h counts them");

/* What is neither a size nor a choice. */
static const struct choice others[] = {
    /* First: it says where the first attention is. */
    ROW_TEXT("order", print_order, parse_order, NULL, .absent = "", .scope = SCOPE_MODEL),
    ROW_TEXT("subs", print_subs, parse_subs, NULL, .absent = "sf"),
    ROW_INT(struct config, cpe_kernel, "cpe_kernel", 1, 1 << 12,
            "rows of the convolution at a layer's input", .scope = SCOPE_LAYER, .setting = true,
            .applies = has_cpe),
    ROW_WORD(struct config, cpe_layers, "cpe_layers", cpe_layers_name, NULL, .applies = has_cpe,
             .absent = "all"),
    ROW_INT(struct config, sep_kernel, "sep_kernel", 1, 1 << 12,
            "rows of the separable convolution", .scope = SCOPE_LAYER, .setting = true,
            .applies = has_sep),
    ROW_INT(struct config, lsra.split, "lsra_split", 0, MAX_WIDTH,
            "channels that attend; the others go through a convolution", .scope = SCOPE_LAYER,
            .setting = true, .applies = has_lsra),
    ROW_INT(struct config, lsra.kernel, "conv_kernel", 0, 1 << 12,
            "rows that the convolution reads", .scope = SCOPE_LAYER, .setting = true,
            .applies = has_lsra),
    ROW_INT(struct config, lsra.heads, "conv_heads", 0, MAX_WIDTH,
            "groups of channels with weights of their own", .scope = SCOPE_LAYER, .setting = true,
            .applies = has_lsra),
    ROW_FLAG(struct config, lsra.dynamic, "conv_dynamic",
             "1: each row computes the weights of the convolution", .scope = SCOPE_LAYER,
             .setting = true, .applies = has_lsra, .absent = "0"),
    ROW_FLAG(struct config, lsra.glu, "lsra_glu", "1: its input is gated", .scope = SCOPE_LAYER,
             .setting = true, .applies = has_lsra, .absent = "0"),
    ROW_INT(struct config, mem_len, "mem", 0, MAX_DISTANCE, NULL, .absent = "0"),
    ROW_TEXT("seq", print_longest, parse_longest, NULL, .absent = "1"),
    ROW_FLAG(struct config, ffn_bias, "ff_bias", NULL, .scope = SCOPE_LAYER, .absent = "1",
             .skeleton = true),
    ROW_INT(struct config, rnn_layers, "rnn_layers", 0, MAX_RNNS, NULL, .scope = SCOPE_LAYER,
            .absent = "0"),
    ROW_INT(struct config, rnn_window, "rnn_window", 1, 1 << 20, "tokens of a LocalRNN",
            .scope = SCOPE_LAYER, .setting = true, .applies = has_rnn),
    ROW_FLAG(struct config, rnn_carry, "rnn_carry", "1: its windows begin in the segment before",
             .scope = SCOPE_LAYER, .setting = true, .applies = has_rnn, .absent = "0"),
    ROW_WORD(struct config, mem_start, "mem_start", mem_start_name, NULL, .absent = "empty",
             .scope = SCOPE_MODEL),
    ROW_FLAG(struct config, tied, "tied", NULL, .absent = "1", .scope = SCOPE_MODEL,
             .skeleton = true),
    ROW_FLAG(struct config, out_bias, "out_bias", NULL, .absent = "0", .scope = SCOPE_MODEL),
    ROW_FLAG(struct config, final_ln, "final_ln", NULL, .absent = "0", .scope = SCOPE_MODEL),
    ROW_REAL(struct config, emb_scale, "emb_scale", 0, FLT_MAX, NULL, .scope = SCOPE_MODEL),
    ROW_REAL(struct config, ln_eps, "ln_eps", 0, FLT_MAX, NULL, .skeleton = true),
    ROW_REAL(struct config, scale, "scale", 0, FLT_MAX, NULL),
    ROW_INT(struct config, stream_sinks, "stream_sinks", 0, 1 << 20,
            "first keys that stay in the cache", .setting = true, .applies = streams,
            .absent = "0"),
    ROW_INT(struct config, window, "window", 0, MAX_DISTANCE,
            "newest keys that the cache has besides", .setting = true, .applies = streams,
            .absent = "0"),
    ROW_INT(struct config, kv_heads, "kv_heads", 1, MAX_WIDTH, NULL, .zero_is_absent = true),
    ROW_INT(struct config, dv, "d_value", 0, MAX_WIDTH, "width of a head of values",
            .setting = true, .applies = has_latents, .zero_is_absent = true, .absent = "0"),
    ROW_FLAG(struct config, attn_bias, "attn_bias", NULL, .absent = "0", .skeleton = true),
    ROW_FLAG(struct config, share_qk, "share_qk", NULL, .absent = "0"),
    ROW_INT(struct config, rel_rows, "rel_rows", 1, 2 * MAX_DISTANCE + 1., NULL,
            .zero_is_absent = true),
    ROW_FLAG(struct config, rel_per_head, "rel_per_head", NULL, .absent = "0"),
    ROW_FLAG(struct config, rel_k, "rel_k", "1: keys have embeddings of distances",
             .tensor = "attn.rel_k", .applies = is_shaw, SETTING),
    ROW_FLAG(struct config, rel_v, "rel_v", "1: values have embeddings of distances",
             .tensor = "attn.rel_v", .applies = is_shaw, SETTING),
    {.name = "uv",
     .codec = CODEC_TEXT,
     .at = offsetof(struct config, uv_per_layer),
     .print = print_uv,
     .tensor = "attn.bias_u"},
    ROW_WORD(struct config, sinusoid, "sinusoid", sinusoid_name, "order of sines and cosines",
             .absent = "concat", .applies = has_sinusoids, SETTING),
    ROW_INT(struct config, max_pos, "max_pos", 0, MAX_DISTANCE, NULL, .absent = "0",
            .scope = SCOPE_MODEL),
    ROW_WORD(struct config, score_residual, "realformer", score_residual_name, NULL,
             .absent = "none", .scope = SCOPE_MODEL),
    ROW_WORD(struct config, transparent, "transparent", transparent_name, NULL, .absent = "none",
             .scope = SCOPE_MODEL),
    ROW_WORD(struct config, recur, "recur", recur_name, NULL, .absent = "shifted",
             .scope = SCOPE_MODEL),
    ROW_FLAG(struct config, feedback.on, "feedback", NULL, .absent = "0", .scope = SCOPE_MODEL),
    ROW_FLAG(struct config, feedback.shared, "share_kv",
             "1: all layers have the same keys and values", .scope = SCOPE_MODEL, .setting = true,
             .applies = has_feedback, .absent = "0"),
    ROW_INT(struct config, slots.n, "slots", 0, 1 << 12, "rows that stand for all earlier segments",
            .scope = SCOPE_MODEL, .setting = true, .applies = has_slots, .absent = "0"),
    ROW_REAL(struct config, slots.temp, "slot_temp", 0, FLT_MAX,
             "temperature of reading and writing slots", .absent = "1", .scope = SCOPE_MODEL,
             .applies = has_slots, SETTING),
    ROW_FLAG(struct config, slots.bptt, "bptt", "1: gradients reach what earlier segments wrote",
             .scope = SCOPE_MODEL, .setting = true, .applies = has_slots, .absent = "0"),
    ROW_INT(struct config, slots.replay, "replay", 0, 64,
            "earlier segments that are run again for it", .scope = SCOPE_MODEL, .setting = true,
            .applies = has_slots, .absent = "16"),
    ROW_WORD(struct config, exit, "exit", exit_name, NULL, .absent = "none", .scope = SCOPE_MODEL),
    ROW_WORD(struct config, cond, "cond", cond_name, NULL, .absent = "none"),
    ROW_REAL(struct config, budget, "budget", 0, 1, "share of tokens that are computed in full",
             .applies = has_budget, SETTING),
    ROW_REAL(struct config, budget_coef, "budget_coef", 0, FLT_MAX,
             "weight of the distance to it in the loss", .applies = has_budget, SETTING),
    ROW_INT(struct config, lazy_group, "lazy_group", 0, MAX_LAYERS,
            "layers that share probabilities", .scope = SCOPE_MODEL, .setting = true,
            .applies = is_lazy, .absent = "0"),
    ROW_WORD(struct config, attn_gate, "attn_gate", attn_gate_name,
             "gate on the output of the layers that attend", .absent = "none", .scope = SCOPE_MODEL,
             .applies = has_stack, .if_other = true, SETTING),
    ROW_REAL(struct config, head_eps, "head_eps", 0, FLT_MAX, NULL, .absent = "1e-5"),
    ROW_REAL(struct config, soft_cap, "soft_cap", 0, FLT_MAX, "most that a score is, 0 = any",
             .absent = "0", SETTING),
    ROW_REAL(struct config, logit_cap, "logit_cap", 0, FLT_MAX, "most that a logit is, 0 = any",
             .absent = "0", .scope = SCOPE_MODEL, SETTING),
    ROW_INT(struct config, steps, "steps", 0, MAX_LAYERS, NULL, .absent = "0",
            .scope = SCOPE_MODEL),
    ROW_INT(struct config, step_base, "step_base", 0, 1 << 20, NULL, .scope = SCOPE_MODEL),
    ROW_REAL(struct config, halt_eps, "halt_eps", 0, 1,
             "what is left of the probability where a token halts", .scope = SCOPE_MODEL,
             .applies = ponders, SETTING),
    ROW_REAL(struct config, ponder_tau, "ponder_tau", 0, FLT_MAX, "weight of the steps in the loss",
             .scope = SCOPE_MODEL, .applies = ponders, SETTING),
};

const struct choice *model_key(int i)
{
    enum { AFTER_OTHERS = MODEL_SIZES + (int)ARRAY_LEN(others) };

    if (i < MODEL_SIZES)
        return &sizes[i];
    if (i < AFTER_OTHERS)
        return &others[i - MODEL_SIZES];
    return i < AFTER_OTHERS + MODEL_CHOICE_COUNT ? &model_choices[i - AFTER_OTHERS] : NULL;
}

const struct extra_key extra_keys[] = {
    {"talking", &extra_talking},
    {"span_ramp", &extra_span},
    {"persistent", &extra_persistent},
    {"sink", &extra_sink},
    {0},
};
