#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A GPT of characters trained in PyTorch, with its own attention and with that of libbenchattn.

    python3 contrib/python/train_torch.py TEXT [--setting cpu|gpu|tiny] [--steps N] [--threads N]

Two models begin with the same weights and see the same batches, a few steps each in turns, so that a slow
minute hits both. They differ in one call: scaled_dot_product_attention (before PyTorch 2, its products) or
benchattn.attention. The settings are those that nanoGPT publishes for Shakespeare's characters: cpu has
4 layers of 128, 64 tokens and 2000 steps, gpu 6 layers of 384, 256 tokens and 5000 steps; tiny only shows
that it runs. Prints Markdown: time of a step with quartiles, what the whole training would take, and the
loss of both, which must agree.
"""
import argparse
import copy
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

import benchattn

# layers, heads, width, tokens, sequences, steps of the whole training, rate
SETTINGS = {"cpu": (4, 4, 128, 64, 12, 2000, 1e-3), "gpu": (6, 6, 384, 256, 64, 5000, 1e-3),
            "tiny": (1, 2, 16, 16, 2, 20, 1e-3)}
TURN = 5  # steps of one model before it is the other's turn


def fused(q, k, v):
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2)


def products(q, k, v):
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    scores = q @ k.transpose(2, 3) * q.shape[3] ** -0.5
    later = torch.ones(scores.shape[2:], dtype=torch.bool).triu(1)
    return (torch.softmax(scores.masked_fill(later, -torch.inf), 3) @ v).transpose(1, 2)


def our_attention(engine):
    return lambda q, k, v: benchattn.attention(q, k, v, causal=True, engine=engine)


class Block(nn.Module):
    def __init__(self, heads, width):
        super().__init__()
        self.heads, self.attention = heads, None
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.q, self.k, self.v, self.out = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.up, self.down = nn.Linear(width, 4 * width, bias=False), nn.Linear(4 * width, width, bias=False)

    def forward(self, x):
        B, L, D = x.shape
        n = self.norm1(x)
        q, k, v = (m(n).view(B, L, self.heads, D // self.heads) for m in (self.q, self.k, self.v))
        x = x + self.out(self.attention(q, k, v).reshape(B, L, D))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class GPT(nn.Module):
    def __init__(self, vocabulary, layers, heads, width, tokens):
        super().__init__()
        self.words, self.places = nn.Embedding(vocabulary, width), nn.Embedding(tokens, width)
        self.blocks = nn.ModuleList(Block(heads, width) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.words.weight
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.02)

    def forward(self, ids, targets):
        x = self.words(ids) + self.places.weight[:ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), targets.flatten())


class Trainer:
    def __init__(self, model, attention, rate):
        self.model, self.ms, self.losses = copy.deepcopy(model), [], []
        for block in self.model.blocks:
            block.attention = attention
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=rate, betas=(0.9, 0.99), weight_decay=0.1)

    def step(self, ids, targets):
        start = time.perf_counter()
        loss = self.model(ids, targets)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.ms.append((time.perf_counter() - start) * 1e3)
        self.losses.append(float(loss.detach()))


def batches(text, tokens, sequences):
    words = sorted(set(text))
    number = {w: i for i, w in enumerate(words)}
    data = torch.tensor([number[c] for c in text])
    at = torch.Generator().manual_seed(1)

    def draw():
        first = torch.randint(len(data) - tokens, (sequences,), generator=at)
        rows = torch.stack([data[i:i + tokens + 1] for i in first])
        return rows[:, :-1].contiguous(), rows[:, 1:].contiguous()
    return len(words), draw


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("text")
    options.add_argument("--setting", choices=SETTINGS, default="cpu")
    options.add_argument("--steps", type=int, help="steps of each (default: the whole training)")
    options.add_argument("--threads", type=int, default=1)
    o = options.parse_args()
    layers, heads, width, tokens, sequences, whole, rate = SETTINGS[o.setting]
    steps = whole if o.steps is None else o.steps
    if o.threads < 1 or steps < 2:
        sys.exit("train_torch.py: --threads below 1, or --steps below 2  -> use more")
    with open(o.text, encoding="utf-8") as f:
        vocabulary, draw = batches(f.read(), tokens, sequences)
    torch.set_num_threads(o.threads)
    torch.manual_seed(1)
    engine = benchattn.Engine(threads=o.threads)
    model = GPT(vocabulary, layers, heads, width, tokens)
    theirs = ("scaled_dot_product_attention", fused) if hasattr(F, "scaled_dot_product_attention") else \
        ("products", products)
    ways = {theirs[0]: Trainer(model, theirs[1], rate), "benchattn": Trainer(model, our_attention(engine), rate)}
    for turn in range(0, steps, TURN):
        drawn = [draw() for _ in range(min(TURN, steps - turn))]
        order = list(ways.values())
        for trainer in order if turn // TURN % 2 else order[::-1]:
            for batch in drawn:
                trainer.step(*batch)
    print(f"PyTorch {torch.__version__}, benchattn {engine.backend}, {o.threads} threads, setting {o.setting}: "
          f"{layers} layers of {width}, {sequences} x {tokens} tokens, {steps} steps\n")
    print(f"| attention | a step, ms | {whole} steps, minutes | loss at the end |\n|---|---|---|---|")
    for name, trainer in ways.items():
        low, middle, high = statistics.quantiles(trainer.ms[len(trainer.ms) // 10:], n=4)
        last = statistics.mean(trainer.losses[-max(1, steps // 20):])
        print(f"| {name} | {middle:.4g} [{low:.4g} {high:.4g}] | {middle * whole / 6e4:.3g} | {last:.4f} |")


if __name__ == "__main__":
    main()
