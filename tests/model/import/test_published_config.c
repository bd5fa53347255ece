/* SPDX-License-Identifier: MIT
 *
 * config.json of published models: what it means, and what is refused, with which words. */
#include "tests/support/kernel/fenced.h"
#include "tests/support/published_folder.h"
#include "variants/parts/parts.h"

TestSuite(published_config, .init = folder_make, .fini = folder_remove, .timeout = 240);

static bool is_there(const char *base)
{
    return access(kept_text(PUBLISHED "/%s", base), F_OK) == 0;
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
    const char *const base = text_at(c, "base");
    char *const what = kept(json_dumps(c, JSON_COMPACT));
    const json_t *says;
    size_t i;

    published_copy(base);
    change_config(c);
    if (json_is_true(json_object_get(c, "works")))
        published_accepted(what);
    json_array_foreach(json_object_get(c, "says"), i, says)
        published_refused(what, json_string_value(says));
}

/* errors.json: changes of a config, and what each error must say, or that it works all the same. */
Test(published_config, changed_configs)
{
    enum { AT_LEAST = 40 };
    json_t *const cases = json_of_file(PUBLISHED "/errors.json");
    const json_t *c;
    size_t i;
    int n = 0;

    json_array_foreach(cases, i, c)
    {
        if (!is_there(text_at(c, "base")))
            continue;
        try_case(c);
        n++;
    }
    cr_expect_geq(n, AT_LEAST, "%d cases", n);
}

#define LLAMA "llama_gqa_bf16"

/* What would change the arithmetic of a family that does not have it. */
Test(published_config, keys_that_change_the_arithmetic)
{
    static const struct patch patches[] = {
        {"lfm2", "{'full_attn_idxs':3}", "full_attn_idxs"},
        {"lfm2", "{'theta':5.0}", "theta"},
        {"lfm2", "{'block_ff_dim':4000000,'block_ffn_dim_multiplier':1000.0}", "d_inner"},
        {"granite_hybrid", "{'mamba_d_head':1048576}", "mamba_d_head"},
        {"granite_hybrid", "{'mamba_expand':1024,'mamba_n_heads':1048576}", "mamba_n_heads"},
        {"cohere2_types", "{'layer_switch':3}", "layer_switch"},
        {LLAMA, "{'num_experts':4}", "num_experts"},
        {LLAMA, "{'attn_logit_softcapping':50.0}", "attn_logit_softcapping"},
        {LLAMA, "{'final_logit_softcapping':30.0}", "final_logit_softcapping"},
        {LLAMA, "{'logits_scaling':8}", "logits_scaling"},
        {LLAMA, "{'embedding_multiplier':12}", "embedding_multiplier"},
        {LLAMA, "{'clip_qkv':8}", "clip_qkv"},
        {LLAMA, "{'qk_layernorm':true}", "qk_layernorm"},
        {LLAMA, "{'alibi':true}", "alibi"},
        {LLAMA, "{'is_encoder_decoder':true}", "is_encoder_decoder"},
        {LLAMA, "{'cross_attention_layers':[1]}", "cross_attention_layers"},
        {LLAMA, "{'adapter_len':10}", "adapter_len"},
        {LLAMA, "{'rope_parameters':{'full_attention':{'rope_theta':10000}}}", "full_attention"},
        {LLAMA, "{'rope_scaling':{'factor':2}}", "rope_type"},
        {LLAMA, "{'rope_scaling':{'type':'linear','factor':0.5}}", "factor"},
        {LLAMA, "{'rope_scaling':7}", "rope_scaling"},
        {LLAMA, "{'architectures':['LlamaForSequenceClassification']}",
         "LlamaForSequenceClassification"},
        {"mistral_window", "{'layer_types':['full_attention','sliding_attention']}", "layer_types"},
        {"qwen3_qknorm", "{'layer_types':['full_attention','sliding_attention']}", "layer_types"},
        {"llama3_scaling",
         "{'rope_scaling':{'rope_type':'llama3','factor':8,'low_freq_factor':4,'high_freq_factor':"
         "1,'original_max_position_embeddings':64}}",
         "high_freq_factor"},
        /* neutral values of the same keys say nothing */
        {LLAMA,
         "{'num_experts':0,'quantization_config':null,'logits_scaling':1.0,'is_encoder_decoder':"
         "false,'rope_scaling':{'rope_type':'default'},'layer_types':['full_attention',"
         "'full_attention']}",
         NULL},
    };

    TRY_PATCHES(patches);
    published_copy("qwen2_bias");
    published_set("num_key_value_heads", NULL);
    published_refused("without it", "num_key_value_heads");
}

