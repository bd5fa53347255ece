#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What `bench export` writes of a model that was trained, as transformers and the package gguf read it.

    scripts/crosscheck/models.py DIR; scripts/crosscheck/gguf_models.py GGUFS
    scripts/crosscheck/export.py BENCH DIR/* GGUFS/*/model.gguf

trains each model for two steps, exports it, and compares the loss of a text: `bench eval` of the
checkpoint, and transformers in double of the exported files. GGUF files are read by the package gguf; those
of which transformers makes the published model are compared likewise. Prints a row for each model: the loss before, the loss
of the checkpoint, and how far the exported files are from it, as a share. Exit code 1: one is farther than 1e-5
(2e-4 where the gated delta rule magnifies what floats round), or tensors of a GGUF file have other names, shapes or types.
Needs torch, transformers, safetensors and gguf (docs/crosschecks.md)."""

import os
import shutil
import subprocess
import sys
import tempfile

import gguf
import torch
import transformers

from models import begin
from training import LIMIT, MAGNIFIED, RATE, ids_of

TOKENS = 32


def run(*command):
    return subprocess.run([str(x) for x in command], check=True, stdout=subprocess.PIPE, text=True).stdout


def loss_of(bench, model, ids, *more):
    said = run(bench, "eval", "--ckpt", model, "--tokens", ids, "--seq", TOKENS, "--mem", 0, "-q", "--backend",
               "ref", "--format", "csv", "--columns", "nll_nats_per_token", "--out", os.path.dirname(ids), *more)
    return float(said.split()[-1])


def outside(folder, ids, **how):
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager", experts_implementation="eager", **how)
    text = torch.from_numpy(ids.astype("int64"))[None]
    logits = model.double().eval()(text[:, :-1], use_cache=False).logits
    return float(torch.nn.functional.cross_entropy(logits[0], text[0, 1:]).detach())


def outside_gguf(folder, path, ids):
    words = next(t for t in gguf.GGUFReader(path).tensors if t.name == "token_embd.weight")
    return outside(folder, ids, gguf_file=os.path.basename(path), vocab_size=int(words.shape[1]))


def same_tensors(old, new):
    """Those of a file, but for the types of what was trained."""
    a, b = gguf.GGUFReader(old), gguf.GGUFReader(new)
    return ([(t.name, list(t.shape)) for t in a.tensors] == [(t.name, list(t.shape)) for t in b.tensors]
            and list(a.fields) == list(b.fields)
            and all(x.tensor_type in (y.tensor_type, gguf.GGMLQuantizationType.F32)
                    for x, y in zip(b.tensors, a.tensors)))


def row(bench, model, out):
    is_file = os.path.isfile(model)
    to, ids = os.path.join(out, "gguf" if is_file else "hf"), os.path.join(out, "ids.bin")
    ckpt = os.path.join(out, "m.safetensors")
    text = ids_of(20)[:TOKENS + 1]
    text.tofile(ids)
    config = {} if is_file else transformers.AutoConfig.from_pretrained(model).to_dict()
    # numbers of 4 bits stay as they are
    some = ["--train-only", "layers.*.attn.*"] if config.get("quantization_config") else []
    run(bench, "train", "--from", model, "--tokens", ids, "--valid", ids, "--seq", TOKENS // 2, "--mem", 0,
        "--batch", 1, "--steps", 2, "--lr", RATE, "--lr-warmup", 0, "--schedule", "constant", "--eval-every", 100,
        "--backend", "ref", "--threads", 1, "--ckpt", ckpt, "-q", *some)
    run(bench, "export", "--to", os.path.basename(to), to, "--ckpt", ckpt, "--from", model, "-q")
    before, want, again = (loss_of(bench, x, ids) for x in (model, ckpt, to))
    limit = LIMIT
    try:
        if is_file:
            got = outside_gguf(out, to, text)
            os.replace(to, ckpt + ".gguf")
            shutil.copy(model, to)
            if abs(outside_gguf(out, to, text) - before) / before > LIMIT:
                got = None  # it takes the published file for another model
            os.replace(ckpt + ".gguf", to)
        else:
            limit = MAGNIFIED if "linear_attention" in (config.get("layer_types") or []) else LIMIT
            got = outside(to, text, **({"quantization_config": transformers.Mxfp4Config(dequantize=True)}
                                       if some else {}))
    except (AssertionError, KeyError, NotImplementedError, RuntimeError, TypeError, ValueError):
        if not is_file:
            raise
        got = None  # a file that transformers does not read
    apart = max(abs(x - want) / want for x in (again, got) if x is not None)
    fine = apart <= limit and before != want and (not is_file or same_tensors(model, to))
    name = os.path.basename(os.path.dirname(model) if is_file else model.rstrip("/"))
    print("| %s | %.7f | %.7f | %.1e%s |" % (name, before, want, apart, "" if got else ", by bench alone"),
          flush=True)
    return fine


def rows(doc, columns, one):
    """A row for each model of the command line; the exit code says whether all were fine."""
    begin(doc, 2)
    fine = True
    print("| model | %s |\n|---|%s" % (" | ".join(columns), "---:|" * len(columns)))
    for model in sys.argv[2:]:
        with tempfile.TemporaryDirectory() as out:
            fine = one(sys.argv[1], model, out) and fine
    sys.exit(not fine)


if __name__ == "__main__":
    rows(__doc__, ("before", "trained", "apart"), row)
