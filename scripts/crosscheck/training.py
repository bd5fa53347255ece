#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The first two steps of `bench train --from`, compared with the gradients of transformers.

    scripts/crosscheck/models.py DIR
    scripts/crosscheck/training.py BENCH DIR/*

trains each model for two steps, and computes the same with transformers in double precision: the loss, the
norm of the gradient of all parameters, one step of AdamW, and both again. Prints a row for each model: loss
and norm of transformers at the first step, and how far `bench` is from all four numbers, as shares of
them. Exit code 1: one is farther than 1e-5, or 2e-4 where the gated delta rule
magnifies what floats round. Needs torch, transformers and safetensors
(docs/crosschecks.md)."""

import csv
import os
import subprocess
import sys
import tempfile

import numpy as np
import torch
import transformers

from models import SEED, begin

TOKENS, SEGMENTS, RATE = 16, 2, 1e-3
LIMIT, MAGNIFIED = 1e-5, 2e-4


def ids_of(words):
    """A text in which each step has a segment of its own."""
    return np.random.default_rng(SEED).integers(0, words, TOKENS * 6 + 1, dtype=np.int32)


def steps_of(folder, ids):
    """Loss and norm of the gradient of each step, in double."""
    config = transformers.AutoConfig.from_pretrained(folder)
    blocks = {"quantization_config": transformers.Mxfp4Config(dequantize=True)}
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager", experts_implementation="eager",
        **(blocks if hasattr(config, "quantization_config") else {})).double()
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, betas=(0.9, 0.999), eps=1e-8,
                                  weight_decay=0)
    model.eval()  # nothing is dropped
    model.get_input_embeddings().padding_idx = None  # which would have no gradient
    steps = []
    for n in range(SEGMENTS):
        text = torch.from_numpy(ids[n * TOKENS:(n + 1) * TOKENS + 1].astype(np.int64))[None]
        optimizer.zero_grad()
        logits = model(text[:, :-1], use_cache=False).logits
        loss = torch.nn.functional.cross_entropy(logits[0], text[0, 1:])
        loss.backward()
        norm = sum(float(p.grad.square().sum()) for p in model.parameters()
                   if p.grad is not None) ** 0.5
        steps.append((float(loss.detach()), norm))
        optimizer.step()
    return steps


def trained(bench, folder, ids):
    """The same of bench."""
    with tempfile.TemporaryDirectory() as out:
        path, to = os.path.join(out, "ids.bin"), os.path.join(out, "m.safetensors")
        ids.tofile(path)
        subprocess.run(
            [bench, "train", "--from", folder, "--tokens", path, "--valid", path, "--seq",
             str(TOKENS), "--mem", "0", "--batch", "1", "--steps", str(SEGMENTS), "--lr", str(RATE),
             "--lr-warmup", "0", "--schedule", "constant", "--grad-clip", "0", "--log-every", "1",
             "--eval-every", "100", "--backend", "ref", "--threads", "1", "--ckpt", to, "-q"],
            check=True, stdout=subprocess.DEVNULL)
        with open(to + ".train.csv") as f:
            rows = [r for r in csv.DictReader(f) if r["loss_nats"]]
    return [(float(r["loss_nats"]), float(r["grad_norm"])) for r in rows[:SEGMENTS]]


def main():
    begin(__doc__, 2)
    fine = True
    print("| model | loss | norm | loss 1 | norm 1 | loss 2 | norm 2 |\n|---|%s" % ("---:|" * 6))
    for folder in sys.argv[2:]:
        config = transformers.AutoConfig.from_pretrained(folder)
        ids, kinds = ids_of(config.vocab_size), getattr(config, "layer_types", None) or []
        want, got = steps_of(folder, ids), trained(sys.argv[1], folder, ids)
        apart = [abs(g - w) / w for of in zip(got, want) for g, w in zip(*of)]
        print("| %s | %.7f | %.7f | %s |" % (os.path.basename(folder.rstrip("/")), *want[0],
                                             " | ".join("%.1e" % x for x in apart)), flush=True)
        fine = fine and max(apart) <= (MAGNIFIED if "linear_attention" in kinds else LIMIT)
    sys.exit(not fine)


if __name__ == "__main__":
    main()
