#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Kills at random moments: kills.py sweep|train [--kills N] [--seed N] [--bench FILE].

Starts bench, kills it or its child after a random time with a random signal, starts it again where it
left off, and so on until it ends by itself; then compares what it wrote with a run that nothing
disturbed. The last line counts; the exit code is 1 if anything was not equal. Not part of the suites:
it takes minutes, and no two machines kill at the same moment.
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

SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
# Exit codes of a program that was struck: it, its child, or it stopped as asked, or ended before.
STRUCK = (-signal.SIGKILL, -signal.SIGTERM, -signal.SIGINT, 0, 1, 130, 143)


class Wrong(Exception):
    pass


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
            return [int(child) for child in f.read().split()]
    except OSError:
        return []


def strike(words, rng, longest_s):
    """Run bench, strike it or a child of it at a random moment. What was done, exit code, stderr."""
    # Its output goes to a file: a child that outlives it must not keep us waiting.
    with tempfile.TemporaryFile("w+") as said:
        p = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=said)
        time.sleep(rng.uniform(0, longest_s))
        number = rng.choice(SIGNALS)
        target = p.pid if rng.random() < 0.5 else rng.choice(children(p.pid) or [p.pid])
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


# ---- trainings ----------------------------------------------------------------------------------

TRAININGS = (
    "--variant xl --dropout 0.1",
    "--variant compressive",
    "--variant gtrxl",
    "--variant vanilla",
)


def train_words(bench, more):
    return [bench, *("train --backend ref --threads 1 --pin none --seq 8 --mem 8 --batch 2 --layers 2 "
                     "--d-model 16 --heads 2 --corpus text --lr-warmup 20 --steps 300 --eval-every 5 "
                     "--progress none --ckpt m ").split(), *more.split()]


def steps_of(path):
    with open(path, "rb") as f:
        data = f.read()
    if not data.endswith(b"\n"):
        raise Wrong("the last line of the curve is torn")
    rows = list(csv.DictReader(data.decode().splitlines()))
    return [int(row["step"]) for row in rows]


def read(path):
    with open(path, "rb") as f:
        return f.read()


def one_training(bench, more, rng, longest_s, want, budget):
    """One training, struck at most `budget` times. The strikes; Wrong if it is not as it should be."""
    strikes = []
    try:
        while True:
            words = train_words(bench, more) + (["--resume"] if os.path.exists("m") else [])
            if len(strikes) < budget:
                done, code, said = strike(words, rng, longest_s)
                strikes += [done] if done else []
                if code not in STRUCK or (code != 0 and not done):
                    raise Wrong(f"exit code {code}: {said}")
                if code != 0:
                    continue
            else:
                p = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
                if p.returncode != 0:
                    raise Wrong(f"exit code {p.returncode}: {p.stderr}")
            break
        if read("m") != want:
            raise Wrong("other weights")
        steps = steps_of("m.train.csv")
        if any(a >= b for a, b in zip(steps, steps[1:])):
            raise Wrong(f"the steps of the curve are {steps}")
        left = set(os.listdir()) - {"text", "m", "m.opt", "m.best", "m.train.csv"}
        if left:
            raise Wrong(f"left: {' '.join(sorted(left))}")
    except Wrong as why:
        return strikes, why
    return strikes, None


def clear():
    for name in os.listdir():
        if name != "text":
            os.remove(name)


def train(args, rng):
    kills, equal = 0, 0
    with open("text", "wb") as f:
        f.write(bytes(97 + (i * i + i // 7) % 5 for i in range(2000)))
    whole = {}
    for more in TRAININGS:
        clear()
        start = time.monotonic()
        subprocess.run(train_words(args.bench, more), check=True, capture_output=True)
        whole[more] = time.monotonic() - start, read("m")
    while kills < args.kills:
        more = rng.choice(TRAININGS)
        took, want = whole[more]
        clear()
        strikes, why = one_training(args.bench, more, rng, took / 2, want, args.kills - kills)
        kills += len(strikes)
        equal += 0 if why else len(strikes)
        if why:
            print(f"{more}: {', '.join(strikes)}: {why}", flush=True)
    return kills, equal


# ---- sweeps: the tables -------------------------------------------------------------------------

CASES = 24
WORDS = ("--variant shaw,xl --backend ref,avx2 --workload attn --seq 4..128 --mem 0 --d-model 32 "
         "--heads 2 --threads 1 --max-time 0.02 --target-ci 0 --warmup-ms 0 --block-ms 1 --ckpt none "
         "--raw csv --progress none -q --out r").split()
TRIED_AGAIN = ("interrupted", "failed", "timeout")

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


# ---- command line -------------------------------------------------------------------------------

def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=sorted(WHAT))
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--bench", default="build/release/bench")
    args = parser.parse_args()
    args.bench = os.path.abspath(args.bench)
    home = os.getcwd()
    folder = tempfile.mkdtemp(prefix="bench_kills_")
    os.chdir(folder)
    try:
        kills, equal = WHAT[args.what](args, random.Random(args.seed))
    finally:
        os.chdir(home)
        shutil.rmtree(folder)
    print(f"{kills} kills, {equal} resumed equal, {kills - equal} not")
    return 0 if kills == equal else 1


WHAT = {"sweep": sweep, "train": train}

if __name__ == "__main__":
    sys.exit(main())
