/* SPDX-License-Identifier: MIT
 *
 * granitemoehybrid (Granite 4, 2025): layers of mamba2, and of attention, mostly without positions;
 * experts beside a network that serves every token, or that network alone; granite's factors. */
#include "llama.h"

#define MIXER(name, in)                                                                            \
    .ours = "layers.*.attn." name, .published = "layers.*.mamba." in, .of = RECURS
#define EXPERT(name, in, nth, of)                                                                  \
    {                                                                                              \
        .ours = "layers.*.ff.e." name, .published = "layers.*.block_sparse_moe." in, .part = nth,  \
        .parts = of, .bare_rest = true                                                             \
    }

#define SHARED(name, in, nth, of)                                                                  \
    {                                                                                              \
        .ours = "layers.*.ff." name, .published = "layers.*.shared_mlp." in, .part = nth,          \
        .parts = of                                                                                \
    }

/* clang-format off */
static const struct tensor_row tensors[] = {
    {MIXER("in", "in_proj")},
    {MIXER("conv", "conv1d"), .taps = true},
    {MIXER("dt_bias", "dt_bias")},
    {MIXER("A_log", "A_log")},
    {MIXER("D", "D")},
    {MIXER("norm", "norm")},
    {MIXER("o", "out_proj")},
    {.ours = "layers.*.ff.router", .published = "layers.*.block_sparse_moe.router.layer"},
    EXPERT("g", "input_linear.weight", 0, 2),
    EXPERT("1", "input_linear.weight", 1, 2),
    EXPERT("2", "output_linear.weight", 0, 1),
    SHARED("shared.g", "input_linear", 0, 2),
    SHARED("shared.1", "input_linear", 1, 2),
    SHARED("shared.2", "output_linear", 0, 1),
    SHARED("g", "input_linear", 0, 2), /* without experts */
    SHARED("1", "input_linear", 1, 2),
    SHARED("2", "output_linear", 0, 1),
    LLAMA_REST,
    {0},
};
/* clang-format on */

static const struct key_row keys[] = {
    LLAMA_KEYS_BUT_INNER(1e-6, 0),
    {"rms_norm_eps", "head_eps", KEY_REAL, 1e-6, 0, 1},
    {"attention_bias", "attn_bias", KEY_FLAG, 0, 0, 1},
    {"mamba_n_groups", "groups", KEY_WHOLE, 1, 1, MAX_WIDTH},
    {"mamba_n_groups", "norm_groups", KEY_WHOLE, 1, 1, MAX_WIDTH},
    {"mamba_d_conv", "conv_width", KEY_WHOLE, 4, 1, 256},
    {0},
};
USUAL_SIZES(4096, 11008, 32, 32, 32000);

/* layer_types by its older name and words; absent, no layer attends. */
static void put_types(struct config_json *j)
{
    const json_t *const said = config_json_at(j, "layers_block_type")
                                   ? config_json_at(j, "layers_block_type")
                                   : config_json_at(j, "layer_types");
    const int layers = config_json_whole(j, "num_hidden_layers", REQUIRED, 1, MAX_LAYERS);
    json_t *const types = json_array();
    const size_t n = said ? json_array_size(said) : (size_t)layers;

    for (size_t l = 0; l < n; l++) {
        const char *word = said ? json_string_value(json_array_get(said, l)) : "mamba";
        word = word && strcmp(word, "attention") == 0 ? "full_attention" : word;
        word = word && strcmp(word, "mamba") == 0 ? "linear_attention" : word;
        json_array_append_new(types, json_string(word ? word : ""));
    }
    json_object_set_new(j->root, "layer_types", types);
    import_put_stack(j, "mamba2", "linear_attention", 1);
}

static void put_mixers(struct config_json *j)
{
    const int width = config_json_whole(j, "hidden_size", REQUIRED, 1, MAX_WIDTH);
    const int heads = config_json_whole(j, "mamba_n_heads", 128, 1, MAX_WIDTH);
    const int state = config_json_whole(j, "mamba_d_state", 256, 1, MAX_WIDTH);
    const int inner = width * config_json_whole(j, "mamba_expand", 2, 1, 1 << 10);
    const bool fits =
        json_is_string(config_json_at(j, "mamba_d_head")) || /* auto */
        config_json_whole(j, "mamba_d_head", inner / heads, 1, MAX_WIDTH) == (double)inner / heads;

    if (inner % heads || !fits)
        import_refuse(j, "mamba_n_heads %d of %d columns, mamba_d_head  -> give a complete config",
                      heads, inner);
    import_need_word(j, "hidden_act", "silu"); /* it stands behind convolutions, too */
    import_need_word(j, "normalization_function", "rmsnorm");
    import_need_flag(j, "mamba_conv_bias", true);
    import_need_flag(j, "mamba_proj_bias", false);
    import_refuse_step_limits(j);
    SKIP(j, "mamba_chunk_size");
    config_json_put(j, "layer_dims", "%d/%d/%d/1", heads, state, inner / heads);
    put_types(j);
}

static void more(struct config_json *j)
{
    static const struct experts experts = {"num_local_experts", "num_experts_per_tok", 8, 2,
                                           .norms = true};
    const char *const places = json_string_value(config_json_at(j, "position_embedding_type"));
    const int shared = config_json_whole(j, "shared_intermediate_size", 1024, 1, 4 * MAX_WIDTH);
    const int inner = config_json_whole(j, "intermediate_size", REQUIRED, 1, 4 * MAX_WIDTH);
    const bool dense = config_json_whole(j, "num_local_experts", 8, 0, MAX_WIDTH) == 0;

    import_put_rotary(j, &llama_rotary, import_put_heads(j, "mamba2-hybrid", 0, 0));
    if (!places || strcmp(places, "rope") != 0)
        config_json_put(j, "layer_rope_base", "0");
    put_mixers(j);
    import_put_factors(j);
    SAY(j, {"mixer", "mamba2"}, {"norm_whole", "1"}, {"out_gate", "none"}, {"norm", "pre"},
        {"ff_bias", "0"});
    config_json_put(j, "d_inner", "%d", dense ? shared : inner);
    if (dense) {
        import_put_ffn(j, "hidden_act", "silu", llama_acts);
        SKIP(j, "num_experts_per_tok", "router_aux_loss_coef", "output_router_logits");
    } else {
        import_put_experts(j, &experts);
        config_json_put(j, "moe_shared", "%d", shared);
    }
}

LLAMA_TYPE(granitemoehybrid, .usual_context = 2048, .usual = usual_sizes, ROWS_OF_FILE);
