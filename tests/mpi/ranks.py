#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""ranks.py BENCH FOLDER: trainings of 1, 2 and 3 ranks of MPI on this machine. Ends with
"N passed, N failed, N skipped".

The bound. In one step each element of a gradient is a sum of T = batch x seq terms, and of R of the ranks; in any
order it is within gamma_(T+R) sum |terms| of the exact one (harness/learn/train/grad_sum.c), so what R ranks add to the
difference from one rank is at most 2 gamma_(T+R) sum |terms|. To first order in u = 2^-24, d_50 = sum_s P_s e_s: e_s is
what step s added, P_s the product of the Jacobians of the steps after it. No useful bound of P_s is known beforehand (a
step of AdamW divides by the gradient's own size), so it is measured: the same training in one rank, every weight
moved by one ulp, up or down, after the first step. From there on each product and each sum is rounded anew,
within 2 gamma_T sum |terms|, and goes through the same P_s. So a loss of R ranks and one of a moved training differ
from that of one rank by sums of many small independent errors of the same size, (T+R)/T < 1.02 apart: normal, of
mean 0 and one variance, for each loss its own. Let s be the root of the mean square of K = 8 moved differences; then
(difference of R ranks) / s has Student's t with 8 degrees of freedom, and P(|t| > 8) = 4.4e-5; what all have in
common, the error of the one rank itself, makes the ratio smaller only. For the 64 losses that are compared here one
is wrongly out of bound with probability 0.3 % on a new machine; on the same machine the answer is always the same.

That is right if no choice flips. Switch chooses an expert by comparing: a row within rounding of two experts goes
elsewhere and changes a loss by far more than s. If it happens in a moved training, s says so; no bound may exceed
MOST, a tenth of the least change that these tests are for (a sequence that is read twice, or a mean over other
tokens, changes a loss by more than 1e-3)."""
import array
import csv
import functools
import math
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import time

BENCH, FOLDER = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
MOVED, OUT = 8, 8  # trainings; times their root mean square
MOST = 1e-4
SIZE = ("--layers 2 --d-model 32 --heads 2 --seq 32 --mem 32 --batch 6 --lr 0.001 --lr-warmup 5 "
        "--threads 1 --pin none --eval-every 25 --corpus copy:lag=192,p=0.9,alphabet=16 --progress none -q").split()
VARIANTS = ["xl", "gtrxl", "llama", "gla", "switch"]


def mpirun(ranks, *words, code=0, timeout=120):
    line = ["mpirun", "-n", str(ranks), "--oversubscribe", "--allow-run-as-root", "--bind-to", "none",
            BENCH, "train", *words]
    r = subprocess.run(line, text=True, capture_output=True, timeout=timeout, cwd=FOLDER)
    if r.returncode != code:
        raise AssertionError(f"{' '.join(line)}: {r.returncode}, not {code}\n{r.stdout}{r.stderr}")
    return r


def train(ranks, variant, ckpt, *more, steps=50):
    return mpirun(ranks, "--variant", variant, "--ckpt", ckpt, "--steps", str(steps), "--force", *SIZE,
                  *more)


def rows(ckpt):
    with open(f"{FOLDER}/{ckpt}.train.csv", newline="") as f:
        return list(csv.DictReader(f))


def losses(ckpt):
    return [float(row[name]) for row in rows(ckpt) for name in ("loss_nats", "valid_nats")
            if row[name] and int(row["step"]) >= 25]


def weights(ckpt):
    """All tensors of a safetensors file, without its metadata."""
    with open(f"{FOLDER}/{ckpt}", "rb") as f:
        f.seek(struct.unpack("<Q", f.read(8))[0], 1)
        return f.read()


def differences(a, b):
    assert len(a) == len(b) > 0, f"{len(a)} and {len(b)} numbers"
    return [abs(x - y) for x, y in zip(a, b)]


def move(ckpt, seed):
    """Every weight by one unit in its last place, up or down. The optimiser's file no longer says whose it is."""
    draw = random.Random(seed)
    with open(f"{FOLDER}/{ckpt}", "r+b") as f:
        start = 8 + struct.unpack("<Q", f.read(8))[0]
        f.seek(start)
        words = array.array("I", f.read())
        for i, word in enumerate(words):
            if word & 0x7FFFFFFF:  # not zero: its sign and size stay
                words[i] = word + draw.choice((-1, 1))
        f.seek(start)
        f.write(words.tobytes())
    with open(f"{FOLDER}/{ckpt}.opt", "r+b") as f:
        whole = f.read()
        assert whole.count(b'"weights":') == 1
        f.seek(whole.index(b'"weights":'))
        f.write(b'"was_of_":')


def copy(ckpt, to):
    for end in ("", ".opt", ".best", ".train.csv"):
        shutil.copy(f"{FOLDER}/{ckpt}{end}", f"{FOLDER}/{to}{end}")


def go_on(ranks, ckpt, end=0):
    mpirun(ranks, "--ckpt", ckpt, "--resume", "--stop-at", str(end), "--pin", "none", "--progress", "none", "-q")


@functools.cache
def bounds(variant, *more):
    """For each loss of the training of one rank that is in "one"."""
    train(1, variant, "first", "--stop-at", "1", *more)
    copy("first", "still")  # a row is the mean since the step before which the run began
    go_on(1, "still")
    assert weights("one") == weights("still"), variant
    squares = []
    for seed in range(MOVED):
        copy("first", "moved")
        move("moved", seed)
        go_on(1, "moved")
        squares.append([d * d for d in differences(losses("still"), losses("moved"))])
    allowed = [OUT * math.sqrt(sum(column) / MOVED) for column in zip(*squares)]
    assert min(allowed) > 0, f"{variant}: moved weights changed nothing"
    assert max(allowed) <= MOST, f"{variant}: a bound of {max(allowed):.2g} shows nothing"
    return allowed


def near(a, b, allowed, what):
    found = differences(a, b)
    out = [d / limit for d, limit in zip(found, allowed)]
    print(f"{what}: losses differ by {max(found):.2g}, at most {max(out):.2f} of their bounds, "
          f"{min(allowed):.2g} to {max(allowed):.2g}")
    assert max(out) <= 1, f"{what}: {a} and {b}"


def test_ranks_are_one_rank():
    for variant in VARIANTS:
        train(1, variant, "one")
        allowed = bounds(variant)
        for ranks in (2, 3):
            train(ranks, variant, "many")
            near(losses("one"), losses("many"), allowed, f"{variant}, {ranks} ranks")


def test_dropout_is_that_of_the_whole_batch():
    for variant in ("xl", "llama"):
        train(1, variant, "one", "--dropout", "0.2")
        train(3, variant, "many", "--dropout", "0.2")
        near(losses("one"), losses("many"), bounds(variant, "--dropout", "0.2"), f"{variant}, dropout, 3 ranks")


def test_two_runs_are_equal_to_the_bit():
    for ranks in (2, 3):
        train(ranks, "xl", "a")
        train(ranks, "xl", "b")
        assert weights("a") == weights("b"), f"{ranks} ranks"


def test_columns():
    train(2, "xl", "c")
    row = rows("c")[-1]
    assert (row["ranks"], row["nodes"]) == ("2", "1"), row
    assert float(row["comm_ns"]) > 0 and 0 <= float(row["overlap_pct"]) <= 100, row
    n = len(weights("c"))
    assert n <= float(row["grad_bytes"]) < 1.5 * n, f"{row['grad_bytes']} of {n} bytes of weights"
    train(1, "xl", "c")
    row = rows("c")[-1]
    assert (row["ranks"], row["comm_ns"], row["grad_bytes"]) == ("1", "", ""), row


def test_model_of_efficiency():
    train(1, "xl", "e")
    line = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts", "efficiency.py"),
            f"{FOLDER}/e", "--latency", "1000", "--bandwidth", "1", "--backward", "0", "--ranks", "4"]
    r = subprocess.run(line, text=True, capture_output=True, check=True)
    got = list(csv.DictReader(r.stdout.splitlines()))
    assert [row["ranks"] for row in got] == ["1", "2", "4"] and float(got[0]["efficiency"]) == 1
    for row in got[1:]:  # nothing is hidden: t / (t + c)
        n, t, many = float(row["weight_bytes"]), float(row["step_s"]), int(row["ranks"])
        c = 2 * (many - 1) * (1e-3 + n / (many * 1e9))
        assert abs(float(row["sum_s"]) / c - 1) < 1e-4 and abs(float(row["efficiency"]) * (t + c) / t - 1) < 1e-4


