#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""random_hybrid.py DIR [LAYERS]: a made-up published hybrid, to measure memory and time with.

A folder as those of Qwen3.5's smaller text models (qwen3_5_text: three layers of the gated delta rule, then
one of attention; 0.96 billion parameters with 24 layers, the default) with random weights in BF16, and ids.bin,
a text of random ids for bench eval --tokens. Its scores mean nothing.

Tokens a second, the bytes that a token reads and the share of the memory's bandwidth (tokens_per_s,
bytes_moved_min, peak_bw_pct), and memory and seconds from the files to two scores:

    bench --ckpt DIR --corpus DIR/words.txt --bytes 256 --workload decode --mem 64 --mem-kind kv --dtype bf16 \\
        --backend avx512_bf16 --launches 1 --max-time 2 --no-check --format csv
    bench ... --workload segment --seq 128,512 --mem 0 ...
    /usr/bin/time -v bench eval --ckpt DIR --tokens DIR/ids.bin --seq 128 --mem 0 --dtype bf16
"""
import sys

from random_llama import write

WIDTH, INNER, WORDS, PERIOD = 1536, 4608, 65536, 4
HEADS, KV_HEADS, HEAD = 8, 2, 256
RULES, KEYS, VALUES, TAPS = 16, 128, 128, 4


def rule(at):
    """The gated delta rule, behind a convolution of queries, keys and values."""
    rows = RULES * (2 * KEYS + VALUES)
    yield at + "in_proj_qkv.weight", [rows, WIDTH]
    yield at + "in_proj_z.weight", [RULES * VALUES, WIDTH]
    yield at + "in_proj_a.weight", [RULES, WIDTH]
    yield at + "in_proj_b.weight", [RULES, WIDTH]
    yield at + "conv1d.weight", [rows, 1, TAPS]
    yield at + "A_log", [RULES]
    yield at + "dt_bias", [RULES]
    yield at + "norm.weight", [VALUES]
    yield at + "out_proj.weight", [WIDTH, RULES * VALUES]


def attention(at):
    """Queries and their gates are one map."""
    yield at + "q_proj.weight", [2 * HEADS * HEAD, WIDTH]
    yield at + "k_proj.weight", [KV_HEADS * HEAD, WIDTH]
    yield at + "v_proj.weight", [KV_HEADS * HEAD, WIDTH]
    yield at + "q_norm.weight", [HEAD]
    yield at + "k_norm.weight", [HEAD]
    yield at + "o_proj.weight", [WIDTH, HEADS * HEAD]


def tensors(layers):
    yield "model.embed_tokens.weight", [WORDS, WIDTH]
    for layer in range(layers):
        at = f"model.layers.{layer}."
        yield at + "input_layernorm.weight", [WIDTH]
        yield at + "post_attention_layernorm.weight", [WIDTH]
        if (layer + 1) % PERIOD == 0:
            yield from attention(at + "self_attn.")
        else:
            yield from rule(at + "linear_attn.")
        yield at + "mlp.gate_proj.weight", [INNER, WIDTH]
        yield at + "mlp.up_proj.weight", [INNER, WIDTH]
        yield at + "mlp.down_proj.weight", [WIDTH, INNER]
    yield "model.norm.weight", [WIDTH]


def main():
    layers = int(sys.argv[2]) if len(sys.argv) > 2 else 24
    write(sys.argv[1], {
        "model_type": "qwen3_5_text", "architectures": ["Qwen3_5ForCausalLM"], "hidden_act": "silu",
        "hidden_size": WIDTH, "intermediate_size": INNER, "max_position_embeddings": 32768,
        "num_attention_heads": HEADS, "num_hidden_layers": layers, "num_key_value_heads": KV_HEADS,
        "head_dim": HEAD, "full_attention_interval": PERIOD, "linear_conv_kernel_dim": TAPS,
        "linear_num_key_heads": RULES, "linear_num_value_heads": RULES, "linear_key_head_dim": KEYS,
        "linear_value_head_dim": VALUES, "rms_norm_eps": 1e-6, "tie_word_embeddings": True,
        "rope_parameters": {"rope_type": "default", "rope_theta": 1e7, "partial_rotary_factor": 0.25},
        "vocab_size": WORDS,
    }, tensors(layers))


if __name__ == "__main__":
    main()
