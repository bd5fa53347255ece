#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""random_llama.py DIR [LAYERS]: a made-up published model, to measure memory and time with.

A folder as TinyLlama's (llama, 1.1 billion parameters with 22 layers, the default) with random
weights in BF16, and ids.bin, a text of random ids for bench eval --tokens. Its scores mean nothing.
"""
import json
import os
import struct
import sys

WIDTH, HEADS, KV_HEADS, HEAD, INNER, WORDS = 2048, 32, 4, 64, 5632, 32000


def tensors(layers):
    yield "model.embed_tokens.weight", [WORDS, WIDTH]
    for layer in range(layers):
        at = f"model.layers.{layer}."
        yield at + "input_layernorm.weight", [WIDTH]
        yield at + "post_attention_layernorm.weight", [WIDTH]
        yield at + "self_attn.q_proj.weight", [HEADS * HEAD, WIDTH]
        yield at + "self_attn.k_proj.weight", [KV_HEADS * HEAD, WIDTH]
        yield at + "self_attn.v_proj.weight", [KV_HEADS * HEAD, WIDTH]
        yield at + "self_attn.o_proj.weight", [WIDTH, HEADS * HEAD]
        yield at + "mlp.gate_proj.weight", [INNER, WIDTH]
        yield at + "mlp.up_proj.weight", [INNER, WIDTH]
        yield at + "mlp.down_proj.weight", [WIDTH, INNER]
    yield "model.norm.weight", [WIDTH]
    yield "lm_head.weight", [WORDS, WIDTH]


def numbers(shape):
    n = 1
    for size in shape:
        n *= size
    return n


def noise(n):
    """n BF16 numbers of either sign in [1/128, 1/32): the exponent's low bit and below at random."""
    block = bytearray(os.urandom(2 * n))
    block[1::2] = bytes((b & 0x80) | 0x3C for b in block[1::2])
    return bytes(block)


def write(folder, config, tensors):
    """The folder of a published model of these (name, shape); a text of 257 ids, and a list of words
    for a tokenizer with a text of 512."""
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump(config, f, indent=1)
    header, at = {}, 0
    for name, shape in tensors:
        end = at + 2 * numbers(shape)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, end]}
        at = end
    text = json.dumps(header).encode()
    some = noise(1 << 22)
    with open(os.path.join(folder, "model.safetensors"), "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        while at > 0:
            f.write(some[:at])
            at -= len(some)
    with open(os.path.join(folder, "vocab.txt"), "w") as f:
        f.write("<eos>\n<unk>\n" + "".join(f"w{i}\n" for i in range(2, config["vocab_size"])))
    with open(os.path.join(folder, "words.txt"), "w") as f:
        f.write(" ".join(f"w{2 + i * 7919 % (config['vocab_size'] - 2)}" for i in range(512)))
    with open(os.path.join(folder, "ids.bin"), "wb") as f:
        ids = os.urandom(2 * 257)
        f.write(b"".join(struct.pack("<i", int.from_bytes(ids[i:i + 2], "little") % config["vocab_size"])
                         for i in range(0, len(ids), 2)))


def main():
    layers = int(sys.argv[2]) if len(sys.argv) > 2 else 22
    write(sys.argv[1], {
        "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_act": "silu",
        "hidden_size": WIDTH, "intermediate_size": INNER, "max_position_embeddings": 2048,
        "num_attention_heads": HEADS, "num_hidden_layers": layers, "num_key_value_heads": KV_HEADS,
        "rms_norm_eps": 1e-5, "tie_word_embeddings": False, "vocab_size": WORDS,
    }, tensors(layers))


if __name__ == "__main__":
    main()