/* ---- keys that contradict one another, or that nothing reads ----------------------------- */

/* A base, what is set in its config.json, and what the refusal says, or NULL = it is accepted. */
#define LLAMA3                                                                                     \
    "'factor':32.0,'low_freq_factor':1.0,'high_freq_factor':4.0,"                                  \
    "'original_max_position_embeddings':64"
#define YARN "'rope_type':'yarn','factor':4,'original_max_position_embeddings':4096"

/* Versions of the publisher's program take one or the other. */
Test(published_config, rotary_settings_that_contradict)
{
    static const struct patch patches[] = {
        {LLAMA,
         "{'rope_parameters':{'rope_type':'default'},'rope_scaling':{'rope_type':'yarn','factor':4}"
         "}",
         "rope_scaling is yarn, rope_parameters is default"},
        {LLAMA,
         "{'rope_parameters':{'rope_type':'linear','factor':2},'rope_scaling':{'rope_type':'linear'"
         ",'factor':4}}",
         "factor"},
        {LLAMA,
         "{'rope_parameters':{'rope_type':'linear','factor':2},'rope_scaling':{'rope_type':'"
         "default'}}",
         "rope_scaling is default"},
        {LLAMA,
         "{'rope_parameters':{'rope_type':'linear','factor':2},'rope_scaling':{'type':'linear','"
         "factor':2.0}}",
         NULL},
        {LLAMA, "{'rope_scaling':{'rope_type':'default','type':'linear','factor':2}}",
         "rope_type default, type linear"},
        {LLAMA, "{'rope_scaling':{'rope_type':'linear','type':'linear','factor':2}}", NULL},
        {LLAMA, "{'rope_theta':1234,'rope_parameters':{'rope_theta':5000}}", "rope_theta 1234"},
        {LLAMA, "{'rope_theta':5000,'rope_parameters':{'rope_theta':5000.0}}", NULL},
        {LLAMA,
         "{'rope_theta':5000,'rope_scaling':{'rope_type':'linear','factor':2,'rope_theta':1234}}",
         "rope_theta of rope_scaling 1234"},
        {LLAMA,
         "{'rope_scaling':{'rope_type':'linear','factor':2},'rope_parameters':{'rope_type':'linear'"
         ",'factor':2,'rope_theta':1234}}",
         "rope_theta of rope_parameters 1234"},
        {"llama3_scaling", "{'original_max_position_embeddings':128}",
         "original_max_position_embeddings 128"},
        {"llama3_scaling", "{'original_max_position_embeddings':64}", NULL},
        {LLAMA, "{'original_max_position_embeddings':128}", NULL},
        {"neox_parallel_f16", "{'rope_theta':20000}", "rope_theta 20000, rotary_emb_base 10000"},
        {"neox_parallel_f16", "{'rope_theta':10000.0,'partial_rotary_factor':0.25}", NULL},
        {"neox_parallel_f16", "{'partial_rotary_factor':0.5}", "partial_rotary_factor 0.5"},
        {"neox_parallel_f16", "{'rope_parameters':{'partial_rotary_factor':0.5}}",
         "rotary_pct 0.25, partial_rotary_factor of rope_parameters 0.5"},
        {"neox_parallel_f16", "{'head_dim':8}", "head_dim"},
        {"gpt2_plain", "{'hidden_size':768}", "hidden_size"},
        {"gpt2_plain", "{'hidden_size':24,'num_hidden_layers':2}", NULL},
        {"gpt2_plain", "{'max_position_embeddings':41}", "max_position_embeddings"},
        {"txl_div1", "{'tie_word_embeddings':false}", "tie_weight"},
        {"txl_div1", "{'num_attention_heads':4}", "num_attention_heads"},
    };

    TRY_PATCHES(patches);
}

