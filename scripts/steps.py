#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""steps.py [--from N] [--bytes N] LOSSES TEXT: the layers that each byte took, beside the text.

LOSSES is a file of bench eval --losses, of a model of bytes whose positions may stop early; TEXT is what was scored. Under
each line of text stands how many layers the position ran that predicts the byte (9 means 9 or more). Then come the mean
number of layers by loss, in five groups of equally many bytes, and Spearman's rank correlation of layers and loss with
its 95 % interval over blocks of 256 bytes, drawn again with replacement."""
import argparse
import json
import random
import struct


def tensors(path):
    """{name: numbers} of the file."""
    with open(path, "rb") as f:
        (n,) = struct.unpack("<Q", f.read(8))
        header = json.loads(f.read(n))
        data = f.read()
    kind = {"F32": "f", "I32": "i"}
    return {name: struct.unpack(f"<{t['shape'][0]}{kind[t['dtype']]}", data[slice(*t["data_offsets"])])
            for name, t in header.items() if name != "__metadata__"}


def ranks(v):
    """From 0; equal numbers have their mean."""
    order = sorted(range(len(v)), key=v.__getitem__)
    out = [0.0] * len(v)
    i = 0
    while i < len(v):
        j = i
        while j + 1 < len(v) and v[order[j + 1]] == v[order[i]]:
            j += 1
        for k in order[i:j + 1]:
            out[k] = (i + j) / 2
        i = j + 1
    return out


def correlation(a, b):
    n = len(a)
    ma, mb = sum(a) / n, sum(b) / n
    up = sum((x - ma) * (y - mb) for x, y in zip(a, b))
    down = (sum((x - ma) ** 2 for x in a) * sum((y - mb) ** 2 for y in b)) ** 0.5
    return up / down if down else float("nan")


def interval(a, b, block=256, draws=400):
    """Percentiles 2.5 and 97.5 of the correlation over blocks drawn again."""
    rng = random.Random(1)
    starts = range(0, len(a) - block + 1, block)
    found = []
    for _ in range(draws):
        at = [i for s in rng.choices(starts, k=len(starts)) for i in range(s, s + block)]
        found.append(correlation([a[i] for i in at], [b[i] for i in at]))
    found.sort()
    return found[int(0.025 * draws)], found[int(0.975 * draws) - 1]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--from", dest="first", type=int, default=0)
    p.add_argument("--bytes", type=int, default=480)
    p.add_argument("losses")
    p.add_argument("text")
    o = p.parse_args()
    t = tensors(o.losses)
    if "layers" not in t:
        p.error(f"{o.losses} has no layers  -> give one of a model whose positions may stop early")
    with open(o.text, "rb") as f:
        text = f.read(len(t["nll"]) + 1)
    if len(text) != len(t["nll"]) + 1:
        p.error(f"{o.text} is shorter than what was scored  -> give the text of --corpus")
    shown = "".join(chr(c) if 32 <= c < 127 else " " for c in text)
    for at in range(o.first, min(o.first + o.bytes, len(t["nll"])), 80):
        end = min(at + 80, o.first + o.bytes, len(t["nll"]))
        print(shown[at + 1:end + 1])
        print("".join(str(min(9, n)) for n in t["layers"][at:end]))
    order = sorted(range(len(t["nll"])), key=t["nll"].__getitem__)
    print("\nloss, nats        layers")
    for k in range(5):
        part = order[k * len(order) // 5:(k + 1) * len(order) // 5]
        print(f"{t['nll'][part[0]]:6.3f} to {t['nll'][part[-1]]:6.3f}  {sum(t['layers'][i] for i in part) / len(part):.3f}")
    a, b = ranks(t["layers"]), ranks(t["nll"])
    low, high = interval(a, b)
    print(f"\nrank correlation {correlation(a, b):+.3f} ({low:+.3f} to {high:+.3f})")


if __name__ == "__main__":
    main()
