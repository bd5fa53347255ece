#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""ranks.py BENCH FOLDER: trainings of 1, 2 and 3 ranks of MPI on this machine. Ends with
"N passed, N failed, N skipped".

The bound. Each element of a gradient is a sum of T = batch x seq terms, and of R of the ranks; in any order
it is within gamma_(T+R) sum |terms| of the exact one (harness/learn/grad_sum.c), so R ranks and one differ by at
most 2 gamma_(T+R) sum |terms|. How that grows over 50 steps depends on the model: a step of AdamW divides by the
gradient's own size. So the growth is taken from the same training, in one rank, on another backend, which adds the
same terms in another order too, within 2 gamma_T sum |terms|. The ratio of the two is (T+R)/T < 1.02 for T = 192;
the larger of some dozen differences of one kind may be several times that of another: 8. Where both backends are
one there is only what a loss itself is rounded by, 4 u ln 256 = 1.3e-6, u = 2^-24. What this must catch, a sequence
that is read twice or a mean over other tokens, changes a loss by more than 1e-3: no bound may exceed a tenth."""
import csv
import os
import shutil
import signal
import struct
import subprocess
import sys
import time

BENCH, FOLDER = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
ROUNDING = 1.3e-6
MOST = 1e-4
SIZE = ("--layers 2 --d-model 32 --heads 2 --seq 32 --mem 32 --batch 6 --lr 0.001 --lr-warmup 5 "
        "--threads 1 --pin none --eval-every 25 --progress none -q").split()
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
    return [float(row[name]) for row in rows(ckpt) for name in ("loss_nats", "valid_nats") if row[name]]


def weights(ckpt):
    """All tensors of a safetensors file, without its metadata."""
    with open(f"{FOLDER}/{ckpt}", "rb") as f:
        f.seek(struct.unpack("<Q", f.read(8))[0], 1)
        return f.read()


def difference(a, b):
    assert len(a) == len(b) > 0, f"{len(a)} and {len(b)} numbers"
    return max(abs(x - y) for x, y in zip(a, b))


def bound(variant, one):
    """For losses of this training, from that of another backend; `one`: the checkpoint of one rank."""
    train(1, variant, "other", "--backend", "ref")
    allowed = 8 * difference(losses(one), losses("other")) + ROUNDING
    assert allowed <= MOST, f"{variant}: a bound of {allowed:.2g} shows nothing"
    return allowed


def near(a, b, allowed, what):
    most = difference(a, b)
    print(f"{what}: losses differ by {most:.2g}, allowed {allowed:.2g}")
    assert most <= allowed, f"{what}: {a} and {b}"


def test_ranks_are_one_rank():
    for variant in VARIANTS:
        train(1, variant, "one")
        allowed = bound(variant, "one")
        for ranks in (2, 3):
            train(ranks, variant, "many")
            near(losses("one"), losses("many"), allowed, f"{variant}, {ranks} ranks")


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
        train(1, variant, "whole")
        allowed = bound(variant, "whole")
        train(3, variant, "part", "--stop-at", "25")
        for ranks in (2, 1):
            for end in ("", ".opt", ".best", ".train.csv"):
                shutil.copy(f"{FOLDER}/part{end}", f"{FOLDER}/on{end}")
            mpirun(ranks, "--ckpt", "on", "--resume", "--stop-at", "0", "--pin", "none", "--progress",
                   "none", "-q")
            near(losses("whole"), losses("on"), allowed, f"{variant}, 3 ranks, then {ranks}")


def test_refuses():
    what = ["--variant", "xl", "--ckpt", "r", "--steps", "2", "--force"]
    for words, code in (([*SIZE, "--batch", "5"], 2), ([*SIZE, "--dropout", "0.1"], 6),
                        ([*SIZE, "--pin", "0"], 2), ([*SIZE, "--corpus", "nowhere"], 7)):
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
        mpirun(2, "--ckpt", "k", "--resume", "--stop-at", str(before + 25), "--pin", "none", "--progress",
               "none", "-q")
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
