#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""cluster.py BENCH FOLDER: a real Slurm of two nodes on this machine (as root), and the scripts that
`bench slurm` prints on it. The rows that come back are those of one machine, although a task is killed
and queued again on the way. ReFrame runs contrib/reframe. Ends with "N passed, N failed, N skipped"."""
import csv
import ctypes
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

BENCH, FOLDER = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
HERE = os.path.dirname(os.path.abspath(__file__))
PR_SET_CHILD_SUBREAPER = 36
CONF = """ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock,cred_expire=5
CryptoType=crypto/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
SchedulerType=sched/builtin
SchedulerParameters=defer_batch
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
KillWait=1
MinJobAge=300
JobCompType=jobcomp/none
AccountingStorageType=accounting_storage/none
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=1
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=1
PartitionName=all Nodes=n[1-2] Default=YES MaxTime=10 State=UP
"""
TINY = ("--d-model 32 --heads 2 --threads 1 --pin none --warmup-ms 0 --block-ms 1 --target-ci 0.001 "
        "--no-check --max-time 0.6").split()
SWEEP = ["--variant", "xl,vanilla", "--backend", "ref", "--workload", "attn", "--seq", "4,8,12,16",
         "--mem", "0,8", "--ckpt", "none"] + TINY
STUDY = """variants = vanilla, xl
size = tiny: --layers 1 --d-model 16 --heads 2
corpus = copies: copy:lag=4,p=0.9,alphabet=8
rates = 0.01
seeds = 2
baseline-seeds = 2
steps = 400
train = --seq 32 --mem 8 --batch 2 --lr-warmup 5 --threads 1 --eval-every 50
eval = --seq 8 --mem 8 --bytes 256
"""


def run(*words, timeout=120, **more):
    """The standard output of a command that must end with 0."""
    r = subprocess.run(words, text=True, capture_output=True, timeout=timeout, **more)
    if r.returncode != 0:
        raise AssertionError(f"{' '.join(words)}: {r.returncode}\n{r.stdout}{r.stderr}")
    return r.stdout


def until(what, seconds, true):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = true()
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError(f"not within {seconds} s: {what}")


def rows(path):
    """Complete rows: one that is being written has no end of line yet."""
    try:
        with open(path, newline="") as f:
            return list(csv.DictReader(f.read().rpartition("\n")[0].splitlines()))
    except OSError:
        return []


def free_ports(n):
    held = [socket.socket() for _ in range(n)]
    for s in held:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in held]
    for s in held:
        s.close()
    return ports


class Cluster:
    """munged, slurmctld and two slurmd with files, ports and a key of their own."""

    def __init__(self, folder):
        self.folder, self.daemons = folder, []

    def open(self):
        folder = self.folder
        os.chmod(folder, 0o755)
        os.makedirs(f"{folder}/state")
        for node in ("n1", "n2"):
            os.makedirs(f"{folder}/spool.{node}")
        host = run("hostname", "-s").strip()
        with open(f"{folder}/slurm.conf", "w") as f:
            f.write(CONF.format(folder=folder, host=host, ports=free_ports(3)))
        os.environ["SLURM_CONF"] = f"{folder}/slurm.conf"
        with open(f"{folder}/munge.key", "wb") as f:
            f.write(os.urandom(1024))
        for name in ("munge.key", "."):
            shutil.chown(f"{folder}/{name}", "munge", "munge")
        os.chmod(f"{folder}/munge.key", 0o400)
        self.start("runuser", "-u", "munge", "--", "munged", "--foreground",
                   f"--key-file={folder}/munge.key", f"--socket={folder}/munge.sock",
                   f"--pid-file={folder}/munged.pid", f"--log-file={folder}/munged.log",
                   f"--seed-file={folder}/munged.seed")
        until("munged", 20, lambda: os.path.exists(f"{folder}/munge.sock"))
        self.start("slurmctld", "-D", "-c")
        for node in ("n1", "n2"):
            self.start("slurmd", "-D", "-N", node)
        until("idle nodes", 60, self.both_idle)

    def both_idle(self):
        r = subprocess.run(["sinfo", "-h", "-N", "-o", "%t"], text=True, capture_output=True)
        return r.stdout.split() == ["idle", "idle"]

    def start(self, *words):
        log = open(f"{self.folder}/daemons.log", "a")
        self.daemons.append(subprocess.Popen(words, stdout=log, stderr=log, stdin=subprocess.DEVNULL))

    def close(self):
        if os.path.exists(f"{self.folder}/slurm.conf"):
            subprocess.run(["scancel", "--full", "-u", "root"], capture_output=True, timeout=30)
        for p in reversed(self.daemons):
            p.terminate()
        time.sleep(1)
        # What the daemons left is a child of this process by now.
        for _ in range(3):
            for pid in children():
                os.kill(pid, signal.SIGKILL)
            time.sleep(0.2)


def children():
    me = os.getpid()
    with open(f"/proc/{me}/task/{me}/children") as f:
        return [int(word) for word in f.read().split()]


ENDED = {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL"}


def states(job):
    return set(run("squeue", "-h", "-t", "all", "-j", job, "-o", "%T").split())


def submit_and_requeue(folder, began):
    """Submit job.sh, queue its first task again once `began` is true, wait for the end of all."""
    job = run("sbatch", "--parsable", "job.sh", cwd=folder).strip()
    kept = until("the first task has results", 60, began)
    run("scontrol", "requeue", f"{job}_1")
    until("the queued task started again", 90,
          lambda: "Restarts=1" in run("scontrol", "show", "job", f"{job}_1"))
    try:
        until("the end of all tasks", 200, lambda: states(job) <= ENDED)
        assert states(job) == {"COMPLETED"}, "a task failed"
        until("the report", 60, lambda: os.path.exists(f"{folder}/results/report.html"))
    except AssertionError as e:
        logs = [name for name in sorted(os.listdir(folder)) if name.endswith(".log")]
        said = "".join(open(f"{folder}/{name}").read()[-2000:] for name in logs)
        raise AssertionError(f"{e}\n{run('squeue', '-t', 'all')}{said}") from e
    return kept


def same(whole, merged, columns):
    def of(table):
        return sorted([row[c] for c in columns] for row in table)
    assert len(whole) > 0
    assert of(whole) == of(merged), f"{of(whole)}\n{of(merged)}"


def test_sweep(folder):
    shard = f"{folder}/results/shards/1/latest/latency.csv"
    run(BENCH, *SWEEP[:-1], "0.003", "--out", "whole", "-q", cwd=folder)
    script = run(BENCH, "slurm", *SWEEP, "--nodes", "2", "--progress", "none", cwd=folder)
    with open(f"{folder}/job.sh", "w") as f:
        f.write(script)
    kept = submit_and_requeue(folder, lambda: rows(shard)[:1])
    merged = rows(f"{folder}/results/latest/latency.csv")
    same(rows(f"{folder}/whole/latest/latency.csv"), merged, ["case_id", "status", "repro"])
    again = [row for row in merged if row["case_id"] == kept[0]["case_id"]]
    assert [row["median_ns"] for row in again] == [kept[0]["median_ns"]], "measured again"


def test_study(folder):
    with open(f"{folder}/tiny.study", "w") as f:
        f.write(STUDY)
    run(BENCH, "study", "tiny.study", "--backend", "ref", "--out", "whole", "-q", cwd=folder)
    script = run(BENCH, "slurm", "tiny.study", "--backend", "ref", "--nodes", "2", "--progress",
                 "none", cwd=folder)
    with open(f"{folder}/job.sh", "w") as f:
        f.write(script)
    jobs = f"{folder}/results/shards/1/latest/jobs"
    submit_and_requeue(folder, lambda: os.path.isdir(jobs) and
                       any(name.endswith(".opt") for name in os.listdir(jobs)))
    same(rows(f"{folder}/whole/latest/study.csv"), rows(f"{folder}/results/latest/study.csv"),
         ["case_id", "status", "role", "variant", "seed", "lr", "steps", "train_nats", "valid_nats",
          "test_nats"])


def test_reframe(folder):
    config = os.path.join(HERE, "..", "..", "contrib", "reframe", "bench_test.py")
    run("reframe", "--prefix", folder, "--report-file", f"{folder}/report.json", "-c", config, "-r",
        cwd=folder, timeout=600, env={**os.environ, "BENCH": BENCH, "HOME": folder})
    with open(f"{folder}/report.json") as f:
        cases = [case for of_run in json.load(f)["runs"] for case in of_run["testcases"]]
    assert sorted((c["variant"], c["mem"]) for c in cases) == [("rope", 0), ("rope", 128), ("xl", 0), ("xl", 128)], cases
    for c in cases:
        assert c["result"] == "pass" and len(c["perfvalues"]) == 2, c
        assert all(value[0] > 0 for value in c["perfvalues"].values()), c


def last_line(path):
    try:
        with open(path) as f:
            return (f.read().strip().splitlines() or [""])[-1]
    except OSError:
        return ""


def main():
    if os.geteuid() != 0:
        print("skipped slurm: its daemons run as root here\n0 passed, 0 failed, 3 skipped")
        return 0
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    shutil.rmtree(FOLDER, ignore_errors=True)
    os.makedirs(FOLDER)
    for name in [n for n in os.environ if n.startswith(("BENCH_", "SLURM_", "SBATCH_"))]:
        del os.environ[name]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    passed = failed = skipped = 0
    # Not in FOLDER: the user munge has to reach its socket.
    own = tempfile.mkdtemp(prefix="bench_slurm_")
    cluster = Cluster(own)
    try:
        why = None
        try:
            cluster.open()
        except (AssertionError, OSError) as e:
            why = f"{e}: {last_line(os.path.join(own, 'daemons.log'))}"
        for test in [test_sweep, test_study, test_reframe]:
            lacks = f"no Slurm can run here: {why}" if why else None
            if test is test_reframe:
                lacks = None if shutil.which("reframe") else "no reframe here: pip install reframe-hpc"
            if lacks:
                print(f"skipped {test.__name__}: {lacks}")
                skipped += 1
                continue
            folder = os.path.join(FOLDER, test.__name__)
            os.makedirs(folder)
            try:
                test(folder)
                passed += 1
            except (AssertionError, subprocess.TimeoutExpired) as e:
                print(f"failed {test.__name__}\n    {e}")
                failed += 1
    finally:
        cluster.close()
        shutil.rmtree(own, ignore_errors=True)
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