/* What is said of positions and not read would be another model. */
Test(published_config, rotary_settings_that_nothing_reads)
{
    static const struct patch patches[] = {
        {LLAMA, "{'rope_parameters':{'rope_theta':1e6,'factor':2}}", "factor of rope_parameters"},
        {LLAMA, "{'rope_parameters':{'rope_type':7,'factor':2}}", "rope_type of rope_parameters"},
        {LLAMA, "{'rope_parameters':{'type':true}}", "type of rope_parameters"},
        {LLAMA, "{'rope_parameters':{'rope_type':'default','mrope_section':[1,2]}}",
         "mrope_section"},
        {LLAMA, "{'rope_scaling':{'rope_type':'linear','factor':2,'beta_fast':32}}", "beta_fast"},
        {LLAMA, "{'rope_scaling':{'rope_type':'linear','factor':2,'attention_factor':1.5}}",
         "attention_factor"},
        {LLAMA, "{'rope_scaling':{'rope_type':'linear','factor':'2'}}", "factor"},
        {LLAMA, "{'rope_scaling':{'rope_type':'linear','factor':null}}", "factor"},
        {LLAMA, "{'rope_scaling':{'rope_type':'linear'}}", "factor is missing"},
        {LLAMA, "{'rope_scaling':{'rope_type':'default','factor':1.0}}", NULL},
        {LLAMA, "{'rope_scaling':{}}", NULL},
        {LLAMA, "{'rope_parameters':{'rope_theta':'1e6'}}", "rope_theta"},
        {LLAMA, "{'rope_parameters':{'rope_theta':null}}", "rope_theta"},
        {LLAMA, "{'rope_parameters':[1]}", "rope_parameters is not an object"},
        {"llama3_scaling", "{'rope_scaling':{'rope_type':'llama3'," LLAMA3 ",'truncate':true}}",
         "truncate"},
        {"llama3_scaling",
         "{'rope_scaling':{'rope_type':'llama3','factor':8,'low_freq_factor':1,'high_freq_factor':"
         "4,'original_max_position_embeddings':64.5}}",
         "original_max_position_embeddings"},
        {LLAMA, "{'rope_scaling':{" YARN ",'high_freq_factor':4}}", "high_freq_factor"},
        {LLAMA, "{'rope_scaling':{" YARN ",'truncate':false}}", NULL},
        {LLAMA, "{'rope_scaling':{" YARN ",'truncate':null}}", "truncate"},
        {LLAMA, "{'rope_scaling':{" YARN ",'truncate':true}}", NULL},
        {LLAMA, "{'rope_scaling':{" YARN ",'beta_fast':1}}", "beta_fast 1, beta_slow 1"},
        {LLAMA, "{'rope_scaling':{" YARN ",'beta_slow':'1'}}", "beta_slow"},
        {LLAMA, "{'rope_scaling':{" YARN ",'attention_factor':-1}}", "attention_factor"},
        {LLAMA, "{'rope_scaling':{" YARN "},'original_max_position_embeddings':128}",
         "original_max_position_embeddings 128"},
        {LLAMA, "{'rope_scaling':{'rope_type':'yarn','original_max_position_embeddings':64}}",
         "factor is missing"},
        {LLAMA, "{'rope_scaling':{'rope_type':'yarn','factor':4}}",
         "original_max_position_embeddings is missing"},
        {LLAMA, "{'partial_rotary_factor':0.5}", "partial_rotary_factor 0.5"},
        {LLAMA, "{'rope_parameters':{'rope_theta':1e6,'partial_rotary_factor':0.5}}",
         "partial_rotary_factor 0.5"},
        {LLAMA, "{'partial_rotary_factor':1.0}", NULL},
        {"qwen2_bias", "{'partial_rotary_factor':0.5}", "partial_rotary_factor 0.5"},
        {"qwen3_qknorm", "{'partial_rotary_factor':0.5}", "partial_rotary_factor 0.5"},
        {"mistral_window", "{'partial_rotary_factor':0.5}", "partial_rotary_factor 0.5"},
        {"gpt2_plain", "{'partial_rotary_factor':0.5}", "partial_rotary_factor 0.5"},
        {"gpt2_plain", "{'rope_theta':10000}", "rope_theta"},
    };

    TRY_PATCHES(patches);
}