def test_goes_on_with_other_ranks():
    for variant in ("xl", "gla"):
        train(1, variant, "one")
        allowed = bounds(variant)
        train(3, variant, "part", "--stop-at", "25")
        for ranks in (2, 1):
            copy("part", "on")
            go_on(ranks, "on")
            near(losses("one"), losses("on"), allowed, f"{variant}, 3 ranks, then {ranks}")


def test_refuses():
    what = [*SIZE, "--ckpt", "r", "--steps", "2", "--force", "--variant"]
    for words, code in ((["xl", "--batch", "5"], 2), (["switch", "--dropout", "0.1"], 6), (["memformer"], 6),
                        (["xl", "--pin", "0"], 2), (["xl", "--corpus", "nowhere"], 7)):
        r = mpirun(2, *what, *words, code=code)
        assert r.stderr.count("bench: ") == 1, f"said by one: {r.stderr}"


def bench_pids(parent):
    """The ranks below a mpirun."""
    found, todo = [], [parent]
    while todo:
        pid = todo.pop()
        try:
            with open(f"/proc/{pid}/task/{pid}/children") as f:
                todo += [int(word) for word in f.read().split()]
            if os.readlink(f"/proc/{pid}/exe") == os.path.realpath(BENCH):
                found.append(pid)
        except OSError:
            pass
    return sorted(found)


