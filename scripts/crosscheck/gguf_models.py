#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Random models in GGUF files, written by the Python package gguf.

    scripts/crosscheck/gguf_models.py DIR [FAMILY...]
    bench check --golden DIR

writes, for each family and each type of numbers, a folder with model.gguf and expect.safetensors:
what the package transformers makes in double of the numbers that are in the file, rounded as its
type says. Needs torch, transformers, safetensors and gguf (docs/crosschecks.md)."""

import os
import sys

import gguf
import numpy as np
import torch
import transformers
from models import FAMILIES, begin, expect, made

TYPES = ["f32", "f16", "bf16", "q8_0", "q4_0", "q4_1"]
BLOCKS_OF_32 = {"q8_0", "q4_0", "q4_1", "mxfp4"}

BLOCKS = {
    "model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output",
    "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down", "self_attn.qkv_proj": "attn_qkv", "mlp.gate_up_proj": "ffn_up",
    "transformer.wte": "token_embd", "transformer.wpe": "position_embd",
    "transformer.ln_f": "output_norm", "ln_1": "attn_norm", "ln_2": "ffn_norm",
    "attn.c_attn": "attn_qkv", "attn.c_proj": "attn_output", "mlp.c_fc": "ffn_up",
    "mlp.c_proj": "ffn_down",
    "backbone.embeddings": "token_embd", "backbone.norm_f": "output_norm", "norm": "attn_norm",
    "mixer.in_proj": "ssm_in", "mixer.conv1d": "ssm_conv1d", "mixer.norm": "ssm_norm",
    "mixer.out_proj": "ssm_out", "post_self_attn_layernorm": "post_attention_norm",
    "post_mlp_layernorm": "post_ffw_norm",
    "model.embedding_norm": "token_embd_norm", "ffn_norm": "ffn_norm",
    "operator_norm": "attn_norm",
    "self_attn.out_proj": "attn_output", "self_attn.q_layernorm": "attn_q_norm",
    "self_attn.k_layernorm": "attn_k_norm", "conv.in_proj": "shortconv.in_proj",
    "conv.conv": "shortconv.conv", "conv.out_proj": "shortconv.out_proj", "feed_forward.w1": "ffn_gate",
    "feed_forward.w3": "ffn_up", "feed_forward.w2": "ffn_down",
    "mlp.gate": "ffn_gate_inp", "mlp.shared_expert_gate": "ffn_gate_inp_shexp",
    "mlp.shared_expert.gate_proj": "ffn_gate_shexp", "mlp.shared_expert.up_proj": "ffn_up_shexp",
    "mlp.shared_expert.down_proj": "ffn_down_shexp",
}
# where gemma has norms before and behind
GEMMA = {"post_attention_layernorm": "post_attention_norm",
         "pre_feedforward_layernorm": "ffn_norm", "post_feedforward_layernorm": "post_ffw_norm"}
# whole names in layers
WHOLE = {"mixer.dt_bias": "ssm_dt.bias", "mixer.A_log": "ssm_a", "mixer.D": "ssm_d",
         "mlp.experts.gate_proj": "ffn_gate_exps.weight",
         "mlp.experts.up_proj": "ffn_up_exps.weight",
         "mlp.experts.down_proj": "ffn_down_exps.weight"}
NAMES = {"qwen2_moe": "qwen2moe", "qwen3_moe": "qwen3moe", "mixtral": "llama",
         "gemma3_text": "gemma3"}


# What files of these families cannot say: gates, and the divisor of queries, are as published.
MORE = {
    "mixtral": {}, "mixtral.window": {},
    "qwen2_moe": dict(moe_intermediate_size=32, shared_expert_intermediate_size=64),
    "qwen3_moe": dict(moe_intermediate_size=32, norm_topk_prob=True),
    "olmo2": {},
    "gemma2": dict(head_dim=16, query_pre_attn_scalar=16),
    "gemma2.capped": dict(head_dim=16, query_pre_attn_scalar=16),
    "gemma3_text": dict(head_dim=16, query_pre_attn_scalar=16),
    "gemma3_text.scaled": dict(head_dim=16, query_pre_attn_scalar=16),
    "smollm3": {}, "granite": {}, "granite.plain": {}, "starcoder2": {}, "glm4": {},
    "glm4.whole": {}, "cohere2": {}, "lfm2": dict(block_auto_adjust_ff_dim=False),
}


def renamed(name, gemma=False):
    stem, end = name.rsplit(".", 1)
    parts = stem.split(".")
    whole = WHOLE.get(".".join(name.split(".")[3:]))
    if whole:
        return "blk.%s.%s" % (parts[2], whole)
    if len(parts) > 2 and parts[1] in ("layers", "h"):
        within = ".".join(parts[3:])
        return "blk.%s.%s.%s" % (parts[2], gemma and GEMMA.get(within) or BLOCKS[within], end)
    return "%s.%s" % (BLOCKS[stem], end)


def neighbours(w, heads):
    """Rows of heads: those that are rotated together next to each other."""
    rows = w.shape[0] // heads
    return w.reshape(heads, 2, rows // 2, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape)


def apart(w, heads):
    """The other way round."""
    rows = w.shape[0] // heads
    return w.reshape(heads, rows // 2, 2, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape).copy()


def rounded(w, kind):
    """As the file will hold it, and what that stands for. Vectors stay floats."""
    block = 32 if kind in BLOCKS_OF_32 else 1
    of = gguf.GGMLQuantizationType[kind.upper() if w.ndim > 1 and w.shape[-1] % block == 0 else "F32"]
    stored = gguf.quants.quantize(w, of)
    return of, stored, gguf.quants.dequantize(stored, of).reshape(w.shape).astype(np.float32)


def config_scaling(config):
    how = getattr(config, "rope_parameters", None)
    return how and how.get("rope_type") == "llama3"


def add_longrope(out, config):
    """As converters write phi3's: without a type, and with the factor of cosines and sines."""
    how = config.rope_parameters
    original = config.original_max_position_embeddings
    scale = config.max_position_embeddings / original
    out.add_rope_scaling_orig_ctx_len(original)
    out.add_rope_scaling_attn_factors(
        float(np.sqrt(1 + np.log(scale) / np.log(original))) if scale > 1 else 1.0)
    for which in ("long", "short"):
        out.add_tensor("rope_factors_%s.weight" % which,
                       np.array(how[which + "_factor"], dtype=np.float32))


