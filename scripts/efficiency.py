#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""efficiency.py CHECKPOINT... [--latency US] [--bandwidth GB/S] [--ranks N] [--backward SHARE] [-o FILE.svg]

A model, not a measurement: how well data-parallel training would scale, from what bench train measured on one
machine. Of each CHECKPOINT it reads the weights' bytes n and, from the fastest row of CHECKPOINT.train.csv (other
load only adds time, and a short step is the harder case), the seconds t that a step computes (comm_ns is taken off)
and, if ranks trained it, the share b of a step in which they computed while gradients were being added, from
overlap_pct; else --backward says b. Every rank keeps its own part of the batch, so that the batch grows with R (weak
scaling). Gradients are added in a ring of R ranks (Patarasuk and Yuan 2009, J. Parallel Distrib. Comput. 69(2),
section 3), which hides behind that share, except for the last bucket:

    c(R) = 2 (R - 1) (alpha + n / (R beta))           alpha: latency of a message, beta: bytes/s of a link
    e(R) = t / (t + max(c(R) - b t, c(R) min(1, s / n)))          s: bytes of a bucket, 1 MiB

Prints ranks, seconds and efficiency of each size as CSV; with -o a figure (gnuplot). alpha and
beta are assumed; so is that all ranks are alike and none waits for a slower one."""
import argparse
import csv
import os
import sys
import tempfile

BUCKET = 1 << 20


def measured(ckpt, backward):
    """Bytes of weights, seconds of a step without waiting for others, and the share that hides sums."""
    with open(f"{ckpt}.train.csv", newline="") as f:
        rows = [row for row in csv.DictReader(f) if row["tokens_per_s"]]
    if not rows:
        sys.exit(f"efficiency.py: {ckpt}.train.csv has no row  -> train for 50 steps or more")
    last = rows[-1]
    tokens = float(last["tokens"]) / float(last["step"])
    found = []
    for row in rows:
        waited = float(row["comm_ns"] or 0) * 1e-9
        seconds = tokens / float(row["tokens_per_s"]) - waited
        share = backward
        if backward is None and row["overlap_pct"]:  # waited / (1 - overlap) passed from the first sum to the last
            overlap = min(float(row["overlap_pct"]) / 100, 0.9999)
            share = min(1, waited * overlap / (1 - overlap) / seconds)
        if share is None:
            sys.exit(f"efficiency.py: {ckpt} was trained by one rank  -> mpirun -n 2, or --backward SHARE")
        found.append((seconds, share))
    return os.path.getsize(ckpt), *min(found)


def added(ranks, n, o):
    return 2 * (ranks - 1) * (o.latency * 1e-6 + n / (ranks * o.bandwidth * 1e9))


def efficiency(ranks, n, t, b, o):
    c = added(ranks, n, o)
    return t / (t + max(c - b * t, c * min(1, BUCKET / n)))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("ckpt", nargs="+")
    p.add_argument("--latency", type=float, default=2, help="of a message, microseconds [2]")
    p.add_argument("--bandwidth", type=float, default=12.5, help="of a link, GB/s [12.5: 100 Gbit/s]")
    p.add_argument("--ranks", type=int, default=64, help="most [64]")
    p.add_argument("--backward", type=float, metavar="SHARE",
                   help="of a step that sums can hide behind [measured]")
    p.add_argument("-o", metavar="FILE.svg")
    o = p.parse_args()
    if o.latency < 0 or o.bandwidth <= 0 or o.ranks < 1 or not 0 <= (o.backward or 0) <= 1:
        p.error("latency >= 0, bandwidth > 0, ranks >= 1, 0 <= backward <= 1")
    sizes = []
    print("checkpoint,weight_bytes,step_s,backward,ranks,sum_s,efficiency")
    for ckpt in o.ckpt:
        n, t, b = measured(ckpt, o.backward)
        sizes.append((n, t, b))
        r = 1
        while r <= o.ranks:
            print(f"{ckpt},{n},{t:.6g},{b:.4g},{r},{added(r, n, o):.6g},{efficiency(r, n, t, b, o):.6g}")
            r *= 2
    if o.o:
        import figures
        o.bench = os.path.join(figures.HERE, "bench")  # whose version it says
        with tempfile.TemporaryDirectory() as o.tmp:
            figures.ranks(o, o.o, sizes, o.latency, o.bandwidth, o.ranks)


if __name__ == "__main__":
    main()
