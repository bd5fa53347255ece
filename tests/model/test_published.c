/* SPDX-License-Identifier: MIT
 *
 * Published models: what is refused, with which words, and before which numbers; containers that
 * are damaged or do not belong together. That the numbers are right is tests/check's. */
#include "tests/support/published_folder.h"
#include "variants/model/lm.h"
#include "variants/model/weights.h"

#include <math.h>
#include <sys/stat.h>

TestSuite(published, .init = folder_make, .fini = folder_remove, .timeout = 60);

static enum status open_it(struct published *p, struct err *e)
{
    *e = (struct err){""};
    return published_open(p, published_path(""), e);
}

static void expect_refused(const char *what, const char *says)
{
    struct published p;
    struct err e;

    cr_expect_eq(open_it(&p, &e), E_IO, "%s is accepted", what);
    cr_expect(strstr(e.msg, says), "%s: \"%s\" does not say %s", what, e.msg, says);
    cr_expect(strstr(e.msg, "  -> ") && !strchr(e.msg, '\n'), "%s: %s", what, e.msg);
}

static void expect_accepted(const char *what)
{
    struct published p;
    struct err e;

    cr_expect_eq(open_it(&p, &e), OK, "%s: %s", what, e.msg);
    published_close(&p);
}

/* ---- configs ------------------------------------------------------------------------------ */

static bool is_there(const char *base)
{
    char path[FILE_PATH];
    struct stat info;

    cr_assert_eq(file_join(path, PUBLISHED, base, NULL), OK);
    return stat(path, &info) == 0;
}

static void change_config(const json_t *c)
{
    json_t *const config = published_json("config.json");
    const json_t *drop;
    size_t i;

    json_object_update(config, json_object_get(c, "set"));
    json_array_foreach(json_object_get(c, "drop"), i, drop)
        json_object_del(config, json_string_value(drop));
    published_put_json("config.json", config);
}

static void try_case(const json_t *c)
{
    const char *const base = json_string_value(json_object_get(c, "base"));
    char *const what = json_dumps(c, JSON_COMPACT);
    const json_t *says;
    size_t i;

    published_copy(base);
    change_config(c);
    if (json_is_true(json_object_get(c, "works")))
        expect_accepted(what);
    json_array_foreach(json_object_get(c, "says"), i, says)
        expect_refused(what, json_string_value(says));
    free(what);
}

/* errors.json: changes of a config, and what each error must say, or that it works all the same. */
Test(published, changed_configs)
{
    enum { AT_LEAST = 40 };
    json_t *const cases = json_load_file(PUBLISHED "/errors.json", 0, NULL);
    const json_t *c;
    size_t i;
    int n = 0;

    cr_assert_not_null(cases);
    json_array_foreach(cases, i, c)
    {
        if (!is_there(json_string_value(json_object_get(c, "base"))))
            continue;
        try_case(c);
        n++;
    }
    json_decref(cases);
    cr_expect_geq(n, AT_LEAST, "%d cases", n);
}

static void expect_change_refused(const char *base, const char *key, const char *value,
                                  const char *says)
{
    json_t *const v = value ? json_loads(value, JSON_DECODE_ANY, NULL) : NULL;

    cr_assert(v || !value, "%s", value);
    published_copy(base);
    published_set(key, v);
    expect_refused(key, says);
}

/* What would change the arithmetic of a family that does not have it. */
Test(published, keys_that_change_the_arithmetic)
{
    static const char *const llama = "llama_gqa_bf16";

    expect_change_refused(llama, "num_experts", "4", "num_experts");
    expect_change_refused(llama, "attn_logit_softcapping", "50.0", "attn_logit_softcapping");
    expect_change_refused(llama, "final_logit_softcapping", "30.0", "final_logit_softcapping");
    expect_change_refused(llama, "logits_scaling", "8", "logits_scaling");
    expect_change_refused(llama, "embedding_multiplier", "12", "embedding_multiplier");
    expect_change_refused(llama, "clip_qkv", "8", "clip_qkv");
    expect_change_refused(llama, "qk_layernorm", "true", "qk_layernorm");
    expect_change_refused(llama, "alibi", "true", "alibi");
    expect_change_refused(llama, "is_encoder_decoder", "true", "is_encoder_decoder");
    expect_change_refused(llama, "cross_attention_layers", "[1]", "cross_attention_layers");
    expect_change_refused(llama, "adapter_len", "10", "adapter_len");
    expect_change_refused(llama, "rope_parameters", "{\"full_attention\":{\"rope_theta\":10000}}",
                          "full_attention");
    expect_change_refused(llama, "rope_scaling", "{\"factor\":2}", "rope_type");
    expect_change_refused(llama, "rope_scaling", "{\"type\":\"linear\",\"factor\":0.5}", "factor");
    expect_change_refused(llama, "rope_scaling", "7", "rope_scaling");
    expect_change_refused(llama, "architectures", "[\"LlamaForSequenceClassification\"]",
                          "LlamaForSequenceClassification");
    expect_change_refused("qwen2_bias", "num_key_value_heads", NULL, "num_key_value_heads");
    expect_change_refused("mistral_window", "layer_types",
                          "[\"full_attention\",\"sliding_attention\"]", "layer_types");
    expect_change_refused("qwen3_qknorm", "layer_types",
                          "[\"full_attention\",\"sliding_attention\"]", "layer_types");
    expect_change_refused("llama3_scaling", "rope_scaling",
                          "{\"rope_type\":\"llama3\",\"factor\":8,\"low_freq_factor\":4,"
                          "\"high_freq_factor\":1,\"original_max_position_embeddings\":64}",
                          "high_freq_factor");
}

