#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Attention of libbenchattn beside PyTorch's, on this machine: time, memory and errors.

    python3 contrib/python/compare_torch.py [--threads N] [--rounds N] [--tiny]

Ways to compute one call: benchattn; sdpa, PyTorch's scaled_dot_product_attention; flex, its FlexAttention,
compiled, whose backward PyTorch does not have on CPUs; and composed of products, as equations are written.
All run in turns, shuffled in every round, so that a slow minute hits all alike. Times are medians with
quartiles. Memory is what a forward and backward pass, its inputs' gradients included, needs at its peak
beyond what is there before; each is taken in a process of its own.
Errors are those of outputs and of the gradient of k, against the composed form in double precision,
relative to the largest number. Prints Markdown.
"""
import argparse
import ctypes
import os
import platform
import random
import statistics
import subprocess
import sys
import time

import torch

import benchattn

DH = 64


class Case:
    """One attention: what every way gets."""

    def __init__(self, name, L, M, H, Hkv, alibi=False, window=0, soft_cap=0):
        self.name, self.L, self.M, self.H, self.Hkv = name, L, M, H, Hkv
        self.window, self.soft_cap, K = window, soft_cap, L + M
        random_numbers = torch.Generator().manual_seed(1)
        self.q, self.k, self.v, self.d_o = (torch.randn(1, n, h, DH, generator=random_numbers)
                                            for n, h in ((L, H), (K, Hkv), (K, Hkv), (L, H)))
        dist = M + torch.arange(L)[:, None] - torch.arange(K)[None, :]
        self.visible = (dist >= 0) & ((dist < window) | (window == 0))
        self.slope = 2.0 ** (-8.0 * torch.arange(1, H + 1) / H) if alibi else None
        self.bias = None if self.slope is None else -self.slope[:, None, None] * dist
        plain = not alibi and not window and not M
        self.mask = None if plain else torch.where(self.visible, self.bias if alibi else 0.0, -torch.inf)
        self.table = None if self.slope is None else -self.slope[:, None] * torch.arange(K - 1, -1, -1)


def by_heads(case, x):
    """PyTorch's order, every query head with its keys: a view where nothing is grouped."""
    return x.transpose(1, 2).repeat_interleave(case.H // x.shape[2], 1)


def composed(case, q, k, v):
    q, k, v = by_heads(case, q), by_heads(case, k), by_heads(case, v)
    s = q @ k.transpose(2, 3) * DH ** -0.5
    if case.soft_cap:
        s = case.soft_cap * torch.tanh(s / case.soft_cap)
    if case.bias is not None:
        s = s + case.bias.to(s.dtype)
    return (torch.softmax(s.masked_fill(~case.visible, -torch.inf), 3) @ v).transpose(1, 2)


def sdpa(case, q, k, v):
    return torch.nn.functional.scaled_dot_product_attention(
        by_heads(case, q), by_heads(case, k), by_heads(case, v), attn_mask=case.mask,
        is_causal=case.mask is None).transpose(1, 2)


class Flex:
    def __init__(self):
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention
        self.create_block_mask, self.compiled, self.masks = create_block_mask, torch.compile(flex_attention), {}

    def __call__(self, case, q, k, v):
        M, window, cap, slope = case.M, case.window, case.soft_cap, case.slope

        def score(s, b, h, i, j):
            s = cap * torch.tanh(s / cap) if cap else s
            return s if slope is None else s - slope[h] * (M + i - j)

        def sees(b, h, i, j):
            return (M + i >= j) & (M + i - j < window) if window else M + i >= j

        if case not in self.masks:
            self.masks[case] = self.create_block_mask(sees, None, None, case.L, case.L + M, device="cpu")
        return self.compiled(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), score_mod=score,
                             block_mask=self.masks[case], enable_gqa=case.H != case.Hkv).transpose(1, 2)


def ours(engine):
    def run(case, q, k, v):
        return benchattn.attention(q, k, v, causal=True, bias=case.table, window=case.window,
                                   soft_cap=case.soft_cap, engine=engine)
    return run


def ways(engine):
    """Name, function, whether it has backward, which cases it can express; and what is missing, and why."""
    found = [("benchattn", ours(engine), True, lambda case: True), ("composed", composed, True, lambda case: True)]
    missing = []
    if hasattr(torch.nn.functional, "scaled_dot_product_attention"):
        found.append(("sdpa", sdpa, True, lambda case: not case.soft_cap))
    else:
        missing.append("sdpa: not in this PyTorch")
    try:
        flex = Flex()
        with torch.no_grad():
            probe = Case("", 128, 0, 2, 2)
            flex(probe, probe.q, probe.k, probe.v)
        found.append(("flex", flex, False, lambda case: True))
    except Exception as e:  # whatever a compiler that is not there, or an older PyTorch, makes of it
        missing.append(f"flex: {type(e).__name__}: {str(e).strip().splitlines()[0]}")
    return found, missing


