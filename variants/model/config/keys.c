/* SPDX-License-Identifier: MIT
 *
 * Keys of files. */
#include "keys.h"
#include "choices.h"
#include "variants/model/layers/dense_layers.h"
#include "variants/model/layers/sublayer_list.h"
#include "variants/parts/latent.h"

static const char *const sinusoid_name[] = {
    [SINUSOID_CONCAT] = "concat", [SINUSOID_INTERLEAVED] = "interleaved", NULL};
static const char *const uv_name[] = {"shared", "layer", NULL};

static bool has_rnn(const struct config *c) { return c->rnn_layers > 0; }
static bool has_cpe(const struct config *c) { return strchr(c->subs, SUB_CPE); }
static bool has_sep(const struct config *c) { return strchr(c->subs, SUB_SEP); }
static bool has_lsra(const struct config *c) { return strchr(c->subs, SUB_LSRA); }
static bool has_feedback(const struct config *c) { return c->feedback.on; }
static bool has_encoder(const struct config *c) { return c->enc_layers > 0; }
/* Does it predict the next token? */
static bool predicts(const struct config *c) { return c->causal; }
static bool has_targets(const struct config *c) { return c->aux_targets > 1; }
static bool votes(const struct config *c) { return c->exit == EXIT_VOTES; }
static bool has_exit_window(const struct config *c) { return c->exit == EXIT_WINDOW; }
static bool has_slots(const struct config *c) { return strchr(c->subs, SUB_READ); }
static bool slots_attend(const struct config *c)
{
    return has_slots(c) && c->slots.write == SLOTS_ATTEND;
}
static bool ponders(const struct config *c) { return c->halt != HALT_NEVER; }
static bool has_budget(const struct config *c) { return c->cond != COND_NONE; }
static bool has_sinusoids(const struct config *c)
{
    return c->steps || (c->pos && c->pos->sinusoids);
}
/* With a memory of rows or a state, positions that are added to the embedding go on from it. */
static bool counts_on(const struct config *c)
{
    return c->variant && c->pos && c->pos->embed && c->pos->pos_encoding &&
           (config_mem(c)->recurrent || config_mem(c)->state);
}
static bool has_stack(const struct config *c) { return c->stack.n > 0; }
static const char *const attn_gate_name[] = {"none", "elementwise", "headwise", NULL};
static bool is_shaw(const struct config *c) { return c->pos == &pos_shaw; }
static bool is_xl(const struct config *c) { return c->pos == &pos_xl; }
static bool has_places(const struct config *c)
{
    return c->pos == &pos_learned || c->pos == &pos_tupe;
}
static bool has_content(const struct config *c) { return c->mixer && c->mixer->content; }
static bool has_ffn(const struct config *c)
{
    return c->ffn != &ffn_none && !c->ffn->build && (!*c->order || strpbrk(c->order, "fh"));
}
static bool has_steps(const struct config *c) { return c->steps > 0; }
static bool exits(const struct config *c) { return c->exit != EXIT_NONE; }
static bool adds_scores(const struct config *c) { return c->score_residual != SCORE_RESIDUAL_NONE; }
static bool has_order(const struct config *c) { return *c->order; }
/* Does a recurrence of its own, without features of queries and keys, stand in place of attention? */
static bool recurs(const struct config *c)
{
    return c->mixer && !c->stack.n && !c->mixer->features &&
           (c->mixer->kind->recurs || c->mixer->kind->sums);
}
static bool projects(const struct config *c)
{
    for (const enum feature *f = c->mixer ? c->mixer->excludes : NULL; f && *f != HAS_NO_MORE; f++)
        if (*f == HAS_ATTN_BIAS)
            return false;
    return !recurs(c) && !c->feedback.on && !has_slots(c);
}
static bool is_plain(const struct config *c)
{
    return !*c->order && !c->steps && !c->stack.n && !c->feedback.on && !has_slots(c);
}
static bool has_subs(const struct config *c)
{
    return is_plain(c) && !has_lsra(c) && !adds_scores(c) && c->cond == COND_NONE &&
           (c->wiring == WIRING_POST || c->wiring == WIRING_PRE);
}
static bool carries(const struct config *c)
{
    return is_plain(c) && config_mem(c)->recurrent && !config_mem(c)->compressed && !c->mixer &&
           c->exit == EXIT_NONE && !has_lsra(c) &&
           strchr(c->subs, SUB_ATTENTION) == strrchr(c->subs, SUB_ATTENTION) &&
           !strchr(c->subs, SUB_MANY);
}
static bool has_norms(const struct config *c) { return c->wiring != WIRING_REZERO; }
static bool has_embedding(const struct config *c) { return !c->pos->from_tokens; }
static bool has_out_bias(const struct config *c) { return !has_clusters(c); }
static bool has_logits(const struct config *c) { return has_embedding(c) && !has_clusters(c); }
static bool is_parallel(const struct config *c) { return c->wiring == WIRING_PARALLEL; }
static bool centres(const struct config *c)
{
    return has_norms(c) && (c->norm_kind == NORM_LAYER || c->norm_kind == NORM_UNBIASED);
}
/* Nothing else changes what the residual sum gets. */
static bool adds_plainly(const struct config *c)
{
    return (wiring_norms_first(c->wiring) || wiring_norms_after(c->wiring)) && !c->gate &&
           !c->cond && !wiring_norms_output(c->wiring) && c->wiring != WIRING_ADMIN;
}
/* Are products of queries and keys multiplied by a number that can be chosen? */
static bool scales(const struct config *c)
{
    return !(c->pos && c->pos->no_content) && (!c->mixer || c->stack.n || !c->mixer->unscaled);
}
static bool scales_by_depth(const struct config *c)
{
    return scales(c) && !c->mixer && is_plain(c);
}
static bool norms_heads(const struct config *c)
{
    return has_latents(c) || mix_norms(c) || *(const bool *)config_numbers(c, SLOT_head_qk_norm) ||
           config_maps(c) > 1;
}
static bool is_rope(const struct config *c) { return c->pos == &pos_rope; }
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
    double length[CHOICE_TEXT], most = 1;
    const int n = list_read(length, CHOICE_TEXT, text, 1, MAX_DISTANCE, true);

    if (n < 1)
        return fail(e, E_USAGE,
                    "seq \"%.60s\" is not a list of lengths  -> write for example 128 or 6,6,8",
                    text);
    for (int i = 0; i < n; i++)
        most = fmax(most, length[i]);
    ((struct config *)config)->max_seq = (int)most;
    return OK;
}

