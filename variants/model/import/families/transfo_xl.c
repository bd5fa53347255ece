/* SPDX-License-Identifier: MIT
 *
 * transfo-xl: Dai et al. 2019, "Transformer-XL", arXiv:1901.02860, as converted from TensorFlow, or
 * with the names of the authors' PyTorch program. These have no prefix, one pair of biases for all
 * layers, memories that begin empty, and the rows of clusters from the last to the first. */
#include "variants/model/import/model_type.h"

static const struct tensor_row tensors[] = {
    {.ours = "embed.*", .published = "word_emb.emb_layers.*"},
    {.ours = "embed_proj.*", .published = "word_emb.emb_projs.*"},
    {.ours = "layers.*.attn.q", .published = "layers.*.dec_attn.qkv_net", .part = 0, .parts = 3},
    {.ours = "layers.*.attn.k", .published = "layers.*.dec_attn.qkv_net", .part = 1, .parts = 3},
    {.ours = "layers.*.attn.v", .published = "layers.*.dec_attn.qkv_net", .part = 2, .parts = 3},
    {.ours = "layers.*.attn.o", .published = "layers.*.dec_attn.o_net"},
    {.ours = "layers.*.attn.r", .published = "layers.*.dec_attn.r_net"},
    {.ours = "layers.*.attn.bias_u",
     .published = "layers.*.dec_attn.r_w_bias",
     .tie = TIE_LAYERS,
     .with = "r_w_bias"},
    {.ours = "layers.*.attn.bias_v",
     .published = "layers.*.dec_attn.r_r_bias",
     .tie = TIE_LAYERS,
     .with = "r_r_bias"},
    {.ours = "bias_u", .published = "r_w_bias"},
    {.ours = "bias_v", .published = "r_r_bias"},
    {.ours = "layers.*.ln1", .published = "layers.*.dec_attn.layer_norm"},
    {.ours = "layers.*.ln2", .published = "layers.*.pos_ff.layer_norm"},
    {.ours = "layers.*.ff.1", .published = "layers.*.pos_ff.CoreNet.0"},
    {.ours = "layers.*.ff.2", .published = "layers.*.pos_ff.CoreNet.3"},
    {.ours = "out.*",
     .published = "crit.out_layers.*",
     .bare = true,
     .tie = TIE_WORDS,
     .with = "word_emb.emb_layers.*"},
    {.ours = "out_proj.*",
     .published = "crit.out_projs.*",
     .bare = true,
     .tie = TIE_MAP,
     .with = "word_emb.emb_projs.*"},
    {.ours = "out.cluster.weight",
     .published = "crit.cluster_weight",
     .bare = true,
     .backwards = true},
    {.ours = "out.cluster.bias", .published = "crit.cluster_bias", .bare = true, .backwards = true},
    {0},
};

static const struct alias aliases[] = {
    {"d_model", "hidden_size"},
    {"n_head", "num_attention_heads"},
    {"n_layer", "num_hidden_layers"},
    {"vocab_size", "n_token"},
    {"tie_word_embeddings", "tie_weight"},
    {0},
};

static const struct key_row keys[] = {
    {"d_model", "d_model", KEY_WHOLE, 1024, 1, MAX_WIDTH},
    {"n_head", "n_head", KEY_WHOLE, 16, 1, MAX_WIDTH},
    {"d_head", "d_head", KEY_WHOLE, 64, 1, MAX_WIDTH},
    {"d_inner", "d_inner", KEY_WHOLE, 4096, 1, 4 * MAX_WIDTH},
    {"n_layer", "n_layer", KEY_WHOLE, 18, 1, MAX_LAYERS},
    {"vocab_size", "vocab", KEY_WHOLE, 267735, 1, MAX_WIDTH},
    {"mem_len", "mem", KEY_WHOLE, 1600, 0, 1 << 24},
    {"same_length", "same_length", KEY_FLAG, 1, 0, 1},
    {"layer_norm_epsilon", "ln_eps", KEY_REAL, 1e-5, 0, 1},
    {0},
};

/* ---- clusters ----------------------------------------------------------------------------- */

/* Words where clusters begin, as they stand in config.json. */
static int read_cutoffs(struct config_json *j, int cut[MAX_CLUSTERS])
{
    static const int usual[] = {20000, 40000, 200000};
    const json_t *const list = config_json_at(j, "cutoffs"), *value;
    size_t i;
    int n = 0;

    if (!list)
        for (size_t k = 0; k < ARRAY_LEN(usual); k++)
            cut[n++] = usual[k];
    if (list && (!json_is_array(list) || json_array_size(list) >= MAX_CLUSTERS))
        config_json_refuse(
            j, "cutoffs is not a list of up to %d words  -> write for example 20000,40000,200000",
            MAX_CLUSTERS - 1);
    json_array_foreach(list, i, value)
    {
        const json_int_t x = json_integer_value(value);
        const int before = n ? cut[n - 1] : 0;
        if (j->st != OK)
            break;
        if (!json_is_integer(value) || x <= before || x > MAX_WIDTH)
            import_refuse(
                j, "cutoffs %d,%lld: not increasing  -> write for example 20000,40000,200000",
                before, (long long)x);
        cut[n++] = (int)x;
    }
    return n;
}

