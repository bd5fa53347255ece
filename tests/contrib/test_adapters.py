#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""contrib/python/benchattn_adapters: what each function stands in for, token by token in double precision, with
gradients; models of transformers with and without them; flash-linear-attention beside its naive forms, where it is
installed; what is refused. The library is $BENCHATTN."""
import importlib.util
import os
import sys
import types
import unittest

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
os.environ["HF_HUB_OFFLINE"] = "1"
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
import transformers  # noqa: E402

ROOT = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "contrib", "python"))
import benchattn  # noqa: E402
from benchattn_adapters import mamba_ssm, recurrences  # noqa: E402
from benchattn_adapters import transformers as adapter  # noqa: E402

ULP = 2.0 ** -24
B, T, G, H, N, P = 2, 75, 2, 4, 16, 8  # sequences, tokens, groups, heads, widths of a state


def numbers(seed, **shapes):
    random = torch.Generator().manual_seed(seed)
    return {n: torch.randn(*s, generator=random) * 0.5 for n, s in shapes.items()}


def delta_by_token(query, key, value, g, beta, initial_state):
    q, k = (x / (x.square().sum(3, keepdim=True) + 1e-6).sqrt() for x in (query, key))
    q, k = (x.repeat_interleave(H // G, 2) for x in (q, k))
    S, out = initial_state, []
    for t in range(query.shape[1]):
        S = S * g[:, t].exp()[..., None, None]
        read = torch.einsum("bhnp,bhn->bhp", S, k[:, t])
        S = S + torch.einsum("bhn,bhp->bhnp", k[:, t], beta[:, t][..., None] * (value[:, t] - read))
        out.append(torch.einsum("bhnp,bhn->bhp", S, q[:, t]) / N ** 0.5)
    return torch.stack(out, 1), S


def scan_by_token(hidden_states, dt, A, B, C, D, dt_bias, initial_states):
    step = (1 + (dt + dt_bias).exp()).log().clamp(0.1, 0.9)
    S, out = initial_states, []
    for t in range(hidden_states.shape[1]):
        k, q = (x[:, t].repeat_interleave(H // G, 1) for x in (B, C))
        x, d = hidden_states[:, t], step[:, t]
        S = S * (A * d).exp()[..., None, None] + torch.einsum("bhp,bhn->bhpn", x * d[..., None], k)
        out.append(torch.einsum("bhpn,bhn->bhp", S, q) + D[:, None] * x)
    return torch.stack(out, 1), S


def channels_by_token(hidden_states, dt, A, B, C, D, z, delta_bias):
    step = (1 + (dt + delta_bias[:, None]).exp()).log()
    S, out = torch.zeros(hidden_states.shape[0], *A.shape, dtype=A.dtype), []
    for t in range(hidden_states.shape[2]):
        x, d = hidden_states[:, :, t], step[:, :, t]
        S = S * (A * d[..., None]).exp() + (x * d)[..., None] * B[:, None, :, t]
        out.append((S * C[:, None, :, t]).sum(-1) + D * x)
    return torch.stack(out, 2) * F.silu(z), S


def conv_by_token(hidden_states, weight, bias):
    taps = weight.shape[1]
    x = torch.cat([hidden_states.new_zeros(*hidden_states.shape[:2], taps - 1), hidden_states], 2)
    y = sum(weight[:, s, None] * x[:, :, s:s + hidden_states.shape[2]] for s in range(taps)) + bias[:, None]
    return F.silu(y), x


class Adapters(unittest.TestCase):
    def compare(self, given, ours, definition, about):
        """Every term of a sum of T terms is off by its own roundings, those of exp(sum of g), and of norms: below
        4 (T + N + P + 64) halves of the last place of the largest; gradients sum over the tokens that follow."""
        mine = {n: x.clone().requires_grad_() for n, x in given.items()}
        theirs = {n: x.double().requires_grad_() for n, x in given.items()}
        got, want = ours(**mine), definition(**theirs)
        d = [numbers(9, d=x.shape)["d"] for x in got]
        torch.autograd.backward(got, d)
        torch.autograd.backward(want, [x.double() for x in d])
        bound = 4 * (T + N + P + 64) * ULP
        for n, x, y, more in [("o", got[0], want[0], 1), ("state", got[1], want[1], 1)] + [
                (n, mine[n].grad, theirs[n].grad, 4) for n in given]:
            self.assertLess(float((x - y).detach().abs().max()), more * bound * float(y.detach().abs().max()), f"{about}: {n}")

    def test_gated_delta_rule(self):
        x = numbers(1, query=(B, T, G, N), key=(B, T, G, N), value=(B, T, H, P), g=(B, T, H), beta=(B, T, H),
                    initial_state=(B, H, N, P))
        x["g"], x["beta"] = -x["g"].abs(), torch.sigmoid(x["beta"])
        self.compare(x, lambda **t: recurrences.gated_delta_rule(**t, output_final_state=True, use_qk_l2norm_in_kernel=True),
                     delta_by_token, "gated delta rule")
        half = {n: t.bfloat16() for n, t in x.items()}
        o, s1 = recurrences.gated_delta_rule(**half)
        self.assertEqual((o.dtype, s1), (torch.bfloat16, None))
        self.assertTrue(torch.equal(o, recurrences.gated_delta_rule(**{n: t.float() for n, t in half.items()})[0].bfloat16()))

    def scan(self, seed):
        x = numbers(seed, hidden_states=(B, T, H, P), dt=(B, T, H), A=(H,), B=(B, T, G, N), C=(B, T, G, N), D=(H,),
                    dt_bias=(H,), initial_states=(B, H, P, N))
        x["A"] = -x["A"].abs()
        return x

    def test_mamba_chunk_scan(self):
        options = {"dt_softplus": True, "dt_limit": (0.1, 0.9), "return_final_states": True}
        self.compare(self.scan(2), lambda **t: recurrences.mamba_chunk_scan(**t, **options), scan_by_token, "scan")

    def test_selective_state_update(self):
        """The last token after the others, in the layout of one token."""
        x = self.scan(3)
        options = {"dt_softplus": True, "return_final_states": True}
        want, last = recurrences.mamba_chunk_scan(**x, **options)
        before = {n: t[:, :-1] if n in ("hidden_states", "dt", "B", "C") else t for n, t in x.items()}
        state = recurrences.mamba_chunk_scan(**before, **options)[1].contiguous()
        wide = {n: x[n][:, -1] for n in ("hidden_states", "B", "C")}
        o = recurrences.selective_state_update(
            state, wide["hidden_states"], x["dt"][:, -1, :, None].expand(-1, -1, P), x["A"][:, None, None].expand(-1, P, N),
            wide["B"], wide["C"], D=x["D"][:, None].expand(-1, P), dt_bias=x["dt_bias"][:, None].expand(-1, P), dt_softplus=True)
        bound = 4 * (T + N + 64) * ULP
        for got, right in ((o, want[:, -1]), (state, last)):
            self.assertLess(float((got - right).abs().max()), bound * float(right.abs().max()))

    def test_selective_scan(self):
        x = numbers(6, hidden_states=(B, P, T), dt=(B, P, T), A=(P, N), B=(B, N, T), C=(B, N, T), D=(P,), z=(B, P, T),
                    delta_bias=(P,))
        x["A"] = -x["A"].abs()
        options = {"delta_softplus": True, "return_last_state": True}
        self.compare(x, lambda **t: recurrences.selective_scan(**t, **options), channels_by_token, "scan of channels")
        named = {"hidden_states": "u", "dt": "delta"}
        x["dt"], x["delta_bias"] = x["dt"].abs(), x["delta_bias"].abs()
        for on in (False, True):  # each way of the function by its other name
            options = {"delta_softplus": on, "return_last_state": on}
            again = mamba_ssm.selective_scan_fn(**{named.get(n, n): t for n, t in x.items()}, **options)
            want = recurrences.selective_scan(**x, **options)
            self.assertTrue(all(map(torch.equal, again, want)) if on else torch.equal(again, want), options)

    def test_names_of_mamba_ssm(self):
        x = self.scan(10)
        x["dt"], x["dt_bias"] = x["dt"].abs(), x["dt_bias"].abs()
        for options in ({}, {"dt_softplus": True, "dt_limit": (0.1, 0.9)}, {"return_final_states": True}):
            want = recurrences.mamba_chunk_scan(**x, **options)
            named = {"x" if n == "hidden_states" else n: t for n, t in x.items()}
            got = mamba_ssm.mamba_chunk_scan_combined(**named, chunk_size=16, **options)
            both = (got, want) if options.get("return_final_states") else ((got,), (want,))
            self.assertTrue(all(map(torch.equal, *both)), options)
        with self.assertRaisesRegex(benchattn.Error, "seq_idx or z"):
            mamba_ssm.mamba_chunk_scan_combined(**named, chunk_size=16, z=x["hidden_states"])
        y = numbers(11, x=(B, P, 1), state=(B, P, 3), w=(P, 4), bias=(P,))
        states = [y["state"].clone(), y["state"].clone()]
        self.assertTrue(torch.equal(mamba_ssm.causal_conv1d_update(y["x"], states[0], y["w"], y["bias"], "silu"),
                                    recurrences.causal_conv1d_update(y["x"], states[1], y["w"], y["bias"], "silu")))
        self.assertTrue(torch.equal(*states))

    def test_conv(self):
        """All taps, and the numbers of one token after the others, whatever length the state has."""
        for taps in (2, 4):
            x = numbers(7 + taps, hidden_states=(B, P, T), weight=(P, taps), bias=(P,))
            ours = {"activation": "silu"}
            self.compare(x, lambda **t: (recurrences.causal_conv1d_fn(**t, **ours), t["hidden_states"] * 1),
                         lambda **t: (conv_by_token(**t)[0], t["hidden_states"] * 1), "conv")
            whole = mamba_ssm.causal_conv1d_fn(x["hidden_states"], x["weight"], x["bias"], activation="swish")
            for kept in (taps - 1, taps, taps + 3):
                state = x["hidden_states"][:, :, T - 9 - kept:T - 9].clone()
                for t in range(T - 9, T):
                    token = x["hidden_states"][:, :, t]
                    y = recurrences.causal_conv1d_update(token, state, x["weight"], x["bias"], "silu")
                    self.assertTrue(torch.allclose(y, whole[:, :, t], rtol=0, atol=8 * taps * ULP), (taps, kept, t))
                self.assertTrue(torch.equal(state, x["hidden_states"][:, :, T - kept:]))
            half = recurrences.causal_conv1d_fn(x["hidden_states"].bfloat16(), x["weight"].bfloat16(), None)
            self.assertEqual(half.dtype, torch.bfloat16)

    @unittest.skipUnless(importlib.util.find_spec("fla"), "flash-linear-attention is not installed")
    def test_fla(self):
        """Beside its naive forms, and what its layers give to kernels: gates, sigmoids, states with values first."""
        from benchattn_adapters.fla import use
        names = use()
        self.assertIn("fla.layers.gated_deltanet.chunk_gated_delta_rule", names)
        self.assertEqual(use(), names)
        from fla.ops import gated_delta_rule as gdn, kda
        from fla.ops.gated_delta_rule.naive import naive_recurrent_gated_delta_rule
        from fla.ops.kda.naive import naive_recurrent_kda
        x = numbers(8, q=(B, T, H, N), k=(B, T, H, N), v=(B, T, H, P), b=(B, T, H), g=(B, T, H), gk=(B, T, H, N), s=(B, H, N, P),
                    A=(H,), bias=(H,), biases=(H * N,))
        q, k, v, b, s = x["q"], F.normalize(x["k"], dim=-1), x["v"], torch.sigmoid(x["b"]), x["s"]
        kept = {"initial_state": s, "output_final_state": True}
        turned = {"initial_state": s.transpose(2, 3), "output_final_state": True, "state_v_first": True}
        raw = {"use_gate_in_kernel": True, "use_beta_sigmoid_in_kernel": True, "A_log": x["A"]}
        g = -x["A"].exp() * F.softplus(x["g"] + x["bias"])
        gk = -x["A"].exp()[:, None] * F.softplus(x["gk"] + x["biases"].view(H, N))
        want = naive_recurrent_gated_delta_rule(q, k, v, b, g, **kept)
        want_k = naive_recurrent_kda(q, k, v, gk, b, **kept)
        for (o, s1), right, about in (
                (gdn.chunk_gated_delta_rule(q, k, v, g, b, **kept), want, "chunk"),
                (gdn.fused_recurrent_gated_delta_rule(q, k, v, g, beta=b, **kept), want, "recurrent"),
                (gdn.chunk_gated_delta_rule(q, k, v, x["g"], x["b"], dt_bias=x["bias"], **raw, **turned), want, "layer"),
                (kda.chunk_kda(q, k, v, gk, b, **kept), want_k, "kda"),
                (kda.fused_recurrent_kda(q, k, v, gk, b, **kept), want_k, "recurrent kda"),
                (kda.chunk_kda(q, k, v, x["gk"], x["b"], dt_bias=x["biases"], **raw, **turned), want_k, "layer of kda")):
            s1 = s1.transpose(2, 3) if "layer" in about else s1
            for got, y in ((o, right[0]), (s1, right[1])):
                self.assertLess(float((got - y).abs().max()), 4 * (T + N + P + 64) * ULP * float(y.abs().max()), about)
        bounded = -4 * torch.sigmoid(x["A"].exp()[:, None] * (x["gk"] + x["biases"].view(H, N)))
        o, _ = kda.chunk_kda(q, k, v, x["gk"], x["b"] - 3, dt_bias=x["biases"], lower_bound=-4.0, allow_neg_eigval=True, **raw)
        right, _ = naive_recurrent_kda(q, k, v, bounded, 2 * torch.sigmoid(x["b"] - 3))
        self.assertLess(float((o - right).abs().max()), 4 * (T + N + P + 64) * ULP * float(right.abs().max()), "bounded")
        with self.assertRaisesRegex(benchattn.Error, "gv"):
            gdn.fused_recurrent_gated_delta_rule(q, k, v, g, None, v, b)

    def test_attention(self):
        """A module's arguments against the equations; the mask, the window, the sink of a head, the cap."""
        x = numbers(4, q=(B, H, T, N), k=(B, G, T, N), v=(B, G, T, N), s=(H,))
        causal = torch.ones(T, T, dtype=torch.bool).tril()
        padded = causal.expand(B, 1, T, T).clone()
        padded[0, :, :, :7] = False
        padded[0, :, torch.arange(7), torch.arange(7)] = True
        numbers_of = torch.zeros(padded.shape).masked_fill(~padded, torch.finfo(torch.float32).min)
        window = causal & ~torch.ones(T, T, dtype=torch.bool).tril(-10)
        for seen, mask, options in ((causal, None, {}), (padded, padded, {}), (padded, numbers_of, {}),
                                    (window, None, {"sliding_window": 10}), (causal, None, {"softcap": 2.0, "scaling": 0.7}),
                                    (causal, None, {"s_aux": x["s"]}), (torch.ones(T, T, dtype=torch.bool), None, {"is_causal": False})):
            o, _ = adapter.attention(types.SimpleNamespace(is_causal=True), x["q"], x["k"], x["v"], mask, **options)
            k, v = (x[n].double().repeat_interleave(H // G, 1) for n in "kv")
            s = x["q"].double() @ k.transpose(2, 3) * options.get("scaling", N ** -0.5)
            cap = options.get("softcap")
            s = (cap * torch.tanh(s / cap) if cap else s).masked_fill(~seen, -torch.inf)
            if "s_aux" in options:
                s = torch.cat([s, options["s_aux"].double()[None, :, None, None].expand(B, H, T, 1)], 3)
            want = (s.softmax(3)[..., :T] @ v).transpose(1, 2)
            self.assertEqual(o.shape, want.shape)
            self.assertLess(float((o - want).abs().max()), (2 * N * 8 + 2 * T + 64) * ULP * float(v.abs().max()), str(options))
        few, _ = adapter.attention(types.SimpleNamespace(is_causal=True), x["q"][:, :, -1:], x["k"], x["v"], None)
        whole, _ = adapter.attention(types.SimpleNamespace(is_causal=True), x["q"], x["k"], x["v"], None)
        self.assertLess(float((few - whole[:, -1:]).abs().max()), (2 * T + 64) * ULP)

    def models(self):
        common = {"vocab_size": 60, "hidden_size": 64, "num_hidden_layers": 4, "pad_token_id": 0, "bos_token_id": 1,
                  "eos_token_id": 2}
        heads = {"intermediate_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16}
        t = transformers
        yield t.LlamaForCausalLM(t.LlamaConfig(**common, **heads)), 0
        yield t.Qwen3NextForCausalLM(t.Qwen3NextConfig(
            **common, **heads, linear_key_head_dim=16, linear_value_head_dim=16, linear_num_key_heads=2,
            linear_num_value_heads=4, mlp_only_layers=[0, 1, 2, 3], num_experts=0)), 3
        yield t.Mamba2ForCausalLM(t.Mamba2Config(**common, num_heads=8, head_dim=16, state_size=16, n_groups=2, chunk_size=16)), 3
        scan = {"mamba_n_heads": 8, "mamba_d_head": 16, "mamba_n_groups": 2, "mamba_d_state": 16, "mamba_chunk_size": 16}
        yield t.FalconH1ForCausalLM(t.FalconH1Config(**common, **heads, mamba_d_ssm=128, **scan)), 3
        yield t.MambaForCausalLM(t.MambaConfig(**common, state_size=8)), 2
        yield t.BambaForCausalLM(t.BambaConfig(**common, **heads, attn_layer_indices=[1], **scan)), 3
        yield t.Lfm2ForCausalLM(t.Lfm2Config(**common, **heads, full_attn_idxs=[1])), 1
        yield t.Zamba2ForCausalLM(t.Zamba2Config(
            **common, **heads, layers_block_type=["mamba", "hybrid", "mamba", "mamba"], hybrid_layer_ids=[1], mamba_ngroups=2,
            n_mamba_heads=8, mamba_headdim=16, mamba_d_state=16, chunk_size=16, num_mem_blocks=1)), 3

    def run_model(self, model, x, mask):
        model.zero_grad()
        out = model(x, attention_mask=mask, labels=x)
        out.loss.backward()
        text = model.generate(x[:, :20], attention_mask=mask[:, :20], max_new_tokens=8, min_new_tokens=8, do_sample=False)
        # Logits at padded tokens mean nothing.
        return out.logits.detach() * mask[..., None], {n: p.grad.clone() for n, p in model.named_parameters()}, text

    def test_models(self):
        """Both ways round to float32 in four layers of about 200 roundings each, which the norms pass on: 2e-5 of the
        largest logit, and ten times that of gradients, whose sums cancel. Taken out again, the bits are those of before."""
        torch.manual_seed(1)
        for model, functions in self.models():
            about = type(model).__name__
            x, mask = torch.randint(3, 60, (2, 50)), torch.ones(2, 50, dtype=torch.long)
            mask[0, :5] = 0
            before = self.run_model(model, x, mask)
            replaced = adapter.use(model)
            self.assertEqual(len(replaced), functions + 1, replaced)
            self.assertEqual(adapter.use(model), replaced)
            calls, plain = [], benchattn._run
            benchattn._run = lambda kind, *args: calls.append(kind) or plain(kind, *args)
            got = self.run_model(model, x, mask)
            benchattn._run = plain
            self.assertGreater(len(calls), 3, f"{about}: not called")
            adapter.use(model, False)
            after = self.run_model(model, x, mask)
            self.assertTrue(torch.equal(after[0], before[0]), about)
            self.assertTrue(torch.equal(got[2], before[2]), f"{about}: another text")
            self.assertLess(float((got[0] - before[0]).abs().max()), 2e-5 * float(before[0].abs().max()), about)
            for n, g in before[1].items():
                self.assertLess(float((got[1][n] - g).abs().max()), 2e-4 * float(g.abs().max()) + 1e-7, f"{about}: {n}")

    def test_compiled_model(self):
        torch.manual_seed(1)
        model, _ = next(self.models())
        adapter.use(model)
        x = torch.randint(3, 60, (1, 40))
        with torch.no_grad():
            got = torch.compile(model, fullgraph=True, backend="aot_eager")(x, use_cache=False).logits
            self.assertTrue(torch.equal(got, model(x, use_cache=False).logits))
            with torch.autocast("cpu", dtype=torch.bfloat16):
                half = model(x).logits
        self.assertLess(float((half.float() - got).abs().max()), 0.05 * float(got.abs().max()))

    def test_refuses(self):
        q = torch.zeros(1, 2, 3, 4)
        scan = {n: t[:, :3] if t.dim() > 2 and n != "initial_states" else t for n, t in self.scan(5).items()}
        for part, call in (
                ("dropout is 0.1", lambda: adapter.attention(None, q, q, q, None, dropout=0.1)),
                ("position_bias", lambda: adapter.attention(None, q, q, q, None, position_bias=q)),
                ("seq_idx or z", lambda: recurrences.mamba_chunk_scan(**scan, seq_idx=q)),
                ("seq_idx or z", lambda: recurrences.mamba_chunk_scan(**scan, z=q)),
                ("model is a list", lambda: adapter.use([])),
                ("activation is 'relu'", lambda: recurrences.causal_conv1d_fn(q[0], q[0, 0], activation="relu")),
                ("seq_idx", lambda: mamba_ssm.causal_conv1d_fn(q[0], q[0, 0], seq_idx=q)),
                ("conv_state has 1 rows for 4", lambda: recurrences.causal_conv1d_update(q[0], q[0, :, :, :1], q[0, 0])),
                ("use_gate_in_kernel", lambda: recurrences.gated_delta_rule(q, q, q, q[..., 0], q[..., 0], use_gate_in_kernel=True)),
                ("beta has the shape", lambda: recurrences.gated_delta_rule(q, q, q, g=q[..., 0], beta=q))):
            with self.assertRaises(benchattn.Error) as e:
                call()
            self.assertIn(part, str(e.exception))
            self.assertIn("  -> ", str(e.exception))


if __name__ == "__main__":
    unittest.main()