/* With as few digits as give these floats again. */
static void print_divisors(char text[CHOICE_TEXT], const struct rope_list *list)
{
    enum { ENOUGH = 9 };

    *text = '\0';
    for (int i = 0; i < list->n; i++) {
        char one[32];
        for (int digits = 6; digits <= ENOUGH; digits++) {
            snprintf(one, sizeof(one), "%.*g", digits, (double)list->at[i]);
            if (strtof(one, NULL) == list->at[i])
                break;
        }
        text_item(text, CHOICE_TEXT, "%s", one);
    }
}

/* "" = none. */
static enum status parse_divisors(struct rope_list *list, const char *text, struct err *e)
{
    double at[MAX_ROPE_PAIRS];
    const int n = list_read(at, MAX_ROPE_PAIRS, text, FLT_TRUE_MIN, FLT_MAX, false);

    if (n < 0)
        return fail(e, E_USAGE,
                    "divisors \"%.60s\": not up to %d numbers above 0  -> write one for each "
                    "rotated pair, joined by commas",
                    text, (int)MAX_ROPE_PAIRS);
    list->n = n;
    for (int i = 0; i < n; i++)
        list->at[i] = (float)at[i];
    return OK;
}

static void print_rope_short(char text[CHOICE_TEXT], const void *config)
{
    print_divisors(text, &((const struct config *)config)->rope_short);
}

static enum status parse_rope_short(void *config, const char *text, struct err *e)
{
    return parse_divisors(&((struct config *)config)->rope_short, text, e);
}

static void print_rope_long(char text[CHOICE_TEXT], const void *config)
{
    print_divisors(text, &((const struct config *)config)->rope_long);
}

