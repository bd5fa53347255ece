#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""claims.py [--bench FILE] [PAGE...]: is each difference on a page one of the tracked studies?

A difference is "+0.012 (-0.025 to +0.049, p 0.92)" in a sentence and "+0.012 | -0.025 to +0.049 |" in a table: it, its interval and p must
be those of one row that bench study prints from a study.csv below results/reference, rounded. "p 0.2 by itself" marks a comparison
that no study makes. Prints what has no row; exit code 1."""
import argparse
import csv
import glob
import io
import os
import re
import subprocess
import sys

NUMBER = r"([+-]\d\.\d{3,4})"
DIFFERENCE = re.compile(NUMBER + r"(?: (?:\||\() ?|, )" + NUMBER + " to " + NUMBER + r"(?:, p ([\d.]+)( by itself)?)?")


def rows(bench, folder):
    """(difference, low, high, p) of each comparison. The exit code is that of the study, some of whose trainings may have failed."""
    ran = subprocess.run([bench, "study", folder, "--format", "csv"], text=True, capture_output=True)
    if not ran.stdout:
        sys.exit(f"claims.py: {folder}: {ran.stderr}")
    for r in csv.DictReader(io.StringIO(ran.stdout)):
        difference = r.get("diff_nats") or r.get("gain")
        if difference:
            yield tuple(map(float, (difference, r["ci95_low"], r["ci95_high"], r["p_holm"])))


def agrees(text, x):
    """Is the number this text when it is rounded? bench study rounded it once before, to four places."""
    places = len((text or "").partition(".")[2])
    return not text or abs(float(text) - x) <= 0.51 * 10**-places + 5e-5 * (places == 3)


def main():
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    reference = os.path.join(here, "results", "reference")
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--bench", default=os.path.join(here, "bench"))
    p.add_argument("page", nargs="*", default=sorted(glob.glob(os.path.join(reference, "*.md"))))
    o = p.parse_args()
    known = [r for f in glob.glob(os.path.join(reference, "**", "study.csv"), recursive=True)
             for r in rows(o.bench, os.path.dirname(f))]
    seen = lost = 0
    for page in o.page:
        with open(page) as f:
            for n, line in enumerate(f, 1):
                for m in DIFFERENCE.finditer(line):
                    said = m.groups()[:4]
                    seen += 1
                    if not m[5] and not any(all(map(agrees, said, r)) for r in known):
                        lost += 1
                        print(f"{page}:{n}: no row has {m[0]}")
    print(f"{seen} differences, {lost} without a row")
    return lost > 0 or seen == 0


if __name__ == "__main__":
    sys.exit(main())
