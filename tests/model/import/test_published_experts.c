/* SPDX-License-Identifier: MIT
 *
 * config.json of models with experts: what is refused, with which words. */
#include "tests/support/loaded.h"
#include "tests/support/published_folder.h"
#include "variants/model/import/mxfp4.h"

TestSuite(published_experts, .init = folder_make, .fini = folder_remove, .timeout = 240);

Test(published_experts, configs)
{
    static const struct patch patches[] = {
        {"qwen3_next", "{'mlp_only_layers':[0]}",
         "\"model.layers.0.mlp.gate_proj.weight\" missing"},
        {"qwen3_next", "{'mlp_only_layers':[9]}", "mlp_only_layers that it does not have"},
        {"qwen3_next", "{'mlp_only_layers':0}", "mlp_only_layers is not a list"},
        {"qwen3_next", "{'decoder_sparse_step':2}",
         "\"model.layers.0.mlp.gate_proj.weight\" missing"},
        {"qwen3_next", "{'decoder_sparse_step':0}", "decoder_sparse_step"},
        {"qwen3_moe_dense", "{'intermediate_size':27}", "mlp.gate_proj.weight\" is"},
        {"qwen3_moe_dense", "{'mlp_only_layers':[1,0,3,0],'decoder_sparse_step':1}", NULL},
        {"qwen3_moe_dense", "{'mlp_only_layers':[0,1]}", "layers.3.mlp"},
        {"qwen3_next", "{'num_experts':7}", "tensor \"model.layers.0.mlp.gate.weight\" is"},
        {"qwen3_next", "{'num_experts':0}", "\"model.layers.0.mlp.gate_proj.weight\" missing"},
        {"mixtral_stacked", "{'num_local_experts':0}", "num_experts 0 is not"},
        {"qwen3_next", "{'moe_intermediate_size':11}", "experts.0."},
        {"qwen3_moe_normed", "{'num_experts_per_tok':8}", "num_experts_per_tok 8 of 7"},
        {"qwen3_moe_normed", "{'num_experts':6}", "num_local_experts"},
        {"qwen3_moe_normed", "{'num_local_experts':7,'num_experts':7}", NULL},
        {"qwen2_moe", "{'use_sliding_window':true}", "use_sliding_window"},
        {"mixtral_window", "{'hidden_act':'relu'}", "hidden_act relu"},
        {"mixtral_window", "{'sliding_window':null}", NULL},
        {"mixtral_stacked", "{'intermediate_size':27}",
         "experts.gate_up_proj\" is F32 [5,56,24], config.json says [5,54,24]"},
        {"mixtral_stacked", "{'num_local_experts':6}", "mlp.gate.weight\" is"},
        {"gpt_oss", "{'experts_per_token':2}", "experts_per_token"},
        {"gpt_oss", "{'experts_per_token':3,'initial_context_length':16}", NULL},
        {"gpt_oss", "{'layer_types':null}", NULL},
        {"gpt_oss", "{'swiglu_limit':0}", "swiglu_limit"},
        {"gpt_oss", "{'quantization_config':{'quant_method':'awq'}}", "(awq)"},
        {"gpt_oss", "{'quantization_config':{}}", "quantization_config"},
        {"mixtral_window", "{'quantization_config':{'quant_method':'mxfp4'}}", "(mxfp4)"},
        {"gpt_oss_mxfp4", "{'intermediate_size':64}",
         "experts.gate_up_proj_blocks\" is U8 [3,64,2,16], config.json says [3,128,2,16]"},
    };

    TRY_PATCHES(patches);
}

/* ---- blocks of 4 bits ---------------------------------------------------------------------- */

#define SCALES "model.layers.1.mlp.experts.down_proj_scales"

/* Another word for a key of their entry in the file's header. */
static void put_scales(const char *key, json_t *value)
{
    struct bytes b;
    size_t data;

    published_copy("gpt_oss_mxfp4");
    json_t *const header = published_header(&b, "model.safetensors", &data);
    json_object_set_new(json_object_get(header, SCALES), key, value);
    published_put_header("model.safetensors", header, &b, data);
}

Test(published_experts, blocks_without_their_scales)
{
    put_scales("dtype", json_string("U8"));
    published_accepted("as it was");
    put_scales("dtype", json_string("I8"));
    published_refused("scales of another type", "down_proj_blocks\" lacks scales");
    put_scales("shape", json_pack("[i,i]", 3, 64));
    published_refused("scales of another shape", "down_proj_blocks\" lacks scales");
}

/* 255 is no power of two, whatever it is multiplied by. */
Test(published_experts, a_scale_that_is_no_number)
{
    struct published p;
    struct bytes b;
    struct lm m;
    size_t data;

    published_copy("gpt_oss_mxfp4");
    json_t *const header = published_header(&b, "model.safetensors", &data);
    json_t *const at = json_object_get(json_object_get(header, SCALES), "data_offsets");
    ((unsigned char *)b.data)[data + (size_t)json_integer_value(json_array_get(at, 0)) + 7] = 255;
    published_put_header("model.safetensors", header, &b, data);
    MUST(published_try(&p, &failure));
    place_model(&m, &p.config);
    REFUSED(published_load(&p, &m.params, &failure), E_IO,
            "down_proj_blocks\" holds a value that is not finite");
}

Test(published_experts, rows_that_are_no_whole_blocks)
{
    const struct tensor blocks = {
        .name = "b", .rank = 4, .shape = {2, 3, 2, 16}, .dtype_name = "U8"};
    const struct tensor scales = {.name = "s", .rank = 3, .shape = {2, 3, 2}, .dtype_name = "U8"};
    const struct param whole = {.rank = 3, .shape = {2, 3, 64}},
                       part = {.rank = 3, .shape = {2, 3, 40}};
    const struct published p = {.path = "model"};
    int64_t shape[TENSOR_RANK];

    cr_expect_eq(mxfp4_shape(shape, &part, 1), 4);
    cr_expect_eq(shape[2], 2);
    cr_expect_eq(mxfp4_check(&p, &blocks, &scales, &whole, &failure), OK);
    REFUSED(mxfp4_check(&p, &blocks, &scales, &part, &failure), E_IO,
            "rows of 40 numbers, blocks have 32");
    cr_expect_eq(mxfp4_check(&p, &blocks, NULL, &whole, &failure), E_IO);
}
