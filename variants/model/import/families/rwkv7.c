/* SPDX-License-Identifier: MIT
 *
 * rwkv7 of flash-linear-attention (Peng et al. 2025, arXiv:2503.14456). Its four low-rank maps have
 * ranks of their own, ours have one: the largest, and the others' further rows and columns are 0,
 * which adds nothing. The norm behind its embedding is computed once, for each word. */
#include "fla.h"
#include "variants/model/import/shards.h"

/* x_r, x_w, ..: a row of ours each. */
static int64_t shift_before(const struct config *c, int part) { return part; }

#define SHIFT(nth, in)                                                                             \
    {                                                                                              \
        ATTENTION("maa", in), .layout = LAYOUT_JOIN, .part = nth, .parts = 6,                      \
                              .before = shift_before, .taps = true                                 \
    }

#define LOW_RANK(a, b, in)                                                                         \
    {ATTENTION(a, in ".lora.0"), .pads = PAD_ROWS},                                                \
    {                                                                                              \
        ATTENTION(b, in ".lora.2"), .pads = PAD_COLUMNS                                            \
    }

static const struct tensor_row tensors[] = {
    {.ours = "embed", .published = "embeddings", .normed = "layers.0.pre_norm"},
    {.ours = "layers.*.ln1", .published = "layers.*.attn_norm"},
    {.ours = "layers.*.ln2", .published = "layers.*.ffn_norm"},
    SHIFT(0, "x_r"),
    SHIFT(1, "x_w"),
    SHIFT(2, "x_k"),
    SHIFT(3, "x_v"),
    SHIFT(4, "x_a"),
    SHIFT(5, "x_g"),
    {ATTENTION("q", "r_proj")},
    {ATTENTION("k", "k_proj")},
    {ATTENTION("v", "v_proj")},
    {ATTENTION("o", "o_proj")},
    LOW_RANK("decay_a", "decay_b", "w_lora"),
    LOW_RANK("a_a", "a_b", "a_lora"),
    LOW_RANK("v_a", "v_b", "v_lora"),
    LOW_RANK("g_a", "g_b", "g_lora"),
    {ATTENTION("decay", "w_lora.lora.2.bias")},
    {ATTENTION("a0", "a_lora.lora.2.bias")},
    {ATTENTION("v0", "v_lora.lora.2.bias")},
    {ATTENTION("k_k", "k_k")},
    {ATTENTION("k_a", "k_a")},
    {ATTENTION("r_k", "r_k")},
    {ATTENTION("norm", "g_norm")},
    {.ours = "layers.*.ff.maa", .published = "layers.*.ffn.x_k", .flat = true},
    {.ours = "layers.*.ff.1", .published = "layers.*.ffn.key"},
    {.ours = "layers.*.ff.2", .published = "layers.*.ffn.value"},
    {.ours = "final_ln", .published = "norm"},
    {.ours = "out", .published = "lm_head", .bare = true, .tie = TIE_WORDS, .with = "embeddings"},
    {0},
};

static const struct key_row keys[] = {
    {"hidden_size", "d_model", KEY_WHOLE, 2048, 1, MAX_WIDTH},
    {"num_hidden_layers", "n_layer", KEY_WHOLE, 24, 1, MAX_LAYERS},
    {"vocab_size", "vocab", KEY_WHOLE, 32000, 1, MAX_WIDTH},
    {"norm_eps", "ln_eps", KEY_REAL, 1e-5, 0, 1},
    {"tie_word_embeddings", "tied", KEY_FLAG, 0, 0, 1},
    {0},
};

/* The size of that dimension; 0 where there is no such matrix. */
static int size_of(struct config_json *j, const char *tensor, int layer, int dimension,
                   char name[TENSOR_NAME])
{
    snprintf(name, TENSOR_NAME, "%slayers.%d.attn.%s.lora.%d.weight", j->bare ? "" : "model.",
             layer, tensor, dimension ? 2 : 0);
    const struct shard_tensor *const t = shards_find(j->shards, name);
    const bool fits = t && t->t->rank == 2 && t->t->shape[dimension] <= MAX_WIDTH;

    return fits ? (int)t->t->shape[dimension] : 0;
}

