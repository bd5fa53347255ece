#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""ranks.py BENCH [--rounds N] [--cores N] [WORD...]: N ranks of one thread against one rank of N threads.

BENCH is built with MPI=1; WORDs are options of bench train. Both trainings have the same batch on the same N cores and
alternate, each first in every second round, so that what else the machine does falls on both. Of each round it prints
the tokens per second of both, the median over their rows, and their ratio; last the median ratio and its range.
Above 1 the ranks are faster."""
import argparse
import csv
import os
import statistics
import subprocess
import sys
import tempfile

# One validation, at the end: every rank reads all of its text.
SIZE = "--variant xl --layers 2 --d-model 128 --heads 2 --seq 64 --mem 64 --batch 8 --steps 150 --eval-every 150"


def speed(o, words, ranks, threads):
    with tempfile.TemporaryDirectory() as folder:
        ckpt = os.path.join(folder, "c")
        line = ["mpirun", "-n", str(ranks), "--map-by", f"slot:PE={threads}", "--bind-to", "core"]
        if os.geteuid() == 0:
            line.append("--allow-run-as-root")
        line += [o.bench, "train", *words, "--threads", str(threads), "--ckpt", ckpt, "--progress", "none", "-q"]
        r = subprocess.run(line, text=True, capture_output=True)
        if r.returncode:
            sys.exit(f"{' '.join(line)}: {r.returncode}\n{r.stdout}{r.stderr}")
        with open(f"{ckpt}.train.csv", newline="") as f:
            return statistics.median(float(row["tokens_per_s"]) for row in csv.DictReader(f))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("bench")
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--cores", type=int, default=2)
    o, words = p.parse_known_args()
    if o.rounds < 1 or o.cores < 1:
        p.error("rounds >= 1, cores >= 1")
    ways = [(o.cores, 1), (1, o.cores)]
    ratios = []
    print("round,ranks_tokens_per_s,threads_tokens_per_s,ratio")
    for i in range(o.rounds):
        got = {way: speed(o, [*SIZE.split(), *words], *way) for way in ways[:: 1 if i % 2 else -1]}
        many, one = (got[way] for way in ways)
        ratios.append(many / one)
        print(f"{i + 1},{many:.0f},{one:.0f},{ratios[-1]:.3f}", flush=True)
    print(f"{o.cores} ranks x 1 thread : 1 rank x {o.cores} threads = {statistics.median(ratios):.3f} "
          f"({min(ratios):.3f} to {max(ratios):.3f})")


if __name__ == "__main__":
    main()
