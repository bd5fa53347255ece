#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Random models of rwkv7 in the layout of flash-linear-attention, token by token in double.

    scripts/crosscheck/rwkv7_models.py DIR
    bench check --golden DIR

Written from the paper (Peng et al. 2025, arXiv:2503.14456) and the package's layer
(fla/layers/rwkv7.py), as fla_models.py. Needs numpy and safetensors."""

import sys

import numpy as np
from fla_models import COMMON, SEED, sigmoid, write

RWKV7 = dict(COMMON, model_type="rwkv7", architectures=["RWKV7ForCausalLM"], hidden_act="sqrelu",
             hidden_size=24, head_dim=8, num_heads=3, decay_low_rank_dim=5, gate_low_rank_dim=9,
             a_low_rank_dim=4, v_low_rank_dim=3, intermediate_size=40, hidden_ratio=4,
             norm_first=True, norm_bias=True, norm_eps=1e-5, value_dim=[24, 24],
             num_hidden_layers=2, fuse_norm=False)
OLD = {k: v for k, v in RWKV7.items() if k not in ("value_dim", "v_low_rank_dim", "num_heads")}
MODELS = {
    "rwkv7": RWKV7,
    "rwkv7.old": dict(OLD, model_type="rwkv7_fla", norm_first=False, intermediate_size=None,
                      num_hidden_layers=3, tie_word_embeddings=True),
    "rwkv7.heads": dict(RWKV7, head_dim=None, num_heads=2, value_dim=None, a_low_rank_dim=11),
}


def layer_norm(x, w, b, eps, heads=1):
    y = x.reshape(*x.shape[:-1], heads, -1)
    y = y - y.mean(-1, keepdims=True)
    y = y / np.sqrt((y * y).mean(-1, keepdims=True) + eps)
    return y.reshape(x.shape) * w + b


class Model:
    def __init__(self, c):
        self.c, self.w = c, {}
        self.random = np.random.default_rng(SEED)
        D, V = c["hidden_size"], c["vocab_size"]
        self.H = c.get("num_heads") or D // c["head_dim"]
        F = c["intermediate_size"] or (D * c["hidden_ratio"] + 31) // 32 * 32
        ranks = {"w": c["decay_low_rank_dim"], "g": c["gate_low_rank_dim"],
                 "a": c["a_low_rank_dim"], "v": c.get("v_low_rank_dim", 7)}
        self.put("model.embeddings.weight", V, D)
        for l in range(c["num_hidden_layers"]):
            at = f"model.layers.{l}."
            for norm in ["pre_norm"] * (l == 0 and c["norm_first"]) + ["attn_norm", "ffn_norm"]:
                self.norm(at + norm, D)
            for x in "rwkvag":
                self.put(at + "attn.x_" + x, 1, 1, D, scale=0.4)
            self.put(at + "attn.k_k", D, scale=0.3, middle=0.7)
            self.put(at + "attn.k_a", D, scale=0.3, middle=1)
            self.put(at + "attn.r_k", self.H, D // self.H, scale=0.5)
            for x in "rkvo":
                self.put(at + f"attn.{x}_proj.weight", D, D, scale=1.3 / np.sqrt(D))
            for x, rank in ranks.items():
                if x == "v" and l == 0:
                    continue
                self.put(at + f"attn.{x}_lora.lora.0.weight", rank, D, scale=1.3 / np.sqrt(D))
                self.put(at + f"attn.{x}_lora.lora.2.weight", D, rank, scale=1.3 / np.sqrt(rank))
                if x != "g":
                    self.put(at + f"attn.{x}_lora.lora.2.bias", D, middle=-1.5 * (x == "w"))
            self.norm(at + "attn.g_norm", D)
            self.put(at + "ffn.x_k", D, scale=0.4)
            self.put(at + "ffn.key.weight", F, D, scale=1 / np.sqrt(D))
            self.put(at + "ffn.value.weight", D, F, scale=1 / np.sqrt(F))
        self.norm("model.norm", D)
        if not c["tie_word_embeddings"]:
            self.put("lm_head.weight", V, D, scale=1.3 / np.sqrt(D))

    def put(self, name, *shape, scale=1.0, middle=0.0):
        x = middle + scale * self.random.standard_normal(shape)
        self.w[name] = x.astype(np.float32)

    def norm(self, name, n):
        self.put(name + ".weight", n, scale=0.2, middle=1)
        self.put(name + ".bias", n, scale=0.2)

    def of(self, name):
        return self.w[name].astype(float)

    def map(self, x, name):
        return x @ self.of(name + ".weight").T

    def normed(self, x, name, eps, heads=1):
        return layer_norm(x, self.of(name + ".weight"), self.of(name + ".bias"), eps, heads)

    def low_rank(self, x, name, act=lambda z: z):
        y = self.map(act(self.map(x, name + ".lora.0")), name + ".lora.2")
        bias = name + ".lora.2.bias"
        return y + self.of(bias) if bias in self.w else y

    @staticmethod
    def shift(x):
        return np.concatenate([np.zeros_like(x[:, :1]), x[:, :-1]], 1) - x

    def attend(self, x, at, first):
        B, T, D = x.shape
        H, n = self.H, D // self.H
        d = self.shift(x)
        r, w, k, v, a, g = (x + d * self.of(at + "x_" + c)[0] for c in "rwkvag")
        decay = np.exp(-np.exp(-0.5) * sigmoid(self.low_rank(w, at + "w_lora", np.tanh)))
        a = sigmoid(self.low_rank(a, at + "a_lora"))
        g = self.low_rank(g, at + "g_lora", sigmoid)
        z = v
        r, k, v = (self.map(y, at + c + "_proj") for y, c in ((r, "r"), (k, "k"), (v, "v")))
        if first is None:
            first = v
        else:
            v = v + (first - v) * sigmoid(self.low_rank(z, at + "v_lora"))
        heads = (B, T, H, n)
        kk = (k * self.of(at + "k_k")).reshape(heads)
        kk = kk / np.maximum(np.sqrt((kk * kk).sum(-1, keepdims=True)), 1e-12)
        k = k * (1 + (a - 1) * self.of(at + "k_a"))
        r, decay, k, a, vh = (y.reshape(heads) for y in (r, decay, k, a, v))
        S, out = np.zeros((B, H, n, n)), np.zeros(heads)
        for t in range(T):
            erased = np.einsum("bhk,bhkv->bhv", kk[:, t], S)
            S = (S * decay[:, t, :, :, None] - (kk * a)[:, t, :, :, None] * erased[:, :, None]
                 + k[:, t, :, :, None] * vh[:, t, :, None])
            out[:, t] = np.einsum("bhk,bhkv->bhv", r[:, t], S)
        o = self.normed(out.reshape(B, T, D), at + "g_norm", n * self.c["norm_eps"], H)
        bonus = (r * k * self.of(at + "r_k")).sum(-1, keepdims=True) * vh
        return self.map((o + bonus.reshape(B, T, D)) * g, at + "o_proj"), first

    def logits(self, ids):
        c, first = self.c, None
        eps = c["norm_eps"]
        x = self.of("model.embeddings.weight")[ids]
        if c["norm_first"]:
            x = self.normed(x, "model.layers.0.pre_norm", eps)
        for l in range(c["num_hidden_layers"]):
            at = f"model.layers.{l}."
            y, first = self.attend(self.normed(x, at + "attn_norm", eps), at + "attn.", first)
            x = x + y
            y = self.normed(x, at + "ffn_norm", eps)
            y = self.map(y + self.shift(y) * self.of(at + "ffn.x_k"), at + "ffn.key")
            x = x + self.map(np.maximum(y, 0) ** 2, at + "ffn.value")
        x = self.normed(x, "model.norm", eps)
        return self.map(x, "model.embeddings" if c["tie_word_embeddings"] else "lm_head")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for name, c in MODELS.items():
        write(sys.argv[1], name, c, Model)


if __name__ == "__main__":
    main()
