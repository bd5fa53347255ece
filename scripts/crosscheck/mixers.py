#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Golden files of mixers, computed token by token in double precision from the equations of their papers.

    scripts/crosscheck/mixers.py DIR [NAME...]
    build/release/golden check --golden DIR

Nothing here is the program's: a state of each head is a matrix, and a derivative is the imaginary part of the result where a
number is moved by 1e-200 i, which rounds nothing. Needs numpy."""

import json
import math
import struct
import sys
import zlib

import numpy as np

B, T, D, H = 2, 12, 10, 2
LM = dict(D=12, V=19, F=16, N=3, H=2, segments=(6, 1, 5), mem=7)
EPS = 1e-5


# ---- what mixers have in common; every array has a leading axis of moved copies

def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def silu(x):
    return x * sigmoid(x)


def softplus(x):
    return np.log(1 + np.exp(x))


def linear(p, name, x, bias=False):
    y = x @ np.swapaxes(p[name + ".weight"], -1, -2)[:, None]
    return y + p[name + ".bias"][:, None, None] if bias else y


def heads(x, H):
    return x.reshape(x.shape[:-1] + (H, -1))


def flat(x):
    return x.reshape(x.shape[:-2] + (-1,))


def unit(x):
    return x / np.sqrt((x * x).sum(-1, keepdims=True) + 1e-6)


def rms(x, w, eps=EPS):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * w


def convolved(p, x, s, act=silu):
    w, taps = p["conv.weight"], p["conv.weight"].shape[-1]
    rows = np.concatenate([s["conv"], x], 2)
    s["conv"] = rows[:, :, rows.shape[2] - taps + 1:]
    y = sum(rows[:, :, i:i + x.shape[2]] * w[:, None, None, :, i] for i in range(taps))
    return act(y + (p["conv.bias"][:, None, None] if "conv.bias" in p else 0))


def qkv(p, x, s, widths, conv):
    all_ = np.concatenate([linear(p, n, x) for n in "qkv"], -1)
    all_ = convolved(p, all_, s) if conv else silu(all_)
    return np.split(all_, np.cumsum(widths)[:-1], -1)


def decays(p, x, m):
    """-e^A softplus(W x + b), a number for each head, or for each channel of one."""
    dt = linear(p, "dt_b", linear(p, "dt_a", x)) if "dt_a.weight" in p else linear(p, "dt", x)
    dt = heads(softplus(dt + p["dt_bias"][:, None, None]), m["H"])
    return -np.exp(p["A_log"])[:, None, None, :, None] * dt


def walk(s, T, step):
    """o of every token; step(t, S) gives the new state and the token's output. S [P,B,H,dk,dv]."""
    out = []
    for t in range(T):
        s["state_s"], o = step(t, s["state_s"])
        out.append(o)
    return np.stack(out, 2)


def ask(S, q):
    return (S * q[..., None]).sum(-2)


def write(S, k, v):
    return S + k[..., None] * v[..., None, :]


# ---- mixers: p, x [P,B,T,D], s their states -> y before W_o

def gdn2(p, x, s, m):
    q, k, v = (heads(y, m["H"]) for y in qkv(p, x, s, m["widths"], True))
    q, k, g = unit(q), unit(k), decays(p, x, m)
    b, w = (heads(sigmoid(linear(p, n, x)), m["H"]) for n in ("erase", "write"))

    def step(t, S):
        S = np.exp(g[:, :, t])[..., None] * S
        old = ask(S, b[:, :, t] * k[:, :, t])
        S = write(S, k[:, :, t], w[:, :, t] * v[:, :, t] - old)
        return S, ask(S, q[:, :, t]) * m["scale"]

    o = flat(rms(walk(s, x.shape[2], step), p["norm.weight"][:, None, None, None]))
    return o * sigmoid(linear(p, "g_b", linear(p, "g_a", x), True))


