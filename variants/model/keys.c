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
static bool has_cpe(const struct config *c) { return strchr(c->subs, 'c'); }
static bool has_sep(const struct config *c) { return strchr(c->subs, 'w'); }
static bool has_capsules(const struct config *c) { return c->around.agg != AGG_LINEAR; }
static bool is_predicted(const struct config *c) { return c->around.predict.form; }
static bool has_tasks(const struct config *c) { return c->around.camtl.on; }
static bool has_lsra(const struct config *c) { return strchr(c->subs, 'l'); }
static bool has_feedback(const struct config *c) { return c->feedback.on; }
static bool has_slots(const struct config *c) { return strchr(c->subs, 'x'); }
static bool is_lazy(const struct config *c) { return c->variant->lazy_group > 0; }
static bool streams(const struct config *c) { return c->variant->stream_sinks > 0; }

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

static enum status parse_subs(void *config, const char *text, struct err *e)
{
    if (strlen(text) >= MAX_SUBS || !*text)
        return fail(e, E_USAGE, "subs \"%.60s\"  -> 1 to %d letters", text, MAX_SUBS - 1);
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
            return fail(e, E_USAGE, "seq \"%.60s\" is no list of lengths  -> such as 128 or 6,6,8",
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

#define AT(field) offsetof(struct config, field)

static const struct choice sizes[] = {
    {.name = "d_model", .codec = CODEC_INT, .at = AT(D), .least = 1, .most = MAX_WIDTH},
    {.name = "n_head", .codec = CODEC_INT, .at = AT(H), .least = 1, .most = MAX_WIDTH},
    {.name = "d_head", .codec = CODEC_INT, .at = AT(dh), .least = 1, .most = MAX_WIDTH},
    {.name = "d_inner", .codec = CODEC_INT, .at = AT(F), .most = 4 * MAX_WIDTH},
    {.name = "n_layer", .codec = CODEC_INT, .at = AT(N), .least = 1, .most = MAX_LAYERS},
    {.name = "vocab", .codec = CODEC_INT, .at = AT(V), .most = MAX_WIDTH},
};
_Static_assert(ARRAY_LEN(sizes) == MODEL_SIZES, "keys.h counts them");

/* What is neither a size nor a choice. */
static const struct choice others[] = {
    /* First: it says where the first attention is. */
    {.name = "order",
     .codec = CODEC_TEXT,
     .print = print_order,
     .parse = parse_order,
     .absent = ""},
    {.name = "subs", .codec = CODEC_TEXT, .print = print_subs, .parse = parse_subs, .absent = "sf"},
    {.name = "cpe_kernel",
     .codec = CODEC_INT,
     .at = AT(cpe_kernel),
     .help = "rows of the convolution at a layer's input",
     .least = 1,
     .most = 1 << 12,
     .scope = SCOPE_LAYER,
     .setting = true,
     .applies = has_cpe},
    {.name = "cpe_layers",
     .codec = CODEC_WORD,
     .at = AT(cpe_layers),
     .words = cpe_layers_name,
     .applies = has_cpe,
     .absent = "all"},
    {.name = "sep_kernel",
     .codec = CODEC_INT,
     .at = AT(sep_kernel),
     .help = "rows of the separable convolution",
     .least = 1,
     .most = 1 << 12,
     .scope = SCOPE_LAYER,
     .setting = true,
     .applies = has_sep},
    {.name = "lsra_split",
     .codec = CODEC_INT,
     .at = AT(lsra.split),
     .help = "channels that attend; the others go through a convolution",
     .most = MAX_WIDTH,
     .scope = SCOPE_LAYER,
     .setting = true,
     .applies = has_lsra},
    {.name = "conv_kernel",
     .codec = CODEC_INT,
     .at = AT(lsra.kernel),
     .help = "rows that the convolution reads",
     .most = 1 << 12,
     .scope = SCOPE_LAYER,
     .setting = true,
     .applies = has_lsra},
    {.name = "conv_heads",
     .codec = CODEC_INT,
     .at = AT(lsra.heads),
     .help = "groups of channels with weights of their own",
     .most = MAX_WIDTH,
     .scope = SCOPE_LAYER,
     .setting = true,
     .applies = has_lsra},
    {.name = "conv_dynamic",
     .codec = CODEC_FLAG,
     .at = AT(lsra.dynamic),
     .help = "1: each row computes the weights of the convolution",
     .most = 1,
     .scope = SCOPE_LAYER,
     .setting = true,
     .applies = has_lsra,
     .absent = "0"},
    {.name = "lsra_glu",
     .codec = CODEC_FLAG,
     .at = AT(lsra.glu),
     .help = "1: its input is gated",
     .most = 1,
     .scope = SCOPE_LAYER,
     .setting = true,
     .applies = has_lsra,
     .absent = "0"},
    {.name = "mem", .codec = CODEC_INT, .at = AT(mem_len), .most = MAX_DISTANCE, .absent = "0"},
    {.name = "seq",
     .codec = CODEC_TEXT,
     .print = print_longest,
     .parse = parse_longest,
     .absent = "1"},
    {.name = "ff_bias",
     .codec = CODEC_FLAG,
     .at = AT(ffn_bias),
     .scope = SCOPE_LAYER,
     .absent = "1"},
    {.name = "rnn_layers",
     .codec = CODEC_INT,
     .at = AT(rnn_layers),
     .most = MAX_RNNS,
     .scope = SCOPE_LAYER,
     .absent = "0"},
    {.name = "rnn_window",
     .codec = CODEC_INT,
     .at = AT(rnn_window),
     .help = "tokens of a LocalRNN",
     .least = 1,
     .most = 1 << 20,
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
    {.name = "mem_start",
     .codec = CODEC_WORD,
     .at = AT(mem_start),
     .words = mem_start_name,
     .absent = "empty"},
    {.name = "tied", .codec = CODEC_FLAG, .at = AT(tied), .absent = "1"},
    {.name = "out_bias", .codec = CODEC_FLAG, .at = AT(out_bias), .absent = "0"},
    {.name = "final_ln", .codec = CODEC_FLAG, .at = AT(final_ln), .absent = "0"},
    {.name = "emb_scale", .codec = CODEC_REAL, .at = AT(emb_scale), .most = FLT_MAX},
    {.name = "ln_eps", .codec = CODEC_REAL, .at = AT(ln_eps), .most = FLT_MAX},
    {.name = "scale", .codec = CODEC_REAL, .at = AT(scale), .most = FLT_MAX},
    {.name = "stream_sinks",
     .codec = CODEC_INT,
     .at = AT(stream_sinks),
     .help = "first keys that stay in the cache",
     .most = 1 << 20,
     .setting = true,
     .applies = streams,
     .absent = "0"},
    {.name = "window",
     .codec = CODEC_INT,
     .at = AT(window),
     .help = "newest keys that the cache has besides",
     .most = MAX_DISTANCE,
     .setting = true,
     .applies = streams,
     .absent = "0"},
    {.name = "kv_heads",
     .codec = CODEC_INT,
     .at = AT(kv_heads),
     .least = 1,
     .most = MAX_WIDTH,
     .zero_is_absent = true},
    {.name = "d_value",
     .codec = CODEC_INT,
     .at = AT(dv),
     .help = "width of a head of values",
     .most = MAX_WIDTH,
     .setting = true,
     .applies = has_latents,
     .zero_is_absent = true,
     .absent = "0"},
    {.name = "attn_bias", .codec = CODEC_FLAG, .at = AT(attn_bias), .absent = "0"},
    {.name = "share_qk", .codec = CODEC_FLAG, .at = AT(share_qk), .absent = "0"},
    {.name = "rel_rows",
     .codec = CODEC_INT,
     .at = AT(rel_rows),
     .least = 1,
     .most = 2 * MAX_DISTANCE + 1.,
     .zero_is_absent = true},
    {.name = "rel_per_head", .codec = CODEC_FLAG, .at = AT(rel_per_head), .absent = "0"},
    {.name = "rel_k", .codec = CODEC_FLAG, .at = AT(rel_k), .tensor = "attn.rel_k"},
    {.name = "rel_v", .codec = CODEC_FLAG, .at = AT(rel_v), .tensor = "attn.rel_v"},
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
    {.name = "max_pos", .codec = CODEC_INT, .at = AT(max_pos), .most = MAX_DISTANCE, .absent = "0"},
    {.name = "realformer",
     .codec = CODEC_WORD,
     .at = AT(score_residual),
     .words = score_residual_name,
     .absent = "none"},
    {.name = "transparent",
     .codec = CODEC_WORD,
     .at = AT(transparent),
     .words = transparent_name,
     .absent = "none"},
    {.name = "recur",
     .codec = CODEC_WORD,
     .at = AT(recur),
     .words = recur_name,
     .absent = "shifted"},
    {.name = "feedback", .codec = CODEC_FLAG, .at = AT(feedback.on), .absent = "0"},
    {.name = "share_kv",
     .codec = CODEC_FLAG,
     .at = AT(feedback.shared),
     .help = "1: all layers have the same keys and values",
     .most = 1,
     .scope = SCOPE_MODEL,
     .setting = true,
     .applies = has_feedback,
     .absent = "0"},
    {.name = "slots",
     .codec = CODEC_INT,
     .at = AT(slots.n),
     .help = "rows that stand for all earlier segments",
     .most = 1 << 12,
     .scope = SCOPE_MODEL,
     .setting = true,
     .applies = has_slots,
     .absent = "0"},
    {.name = "slot_temp",
     .codec = CODEC_REAL,
     .at = AT(slots.temp),
     .most = FLT_MAX,
     .absent = "1"},
    {.name = "bptt",
     .codec = CODEC_FLAG,
     .at = AT(slots.bptt),
     .help = "1: gradients reach what earlier segments wrote",
     .most = 1,
     .scope = SCOPE_MODEL,
     .setting = true,
     .applies = has_slots,
     .absent = "0"},
    {.name = "replay",
     .codec = CODEC_INT,
     .at = AT(slots.replay),
     .help = "earlier segments that are run again for it",
     .most = 64,
     .scope = SCOPE_MODEL,
     .setting = true,
     .applies = has_slots,
     .absent = "16"},
    {.name = "exit", .codec = CODEC_WORD, .at = AT(exit), .words = exit_name, .absent = "none"},
    {.name = "cond", .codec = CODEC_WORD, .at = AT(cond), .words = cond_name, .absent = "none"},
    {.name = "budget", .codec = CODEC_REAL, .at = AT(budget), .most = 1},
    {.name = "budget_coef", .codec = CODEC_REAL, .at = AT(budget_coef), .most = FLT_MAX},
    {.name = "lazy_group",
     .codec = CODEC_INT,
     .at = AT(lazy_group),
     .help = "layers that share probabilities",
     .most = MAX_LAYERS,
     .scope = SCOPE_MODEL,
     .setting = true,
     .applies = is_lazy,
     .absent = "0"},
    {.name = "qk_norm", .codec = CODEC_FLAG, .at = AT(around.qk_norm), .absent = "0"},
    {.name = "head_eps",
     .codec = CODEC_REAL,
     .at = AT(head_eps),
     .most = FLT_MAX,
     .absent = "1e-5"},
    {.name = "soft_cap",
     .codec = CODEC_REAL,
     .at = AT(around.soft_cap),
     .most = FLT_MAX,
     .absent = "0"},
    {.name = "logit_cap", .codec = CODEC_REAL, .at = AT(logit_cap), .most = FLT_MAX, .absent = "0"},
    {.name = "forget", .codec = CODEC_FLAG, .at = AT(around.forget), .absent = "0"},
    {.name = "cope", .codec = CODEC_INT, .at = AT(around.cope), .most = 1 << 16, .absent = "0"},
    {.name = "gauss_form",
     .codec = CODEC_WORD,
     .at = AT(around.local),
     .words = localness_name,
     .absent = "none"},
    {.name = "gauss_span",
     .codec = CODEC_REAL,
     .at = AT(around.local_span),
     .most = MAX_DISTANCE,
     .absent = "0"},
    {.name = "dman", .codec = CODEC_FLAG, .at = AT(around.man), .absent = "0"},
    {.name = "camtl", .codec = CODEC_FLAG, .at = AT(around.camtl.on), .absent = "0"},
    {.name = "camtl_m",
     .codec = CODEC_INT,
     .at = AT(around.camtl.blocks),
     .most = MAX_WIDTH,
     .absent = "0"},
    {.name = "camtl_n",
     .codec = CODEC_INT,
     .at = AT(around.camtl.size),
     .help = "places of a block whose scores depend on the task",
     .least = 0,
     .most = 1 << 12,
     .scope = SCOPE_LAYER,
     .setting = true,
     .applies = has_tasks,
     .absent = "0"},
    {.name = "task_dim",
     .codec = CODEC_INT,
     .at = AT(around.camtl.task),
     .help = "numbers of a task's vector",
     .most = MAX_WIDTH,
     .scope = SCOPE_LAYER,
     .setting = true,
     .applies = has_tasks,
     .absent = "0"},
    {.name = "pred_form",
     .codec = CODEC_WORD,
     .at = AT(around.predict.form),
     .words = predict_form_name,
     .absent = "none"},
    {.name = "pred_alpha",
     .codec = CODEC_REAL,
     .at = AT(around.predict.alpha),
     .most = 1,
     .absent = "0"},
    {.name = "pred_beta",
     .codec = CODEC_REAL,
     .at = AT(around.predict.beta),
     .most = 1,
     .absent = "0"},
    {.name = "pred_rows",
     .codec = CODEC_INT,
     .at = AT(around.predict.rows),
     .help = "queries that a convolution over scores reads",
     .most = 1 << 10,
     .scope = SCOPE_LAYER,
     .setting = true,
     .applies = is_predicted,
     .absent = "0"},
    {.name = "pred_cols",
     .codec = CODEC_INT,
     .at = AT(around.predict.cols),
     .help = "keys that it reads",
     .most = 1 << 10,
     .scope = SCOPE_LAYER,
     .setting = true,
     .applies = is_predicted,
     .absent = "0"},
    {.name = "agg", .codec = CODEC_WORD, .at = AT(around.agg), .words = agg_name, .absent = "none"},
    {.name = "capsules",
     .codec = CODEC_INT,
     .at = AT(around.capsules),
     .help = "parts of a row that heads vote on",
     .most = MAX_WIDTH,
     .scope = SCOPE_LAYER,
     .setting = true,
     .applies = has_capsules,
     .absent = "0"},
    {.name = "agg_iters",
     .codec = CODEC_INT,
     .at = AT(around.agg_iters),
     .help = "iterations in which heads agree",
     .most = 1 << 10,
     .scope = SCOPE_LAYER,
     .setting = true,
     .applies = has_capsules,
     .absent = "3"},
    {.name = "diff", .codec = CODEC_FLAG, .at = AT(around.diff), .absent = "0"},
    {.name = "lambda_init", .codec = CODEC_REAL, .at = AT(lambda_init), .most = 1, .absent = "0"},
    {.name = "value_residual", .codec = CODEC_FLAG, .at = AT(around.value_residual), .absent = "0"},
    {.name = "steps", .codec = CODEC_INT, .at = AT(steps), .most = MAX_LAYERS, .absent = "0"},
    {.name = "step_base", .codec = CODEC_INT, .at = AT(step_base), .most = 1 << 20},
    {.name = "halt_eps", .codec = CODEC_REAL, .at = AT(halt_eps), .most = 1},
    {.name = "ponder_tau", .codec = CODEC_REAL, .at = AT(ponder_tau), .most = FLT_MAX},
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