/* Which clusters' output has the map of the embedding, of n. */
static void read_ties(struct config_json *j, bool tie[MAX_CLUSTERS], int n)
{
    const json_t *const list = config_json_at(j, "tie_projs");
    const bool others = config_json_flag(j, "proj_share_all_but_first", true);

    for (int i = 0; i < n; i++)
        tie[i] = i > 0 && others;
    if (list && (!json_is_array(list) || json_array_size(list) != (size_t)n))
        import_refuse(j, "tie_projs of %zu for %d clusters  -> one for each", json_array_size(list),
                      n);
    for (int i = 0; list && j->st == OK && i < n; i++) {
        const json_t *const one = json_array_get(list, (size_t)i);
        if (!json_is_boolean(one))
            import_refuse(j, "tie_projs of other values  -> use true or false");
        tie[i] = json_is_true(one);
    }
}

static void put_numbers(struct config_json *j, const char *key, const int *at, int count)
{
    char text[MAX_CLUSTERS * 9] = "";

    for (int i = 0; i < count; i++)
        text_item(text, sizeof(text), "%d", at[i]);
    if (count > 0)
        config_json_put(j, key, "%s", text);
}

static void put_clusters(struct config_json *j)
{
    const int V = config_json_whole(j, "vocab_size", 267735, 1, MAX_WIDTH);
    const int E = config_json_whole(j, "d_embed", 1024, 1, MAX_WIDTH);
    const int div = config_json_whole(j, "div_val", 4, 1, MAX_WIDTH);
    int cut[MAX_CLUSTERS], ties[MAX_CLUSTERS], n = read_cutoffs(j, cut), width = E;
    bool tie[MAX_CLUSTERS];

    if (j->st != OK)
        return;
    read_ties(j, tie, n + 1);
    while (n > 0 && cut[n - 1] >= V)
        n--;
    for (int i = 1; i <= n; i++)
        if ((width /= div) < 1)
            import_refuse(
                j, "div_val %d: cluster %d of d_embed %d has no width  -> not a published model",
                div, i, E);
    for (int i = 0; i <= n; i++)
        ties[i] = tie[i];
    put_numbers(j, "cutoffs", cut, n);
    put_numbers(j, "tie_projs", ties, n + 1);
    config_json_put(j, "d_embed", "%d", E);
    config_json_put(j, "div_val", "%d", div);
}

/* ---- all ---------------------------------------------------------------------------------- */

static void refuse_others(struct config_json *j)
{
    const int kind = config_json_whole(j, "attn_type", 0, -MAX_WIDTH, MAX_WIDTH);
    const int sampled = config_json_whole(j, "sample_softmax", -1, -MAX_WIDTH, MAX_WIDTH);

    if (kind != 0)
        import_refuse(j, "attn_type %d: not supported  -> use 0", kind);
    import_need_flag(j, "adaptive", true);
    if (config_json_whole(j, "ext_len", 0, 0, MAX_WIDTH) != 0)
        import_refuse(j, "an ext_len: not supported  -> use 0");
    if (sampled > 0)
        import_refuse(j, "sample_softmax %d: not supported  -> -1", sampled);
}

static void more(struct config_json *j)
{
    const int D = config_json_whole(j, "d_model", 1024, 1, MAX_WIDTH);
    const int dh = config_json_whole(j, "d_head", 64, 1, MAX_WIDTH);
    const int clamp = config_json_whole(j, "clamp_len", 1000, -MAX_DISTANCE, MAX_DISTANCE);

    refuse_others(j);
    SAY(j, {"variant", "xl"}, {"scheme", "xl"});
    config_json_put(j, "emb_scale", "%.9g", sqrt(D));
    config_json_put(j, "scale", "%.9g", 1 / sqrt(dh));
    SAY(j, {"out_bias", "0"}, {"final_ln", "0"}, {"ffn", "relu"}, {"norm_kind", "layer"});
    config_json_put(j, "norm", "%s", config_json_flag(j, "pre_lnorm", false) ? "pre" : "post");
    config_json_put(j, "clamp_len", "%d", max_int(0, clamp));
    config_json_put(j, "tied", "%d", config_json_flag(j, "tie_word_embeddings", true));
    config_json_put(j, "mem_start", "%s", j->bare ? "empty" : "zeros");
    if (config_json_flag(j, "untie_r", true) && !j->bare)
        config_json_put_tensor(j, "layers.0.attn.bias_u");
    put_clusters(j);
}

const struct model_type model_type_transfo_xl = {
    .name = "transfo-xl",
    .prefix = "transformer.",
    .embedding = "word_emb.emb_layers.0.weight",
    .layers = "n_layer",
    .context = "tgt_len",
    .usual_context = 128,
    .endless = true,
    .aliases = aliases,
    ROWS_OF_FILE,
};
