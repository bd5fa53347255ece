#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Learning a memory task: steps per second of `bench train --task` beside a PyTorch loop.

    python3 contrib/python/compare_torch_task.py [BENCH] [--threads N] [--rounds N] [--steps N] [--tiny]

The model is `vanilla`: two post-norm layers with ReLU and sinusoids. Both play the same task (tmaze) with as many
episodes at once, draw each action from a forward pass of the episode so far, and then learn from the whole episode
by advantage actor-critic with generalised advantages, clipped gradients and AdamW. `cached` is the PyTorch loop
with keys and values kept while it plays, which bench does not do. All run in turns; a ratio is that of one round, and
the table has the median over rounds with the least and the most. On a busy machine CPU time is the fairer one; bench's
has its start and a validation of 128 episodes in it. Prints Markdown.
"""
import argparse
import csv
import math
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import torch
from torch import nn

CUE, CORRIDOR, JUNCTION, ACTIONS = 0, 2, 3, 2


class Layer(nn.Module):
    def __init__(self, D, H):
        super().__init__()
        self.H = H
        self.qkv, self.out = nn.Linear(D, 3 * D, bias=False), nn.Linear(D, D, bias=False)
        self.up, self.down = nn.Linear(D, 4 * D), nn.Linear(4 * D, D)
        self.norms = nn.ModuleList([nn.LayerNorm(D), nn.LayerNorm(D)])

    def forward(self, x, past=None):
        """past: the keys and values of earlier steps, [2][B,H,n,d], to which those of x are added."""
        B, L, D = x.shape
        q, k, v = self.qkv(x).view(B, L, 3, self.H, D // self.H).permute(2, 0, 3, 1, 4)
        if past is not None:
            if past:
                k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
            past[:] = [k, v]
        s = q @ k.transpose(2, 3) * (D // self.H) ** -0.5
        if L > 1:
            s = s + torch.full((L, L), -math.inf).triu(1)
        o = (torch.softmax(s, 3) @ v).transpose(1, 2).reshape(B, L, D)
        x = self.norms[0](x + self.out(o))
        return self.norms[1](x + self.down(torch.relu(self.up(x))))


class Model(nn.Module):
    def __init__(self, layers, D, H, symbols, length):
        super().__init__()
        self.embed = nn.Embedding(symbols, D)
        self.layers = nn.ModuleList([Layer(D, H) for _ in range(layers)])
        self.bias = nn.Parameter(torch.zeros(symbols))
        rate = 10000.0 ** (-torch.arange(0, D, 2) / D)
        angle = torch.arange(length)[:, None] * rate
        self.places = torch.cat([angle.sin(), angle.cos()], 1)

    def forward(self, seen, at=0, past=None):
        x = self.embed(seen) * self.embed.embedding_dim ** 0.5 + self.places[at:at + seen.shape[1]]
        for i, layer in enumerate(self.layers):
            x = layer(x, None if past is None else past[i])
        return nn.functional.linear(x, self.embed.weight, self.bias)


class Loop:
    def __init__(self, args, cached):
        torch.manual_seed(1)
        self.B, self.length, self.cached = args.batch, args.corridor + 2, cached
        self.model = Model(args.layers, args.d_model, args.heads, JUNCTION + 1, self.length)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3, weight_decay=0.0)

    def play(self):
        """Observations and actions of an episode, and the cues."""
        cue = torch.randint(2, (self.B,))
        seen = torch.full((self.B, self.length), CORRIDOR)
        seen[:, 0], seen[:, -1] = cue, JUNCTION
        done = torch.empty(self.B, self.length, dtype=torch.long)
        past = [[] for _ in self.model.layers] if self.cached else None
        with torch.no_grad():
            for t in range(self.length):
                out = self.model(seen[:, t:t + 1], t, past) if self.cached else self.model(seen[:, :t + 1])
                done[:, t] = torch.multinomial(torch.softmax(out[:, -1, :ACTIONS], 1), 1)[:, 0]
        return cue, seen, done

    def step(self, discount=0.99, trace=0.95):
        cue, seen, done = self.play()
        rewards = torch.zeros(self.B, self.length)
        rewards[:, -1] = 1.0 - 2.0 * (done[:, -1] != cue).float()
        out = self.model(seen)
        value = out[:, :, ACTIONS]
        log_p = torch.log_softmax(out[:, :, :ACTIONS], 2)
        v, advantage = value.detach(), torch.zeros(self.B, self.length)
        after, sum_after = torch.zeros(self.B), torch.zeros(self.B)
        for t in reversed(range(self.length)):
            sum_after = rewards[:, t] + discount * after - v[:, t] + discount * trace * sum_after
            advantage[:, t], after = sum_after, v[:, t]
        entropy = -(log_p.exp() * log_p).sum(2)
        taken = log_p.gather(2, done[:, :, None])[:, :, 0]
        loss = (-advantage * taken + 0.25 * (advantage + v - value) ** 2 - 0.01 * entropy).mean()
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        return float(rewards.sum(1).mean())

    def rates(self, steps):
        """Steps of episodes per second of wall time and of CPU time."""
        wall, cpu = time.perf_counter(), time.process_time()
        for _ in range(steps):
            self.step()
        played = steps * self.B * self.length
        return played / (time.perf_counter() - wall), played / (time.process_time() - cpu)


def children_s():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def bench_rates(args, steps):
    """By the curve, between its first row and the last one, which has a validation in its time; CPU time is all of
    the process."""
    cpu = children_s()
    with tempfile.TemporaryDirectory() as folder:
        ckpt = os.path.join(folder, "m.safetensors")
        line = [args.bench, "train", "--variant", "vanilla", "--task", f"tmaze:len={args.corridor}",
                "--seq", args.corridor + 2, "--mem", 0, "--batch", args.batch, "--layers", args.layers,
                "--d-model", args.d_model, "--heads", args.heads, "--threads", args.threads, "--steps", steps,
                "--eval-every", steps, "--log-every", max(1, steps // 10), "-q", "--ckpt", ckpt]
        subprocess.run([str(word) for word in line], check=True)
        with open(ckpt + ".train.csv", newline="", encoding="utf-8") as f:
            rows = list(csv.DictReader(f))
    rates = [float(r["tokens_per_s"]) for r in rows[1:-1]]  # the first row has warmed up
    played = steps * args.batch * (args.corridor + 2)
    return len(rates) / sum(1 / r for r in rates), played / (children_s() - cpu)


def parse():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("bench", nargs="?", default="./bench")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--steps", type=int, default=100)
    p.add_argument("--batch", type=int, default=32)
    p.add_argument("--layers", type=int, default=2)
    p.add_argument("--d-model", type=int, default=32)
    p.add_argument("--heads", type=int, default=2)
    p.add_argument("--corridor", type=int, default=20)
    p.add_argument("--tiny", action="store_true", help="to try the script")
    args = p.parse_args()
    if args.tiny:
        args.rounds, args.steps, args.batch, args.corridor = 1, 10, 4, 4
    return args


def main():
    args = parse()
    torch.set_num_threads(args.threads)
    loops = {"PyTorch": Loop(args, False), "PyTorch, cached": Loop(args, True)}
    for loop in loops.values():
        loop.rates(3)
    rates = {name: [] for name in ["bench", *loops]}
    for i in range(args.rounds):
        names = list(rates)
        for name in names if i % 2 == 0 else names[::-1]:
            rates[name].append(bench_rates(args, args.steps) if name == "bench" else loops[name].rates(args.steps))
    size = sum(p.numel() for p in loops["PyTorch"].model.parameters())
    print(f"PyTorch {torch.__version__}, {platform.processor() or platform.machine()}, {args.threads} thread(s), "
          f"load {os.getloadavg()[0]:.1f}; tmaze:len={args.corridor}, {args.batch} episodes at once, "
          f"{args.layers} layers of {args.d_model} ({size} parameters in PyTorch), {args.rounds} rounds\n")
    print("| | steps/s | bench's over it | steps/s of CPU time | bench's over it |\n|---|---:|---:|---:|---:|")
    for name, values in rates.items():
        cells = [name]
        for k in range(2):
            ratio = [b[k] / v[k] for b, v in zip(rates["bench"], values)]
            cells += [f"{statistics.median(v[k] for v in values):.0f}",
                      f"{statistics.median(ratio):.2f} ({min(ratio):.2f} to {max(ratio):.2f})"]
        print("| " + " | ".join(cells) + " |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
