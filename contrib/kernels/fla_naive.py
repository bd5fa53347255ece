#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The plain PyTorch forms of flash-linear-attention (what it checks its GPU kernels with), as a kernel of bench.

    pip download --no-deps fla-core && unzip fla_core-*.whl 'fla/ops/*'
    bench judge 'exec:python3 contrib/kernels/fla_naive.py fla/ops'

Its files naive.py are loaded by path, since the package itself wants Triton: the gated delta rule and the simple
gated one by chunks, GLA and KDA step by step, as they are there. Forward only."""
import importlib.util
import os
import sys

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "python"))
import bench_kernel  # noqa: E402

kernel = bench_kernel.Kernel("fla_naive", os.environ.get("FLA_VERSION", "unknown"), arrays="torch")


def load(folder, name, function):
    spec = importlib.util.spec_from_file_location(name, os.path.join(folder, name, "naive.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, function)


def form_of(r):
    """Which of them computes it: by its erase, and by what its decay is of."""
    if r.g is None:
        return None
    return {(True, 1): "gated_delta_rule", (True, r.dk): "kda", (False, 1): "simple_gla",
            (False, r.dk): "gla"}.get((r.beta is not None, r.g.shape[3]))


def why(r):
    if r.M or r.q is None or r.k is None or r.H != r.Hs:
        return "needs queries and keys of the same positions and heads"
    if r.norm or r.a is not None or r.i is not None or r.u is not None:
        return "has no normaliser, free rank one, write gate or bonus"
    return None if form_of(r) else "needs a decay"


@kernel.recurrence_forward(why=why)
@torch.no_grad()
def forward(r):
    name = form_of(r)
    q, k, v, g = (x.repeat_interleave(r.H // x.shape[2], 2) for x in (r.q, r.k, r.v, r.g))
    words = {"initial_state": r.s0, "output_final_state": True}
    if r.beta is not None:
        words["beta"] = r.beta.repeat_interleave(r.H // r.beta.shape[2], 2)
    if name == "gla":
        q = q * (r.scale * r.dk ** 0.5)  # its own factor is 1 / sqrt(dk)
    else:
        words["scale"] = r.scale
    o, s1 = forms[name](q, k, v, g[..., 0] if name in ("gated_delta_rule", "simple_gla") else g, **words)
    r.o.copy_(o)
    if r.s1 is not None:
        r.s1.copy_(s1)


if __name__ == "__main__":
    if len(sys.argv) != 2 or not os.path.isdir(sys.argv[1]):
        sys.exit("fla_naive.py: name the folder fla/ops of flash-linear-attention")
    forms = {"gated_delta_rule": load(sys.argv[1], "gated_delta_rule", "naive_chunk_gated_delta_rule"),
             "kda": load(sys.argv[1], "kda", "naive_recurrent_kda"),
             "simple_gla": load(sys.argv[1], "simple_gla", "naive_chunk_simple_gla"),
             "gla": load(sys.argv[1], "gla", "naive_recurrent_gla")}
    kernel.serve()
