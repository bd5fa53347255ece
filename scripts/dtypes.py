#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tables of results/reference/dtypes.md: what element types gain in time and lose in perplexity, from
runs of harness/sweeps/dtypes.args (one, or one of each workload) and of bench eval. "q8 x q8" are
weights of q8 that multiply rows of q8 (--act-dtype).
usage: scripts/dtypes.py RUN_FOLDER..."""
import csv
import os
import sys


def rows(folder, table):
    path = os.path.join(folder, table + ".csv")
    if not os.path.exists(path):
        return []
    with open(path, newline="") as f:
        return [r for r in csv.DictReader(f) if r["status"] == "ok"]


# Of weights, of the rows that they multiply ("" = as weights ask for), of keys and values ("" = none).
def type_of(row):
    rounded = row.get("act_dtype", "")
    return row["dtype"], rounded if rounded != "f32" else "", row["kv_dtype"]


def f32_of(kind):
    return "f32", "", "f32" if kind[2] else ""


def name_of(kind):
    return kind[0] + (f" x {kind[1]}" if kind[1] else "")


def milliseconds(row, base):
    ms = float(row["median_ns"]) / 1e6
    text = f"{ms:.3g}" if ms < 100 else f"{ms:.0f}"
    return text if row is base else f"{text} ({ms * 1e6 / float(base['median_ns']):.2f})"


def times(folders):
    measured = {}
    for folder in folders:
        for r in rows(folder, "latency"):
            if r["workload"] in ("segment", "decode"):
                measured.setdefault((r["variant"], type_of(r)), {})[r["workload"]] = r
    if not measured:
        return
    print("| variant | weights | keys, values | segment, ms | decode, ms | decode, MB a token |")
    print("|---|---|---|---|---|---|")
    for (name, kind), of in measured.items():
        cells = []
        for work in "segment", "decode":
            row, base = of.get(work), measured.get((name, f32_of(kind)), {}).get(work)
            cells.append(milliseconds(row, base) if row and base else "")
        moved = of["decode"]["bytes_moved_min"] if "decode" in of else ""
        cells.append(f"{float(moved) / 1e6:.0f}" if moved else "")
        print(f"| `{name}` | {name_of(kind)} | {kind[2]} | {' | '.join(cells)} |")
    print()


def perplexities(folders):
    models, kinds = {}, {}
    for folder in folders:
        for r in rows(folder, "perplexity"):
            text = os.path.basename(r["corpus"]).split(":")[0]
            models.setdefault((r["variant"], text, r["mem_kind"]), {})[type_of(r)] = r
            kinds[type_of(r)] = True
    kinds = [k for k in kinds if k[2]] or list(kinds)
    if not models:
        return
    names = [name_of(k) + (", " + k[2] if k[2] else "") for k in kinds]
    print(f"| model, text | {' | '.join(names)} |")
    print("|---|" + "---|" * len(kinds))
    for (name, text, _), of in models.items():
        cells = []
        for kind in kinds:
            row = of.get(kind) or of.get((*kind[:2], "") if kind[2] == "f32" else None)
            if not row:
                cells.append("")
            elif kind == f32_of(kind):
                cells.append(f"{float(row['ppl']):.5f}")
            else:
                cells.append(f"{float(row['ppl_delta_pct']):+.3f} %")
        print(f"| `{name}`, {text} | {' | '.join(cells)} |")


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    times(sys.argv[1:])
    perplexities(sys.argv[1:])


main()
