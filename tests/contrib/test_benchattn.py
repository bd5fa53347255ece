#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""contrib/python/benchattn: its structs against the header, its numbers against the composed form in double
precision, forward and (with PyTorch) backward, and what it refuses. The library is $BENCHATTN."""
import os
import subprocess
import sys
import tempfile
import unittest

import numpy as np

try:
    import torch
except ImportError:
    torch = None

ROOT = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "contrib", "python"))
import benchattn  # noqa: E402

B, H, HKV, L, M, DH, DV, SINKS, FUTURE = 2, 4, 2, 9, 5, 8, 6, 3, 2
K = M + L
ULP = 2.0 ** -24


def normal(*shape):
    return (normal.generator.standard_normal(shape) * 0.5).astype(np.float32)


def operands(*names, dv=DH):
    """Numbers for q, k, v and what else is named."""
    normal.generator = np.random.default_rng(7)
    rows, logs = K + FUTURE, -np.abs(normal.generator.standard_normal((B, H, K)))
    all_of = {"q": normal(B, L, H, DH), "k": normal(B, K, HKV, DH), "v": normal(B, K, HKV, dv),
              "u": normal(H, DH), "w": normal(H, DH), "rel_k": normal(H, rows, DH), "rel_v": normal(H, rows, DH),
              "rel_q": normal(H, rows, DH), "bias": normal(H, rows), "add": normal(B, 1, L, K),
              "fade": logs.cumsum(axis=2), "mix_logits": normal(H, H), "mix_probs": normal(H, H),
              "sink_k": normal(H, SINKS, DH), "sink_v": normal(H, SINKS, dv), "sink_logit": normal(H, SINKS)}
    return {n: x for n, x in all_of.items() if n in names or n in "qkv"}


def seen(causal=False, window=0, masks=None, **_):
    """Which key each query of each head sees: [H, L, K]."""
    dist = M + np.arange(L)[:, None] - np.arange(K)[None, :]
    out = np.ones((H, L, K), bool)
    for h, n in enumerate(np.broadcast_to(window, H)):
        out[h] &= (dist >= 0) | (not causal)
        out[h] &= (dist < n) | (n == 0)
    return out & (True if masks is None else masks)


def scores(t, options, sizes=False):
    """What the softmax reads of keys, then of sinks, by the equations of benchattn.h; with `sizes`, of absolute
    operands, sums of the absolute terms."""
    q, k, scale, cap = t["q"], t["k"].repeat_interleave(H // HKV, 2), DH ** -0.5, options.get("soft_cap")
    qu, qw = q + t.get("u", 0), q + t.get("w", 0)
    row = table_rows()
    s = torch.einsum("bihd,bjhd->bhij", qu, k)
    if "rel_k" in t:
        s = s + torch.einsum("bihd,hijd->bhij", qw, t["rel_k"][:, row])
    if "rel_q" in t:
        s = s + torch.einsum("bjhd,hijd->bhij", k, t["rel_q"][:, row])
    s = s * scale
    s = cap * torch.tanh(s / cap) if cap and not sizes else s
    s = s + (t["bias"][:, row] if "bias" in t else 0) + t.get("add", 0)
    if "fade" in t:
        s = s + t["fade"][:, :, M:, None] + (1 if sizes else -1) * t["fade"][:, :, None, :]
    if "mix_logits" in t:
        s = torch.einsum("gh,bhij->bgij", t["mix_logits"], s)
    s = s * (options.get("gain") or 1)
    s = s if sizes else s.masked_fill(~torch.as_tensor(seen(**options)), -np.inf)
    if "sink_logit" in t:
        sinks = scale * torch.einsum("bihd,hnd->bhin", qu, t["sink_k"]) + t["sink_logit"][None, :, None, :]
        s = torch.cat([s, sinks], 3)
    return s


def table_rows():
    dist = M + torch.arange(L)[:, None] - torch.arange(K)[None, :]
    return (K - 1 - dist).clamp(0, K + FUTURE - 1)


def outputs(t, p):
    """Of probabilities of keys, then of sinks."""
    if "mix_probs" in t:
        p = torch.einsum("gh,bhij->bgij", t["mix_probs"], p)
    o = torch.einsum("bhij,bjhd->bihd", p[..., :K], t["v"].repeat_interleave(H // HKV, 2))
    if "rel_v" in t:
        o = o + torch.einsum("bhij,hijd->bihd", p[..., :K], t["rel_v"][:, table_rows()])
    if "sink_v" in t:
        o = o + torch.einsum("bhin,hnd->bihd", p[..., K:], t["sink_v"])
    return o


CASES = [
    ((), {}),
    ((), {"causal": True}),
    (("bias", "u", "w", "rel_k"), {"causal": True, "future": FUTURE}),
    (("bias", "rel_k", "rel_v", "rel_q"), {"future": FUTURE}),
    (("add", "fade"), {"causal": True, "window": [2, 0, 7, 3], "gain": 1.5}),
    (("sink_k", "sink_v", "sink_logit"), {"causal": True, "soft_cap": 2, "window": 4}),
    (("mix_logits", "mix_probs", "bias", "add"), {"causal": True, "future": FUTURE}),
]


class Structs(unittest.TestCase):
    def test_lie_as_the_header_says(self):
        lines, want = [], []
        for name in "Options Stride Rows Mask Attention AttentionGrad Recurrence RecurrenceGrad Conv ConvGrad".split():
            kind = getattr(benchattn, "_" + name)
            tag = kind.__name__
            lines.append(f'printf("%zu\\n", sizeof(struct {tag}));')
            want.append(benchattn.ctypes.sizeof(kind))
            for member, _ in kind._fields_:
                lines.append(f'printf("%zu\\n", offsetof(struct {tag}, {member}));')
                want.append(getattr(kind, member).offset)
        with tempfile.TemporaryDirectory() as folder:
            source, program = os.path.join(folder, "x.c"), os.path.join(folder, "x")
            with open(source, "w") as f:
                f.write('#include "benchattn.h"\n#include <stdio.h>\nint main(void) {\n' + "\n".join(lines) + "\n}\n")
            subprocess.run(["cc", "-I", os.path.join(ROOT, "variants/backends/library"), source, "-o", program],
                           check=True)
            said = subprocess.run([program], check=True, capture_output=True, text=True).stdout
        self.assertEqual([int(n) for n in said.split()], want)


class Refusals(unittest.TestCase):
    def refused(self, part, function, *args, **options):
        with self.assertRaises(benchattn.Error) as e:
            function(*args, **options)
        self.assertIn(part, str(e.exception))
        self.assertIn("  -> ", str(e.exception))


class Numbers(Refusals):
    """What is set of the structs is what was given, or refused by the name of the member."""

    KINDS = "Options Stride Rows Mask Attention Recurrence".split()

    def test_of_every_member(self):
        seen = set()
        for name in self.KINDS:
            kind = getattr(benchattn, "_" + name)
            for member, of in kind._fields_:
                x = kind()
                if of is benchattn._float:
                    setattr(x, member, np.float64(0.5))
                    self.assertEqual(getattr(x, member), 0.5)
                    for bad in ("1", [1.0, 2.0], 1e39, -1e39, 1e-46):
                        self.refused(member + " is", setattr, x, member, bad)
                elif of in (benchattn._int, benchattn._long, benchattn.ctypes.c_int64):
                    end = 2 ** (8 * benchattn.ctypes.sizeof(of) - 1)
                    for good in (True, np.bool_(True), np.int64(1), np.uint8(1), end - 1, -end, 0, None):
                        setattr(x, member, good)
                        self.assertEqual(getattr(x, member), good or 0, f"{name}.{member}")
                    for bad in (end, -end - 1, 2 * end, 2 * end + 1, 2.0, np.float32(1), "1", [1]):
                        self.refused(member + " is", setattr, x, member, bad)
                    self.refused(member + " is", kind, **{member: 2 * end + 1})
                seen.add(of)
        self.assertGreaterEqual(seen, {benchattn._int, benchattn._float, benchattn._long})

    def test_of_every_option(self):
        """No number of a call is cut on its way to the struct."""
        x, far = operands("bias"), 2 ** 32 + 1
        wrong = {"window": far, "soft_cap": 1e39, "gain": 1e-46, "scale": "1", "causal": 2.5, "base": 2 ** 64 + 1,
                 "steps": (1, 1, far), "future": far, "mask_of_head": [0, 1, 2, 256]}
        for name, value in wrong.items():
            member = {"steps": "q_first"}.get(name, name)
            self.refused(member, benchattn.attention, **x, masks=[benchattn.mask()] * 4, **{name: value})
        for name, value in {"window": [1, 2, 3, 2.5], "mask_of_head": [0, 0.5, 0, 0], "steps": (1, 1),
                            "masks": [3]}.items():
            self.refused(name, benchattn.attention, **x, **{"masks": [benchattn.mask()], name: value})
        self.refused("window", benchattn.attention, **x, window=np.array([1, 2, 3, far]))
        self.refused("threads", benchattn.Engine, threads=far)
        x.pop("bias")
        for name, value in {"eps": 1e39, "scale": 1e-46}.items():
            self.refused(name, benchattn.recurrence, **x, norm="sum", **{name: value})

    def test_none_is_not_the_default_of_the_struct(self):
        """0 keys, key heads, or numbers of a value mean something else there."""
        x = operands()
        q, k, v = x["q"], x["k"], x["v"]
        for part, keys, values in (("K is 0", k[:, :0], v[:, :0]), ("Hkv is 0", k[:, :, :0], v[:, :, :0]),
                                   ("dv is 0", k, v[..., :0])):
            for cross in (False, True):
                self.refused(part, benchattn.attention, q, keys.copy(), values.copy(), cross=cross)
        self.refused("Hs is 0", benchattn.recurrence, q, k[:, :, :0].copy(), v[:, :, :0].copy())
        for empty in (q[:0], q[:, :, :0], q[..., :0]):
            self.refused("", benchattn.attention, empty.copy(), k, v)

    def test_axes_of_length_1_have_any_stride(self):
        x = operands()
        one = {n: a[:1].copy() for n, a in x.items()}
        turned = {n: a[::-1][1:] for n, a in x.items()}
        self.assertLess(turned["k"].strides[0], 0)
        np.testing.assert_array_equal(benchattn.recurrence(**one), benchattn.recurrence(**turned))
        np.testing.assert_array_equal(benchattn.attention(**one), benchattn.attention(**turned))


class Numpy(Refusals):
    def test_version_is_the_programs(self):
        line = [os.environ.get("BENCH", "bench"), "--version"]
        said = subprocess.run(line, capture_output=True, text=True, check=True)
        self.assertEqual(said.stdout.split()[1], benchattn.__version__)

    def test_engines_end_quietly(self):
        """Also where the module's names are gone, and where opening failed."""
        line = "import benchattn; e = benchattn.Engine(); f = benchattn.Engine.__new__(benchattn.Engine); "
        for gone in ("", "del e, f; ", "benchattn._lib = None; ", "vars(benchattn).clear(); del e, f; "):
            said = subprocess.run([sys.executable, "-c", line + gone], capture_output=True, text=True, check=True,
                                  env=dict(os.environ, PYTHONPATH=os.path.join(ROOT, "contrib", "python")))
            self.assertEqual(said.stderr, "", gone)

    def test_heads_first(self):
        x = operands("bias", dv=DV)
        turned = {n: x[n].swapaxes(1, 2) if n in "qkv" else x[n] for n in x}  # of q, k and v views
        copied = {n: a.copy() for n, a in turned.items()}
        o, lse = benchattn.attention(**x, future=FUTURE, causal=True, return_lse=True)
        for given in (turned, copied):
            got = benchattn.attention(**given, future=FUTURE, causal=True, return_lse=True, layout="bhld")
            np.testing.assert_array_equal(got[0].swapaxes(1, 2), o)
            np.testing.assert_array_equal(got[1], lse)

    def test_sdpa(self):
        """The terms of attention by the other names; a query that sees nothing gets 0."""
        x = operands(dv=DV)
        t = [x[n].swapaxes(1, 2) for n in "qkv"]
        bits, add = normal(B, 1, L, K) > -0.3, normal(H, L, K)
        bits[0, 0, 2] = False
        causal = np.tri(L, K, dtype=bool)
        for given, ours in (({}, {}), ({"scale": 0.3}, {"scale": 0.3}), ({"is_causal": True}, {"masks": causal}),
                            ({"attn_mask": causal}, {"masks": causal}), ({"attn_mask": add}, {"add": add}),
                            ({"attn_mask": add[:1, :, :1]}, {"add": np.broadcast_to(add[:1, :, :1], (1, L, K)).copy()}),
                            ({"attn_mask": bits}, {"add": np.where(bits, 0, -np.inf).astype(np.float32)})):
            o = benchattn.sdpa(*t, enable_gqa=True, **given)
            np.testing.assert_allclose(o.swapaxes(1, 2), benchattn.attention(**x, cross=True, **ours), atol=1e-6)
        self.assertEqual(np.abs(o[0, :, 2]).max(), 0)
        few = [np.repeat(x["q"], 2, 1), x["k"], x["v"]]  # more queries than keys
        for causal, masks in ((False, None), (True, np.tri(2 * L, K, dtype=bool))):
            o = benchattn.sdpa(*(a.swapaxes(1, 2) for a in few), is_causal=causal, enable_gqa=True)
            np.testing.assert_array_equal(o.swapaxes(1, 2), benchattn.attention(*few, cross=True, masks=masks))
        one = benchattn.sdpa(*(a[:, 0] for a in t), attn_mask=bits[:, 0])
        np.testing.assert_allclose(one, benchattn.sdpa(*(a[:, :1] for a in t), attn_mask=bits)[:, 0], atol=1e-6)
        np.testing.assert_allclose(benchattn.sdpa(*(a[1, 0] for a in t), attn_mask=bits[1, 0]), one[1], atol=1e-6)

    def test_other_names_are_refused(self):
        x = operands()
        for name, instead in benchattn._INSTEAD.items():
            self.refused(f"{name} is not an argument  -> {instead}", benchattn.attention, **x, **{name: 1})
        self.refused("use some of g, beta", benchattn.recurrence, **x, causal=True)
        q, k, v = (x[n].swapaxes(1, 2) for n in "qkv")
        sdpa = benchattn.sdpa
        for part, args, options in (
                ("layout", None, {"layout": "bhdl"}), ("dropout_p is 0.1", (q, k, v), {"dropout_p": 0.1}),
                ("scale is 0", (q, k, v), {"scale": 0.0}), ("query has 4 heads, key 2", (q, k, v), {}),
                ("key has the shape", (q, k[0], v), {}), ("query has the shape [2]", ([1, 2], k, v), {}),
                ("value [2, 2, 13, 8]", (q, k, v[:, :, 1:]), {}), ("key has the shape", (q, k[..., 1:], v), {}),
                ("attn_mask with is_causal", (q, q, q), {"is_causal": True, "attn_mask": np.ones((L, L), bool)}),
                ("attn_mask has the shape", (q, q, q), {"attn_mask": np.ones((3, L, L), bool)}),
                ("attn_mask has the shape", (q, q, q), {"attn_mask": np.ones(L, bool)})):
            self.refused(part, *((sdpa, *args) if args else (benchattn.attention, x["q"], x["k"], x["v"])), **options)

    def test_forward_and_gradient_of_values(self):
        x, d_o = operands(), None
        call = benchattn.Attention(**x, causal=True)
        o = call.forward()
        d_o = normal(*o.shape)
        k, v = (x[n].astype(float).repeat(H // HKV, 2) for n in "kv")
        s = np.einsum("bihd,bjhd->bhij", x["q"].astype(float), k) / DH ** 0.5
        p = np.exp(np.where(seen(True), s, -np.inf))
        p /= p.sum(3, keepdims=True)
        # |s| < 4 and |v| < 3: relative errors of p are below 2 (DH + 2) 4 + K + 16 halves of the last place.
        bound = 3 * 110 * ULP
        self.assertLess(np.abs(np.einsum("bhij,bjhd->bihd", p, v) - o).max(), bound)
        d_v = np.einsum("bhij,bihd->bjhd", p, d_o.astype(float)).reshape(B, K, HKV, -1, DH).sum(3)
        self.assertLess(np.abs(call.backward(d_o)["v"] - d_v).max(), L * H // HKV * bound)

    def test_masks_of_bools_are_those_of_rules(self):
        dist = M + np.arange(L)[:, None] - np.arange(K)[None, :]
        x = operands()
        rules = benchattn.attention(**x, causal=True, masks=benchattn.mask(stride=3))
        bools = benchattn.attention(**x, causal=True, masks=dist % 3 == 0)
        np.testing.assert_allclose(rules, bools, atol=1e-6)
        heads = [benchattn.mask(stride=3), benchattn.mask(window=2)]
        rules = benchattn.attention(**x, causal=True, masks=heads, mask_of_head=[0, 1, 1, 0])
        near, far = dist < 2, dist % 3 == 0
        bools = benchattn.attention(**x, causal=True, masks=np.stack([far, near, near, far]))
        np.testing.assert_allclose(rules, bools, atol=1e-6)
        self.assertGreater(np.abs(rules - benchattn.attention(**x, causal=True)).max(), 1e-3)

    def test_other_texts_and_lse(self):
        x = operands()
        x["k"], x["v"] = x["k"][:, :4].copy(), x["v"][:, :4].copy()
        o, lse = benchattn.attention(**x, cross=True, return_lse=True)
        self.assertEqual((o.shape, lse.shape), ((B, L, H, DH), (B, H, L)))
        self.assertTrue(np.isfinite(lse).all())

    def test_refuses(self):
        x = operands()
        q, k, v = x["q"], x["k"], x["v"]
        attend = benchattn.attention
        self.refused("q is a list", attend, [1], k, v)
        self.refused("v has 3 axes", attend, q, k, v[0])
        self.refused("layout='bhld'", attend, q.swapaxes(1, 2).copy(), k.swapaxes(1, 2).copy(), v.swapaxes(1, 2).copy())
        self.refused("float64", attend, q.astype(float), k, v)
        self.refused("not contiguous", attend, q, k[..., ::2], v)
        self.refused("not contiguous", attend, q, k[:, :, ::-1], v)
        self.refused("k has the shape", attend, q, k[..., :4].copy(), v)
        self.refused("9 queries", attend, q, k[:, :4].copy(), v[:, :4].copy())
        self.refused("window has 2", attend, q, k, v, window=[1, 2])
        self.refused("bias has the shape", attend, q, k, v, bias=np.zeros((2, K), np.float32))
        self.refused("future", attend, q, k, v, bias=np.zeros(K, np.float32), future=K)
        self.refused("add has the shape", attend, q, k, v, add=np.zeros((3, L, K), np.float32))
        self.refused("sinks", attend, q, k, v, sink_v=np.zeros((H, 2, DH), np.float32))
        self.refused("masks has the shape", attend, q, k, v, masks=np.ones((L, L), bool))
        self.refused("a mask has no size", benchattn.mask, size=3)
        self.refused("no backend", benchattn.Engine, "nosuch")
        self.refused("norm is", benchattn.recurrence, q, k, v, norm="max")
        self.refused("beta has the shape", benchattn.recurrence, q, k, v, beta=q)
        self.refused("beside", benchattn.recurrence, q, k, v, norm="sum", beta=np.ones((B, K, HKV), np.float32))


@unittest.skipUnless(torch, "PyTorch is not installed")
class Torch(Refusals):
    def same(self, first, second, operands, about, sums=()):
        """Two calls have the same bits, and so have the gradients of the operands, but for `sums` of other order."""
        grads = []
        for call in (first, second):
            mine = {n: t.detach().clone().requires_grad_() for n, t in operands.items()}
            o = call(**mine)
            d_o = torch.from_numpy(np.random.default_rng(3).standard_normal(o.shape).astype(np.float32))
            o.backward(d_o)
            grads.append([o.detach()] + [t.grad for t in mine.values()])
        for n, x, y in zip(["o", *operands], *grads):
            bound = K * ULP * float(y.abs().max()) if n in sums else 0
            self.assertLessEqual(float((x - y).abs().max()), bound, f"{about}: {n}")

    def tensors(self, *names, **options):
        return {n: torch.from_numpy(x) for n, x in operands(*names, **options).items()}

    def test_one_graph(self):
        """What is compiled has the bits of what is not; torch.export writes it down; shapes, gradients and schema of
        the operators are what they say."""
        x = self.tensors("bias", "sink_logit")
        masks = benchattn.mask(block=3, back=1)

        def attend(**t):
            return benchattn.attention(**t, causal=True, future=FUTURE, window=[4, 0, 7, 2], soft_cap=3, masks=masks) * 2

        def recur(q, k, v):
            o, s1 = benchattn.recurrence(q, k, v, scale=0.5, return_state=True)
            return o * s1.sum()

        def convolve(q, k, v):
            y, s1 = benchattn.conv(q.flatten(2), k[0].flatten(1).T[:, :4].repeat(2, 1), silu=True, return_state=True)
            return y * s1.sum() * v.sum()

        plain = {n: x[n] for n in "qkv"}
        for call, given in ((attend, x), (recur, plain), (convolve, plain)):
            self.same(torch.compile(call, fullgraph=True, backend="aot_eager"), call, given, call.__name__)

        class Module(torch.nn.Module):
            def forward(self, q, k, v):
                return benchattn.attention(q, k, v, causal=True) + benchattn.recurrence(q, k, v)

        module, args = Module(), tuple(plain.values())
        self.assertTrue(torch.equal(torch.export.export(module, args).module()(*args), module(*args)))
        from benchattn import operators
        args = [t.clone().requires_grad_() for t in args]
        nothing = [None] * 13
        for op, rest in ((operators.attention, nothing + [None, [], [], None, True, False, [0], [], [0.0] * 3, [0, 0], 0]),
                         (operators.recurrence, [None] * 10 + ["", [0.0, 0.5], 0])):
            torch.library.opcheck(op, (*args, *rest))
        x, w = torch.randn(2, 9, 6, requires_grad=True), torch.randn(6, 4, requires_grad=True)
        torch.library.opcheck(operators.conv, (x, w, None, torch.randn(2, 3, 6, requires_grad=True), None, True, 0))

    def test_layouts(self):
        """Views that are read where they lie have the bits of copies, and copies of them those of contiguous ones."""
        normal.generator = np.random.default_rng(5)
        fused = torch.from_numpy(normal(B, L, 3, H, DH))
        first = torch.from_numpy(normal(B, 3 * H, L, DH))
        parts = ("q", "k", "v")

        def read(call, cut):
            return lambda x: call(**dict(zip(parts, cut(x))))

        def copied(call, cut):
            return lambda x: call(**{n: t.contiguous() for n, t in zip(parts, cut(x))})

        for call in (lambda **t: benchattn.attention(**t, causal=True), lambda **t: benchattn.recurrence(**t, scale=0.1)):
            for cut, x in ((lambda x: x.unbind(2), fused), (lambda x: x.transpose(1, 2).split(H, 2), first),
                           (lambda x: [t.transpose(0, 1) for t in x.unbind(2)], fused)):
                self.same(read(call, cut), copied(call, cut), {"x": x}, "a view")
        x = {n: t.transpose(1, 2).contiguous() for n, t in self.tensors(dv=DV).items()}
        padded = torch.zeros(B, K, dtype=torch.bool)
        padded[0, :4] = True
        pairs = torch.from_numpy(normal(1, 1, L, K))
        for options in ({"causal": True}, {"cross": True, "window": 5}, {"key_padding_mask": padded}, {"add": pairs},
                        {"add": torch.from_numpy(normal(B, 1, L, K))}):
            def by_heads(q, k, v):
                return benchattn.attention(q, k, v, layout="bhld", return_lse=True, **options)
            def by_tokens(q, k, v):
                t = [a.transpose(1, 2).contiguous() for a in (q, k, v)]
                return [a.transpose(1, 2) if a.dim() == 4 else a for a in benchattn.attention(*t, return_lse=True, **options)]
            self.same(lambda **t: by_heads(**t)[0], lambda **t: by_tokens(**t)[0], x, f"heads first, {list(options)}")
            self.assertTrue(torch.equal(by_heads(**x)[1], by_tokens(**x)[1]))
            few = {**x, "q": x["q"][:, :, -1:].clone()}  # the last query alone: may sum parts of keys in another order
            if "add" not in options:
                self.assertLess(float((by_heads(**few)[0] - by_tokens(**few)[0]).abs().max()), 64 * ULP)

    def test_padded_keys_are_hidden(self):
        x, padded = self.tensors(dv=DV), torch.zeros(B, K, dtype=torch.bool)
        padded[0, -3:] = padded[1, :2] = True
        add = torch.zeros(B, 1, 1, K).masked_fill(padded[:, None, None], -np.inf)
        self.same(lambda **t: benchattn.attention(**t, key_padding_mask=padded), lambda **t: benchattn.attention(**t, add=add),
                  x, "padding")
        got = benchattn.attention(**{n: t.numpy() for n, t in x.items()}, key_padding_mask=padded.numpy())
        self.assertTrue(np.array_equal(got, benchattn.attention(**x, add=add).numpy()))
        short = {n: t[:1, :K - 3] if n in "kv" else t[:1] for n, t in x.items()}
        want = benchattn.attention(**short, cross=True)
        self.assertLess(float((want - benchattn.attention(**x, key_padding_mask=padded, cross=True)[:1]).abs().max()), 64 * ULP)

    def test_packed_texts_are_alone(self):
        """As a call for each text, forward and backward, states too."""
        normal.generator = np.random.default_rng(6)
        T, ends = 90, [0, 1, 70, 83, 90]
        x = {n: torch.from_numpy(normal(1, T, h, DH)) for n, h in (("q", H), ("k", HKV), ("v", HKV))}
        gates = {**x, "k": x["k"] / 4, "g": -x["v"][..., 0].abs(), "beta": x["v"][..., 1].abs() % 1,
                 "s0": torch.from_numpy(normal(4, HKV, DH, DH))}
        bias = {**x, "bias": torch.from_numpy(normal(H, T))}

        def alone(call, out=0):
            def run(s0=None, **t):
                parts = []
                for n, (a, b) in enumerate(zip(ends, ends[1:])):
                    own = {m: y if m == "bias" else y[:, a:b] for m, y in t.items()}
                    parts.append(call(**own, **({} if s0 is None else {"s0": s0[n:n + 1]})))
                return torch.cat([p[out] for p in parts], 0 if out else 1)
            return run

        cu = torch.tensor(ends, dtype=torch.int32)
        calls = ((bias, lambda **t: [benchattn.attention(**t, causal=True, window=20)], 0),
                 (x, lambda **t: [benchattn.attention(**t)], 0),
                 (gates, lambda **t: benchattn.recurrence(**t, return_state=True), 0),
                 (gates, lambda **t: benchattn.recurrence(**t, return_state=True), 1))
        for given, call, out in calls:
            for of in (cu, cu.long()):
                self.same(lambda **t: call(**t, cu_seqlens=of)[out], alone(call, out), given, f"{list(given)} {out}", {"bias"})
        compiled = torch.compile(lambda **t: benchattn.attention(**t, cu_seqlens=cu), fullgraph=True, backend="aot_eager")
        self.same(compiled, lambda **t: benchattn.attention(**t, cu_seqlens=cu), x, "compiled")

    def test_conv_is_its_equation(self):
        """Each text after its state, in double precision, with gradients: sums of at most 20 terms. Arrays of numpy and
        halves have the bits of tensors."""
        normal.generator = np.random.default_rng(8)
        ends, n, taps = [0, 1, 6, 20], 70, 4
        x = {name: torch.from_numpy(normal(*shape)) for name, shape in (
            ("x", (1, 20, n)), ("w", (n, taps)), ("bias", (n,)), ("s0", (3, taps - 1, n)))}

        def definition(x, w, bias, s0, silu):
            parts = [torch.cat([s0[i:i + 1], x[:, a:b]], 1) for i, (a, b) in enumerate(zip(ends, ends[1:]))]
            y = torch.cat([torch.nn.functional.conv1d(p.transpose(1, 2), w[:, None], bias, groups=n) for p in parts], 2)
            return (torch.nn.functional.silu(y) if silu else y).transpose(1, 2), torch.cat([p[:, 1 - taps:] for p in parts])

        for silu in (False, True):
            mine = {name: t.clone().requires_grad_() for name, t in x.items()}
            theirs = {name: t.double().requires_grad_() for name, t in x.items()}
            got = benchattn.conv(**mine, silu=silu, cu_seqlens=torch.tensor(ends), return_state=True)
            want = definition(**theirs, silu=silu)
            d = [torch.from_numpy(normal(*t.shape)) for t in got]
            torch.autograd.backward(got, d)
            torch.autograd.backward(want, [t.double() for t in d])
            for name, a, b in [("y", *(t[0] for t in (got, want))), ("s1", *(t[1] for t in (got, want)))] + [
                    (name, mine[name].grad, theirs[name].grad) for name in x]:
                self.assertLess(float((a - b).detach().abs().max()), 40 * 8 * ULP * 4, f"{name} {silu}")
            call = benchattn.Convolution(**{name: t.numpy() for name, t in x.items()}, silu=silu, cu_seqlens=ends)
            self.assertTrue(np.array_equal(call.forward(), got[0].detach().numpy()))
            grads = call.backward(d[0].numpy(), d[1].numpy())
            for name in x:
                self.assertTrue(np.array_equal(grads[name], mine[name].grad.numpy()), name)
        half = {name: t.bfloat16() for name, t in x.items() if name != "s0"}
        whole = benchattn.conv(**{name: t.float() for name, t in half.items()})
        self.assertTrue(torch.equal(benchattn.conv(**half), whole.bfloat16()))
        for part, wrong in (("w has the shape", {"w": x["w"][:3]}), ("x has the shape", {"x": x["x"][0]}),
                            ("s0 has the shape", {"s0": x["s0"][:, :2]}), ("bias has the shape", {"bias": x["bias"][:1]}),
                            ("activation is not an argument", {"activation": "silu"}), ("taps is 0", {"w": x["w"][:, :0]}),
                            ("of torch.int64", {"w": x["w"].long()})):
            self.refused(part, benchattn.conv, **{**x, **wrong})

    def test_shared_heads_of_recurrences(self):
        x = self.tensors(dv=DV)
        few = {"q": x["q"][:, :, :1], "k": x["k"][:, :, :1], "v": x["v"]}
        def repeated(q, k, v):
            return benchattn.recurrence(q.repeat_interleave(HKV, 2), k.repeat_interleave(HKV, 2), v, scale=0.3)
        mine = [{n: t.clone().requires_grad_() for n, t in few.items()} for _ in range(2)]
        outs = [benchattn.recurrence(**mine[0], scale=0.3), repeated(**mine[1])]
        self.assertTrue(torch.equal(*outs))
        for o in outs:
            o.square().sum().backward()
        for n in few:  # sums of HKV numbers in another order
            size = float(mine[1][n].grad.abs().max())
            self.assertLess(float((mine[0][n].grad - mine[1][n].grad).abs().max()), 64 * ULP * size)

    def test_module(self):
        from benchattn import nn
        torch.manual_seed(1)
        module, x = nn.Attention(24, H, HKV, head_dim=DH, window=5), torch.randn(B, L, 24)
        q, k, v = (p(x).unflatten(2, (-1, DH)) for p in (module.q_proj, module.k_proj, module.v_proj))
        want = module.o_proj(benchattn.attention(q, k, v, causal=True, window=5).flatten(2))
        self.assertTrue(torch.equal(module(x), want))
        module(x).sum().backward()
        self.assertEqual(module.k_proj.weight.grad.shape, (HKV * DH, 24))
        for part, args, options in (("divide", (24, 5), {}), ("divide", (24, 4, 3), {}), ("heads is 0", (24, 0), {}),
                                    ("dim is 2.5", (2.5, 1), {}), ("dropout_p is not", (24, 4), {"dropout_p": 0.1})):
            self.refused(part, nn.Attention, *args, **options)

    def sizes(self, theirs, options, p, d_o):
        """The largest score, output and gradients, where nothing cancels: sums of absolute terms."""
        t = {n: a.detach().abs().requires_grad_() for n, a in theirs.items()}
        p = p.detach().requires_grad_()
        s, o = scores(t, options, sizes=True), outputs(t, p)
        o.backward(d_o.abs())
        s.backward(p.detach() * (p.grad + (p * p.grad).sum(3, keepdim=True).detach()))
        return float(s.detach().max()), float(o.detach().max()), {n: float(a.grad.max()) for n, a in t.items()}

    def test_attention_is_the_composed_form(self):
        """A score sums at most 4 dh + 8 products, of absolute sum S; a probability is wrong by twice as much, and by
        its sum over the keys and by exp. So relatively wrong is each term of an output, and, but for the slope of
        the cap and the sum over the d_o, of a gradient, which sums over the queries that share its operand."""
        for backend in benchattn.backends():
            engine = benchattn.Engine(backend, 2)
            for names, options in CASES:
                x = operands(*names, dv=DH if names else DV)
                mine = {n: torch.tensor(a, requires_grad=True) for n, a in x.items()}
                theirs = {n: torch.tensor(a, dtype=torch.float64, requires_grad=True) for n, a in x.items()}
                o, p = benchattn.attention(**mine, **options, engine=engine), torch.softmax(scores(theirs, options), 3)
                want = outputs(theirs, p)
                d_o = torch.from_numpy(normal(*o.shape))
                o.backward(d_o)
                want.backward(d_o.double())
                S, O, sizes = self.sizes(theirs, options, p, d_o)
                relative = (2 * (4 * DH + 8) * max(S, 1) * (1 + 2 / options.get("soft_cap", np.inf)) + 2 * K + 64) * ULP
                self.assertLess(float((o - want).detach().abs().max()), relative * O, f"{backend} {names} {options}")
                for n, t in mine.items():
                    rows = 1 if n in ("q", "add") else L * H // HKV if n in "kv" else B * H * L
                    bound = (relative + (rows + DH) * ULP) * sizes[n]
                    about = f"{backend}: {n} of {names} {options}"
                    self.assertLess(float((t.grad - theirs[n].grad).abs().max()), bound, about)
                    self.assertLess(bound, 0.1 * float(theirs[n].grad.abs().max()), about + ": bound would hide errors")

    def recurrence(self, x, delta, scale, sign=-1):
        """The definition, key by key: decays of each channel, and the delta rule. `sign` is that of what it erases."""
        q, k, v, g = (x[n].double() for n in "qkvg")
        k, v, g = (t.repeat_interleave(H // HKV, 2) for t in (k, v, g))
        S, out = x["s0"].double().repeat_interleave(H // HKV, 1), []
        for t in range(K):
            S = S * torch.exp(g[:, t])[..., None]
            value = v[:, t]
            if delta:
                beta = x["beta"].double().repeat_interleave(H // HKV, 2)[:, t, :, None]
                value = beta * (value + sign * torch.einsum("bhde,bhd->bhe", S, k[:, t]))
            S = S + k[:, t][..., None] * value[:, :, None]
            if t >= M:
                out.append(scale * torch.einsum("bhde,bhd->bhe", S, q[:, t - M]))
        return torch.stack(out, 1), S[:, ::H // HKV]

    def test_recurrence_is_its_definition(self):
        for backend in benchattn.backends():
            for delta in (False, True):
                x = operands(dv=DV)
                x.update(g=-np.abs(normal(B, K, HKV, DH)), s0=normal(B, HKV, DH, DV))
                if delta:
                    x.update(beta=np.abs(normal(B, K, HKV)) % 1)
                    x["k"] /= 4
                mine = {n: torch.tensor(a, requires_grad=True) for n, a in x.items()}
                theirs = {n: torch.tensor(a, dtype=torch.float64, requires_grad=True) for n, a in x.items()}
                o, s1 = benchattn.recurrence(**mine, scale=0.5, return_state=True,
                                             engine=benchattn.Engine(backend, 2))
                want = self.recurrence(theirs, delta, 0.5)
                d = [torch.from_numpy(normal(*t.shape)) for t in (o, s1)]
                torch.autograd.backward([o, s1], d)
                torch.autograd.backward(want, [t.double() for t in d])
                # All is sums of products. Of the absolute values of the terms, whose sums the same definition has of
                # the absolute operands, each is wrong by its roundings; a decay over several keys also by those of
                # the sum of g. The gradient of g is a difference of sums over the keys that follow.
                sizes = {n: t.detach().double().abs().requires_grad_() for n, t in mine.items() if n != "g"}
                sizes["g"] = theirs["g"].detach().requires_grad_()
                size = self.recurrence(sizes, delta, 0.5, sign=1)
                torch.autograd.backward(size, [t.double().abs() for t in d])
                roundings = 2 * K + 2 * DH + 64 + float(x["g"].sum(1).min()) * -1
                pairs = [("o", o, want[0], size[0]), ("s1", s1, want[1], size[1])]
                pairs += [(n, mine[n].grad, theirs[n].grad, sizes[n].grad) for n in mine]
                for name, got, right, terms in pairs:
                    bound = roundings * ULP * float(terms.detach().abs().max()) * (K if name == "g" else 1)
                    self.assertLess(float((got - right).detach().abs().max()), bound, f"{backend} {delta}: {name}")
                    self.assertLess(bound, 0.1 * float(right.detach().abs().max()), f"{name}: the bound would hide an error")

    def test_only_what_is_asked_for(self):
        x = {n: torch.tensor(a) for n, a in operands("bias").items()}
        x["bias"].requires_grad_()
        o = benchattn.attention(**x, causal=True, future=FUTURE)
        o.sum().backward()
        self.assertIsNone(x["q"].grad)
        self.assertFalse(benchattn.attention(**x, future=FUTURE, return_lse=True)[1].requires_grad)
        self.assertIsNotNone(x["bias"].grad)
        x["bias"].requires_grad_(False)
        self.assertFalse(benchattn.attention(**x, future=FUTURE).requires_grad)

    def test_halves_are_converted(self):
        """The bits of the call in float32 of the converted numbers, rounded to the type of q; gradients likewise."""
        calls = (lambda q, k, v, bias: benchattn.attention(q, k, v, bias=bias, future=FUTURE),
                 lambda q, k, v, _: benchattn.recurrence(q, k, v))
        for dtype, call in ((d, c) for d in (torch.bfloat16, torch.float16) for c in calls):
            mine = [torch.tensor(a, requires_grad=True) for a in operands("bias").values()]
            theirs = [t.detach().to(dtype).float().requires_grad_() for t in mine]
            with torch.autocast("cpu", dtype=torch.bfloat16):
                o = call(*(t.to(dtype) for t in mine))
                self.assertEqual(call(mine[0], *(t.to(dtype) for t in mine[1:])).dtype, torch.float32)
            want = call(*theirs)
            self.assertEqual(o.dtype, dtype)
            self.assertTrue(torch.equal(o, want.to(dtype)))
            for t in (o, want):
                t.sum().backward()
            for t, other in zip(mine, theirs):
                self.assertEqual(t.grad is None, other.grad is None)
                self.assertTrue(t.grad is None or torch.equal(t.grad, other.grad.to(dtype).float()))

    @unittest.skipUnless(torch and hasattr(torch.nn.functional, "scaled_dot_product_attention"), "PyTorch has none")
    def test_sdpa_is_pytorchs(self):
        """A score is a sum of dh products and a number that is added, of absolute sum S; a probability is relatively
        wrong by twice as much, by exp and by its sum over the keys. Gradients have the bits of `attention`."""
        x = operands(dv=DV)
        q, k, v = (torch.tensor(x[n]).transpose(1, 2) for n in "qkv")
        wide = {n: t.repeat_interleave(H // HKV, 1).double() for n, t in (("k", k), ("v", v))}
        add = torch.tensor(normal(B, 1, L, K))
        seen = add > -0.3
        seen[..., 0] = True
        masks = [None, add, seen, add[0, 0], seen[1:, :, :1], add[:1, :, :1], add[..., :1]]
        cases = [{"attn_mask": m} for m in masks] + [{"is_causal": True}, {"scale": 0.2}]
        size = float((q.abs() @ k.abs().repeat_interleave(H // HKV, 1).transpose(2, 3)).max() + add.abs().max())
        bound = float(v.abs().max()) * (2 * (DH + 2) * size + 2 * K + 64) * ULP
        theirs = torch.nn.functional.scaled_dot_product_attention
        for options in cases:
            mask = options.get("attn_mask")
            doubles = {n: x.double() if torch.is_tensor(x) and x.is_floating_point() else x
                       for n, x in options.items()}
            got = benchattn.sdpa(q, k, v, enable_gqa=True, **options)
            want = theirs(q.double(), wide["k"], wide["v"], **doubles)
            self.assertEqual(got.shape, want.shape)
            self.assertLess(float((got - want).abs().max()), bound, str(options))
            one = [t[:, 0] for t in (q, k, v)]
            if mask is None or mask.dim() < 4:
                self.assertLess(float((benchattn.sdpa(*one, **options) - want[:, 0]).abs().max()), bound)
        square = [t[:, :, :L] for t in (q, k, v)]
        self.assertLess(float((benchattn.sdpa(*square, is_causal=True, enable_gqa=True) - theirs(
            q.double(), *(t[:, :, :L] for t in wide.values()), is_causal=True)).abs().max()), bound)
        first, second = ([t.clone().requires_grad_() for t in (q, k, v, add)] for _ in range(2))
        benchattn.sdpa(*first, enable_gqa=True).square().sum().backward()
        turned = [t.transpose(1, 2).contiguous() for t in second[:3]]
        benchattn.attention(*turned, add=second[3], cross=True).square().sum().backward()
        for mine, ours in zip(first, second):
            self.assertTrue(torch.equal(mine.grad, ours.grad))

    def test_refuses_tensors(self):
        x = {n: torch.tensor(a) for n, a in operands().items()}
        q, k, v = x["q"], x["k"], x["v"]
        for part, args in (("14 queries", (k, q, q)), ("beside tensors", (q, k.numpy(), v)),
                           ("gradcheck", (q.double(), k, v)), ("int32", (q.int(), k, v)),
                           ("CPU", (q.to("meta"), k, v))):
            with self.assertRaises(benchattn.Error) as e:
                benchattn.attention(*args)
            self.assertIn(part, str(e.exception))
        far, texts = 2 ** 40, torch.tensor([0, 2, L], dtype=torch.int32)
        for part, options in (
                ("scale is", {"scale": "1"}), ("window is", {"window": far}), ("window is", {"window": [1, 2, 3, 2.5]}),
                ("future", {"future": far}), ("mask_of_head", {"mask_of_head": [0, 0, 0, 256]}), ("steps", {"steps": (1, 1)}),
                ("masks", {"masks": [3]}), ("softcap is not an argument", {"softcap": 1}),
                ("bools [2, 14]", {"key_padding_mask": torch.zeros(B, L, dtype=torch.bool)}),
                ("bools [2, 14]", {"key_padding_mask": torch.zeros(B, K)}),
                ("int32", {"cu_seqlens": texts.float()}), ("B above 1", {"cu_seqlens": texts})):
            self.refused(part, benchattn.attention, q, k, v, **options)
            self.refused(part, benchattn.attention, q.clone().requires_grad_(), k, v, **options)
        one = [t[:1, :L].contiguous() for t in (q, k, v)]
        for part, ends in (("after 5", [0, 5, 5, L]), ("from 1 to 9", [1, L]), ("from 0 to 8", [0, 8]), ("after 0", [0, -1]),
                           ("shape [1]", [0]), ("shape [1, 2]", [[0, L]]), ("", [0, 2 ** 40])):
            for call in (benchattn.attention, benchattn.recurrence):
                self.refused(part, call, *one, cu_seqlens=torch.tensor(ends))
        self.refused("norm is", benchattn.recurrence, q, k, v, norm="max")
        self.refused("k is a NoneType", benchattn.attention, q, None, v)
        self.refused("q is a int", benchattn.attention, 3, k, v, key_padding_mask=torch.zeros(B, K, dtype=torch.bool))
        self.refused("w is None", benchattn.conv, q.flatten(2), None)
        self.refused("mask_of_head is 3", benchattn.attention, q, k, v, mask_of_head=3)
        self.refused("H is 0", benchattn.recurrence, q[:, :, :0], k, v)
        self.assertTrue(torch.equal(benchattn.attention(q.clone().requires_grad_(), k, v, window=None), benchattn.attention(q, k, v)))
        self.refused("heads of q", benchattn.recurrence, q[:, :, :3].contiguous(), k, v)
        if hasattr(torch, "func"):
            for call in (lambda t: benchattn.attention(t, t, t), lambda t: benchattn.recurrence(t, t, t)):
                with self.assertRaises(benchattn.Error) as e:
                    torch.vmap(call)(q[None])
                self.assertIn("inside vmap", str(e.exception))
        q.requires_grad_()
        o = benchattn.attention(q, k, v)
        with torch.no_grad():
            q.mul_(2)
        with self.assertRaises(RuntimeError):  # q is no longer what forward read
            o.sum().backward()


if __name__ == "__main__":
    unittest.main()