def deltaproduct(p, x, s, m):
    n, H = m["delta_steps"], m["H"]
    q, k, v = qkv(p, x, s, m["widths"], True)
    q = unit(heads(q, H))
    # n keys of all heads, one after the other
    k, v = (heads(y.reshape(y.shape[:-1] + (n, -1)), H) for y in (k, v))
    k = unit(k)
    beta = 2 * sigmoid(linear(p, "beta", x))
    beta = beta.reshape(beta.shape[:-1] + (n, H))
    g = decays(p, x, m) if m["gated"] else None

    def step(t, S):
        if m["gated"]:
            S = np.exp(g[:, :, t])[..., None] * S
        for j in range(n):
            S = write(S, k[:, :, t, j], beta[:, :, t, j, :, None] * (v[:, :, t, j] - ask(S, k[:, :, t, j])))
        return S, ask(S, q[:, :, t]) * m["scale"]

    o = flat(rms(walk(s, x.shape[2], step), p["norm.weight"][:, None, None, None]))
    return o * silu(linear(p, "g", x)) if m["gated"] else o


def comba(p, x, s, m):
    q, k, v = (heads(y, m["H"]) for y in qkv(p, x, s, m["widths"], True))
    q, k, g = unit(q), unit(k), decays(p, x, m)
    beta = sigmoid(linear(p, "beta", x))[..., None]
    d, share = (y[:, None, None, :, None] for y in (p["D"], sigmoid(p["decay"])))
    q, erased = q - d * k, share * k

    def step(t, S):
        S = np.exp(g[:, :, t])[..., None] * S
        S = write(S, k[:, :, t], beta[:, :, t] * (v[:, :, t] - ask(S, erased[:, :, t])))
        return S, ask(S, q[:, :, t]) * m["scale"]

    o = flat(rms(walk(s, x.shape[2], step), p["norm.weight"][:, None, None, None]))
    return o * sigmoid(linear(p, "g", x))


def lightning(p, x, s, m):
    q, k, v = (heads(y, m["H"]) for y in qkv(p, x, s, m["widths"], False))
    rate = 2.0 ** (-8 * np.arange(1, m["H"] + 1) / m["H"])  # H is a power of 2
    keep = np.exp(-rate * (1 - m["layer"] / max(1, m["N"] - 1) + 1e-5))[:, None, None]

    def step(t, S):
        S = write(keep * S, k[:, :, t], v[:, :, t])
        return S, ask(S, q[:, :, t]) * m["scale"]

    o = rms(flat(walk(s, x.shape[2], step)), p["norm.weight"][:, None, None])
    return o * sigmoid(linear(p, "g", x))


def rglru(p, x, s, m):
    n, erf = m["H"], np.vectorize(math.erf)
    u = convolved(p, linear(p, "x", x), s, lambda y: y)

    def gate(name):
        z = np.einsum("cbthe,chde->cbthd", heads(u, n), p[name + ".weight"])
        return sigmoid(flat(z) + p[name + ".bias"][:, None, None])

    a = np.exp(-8 * softplus(p["L"][:, None, None]) * gate("r"))
    v = np.sqrt(1 - a * a) * gate("i") * u

    def step(t, S):
        S = a[:, :, t, :, None, None] * S + v[:, :, t, :, None, None]
        return S, S[..., 0]

    z = linear(p, "g", x)  # z Phi(z): the slope of Phi is the normal density
    phi = 0.5 * (1 + erf(z.real / math.sqrt(2))) + 1j * z.imag * np.exp(-z.real ** 2 / 2) / math.sqrt(2 * math.pi)
    return flat(walk(s, x.shape[2], step)) * z * phi


def shortconv(p, x, s, m):
    b, c, u = (linear(p, n, x, n + ".bias" in p) for n in "bcx")
    return c * convolved(p, b * u, s, lambda y: y)


def preconditioned(p, x, s, m):
    q, k, v = (heads(y, m["H"]) for y in qkv(p, x, s, m["widths"], True))
    q, k, g = unit(q), unit(k), decays(p, x, m)
    rates = -np.exp(p["A_log_atk"])[:, None, None] * softplus(linear(p, "dt_atk", x) + p["dt_bias_atk"][:, None, None])
    writes, adds = sigmoid(linear(p, "beta", x)), sigmoid(linear(p, "beta_atk", x))
    A = s["state_a"].reshape(s["state_a"].shape[:3] + (-1,))
    wide = []
    for t in range(x.shape[2]):
        A = np.exp(rates[:, :, t])[..., None] * A + adds[:, :, t, :, None] * k[:, :, t] ** 2
        r = np.log(A + 1e-6) - p["atk"][:, None, :, None]
        wide.append(k[:, :, t] * np.exp(-np.log(1.5) * r / (1 + np.where(r.real < 0, -r, r))))
    s["state_a"] = A.reshape(s["state_a"].shape)

    def step(t, S):
        S = np.exp(g[:, :, t])[..., None] * S
        S = write(S, wide[t], writes[:, :, t, :, None] * (v[:, :, t] - ask(S, k[:, :, t])))
        return S, ask(S, q[:, :, t]) * m["scale"]

    o = flat(rms(walk(s, x.shape[2], step), p["norm.weight"][:, None, None, None]))
    return o * (sigmoid if m["channels"] else silu)(linear(p, "g", x))


