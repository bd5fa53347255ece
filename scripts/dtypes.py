#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Table of results/reference/dtypes.md: what element types gain, from the run of
harness/sweeps/dtypes.args.  usage: scripts/dtypes.py RUN_FOLDER"""
import csv
import os
import sys


def rows(folder, table):
    with open(os.path.join(folder, table + ".csv"), newline="") as f:
        return [r for r in csv.DictReader(f) if r["status"] == "ok"]


def cell(row, base):
    ms = float(row["median_ns"]) / 1e6
    text = f"{ms:.3g}" if ms < 100 else f"{ms:.0f}"
    return text if row is base else f"{text} ({ms * 1e6 / float(base['median_ns']):.2f})"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    measured = {}
    for r in rows(sys.argv[1], "latency"):
        measured[r["variant"], r["dtype"], r["kv_dtype"], r["workload"]] = r
    names = dict.fromkeys(k[:3] for k in measured)
    print("| variant | weights | keys, values | segment, ms | decode, ms | decode, MB a token |")
    print("|---|---|---|---|---|---|")
    for name, dtype, kv in names:
        cells = []
        for work in "segment", "decode":
            row = measured.get((name, dtype, kv, work))
            base = measured.get((name, "f32", "f32" if kv else "", work))
            cells.append(cell(row, base) if row and base else "")
            if work == "decode":
                cells.append(f"{float(row['bytes_moved_min']) / 1e6:.0f}" if row else "")
        print(f"| `{name}` | {dtype} | {kv} | {' | '.join(cells)} |")


main()