/* Neutral values of the same keys say nothing. */
Test(published, neutral_values)
{
    published_copy("llama_gqa_bf16");
    published_set("num_experts", json_integer(0));
    published_set("quantization_config", json_null());
    published_set("logits_scaling", json_real(1));
    published_set("is_encoder_decoder", json_false());
    published_set("rope_scaling", json_pack("{s:s}", "rope_type", "default"));
    published_set("layer_types", json_pack("[s,s]", "full_attention", "full_attention"));
    expect_accepted("neutral");
}

/* The newer spelling of rotary settings counts before the older one. */
Test(published, both_spellings_of_rotary_settings)
{
    struct published p;
    struct err e;

    published_copy("llama3_scaling");
    published_set("rope_theta", json_real(1234));
    published_set("rope_scaling", NULL);
    published_set("rope_parameters", json_pack("{s:f,s:s,s:f}", "rope_theta", 5000.0, "rope_type",
                                               "linear", "factor", 2.0));
    cr_assert_eq(open_it(&p, &e), OK, "%s", e.msg);
    cr_expect(p.config.rope_scaling == ROPE_LINEAR && p.config.rope_factor == 2);
    published_close(&p);
    published_copy("neox_parallel_f16");
    published_set("rotary_pct", json_real(0.2)); /* of no importance beside the newer one */
    published_set("rope_parameters",
                  json_pack("{s:f,s:f}", "rope_theta", 10000.0, "partial_rotary_factor", 0.5));
    expect_accepted("both");
}

/* The publishers' defaults, where config.json is silent. */
Test(published, absent_keys)
{
    struct published p;
    struct err e;

    published_copy("llama_gqa_bf16");
    published_set("rms_norm_eps", NULL);
    published_set("max_position_embeddings", NULL);
    published_set("hidden_act", NULL);
    published_set("tie_word_embeddings", NULL);
    cr_assert_eq(open_it(&p, &e), OK, "%s", e.msg);
    cr_expect_float_eq((double)p.config.ln_eps, 1e-6, 1e-12);
    cr_expect(p.context == 2048 && !p.config.tied && p.config.kv_heads == 2);
    cr_expect_str_eq(p.source, "model");
    published_close(&p);
    published_copy("mistral_window");
    published_set("sliding_window", NULL);
    cr_assert_eq(open_it(&p, &e), OK, "%s", e.msg);
    cr_expect_eq(p.config.window, 4096);
    published_close(&p);
    published_set("sliding_window", json_null());
    cr_assert_eq(open_it(&p, &e), OK, "%s", e.msg);
    cr_expect_eq(p.config.window, 0);
    published_close(&p);
}

/* The authors' files have other names, and with them a memory that begins empty. */
Test(published, both_programs_of_transfo_xl)
{
    struct published p;
    struct err e;

    published_copy("txl_div4");
    cr_assert_eq(open_it(&p, &e), OK, "%s", e.msg);
    cr_expect(p.config.mem_start == MEM_START_ZEROS && p.config.uv_per_layer);
    published_close(&p);
    published_copy("txl_original_keys");
    published_set("untie_r", json_true()); /* of no importance there */
    cr_assert_eq(open_it(&p, &e), OK, "%s", e.msg);
    cr_expect(p.config.mem_start == MEM_START_EMPTY && !p.config.uv_per_layer);
    published_close(&p);
}