def gsa(p, x, s, m):
    H = m["H"]
    q, k, v = (heads(y, H) for y in qkv(p, x, s, m["widths"], False))
    keep = sigmoid(heads(linear(p, "f", x), H)) ** (1 / 8)
    keys = np.swapaxes(s["state_k"].reshape(s["state_k"].shape[:2] + (H, -1, q.shape[-1])), -1, -2)  # [.., dk, m]
    out = []
    for t in range(x.shape[2]):
        f = keep[:, :, t]
        keys = keys * f[..., None, :] + k[:, :, t, :, :, None] * (1 - f)[..., None, :]
        z = ask(keys, q[:, :, t])
        e = np.exp(z - z.real.max(-1, keepdims=True))
        s["state_s"] = write(f[..., None] * s["state_s"], 1 - f, v[:, :, t])
        out.append(silu(ask(s["state_s"], e / e.sum(-1, keepdims=True))))
    s["state_k"] = np.swapaxes(keys, -1, -2).reshape(s["state_k"].shape)
    return rms(flat(np.stack(out, 2)), p["norm.weight"][:, None, None])


# ---- attention: weights of the scores z [P,B,H,T,K] where `seen` [T,K]; rows: those of a memory, then T new ones

def sigmoid_weights(p, z, seen):
    return np.where(seen, sigmoid(z - np.log(seen.sum(-1, keepdims=True))), 0)


def based(p, z, seen):
    w = np.where(seen, 1 + z + z * z / 2, 0)
    return w / (w.sum(-1, keepdims=True) + 1e-6)


def softpick(p, z, seen):
    most = np.take_along_axis(z, np.where(seen, z.real, -np.inf).argmax(-1)[..., None], -1)
    t = np.where(seen, np.exp(z - most) - np.exp(-most), 0)
    return np.where(t.real > 0, t, 0) / (np.where(t.real > 0, t, -t).sum(-1, keepdims=True) + 1e-6)


def stickbreaking(p, z, seen):
    w, T, K = 0 * z, *seen.shape
    for i in range(T):
        left = 1
        for j in reversed(range(K - T + i)):  # from the key before the query's own
            w[..., i, j] = sigmoid(z[..., i, j]) * left
            left = left * (1 - sigmoid(z[..., i, j]))
    return w


