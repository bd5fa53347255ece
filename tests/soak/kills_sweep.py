#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Kills of sweeps at random moments: kills_sweep.py [--kills N] [--seed N] [--bench FILE].

Starts a sweep of 24 cases, strikes it or a child of it after a random time with a random signal,
resumes it, and so on until it ends by itself. Then each case has exactly one row that is ok, with its
memory row and its samples, and every row that was final before a strike is there byte by byte. The last
line counts; the exit code is 1 if anything was not so. Not part of the suites: it takes minutes, and no
two machines kill at the same moment.
"""
import argparse
import collections
import csv
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

CASES = 24
WORDS = ("--variant shaw,xl --backend ref,avx2 --workload attn --seq 4..128 --mem 0 --d-model 32 "
         "--heads 2 --threads 1 --max-time 0.02 --target-ci 0 --warmup-ms 0 --block-ms 1 --ckpt none "
         "--raw csv --progress none -q --out r").split()
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
# Exit codes of a program that was struck: it, a child of it, or it stopped as asked, or ended before.
STRUCK = (-signal.SIGKILL, -signal.SIGTERM, -signal.SIGINT, 0, 1, 130, 143)
TRIED_AGAIN = ("interrupted", "failed", "timeout")


class Wrong(Exception):
    pass


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
            return [int(child) for child in f.read().split()]
    except OSError:
        return []


def strike(words, rng, longest_s):
    """Run bench and strike it or one of its children. What was done, exit code, stderr."""
    with tempfile.TemporaryFile("w+") as said:
        p = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=said)
        time.sleep(rng.uniform(0, longest_s))
        number = rng.choice(SIGNALS)
        target = p.pid if rng.random() < 0.6 else rng.choice(children(p.pid) or [p.pid])
        done = None
        if p.poll() is None:
            done = f"{number.name} to the {'program' if target == p.pid else 'child'}"
            try:
                os.kill(target, number)
            except ProcessLookupError:
                done = None
        code = p.wait(timeout=120)
        said.seek(0)
        return done, code, said.read()


# ---- the tables ---------------------------------------------------------------------------------

def run_folder():
    """The folder of the sweep: there may be others, of strikes before its tables were there."""
    return os.path.realpath("r/latest") if os.path.exists("r/latest") else None


def whole_lines(name):
    """The lines of a table that are whole: only the last may be torn."""
    with open(os.path.join(run_folder(), name), "rb") as f:
        return f.read().split(b"\n")[:-1]


def rows(name):
    lines = whole_lines(name)
    return list(csv.DictReader(line.decode() for line in lines)), lines[1:]


def final_rows():
    """The rows of latency.csv that a resumed run must keep, as bytes."""
    parsed, lines = rows("latency.csv")
    return [line for row, line in zip(parsed, lines) if row["status"] not in TRIED_AGAIN]


def expect_kept(kept):
    lines = collections.Counter(whole_lines("latency.csv"))
    lost = collections.Counter(kept) - lines
    if lost:
        raise Wrong(f"{sum(lost.values())} rows are lost or changed")


def expect_complete():
    parsed, _ = rows("latency.csv")
    final = collections.Counter(row["case_id"] for row in parsed if row["status"] not in TRIED_AGAIN)
    wrong = [row["status"] for row in parsed if row["status"] not in TRIED_AGAIN + ("ok",)]
    if wrong:
        raise Wrong(f"rows are {' '.join(sorted(set(wrong)))}")
    if len(final) != CASES or set(final.values()) != {1}:
        raise Wrong(f"{len(final)} of {CASES} cases, {sum(final.values())} rows")
    memory = {row["case_id"] for row in rows("memory.csv")[0]}
    taken = collections.Counter()
    for row in rows("samples.csv")[0]:
        taken[row["case_id"]] = int(row["sample"]) + 1 # a repeated case begins again at 0
    for row in parsed:
        if row["status"] != "ok":
            continue
        if row["case_id"] not in memory:
            raise Wrong(f"case {row['case_id']} has no memory row")
        if taken[row["case_id"]] != int(row["samples"]):
            raise Wrong(f"case {row['case_id']}: {taken[row['case_id']]} samples, not {row['samples']}")
    left = set(os.listdir(run_folder())) - {"latency.csv", "memory.csv", "perplexity.csv", "env.csv",
                                            "samples.csv", "run.json"}
    if left:
        raise Wrong(f"left: {' '.join(sorted(left))}")


# ---- one sweep ----------------------------------------------------------------------------------

def one_sweep(bench, rng, longest_s, budget):
    """One sweep, struck at most `budget` times. The strikes; Wrong if it is not as it should be."""
    strikes, kept = [], []
    try:
        while True:
            words = [bench, *WORDS] + (["--resume"] if run_folder() else [])
            if len(strikes) < budget:
                done, code, said = strike(words, rng, longest_s)
                strikes += [done] if done else []
                if code not in STRUCK or (code != 0 and not done):
                    raise Wrong(f"exit code {code}: {said}")
            else:
                p = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
                code = p.returncode
                if code != 0:
                    raise Wrong(f"exit code {code}: {p.stderr}")
            if run_folder():
                expect_kept(kept)
                kept = final_rows()
            if code == 0:
                break
        expect_complete()
    except Wrong as why:
        return strikes, why
    return strikes, None


def sweep(args, rng):
    kills, equal = 0, 0
    start = time.monotonic()
    subprocess.run([args.bench, *WORDS], check=True, capture_output=True)
    longest_s = time.monotonic() - start
    while kills < args.kills:
        shutil.rmtree("r")
        os.mkdir("r")
        strikes, why = one_sweep(args.bench, rng, longest_s / 2, args.kills - kills)
        kills += len(strikes)
        equal += 0 if why else len(strikes)
        if why:
            print(f"{', '.join(strikes)}: {why}", flush=True)
    return kills, equal


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--bench", default="build/release/bench")
    args = parser.parse_args()
    args.bench = os.path.abspath(args.bench)
    home, folder = os.getcwd(), tempfile.mkdtemp(prefix="bench_kills_")
    os.chdir(folder)
    try:
        kills, equal = sweep(args, random.Random(args.seed))
    finally:
        os.chdir(home)
        shutil.rmtree(folder)
    print(f"{kills} kills, {equal} resumed equal, {kills - equal} not")
    return 0 if kills == equal else 1


if __name__ == "__main__":
    sys.exit(main())