/* Clusters that begin behind the last word are none. */
Test(published, clusters_of_words)
{
    struct published p;
    struct err e;

    published_copy("txl_div1");
    published_set("cutoffs", json_pack("[i,i,i]", 16, 30, 64));
    cr_assert_eq(open_it(&p, &e), OK, "%s", e.msg);
    cr_expect_eq(p.config.adaptive.n, 2);
    published_close(&p);
    published_set("cutoffs", json_pack("[i,i]", 16, 16));
    expect_refused("twice the same", "cutoffs");
    published_set("cutoffs", json_pack("[f]", 16.5));
    expect_refused("no whole number", "cutoffs");
    published_set("cutoffs", json_integer(16));
    expect_refused("no list", "cutoffs");
}

/* What names itself may not obey a terminal. */
Test(published, names_of_models)
{
    struct published p;
    struct err e;

    published_copy("llama_gqa_bf16");
    published_set("_name_or_path", json_string("a\x1b[2Jb"));
    cr_assert_eq(open_it(&p, &e), OK, "%s", e.msg);
    cr_expect(*p.source == 'a' && !strchr(p.source, '\x1b'), "%s", p.source);
    published_close(&p);
    published_set("model_type", json_string("x\x1b[2J"));
    expect_refused("model_type", "model_type");
    cr_expect_eq(open_it(&p, &e), E_IO);
    cr_expect(!strchr(e.msg, '\x1b'), "%s", e.msg);
}

/* ---- files -------------------------------------------------------------------------------- */

Test(published, configs_that_are_none)
{
    published_copy("llama_gqa_bf16");
    published_write("config.json", "[1]", 3);
    expect_refused("a list", "config.json");
    published_write("config.json", "{", 1);
    expect_refused("no JSON", "config.json");
    static const char twice[] = "{\"model_type\":\"llama\",\"model_type\":\"gpt2\"}";
    published_write("config.json", twice, strlen(twice));
    expect_refused("a key twice", "config.json");
    const size_t large = (1 << 20) + 1;
    char *const spaces = malloc(large);
    cr_assert_not_null(spaces);
    memset(spaces, ' ', large);
    published_write("config.json", spaces, large);
    free(spaces);
    expect_refused("a large one", "config.json");
    published_remove("config.json");
    expect_refused("none", "config.json");
}

/* Weights of other formats are named, never opened. */
Test(published, pickles)
{
    published_copy("llama_gqa_bf16");
    published_remove("model.safetensors");
    expect_refused("nothing", "model.safetensors");
    published_write("pytorch_model.bin", "x", 1);
    expect_refused("a pickle", "pytorch_model.bin");
    expect_refused("a pickle", "bench import --help");
}

Test(published, truncated_and_overlapping)
{
    struct bytes b;
    size_t data;

    published_copy("gpt2_plain");
    b = published_read("model.safetensors");
    published_write("model.safetensors", b.data, b.n - 4);
    expect_refused("cut", "model.safetensors");
    published_write("model.safetensors", b.data, 5);
    expect_refused("cut early", "model.safetensors");
    free(b.data);
    published_copy("gpt2_plain");
    json_t *const header = published_header(&b, "model.safetensors", &data);
    json_t *const offsets = json_object_get(json_object_get(header, "ln_f.weight"), "data_offsets");
    const json_int_t by = json_integer_value(json_array_get(offsets, 0)) < 4 ? 4 : -4;
    for (size_t i = 0; i < 2; i++)
        json_array_set_new(offsets, i,
                           json_integer(json_integer_value(json_array_get(offsets, i)) + by));
    published_put_header("model.safetensors", header, &b, data);
    expect_refused("overlapping", "back to back");
}

/* One tensor's entry under another name, or with another type. */
static void change_tensor(const char *name, const char *renamed, const char *retyped)
{
    struct bytes b;
    size_t data;
    json_t *const header = published_header(&b, "model.safetensors", &data);
    json_t *const entry = json_incref(json_object_get(header, name));

    cr_assert_not_null(entry, "%s", name);
    if (retyped)
        json_object_set_new(entry, "dtype", json_string(retyped));
    if (renamed) {
        json_object_del(header, name);
        json_object_set(header, renamed, entry);
    }
    json_decref(entry);
    published_put_header("model.safetensors", header, &b, data);
}

Test(published, tensors_that_are_not_needed)
{
    published_copy("llama_gqa_bf16");
    change_tensor("model.norm.weight", "model.norm.wait", NULL);
    expect_refused("missing", "model.norm.weight");
    published_copy("gpt2_plain"); /* a mask by its name, without its dot a stranger */
    change_tensor("h.0.attn.bias", "h.0.xattn.bias", NULL);
    expect_refused("a stranger", "h.0.xattn.bias");
    published_copy("gpt2_plain");
    change_tensor("h.0.attn.bias", "h.0.rotary_emb.inv_freq", NULL);
    expect_accepted("a buffer");
    published_copy("gpt2_plain");
    change_tensor("h.0.attn.bias", "transformer.ln_f.weight", NULL);
    expect_refused("with a prefix that the others do not have", "transformer.ln_f.weight");
    published_copy("gpt2_plain"); /* tied: the embedding once more */
    change_tensor("h.0.attn.bias", "lm_head.weight", NULL);
    expect_accepted("a tied output");
}