/* Keys that the family's program does not know: by their words. */
Test(published_config, keys_that_nothing_reads)
{
    static const struct patch patches[] = {
        {LLAMA, "{'sliding_window':4096}", "sliding_window 4096"},
        {LLAMA, "{'no_rope_layers':[1,0]}", "no_rope_layers"},
        {LLAMA, "{'logit_scale':0.5}", "logit_scale"},
        {LLAMA, "{'query_pre_attn_scalar':256}", "query_pre_attn_scalar"},
        {LLAMA, "{'residual_multiplier':0.22}", "residual_multiplier"},
        {LLAMA, "{'text_config':{'hidden_size':8}}", "text_config"},
        {LLAMA, "{'per_layer_config':{'0':{'head_dim':4}}}", "per_layer_config"},
        {LLAMA, "{'pruned_heads':{'0':[1]}}", "pruned_heads"},
        {LLAMA, "{'is_causal':false}", "is_causal"},
        {LLAMA, "{'quantization_config':{}}", "quantization_config"},
        {LLAMA, "{'is_causal':true}", NULL},
        {LLAMA, "{'layer_types':['full_attention']}", "layer_types"},
        {"mistral_window", "{'mlp_bias':true}", "mlp_bias"},
        {"qwen2_bias", "{'attention_bias':true}", "attention_bias"},
        {"gpt2_plain", "{'add_cross_attention':'no'}", "add_cross_attention"},
        {"txl_div1", "{'ext_len':2}", "ext_len"},
        {"txl_div1", "{'adaptive':false}", "adaptive"},
        {"txl_div4", "{'proj_share_all_but_first':true,'ext_len':0,'tgt_len':128}", NULL},
        {LLAMA, "{'RopeScaling':{'factor':2},'Rope_scaling':2}", "Rope_scaling 2"},
        {"txl_div1", "{'tie_projs':[0,1,1]}", "tie_projs"},
        {LLAMA,
         "{'torch_dtype':'bfloat16','dtype':'float16','attention_dropout':0.1,'embd_pdrop':0.1,'_"
         "attn_implementation':'sdpa','output_hidden_states':true,'id2label':{'0':'a'},'pad_token_"
         "id':-1,'is_decoder':true,'initializer_range':0.02,'unsloth_version':'1','top_k':50,'"
         "transformers.js_config':{'kv_cache_dtype':'q4'},'gradient_checkpointing':true,'num_"
         "experts':0,'use_mrope':false,'use_sliding_window':false}",
         NULL},
    };

    TRY_PATCHES(patches);
}

/* Families whose layers differ, or that are no llama: what they cannot say otherwise. */
Test(published_config, other_families)
{
    static const struct patch patches[] = {
        {"gemma2_capped", "{'attn_logit_softcapping':0}", "attn_logit_softcapping"},
        {"gemma2_capped", "{'sliding_window':0}", "sliding_window"},
        {"gemma2_capped", "{'layer_types':['full_attention']}", "layer_types has 1"},
        {"gemma2_capped",
         "{'layer_types':['full_attention','chunked_attention','full_attention','full_attention']}",
         "chunked_attention"},
        {"gemma2_capped", "{'layer_types':7}", "layer_types"},
        {"gemma2_capped", "{'use_bidirectional_attention':true}", "use_bidirectional_attention"},
        {"gemma2_capped", "{'layer_types':null}", NULL},
        {"gemma3_text", "{'rope_scaling':{'rope_type':'linear','factor':8}}",
         "rope_scaling and full_attention"},
        {"gemma3_text",
         "{'rope_parameters':{'full_attention':{'rope_theta':1e6,'rope_type':'linear','factor':8},'"
         "sliding_attention':{'rope_theta':1e4}}}",
         NULL},
        {"gemma3_text",
         "{'rope_parameters':null,'rope_theta':1e6,'rope_local_base_freq':1e4,'rope_scaling':{'"
         "rope_type':'linear','factor':8}}",
         NULL},
        {"gemma3_scaled",
         "{'rope_parameters':{'full_attention':{'rope_theta':1e6},'sliding_attention':{'rope_type':"
         "'linear','factor':8}}}",
         "linear of sliding_attention"},
        {"gemma3_scaled",
         "{'rope_parameters':{'full_attention':{'rope_type':'yarn','factor':8},'sliding_attention':"
         "{'rope_theta':1e4}}}",
         "yarn"},
        {"gemma3_text", "{'rope_parameters':{'full_attention':{'rope_theta':1e6}}}",
         "without sliding_attention"},
        {"gemma3_text", "{'rope_local_base_freq':5000}", "rope_local_base_freq 5000"},
        {"gemma3_text",
         "{'rope_parameters':null,'rope_theta':1e6,'rope_local_base_freq':1e4,'layer_types':null,'"
         "sliding_window_pattern':6}",
         NULL},
        {"olmo2", "{'clip_qkv':8}", "clip_qkv"},
        {"olmo2", "{'layer_types':['sliding_attention','full_attention']}", "layer_types"},
        {"phi3_window",
         "{'rope_parameters':{'rope_type':'longrope','short_factor':[1],'long_factor':[2]}}",
         "longrope"},
        {"phi3_window", "{'num_key_value_heads':4}", "qkv_proj"},
        {"phi3_window", "{'rope_parameters':{'rope_type':'linear','factor':2}}",
         "linear: not supported"},
        {"phi3_window", "{'rope_parameters':{'rope_type':'llama3'," LLAMA3 "}}",
         "llama3: not supported"},
        {"mamba2", "{'use_bias':true}", "use_bias"},
        {"mamba2", "{'use_conv_bias':false}", "use_conv_bias"},
        {"mamba2", "{'hidden_act':'gelu'}", "hidden_act gelu"},
        {"mamba2", "{'expand':3}", "expand 3"},
        {"mamba2", "{'time_step_limit':[0.0,0.1]}", "time_step_limit"},
        {"mamba2", "{'time_step_limit':[0.001,'Infinity']}", "time_step_limit"},
        {"mamba2", "{'time_step_limit':[0.0,'Infinity'],'chunk_size':64}", NULL},
        {"mamba2", "{'n_groups':4}", "groups 4"},
        {"qwen3_5_text", "{'attention_bias':true}", "attention_bias"},
        {"qwen3_5_text", "{'linear_num_key_heads':3}", "linear_num_key_heads 3"},
        {"qwen3_5_text", "{'num_experts':4}", "num_experts"},
        {"qwen3_5_text",
         "{'layer_types':['linear_attention','linear_attention','sliding_attention','full_"
         "attention']}",
         "sliding_attention"},
        {"qwen3_5_text", "{'layer_types':null,'full_attention_interval':4}", NULL},
        {"qwen3_5_text",
         "{'rope_parameters':{'rope_type':'default','rope_theta':10000.0,'partial_rotary_factor':0."
         "5,'mrope_section':[1,1],'mrope_interleaved':true}}",
         NULL},
    };

    TRY_PATCHES(patches);
}

