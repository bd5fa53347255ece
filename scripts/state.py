#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""state.py [--bench FILE]: the bytes of the states of harness/studies/state.study.

Runs one decoded token of each contender and prints what the models keep of their context, memory.csv in
results/reference/abilities/state. A window of W keys keeps W rows."""
import argparse
import csv
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


def main():
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--bench", default=os.path.join(here, "bench"))
    o = p.parse_args()
    o.file = os.path.join(here, "harness", "studies", "state.study")
    measure(o)


if __name__ == "__main__":
    main()
