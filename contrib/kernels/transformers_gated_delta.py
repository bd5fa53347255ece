#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The gated delta rule as transformers computes it on CPUs (Qwen3-Next's fallbacks: by chunks, of one token by steps),
as a kernel of bench.

    bench judge 'exec:python3 contrib/kernels/transformers_gated_delta.py'

Forward only: its backward pass is autograd's over a forward pass, which a call of backward would have to repeat."""
import os
import sys

import torch
import transformers
from transformers.models.qwen3_next import modeling_qwen3_next

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "python"))
import bench_kernel  # noqa: E402

by_chunks, by_steps = (getattr(rule, "__wrapped__", rule) for rule in (  # not one of a hub
    modeling_qwen3_next.torch_chunk_gated_delta_rule, modeling_qwen3_next.torch_recurrent_gated_delta_rule))
kernel = bench_kernel.Kernel("transformers", transformers.__version__, arrays="torch")


def why(r):
    if r.M or r.q is None or r.k is None or r.H != r.Hs:
        return "needs queries and keys of the same positions and heads"
    if r.beta is None or r.g is None or r.g.dim() == 4 and r.g.shape[3] != 1:
        return "needs a write by the own key, and a decay per head"
    if r.norm or r.a is not None or r.i is not None or r.u is not None:
        return "has no normaliser, free rank one, write gate or bonus"
    return None


@kernel.recurrence_forward(why=why)
@torch.no_grad()
def forward(r):
    q, k, v, g, beta = (x.repeat_interleave(r.H // x.shape[2], 2) for x in (r.q, r.k, r.v, r.g[..., 0], r.beta))
    rule = by_chunks if q.shape[1] > 1 else by_steps
    o, s1 = rule(q * (r.scale * r.dk ** 0.5), k, v, g=g, beta=beta, initial_state=r.s0, output_final_state=True)
    r.o.copy_(o)
    if r.s1 is not None:
        r.s1.copy_(s1)


if __name__ == "__main__":
    kernel.serve()