/* Python writes words that JSON does not have; as parts of texts they say nothing. */
Test(published_config, infinity_of_python)
{
    static const struct {
        const char *from, *to, *says;
    } words[] = {
        {"{", "{\"time_step_limit\": [0.0, Infinity], \"note\": \"a \\\" Infinity\",", NULL},
        {"{", "{\"time_step_limit\": [-Infinity, Infinity],", "time_step_limit"},
        {"\"expand\": 2", "\"expand\": Infinity", "expand"},
        {"\"expand\": 2", "\"expand\": NaN", "expand"},
        {"\"expand\": 2", "\"expand\": Infinite", "not JSON"},
    };

    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        published_copy("mamba2");
        json_t *const config = published_json("config.json");
        json_object_del(config, "time_step_limit");
        published_put_json("config.json", config);
        const struct bytes b = published_read("config.json");
        char *const text = kept(strndup((const char *)b.data, b.n));
        char *const at = strstr(text, words[i].from);
        cr_assert_not_null(at, "%s", text);
        *at = '\0';
        char *const whole =
            kept(need_text("%s%s%s", text, words[i].to, at + strlen(words[i].from)));
        published_write("config.json", whole, strlen(whole));
        if (words[i].says)
            published_refused(words[i].to, words[i].says);
        else
            published_accepted(words[i].to);
    }
}