def runs(pid):
    """Not ended, nor waiting to be reaped."""
    try:
        return os.readlink(f"/proc/{pid}/exe") == os.path.realpath(BENCH)
    except OSError:
        return False


def test_a_rank_is_killed():
    line = ["mpirun", "-n", "3", "--oversubscribe", "--allow-run-as-root", "--bind-to", "none", BENCH,
            "train", "--variant", "xl", "--ckpt", "k", "--steps", "100000", "--force", *SIZE]
    for victim in (0, 2):
        p = subprocess.Popen(line, cwd=FOLDER, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            for name in ("k", "k.opt"):
                if os.path.exists(f"{FOLDER}/{name}"):
                    os.remove(f"{FOLDER}/{name}")
            end = time.monotonic() + 60
            while not os.path.exists(f"{FOLDER}/k.opt") and time.monotonic() < end:
                time.sleep(0.05)
            pids = bench_pids(p.pid)
            assert len(pids) == 3, pids
            os.kill(pids[victim], signal.SIGKILL)
            assert p.wait(60) != 0
            end = time.monotonic() + 20
            while any(map(runs, pids)) and time.monotonic() < end:
                time.sleep(0.1)
            assert not any(map(runs, pids)), "ranks are left"
        finally:
            p.kill()
        before = int(rows("k")[-1]["step"])
        assert before >= 25, before
        go_on(2, "k", before + 25)
        assert int(rows("k")[-1]["step"]) == before + 25


def test_without_mpi():
    other = os.path.join(os.path.dirname(os.path.dirname(BENCH)), "release", "bench")
    if not os.path.exists(other):
        return
    said = subprocess.run(["nm", "-D", other], text=True, capture_output=True).stdout
    assert " MPI_" not in said
    assert "MPI" not in subprocess.run([other, "--version"], text=True, capture_output=True).stdout
    assert "MPI" in subprocess.run([BENCH, "--version"], text=True, capture_output=True).stdout
    r = subprocess.run([other, "train", "--variant", "xl", "--ckpt", "x"], text=True, cwd=FOLDER,
                       capture_output=True, env={**os.environ, "OMPI_COMM_WORLD_SIZE": "2"})
    assert r.returncode == 6 and "MPI=1" in r.stderr, r.stderr


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    os.makedirs(FOLDER)
    for name in [n for n in os.environ if n.startswith(("BENCH_", "OMPI_", "PMI", "SLURM_"))]:
        del os.environ[name]
    os.environ["OMP_WAIT_POLICY"] = "passive"
    os.environ["OMPI_MCA_mpi_yield_when_idle"] = "1"
    only = sys.argv[3:]
    tests = [f for name, f in sorted(globals().items()) if name.startswith("test_")
             and (not only or name in only)]
    failed = 0
    for test in tests:
        try:
            test()
        except (AssertionError, subprocess.TimeoutExpired, OSError) as e:
            print(f"failed {test.__name__}\n    {e}")
            failed += 1
    print(f"{len(tests) - failed} passed, {failed} failed, 0 skipped")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
