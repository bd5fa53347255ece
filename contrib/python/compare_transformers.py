#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Small random models of transformers with and without the kernels of benchattn: tokens a second, memory, differences.

    python3 contrib/python/compare_transformers.py [--threads N] [--rounds N] [--layers N] [--tiny]

Each pair of times is taken in turns, the first way by chance, and the ratio is that of a pair: a slow minute hits both.
Times are CPU time of the process divided by its threads, which other programs on the machine change less than time on
the wall. A ratio has its median and the interval of that median by order statistics, at least 0.95. Memory is the peak
of a training step beyond what is there before. Prints Markdown."""
import argparse
import ctypes
import os
import random
import statistics
import sys
import time

import torch
import transformers

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import benchattn  # noqa: E402
from benchattn_adapters.transformers import use  # noqa: E402
from median_interval import interval  # noqa: E402

D, VOCABULARY = 512, 2000


def models(layers):
    common = {"vocab_size": VOCABULARY, "hidden_size": D, "num_hidden_layers": layers, "bos_token_id": 0, "eos_token_id": 1,
              "pad_token_id": 1}
    heads = {"intermediate_size": 1376, "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 64}
    t = transformers
    return {
        "Llama": lambda: t.LlamaForCausalLM(t.LlamaConfig(**common, **heads)),
        "Qwen3-Next": lambda: t.Qwen3NextForCausalLM(t.Qwen3NextConfig(
            **common, **heads, linear_key_head_dim=64, linear_value_head_dim=64, linear_num_key_heads=8,
            linear_num_value_heads=8, mlp_only_layers=list(range(layers)), num_experts=0)),
        "Mamba-2": lambda: t.Mamba2ForCausalLM(t.Mamba2Config(
            **common, num_heads=16, head_dim=64, state_size=64, n_groups=1, expand=2, chunk_size=128)),
        "Mamba": lambda: t.MambaForCausalLM(t.MambaConfig(**common, state_size=16)),
        "Falcon-H1": lambda: t.FalconH1ForCausalLM(t.FalconH1Config(
            **common, **heads, mamba_d_ssm=2 * D, mamba_n_heads=16, mamba_d_head=64, mamba_n_groups=1, mamba_d_state=64,
            mamba_chunk_size=128)),
    }


def prefill(model, x):
    with torch.no_grad():
        model(x)
    return x.shape[1]


def train(model, x):
    model.zero_grad()
    model(x, labels=x).loss.backward()
    return x.shape[1]


def generate(model, x):
    model.generate(x[:, :32], max_new_tokens=64, min_new_tokens=64, do_sample=False)
    return 64


def rate(job, model, x, threads):
    start = time.process_time()
    tokens = job(model, x)
    return tokens * threads / (time.process_time() - start)


def peak(job, model, x):
    def status(key):
        with open("/proc/self/status") as f:
            return next(int(line.split()[1]) for line in f if line.startswith(key))
    model.zero_grad()
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/clear_refs", "w") as f:
        f.write("5")
    before = status("VmRSS")
    job(model, x)
    return (status("VmHWM") - before) / 1024


def differences(model, x):
    got = []
    for on in (False, True):
        use(model, on)
        train(model, x)
        with torch.no_grad():
            got.append((model(x).logits, {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}))
    (logits, grads), (ours, our_grads) = got
    far = max(float((our_grads[n] - g).abs().max() / g.abs().max().clamp_min(1e-30)) for n, g in grads.items())
    return float((ours - logits).abs().max() / logits.abs().max()), far


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, usual, least in (("threads", 1, 1), ("rounds", 9, 2), ("layers", 4, 4)):
        options.add_argument(f"--{name}", type=int, default=usual, help=f"{usual}; at least {least}")
    options.add_argument("--tiny", action="store_true", help="sizes that only show that it runs")
    o = options.parse_args()
    if min(o.threads, o.rounds - 1, o.layers - 3) < 1:
        sys.exit("compare_transformers.py: --threads, --rounds or --layers is too small  -> see --help")
    os.environ["OMP_NUM_THREADS"] = str(o.threads)  # of benchattn's own engine
    torch.set_num_threads(o.threads)
    torch.manual_seed(1), random.seed(1)
    x = torch.randint(2, VOCABULARY, (1, 64 if o.tiny else 512))
    print(f"torch {torch.__version__}, transformers {transformers.__version__}, benchattn {benchattn.Engine().backend}, "
          f"{o.threads} threads, {o.layers} layers of {D}, {x.shape[1]} tokens, {o.rounds} rounds\n")
    print("| model | pass | tokens/s without | with | ratio | peak, MiB | logits | gradients |\n|---|---|---|---|---|---|---|---|")
    for name, make in models(o.layers).items():
        model = make().eval()
        far = differences(model, x)
        for job in (prefill, train, generate):
            rates = {False: [], True: []}
            for _ in range(o.rounds):
                for on in random.sample((False, True), 2):
                    use(model, on)
                    rates[on].append(rate(job, model, x, o.threads))
            memory = ""
            if job is train:
                peaks = []
                for on in (False, True):
                    use(model, on)
                    peaks.append(peak(job, model, x))
                memory = f"{peaks[0]:.0f}, {peaks[1]:.0f}"
            cells = [name, job.__name__, *(f"{statistics.median(rates[on]):.0f}" for on in (False, True)),
                     interval([b / a for a, b in zip(*rates.values())]), memory,
                     *(f"{d:.1e}" if job is prefill else "" for d in far)]
            print(f"| {' | '.join(cells)} |", flush=True)
        use(model, False)


if __name__ == "__main__":
    main()
