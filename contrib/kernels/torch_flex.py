#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""PyTorch's FlexAttention on CPUs, compiled, forward only (it has no backward pass there), as a kernel of bench.

    bench judge 'exec:python3 contrib/kernels/torch_flex.py'

It is compiled once for each shape, which takes seconds and a C++ compiler, before that shape is timed; small shapes
are refused because of that. What scores and masks are is a function of distances, so a bias costs no mask."""
import os
import sys

import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "python"))
import bench_kernel  # noqa: E402

torch._dynamo.config.recompile_limit = 1000
kernel = bench_kernel.Kernel("torch_flex", torch.__version__, arrays="torch")
compiled = torch.compile(flex_attention, dynamic=False)


def why(a):
    if a.q.shape[1] < 128 or a.q.shape[3] < 16:
        return "is compiled for each shape, here for 128 queries or more of width 16 or more"
    return bench_kernel.lacks(a, "groups", "memory", "future", "unordered", "window", "bias", "soft_cap")


def prepare(a):
    """What does not change with numbers: the blocks of visible keys, and the function of scores, which reads the bias."""
    M, causal, window, cap, bias, R = a.M, bool(a.causal), a.window, a.soft_cap, a.bias, a.R
    L, K = a.q.shape[1], a.k.shape[1]

    def sees(b, h, i, j):
        seen = (M + i >= j) if causal else (i >= 0)
        return seen & (M + i - j < window) if window else seen

    def score(s, b, h, i, j):
        s = cap * torch.tanh(s / cap) if cap else s
        return s if bias is None else s + bias[h, torch.clamp(R - 1 - (M + i - j), 0, bias.shape[1] - 1)]

    every = not causal and not window
    return {"score_mod": score if cap or bias is not None else None,
            "block_mask": None if every else create_block_mask(sees, None, None, L, K, device="cpu"),
            "enable_gqa": a.k.shape[2] != a.q.shape[2], "scale": a.scale}


@kernel.attention_forward(why=why)
@torch.no_grad()
def forward(a):
    if not a.kept:
        a.kept.update(prepare(a))
    a.o.copy_(compiled(a.q.transpose(1, 2), a.k.transpose(1, 2), a.v.transpose(1, 2), **a.kept).transpose(1, 2))


if __name__ == "__main__":
    kernel.serve()
