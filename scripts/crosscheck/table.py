#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes a table of `bench check --golden DIR --format csv` (standard input): for each model the
largest error on each backend, as a share of its limit."""

import csv
import sys

worst, backends = {}, []
for row in csv.DictReader(sys.stdin):
    if row["kind"] != "golden" or not row["limit"]:
        continue
    model = row["what"].split()[0]
    if row["backend"] not in backends:
        backends.append(row["backend"])
    share = float(row["error"]) / float(row["limit"])
    shares = worst.setdefault(model, {})
    shares[row["backend"]] = max(shares.get(row["backend"], 0), share)

print("| model | %s |" % " | ".join(backends))
print("|---|%s" % ("---:|" * len(backends)))
for model in sorted(worst):
    print("| %s | %s |" % (model, " | ".join("%.3f" % worst[model][b] for b in backends)))