def ssmax(p, z, seen):
    z = np.where(seen, z * p["ssmax"][:, None, :, None, None] * np.log(seen.sum(-1, keepdims=True)), -700)
    e = np.exp(z - z.real.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def rotated(x):
    n, half = x.shape[2], x.shape[-1] // 2
    at = np.outer(np.arange(n), 10000.0 ** (-np.arange(half) / half))[:, None]
    a, b = x[..., :half], x[..., half:]
    return np.concatenate([a * np.cos(at) - b * np.sin(at), b * np.cos(at) + a * np.sin(at)], -1)


def attend(weigh):
    def run(p, rows, T, m):
        q, k, v = (heads(linear(p, n, rows), m["H"]) for n in "qkv")
        if m["rope"]:
            q, k = rotated(q), rotated(k)
        K = rows.shape[2]
        seen = np.arange(K) <= np.arange(K - T, K)[:, None]
        w = weigh(p, np.einsum("pbihd,pbjhd->pbhij", q[:, :, -T:], k) * m["scale"], seen)
        return flat(np.einsum("pbhij,pbjhd->pbihd", w, v))
    return run


def of_attention(name, rope, **own):
    def of(H, D, dh=6):
        shapes = {n + ".weight": (H * dh, D) for n in "qkv"}
        shapes.update({k: (H,) for k in own})
        says = dict(scheme="rope", rope_pairs="half", rope_dim=dh, rope_base=10000) if rope else {}
        return shapes, dict(dk=dh, dv=dh, conv=0, rope=rope, attends=True,
                            says=dict({name: 1, "mixer": "none", "rel_rows": 0, "base": 0}, **says))
    return of


def of_based(H, D, dh=6):
    shapes, m = of_attention("based", False)(H, D, dh)
    return shapes, dict(m, says=dict(mixer="based", lin_eps=1e-6, rel_rows=0))


def delta_shapes(dk, dv, H, D, conv, n=1):
    q, k, v = H * dk, n * H * dk, n * H * dv
    shapes = {"q.weight": (q, D), "k.weight": (k, D), "v.weight": (v, D)}
    if conv:
        shapes["conv.weight"] = (q + k + v, conv)
    return shapes, dict(widths=(q, k, v), dk=dk, dv=dv, conv=conv)


def of_gdn2(H, D, dk=5, dv=4, lora=3):
    shapes, m = delta_shapes(dk, dv, H, D, 4)
    shapes.update({"dt_a.weight": (lora, D), "dt_b.weight": (H * dk, lora), "dt_bias": (H * dk,), "A_log": (H,),
                   "erase.weight": (H * dk, D), "write.weight": (H * dv, D), "norm.weight": (dv,),
                   "g_a.weight": (lora, D), "g_b.weight": (H * dv, lora), "g_b.bias": (H * dv,)})
    return shapes, dict(m, says=dict(conv_width=4, lora=lora))


def of_deltaproduct(gated, n):
    def of(H, D, dk=5, dv=4):
        shapes, m = delta_shapes(dk, dv, H, D, 4, n)
        shapes.update({"beta.weight": (n * H, D), "norm.weight": (dv,)})
        if gated:
            shapes.update({"dt.weight": (H, D), "dt_bias": (H,), "A_log": (H,), "g.weight": (H * dv, D)})
        return shapes, dict(m, gated=gated, delta_steps=n,
                            says=dict(conv_width=4, delta_steps=n, beta_max=2, out_gate="swish" if gated else "none"))
    return of


def of_comba(H, D, dk=5, dv=4):
    shapes, m = delta_shapes(dk, dv, H, D, 4)
    shapes.update({"beta.weight": (H, D), "dt.weight": (H, D), "dt_bias": (H,), "A_log": (H,), "decay": (H,), "D": (H,),
                   "norm.weight": (dv,), "g.weight": (H * dv, D)})
    return shapes, dict(m, says=dict(conv_width=4, out_gate="sigmoid"))


def of_lightning(H, D, dk=5, dv=5):
    shapes, m = delta_shapes(dk, dv, H, D, 0)
    shapes.update({"norm.weight": (H * dv,), "g.weight": (H * dv, D)})
    return shapes, dict(m, scale=1.0, says=dict(norm_whole=1, out_gate="sigmoid"))


def of_preconditioned(channels):
    def of(H, D, dk=5, dv=4, lora=3):
        shapes, m = delta_shapes(dk, dv, H, D, 4)
        shapes.update({n + ".weight": (H, D) for n in ("beta", "beta_atk", "dt_atk")})
        shapes.update({"A_log": (H,), "A_log_atk": (H,), "dt_bias_atk": (H,), "atk": (H,), "norm.weight": (dv,),
                       "g.weight": (H * dv, D), "dt_bias": (H * dk if channels else H,)})
        shapes.update({"dt_a.weight": (lora, D), "dt_b.weight": (H * dk, lora)} if channels else {"dt.weight": (H, D)})
        says = dict({"lora": lora} if channels else {}, conv_width=4, out_gate="sigmoid" if channels else "swish")
        return shapes, dict(m, channels=channels, states={"state_a": (H, 1, dk)}, says=says)
    return of


def of_gsa(H, D, dk=5, dv=4):
    shapes, m = delta_shapes(dk, dv, H, D, 0)
    shapes.update({"f.weight": (H * dk, D), "norm.weight": (H * dv,)})
    return shapes, dict(m, scale=1.0, states={"state_k": (H * dk, dk, 1)}, says=dict(norm_whole=1, out_gate="none", gate_tau=8))


def of_rglru(H, D, dv=4):
    n = H * dv
    shapes = {"x.weight": (n, D), "conv.weight": (n, 4), "conv.bias": (n,), "g.weight": (n, D), "L": (n,)}
    for gate in "ri":
        shapes.update({gate + ".weight": (H, dv, dv), gate + ".bias": (n,)})
    return shapes, dict(widths=(n,), dk=1, dv=dv, conv=4, scale=1.0, state=(n, 1, 1), says=dict(conv_width=4))


def of_shortconv(taps, bias):
    def of(H, D):
        shapes = {n + ".weight": (D, D) for n in "bcx"}
        shapes.update({"conv.weight": (D, taps)})
        if bias:
            shapes.update({n + ".bias": (D,) for n in ("b", "c", "x", "conv", "o")})
        return shapes, dict(widths=(D,), dk=D // H, dv=D // H, conv=taps, scale=1.0, state=(),
                            says=dict(short_taps=taps, short_bias=int(bias)))
    return of


# name of the file: variant, its layer, its parameters
FILES = {
    "op_gdn2": ("gdn2", gdn2, of_gdn2),
    "op_comba": ("comba", comba, of_comba),
    "op_deltaproduct": ("deltaproduct", deltaproduct, of_deltaproduct(False, 3)),
    "op_gated_deltaproduct": ("gated-deltaproduct", deltaproduct, of_deltaproduct(True, 2)),
    "op_lightning": ("lightning", lightning, of_lightning),
    "op_rglru": ("rglru", rglru, of_rglru),
    "op_shortconv": ("shortconv", shortconv, of_shortconv(3, False)),
    "op_shortconv_bias": ("shortconv", shortconv, of_shortconv(4, True)),
    "lm_shortconv": ("shortconv", shortconv, of_shortconv(3, False)),
    "lm_lightning": ("lightning", lightning, of_lightning),
    "op_pgdn": ("pgdn", preconditioned, of_preconditioned(False)),
    "op_pkda": ("pkda", preconditioned, of_preconditioned(True)),
    "lm_pgdn": ("pgdn", preconditioned, of_preconditioned(False)),
    "op_gsa": ("gsa", gsa, of_gsa),
    "lm_gsa": ("gsa", gsa, of_gsa),
    "op_sigmoid": ("sigmoid-attention", attend(sigmoid_weights), of_attention("sigmoid", False)),
    "lm_sigmoid": ("sigmoid-attention", attend(sigmoid_weights), of_attention("sigmoid", True)),
    "op_stickbreaking": ("stickbreaking", attend(stickbreaking), of_attention("stickbreaking", False)),
    "lm_stickbreaking": ("stickbreaking", attend(stickbreaking), of_attention("stickbreaking", False)),
    "op_based": ("based", attend(based), of_based),
    "op_softpick": ("softpick", attend(softpick), of_attention("softpick", False)),
    "op_softpick_rope": ("softpick", attend(softpick), of_attention("softpick", True)),
    "lm_softpick": ("softpick", attend(softpick), of_attention("softpick", True)),
    "op_ssmax": ("ssmax", attend(ssmax), of_attention("ssmax", True, ssmax=1)),
    "lm_ssmax": ("ssmax", attend(ssmax), of_attention("ssmax", True, ssmax=1)),
}


# ---- a layer, and a model of such layers

def states(m, B, random):
    if "attends" in m:
        return {"mem": random.standard_normal((B, m.get("mem", 0), D))}
    s = {} if m.get("state") == () else {"state_s": 0.4 * random.standard_normal((B,) + m.get("state", (m["H"], m["dk"], m["dv"])))}
    for name, shape in m.get("states", {}).items():
        s[name] = abs(random.standard_normal((B,) + shape))
    if m["conv"]:
        s["conv"] = random.standard_normal((B, m["conv"] - 1, sum(m["widths"])))
    return s


def layer(run, p, x, s, m, norm=lambda rows: rows):
    if "attends" not in m:
        return linear(p, "o", run(p, norm(x), s, m), "o.bias" in p)
    rows = np.concatenate([s["mem"], x], 2)
    s["mem"] = rows[:, :, -LM["mem"]:]
    return linear(p, "o", run(p, norm(rows), x.shape[2], m))


def model(run, p, tokens, states, m):
    """Losses [P,B,T] of a text and its logits; states are those of each layer."""
    x = p["embed.weight"][:, tokens] * np.sqrt(LM["D"])
    for l, s in enumerate(states):
        own = {k[len(f"layers.{l}."):]: v for k, v in p.items() if k.startswith(f"layers.{l}.")}
        part = lambda at: {k[len(at):]: v for k, v in own.items() if k.startswith(at)}
        a, f = part("attn."), part("ff.")
        x = x + layer(run, a, x, s, dict(m, layer=l), lambda rows: rms(rows, own["ln1.weight"][:, None, None]))
        y = rms(x, own["ln2.weight"][:, None, None])
        x = x + linear(f, "2", silu(linear(f, "g", y)) * linear(f, "1", y))
    x = rms(x, p["final_ln.weight"][:, None, None])
    return x @ np.swapaxes(p["embed.weight"], -1, -2)[:, None]


def losses(logits, targets):
    most = logits.real.max(-1, keepdims=True)
    lse = np.log(np.exp(logits - most).sum(-1)) + most[..., 0]
    return lse - np.take_along_axis(logits, targets[None, ..., None], -1)[..., 0]


# ---- derivatives: a copy for each number that is moved

def derivatives(loss, given, most=160):
    """Of loss(dict) [P] by each number of the given arrays."""
    out = {}
    for name in given:
        n = given[name].size
        at = np.zeros(n)
        for first in range(0, n, most):
            count = min(most, n - first)
            moved = {k: np.broadcast_to(v.astype(complex), (count,) + v.shape) for k, v in given.items()}
            one = np.tile(given[name].reshape(1, -1).astype(complex), (count, 1))
            one[np.arange(count), first + np.arange(count)] += 1e-200j
            moved[name] = one.reshape((count,) + given[name].shape)
            at[first:first + count] = loss(moved).imag / 1e-200
        out[name] = at.reshape(given[name].shape)
    return out


# ---- files

def drawn(shapes, random):
    p = {}
    for name, shape in shapes.items():
        if name.split(".")[-1] == "weight" and len(shape) == 1:
            x = 1 + 0.3 * random.standard_normal(shape)
        else:
            x = random.standard_normal(shape) * (1.2 / np.sqrt(shape[-1]) if len(shape) > 1 else 0.7)
        p[name] = np.round(x, 3).astype(np.float32).astype(float)
    return p


def save(path, arrays, meta):
    names, at, head = sorted(arrays), 0, {"__metadata__": {k: str(v) for k, v in meta.items()}}
    data = []
    for name in names:
        x = arrays[name]
        x = np.ascontiguousarray(x.real, np.int32 if x.dtype.kind == "i" else np.float32)
        head[name] = dict(dtype="I32" if x.dtype.kind == "i" else "F32", shape=list(x.shape),
                          data_offsets=[at, at + x.nbytes])
        at += x.nbytes
        data.append(x.tobytes())
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(data))


