#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""LoRA of `bench train --lora`, beside peft.

    scripts/crosscheck/models.py DIR
    scripts/crosscheck/lora.py BENCH DIR/*

For each model: `bench` trains products of low rank for three steps, and peft in double does the same from
the same A; loss and norm of the gradient of each step are compared. The adapter that `bench export --to peft` writes
is read by peft, and by `bench eval --lora`, and merged by `bench export --to hf`: the loss of a text, as of
the checkpoint. An adapter that peft makes, of random numbers, with ranks and alphas by patterns, with
use_rslora and without, is read by `bench eval --lora`. Prints a row for each model: the norm, and the
largest difference of training, of writing and of reading, as shares. Exit code 1: one is farther than
1e-5, or 2e-4 where the gated delta rule magnifies what floats round. Needs torch, transformers, peft and
safetensors (docs/crosschecks.md)."""

import csv
import json
import os

import numpy as np
import peft
import torch
import transformers

from export import TOKENS, loss_of, outside, rows, run
from models import SEED
from training import LIMIT, MAGNIFIED, RATE, ids_of

SEGMENT, STEPS, RANK, ALPHA = 16, 3, 3, 5


def model_of(folder):
    config = transformers.AutoConfig.from_pretrained(folder)
    blocks = {"quantization_config": transformers.Mxfp4Config(dequantize=True)}
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager", experts_implementation="eager",
        **(blocks if hasattr(config, "quantization_config") else {})).eval()
    model.get_input_embeddings().padding_idx = None
    return model


def loss(model, text):
    text = torch.from_numpy(text.astype(np.int64))[None]
    logits = model(text[:, :-1], use_cache=False).logits
    return torch.nn.functional.cross_entropy(logits[0], text[0, 1:])


def maps_of(folder):
    """What peft adapts, too: it takes names of networks for those of all experts, which are no modules, and
    refuses the last map of mamba2."""
    config = transformers.AutoConfig.from_pretrained(folder)
    if config.model_type == "mamba2":
        return "layers.*.attn.in*"
    return "layers.*.attn.*" if any("expert" in key for key in config.to_dict()) else "layers.*"


def trained(bench, folder, out, ids, steps):
    """Loss and norm of each step; the checkpoint and the adapter are in `out`."""
    ckpt, on = os.path.join(out, "m.safetensors"), maps_of(folder)
    run(bench, "train", "--from", folder, "--lora", "r=%d,alpha=%d,on=%s" % (RANK, ALPHA, on), "--tokens", ids,
        "--valid", ids, "--seq", SEGMENT, "--mem", 0, "--batch", 1, "--steps", steps, "--lr", RATE, "--lr-warmup", 0,
        "--schedule", "constant", "--grad-clip", 0, "--log-every", 1, "--eval-every", 100, "--backend", "ref",
        "--threads", 1, "--force", "--ckpt", ckpt, "-q")
    run(bench, "export", "--to", "peft", os.path.join(out, "adapter"), "--force", "--ckpt", ckpt, "-q")
    with open(ckpt + ".train.csv") as f:
        return [(float(r["loss_nats"]), float(r["grad_norm"])) for r in csv.DictReader(f) if r["loss_nats"]][:steps]


def by_peft(folder, adapter, text):
    model = peft.PeftModel.from_pretrained(model_of(folder), adapter, is_trainable=True).double().eval()
    some = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(some, lr=RATE, betas=(0.9, 0.999), eps=1e-8, weight_decay=0)
    steps = []
    for n in range(STEPS):
        optimizer.zero_grad()
        value = loss(model, text[n * SEGMENT:(n + 1) * SEGMENT + 1])
        value.backward()
        steps.append((float(value.detach()), sum(float(p.grad.square().sum()) for p in some) ** 0.5))
        optimizer.step()
    return steps


def random_adapter(folder, to, like, rslora):
    """Of the modules that have one in `like`."""
    with open(os.path.join(like, "adapter_config.json")) as f:
        names = json.load(f)["target_modules"]
    last = names[0].rsplit(".", 1)[1]
    config = peft.LoraConfig(r=4, lora_alpha=7, target_modules=names, use_rslora=rslora, task_type="CAUSAL_LM",
                             rank_pattern={last: 2}, alpha_pattern={r"layers.0.*" + last: 11, last: 5})
    torch.manual_seed(SEED + rslora)
    model = peft.get_peft_model(model_of(folder), config).eval()
    for name, p in model.named_parameters():
        if ".lora_" in name:
            torch.nn.init.normal_(p, std=0.05)
    model.save_pretrained(to)  # which sorts the patterns
    return peft.PeftModel.from_pretrained(model_of(folder), to).double().eval()


def row(bench, folder, out):
    ids, adapter, hf = (os.path.join(out, x) for x in ("ids.bin", "adapter", "hf"))
    config = transformers.AutoConfig.from_pretrained(folder)
    text = ids_of(config.vocab_size)
    text.tofile(ids)
    trained(bench, folder, out, ids, 1)  # B was 0, so A is as it began
    first = os.path.join(out, "first")
    os.rename(adapter, first)
    with_zero(first)
    got, want = trained(bench, folder, out, ids, STEPS), by_peft(folder, first, text)
    apart = [max(abs(g - w) / w for of in zip(got, want) for g, w in zip(*of))]
    short = text[:TOKENS + 1]
    short.tofile(ids)
    ckpt = os.path.join(out, "m.safetensors")
    run(bench, "export", "--to", "hf", hf, "--ckpt", ckpt, "--from", folder, "-q")
    now = loss_of(bench, ckpt, ids)
    blocks = {"quantization_config": transformers.Mxfp4Config(dequantize=True)}
    theirs = [float(loss(peft.PeftModel.from_pretrained(model_of(folder), adapter).double().eval(), short).detach()),
              outside(hf, short, **(blocks if hasattr(config, "quantization_config") else {})),
              loss_of(bench, folder, ids, "--lora", adapter)]
    apart.append(max(abs(x - now) / now for x in theirs))
    apart.append(0)
    for rslora in (False, True):
        foreign = os.path.join(out, "foreign%d" % rslora)
        want_loss = float(loss(random_adapter(folder, foreign, adapter, rslora), short).detach())
        apart[2] = max(apart[2], abs(loss_of(bench, folder, ids, "--lora", foreign) - want_loss) / want_loss)
    limit = MAGNIFIED if "linear_attention" in (getattr(config, "layer_types", None) or []) else LIMIT
    print("| %s | %.5f | %s |" % (os.path.basename(folder.rstrip("/")), got[0][1],
                                  " | ".join("%.1e" % x for x in apart)), flush=True)
    return max(apart) <= limit


def with_zero(adapter):
    """B before the step."""
    from safetensors.torch import load_file, save_file
    path = os.path.join(adapter, "adapter_model.safetensors")
    tensors = load_file(path)
    save_file({k: torch.zeros_like(v) if ".lora_B" in k else v for k, v in tensors.items()}, path,
              metadata={"format": "pt"})


if __name__ == "__main__":
    rows(__doc__, ("norm", "training", "writing", "reading"), row)
