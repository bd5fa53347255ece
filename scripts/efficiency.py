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
import subprocess
import sys

BUCKET = 1 << 20
LOOKS = (("#0072b2", 7), ("#d55e00", 5), ("#009e73", 9), ("#cc79a7", 13))  # as plots/style.gp


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
    lines, plots, least = [], [], 1
    print("checkpoint,weight_bytes,step_s,backward,ranks,sum_s,efficiency")
    for ckpt in o.ckpt:
        n, t, b = measured(ckpt, o.backward)
        block = []
        r = 1
        while r <= o.ranks:
            e = efficiency(r, n, t, b, o)
            print(f"{ckpt},{n},{t:.6g},{b:.4g},{r},{added(r, n, o):.6g},{e:.6g}")
            least = min(least, e)
            block.append(f"{r} {100 * e}")
            r *= 2
        lines += block + ["e"]
        plots.append(f"'-' using 1:2 with linespoints lc rgb '{LOOKS[len(plots) % len(LOOKS)][0]}' lw 1.6 "
                     f"pt {LOOKS[len(plots) % len(LOOKS)][1]} ps 0.8 "
                     f"title 'weights of {n / 2**20:.1f} MiB, {1e3 * t:.3g} ms a step'")
    if o.o:
        said = ("weak scaling, a model: gradients added in a ring over links of "
                f"{o.latency:g} us and {o.bandwidth:g} GB/s")
        head = ["set terminal svg size 720,420 noenhanced rounded font 'DejaVu Sans,Verdana,sans-serif,12' "
                "background 'white'", f"set output '{o.o}'",
                "set label 'Efficiency of data-parallel training' at screen 0.01,0.955 font ',15'",
                f"set label '{said}' at screen 0.01,0.905 font ',11' tc rgb 0x555555",
                "set border 3 lc rgb 0x666666", "set tics nomirror out tc rgb 0x666666",
                "set grid lc rgb 0xe6e6e6 dt 1", "set key at screen 0.01,0.85 left top Left reverse horizontal",
                "set tmargin at screen 0.76", "set logscale x 2", "set xlabel 'ranks'", "set ylabel 'efficiency (%)'",
                f"set yrange [{max(0, 10 * int(10 * least - 0.5))}:101]", f"set xrange [0.9:{1.1 * o.ranks}]",
                "plot " + ", ".join(plots)]
        subprocess.run(["gnuplot"], input="\n".join(head + lines) + "\n", text=True, check=True)


if __name__ == "__main__":
    main()