/* Versions have other ranks where no key says them: the tensors say them, all the same. The first
 * layer has no v_lora. */
static int rank_of(struct config_json *j, const char *key, const char *tensor)
{
    const int layers = config_json_whole(j, "num_hidden_layers", 24, 1, MAX_LAYERS);
    int rank = fla_width(j, key, 0);

    for (int k = 0; k < 2 * layers; k++) {
        char name[TENSOR_NAME];
        const int size = size_of(j, tensor, k / 2, k % 2, name);
        rank = rank ? rank : size;
        if (size && size != rank)
            import_refuse(j, "%s %d, \"%s\" has %d %s  -> files of one model", key, rank, name,
                          size, k % 2 ? "columns" : "rows");
    }
    return rank;
}

static void put_ranks(struct config_json *j)
{
    static const char *const ranks[][2] = {{"decay_low_rank_dim", "w_lora"},
                                           {"gate_low_rank_dim", "g_lora"},
                                           {"a_low_rank_dim", "a_lora"},
                                           {"v_low_rank_dim", "v_lora"}};
    int most = 1;

    for (size_t i = 0; i < ARRAY_LEN(ranks); i++)
        most = max_int(most, rank_of(j, ranks[i][0], ranks[i][1]));
    config_json_put(j, "lora", "%d", most);
}

/* One number, or one for each layer. */
static void check_values(struct config_json *j, int width)
{
    const json_t *const said = config_json_at(j, "value_dim");
    const size_t n = json_is_array(said) ? json_array_size(said) : said ? 1 : 0;

    for (size_t i = 0; i < n; i++) {
        const json_t *const one = json_is_array(said) ? json_array_get(said, i) : said;
        if (json_integer_value(one) != width)
            import_refuse(
                j,
                "value_dim that is not hidden_size %d: not supported  -> use a model of one width",
                width);
    }
}

static void put_heads(struct config_json *j, int width)
{
    enum { HEAD = 64 };
    const int heads = fla_width(j, "num_heads", 0);
    const bool by_heads = !config_json_at(j, "head_dim") && heads > 0;
    const int head = by_heads ? width / heads : fla_width(j, "head_dim", HEAD);

    if (head < 1 || width % head || (heads > 0 && heads != width / head))
        import_refuse(j, "num_heads %d of head_dim %d in hidden_size %d  -> give a complete config",
                      heads, head, width);
    if (j->st != OK)
        return;
    config_json_put(j, "n_head", "%d", width / head);
    config_json_put(j, "kv_heads", "%d", width / head);
    config_json_put(j, "d_head", "%d", head);
    config_json_put(j, "head_eps", "%.9g", head * config_json_real(j, "norm_eps", 1e-5, 0, 1));
}

static void more(struct config_json *j)
{
    const int width = config_json_whole(j, "hidden_size", 2048, 1, MAX_WIDTH);

    import_need_word(j, "hidden_act", "sqrelu");
    import_need_flag(j, "norm_bias", true);
    import_need_flag(j, "elementwise_affine", true);
    j->norms_words = config_json_flag(j, "norm_first", true);
    if (j->norms_words && config_json_flag(j, "tie_word_embeddings", false))
        import_refuse(j,
                      "norm_first, tie_word_embeddings: not supported  -> use a model with a table "
                      "of its own for the output");
    fla_check_idle(j);
    check_values(j, width);
    import_put_common(j, "rwkv7");
    config_json_put(j, "mixer", "rwkv7");
    put_heads(j, width);
    fla_put_inner(j, width, false);
    put_ranks(j);
    config_json_put_tensor(j, "layers.0.attn.norm.bias");
    config_json_put(j, "head_norm", "layer");
    config_json_put(j, "norm_weights", "%d", width);
    SAY(j, {"gate_tau", "1"}, {"beta_max", "1"}, {"scale", "1"}, {"norm", "pre"},
        {"norm_kind", "layer"}, {"ffn", "rwkv7"}, {"ff_bias", "0"});
}

#define FAMILY FLA_FAMILY, ROWS_OF_FILE

const struct model_type model_type_rwkv7 = {.name = "rwkv7", FAMILY};
/* Its older name. */
const struct model_type model_type_rwkv7_fla = {.name = "rwkv7_fla", FAMILY};