def forward(case, run):
    with torch.no_grad():
        return run(case, case.q, case.k, case.v)


def both(case, run, dtype=torch.float32):
    q, k, v = (x.detach().to(dtype).requires_grad_() for x in (case.q, case.k, case.v))
    o = run(case, q, k, v)
    o.backward(case.d_o.to(dtype))
    return o.detach(), k.grad


def seconds(what):
    start = time.perf_counter()
    what()
    return time.perf_counter() - start


def peak_bytes(what):
    """Linux counts the largest resident set since it was told to forget it."""
    def status(key):
        with open("/proc/self/status") as f:
            return next(int(line.split()[1]) * 1024 for line in f if line.startswith(key))
    what()  # grows work space that is kept
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/clear_refs", "w") as f:
        f.write("5")
    before = status("VmRSS")
    what()
    return max(0, status("VmHWM") - before)


def memory_of(case, way, o):
    """Taken in a process of its own, whose allocator gives back what is freed: nothing freed before serves."""
    words = [sys.executable, __file__, "--threads", str(o.threads), "--memory", case, way] + ["--tiny"] * o.tiny
    run = subprocess.run(words, env=os.environ | {"MALLOC_MMAP_THRESHOLD_": str(1 << 16)}, stdout=subprocess.PIPE,
                         text=True, check=True)
    return f"{int(run.stdout) / 2 ** 20:.1f} MiB"


def error(got, want):
    return float((got - want).abs().max() / want.abs().max())


def measure(case, found, rounds):
    able = [w for w in found if w[3](case)]
    jobs = {(name, "forward"): lambda run=run: forward(case, run) for name, run, _, _ in able}
    jobs.update({(name, "both"): lambda run=run: both(case, run) for name, run, back, _ in able if back})
    times = {job: [] for job in jobs}
    for what in jobs.values():  # compiles, grows work space
        what()
    for _ in range(rounds):
        for job in random.sample(list(jobs), len(jobs)):
            times[job].append(seconds(jobs[job]) * 1e3)
    want = both(case, composed, torch.float64)
    rows = []
    for name, run, back, _ in able:
        got = both(case, run) if back else (forward(case, run), None)
        cells = [case.name, name] + [spread(times.get((name, pass_))) for pass_ in ("forward", "both")]
        cells += [f"{error(g, w):.1e}" if g is not None else "-" for g, w in zip(got, want)]
        rows.append((cells, back))
    return rows


def spread(times):
    if not times:
        return "-"
    low, middle, high = statistics.quantiles(times, n=4)
    return f"{middle:.3g} [{low:.3g} {high:.3g}]"


def cpu():
    with open("/proc/cpuinfo") as f:
        return next((line.split(":")[1].strip() for line in f if line.startswith("model name")), platform.machine())


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--threads", type=int, default=1)
    options.add_argument("--rounds", type=int, default=20)
    options.add_argument("--tiny", action="store_true", help="sizes that only show that it runs")
    options.add_argument("--memory", nargs=2, metavar=("CASE", "WAY"), help="print its bytes, and nothing else")
    o = options.parse_args()
    if o.threads < 1 or o.rounds < 2:
        sys.exit("compare_torch.py: --threads below 1, or --rounds below 2  -> use more")
    torch.set_num_threads(o.threads)
    random.seed(1)
    engine = benchattn.Engine(threads=o.threads)
    L, H = (128, 2) if o.tiny else (1024, 8)
    cases = [Case("causal", L, 0, H, H),
             Case("ALiBi, memory", L // 2, L // 2, H, H, alibi=True),
             Case("grouped heads, window", L, 0, H, H // 2, window=L // 4),
             Case("soft cap", L, 0, H, H, soft_cap=30)]
    if o.memory:
        case = next((c for c in cases if c.name == o.memory[0]), None)
        run = {"benchattn": ours(engine), "composed": composed, "sdpa": sdpa}.get(o.memory[1])
        if not case or not run:
            sys.exit("compare_torch.py: --memory of no such case or way  -> take them from the table")
        print(peak_bytes(lambda: both(case, run)))
        return
    found, missing = ways(engine)
    print(f"PyTorch {torch.__version__}, benchattn {engine.backend}, {o.threads} threads, {o.rounds} rounds, {cpu()}\n")
    for line in missing:
        print(f"left out: {line}\n")
    rows = [row for case in cases for row in measure(case, found, o.rounds)]
    print("| case | way | forward, ms | forward and backward, ms | error of o | of d_k | memory |")
    print("|---|---|---|---|---|---|---|")
    for cells, back in rows:
        memory = memory_of(*cells[:2], o) if back else "-"
        print(f"| {' | '.join(cells + [memory])} |", flush=True)


if __name__ == "__main__":
    main()