def divisors(config, model):
    """What llama3's scaling divides each frequency by, as converters write it."""
    how = config.rope_parameters
    dim = model.model.layers[0].self_attn.head_dim
    plain = how["rope_theta"] ** -(np.arange(0, dim, 2) / dim)
    turns = how["original_max_position_embeddings"] * plain / (2 * np.pi)
    low, high = how["low_freq_factor"], how["high_freq_factor"]
    t = np.clip((turns - low) / (high - low), 0, 1)
    return (1 / ((1 - t) / how["factor"] + t)).astype(np.float32)


def add_experts(out, family, config):
    count = getattr(config, "num_local_experts", getattr(config, "num_experts", 0))
    if not count:
        return
    out.add_expert_count(count)
    out.add_expert_used_count(config.num_experts_per_tok)
    if hasattr(config, "moe_intermediate_size"):
        out.add_expert_feed_forward_length(config.moe_intermediate_size)
    if hasattr(config, "shared_expert_intermediate_size"):
        out.add_expert_shared_feed_forward_length(config.shared_expert_intermediate_size)


def add_halves(out, name, w, kind):
    """Of experts, the map under the activation and the other one."""
    half = w.shape[1] // 2
    for part, of in enumerate(("gate_proj", "up_proj")):
        rows = slice(part * half, (part + 1) * half)
        x = np.ascontiguousarray(w.detach().numpy()[:, rows])
        dtype, stored, back = rounded(x, kind)
        out.add_tensor(renamed(name.replace("gate_up_proj", of)), stored, raw_dtype=dtype)
        with torch.no_grad():
            w[:, rows] = torch.from_numpy(back)