def said(name, variant, m, H, D):
    meta = dict(name=name, variant=variant, mixer=variant.replace("-", "_"), n_head=H, kv_heads=H, d_model=D, d_head=m["dk"],
                d_value=m["dv"], scale=repr(float(m["scale"])), gate="none", out_gate="none", window=0, causal=1, attn_bias=0,
                scheme="none", pos="none", tolerance=3e-5, tolerance_abs=2e-5, tolerance_grad=2e-4, tolerance_grad_abs=1e-4,
                generator="mixers.py float64")
    meta.update(m["says"])
    return meta


def single(name, variant, run, of, random):
    shapes, m = of(H, D)
    m = dict(dict(scale=m["dk"] ** -0.5, mem=4), **m, H=H, N=1, layer=0)
    shapes["o.weight"] = (D, H * m["dv"])
    p = drawn(shapes, random)
    s0 = {k: np.round(v, 3).astype(np.float32).astype(float) for k, v in states(m, B, random).items()}
    x, dy = (np.round(random.standard_normal((B, T, D)), 3).astype(np.float32).astype(float) for _ in "xy")

    def loss(given):
        s = {k: np.broadcast_to(v, given["x"].shape[:1] + v.shape) for k, v in s0.items()}
        return (layer(run, given, given["x"], s, m) * dy).sum((1, 2, 3))

    s = {k: v[None] for k, v in s0.items()}
    y = layer(run, {k: v[None] for k, v in p.items()}, x[None], s, m)[0]
    arrays = {"in.x": x, "in.dy": dy, "out.y": y}
    arrays.update({"in." + k: v for k, v in s0.items()})
    arrays.update({"out." + k: v[0] for k, v in s.items() if k != "mem"})
    arrays.update({"param.attn." + k: v for k, v in p.items()})
    grads = derivatives(loss, dict(p, x=x))
    arrays.update({"out.grad." + ("x" if k == "x" else "attn." + k): v for k, v in grads.items()})
    return arrays, dict(said(name, variant, m, H, D), kind="attention", d_inner=0, n_layer=1, norm="none", batch=B, seq=T,
                        mem=s0["mem"].shape[1] if "mem" in s0 else 0)


