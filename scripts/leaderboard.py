#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""leaderboard.py [--bench FILE] [--study DIR] [--sweep DIR] [--abilities DIR]: what variants buy beside what they cost.

--study is a run of bench study, --sweep the folder of a sweep (latency.csv, memory.csv) over the same variants, with
segments and single tokens after several lengths of context; --abilities is a run of abilities.study. Prints them as one
table, by bits per byte; bench plot --figure quality draws it."""
import argparse
import csv
import io
import math
import os
import re
import signal
import subprocess


def read(path):
    with open(path, newline="") as f:
        return list(csv.DictReader(f))


def study(o, run):
    """The rows of the study's table that were scored."""
    out = subprocess.run([o.bench, "study", run, "--format", "csv"], check=True, text=True, capture_output=True).stdout
    return [r for r in csv.DictReader(io.StringIO(out)) if r["test_nats"]]


def verdicts(o):
    """The language models, the best first."""
    return sorted(study(o, o.study), key=lambda r: float(r["test_nats"]))


def abilities(o):
    """{contender: the texts whose floor it reached}, of those that were tried."""
    reached = {}
    for r in study(o, o.abilities):
        reached.setdefault(r["contender"], []).extend([r["corpus"]] if r["reached"] == "yes" else [])
    return reached


def costs(o):
    """{variant: {(workload, context): row}}, of both tables of the sweep."""
    cost = {}
    for kind in "latency", "memory":
        for r in read(os.path.join(o.sweep, kind + ".csv")):
            if r["status"] == "ok":
                place = cost.setdefault(r["variant"], {}).setdefault((r["workload"], int(r["mem_tokens"])), {})
                place.update(r)
    return cost


def number(x):
    return f"{x:.3g}" if x < 1000 else f"{x:.0f}"


def micros(row):
    """Microseconds a token; None: not timed."""
    if row and row["median_ns"]:
        return float(row["median_ns"]) / 1000 / (float(row["seq_tokens"]) * float(row["batch_size"]))
    return None


def kibibytes(row):
    """What is kept of the context; None: not known."""
    return float(row["memory_state_bytes"]) / 1024 if row and row.get("memory_state_bytes") else None


def said(x, row):
    """A number, with a ~ where other programs disturbed a time; empty: there is none."""
    return "" if x is None else ("~" if "noisy" in row["status_detail"] else "") + number(x)


def skeleton(r):
    """What of the skeleton a variant does not take; the width is everybody's own."""
    rest = re.sub(r"\s*d_inner=\d+", "", r["skeleton"].partition(" but ")[2]).strip()
    return f" ({rest})" if rest else ""


def table(o):
    cost, reached = costs(o), abilities(o)
    contexts = sorted({m for places in cost.values() for _, m in places})
    heads = ["variant", "parameters", "rate", "bits per byte", "sd", "against", "difference, nats", "95 % interval", "p (Holm)",
             "verdict"]
    for kind in "segment", "decode":
        heads += [f"{kind}, us per token, M={m}" for m in contexts]
    heads += [f"state, KiB, M={contexts[-1]}", "abilities"]
    print("| " + " | ".join(heads) + " |")
    print("|---|---:|---:|---:|---:|---|---:|---|---:|---|" + "---:|" * (2 * len(contexts) + 1) + "---|")
    for r in verdicts(o):
        at_end = "*" if "at an end of the tried ones" in r["note"] else ""
        tested = r["diff_nats"] != ""
        cells = [r["contender"] + skeleton(r), r["parameters"], r["lr"] + at_end,
                 f"{float(r['test_nats']) / math.log(2):.3f}", f"{float(r['sd_nats']) / math.log(2):.3f}", r["control"],
                 r["diff_nats"], f"{r['ci95_low']} to {r['ci95_high']}" if tested else "", r["p_holm"], r["verdict"]]
        mine = cost.get(r["contender"], {})
        for kind in "segment", "decode":
            rows = [mine.get((kind, m)) for m in contexts]
            cells += [said(micros(row), row) for row in rows]
        state = kibibytes(mine.get(("decode", contexts[-1])))
        cells.append("" if state is None else number(state))
        cells.append(" ".join(reached[r["contender"]]) or "none" if r["contender"] in reached else "")
        print("| " + " | ".join(cells) + " |")


def main():
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    rows = os.path.join(here, "results", "reference", "leaderboard")
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--bench", default=os.path.join(here, "bench"))
    p.add_argument("--study", default=rows)
    p.add_argument("--sweep", default=rows)
    p.add_argument("--abilities", default=os.path.join(here, "results", "reference", "abilities"))
    table(p.parse_args())


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    main()