def add_gemma(out, family, config):
    out.add_sliding_window(config.sliding_window)
    if family == "gemma2":
        out.add_attn_logit_softcapping(config.attn_logit_softcapping)
        out.add_final_logit_softcapping(config.final_logit_softcapping)
        return
    full, local = (config.rope_parameters[kind + "_attention"] for kind in ("full", "sliding"))
    out.add_rope_freq_base(full["rope_theta"])
    out.add_rope_freq_base_swa(local["rope_theta"])
    if full["rope_type"] == "linear":
        out.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        out.add_rope_scaling_factor(full["factor"])


def add_granite(out, config):
    out.add_attention_scale(config.attention_multiplier)
    out.add_embedding_scale(config.embedding_multiplier)
    out.add_residual_scale(config.residual_multiplier)
    out.add_logit_scale(config.logits_scaling)


def mamba2_shape(name, x, config):
    """As converters turn it: the decay itself, and axes that its program multiplies along."""
    if name.endswith(".A_log"):
        return -np.exp(x)[:, None]
    if name.endswith(".D"):
        return x[:, None]
    if name.endswith("mixer.norm.weight"):
        return x.reshape(config.n_groups, -1)
    return x.squeeze(1) if "conv1d.weight" in name else x


def write_mamba2(folder, config, kind):
    os.makedirs(folder, exist_ok=True)
    model = made(config, 1)
    out = gguf.GGUFWriter(os.path.join(folder, "model.gguf"), "mamba2")
    out.add_context_length(2**20)
    out.add_embedding_length(config.hidden_size)
    out.add_feed_forward_length(0)
    out.add_head_count(0)
    out.add_block_count(config.num_hidden_layers)
    out.add_ssm_conv_kernel(config.conv_kernel)
    out.add_ssm_inner_size(int(config.expand * config.hidden_size))
    out.add_ssm_state_size(config.state_size)
    out.add_ssm_time_step_rank(config.num_heads)
    out.add_ssm_group_count(config.n_groups)
    out.add_layer_norm_rms_eps(config.layer_norm_epsilon)
    for name, w in model.named_parameters():
        if config.tie_word_embeddings and name == "lm_head.weight":
            continue
        x = np.ascontiguousarray(mamba2_shape(name, w.detach().numpy(), config))
        of, stored, back = rounded(x, "f32" if "conv1d" in name else kind)
        out.add_tensor(renamed(name), stored, raw_dtype=of)
        back = np.log(-back) if name.endswith(".A_log") else back
        with torch.no_grad():
            w.copy_(torch.from_numpy(back.reshape(w.shape)))
    finish(out)
    expect(folder, "mamba2", model)


# Types that the package reads but does not write, and where the blocks have their scales.
BYTES = {"Q5_0": [0], "Q5_1": [0, 2], "Q2_K": [80, 82], "Q3_K": [108], "Q4_K": [0, 2],
         "Q5_K": [0, 2], "Q6_K": [208], "IQ4_NL": [0], "IQ4_XS": [0], "MXFP4": []}
MIXED = {"embed_tokens": "Q6_K", "lm_head": "Q5_K", "0.self_attn.q": "Q4_K", "0.self_attn.k": "Q3_K",
         "0.self_attn.v": "Q2_K", "0.mlp.gate": "IQ4_XS", "0.mlp.up": "Q5_K", "0.mlp.down": "Q5_0",
         "1.self_attn.q": "IQ4_NL", "1.self_attn.k": "Q5_1", "1.self_attn.v": "MXFP4",
         "1.mlp.gate": "Q4_K", "1.mlp.up": "Q6_K", "1.mlp.down": "MXFP4"}


