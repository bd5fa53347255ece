#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""beside_llama.py BENCH QUANTIZE NAME=COMMAND...: bench beside llama.cpp and its relatives, in turns.

Writes a llama with random weights as a GGUF file, has QUANTIZE (their llama-quantize) make its narrow
forms, and lets each COMMAND (a llama-bench, with options if it needs some) measure prefill and decode of
them, and bench of a llama of the same sizes, one after another, round by round. The table has tokens per second, the median
of the rounds, and the least and the most. Nothing else should run.

    scripts/beside_llama.py ./bench ~/llama.cpp/build/bin/llama-quantize \\
        llama.cpp=~/llama.cpp/build/bin/llama-bench 'ik, repacked=~/ik_llama.cpp/build/bin/llama-bench -rtr 1'
"""
import argparse
import csv
import io
import json
import os
import random
import shlex
import statistics
import struct
import subprocess
import sys
import tempfile

# What bench, the file and its quantiser call a type.
TYPES = {
    "f32": (["--dtype", "f32"], None),
    "bf16": (["--dtype", "bf16"], "BF16"),
    "8 bits": (["--dtype", "q8", "--act-dtype", "q8"], "Q8_0"),
    "4 bits": (["--dtype", "q4", "--act-dtype", "q8"], "Q4_0"),
    "4 bits + shift": (["--dtype", "q4_1", "--act-dtype", "q8"], "Q4_1"),
}
PREFILL, DECODE = (128, 512), 64


def text(s):
    return struct.pack("<Q", len(s)) + s.encode()


def entry(key, value):
    """A key of a GGUF file: 4 is an unsigned, 6 a float, 8 a text."""
    if isinstance(value, str):
        return text(key) + struct.pack("<I", 8) + text(value)
    if isinstance(value, float):
        return text(key) + struct.pack("<If", 6, value)
    return text(key) + struct.pack("<II", 4, value)


def tensors(o):
    kv = o.width // o.heads * o.kv_heads
    yield "token_embd.weight", (o.width, o.vocab)
    for i in range(o.layers):
        for name, shape in (
            ("attn_norm", (o.width,)), ("attn_q", (o.width, o.width)), ("attn_k", (o.width, kv)),
            ("attn_v", (o.width, kv)), ("attn_output", (o.width, o.width)), ("ffn_norm", (o.width,)),
            ("ffn_gate", (o.width, o.inner)), ("ffn_up", (o.width, o.inner)),
            ("ffn_down", (o.inner, o.width)),
        ):
            yield f"blk.{i}.{name}.weight", shape
    yield "output_norm.weight", (o.width,)
    yield "output.weight", (o.width, o.vocab)


def write_model(path, o):
    keys = {
        "general.architecture": "llama", "general.name": "random", "llama.context_length": 2048,
        "llama.embedding_length": o.width, "llama.block_count": o.layers,
        "llama.feed_forward_length": o.inner, "llama.attention.head_count": o.heads,
        "llama.attention.head_count_kv": o.kv_heads,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "llama.rope.dimension_count": o.width // o.heads, "llama.vocab_size": o.vocab,
        "tokenizer.ggml.model": "no_vocab",
    }
    noise = random.Random(1)
    some = struct.pack("<4099f", *(noise.gauss(0, 0.02) for _ in range(4099)))
    with open(path, "wb") as f:
        all_ = list(tensors(o))
        f.write(b"GGUF" + struct.pack("<IQQ", 3, len(all_), len(keys)))
        for key, value in keys.items():
            f.write(entry(key, value))
        at = 0
        for name, shape in all_:
            f.write(text(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *shape))
            f.write(struct.pack("<IQ", 0, at))
            at += -(-size(shape) // 32) * 32
        f.write(b"\0" * (-f.tell() % 32))
        for name, shape in all_:
            n = size(shape)
            f.write((some * (n // len(some) + 1))[:n] if len(shape) > 1 else struct.pack("<f", 1) * shape[0])
            f.write(b"\0" * (-n % 32))


def size(shape):
    n = 4
    for x in shape:
        n *= x
    return n


def run(command):
    r = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if r.returncode:
        sys.exit(f"beside_llama.py: {shlex.join(command)}: exit {r.returncode}: {r.stderr.strip()[-400:]}")
    return r.stdout


def by_bench(o, kind):
    """Tokens a second of bench: {'prefill 128': ..., 'decode': ...}."""
    sizes = ["--layers", o.layers, "--d-model", o.width, "--heads", o.heads, "--kv-heads", o.kv_heads,
             "--d-inner", o.inner, "--vocab", o.vocab]
    got = {}
    for work in (["--workload", "segment", "--seq", ",".join(map(str, PREFILL)), "--mem", "0"],
                 ["--workload", "decode", "--mem", str(DECODE // 2), "--mem-kind", "kv"]):
        out = run([o.bench, "--variant", "llama", "--ckpt", "none"] + list(map(str, sizes)) + ["--threads", str(o.threads), "--backend", o.backend,
                   "--launches", "1", "--max-time", str(o.seconds), "--no-check", "--format", "csv", "--raw",
                   "none", "--quiet", "--out", o.folder] + work + TYPES[kind][0])
        for row in csv.DictReader(io.StringIO(out)):
            what = "decode" if row["workload"] == "decode" else "prefill " + row["seq_tokens"]
            if row["status"] == "ok":
                got[what] = max(got.get(what, 0), float(row["tokens_per_s"]))
    return got


def by_llama(o, command, model):
    out = run(command + ["-m", model, "-p", ",".join(map(str, PREFILL)), "-n", str(DECODE), "-t",
                         str(o.threads), "-r", str(o.repeat), "-o", "json"])
    return {f"prefill {r['n_prompt']}" if r["n_prompt"] else "decode": r["avg_ts"] for r in json.loads(out)}


def number(x):
    return f"{x:.0f}" if x >= 100 else f"{x:.1f}"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("bench")
    p.add_argument("quantize")
    p.add_argument("others", nargs="+", metavar="NAME=COMMAND")
    for name, usual in (("threads", 2), ("rounds", 3), ("seconds", 2), ("repeat", 3), ("layers", 8),
                        ("width", 1024), ("heads", 16), ("kv-heads", 4), ("inner", 2816), ("vocab", 256)):
        p.add_argument("--" + name, type=int, default=usual, help=f"[{usual}]")
    p.add_argument("--backend", default="fast", help="of bench; the fastest of a list counts [fast]")
    p.add_argument("--types", default=",".join(TYPES), help="some of " + ", ".join(TYPES))
    o = p.parse_args()
    others = {}
    for other in o.others:
        name, equals, command = other.partition("=")
        if not equals:
            p.error(f"{other}: no NAME=COMMAND")
        others[name] = [os.path.expanduser(w) for w in shlex.split(command)]
    got = {}
    with tempfile.TemporaryDirectory() as o.folder:
        models = {kind: os.path.join(o.folder, kind.replace(" ", "") + ".gguf") for kind in o.types.split(",")}
        plain = os.path.join(o.folder, "f32.gguf")
        write_model(plain, o)
        for kind, path in models.items():
            if TYPES[kind][1]:
                run([o.quantize, "--pure", plain, path, TYPES[kind][1], str(o.threads)])
        for _ in range(o.rounds):
            for kind, path in models.items():
                turns = {"bench": lambda: by_bench(o, kind)}
                for name, command in others.items():
                    turns[name] = lambda command=command: by_llama(o, command, path)
                for name in random.sample(list(turns), len(turns)):
                    for what, speed in turns[name]().items():
                        got.setdefault((kind, what), {}).setdefault(name, []).append(speed)
    names = ["bench"] + list(others)
    print("| type | tokens/s of | " + " | ".join(names) + " |\n|---|---|" + "---:|" * len(names))
    for (kind, what), row in got.items():
        cells = [f"{number(statistics.median(row[n]))} [{number(min(row[n]))} {number(max(row[n]))}]"
                 if n in row else "-" for n in names]
        print(f"| {kind} | {what} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
