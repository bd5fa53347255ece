#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Random models of the families that `bench` imports, run by the program of others.

    scripts/crosscheck/models.py DIR [FAMILY...]
    bench check --golden DIR

writes a folder for each family: config.json and model.safetensors as the Python package
transformers saves them, and expect.safetensors with its logits and losses in double precision, and
a cutting into segments. Needs torch, transformers and safetensors (docs/crosschecks.md)."""

import os
import sys

import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers.models.qwen3_5 import modeling_qwen3_5
from transformers.models.qwen3_next import modeling_qwen3_next

SEED = 20240817
BATCH, TOKENS = 2, 37
SEGMENTS = "11,1,25"

LLAMA = dict(hidden_size=24, intermediate_size=28, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, vocab_size=61, max_position_embeddings=128)

PHI3_LONG = dict(LLAMA, hidden_size=32, pad_token_id=1, eos_token_id=2, bos_token_id=1,
                 rope_parameters=dict(rope_type="longrope", rope_theta=10000.0,
                                      short_factor=[1.0, 1.1, 1.05, 1.3],
                                      long_factor=[1.0, 1.9, 4.75, 8.4]))

GRANITE_4 = dict(LLAMA, num_hidden_layers=4, shared_intermediate_size=20, mamba_n_heads=6, mamba_d_state=10,
                 mamba_d_conv=4, mamba_expand=2, mamba_chunk_size=16,
                 layer_types=["linear_attention", "linear_attention", "full_attention",
                              "linear_attention"])

DEEPSEEK = dict(LLAMA, num_key_value_heads=4, kv_lora_rank=10, qk_nope_head_dim=6,
                qk_rope_head_dim=4, v_head_dim=5, n_shared_experts=2, moe_intermediate_size=9,
                first_k_dense_replace=1)
DEEPSEEK_YARN = dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=16,
                     rope_theta=10000.0)

# family: class of the config, its values; several models of one family have a name after a dot.
FAMILIES = {
    "llama": ("LlamaConfig", LLAMA),
    "llama.yarn": ("LlamaConfig", dict(LLAMA, rope_parameters=dict(
        rope_type="yarn", factor=4.0, original_max_position_embeddings=16, rope_theta=10000.0))),
    "mistral": ("MistralConfig", dict(LLAMA, sliding_window=9, head_dim=12)),
    "qwen2": ("Qwen2Config", LLAMA),
    "qwen2.tied": ("Qwen2Config", dict(LLAMA, tie_word_embeddings=True)),
    "qwen3": ("Qwen3Config", dict(LLAMA, head_dim=12)),
    "olmo2": ("Olmo2Config", dict(LLAMA, pad_token_id=1, eos_token_id=2)),
    "phi3": ("Phi3Config", dict(LLAMA, pad_token_id=1, eos_token_id=2, bos_token_id=1)),
    "phi3.window": ("Phi3Config", dict(LLAMA, hidden_size=32, pad_token_id=1, eos_token_id=2, bos_token_id=1,
                                       sliding_window=7, rope_parameters=dict(
                                           rope_type="default", rope_theta=10000.0,
                                           partial_rotary_factor=0.5))),
    # the same numbers for texts of up to 16 and of up to 64 tokens: theirs have 37
    "phi3.long": ("Phi3Config", dict(PHI3_LONG, original_max_position_embeddings=16)),
    "phi3.short": ("Phi3Config", dict(PHI3_LONG, original_max_position_embeddings=64)),
    "llama.longrope": ("LlamaConfig", dict(LLAMA, rope_parameters=dict(
        rope_type="longrope", factor=4.0, original_max_position_embeddings=32, rope_theta=10000.0,
        attention_factor=1.25, short_factor=[1.0, 1.0, 1.5], long_factor=[1.0, 2.5, 7.25]))),
    "llama.dynamic": ("LlamaConfig", dict(LLAMA, max_position_embeddings=16, rope_parameters=dict(
        rope_type="dynamic", factor=3.0, rope_theta=1000.0))),
    "smollm3": ("SmolLM3Config", dict(LLAMA, num_hidden_layers=5, pad_token_id=1)),
    "smollm3.list": ("SmolLM3Config", dict(
        LLAMA, num_hidden_layers=3, pad_token_id=1, no_rope_layers=[0, 1, 0], attention_bias=True,
        mlp_bias=True, tie_word_embeddings=False, rope_parameters=dict(
            rope_type="yarn", factor=4.0, original_max_position_embeddings=16, rope_theta=1e3))),
    "smollm3.windows": ("SmolLM3Config", dict(
        LLAMA, num_hidden_layers=5, pad_token_id=1, sliding_window=6, use_sliding_window=True,
        no_rope_layer_interval=2)),
    "smollm3.types": ("SmolLM3Config", dict(
        LLAMA, num_hidden_layers=3, pad_token_id=1, sliding_window=6, use_sliding_window=True,
        no_rope_layers=[1, 0, 1], layer_types=["sliding_attention", "sliding_attention",
                                               "full_attention"])),
    "granite": ("GraniteConfig", dict(LLAMA, attention_multiplier=0.21, embedding_multiplier=3.0,
                                      residual_multiplier=0.22, logits_scaling=1.7)),
    "granite.plain": ("GraniteConfig", dict(LLAMA, attention_bias=True, mlp_bias=True,
                                            tie_word_embeddings=True)),
    "granitemoehybrid": ("GraniteMoeHybridConfig", dict(
        GRANITE_4, num_local_experts=5, num_experts_per_tok=2, attention_multiplier=0.21,
        embedding_multiplier=3.0, residual_multiplier=0.22, logits_scaling=1.7)),
    "granitemoehybrid.dense": ("GraniteMoeHybridConfig", dict(
        GRANITE_4, num_local_experts=0, position_embedding_type="rope", mamba_n_groups=2,
        attention_bias=True, tie_word_embeddings=True, num_hidden_layers=2,
        layer_types=["full_attention", "linear_attention"])),
    "starcoder2": ("Starcoder2Config", dict(LLAMA)),
    "starcoder2.window": ("Starcoder2Config", dict(
        LLAMA, sliding_window=7, use_bias=False, norm_epsilon=1e-3, tie_word_embeddings=False,
        hidden_act="relu")),
    "glm": ("GlmConfig", dict(LLAMA, head_dim=12, pad_token_id=1)),
    "glm4": ("Glm4Config", dict(LLAMA, head_dim=12, pad_token_id=1)),
    "glm4.whole": ("Glm4Config", dict(
        LLAMA, head_dim=8, pad_token_id=1, attention_bias=False, tie_word_embeddings=True,
        rope_parameters=dict(rope_type="default", rope_theta=500.0, partial_rotary_factor=1.0))),
    "cohere2": ("Cohere2Config", dict(LLAMA, num_hidden_layers=5, sliding_window=6)),
    "cohere2.types": ("Cohere2Config", dict(
        LLAMA, num_hidden_layers=3, sliding_window=9, logit_scale=0.7, attention_bias=True,
        tie_word_embeddings=False, layer_norm_eps=1e-3,
        layer_types=["full_attention", "sliding_attention", "full_attention"])),
    "lfm2": ("Lfm2Config", dict(
        LLAMA, num_hidden_layers=5, block_multiple_of=8, layer_types=["conv", "conv", "full_attention", "conv",
                                                                      "full_attention"])),
    "lfm2.bias": ("Lfm2Config", dict(
        LLAMA, conv_bias=True, conv_L_cache=5, block_auto_adjust_ff_dim=False, full_attn_idxs=[0],
        norm_eps=1e-3, tie_word_embeddings=False)),
    "gemma2": ("Gemma2Config", dict(LLAMA, head_dim=12, sliding_window=9,
                                    query_pre_attn_scalar=20)),
    "gemma2.capped": ("Gemma2Config", dict(LLAMA, num_hidden_layers=4, head_dim=8,
                                           sliding_window=5, attn_logit_softcapping=2.0,
                                           final_logit_softcapping=3.0)),
    "gemma3_text": ("Gemma3TextConfig", dict(LLAMA, num_hidden_layers=7, head_dim=12,
                                             sliding_window=9, query_pre_attn_scalar=20)),
    "gemma3_text.scaled": ("Gemma3TextConfig", dict(
        LLAMA, num_hidden_layers=7, head_dim=12, sliding_window=5, query_pre_attn_scalar=20,
        rope_parameters={"full_attention": dict(rope_type="linear", factor=8.0, rope_theta=1e3),
                         "sliding_attention": dict(rope_type="default", rope_theta=100.0)})),
    "mamba2": ("Mamba2Config", dict(hidden_size=24, num_hidden_layers=2, num_heads=6, head_dim=8,
                                    state_size=10, n_groups=2, conv_kernel=4, expand=2,
                                    vocab_size=61, chunk_size=16)),
    "mamba2.alike": ("Mamba2Config", dict(hidden_size=24, num_hidden_layers=2, num_heads=6, head_dim=8,
                                          state_size=10, n_groups=1, conv_kernel=3, expand=2,
                                          vocab_size=61, chunk_size=16)),
    "qwen3_5_text": ("Qwen3_5TextConfig", dict(
        LLAMA, num_hidden_layers=4, head_dim=8, linear_num_key_heads=2, linear_num_value_heads=4,
        linear_key_head_dim=6, linear_value_head_dim=10, rope_parameters=dict(
            rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.5))),
    "qwen3_5_text.alike": ("Qwen3_5TextConfig", dict(
        LLAMA, num_hidden_layers=2, head_dim=16, linear_num_key_heads=3, linear_num_value_heads=3,
        linear_key_head_dim=4, linear_value_head_dim=8,
        layer_types=["full_attention", "linear_attention"])),
    "gpt_oss": ("GptOssConfig", dict(LLAMA, num_hidden_layers=4, head_dim=8, sliding_window=7,
                                     num_local_experts=5, num_experts_per_tok=2)),
    "gpt_oss.plain": ("GptOssConfig", dict(
        LLAMA, head_dim=12, sliding_window=5, num_local_experts=4, num_experts_per_tok=3,
        attention_bias=False, swiglu_limit=0.5, layer_types=["full_attention", "sliding_attention"],
        rope_parameters=dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=16,
                             rope_theta=1000.0, truncate=False))),
    "gpt_oss.mxfp4": ("GptOssConfig", dict(
        LLAMA, hidden_size=64, intermediate_size=32, head_dim=8, sliding_window=7,
        num_local_experts=3, num_experts_per_tok=2)),
    "mixtral": ("MixtralConfig", dict(LLAMA, num_local_experts=5)),
    "mixtral.window": ("MixtralConfig", dict(LLAMA, num_local_experts=4, num_experts_per_tok=1,
                                             sliding_window=7, tie_word_embeddings=True)),
    "qwen2_moe": ("Qwen2MoeConfig", dict(LLAMA, num_experts=6, num_experts_per_tok=2,
                                         moe_intermediate_size=10,
                                         shared_expert_intermediate_size=14)),
    "qwen2_moe.normed": ("Qwen2MoeConfig", dict(
        LLAMA, num_experts=4, num_experts_per_tok=3, moe_intermediate_size=12, qkv_bias=False,
        shared_expert_intermediate_size=8, norm_topk_prob=True)),
    "qwen2_moe.sparse": ("Qwen2MoeConfig", dict(
        LLAMA, num_hidden_layers=4, num_experts=5, num_experts_per_tok=2, moe_intermediate_size=10,
        shared_expert_intermediate_size=8, decoder_sparse_step=2)),
    "qwen3_moe": ("Qwen3MoeConfig", dict(LLAMA, head_dim=12, num_experts=6, num_experts_per_tok=3,
                                         moe_intermediate_size=10)),
    "qwen3_moe.normed": ("Qwen3MoeConfig", dict(
        LLAMA, head_dim=8, num_experts=7, num_experts_per_tok=2, moe_intermediate_size=12,
        attention_bias=True, norm_topk_prob=True, tie_word_embeddings=True)),
    "qwen3_moe.dense": ("Qwen3MoeConfig", dict(
        LLAMA, num_hidden_layers=4, head_dim=8, num_experts=5, num_experts_per_tok=2,
        moe_intermediate_size=12, mlp_only_layers=[0, 1, 3])),
    "qwen3_next": ("Qwen3NextConfig", dict(
        LLAMA, num_hidden_layers=4, head_dim=8, linear_num_key_heads=2, linear_num_value_heads=4,
        linear_key_head_dim=6, linear_value_head_dim=10, num_experts=6, num_experts_per_tok=3,
        moe_intermediate_size=10, shared_expert_intermediate_size=14)),
    "qwen3_next.alike": ("Qwen3NextConfig", dict(
        LLAMA, head_dim=16, linear_num_key_heads=3, linear_num_value_heads=3,
        linear_key_head_dim=4, linear_value_head_dim=8, num_experts=5, num_experts_per_tok=2,
        moe_intermediate_size=12, shared_expert_intermediate_size=8, norm_topk_prob=False,
        layer_types=["full_attention", "linear_attention"])),
    "qwen3_next.dense": ("Qwen3NextConfig", dict(
        LLAMA, num_hidden_layers=3, head_dim=16, linear_num_key_heads=3, linear_num_value_heads=3,
        linear_key_head_dim=4, linear_value_head_dim=8, num_experts=5, num_experts_per_tok=2,
        moe_intermediate_size=12, shared_expert_intermediate_size=8, mlp_only_layers=[2],
        layer_types=["full_attention", "linear_attention", "full_attention"])),
    "qwen3_next.none": ("Qwen3NextConfig", dict( # whose layers are all dense
        LLAMA, head_dim=16, linear_num_key_heads=1, linear_num_value_heads=3, linear_key_head_dim=4,
        linear_value_head_dim=8, num_experts=0, layer_types=["full_attention", "linear_attention"])),
    "deepseek_v2": ("DeepseekV2Config", dict(
        DEEPSEEK, num_hidden_layers=3, q_lora_rank=14, topk_method="group_limited_greedy",
        n_routed_experts=8, n_group=4, topk_group=2, num_experts_per_tok=3,
        routed_scaling_factor=4.0, rope_parameters=dict(DEEPSEEK_YARN, mscale=1.0,
                                                        mscale_all_dim=0.5))),
    "deepseek_v2.lite": ("DeepseekV2Config", dict(
        DEEPSEEK, q_lora_rank=None, n_routed_experts=6, num_experts_per_tok=2,
        rope_parameters=dict(DEEPSEEK_YARN, mscale=0.707, mscale_all_dim=0.707))),
    "deepseek_v2.plain": ("DeepseekV2Config", dict(
        DEEPSEEK, q_lora_rank=None, n_routed_experts=5, num_experts_per_tok=1,
        first_k_dense_replace=0, tie_word_embeddings=True)),
    "gpt2": ("GPT2Config", dict(n_embd=32, n_layer=3, n_head=4, vocab_size=97, n_positions=64)),
    "gpt2.depth": ("GPT2Config", dict(n_embd=32, n_layer=3, n_head=4, vocab_size=61, n_positions=64,
                                      scale_attn_by_inverse_layer_idx=True, n_inner=44)),
    "gpt_neox": ("GPTNeoXConfig", dict(hidden_size=32, intermediate_size=44, num_hidden_layers=3,
                                       num_attention_heads=4, vocab_size=97)),
    "gpt_neox.serial": ("GPTNeoXConfig", dict(
        hidden_size=32, intermediate_size=44, num_hidden_layers=2, num_attention_heads=4, vocab_size=61,
        use_parallel_residual=False, attention_bias=False, tie_word_embeddings=True)),
}


# Saved besides with the tensors of all experts in one, as the package has them in memory.
STACKED = ["mixtral", "qwen2_moe", "qwen3_moe", "qwen3_next", "deepseek_v2"]
FAMILIES.update({name + ".stacked": FAMILIES[name] for name in STACKED})


def spread(model):
    """Weights in a generic position: norms and biases, too."""
    generator = torch.Generator().manual_seed(SEED)
    with torch.no_grad():
        for name, w in model.named_parameters():
            noise = torch.randn(w.shape, generator=generator)
            if w.dim() >= 2:
                w.copy_(noise * (0.9 / w[0].numel() ** 0.5))
            elif "A_log" in name:
                w.copy_(noise.abs().log1p())
            else:
                w.add_(0.3 * noise)


def made(config, seed=SEED):
    """A model of the configuration."""
    torch.manual_seed(seed)
    config._attn_implementation = config._experts_implementation = "eager"
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    spread(model)
    return model


def to_blocks(folder, config):
    """Experts in blocks of 4 bits, all random, in place of those saved; the model as the package
    reads it."""
    generator = torch.Generator().manual_seed(SEED)
    path = os.path.join(folder, "model.safetensors")
    tensors = load_file(path)
    for name in [name for name in tensors if name.endswith(("gate_up_proj", "down_proj"))]:
        experts, columns, rows = tensors.pop(name).shape
        of = (experts, rows, columns // 32)
        tensors[name + "_blocks"] = torch.randint(0, 256, (*of, 16), generator=generator,
                                                  dtype=torch.uint8)
        tensors[name + "_scales"] = torch.randint(118, 126, of, generator=generator,
                                                  dtype=torch.uint8)
    save_file(tensors, path, {"format": "pt"})
    config.quantization_config = {"quant_method": "mxfp4", "modules_to_not_convert": [
        "model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"]}
    config.save_pretrained(folder)
    return transformers.AutoModelForCausalLM.from_pretrained(
        folder, quantization_config=transformers.Mxfp4Config(dequantize=True),
        attn_implementation="eager", experts_implementation="eager",
        dtype=torch.float32).eval()


def delta_rule(query, key, value, g, beta, **_):
    """The gated delta rule token by token, in the type of its operands: the package's own rounds to
    float, which some models magnify beyond the tolerance."""
    heads = value.shape[2]
    query, key = (x.repeat_interleave(heads // x.shape[2], 2) for x in (query, key))
    query, key = (x / (x.square().sum(-1, keepdim=True) + 1e-6).sqrt() for x in (query, key))
    state = value.new_zeros(value.shape[0], heads, key.shape[-1], value.shape[-1])
    out = torch.empty_like(value)
    for t in range(value.shape[1]):
        k, write = key[:, t, :, :, None], beta[:, t, :, None]
        state = state * g[:, t, :, None, None].exp()
        state = state + k * (write * (value[:, t] - (state * k).sum(2)))[:, :, None]
        out[:, t] = (state * query[:, t, :, :, None]).sum(2) / query.shape[-1] ** 0.5
    return out, None


def write(folder, family, config):
    model = made(config)
    model.save_pretrained(folder, save_original_format=not folder.endswith(".stacked"))
    if folder.endswith(".mxfp4"):
        model = to_blocks(folder, config)
    expect(folder, family, model)


def expect(folder, family, model):
    """What the model makes of two texts."""
    config, model = model.config, model.double()
    ids = torch.randint(0, config.vocab_size, (BATCH, TOKENS),
                        generator=torch.Generator().manual_seed(SEED))
    with torch.no_grad():
        logits = model(ids, use_cache=False).logits
    nll = torch.nn.functional.cross_entropy(
        logits[:, :-1].reshape(-1, logits.shape[-1]), ids[:, 1:].reshape(-1),
        reduction="none").reshape(BATCH, TOKENS - 1)
    save_file({"in.ids": ids.to(torch.int32), "out.logits": logits.float().contiguous(),
               "out.nll": nll.float().contiguous()},
              os.path.join(folder, "expect.safetensors"),
              {"kind": "import", "name": os.path.basename(folder), "family": family,
               "judge": "transformers %s" % transformers.__version__, "segments": SEGMENTS,
               "tolerance": "2e-5", "tolerance_abs": "2e-5",
               "total_nll": "%.12g" % nll.sum(), "n_tokens": str(nll.numel()),
               "mean_nll": "%.12g" % nll.mean(), "ppl": "%.12g" % nll.mean().exp()})


def begin(doc, least=1):
    """Of a script with so many arguments or more, the first no option; doc says how it is called."""
    if len(sys.argv) <= least or sys.argv[1].startswith("-"):
        sys.exit(doc)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    modeling_qwen3_5.torch_chunk_gated_delta_rule = delta_rule
    modeling_qwen3_next.torch_chunk_gated_delta_rule = delta_rule


def main():
    begin(__doc__)
    for name, (kind, values) in FAMILIES.items():
        family = name.split(".")[0]
        if len(sys.argv) > 2 and family not in sys.argv[2:]:
            continue
        write(os.path.join(sys.argv[1], name), family, getattr(transformers, kind)(**values))
        print(name)


if __name__ == "__main__":
    main()
