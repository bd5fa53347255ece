#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Random models in the layouts of flash-linear-attention, computed token by token in double.

    scripts/crosscheck/fla_models.py DIR
    bench check --golden DIR

The package runs on GPUs; this is its arithmetic, written again from its layers (fla/layers/gla.py,
fla/layers/gated_deltanet.py, fla/modules/mlp.py), as a loop over tokens with one state a head. Each
folder has config.json, model.safetensors and expect.safetensors, as those of models.py. Needs numpy
and safetensors."""

import json
import os
import sys

import numpy as np
from safetensors.numpy import save_file

SEED = 20240817
BATCH, TOKENS = 2, 37
SEGMENTS = "11,1,25"

COMMON = dict(hidden_size=24, num_hidden_layers=2, vocab_size=61, norm_eps=1e-6, hidden_act="swish",
              max_position_embeddings=2048, attn=None, attn_mode="chunk", fuse_norm=True,
              fuse_swiglu=True, fuse_cross_entropy=True, use_cache=True, bos_token_id=1,
              eos_token_id=2, torch_dtype="float32", tie_word_embeddings=False)
DELTA = dict(COMMON, model_type="gated_deltanet", architectures=["GatedDeltaNetForCausalLM"],
             num_heads=3, head_dim=6, expand_v=2.0, use_gate=True, use_short_conv=True, conv_size=4,
             intermediate_size=28, hidden_ratio=4)
GLA = dict(COMMON, model_type="gla", architectures=["GLAForCausalLM"], num_heads=4, expand_k=0.5,
           expand_v=1.0, use_gk=True, use_gv=False, use_short_conv=False, conv_size=4,
           use_output_gate=True, clamp_min=None, feature_map=None, num_kv_heads=None,
           elementwise_affine=True, intermediate_size=None, hidden_ratio=4)
MODELS = {
    "gated_deltanet": DELTA,
    "gated_deltanet.grouped": dict(DELTA, num_heads=2, num_v_heads=4, head_dim=5, expand_v=1.6,
                                   allow_neg_eigval=True, tie_word_embeddings=True),
    "gated_deltanet.plain": dict(DELTA, use_gate=False, use_short_conv=False, num_v_heads=None,
                                 intermediate_size=None, hidden_ratio=1),
    "gla": GLA,
    "gla.wide": dict(GLA, hidden_size=20, num_heads=2, expand_k=1.0, expand_v=2.0, fuse_norm=False,
                     intermediate_size=17, tie_word_embeddings=True, norm_eps=1e-5),
    "gla.ungated": dict(GLA, num_heads=3, use_output_gate=False, num_hidden_layers=3),
}


def sigmoid(x):
    return 0.5 * (1 + np.tanh(0.5 * x))


def silu(x):
    return x * sigmoid(x)


def softplus(x):
    return np.logaddexp(0, x)


def rms(x, w, eps):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * w


def unit(x):
    return x / np.sqrt((x * x).sum(-1, keepdims=True) + 1e-6)


def convolve(x, w):
    """[B,T,n] with taps [n,1,K], the last of which is of the token itself."""
    taps = w.shape[-1]
    padded = np.concatenate([np.zeros((x.shape[0], taps - 1, x.shape[2])), x], 1)
    return silu(sum(padded[:, k:k + x.shape[1]] * w[:, 0, k] for k in range(taps)))


def inner(c):
    if c.get("intermediate_size"):
        return c["intermediate_size"]
    return (int(c["hidden_size"] * (c.get("hidden_ratio") or 4) * 2 / 3) + 255) // 256 * 256


class Model:
    def __init__(self, c):
        self.c, self.w = c, {}
        self.random = np.random.default_rng(SEED)
        D, F, V = c["hidden_size"], inner(c), c["vocab_size"]
        self.matrix("model.embeddings.weight", V, D, scale=1)
        for l in range(c["num_hidden_layers"]):
            at = f"model.layers.{l}."
            self.gain(at + "attn_norm.weight", D)
            self.gain(at + "mlp_norm.weight", D)
            self.matrix(at + "mlp.gate_proj.weight", F, D)
            self.matrix(at + "mlp.up_proj.weight", F, D)
            self.matrix(at + "mlp.down_proj.weight", D, F)
            (self.delta if c["model_type"] == "gated_deltanet" else self.gla)(at + "attn.", D)
        self.gain("model.norm.weight", D)
        if not c["tie_word_embeddings"]:
            self.matrix("lm_head.weight", V, D)

    def matrix(self, name, *shape, scale=None):
        x = self.random.standard_normal(shape) * (scale or 1.3 / np.sqrt(shape[-1]))
        self.w[name] = x.astype(np.float32)

    def gain(self, name, n):
        self.w[name] = (1 + 0.2 * self.random.standard_normal(n)).astype(np.float32)

    def delta(self, at, D):
        c = self.c
        H, dk = c.get("num_v_heads") or c["num_heads"], c["head_dim"]
        dv = round(dk * c["expand_v"])
        for x, n in (("q", c["num_heads"] * dk), ("k", c["num_heads"] * dk), ("v", H * dv)):
            self.matrix(at + x + "_proj.weight", n, D)
            if c["use_short_conv"]:
                self.matrix(at + x + "_conv1d.weight", n, 1, c["conv_size"])
        self.matrix(at + "a_proj.weight", H, D)
        self.matrix(at + "b_proj.weight", H, D)
        self.w[at + "A_log"] = np.log(self.random.uniform(0.1, 4, H)).astype(np.float32)
        self.matrix(at + "dt_bias", H, scale=1)
        self.gain(at + "o_norm.weight", dv)
        if c["use_gate"]:
            self.matrix(at + "g_proj.weight", H * dv, D)
        self.matrix(at + "o_proj.weight", D, H * dv)

    def gla(self, at, D):
        c = self.c
        keys, values = int(D * c["expand_k"]), int(D * c["expand_v"])
        fused = c["fuse_norm"] and c["use_output_gate"]
        self.matrix(at + "q_proj.weight", keys, D)
        self.matrix(at + "k_proj.weight", keys, D)
        self.matrix(at + "v_proj.weight", values, D)
        self.matrix(at + "gk_proj.0.weight", 16, D)
        self.matrix(at + "gk_proj.1.weight", keys, 16)
        self.matrix(at + "gk_proj.1.bias", keys, scale=1)
        self.gain(at + ("g_norm_swish_gate" if fused else "g_norm") + ".weight",
                  values // c["num_heads"])
        if c["use_output_gate"]:
            self.matrix(at + "g_proj.weight", values, D)
        self.matrix(at + "o_proj.weight", D, values)

    def map(self, x, name):
        return x @ self.w[name].astype(float).T

    def run_delta(self, x, at):
        c = self.c
        H, served = c.get("num_v_heads") or c["num_heads"], c["num_heads"]
        dk, dv = c["head_dim"], round(c["head_dim"] * c["expand_v"])
        B, T, _ = x.shape
        q, k, v = (self.map(x, at + n + "_proj.weight") for n in "qkv")
        if c["use_short_conv"]:
            q, k, v = (convolve(y, self.w[at + n + "_conv1d.weight"].astype(float))
                       for y, n in ((q, "q"), (k, "k"), (v, "v")))
        else:
            q, k, v = silu(q), silu(k), silu(v)
        q, k = (np.repeat(unit(y.reshape(B, T, served, dk)), H // served, 2) for y in (q, k))
        v = v.reshape(B, T, H, dv)
        beta = sigmoid(self.map(x, at + "b_proj.weight")) * (2 if c.get("allow_neg_eigval") else 1)
        dt = softplus(self.map(x, at + "a_proj.weight") + self.w[at + "dt_bias"].astype(float))
        decay = np.exp(-np.exp(self.w[at + "A_log"].astype(float)) * dt)
        S, out = np.zeros((B, H, dk, dv)), np.zeros((B, T, H, dv))
        for t in range(T):
            S *= decay[:, t, :, None, None]
            new = beta[:, t, :, None] * (v[:, t] - np.einsum("bhk,bhkv->bhv", k[:, t], S))
            S += k[:, t, :, :, None] * new[:, :, None, :]
            out[:, t] = np.einsum("bhk,bhkv->bhv", q[:, t], S) * dk ** -0.5
        out = rms(out, self.w[at + "o_norm.weight"].astype(float), c["norm_eps"])
        if c["use_gate"]:
            out = out * silu(self.map(x, at + "g_proj.weight").reshape(B, T, H, dv))
        return self.map(out.reshape(B, T, H * dv), at + "o_proj.weight")

    def run_gla(self, x, at):
        c = self.c
        H = c["num_heads"]
        B, T, D = x.shape
        dk, dv = int(D * c["expand_k"]) // H, int(D * c["expand_v"]) // H
        q, k, v = (self.map(x, at + n + "_proj.weight").reshape(B, T, H, -1) for n in "qkv")
        g = self.map(self.map(x, at + "gk_proj.0.weight"), at + "gk_proj.1.weight")
        g = -softplus(-(g + self.w[at + "gk_proj.1.bias"].astype(float))) / 16
        decay = np.exp(g).reshape(B, T, H, dk)
        S, out = np.zeros((B, H, dk, dv)), np.zeros((B, T, H, dv))
        for t in range(T):
            S = S * decay[:, t, :, :, None] + k[:, t, :, :, None] * v[:, t, :, None, :]
            out[:, t] = np.einsum("bhk,bhkv->bhv", q[:, t], S) * dk ** -0.5
        fused = c["fuse_norm"] and c["use_output_gate"]
        norm = at + ("g_norm_swish_gate" if fused else "g_norm") + ".weight"
        out = rms(out, self.w[norm].astype(float), c["norm_eps"])
        if c["use_output_gate"]:
            out = out * silu(self.map(x, at + "g_proj.weight").reshape(B, T, H, dv))
        return self.map(out.reshape(B, T, H * dv), at + "o_proj.weight")

    def logits(self, ids):
        c, w = self.c, self.w
        run = self.run_delta if c["model_type"] == "gated_deltanet" else self.run_gla
        x = w["model.embeddings.weight"].astype(float)[ids]
        for l in range(c["num_hidden_layers"]):
            at, eps = f"model.layers.{l}.", c["norm_eps"]
            x = x + run(rms(x, w[at + "attn_norm.weight"].astype(float), eps), at + "attn.")
            y = rms(x, w[at + "mlp_norm.weight"].astype(float), eps)
            y = silu(self.map(y, at + "mlp.gate_proj.weight")) * self.map(y, at + "mlp.up_proj.weight")
            x = x + self.map(y, at + "mlp.down_proj.weight")
        x = rms(x, w["model.norm.weight"].astype(float), c["norm_eps"])
        return self.map(x, "model.embeddings.weight" if c["tie_word_embeddings"] else "lm_head.weight")


def write(to, name, c, model_of=Model):
    folder = os.path.join(to, name)
    os.makedirs(folder, exist_ok=True)
    model = model_of(c)
    ids = np.random.default_rng(SEED + 1).integers(0, c["vocab_size"], (BATCH, TOKENS))
    logits = model.logits(ids)
    log_z = np.logaddexp.reduce(logits, -1)
    nll = (log_z - np.take_along_axis(logits, np.roll(ids, -1, 1)[..., None], -1)[..., 0])[:, :-1]
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump(c, f, indent=2, sort_keys=True)
        f.write("\n")
    save_file(model.w, os.path.join(folder, "model.safetensors"))
    total = nll.sum()
    meta = {"kind": "import", "name": name, "family": c["model_type"], "judge": os.path.basename(sys.argv[0]),
            "segments": SEGMENTS, "tolerance": "2e-5", "tolerance_abs": "2e-5",
            "total_nll": f"{total:.12g}", "n_tokens": str(nll.size),
            "mean_nll": f"{total / nll.size:.12g}", "ppl": f"{np.exp(total / nll.size):.12g}"}
    save_file({"in.ids": ids.astype(np.int32), "out.logits": logits.astype(np.float32),
               "out.nll": nll.astype(np.float32)}, os.path.join(folder, "expect.safetensors"), meta)
    print(name)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for name, c in MODELS.items():
        write(sys.argv[1], name, c)


if __name__ == "__main__":
    main()
