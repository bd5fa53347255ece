#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Golden files of mixers whose recurrence is that of the package flash-linear-attention.

    scripts/crosscheck/fla.py FLA DIR [NAME...]
    build/release/golden check --golden DIR

FLA is the package's folder (its checkout, or what pip has installed): the files ops/*/naive.py are loaded alone, as they run
without a GPU, with double in place of float; those that are given unit vectors do not divide them again. Around them stand the maps, convolutions, gates and norms of mixers.py, in torch,
whose gradients these are. Needs torch, einops and numpy; without one it says so and writes nothing. Three lengths each: a few
rows, and more than one and two chunks of the kernels."""

import os
import sys
import types
import zlib

try:
    import einops  # noqa: F401, naive.py needs it
    import numpy as np
    import torch
    import torch.nn.functional as F
except ImportError as e:
    print(f"skipped: fla.py needs {e.name}  -> pip install torch einops numpy")
    sys.exit(0)

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import mixers  # noqa: E402

LENGTHS = (7, 70, 131)
H, D = 2, 10


def naive(fla, op, name):
    """The function, in double."""
    path = os.path.join(fla, "fla" if os.path.isdir(os.path.join(fla, "fla")) else "", "ops", op, "naive.py")
    with open(path, encoding="utf-8") as f:
        text = f.read()
    for old, new in (("torch.float32", "torch.float64"), ("torch.float)", "torch.float64)"), (".float()", ".double()"),
                     ("torch.float,", "torch.float64,"), ("F.normalize(q, p=2, dim=-1)", "q"), ("F.normalize(k, p=2, dim=-1)", "k")):
        text = text.replace(old, new)
    module = types.ModuleType(f"naive_{op}")
    exec(compile(text, path, "exec"), module.__dict__)
    return getattr(module, name)


def heads(x, n=H):
    return x.unflatten(-1, (n, -1))


def linear(p, name, x):
    return F.linear(x, p[name + ".weight"], p.get(name + ".bias"))


def unit(x):
    return x / torch.sqrt((x * x).sum(-1, keepdim=True) + 1e-6)


def rms(x, w):
    return x / torch.sqrt((x * x).mean(-1, keepdim=True) + mixers.EPS) * w


def qkv(p, x, s, m):
    y = torch.cat([linear(p, n, x) for n in "qkv"], -1)
    if m["conv"]:
        rows = torch.cat([s["conv"], y], 1)
        s["conv"] = rows[:, -(m["conv"] - 1):]
        y = F.conv1d(rows.transpose(1, 2), p["conv.weight"][:, None], groups=rows.shape[-1]).transpose(1, 2)
    return F.silu(y).split(m["widths"], -1)


def decays(p, x):
    dt = linear(p, "dt_b", linear(p, "dt_a", x)) if "dt_a.weight" in p else linear(p, "dt", x)
    return -torch.exp(p["A_log"])[:, None] * heads(F.softplus(dt + p["dt_bias"]))


def given(s, m):
    return dict(scale=m["scale"], initial_state=s["state_s"], output_final_state=True)


def gdn2(op, p, x, s, m):
    q, k, v = (heads(y) for y in qkv(p, x, s, m))
    b, w = (heads(torch.sigmoid(linear(p, n, x))) for n in ("erase", "write"))
    o, s["state_s"] = op(unit(q), unit(k), v, decays(p, x), b, w, **given(s, m))
    return rms(o, p["norm.weight"]).flatten(-2) * torch.sigmoid(linear(p, "g_b", linear(p, "g_a", x)))


def deltaproduct(op, p, x, s, m):
    n = m["delta_steps"]
    q, k, v = qkv(p, x, s, m)
    k, v = (heads(y.unflatten(-1, (n, -1)).flatten(1, 2)) for y in (k, v))
    beta = 2 * torch.sigmoid(linear(p, "beta", x)).unflatten(-1, (n, H)).flatten(1, 2)
    o, s["state_s"] = op(unit(heads(q)) * m["scale"], unit(k), v, decays(p, x)[..., 0] if m["gated"] else None, beta, None, None,
                         initial_state=s["state_s"], num_householder=n)
    o = rms(o, p["norm.weight"]).flatten(-2)
    return o * F.silu(linear(p, "g", x)) if m["gated"] else o


def comba(op, p, x, s, m):
    q, k, v = (heads(y) for y in qkv(p, x, s, m))
    k = unit(k)
    q = unit(q) - p["D"][:, None] * k
    o, s["state_s"] = op(q, k, v, torch.sigmoid(p["decay"])[:, None] * k, torch.sigmoid(linear(p, "beta", x)),
                         decays(p, x)[..., 0], **given(s, m))
    return rms(o, p["norm.weight"]).flatten(-2) * torch.sigmoid(linear(p, "g", x))


def lightning(op, p, x, s, m):
    q, k, v = (heads(y) for y in qkv(p, x, s, m))
    rate = -torch.tensor([2.0 ** (-8 * (h + 1) / H) for h in range(H)], dtype=torch.float64) * (1 + 1e-5)
    o, s["state_s"] = op(q, k, v, rate.expand(q.shape[:3]), **given(s, m))
    return rms(o.flatten(-2), p["norm.weight"]) * torch.sigmoid(linear(p, "g", x))


def preconditioned(op, p, x, s, m):
    q, k, v = (heads(y) for y in qkv(p, x, s, m))
    g, rates = decays(p, x), -torch.exp(p["A_log_atk"]) * F.softplus(linear(p, "dt_atk", x) + p["dt_bias_atk"])
    o, s["state_s"], A = op(unit(q), unit(k), v, g=g if m["channels"] else g[..., 0], g_atk=rates,
                            beta_atk=torch.sigmoid(linear(p, "beta_atk", x)), beta=torch.sigmoid(linear(p, "beta", x)),
                            log_atk_scale=p["atk"], initial_A_state=s["state_a"][:, :, 0], **given(s, m))
    s["state_a"] = A[:, :, None]
    return rms(o, p["norm.weight"]).flatten(-2) * (torch.sigmoid if m["channels"] else F.silu)(linear(p, "g", x))


def gsa(op, p, x, s, m):
    q, k, v = (heads(y) for y in qkv(p, x, s, m))
    f = F.logsigmoid(heads(linear(p, "f", x))) / 8
    keys = s["state_k"].unflatten(1, (H, -1))[..., 0].transpose(-1, -2)
    o, (keys, s["state_s"]) = op(q, k, v, 1 - f.exp(), f, m["scale"], (keys, s["state_s"]), True)
    s["state_k"] = keys.transpose(-1, -2).flatten(1, 2)[..., None]
    return rms(F.silu(o).flatten(-2), p["norm.weight"])


def stickbreaking(op, p, x, s, m):
    return op(*(heads(linear(p, n, x)) for n in "qkv"), m["scale"])[0].flatten(-2)


def based(op, p, x, s, m):
    q, k, v = (heads(linear(p, n, x)).transpose(1, 2) for n in "qkv")
    return op(q, k, v).transpose(1, 2).flatten(-2)


# layer, folder and function of the package
LAYERS = {
    "op_gdn2": (gdn2, "gdn2", "naive_recurrent_gdn2"),
    "op_comba": (comba, "comba", "naive_recurrent_comba"),
    "op_deltaproduct": (deltaproduct, "gated_delta_product", "naive_recurrent_gated_delta_product"),
    "op_gated_deltaproduct": (deltaproduct, "gated_delta_product", "naive_recurrent_gated_delta_product"),
    "op_lightning": (lightning, "simple_gla", "naive_recurrent_simple_gla"),
    "op_pgdn": (preconditioned, "precond_gated_delta_rule", "naive_recurrent_precond_gated_delta_rule"),
    "op_pkda": (preconditioned, "precond_kda", "naive_recurrent_precond_kda"),
    "op_gsa": (gsa, "gsa", "naive_recurrent_gsa"),
    "op_based": (based, "based", "naive_parallel_based"),
    "op_stickbreaking": (stickbreaking, "stickbreaking_attn", "naive_stickbreaking_attn"),
}


def write(fla, to, name, length):
    layer, folder, function = LAYERS[name]
    variant, _, of = mixers.FILES[name]
    random = np.random.default_rng(zlib.crc32(f"{name} {length}".encode()))
    shapes, m = of(H, D)
    m = dict(dict(scale=m["dk"] ** -0.5), **m, H=H)
    shapes["o.weight"] = (D, H * m["dv"])
    p = {k: torch.tensor(v, requires_grad=True) for k, v in mixers.drawn(shapes, random).items()}
    B = 2
    s0 = {k: v.astype(np.float32).astype(float) for k, v in mixers.states(m, B, random).items() if k != "mem"}
    x, dy = (random.standard_normal((B, length, D)).astype(np.float32).astype(float) for _ in "xy")
    s = {k: torch.tensor(v) for k, v in s0.items()}
    rows = torch.tensor(x, requires_grad=True)
    y = linear(p, "o", layer(naive(fla, folder, function), p, rows, s, m))
    (y * torch.tensor(dy)).sum().backward()
    arrays = {"in.x": x, "in.dy": dy, "out.y": y.detach().numpy(), "out.grad.x": rows.grad.numpy()}
    arrays.update({"in." + k: v for k, v in s0.items()})
    arrays.update({"out." + k: v.detach().numpy() for k, v in s.items()})
    for k, v in p.items():
        arrays["param.attn." + k] = v.detach().numpy()
        arrays["out.grad.attn." + k] = v.grad.numpy()
    meta = dict(mixers.said(name, variant, m, H, D), kind="attention", d_inner=0, n_layer=1, norm="none", batch=B, seq=length,
                mem=0, generator="fla.py float64")
    mixers.save(f"{to}/{name}_{length}.safetensors", arrays, meta)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    for name in sys.argv[3:] or LAYERS:
        for length in LENGTHS:
            write(sys.argv[1], sys.argv[2], name, length)


if __name__ == "__main__":
    main()