/* null is a value only where the publisher's program has it so. */
Test(published_config, values_of_another_type)
{
    static const struct patch patches[] = {
        {LLAMA, "{'rms_norm_eps':null}", "rms_norm_eps null"},
        {LLAMA, "{'hidden_act':null}", "hidden_act null"},
        {LLAMA, "{'rope_theta':null}", "rope_theta null"},
        {LLAMA, "{'vocab_size':null}", "vocab_size null"},
        {LLAMA, "{'max_position_embeddings':null}", "max_position_embeddings null"},
        {LLAMA, "{'hidden_size':32.0}", "hidden_size 32.0"},
        {LLAMA, "{'tie_word_embeddings':0}", "tie_word_embeddings 0"},
        {LLAMA, "{'attention_bias':'false'}", "attention_bias"},
        {LLAMA, "{'rope_theta':'1000000'}", "rope_theta"},
        {LLAMA, "{'architectures':'LlamaForCausalLM'}", "architectures"},
        {LLAMA,
         "{'attention_bias':null,'mlp_bias':null,'head_dim':null,'tie_word_embeddings':null,'rope_"
         "scaling':null,'rope_parameters':null}",
         NULL},
        {LLAMA, "{'num_key_value_heads':null}", "k_proj"}, /* as many as heads: another shape */
        {"mistral_window", "{'num_key_value_heads':null}", "k_proj"},
        {"qwen3_qknorm", "{'head_dim':null}", "head_dim null"},
        {"gpt2_plain", "{'tie_word_embeddings':null}", "tie_word_embeddings null"},
        {"gpt2_plain", "{'scale_attn_weights':null}", "scale_attn_weights null"},
        {"gpt2_plain", "{'scale_attn_by_inverse_layer_idx':1}", "scale_attn_by_inverse_layer_idx"},
        {"gpt2_plain", "{'n_inner':null}", NULL},
        {"neox_serial", "{'use_parallel_residual':null}", "use_parallel_residual null"},
        {"neox_serial", "{'attention_bias':null}", "attention_bias null"},
    };

    TRY_PATCHES(patches);
    published_copy(LLAMA);
    static const char twice[] = "{\"model_type\":\"llama\",\"model_type\":\"mistral\"}";
    published_write("config.json", twice, strlen(twice));
    published_refused("a key twice", "duplicate object key");
}

/* The newer spelling alone. */
Test(published_config, rotary_settings_of_version_5)
{
    struct published p;

    published_copy("llama3_scaling");
    published_set("rope_theta", NULL);
    published_set("rope_scaling", NULL);
    published_set("rope_parameters", json_pack("{s:f,s:s,s:f}", "rope_theta", 5000.0, "rope_type",
                                               "linear", "factor", 2.0));
    MUST(published_try(&p, &failure));
    cr_expect(p.config.rope_scaling == ROPE_LINEAR && p.config.rope_factor == 2);
    published_copy("neox_parallel_f16");
    published_set("rotary_pct", NULL);
    published_set("rotary_emb_base", NULL);
    published_set("rope_parameters",
                  json_pack("{s:f,s:f}", "rope_theta", 10000.0, "partial_rotary_factor", 0.5));
    published_accepted("both");
}

/* What yarn's numbers become: how far each pair of a head of 8 is on the way to a quarter of its
 * frequency, and what cosines and sines are multiplied by. The pair that turns n times in C tokens
 * is 4 ln(C / (2 pi n)) / ln 1e6: 0.87 and 1.88 for 32 turns and 1 in 4096 tokens, which become 0
 * and 2; 1.68 and 1.88 for 8 and 4 turns in 16384 - so 1 and 2. */
static const struct {
    const char *set;
    double ramp[4], magnitude;
} yarns[] = {
    {"{'rope_scaling':{" YARN "}}", {0, 0.5, 1, 1}, 1.1386294361119891},
    {"{'rope_scaling':{" YARN ",'beta_fast':null,'mscale':0.707}}",
     {0, 0.5, 1, 1},
     1.1386294361119891},
    {"{'rope_theta':null,'rope_parameters':{'rope_theta':1e6,'rope_type':'yarn',"
     "'factor':4,'original_max_position_embeddings':16384,'beta_fast':8,'beta_slow':4,"
     "'attention_factor':0.75}}",
     {0, 0, 1, 1},
     0.75},
    /* (0.1 ln 4 + 1) / (0.05 ln 4 + 1) */
    {"{'rope_scaling':{" YARN ",'mscale':1,'mscale_all_dim':0.5}}",
     {0, 0.5, 1, 1},
     1.1386294361119891 / 1.0693147180559945},
};

/* Queries (1, 0) of one head, in place of row `position`. */
static void turn_ones(const struct config *c, float x[8], int position)
{
    const struct engine g = {.threads = 1};
    float *const table = fenced(pos_rope.n_pos_encoding(c, 1));

    for (int f = 0; f < 8; f++)
        x[f] = f < 4;
    pos_rope.pos_encoding(c, 0, 1, table);
    pos_rope.rotate(
        &g, c, table,
        &(struct rotation){
            .x = x, .stride = 8, .B = 1, .rows = 1, .heads = 1, .width = 8, .position = position});
}

