#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""libraries.py NAME=PROGRAM... [--rounds N] [--graph NAME] [--simd BACKEND] [--quick] [OPTION...]

Our kernels against the libraries that several builds of bench have, as tables. Each PROGRAM (a bench, or a command line
that runs one) measures the same cases on our backend, OpenBLAS and oneDNN, in N rounds in turns; in each round the
backends of a case take turns, too. A number is the median over the rounds of a library's time over that of our backend
in the same program and round, and in brackets the least and the most: other load of the machine meets both sides of such a
ratio. The share of peak is the median one; it is empty where the peak itself was disturbed. --graph NAME times that
program's oneDNN with --impl graph-sdpa besides, where it can. --quick: tiny sizes, to try the script. OPTIONs go to
bench. Two generations of the libraries, those of Debian 12 and 13:

    scripts/debian13.sh quick
    scripts/libraries.py 'Debian 12=./bench' 'Debian 13=scripts/debian13.sh bench' --graph 'Debian 13'"""
import argparse
import csv
import io
import re
import shlex
import statistics
import subprocess
import sys
import tempfile

SIZES = "--d-model 512 --heads 8 --threads 1 --ckpt none --launches 1 --max-time 1"
CASES = {
    "attention": "--variant vanilla,xl,shaw --clip 32 --workload attn --seq 128,512 --mem 0,512",
    "attention with its backward pass": "--variant vanilla,xl,shaw --clip 32 --workload attn --phase fwd_bwd --seq 512 --mem 0",
    "layer": "--variant vanilla,xl,gtrxl --workload layer --seq 128 --mem 0,512",
    "segment": "--variant xl,llama --workload segment --layers 2 --seq 128 --mem 512",
    "decode": "--variant xl,llama --workload decode --layers 2 --mem 512",
    "training step": "--variant vanilla,xl --workload train --layers 2 --seq 128 --mem 128",
}
TINY = "--max-time 0.05 --min-samples 6 --warmup-ms 5"


def run(program, options):
    """Rows of latency.csv; none if nothing could run."""
    with tempfile.TemporaryDirectory() as out:
        line = shlex.split(program) + ["--format", "csv", "-q", "--out", out] + options
        done = subprocess.run(line, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, check=False)
    # 3 and 4: what could not run, or was disturbed, is named in its row.
    if not done.stdout.startswith("schema,"):
        sys.exit(f"libraries.py: {shlex.join(line)} ended with {done.returncode} and no rows  -> run it alone")
    return [r for r in csv.DictReader(io.StringIO(done.stdout)) if r["status"] == "ok"]


def case_of(row):
    return row["variant"], row["seq_tokens"], row["mem_tokens"]


def measure(args, programs, simd, what, seen):
    """{case: {(program, column): [(ns, share of peak)] of rounds}}"""
    times = {}
    cases = re.sub(r"--(seq|mem) \S+", r"--\1 16", CASES[what]) + " " + TINY if args.quick else CASES[what]
    options = shlex.split(SIZES + " " + cases) + args.options
    for i in range(args.rounds):
        order = list(programs)
        for name in order if i % 2 == 0 else order[::-1]:
            rows = run(programs[name], options + ["--backend", f"{simd},openblas,onednn"])
            if name == args.graph and what == "attention":
                rows += run(programs[name], options + ["--backend", "onednn", "--impl", "graph-sdpa"])
            for r in rows:
                column = "graph-sdpa" if r["impl"].startswith("graph-sdpa") else r["backend"]
                times.setdefault(case_of(r), {}).setdefault((name, column), {})[i] = r
                seen.add((name, column))
    return times


def cell(rows, ours):
    """1.21 [1.19 1.30] 61 %"""
    both = [i for i in rows if i in ours]
    if not both:
        return ""
    ratios = [float(rows[i]["median_ns"]) / float(ours[i]["median_ns"]) for i in both]
    shares = [float(rows[i]["peak_flops_pct"]) for i in both if rows[i]["peak_flops_pct"]]
    span = f" [{min(ratios):.2f} {max(ratios):.2f}]" if len(ratios) > 1 else ""
    share = f", {statistics.median(shares):.0f} %" if shares else ""
    return f"{statistics.median(ratios):.2f}{span}{share}"


def table(what, times, programs, simd, seen):
    columns = [(n, c) for n in programs for c in ("openblas", "onednn", "graph-sdpa") if (n, c) in seen]
    print(f"\n{what[0].upper()}{what[1:]}: time over that of {simd}, and share of peak\n")
    print("| variant, L, M |" + "".join(f" {simd}, {n} |" for n in programs) + "".join(f" {c}, {n} |" for n, c in columns))
    print("|---" * (1 + len(programs) + len(columns)) + "|")
    for case, of in times.items():
        cells = []
        for n in programs:
            shares = [float(r["peak_flops_pct"]) for r in of.get((n, simd), {}).values() if r["peak_flops_pct"]]
            cells.append(f"{statistics.median(shares):.0f} %" if shares else "")
        cells += [cell(of.get(key, {}), of.get((key[0], simd), {})) for key in columns]
        print(f"| {', '.join(case)} | {' | '.join(cells)} |")


def main():
    p = argparse.ArgumentParser(usage=__doc__, add_help=True)
    p.add_argument("programs", nargs="+", metavar="NAME=PROGRAM")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--graph", metavar="NAME")
    p.add_argument("--simd", default="avx512")
    p.add_argument("--quick", action="store_true")
    args, args.options = p.parse_known_args()
    programs = dict(a.split("=", 1) for a in args.programs if "=" in a)
    if len(programs) != len(args.programs) or args.rounds < 1 or (args.graph and args.graph not in programs):
        sys.exit("libraries.py: programs are NAME=PROGRAM, rounds 1 or more, --graph one of the names  -> see its head")
    for name, program in programs.items():
        said = subprocess.run(shlex.split(program) + ["--version"], stdout=subprocess.PIPE, text=True, check=False).stdout
        print(f"{name}:\n\n" + "".join(f"    {line}\n" for line in said.splitlines() if not line.startswith("flags")))
    for what in CASES:
        seen = set()
        times = measure(args, programs, args.simd, what, seen)
        table(what, times, programs, args.simd, seen)
        sys.stdout.flush()


if __name__ == "__main__":
    main()
