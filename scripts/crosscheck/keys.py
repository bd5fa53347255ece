#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What keys of config.json do in transformers: without each, and with another value.

    scripts/crosscheck/keys.py tests/golden-import > tests/golden-import/keys.json

takes one folder of each family and writes a row for each key of its class of configs: the folder, the key,
its usual value, the sum of losses without it, another value, and the sum with that, in double
precision. null: the weights do not fit, or there is no such value. Rows in which both are null are left
out. Needs torch, transformers and safetensors (docs/crosschecks.md)."""

import json
import os
import sys
import tempfile

import numpy as np
import torch
import transformers

from models import begin

TOKENS = 24
FOLDERS = ["deepseek_v2", "gemma2_capped", "gemma3_text", "gpt2_plain", "gpt_oss", "llama_gqa_bf16",
           "mamba2", "mistral_window", "mixtral_window", "neox_parallel_f16", "olmo2", "phi3_window",
           "qwen2_bias", "qwen2_moe", "qwen3_5_text", "qwen3_moe_normed", "qwen3_next", "qwen3_qknorm",
           "cohere2_types", "glm4", "granite", "granite_hybrid", "lfm2", "smollm3_list", "starcoder2_window"]
# Of tokens, training, tasks and types; layers by number, which golden folders have; what a version writes
# into weights that it has read.
ASIDE = {"vocab_size", "initializer_range", "use_cache", "pretraining_tp", "architectures", "model_type",
         "dtype", "torch_dtype", "transformers_version", "is_decoder", "add_cross_attention", "layer_types",
         "mlp_only_layers", "tie_word_embeddings", "use_bidirectional_attention", "_name_or_path",
         "rescale_prenorm_residual", "reorder_and_upcast_attn"}
ASIDE_WORDS = ("token_id", "dropout", "pdrop", "summary", "time_step", "rope_scaling", "output_")
# Spellings that newer versions still read.
OLDER = {"rope_theta": "rope_theta", "rotary_emb_base": "rope_theta", "rotary_pct": "partial_rotary_factor"}
ACTS = ("gelu", "silu", "relu", "gelu_pytorch_tanh")


def other(key, value):
    """Off the usual value."""
    if isinstance(value, bool):
        return not value
    if key in ("n_group", "topk_group"):
        return {"n_group": 2, "topk_group": 3}[key]
    if "eps" in key:
        return 0.03
    if isinstance(value, float) or "base" in key:
        return value * 0.75
    if isinstance(value, int):
        return value - 1 if value > 1 else value + 1
    if isinstance(value, str) and value in ACTS:
        return ACTS[(ACTS.index(value) + 1) % 2]
    if isinstance(value, dict) and "rope_theta" in value:
        return dict(value, rope_theta=value["rope_theta"] * 0.75)
    return {"sliding_window": 3, "attn_logit_softcapping": 2.0, "final_logit_softcapping": 2.0,
            "head_dim": 6, "n_inner": 8, "num_key_value_heads": 1}.get(key)


def loss(folder, config):
    """The sum of losses of a text; None = it is none of the program's."""
    ids = torch.from_numpy(np.arange(TOKENS + 1) * 7 % 60)[None]
    with tempfile.TemporaryDirectory() as to:
        for name in os.listdir(folder):
            if name.endswith((".safetensors", ".index.json")) and name != "expect.safetensors":
                os.symlink(os.path.abspath(os.path.join(folder, name)), os.path.join(to, name))
        with open(os.path.join(to, "config.json"), "w") as f:
            json.dump(config, f)
        try:
            with torch.device("meta"):  # sizes by default are those of large models
                sizes = transformers.AutoModelForCausalLM.from_config(
                    transformers.AutoConfig.from_pretrained(to)).num_parameters()
            if sizes > 1e6:
                return None
            model, info = transformers.AutoModelForCausalLM.from_pretrained(
                to, dtype=torch.float32, attn_implementation="eager",
                experts_implementation="eager", output_loading_info=True)
            tied = {"lm_head.weight", "embed_out.weight"}
            missing, left = set(info["missing_keys"]), set(info["unexpected_keys"])
            if missing - tied or info["mismatched_keys"] or any(
                    not name.endswith("masked_bias") and name not in tied for name in left):
                return None
            if missing and not model.config.tie_word_embeddings:
                return None
            with torch.no_grad():
                logits = model.double().eval()(ids[:, :-1], use_cache=False).logits
            sum_ = torch.nn.functional.cross_entropy(logits[0], ids[0, 1:], reduction="sum").item()
        except Exception:  # whatever the package says of a value that it does not take
            return None
    return sum_ if sum_ == sum_ else None


def rows_of(folder):
    with open(os.path.join(folder, "config.json")) as f:
        config = json.load(f)
    config.pop("time_step_limit", None)  # which not every version can read again
    usual = type(transformers.AutoConfig.from_pretrained(folder))().to_dict()
    for key, newer in OLDER.items():
        if key in config:
            usual[key] = usual["rope_parameters"][newer]
    if any(key in config for key in OLDER):
        usual.pop("rope_parameters")
    for key in sorted((set(config) | set(usual)) - ASIDE):
        if any(word in key for word in ASIDE_WORDS) or key not in usual:
            continue
        if key not in config and key in transformers.PretrainedConfig().to_dict():
            continue
        less = {k: v for k, v in config.items() if k != key}
        now = config.get(key, usual[key])
        changed = other(key, now if now is not None else usual[key])
        absent, default = loss(folder, less), usual[key]
        if absent is not None:  # it may follow from others
            default = transformers.AutoConfig.for_model(**less).to_dict().get(key, default)
        with_other = loss(folder, dict(config, **{key: changed})) if changed is not None else None
        if absent is not None or with_other is not None:
            yield [os.path.basename(folder), key, default, absent, changed, with_other]


def main():
    begin(__doc__)
    rows = [json.dumps(row) for name in FOLDERS for row in rows_of(os.path.join(sys.argv[1], name))]
    print("[\n%s\n]" % ",\n".join(rows))


if __name__ == "__main__":
    main()
