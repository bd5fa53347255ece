#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""PyTorch's scaled_dot_product_attention on CPUs, forward and backward, as a kernel of bench.

    bench judge 'exec:python3 contrib/kernels/torch_sdpa.py'

Both passes are those of its fused CPU kernel, which keeps the log-sum-exp. It has no tables of distances and no
windows but as a mask [L,K] of numbers that are added: the mask is made in the call, and kept while the bias is the
same, as a model makes it once for all of its layers. Shared key/value heads are repeated, as its kernel wants them."""
import math
import os
import sys

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "python"))
import bench_kernel  # noqa: E402

kernel = bench_kernel.Kernel("torch_sdpa", torch.__version__, arrays="torch")
MASKS = "groups", "memory", "future", "unordered", "window", "lse"


def heads_first(x, heads):
    """[B,H,rows,dh], every query head with its keys: a view where nothing is shared."""
    x = x.transpose(1, 2)
    return x if x.shape[1] == heads else x.repeat_interleave(heads // x.shape[1], 1)


def mask_of(a):
    """What is added to scores, [1 or H,L,K], or None; and whether they are causal without."""
    L, K = a.q.shape[1], a.k.shape[1]
    if not (a.window or a.bias is not None or a.add is not None or a.causal and K != L):
        return None, bool(a.causal)
    kept = a.kept.get("bias")
    if "mask" not in a.kept or a.bias is not None and not torch.equal(kept, a.bias):
        dist = a.M + torch.arange(L)[:, None] - torch.arange(K)[None, :]
        hidden = (dist < 0) & bool(a.causal) | (dist >= a.window) & (a.window > 0)
        mask = torch.zeros(1, L, K)
        if a.bias is not None:
            a.kept["bias"] = a.bias.clone()
            mask = a.bias[:, (a.R - 1 - dist).clamp(0, a.bias.shape[1] - 1)]
        a.kept["mask"] = mask.masked_fill(hidden, -math.inf)[None]
    return a.kept["mask"] if a.add is None else a.kept["mask"] + a.add, False


def why(a, *has):
    if a.q.shape[1] == 0:
        return "needs queries"
    return bench_kernel.lacks(a, *MASKS, *has)


@kernel.attention_forward(why=lambda a: why(a, "bias", "add"))
def forward(a):
    heads = a.q.shape[2]
    mask, causal = mask_of(a)
    o, lse = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
        heads_first(a.q, heads), heads_first(a.k, heads), heads_first(a.v, heads), 0.0, causal, attn_mask=mask,
        scale=a.scale)
    a.o.copy_(o.transpose(1, 2))
    if a.lse is not None:
        a.lse.copy_(lse)


@kernel.attention_backward(why=why)
def backward(a):
    heads, shared = a.q.shape[2], a.k.shape[2]
    mask, causal = mask_of(a)
    q, k, v, o, d_o = (heads_first(x, heads) for x in (a.q, a.k, a.v, a.o, a.d_o))
    d_q, d_k, d_v = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward(
        d_o, q, k, v, o, a.lse, 0.0, causal, attn_mask=mask, scale=a.scale)
    a.d_q.copy_(d_q.transpose(1, 2))
    for d, got in ((a.d_k, d_k), (a.d_v, d_v)):
        d.copy_(got.unflatten(1, (shared, heads // shared)).sum(2).transpose(1, 2))


if __name__ == "__main__":
    kernel.serve()