Test(published, types)
{
    published_copy("gpt2_plain");
    change_tensor("ln_f.weight", NULL, "I32");
    expect_refused("whole numbers", "ln_f.weight");
    published_copy("gpt2_plain");
    change_tensor("h.0.attn.bias", NULL, "F8_E4M3");
    expect_accepted("a mask of a type that is not known");
}

static enum status load_it(const struct published *p, struct err *e)
{
    struct arena a = {0};
    struct lm m;

    cr_assert_eq(lm_init(&m, &p->config, e), OK, "%s", e->msg);
    params_place(&m.params, &a);
    cr_assert_eq(arena_place(&a, HUGE_NEVER, NULL, NULL, e), OK, "%s", e->msg);
    params_place(&m.params, &a);
    const enum status st = published_load(p, &m.params, e);
    lm_free(&m);
    arena_release(&a);
    return st;
}

/* Only numbers that are needed have to be finite. */
Test(published, values_that_are_not_finite)
{
    static const char *const names[] = {"ln_f.bias", "h.0.attn.bias"};

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const float bad = INFINITY;
        struct published p;
        struct bytes b;
        struct err e;
        size_t data;
        published_copy("gpt2_plain");
        json_t *const header = published_header(&b, "model.safetensors", &data);
        const json_t *const offsets =
            json_object_get(json_object_get(header, names[i]), "data_offsets");
        memcpy(b.data + data + json_integer_value(json_array_get(offsets, 0)), &bad, sizeof(bad));
        published_put_header("model.safetensors", header, &b, data);
        cr_assert_eq(open_it(&p, &e), OK, "%s", e.msg);
        cr_expect_eq(load_it(&p, &e), i ? OK : E_IO, "%s", names[i]);
        cr_expect(i || strstr(e.msg, "ln_f.bias"), "%s", e.msg);
        published_close(&p);
    }
}

/* ---- several files ------------------------------------------------------------------------ */

static const char index_name[] = "model.safetensors.index.json";

static void change_index(const char *tensor, const char *file)
{
    json_t *const index = published_json(index_name);

    json_object_set_new(json_object_get(index, "weight_map"), tensor, json_string(file));
    published_put_json(index_name, index);
}

Test(published, indices)
{
    static const char *const wrong[] = {"../w.safetensors", "/w.safetensors", ".w.safetensors",
                                        "a\\w.safetensors", "w.bin",          ""};

    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        published_copy("llama_tied_sharded");
        change_index("model.norm.weight", wrong[i]);
        expect_refused(wrong[i], "plain file names");
    }
    published_copy("llama_tied_sharded");
    change_index("nothing.weight", "model-00001-of-00002.safetensors");
    expect_refused("a tensor that is not there", "nothing.weight");
    published_copy("llama_tied_sharded");
    change_index("model.norm.weight", "model-00003-of-00002.safetensors");
    expect_refused("a file that is not there", "model-00003-of-00002");
    published_copy("llama_tied_sharded");
    published_write(index_name, "{}", 2);
    expect_refused("no map", "weight_map");
}

/* The index wins over a single file beside it, and a tensor is in one file only. */
Test(published, several_files)
{
    published_copy("llama_tied_sharded");
    published_write("model.safetensors", "x", 1);
    expect_accepted("a single file beside the index");
    struct bytes b = published_read("model-00002-of-00002.safetensors");
    published_write("other.safetensors", b.data, b.n);
    free(b.data);
    expect_accepted("a file that the index does not name");
    change_index("model.norm.weight", "other.safetensors");
    expect_refused("in two files", "two files");
}

/* A file in the folder stands for it, if it is not one of ours. */
Test(published, which_paths_are_published)
{
    published_copy("llama_gqa_bf16");
    cr_expect(published_is(published_path("")));
    cr_expect(published_is(published_path("model.safetensors")));
    cr_expect(!published_is(published_path("nothing.safetensors")));
    cr_expect(!published_is("tests/golden/lm_xl_post.safetensors"));
    struct published p;
    struct err e;
    cr_expect_eq(published_open(&p, published_path("model.safetensors"), &e), OK, "%s", e.msg);
    published_close(&p);
}