static enum status parse_rope_long(void *config, const char *text, struct err *e)
{
    return parse_divisors(&((struct config *)config)->rope_long, text, e);
}

/* Maps of linear attention, each a mixer of its own: the variant's numbers begin anew. */
static const struct mixer *const feature_maps[] = {&mixer_favor, &mixer_favor_hyp,
                                                   &mixer_favor_trig, &mixer_favor_relu};
static const char *const feature_map_name[] = {"exp", "cosh", "trig", "relu", NULL};

static int feature_map(const struct config *c)
{
    int i = 0;

    while (feature_map_name[i] && feature_maps[i] != c->mixer)
        i++;
    return i;
}

bool has_feature_map(const struct config *c) { return feature_map_name[feature_map(c)]; }

static void print_map(char text[CHOICE_TEXT], const void *config)
{
    const char *const name = feature_map_name[feature_map(config)];

    snprintf(text, CHOICE_TEXT, "%s", name ? name : "");
}

static enum status parse_map(void *config, const char *text, struct err *e)
{
    struct config *const c = config;
    const int i = word_index(text, feature_map_name);

    if (!*text)
        return OK;
    if (i < 0)
        return fail(e, E_USAGE, "feature_map \"%.60s\" is unknown  -> use exp, cosh, trig, relu",
                    text);
    c->mixer = feature_maps[i];
    config_numbers_reset(c);
    return OK;
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
    ROW_TEXT("order", print_order, parse_order,
             "sub-layers of the model: s attention, f feed-forward, p pooled, u given back",
             .absent = "", .scope = SCOPE_MODEL, .applies = has_order, SETTING),
    ROW_TEXT("subs", print_subs, parse_subs,
             "sub-layers of a layer: s attention, m with twice the heads, f feed-forward, c, w and "
             "b convolutions",
             .absent = "sf", .scope = SCOPE_LAYER, .applies = has_subs, SETTING),
    /* Before the numbers of parts, which it resets. */
    ROW_TEXT("feature_map", print_map, parse_map, "random features of queries and keys",
             .words = feature_map_name, .applies = has_feature_map, .elsewhere = true, SETTING),
    ROW_INT(struct config, cpe_kernel, "cpe_kernel", 1, 1 << 12,
            "rows of the convolution at a layer's input", .scope = SCOPE_LAYER, .setting = true,
            .applies = has_cpe),
    ROW_WORD(struct config, cpe_layers, "cpe_layers", cpe_layers_name,
             "layers that have this convolution", .scope = SCOPE_MODEL, .applies = has_cpe,
             .absent = "all", SETTING),
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
    ROW_FLAG(struct config, ffn_bias, "ff_bias", "1: the feed-forward network has biases",
             .scope = SCOPE_LAYER, .absent = "1", .skeleton = true, .applies = has_ffn, SETTING),
    ROW_TEXT("dense_layers", dense_layers_print, dense_layers_parse,
             "layers without experts, such as 0-2,5", .absent = "", .scope = SCOPE_MODEL,
             .if_other = true, .applies = dense_layers_possible, SETTING),
    ROW_INT(struct config, dense.inner, "dense_inner", 0, 4 * MAX_WIDTH,
            "width of their feed-forward networks, 0 = that of an expert", .absent = "0",
            .scope = SCOPE_MODEL, .if_other = true, .applies = dense_layers_possible, SETTING),
    ROW_TEXT("dense_ffn", dense_ffn_print, dense_ffn_parse, "their feed-forward network",
             .words = dense_ffn_name, .absent = "swiglu", .scope = SCOPE_MODEL, .if_other = true,
             .applies = dense_layers_possible, SETTING),
    ROW_INT(struct config, rnn_layers, "rnn_layers", 0, MAX_RNNS, "LocalRNNs before an attention",
            .scope = SCOPE_LAYER, .absent = "0", .applies = has_rnn, SETTING),
    ROW_INT(struct config, rnn_window, "rnn_window", 1, 1 << 20, "tokens of a LocalRNN",
            .scope = SCOPE_LAYER, .setting = true, .applies = has_rnn),
    ROW_FLAG(struct config, rnn_carry, "rnn_carry", "1: its windows begin in the segment before",
             .scope = SCOPE_LAYER, .setting = true, .applies = has_rnn, .absent = "0"),
    ROW_WORD(struct config, mem_start, "mem_start", mem_start_name, NULL, .absent = "empty",
             .scope = SCOPE_MODEL),
    ROW_FLAG(struct config, tied, "tied", "1: logits have the matrix of the embedding",
             .absent = "1", .scope = SCOPE_MODEL, .skeleton = true, .applies = has_embedding,
             SETTING),
    ROW_FLAG(struct config, out_bias, "out_bias", "1: logits have biases", .absent = "0",
             .scope = SCOPE_MODEL, .applies = has_out_bias, SETTING),
    ROW_FLAG(struct config, final_ln, "final_ln", NULL, .absent = "0", .scope = SCOPE_MODEL),
    ROW_REAL(struct config, emb_scale, "emb_scale", 0, FLT_MAX, "factor of the embedding",
             .scope = SCOPE_MODEL, .applies = has_embedding, SETTING),
    ROW_REAL(struct config, ln_eps, "ln_eps", 0, FLT_MAX, "what norms add to the variance",
             .scope = SCOPE_LAYER, .skeleton = true, .applies = has_norms, SETTING),
    ROW_REAL(struct config, logit_scale, "logit_scale", 0, FLT_MAX, "factor of logits",
             .scope = SCOPE_MODEL, .absent = "1", .applies = has_logits, .if_other = true, SETTING),
    ROW_REAL(struct config, res_scale, "res_scale", 0, FLT_MAX, "factor of what a sub-layer adds",
             .scope = SCOPE_LAYER, .absent = "1", .applies = adds_plainly, .if_other = true,
             SETTING),
    ROW_FLAG(struct config, ln_bias, "ln_bias", "1: norms of centred rows have biases",
             .scope = SCOPE_LAYER, .absent = "1", .applies = centres, .if_other = true, SETTING),
    ROW_FLAG(struct config, one_norm, "one_norm", "1: sub-layers side by side read the same norm",
             .scope = SCOPE_LAYER, .absent = "0", .applies = is_parallel, .if_other = true,
             SETTING),
    ROW_REAL(struct config, scale, "scale", 0, FLT_MAX, "factor of scores", .applies = scales,
             SETTING),
    ROW_FLAG(struct config, depth_scale, "depth_scale",
             "1: scores of the nth layer are divided by n", .scope = SCOPE_MODEL, .absent = "0",
             .applies = scales_by_depth, .if_other = true, SETTING),
    ROW_INT(struct config, stream_sinks, "stream_sinks", 0, 1 << 20,
            "first keys that stay in the cache", .setting = true, .applies = streams,
            .absent = "0"),
    ROW_INT(struct config, window, "window", 0, MAX_DISTANCE,
            "newest keys that the cache has besides", .setting = true, .applies = streams,
            .absent = "0"),
    ROW_INT(struct config, kv_heads, "kv_heads", 1, MAX_WIDTH, NULL, .zero_is_absent = true),
    ROW_INT(struct config, dv, "d_value", 0, MAX_WIDTH, "width of a head of values",
            .setting = true, .applies = has_latents, .zero_is_absent = true, .absent = "0"),
    ROW_WORD(struct config, attn_bias, "attn_bias", attn_bias_name,
             "1: the projections of attention have biases; qkv: all but the last", .absent = "0",
             .scope = SCOPE_LAYER, .skeleton = true, .applies = projects, SETTING, .tiny = "0|1"),
    ROW_FLAG(struct config, share_qk, "share_qk", "1: keys are the unit vectors of queries",
             .absent = "0", .scope = SCOPE_LAYER, .applies = has_content, SETTING),
    ROW_INT(struct config, rel_rows, "rel_rows", 1, 2 * MAX_DISTANCE + 1., NULL,
            .zero_is_absent = true),
    ROW_FLAG(struct config, rel_per_head, "rel_per_head", "1: each head has its own embeddings",
             .absent = "0", .applies = is_shaw, SETTING),
    ROW_FLAG(struct config, rel_k, "rel_k", "1: keys have embeddings of distances",
             .tensor = "attn.rel_k", .applies = is_shaw, SETTING),
    ROW_FLAG(struct config, rel_v, "rel_v", "1: values have embeddings of distances",
             .tensor = "attn.rel_v", .applies = is_shaw, SETTING),
    ROW_WORD(struct config, uv_per_layer, "uv", uv_name,
             "biases u and v of queries: shared by all layers, or of each layer",
             .tensor = "attn.bias_u", .scope = SCOPE_MODEL, .applies = is_xl, SETTING),
    ROW_FLAG(struct config, u_off, "u_off", "1: without u k, term (c) of the scores", .absent = "0",
             .applies = is_xl, .if_other = true, SETTING, .tiny = "0|1|0|0"),
    ROW_FLAG(struct config, v_off, "v_off", "1: without v r, term (d) of the scores", .absent = "0",
             .applies = is_xl, .if_other = true, SETTING, .tiny = "0|0|1|0"),
    ROW_TEXT("rope_short", print_rope_short, parse_rope_short,
             "what longrope divides frequencies by, up to the original context", .absent = "",
             .applies = is_rope, .if_other = true),
    ROW_TEXT("rope_long", print_rope_long, parse_rope_long,
             "what longrope divides frequencies by, beyond it", .absent = "", .applies = is_rope,
             .if_other = true),
    ROW_WORD(struct config, sinusoid, "sinusoid", sinusoid_name, "order of sines and cosines",
             .absent = "concat", .applies = has_sinusoids, SETTING),
    ROW_FLAG(struct config, pos_restart, "pos_restart",
             "1: positions at the input begin anew with each segment", .scope = SCOPE_MODEL,
             .applies = counts_on, .absent = "0", SETTING),
    ROW_INT(struct config, max_pos, "max_pos", 0, MAX_DISTANCE,
            "rows of the table of positions, 0 = as many as a text has", .absent = "0",
            .scope = SCOPE_MODEL, .applies = has_places, SETTING),
    ROW_WORD(struct config, score_residual, "realformer", score_residual_name,
             "how the scores of the layer below are added", .absent = "none", .scope = SCOPE_MODEL,
             .least = 1, .applies = adds_scores, SETTING),
    ROW_WORD(struct config, transparent, "transparent", transparent_name, NULL, .absent = "none",
             .scope = SCOPE_MODEL),
    ROW_FLAG(struct config, aux_layers, "aux_layers",
             "1: layers before the last have losses in the first half of a training",
             .scope = SCOPE_MODEL, .absent = "0", .applies = predicts, SETTING),
    ROW_INT(struct config, aux_targets, "aux_targets", 1, 16,
            "next tokens that each state predicts in training", .scope = SCOPE_MODEL, .absent = "1",
            .applies = predicts, SETTING),
    ROW_REAL(struct config, aux_weight, "aux_weight", 0, FLT_MAX,
             "weight of the losses of those after the next one", .scope = SCOPE_MODEL,
             .absent = "0.5", .applies = has_targets, SETTING),
    ROW_INT(struct config, enc_layers, "enc_layers", 0, MAX_LAYERS, "layers of the encoder",
            .scope = SCOPE_MODEL, .setting = true, .applies = has_encoder, .absent = "0"),
    ROW_WORD(struct config, recur, "recur", recur_name,
             "rows that a layer remembers: its own (same), or those that enter it",
             .absent = "shifted", .scope = SCOPE_MODEL, .applies = carries, SETTING),
    ROW_FLAG(struct config, feedback.on, "feedback", NULL, .absent = "0", .scope = SCOPE_MODEL),
    ROW_FLAG(struct config, feedback.shared, "share_kv",
             "1: all layers have the same keys and values", .scope = SCOPE_MODEL, .setting = true,
             .applies = has_feedback, .absent = "0"),
    ROW_INT(struct config, slots.n, "slots", 0, 1 << 12, "rows that stand for all earlier segments",
            .scope = SCOPE_MODEL, .setting = true, .applies = has_slots, .absent = "0"),
    ROW_WORD(struct config, slots.write, "slot_write", slot_write_name,
             "what writes slots: attention to a segment, or its mean, a slot each",
             .absent = "attend", .scope = SCOPE_MODEL, .applies = has_slots, .if_other = true,
             SETTING),
    ROW_REAL(struct config, slots.temp, "slot_temp", 0, FLT_MAX,
             "temperature of reading and writing slots", .absent = "1", .scope = SCOPE_MODEL,
             .applies = slots_attend, SETTING),
    ROW_FLAG(struct config, slots.bptt, "bptt", "1: gradients reach what earlier segments wrote",
             .scope = SCOPE_MODEL, .setting = true, .applies = has_slots, .absent = "0"),
    ROW_INT(struct config, slots.replay, "replay", 0, 64,
            "earlier segments that are run again for it", .scope = SCOPE_MODEL, .setting = true,
            .applies = has_slots, .absent = "16"),
    ROW_WORD(struct config, exit, "exit", exit_name, "when a position stops before the last layer",
             .absent = "none", .scope = SCOPE_MODEL, .least = 1, .applies = exits, SETTING),
    ROW_REAL(struct config, exit_power, "exit_power", 0, 1,
             "votes that stop a position grow with the layers to this power", .scope = SCOPE_MODEL,
             .absent = "0", .applies = votes, SETTING),
    ROW_INT(struct config, exit_window, "exit_window", 0, MAX_DISTANCE,
            "positions before one that must be certain, too", .scope = SCOPE_MODEL, .absent = "2",
            .applies = has_exit_window, SETTING),
    ROW_WORD(struct config, cond, "cond", cond_name, "how gates skip sub-layers", .absent = "none",
             .scope = SCOPE_LAYER, .least = 1, .applies = has_budget, SETTING),
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
    ROW_REAL(struct config, head_eps, "head_eps", 0, FLT_MAX,
             "what norms of heads add to the variance", .absent = "1e-5", .applies = norms_heads,
             SETTING),
    ROW_REAL(struct config, soft_cap, "soft_cap", 0, FLT_MAX, "most that a score is, 0 = any",
             .absent = "0", SETTING),
    ROW_REAL(struct config, logit_cap, "logit_cap", 0, FLT_MAX, "most that a logit is, 0 = any",
             .absent = "0", .scope = SCOPE_MODEL, SETTING),
    ROW_INT(struct config, steps, "steps", 0, MAX_LAYERS, NULL, .absent = "0",
            .scope = SCOPE_MODEL),
    ROW_INT(struct config, step_base, "step_base", 0, 1 << 20, "number of the first step",
            .scope = SCOPE_MODEL, .applies = has_steps, SETTING),
    ROW_REAL(struct config, ponder_tau, "ponder_tau", 0, FLT_MAX, "weight of the steps in the loss",
             .scope = SCOPE_MODEL, .applies = ponders, SETTING),
    ROW_REAL(struct config, halt_bias, "halt_bias", -FLT_MAX, FLT_MAX,
             "bias of halting weights before training", .scope = SCOPE_MODEL, .absent = "1",
             .applies = ponders, SETTING),
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

static bool is_of(const struct choice *row, const struct choice *rows, size_t n)
{
    const uintptr_t at = (uintptr_t)row, first = (uintptr_t)rows;

    return at >= first && at < first + n * sizeof(*rows);
}

bool is_model_key(const struct choice *row)
{
    return is_of(row, sizes, MODEL_SIZES) || is_of(row, others, ARRAY_LEN(others)) ||
           is_of(row, model_choices, MODEL_CHOICE_COUNT);
}

const struct extra_key extra_keys[] = {
    {"talking", &extra_talking},       {"span_ramp", &extra_span},
    {"persistent", &extra_persistent}, {"sink", &extra_sink},
    {"sigmoid", &extra_sigmoid},       {"stickbreaking", &extra_stickbreaking},
    {"softpick", &extra_softpick},     {0},
};