/* Bounds as in test_rope.c. */
Test(published_config, rotary_scaling_yarn)
{
    enum { AT = 1000, FACTOR = 4 };

    for (size_t i = 0; i < ARRAY_LEN(yarns); i++) {
        struct published p;
        float x[8];
        const double m = yarns[i].magnitude, bound = (10 * 0x1p-24 + 1e-9) * m;

        published_copy(LLAMA);
        json_t *const config = published_json("config.json");
        json_object_update(config, quoted_json(yarns[i].set));
        if (json_is_null(json_object_get(config, "rope_theta")))
            json_object_del(config, "rope_theta");
        published_put_json("config.json", config);
        cr_assert_eq(published_try(&p, &failure), OK, "%s: %s", yarns[i].set, failure.msg);
        turn_ones(&p.config, x, AT);
        for (int f = 0; f < 4; f++) {
            const double k = yarns[i].ramp[f], w = pow(1e6, -f / 4.) * (1 - k + k / FACTOR);
            cr_expect_float_eq((double)x[f], m * cos(AT * w), bound, "%s: pair %d", yarns[i].set,
                               f);
            cr_expect_float_eq((double)x[f + 4], m * sin(AT * w), bound, "%s: pair %d",
                               yarns[i].set, f);
        }
    }
}

/* The publishers' defaults, where config.json is silent. */
Test(published_config, absent_keys)
{
    struct published p;

    published_copy("llama_gqa_bf16");
    published_set("rms_norm_eps", NULL);
    published_set("max_position_embeddings", NULL);
    published_set("hidden_act", NULL);
    published_set("tie_word_embeddings", NULL);
    MUST(published_try(&p, &failure));
    cr_expect_float_eq((double)p.config.ln_eps, 1e-6, 1e-12);
    cr_expect(p.context == 2048 && !p.config.tied && p.config.kv_heads == 2);
    cr_expect_str_eq(p.source, "model");
    published_copy("mistral_window");
    published_set("sliding_window", NULL);
    MUST(published_try(&p, &failure));
    cr_expect_eq(p.config.window, 4096);
    published_set("sliding_window", json_null());
    MUST(published_try(&p, &failure));
    cr_expect_eq(p.config.window, 0);
}

/* Tokens that a model of each family was made for, where config.json does not say it. */
Test(published_config, absent_contexts)
{
    static const struct {
        const char *base;
        int context;
    } of[] = {
        {"deepseek_v2", 2048},       {"gemma2_capped", 8192},
        {"gemma3_text", 131072},     {"gpt_oss", 131072},
        {"mistral_window", 131072},  {"mixtral_window", 131072},
        {"neox_serial", 2048},       {"olmo2", 2048},
        {"phi3_window", 4096},       {"qwen2_bias", 32768},
        {"qwen2_moe", 32768},        {"qwen3_5_text", 32768},
        {"qwen3_moe_normed", 32768}, {"qwen3_next", 32768},
        {"qwen3_qknorm", 32768},
    };

    for (size_t i = 0; i < ARRAY_LEN(of); i++) {
        struct published p;
        published_copy(of[i].base);
        published_set("max_position_embeddings", NULL);
        cr_assert_eq(published_try(&p, &failure), OK, "%s: %s", of[i].base, failure.msg);
        cr_expect_eq(p.context, of[i].context, "%s: %d", of[i].base, p.context);
    }
}

/* The authors' files have other names, and with them a memory that begins empty. */
Test(published_config, both_programs_of_transfo_xl)
{
    struct published p;

    published_copy("txl_div4");
    MUST(published_try(&p, &failure));
    cr_expect(p.config.mem_start == MEM_START_ZEROS && p.config.uv_per_layer);
    published_copy("txl_original_keys");
    published_set("untie_r", json_true()); /* of no importance there */
    MUST(published_try(&p, &failure));
    cr_expect(p.config.mem_start == MEM_START_EMPTY && !p.config.uv_per_layer);
}

/* Clusters that begin behind the last word are none. */
Test(published_config, clusters_of_words)
{
    struct published p;

    published_copy("txl_div1");
    published_set("cutoffs", json_pack("[i,i,i]", 16, 30, 64));
    MUST(published_try(&p, &failure));
    cr_expect_eq(p.config.adaptive.n, 2);
    published_set("cutoffs", json_pack("[i,i]", 16, 16));
    published_refused("twice the same", "cutoffs");
    published_set("cutoffs", json_pack("[f]", 16.5));
    published_refused("no whole number", "cutoffs");
    published_set("cutoffs", json_integer(16));
    published_refused("no list", "cutoffs");
}
