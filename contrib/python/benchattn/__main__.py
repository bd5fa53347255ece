# SPDX-License-Identifier: MIT
"""python -m benchattn: does this installation compute what it should, on this CPU? Outputs of every backend against
their equations in double precision, and gradients against differences of the outputs. Exit code 1 if not."""
import sys
import time

import numpy as np

import benchattn

SHAPES = ((2, 5, 0, 4, 2, 8), (1, 70, 59, 2, 2, 64), (1, 1, 33, 8, 1, 16))  # B, L, M, H, Hkv, dh


def numbers(shape, random):
    return (random.standard_normal(shape) * 0.5).astype(np.float32)


def attention(q, k, v, bias):
    """Causal, with a bias by distance; in the precision of its operands."""
    (_, L, H, dh), (_, K, Hkv, _) = q.shape, k.shape
    k, v = k.repeat(H // Hkv, 2), v.repeat(H // Hkv, 2)
    dist = K - L + np.arange(L)[:, None] - np.arange(K)[None, :]
    s = np.einsum("bihd,bjhd->bhij", q, k) / dh ** 0.5 + bias[K - 1 - np.maximum(dist, 0)]
    p = np.exp(np.where(dist >= 0, s, -np.inf) - s.max(3, keepdims=True))
    return np.einsum("bhij,bjhd->bihd", p / p.sum(3, keepdims=True), v)


def recurrence(q, k, v, g, beta):
    """The gated delta rule, key by key."""
    (B, L, H, dk), (_, K, Hs, dv) = q.shape, v.shape
    S, out = np.zeros((B, Hs, dk, dv)), []
    for t in range(K):
        S = S * np.exp(g[:, t])[..., None, None]
        value = beta[:, t][..., None] * (v[:, t] - np.einsum("bhde,bhd->bhe", S, k[:, t]))
        S = S + k[:, t][..., None] * value[:, :, None]
        if t >= K - L:
            out.append(np.einsum("bhde,bhd->bhe", S.repeat(H // Hs, 1), q[:, t - K + L]))
    return np.stack(out, 1)


def conv(x, w, bias, s0):
    """With SiLU, after a state."""
    rows = np.concatenate([s0, x], 1)
    y = bias + sum(w[:, s] * rows[:, s:s + x.shape[1]] for s in range(w.shape[1]))
    return y / (1 + np.exp(-y))


def slope(function, operands, name, d_o, random):
    """The change of sum(d_o o) along a random direction of one operand, in double precision; and the direction."""
    x = {n: a.astype(float) for n, a in operands.items()}
    way, step = random.standard_normal(x[name].shape), 1e-5
    ends = [function(**{**x, name: x[name] + sign * step * way}) for sign in (1, -1)]
    return float((d_o * (ends[0] - ends[1])).sum() / (2 * step)), way


def wrong(kind, function, operands, options, random):
    """What differs from the definition by more than its roundings, which lie below 1e-4 of the largest term here."""
    call = kind(**operands, **options)
    o, want = call.forward(), function(**{n: a.astype(float) for n, a in operands.items()})
    if not np.abs(o - want).max() < 1e-4 * max(1, np.abs(want).max()):
        yield "output"
    d_o = numbers(o.shape, random)
    for name, grad in call.backward(d_o).items():
        along, way = slope(function, operands, name, d_o, random)
        if not abs((grad * way).sum() - along) < 1e-4 * (np.abs(grad * way).sum() + 1e-2):
            yield f"gradient of {name}"


def main():
    start, random, failures = time.monotonic(), np.random.default_rng(1), 0
    for backend in benchattn.backends():
        engine = benchattn.Engine(backend, 2)
        for B, L, M, H, Hkv, dh in SHAPES:
            q, k, v = (numbers((B, n, heads, dh), random) for n, heads in ((L, H), (L + M, Hkv), (L + M, Hkv)))
            k /= np.sqrt((k * k).sum(3, keepdims=True))
            gates = {"g": -np.abs(numbers((B, L + M, Hkv), random)), "beta": np.abs(numbers((B, L + M, Hkv), random)) % 1}
            qkv, n = {"q": q, "k": k, "v": v}, H * dh
            short = {name: numbers(shape, random) for name, shape in (("x", (B, L, n)), ("w", (n, 4)), ("bias", n), ("s0", (B, 3, n)))}
            cases = ((benchattn.Attention, attention, {**qkv, "bias": numbers(L + M, random)}, {"causal": True}),
                     (benchattn.Recurrence, recurrence, {**qkv, **gates}, {}), (benchattn.Convolution, conv, short, {"silu": True}))
            for kind, function, operands, options in cases:
                for what in wrong(kind, function, operands, {**options, "engine": engine}, random):
                    print(f"{backend}: {function.__name__}, {L} queries, {L + M} keys: {what} is wrong")
                    failures += 1
    print(f"benchattn {benchattn.__version__}, {benchattn._lib._name}: backends {' '.join(benchattn.backends())}; "
          f"{'OK' if not failures else f'{failures} wrong'} in {time.monotonic() - start:.1f} s")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
