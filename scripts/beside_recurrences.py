#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Recurrences of this library beside those of ONNX Runtime, ggml and PyTorch, in turns, checked against each other.

    scripts/beside_recurrences.py [--ggml build/kernels/ggml.so] [--threads 1] [--rounds 21] [--tiny] >recurrences.md

The peers are the kernels of contrib/kernels: LinearAttention of ONNX Runtime (opset 27), ggml's gated_delta_net,
gated_linear_attn and rwkv_wkv7 (contrib/kernels/ggml.sh builds the file), and the gated delta rule that transformers
runs on CPUs. What a peer has not is left out, and the first line names versions. Inputs have the layouts of models; what
a peer copies is in its time, as is the call from Python, which is some microseconds for all; ggml is timed without states,
whose order is another here. Times are CPU time of the
process divided by its threads; ratios are of pairs of one round, with the interval of their median by order statistics,
at least 0.95. Errors are the largest, of the largest output, from the equations step by step in double."""
import argparse
import ctypes
import importlib
import os
import random
import statistics
import sys
import time
import types

import numpy as np

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "contrib", folder) for folder in ("python", "kernels")]
import benchattn  # noqa: E402
from median_interval import interval  # noqa: E402

# Of the decay, per head or per channel; with an erase by the own key; with a free rank one.
RULES = {"gated delta rule": ("head", True, False), "KDA": ("channel", True, False), "GLA": ("channel", False, False),
         "Mamba-2's": ("head", False, False), "RWKV-7": ("channel", False, True)}


def operands(rule, B, L, H, n):
    decay, erases, free = RULES[rule]
    rng = np.random.default_rng(1)

    def numbers(*shape):
        return rng.standard_normal(shape).astype(np.float32)

    def unit(*shape):
        x = numbers(*shape)
        return x / np.linalg.norm(x, axis=-1, keepdims=True)

    x = {"q": unit(B, L, H, n), "k": unit(B, L, H, n), "v": numbers(B, L, H, n), "s0": 0.1 * numbers(B, H, n, n)}
    x["g"] = -np.exp(numbers(B, L, H, n if decay == "channel" else 1) - 3)
    if erases:
        x["beta"] = 1 / (1 + np.exp(-numbers(B, L, H)))
    if free:
        x["a"] = -x["k"]
        x["b"] = x["k"] / (1 + np.exp(-numbers(B, L, H, n)))
    return {name: np.ascontiguousarray(y, np.float32) for name, y in x.items()}


def in_double(x, scale):
    x = {name: y.astype(np.float64) for name, y in x.items()}
    S, o = x["s0"].copy(), np.empty_like(x["v"])
    for t in range(o.shape[1]):
        k, v = x["k"][:, t], x["v"][:, t]
        read = np.einsum("bhkv,bhk->bhv", S, x["a"][:, t]) if "a" in x else None
        S *= np.exp(x["g"][:, t])[..., None]
        if "beta" in x:
            v = x["beta"][:, t][..., None] * (v - np.einsum("bhkv,bhk->bhv", S, k))
        S += k[..., None] * v[:, :, None]
        if read is not None:
            S += x["b"][:, t][..., None] * read[:, :, None]
        o[:, t] = scale * np.einsum("bhkv,bhk->bhv", S, x["q"][:, t])
    return o


def ours(x, scale, engine):
    call = benchattn.Recurrence(**x, scale=scale, engine=engine)
    return call.forward


class Ggml:
    """The table of a file that contrib/kernels/ggml.sh built."""

    class Table(ctypes.Structure):
        _fields_ = [("size", ctypes.c_size_t), ("abi", ctypes.c_int), ("name", ctypes.c_char_p), ("version", ctypes.c_char_p)] + [
            (name, ctypes.c_void_p) for name in ("open", "close", "why", "linear", "attention_forward", "attention_backward",
                                                 "recurrence_forward", "recurrence_backward")]

    class Team(ctypes.Structure):
        _fields_ = [("size", ctypes.c_size_t), ("threads", ctypes.c_int), ("run", ctypes.c_void_p)]

    FORWARD = 3  # enum bk_function

    def __init__(self, path, threads):
        table = self.Table.in_dll(ctypes.CDLL(os.path.realpath(path)), "bench_kernel")
        P = ctypes.c_void_p
        self.team = self.Team(ctypes.sizeof(self.Team), threads, None)
        self.state = P(ctypes.CFUNCTYPE(P, P, ctypes.c_char_p, ctypes.c_size_t)(table.open)(ctypes.addressof(self.team), None, 0))
        self.why = ctypes.CFUNCTYPE(ctypes.c_char_p, P, ctypes.c_int, P)(table.why)
        self.run = ctypes.CFUNCTYPE(None, P, P, P)(table.recurrence_forward)
        self.name = f"ggml {table.version.decode()}"

    def __call__(self, x, scale):
        call = benchattn.Recurrence(**x, scale=scale)
        if self.why(self.state, self.FORWARD, ctypes.addressof(call._struct)):
            return None

        def forward(call=call):
            self.run(self.state, ctypes.addressof(self.team), ctypes.addressof(call._struct))
            return call.o
        begins = benchattn.Recurrence(**{name: y for name, y in x.items() if name != "s0"}, scale=scale)
        begins._struct.s1 = None
        forward.timed = lambda: forward(begins)
        return forward


class Process:
    """A kernel of contrib/kernels that is written in Python, without its process."""

    def __init__(self, file, threads):
        kernel = importlib.import_module(file).kernel
        self.name, self.arrays = f"{kernel.name} {kernel.version}", kernel.arrays
        self.function, self.why = kernel.functions["recurrence_forward"]
        if self.arrays == "torch":
            import torch
            torch.set_num_threads(threads)
            self.name += f", torch {torch.__version__}"
        else:
            kernel.threads(threads)

    def __call__(self, x, scale):
        B, L, H, n = x["v"].shape
        as_is = __import__("torch").from_numpy if self.arrays == "torch" else np.asarray
        o, s1 = np.empty_like(x["v"]), np.empty_like(x["s0"])
        r = types.SimpleNamespace(**dict.fromkeys(("g", "beta", "a", "b", "i", "u", "norm")))
        r.__dict__.update({name: as_is(y) for name, y in x.items()}, B=B, L=L, M=0, H=H, Hs=H, dk=n, dv=n, scale=scale, kept={},
                          o=as_is(o), s1=as_is(s1))
        if self.why(r):
            return None

        def forward():
            self.function(r)
            return o
        return forward


def seconds(forward, calls):
    start = time.process_time()
    for _ in range(calls):
        forward()
    return (time.process_time() - start) / calls


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--ggml", metavar="FILE", help="left out without it")
    options.add_argument("--threads", type=int, default=1)
    options.add_argument("--rounds", type=int, default=21)
    options.add_argument("--tiny", action="store_true", help="sizes that only show that it runs")
    o = options.parse_args()
    engine = benchattn.Engine(threads=o.threads)
    peers = [Ggml(o.ggml, o.threads)] if o.ggml else []
    for file in ("ort_linear_attention", "transformers_gated_delta"):
        try:
            peers.append(Process(file, o.threads))
        except ImportError as e:
            print(f"beside_recurrences.py: without {file}: {e}", file=sys.stderr)
    print(f"{', '.join(p.name for p in peers)}; benchattn {engine.backend}, {o.threads} threads, {o.rounds} rounds\n")
    names = " | ".join(f"{p.name.split()[0]}, times | error" for p in peers)
    print(f"| recurrence | heads | tokens | us, here | error | {names} |")
    print("|---|---|---:|---:|---:|" + "---:|---:|" * len(peers))
    for rule in RULES:
        for H, n in [(2, 64)] if o.tiny else [(8, 64), (16, 128)]:
            for L in (32, 1) if o.tiny else (2048, 512, 1):
                x, scale = operands(rule, 1, L, H, n), n ** -0.5
                want, ways = in_double(x, scale), [ours(x, scale, engine)] + [p(x, scale) for p in peers]
                far = [np.abs(way().astype(np.float64) - want).max() if way else 0 for way in ways]
                errors = [f"{x / np.abs(want).max():.1e}" for x in far]
                calls = max(1, int(0.02 / max(1e-6, seconds(ways[0], 1 if L > 1 else 50))))
                times = [[] for _ in ways]
                for _ in range(o.rounds):
                    for i in random.sample(range(len(ways)), len(ways)):
                        if ways[i]:
                            way = getattr(ways[i], "timed", ways[i])
                            times[i].append(seconds(way, calls if i == 0 else max(1, calls // 8)) / o.threads)
                cells = [rule, f"{H} x {n}", str(L), f"{statistics.median(times[0]) * 1e6:.4g}", errors[0]]
                for way, took, error in zip(ways[1:], times[1:], errors[1:]):
                    cells += [interval([a / b for a, b in zip(took, times[0])]), error] if way else ["", ""]
                print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
