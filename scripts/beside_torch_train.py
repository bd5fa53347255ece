#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fine-tuning GPT-2 beside PyTorch, in turns: tokens a second of steps of AdamW on the same weights and ids.

    scripts/beside_torch_train.py BENCH [--rounds 3] [--steps 6] [--batch 4] [--seq 64] [--threads 2]

The model is gpt2's 124 million parameters with random weights (12 layers of 768, 12 heads, 50257 words), the
batch that of llm.c's example for CPUs. PyTorch runs transformers' model without dropout, eager, in f32, with
the fused AdamW; the first step of either is left out. Needs torch, transformers and numpy."""

import argparse
import csv
import glob
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy
import torch
import transformers


def write_model(o):
    torch.manual_seed(1)
    config = transformers.GPT2Config(n_layer=o.layers, n_embd=o.width, n_head=o.heads, resid_pdrop=0,
                                     embd_pdrop=0, attn_pdrop=0)
    transformers.GPT2LMHeadModel(config).save_pretrained(os.path.join(o.folder, "model"))
    ids = numpy.random.default_rng(1).integers(0, config.vocab_size, 1 << 13, dtype=numpy.uint16)
    ids.tofile(os.path.join(o.folder, "ids.bin"))
    return torch.from_numpy(ids.astype(numpy.int64))


def by_torch(o, ids):
    torch.set_num_threads(o.threads)
    model = transformers.GPT2LMHeadModel.from_pretrained(os.path.join(o.folder, "model")).train()
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    times, n = [], o.batch * o.seq
    for step in range(o.steps + 1):
        x = ids[step * n:(step + 1) * n + 1]
        start = time.perf_counter()
        logits = model(x[:-1].view(o.batch, o.seq), use_cache=False).logits
        loss = torch.nn.functional.cross_entropy(logits.view(n, -1), x[1:])
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        times.append(time.perf_counter() - start)
    return n / statistics.median(times[1:])


def by_bench(o, _):
    """Its table has a row for each step; that of the last one counts a validation, too."""
    ckpt = os.path.join(o.folder, "tuned.safetensors")
    command = [o.bench, "train", "--from", os.path.join(o.folder, "model"), "--tokens",
               os.path.join(o.folder, "ids.bin"), "--tokens-type", "uint16", "--batch", str(o.batch), "--seq",
               str(o.seq), "--steps", str(o.steps + 2), "--lr", "1e-4", "--grad-clip", "1", "--log-every", "1",
               "--eval-every", str(o.steps + 2), "--threads", str(o.threads), "--ckpt", ckpt]
    r = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if r.returncode:
        sys.exit(f"beside_torch_train.py: exit {r.returncode}: {r.stderr.strip()[-400:]}")
    with open(ckpt + ".train.csv") as f:
        rows = [float(row["tokens_per_s"]) for row in csv.DictReader(f) if row["tokens_per_s"]]
    for path in glob.glob(ckpt + "*"):
        os.remove(path)
    return statistics.median(rows[1:-1])


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("bench")
    for name, usual in (("rounds", 3), ("steps", 6), ("batch", 4), ("seq", 64), ("threads", 2),
                        ("layers", 12), ("width", 768), ("heads", 12)):
        p.add_argument("--" + name, type=int, default=usual, help=f"[{usual}]")
    o = p.parse_args()
    transformers.logging.set_verbosity_error()
    got = {"bench": [], "PyTorch": []}
    with tempfile.TemporaryDirectory() as o.folder:
        ids = write_model(o)
        for turn in range(o.rounds):
            for name, run in sorted({"bench": by_bench, "PyTorch": by_torch}.items(), reverse=turn % 2):
                got[name].append(run(o, ids))
    for name, speeds in got.items():
        print(f"{name}: {statistics.median(speeds):.1f} tokens/s [{min(speeds):.1f} {max(speeds):.1f}]")


if __name__ == "__main__":
    main()