def language(name, variant, run, of, random):
    D, V, F, N, H = (LM[k] for k in ("D", "V", "F", "N", "H"))
    own, m = of(H, D)
    m = dict(dict(scale=m["dk"] ** -0.5), **m, H=H, N=N)
    shapes = {"embed.weight": (V, D), "final_ln.weight": (D,)}
    for l in range(N):
        at = f"layers.{l}."
        shapes.update({at + "attn." + k: v for k, v in own.items()})
        shapes.update({at + "attn.o.weight": (D, H * m["dv"]), at + "ln1.weight": (D,), at + "ln2.weight": (D,),
                       at + "ff.g.weight": (F, D), at + "ff.1.weight": (F, D), at + "ff.2.weight": (D, F)})
    p = drawn(shapes, random)
    p["embed.weight"] = np.round(p["embed.weight"] * 0.8, 3).astype(np.float32).astype(float)
    now = [{k: 0 * v[None] for k, v in states(m, B, random).items()} for _ in range(N)]
    for s in now:
        s.update({"mem": np.zeros((1, B, 0, D))} if "mem" in s else {})
    arrays, total, count = {"param." + k: v for k, v in p.items()}, 0.0, 0
    for i, length in enumerate(LM["segments"]):
        text = random.integers(0, V, (B, length + 1))
        tokens, targets = text[:, :-1], text[:, 1:]
        before = [dict(s) for s in now]
        logits = model(run, {k: v[None] for k, v in p.items()}, tokens, now, m)
        nll = losses(logits, targets)[0]
        total, count = total + nll.sum(), count + nll.size
        arrays.update({f"in.tokens.{i}": tokens, f"in.targets.{i}": targets, f"out.logits.{i}": logits[0], f"out.nll.{i}": nll})
        arrays.update({f"out.{k}.{i}.{l}": v[0] for l, s in enumerate(now) for k, v in s.items()})

    def loss(given):
        copies = given["embed.weight"].shape[:1]
        s = [{k: np.broadcast_to(v[0], copies + v[0].shape) for k, v in one.items()} for one in before]
        return losses(model(run, given, tokens, s, m), targets).mean((1, 2))

    arrays.update({"out.grad." + k: v for k, v in derivatives(loss, p).items()})
    meta = dict(said(name, variant, m, H, D), kind="lm", norm="pre", wiring="pre", norm_kind="rms", ln_eps=EPS, d_inner=F,
                n_layer=N, vocab=V, batch=B, n_seg=len(LM["segments"]), seq=",".join(map(str, LM["segments"])),
                mem=LM["mem"] if "attends" in m else 0,
                emb_scale=repr(float(np.sqrt(D))), tied=1, out_bias=0, final_ln=1, ffn="swiglu", ff_bias=0, uv="none",
                grad_segment=len(LM["segments"]) - 1, total_nll=total, n_tokens=count, mean_nll=total / count,
                ppl=np.exp(total / count))
    return arrays, meta


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    for name in sys.argv[2:] or FILES:
        random = np.random.default_rng(zlib.crc32(name.encode()))
        save(f"{sys.argv[1]}/{name}.safetensors", *(language if name.startswith("lm_") else single)(name, *FILES[name], random))


if __name__ == "__main__":
    main()
