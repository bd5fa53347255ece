#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""state.py [--bench FILE] measure|points: recall against the bytes of a state, from harness/studies/state.study.

measure runs one decoded token of each contender and prints what the models keep of their context, memory.csv in
results/reference/abilities/state. points prints for each contender its bytes and how much of the way from blind to
the floor it went, mean, least and most of its seeds, from memory.csv and study.csv there: the points of state.gp.
A window of W keys keeps W rows."""
import argparse
import csv
import io
import os
import re
import subprocess
import sys
import tempfile

CONTEXT = 44


def contenders(study):
    """{contender: its options}."""
    with open(study) as f:
        return dict(re.findall(r"^variant\s*=\s*(\S+?): (.*)$", f.read(), re.M))


def measure(o):
    found = []
    for name, options in contenders(o.file).items():
        window = re.search(r"--mask window=(\d+)", options)
        mem = window[1] if window else str(CONTEXT)
        with tempfile.TemporaryDirectory() as out:
            subprocess.run([o.bench, *options.split(), "--layers", "2", "--d-model", "64", "--workload", "decode", "--mem", mem,
                            "--threads", "1", "--max-time", "0.01", "--out", out, "--quiet"], check=True, stdout=subprocess.DEVNULL)
            with open(os.path.join(out, "latest", "memory.csv"), newline="") as f:
                found.append((name, mem, next(csv.DictReader(f))["memory_state_bytes"]))
    w = csv.writer(sys.stdout, lineterminator="\n")
    w.writerow(("contender", "mem_tokens", "memory_state_bytes"))
    w.writerows(found)


def points(o):
    with open(os.path.join(o.rows, "memory.csv"), newline="") as f:
        size = {r["contender"]: float(r["memory_state_bytes"]) for r in csv.DictReader(f)}
    out = subprocess.run([o.bench, "study", o.rows, "--format", "csv"], check=True, text=True, capture_output=True).stdout
    print("contender,series,kib,way,least,most")
    for r in csv.DictReader(io.StringIO(out)):
        series = re.sub(r"-?\d+$", "", r["contender"])
        print(f"{r['contender']},{series},{size[r['contender']] / 1024:.4g},{r['way']},{r['way_least']},{r['way_most']}")


def main():
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--bench", default=os.path.join(here, "bench"))
    p.add_argument("what", choices=("measure", "points"))
    o = p.parse_args()
    o.file = os.path.join(here, "harness", "studies", "state.study")
    o.rows = os.path.join(here, "results", "reference", "abilities", "state")
    {"measure": measure, "points": points}[o.what](o)


if __name__ == "__main__":
    main()