def of_bytes(shape, kind, rng):
    """Blocks of any bytes, whose numbers are of a usual size; and these numbers."""
    of = gguf.GGMLQuantizationType[kind]
    block, size = gguf.GGML_QUANT_SIZES[of]
    stored = rng.integers(0, 256, (shape[0], shape[1] // block, size), dtype=np.uint8)
    if kind == "MXFP4":
        stored[..., 0] = rng.integers(121, 124, stored.shape[:2])
    scale = np.float16(1)
    for _ in range(2):
        for at in BYTES[kind]:
            stored[..., at:at + 2] = np.frombuffer(np.float16(scale).tobytes(), np.uint8)
        back = gguf.quants.dequantize(stored.reshape(shape[0], -1), of)
        scale = np.float16(0.1 / back.std())
    return of, stored.reshape(shape[0], -1), back


def write_mixed(folder):
    os.makedirs(folder, exist_ok=True)
    rng = np.random.default_rng(5)
    of, values = FAMILIES["llama"]
    config = getattr(transformers, of)(**dict(
        values, hidden_size=256, intermediate_size=32, head_dim=8, num_attention_heads=2,
        num_key_value_heads=1))
    model = made(config, 1)
    out = gguf.GGUFWriter(os.path.join(folder, "model.gguf"), "llama")
    out.add_embedding_length(256)
    out.add_block_count(config.num_hidden_layers)
    out.add_head_count(2)
    out.add_head_count_kv(1)
    out.add_key_length(8)
    out.add_context_length(config.max_position_embeddings)
    out.add_feed_forward_length(32)
    out.add_layer_norm_rms_eps(config.rms_norm_eps)
    for name, w in model.named_parameters():
        kind = next((MIXED[part] for part in MIXED if part in name), None)
        if not kind:
            out.add_tensor(renamed(name), w.detach().numpy().copy())
            continue
        dtype, stored, back = of_bytes(w.shape, kind, rng)
        out.add_tensor(renamed(name), stored, raw_dtype=dtype)
        heads = 2 if "q_proj" in name else 1 if "k_proj" in name else 0
        with torch.no_grad():
            w.copy_(torch.from_numpy(apart(back, heads) if heads else back))
    finish(out)
    expect(folder, "llama", model)


def write_gpt_oss(folder, config):
    """Experts in MXFP4, as converters write them: each map alone, rows of its outputs."""
    os.makedirs(folder, exist_ok=True)
    model = made(config, 1)
    out = gguf.GGUFWriter(os.path.join(folder, "model.gguf"), "gpt-oss")
    how = config.rope_parameters
    out.add_embedding_length(config.hidden_size)
    out.add_block_count(config.num_hidden_layers)
    out.add_head_count(config.num_attention_heads)
    out.add_head_count_kv(config.num_key_value_heads)
    out.add_key_length(config.head_dim)
    out.add_value_length(config.head_dim)
    out.add_context_length(config.max_position_embeddings)
    out.add_feed_forward_length(config.intermediate_size)
    out.add_expert_feed_forward_length(config.intermediate_size)
    out.add_expert_count(config.num_local_experts)
    out.add_expert_used_count(config.num_experts_per_tok)
    out.add_sliding_window(config.sliding_window)
    out.add_layer_norm_rms_eps(config.rms_norm_eps)
    out.add_rope_freq_base(how["rope_theta"])
    out.add_rope_scaling_type(gguf.RopeScalingType.YARN)
    out.add_rope_scaling_factor(how["factor"])
    out.add_rope_scaling_orig_ctx_len(how["original_max_position_embeddings"])
    names = {"post_attention_layernorm.weight": "post_attention_norm.weight",
             "self_attn.sinks": "attn_sinks.weight", "mlp.router.weight": "ffn_gate_inp.weight",
             "mlp.router.bias": "ffn_gate_inp.bias"}
    for name, w in model.named_parameters():
        within = ".".join(name.split(".")[3:])
        if "mlp.experts" not in name:
            of, stored, back = rounded(w.detach().numpy().copy(), "q8_0")
            own = within in names and "blk.%s.%s" % (name.split(".")[2], names[within])
            out.add_tensor(own or renamed(name), stored, raw_dtype=of)
            with torch.no_grad():
                w.copy_(torch.from_numpy(back))
            continue
        bias, gated = name.endswith("_bias"), "gate_up" in name
        for part, of in ((0, "gate"), (1, "up")) if gated else ((0, "down"),):
            at = (Ellipsis, slice(part, None, 2 if gated else 1))
            x = w.detach().numpy()[at]
            x = np.ascontiguousarray(x if bias else x.swapaxes(1, 2))
            dtype, stored, back = rounded(x, "f32" if bias else "mxfp4")
            out.add_tensor("blk.%s.ffn_%s_exps.%s" % (
                name.split(".")[2], of, "bias" if bias else "weight"), stored, raw_dtype=dtype)
            with torch.no_grad():
                w[at] = torch.from_numpy(np.ascontiguousarray(back if bias else back.swapaxes(1, 2)))
    finish(out)
    expect(folder, "gpt_oss", model)


def finish(out):
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


def write(folder, family, config, kind):
    os.makedirs(folder, exist_ok=True)
    model = made(config, 1)
    out = gguf.GGUFWriter(os.path.join(folder, "model.gguf"), NAMES.get(family, family))
    heads = config.num_attention_heads
    kv = getattr(config, "num_key_value_heads", heads)
    out.add_embedding_length(config.hidden_size)
    out.add_block_count(config.num_hidden_layers)
    out.add_head_count(heads)
    out.add_context_length(config.max_position_embeddings)
    if family == "gpt2":
        out.add_feed_forward_length(4 * config.hidden_size)
        out.add_layer_norm_eps(config.layer_norm_epsilon)
    else:
        out.add_feed_forward_length(config.intermediate_size)
        add_experts(out, family, config)
        if "gemma" in family:
            add_gemma(out, family, config)
        if family == "granite":
            add_granite(out, config)
        if family == "cohere2":
            out.add_logit_scale(config.logit_scale)
            out.add_sliding_window(config.sliding_window)
            out.add_rope_scaling_type(gguf.RopeScalingType.NONE)
        if family == "lfm2":
            out.add_shortconv_l_cache(config.conv_L_cache)
            kv = [kv if kind_ == "full_attention" else 0 for kind_ in config.layer_types]
        out.add_head_count_kv(kv)
        if family in ("starcoder2", "cohere2"):
            out.add_layer_norm_eps(getattr(config, "norm_epsilon", None) or config.layer_norm_eps)
        else:
            out.add_layer_norm_rms_eps(getattr(config, "norm_eps", None) or config.rms_norm_eps)
        if family != "gemma3_text":
            out.add_rope_freq_base(config.rope_parameters["rope_theta"])
        head = next(one.self_attn for one in model.model.layers if hasattr(one, "self_attn")).head_dim
        share = (config.rope_parameters or {}).get("partial_rotary_factor", 1)
        if family != "glm4" or share != 1:  # without the key, the whole head
            out.add_rope_dimension_count(int(head * share))
        if family in ("phi3", "mixtral"):
            out.add_sliding_window(config.sliding_window or 0)
        if family != "phi3":
            out.add_key_length(head)
            out.add_value_length(head)
    if family == "phi3" and config.rope_parameters["rope_type"] == "longrope":
        add_longrope(out, config)
    if config_scaling(config):
        out.add_tensor("rope_freqs.weight", divisors(config, model))
    tied = config.tie_word_embeddings
    for name, w in model.named_parameters():
        if tied and name == "lm_head.weight":
            continue
        x = w.detach().numpy().copy()
        if "experts.gate_up_proj" in name:
            add_halves(out, name, w, kind)
            continue
        if "gemma" in family and "norm" in name:
            x = x + np.float32(1)
            out.add_tensor(renamed(name, True), x)
            with torch.no_grad():
                w.copy_(torch.from_numpy(x.astype(np.float64) - 1))
            continue
        x = x.squeeze(1) if "conv.conv" in name else x
        turned = family == "gpt2" and x.ndim == 2 and ".h." in name
        x = x.T.copy() if turned else x
        of, stored, back = rounded(x, kind)
        if family in ("llama", "mixtral", "smollm3", "granite") and ("q_proj" in name or "k_proj" in name):
            of, stored, _ = rounded(np.ascontiguousarray(
                neighbours(x, heads if "q_proj" in name else kv)), kind)
        behind = "gemma" in family or family == "olmo2"  # glm4 has other names
        out.add_tensor(renamed(name, behind), stored, raw_dtype=of)
        with torch.no_grad():
            w.copy_(torch.from_numpy(back.T.copy() if turned else back).reshape(w.shape))
    finish(out)
    expect(folder, family, model)


def main():
    begin(__doc__)
    for family in ("llama", "qwen2", "qwen3", "gpt2"):
        if len(sys.argv) > 2 and family not in sys.argv[2:]:
            continue
        of, values = FAMILIES[family]
        for kind in TYPES:
            sizes = dict(n_embd=64) if family == "gpt2" else dict(hidden_size=64,
                                                                 intermediate_size=96)
            write(os.path.join(sys.argv[1], "%s_%s" % (family, kind)), family,
                  getattr(transformers, of)(**dict(values, **sizes)), kind)
            print(family, kind)
    for name, more in MORE.items():
        family = name.split(".")[0]
        if len(sys.argv) > 2 and family not in sys.argv[2:]:
            continue
        of, values = FAMILIES[name]
        for kind in ("f32", "q8_0"):
            write(os.path.join(sys.argv[1], "%s_%s" % (name, kind)), family,
                  getattr(transformers, of)(**dict(values, hidden_size=64, intermediate_size=96,
                                                   **more)), kind)
            print(name, kind)
    if len(sys.argv) == 2 or "gpt_oss" in sys.argv[2:]:
        of, values = FAMILIES["gpt_oss"]
        write_gpt_oss(os.path.join(sys.argv[1], "gpt_oss_mxfp4"), getattr(transformers, of)(
            **dict(values, hidden_size=64, intermediate_size=32)))
        print("gpt_oss mxfp4")
    for kind in ("f32", "q8_0"):
        if len(sys.argv) > 2 and "mamba2" not in sys.argv[2:]:
            continue
        config = dict(FAMILIES["mamba2"][1], hidden_size=64, head_dim=16, num_heads=8)
        write_mamba2(os.path.join(sys.argv[1], "mamba2_" + kind), transformers.Mamba2Config(
            **dict(config, tie_word_embeddings=kind == "q8_0")), kind)
        print("mamba2", kind)
    if len(sys.argv) == 2 or "llama" in sys.argv[2:]:
        of, values = FAMILIES["llama"]
        scaling = dict(rope_type="llama3", rope_theta=5000.0, factor=8.0, low_freq_factor=1.0,
                       high_freq_factor=4.0, original_max_position_embeddings=48)
        write(os.path.join(sys.argv[1], "llama_rope_freqs"), "llama",
              getattr(transformers, of)(**dict(values, head_dim=24, rope_parameters=scaling)), "f16")
        print("llama rope_freqs")
    if len(sys.argv) == 2 or "llama" in sys.argv[2:]:
        write_mixed(os.path.join(sys.argv[1], "llama_mixed"))
        print("llama mixed")
    for name in ("phi3.long", "phi3.short", "phi3.window"):
        if len(sys.argv) > 2 and "phi3" not in sys.argv[2:]:
            continue
        of, values = FAMILIES[name]
        write(os.path.join(sys.argv[1], name), "phi3", getattr(transformers, of)(**values), "f16")
        print(name)


main()
