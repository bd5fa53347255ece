# SPDX-License-Identifier: MIT
"""Modules of PyTorch over benchattn."""
import torch

import benchattn


class Attention(torch.nn.Module):
    """Multi-head self-attention with its four maps: x [B, L, dim] becomes [B, L, dim].

    `heads` of `head_dim` (dim / heads), `kv_heads` of keys and values (heads). `options` are those of
    benchattn.attention that hold for every call, such as window=256 or soft_cap=30; terms that are trained, such as
    bias or sink_logit, and key_padding_mask and cu_seqlens are given to each call."""

    def __init__(self, dim, heads, kv_heads=None, head_dim=None, *, causal=True, map_bias=False, **options):
        super().__init__()
        kv_heads = heads if kv_heads is None else kv_heads
        for name, n in {"dim": dim, "heads": heads, "kv_heads": kv_heads, "head_dim": 1 if head_dim is None else head_dim}.items():
            if benchattn._whole(name, n) < 1:
                raise benchattn.Error(f"{name} is {n}  -> use 1 or more")
        if heads % kv_heads or (head_dim is None and dim % heads):
            raise benchattn.Error(f"{heads} heads of {dim} numbers, {kv_heads} of keys  -> numbers that divide each other")
        benchattn.Attention.check_options(causal=causal, **options)
        self.heads, self.kv_heads, self.head_dim = heads, kv_heads, head_dim or dim // heads
        self.options = {"causal": causal, **options}
        self.q_proj = torch.nn.Linear(dim, heads * self.head_dim, map_bias)
        self.k_proj = torch.nn.Linear(dim, kv_heads * self.head_dim, map_bias)
        self.v_proj = torch.nn.Linear(dim, kv_heads * self.head_dim, map_bias)
        self.o_proj = torch.nn.Linear(heads * self.head_dim, dim, map_bias)

    def forward(self, x, **terms):
        q, k, v = (p(x).unflatten(-1, (n, self.head_dim)) for p, n in (
            (self.q_proj, self.heads), (self.k_proj, self.kv_heads), (self.v_proj, self.kv_heads)))
        return self.o_proj(benchattn.attention(q, k, v, **self.options, **terms).flatten(-2))
