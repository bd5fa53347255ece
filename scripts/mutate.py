#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Plant the mistakes of tests/mutants/*.txt, one at a time, and see which tests fail.

A mutant is a block of lines, blocks are separated by empty lines, lines that begin with # are comments:

    mutant NAME
    file   SOURCE
    old    TEXT       must occur exactly once; several `old` lines are consecutive lines of the source
    new    TEXT       likewise; none deletes the text
    test   SUITE...   or SUITE/TEST; run in this order up to the first that fails
    equivalent WHY    in place of `test`: no result can differ, so it is not planted

Work is done in build/mutate, a copy of the tree that keeps its objects, never in the tree. Verdicts are
kept there, too: a mutant is judged again only if itself, its source or the tests that judge it changed.
"""
import argparse
import glob
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
WORK = os.path.join(TOP, "build", "mutate")
TREE = os.path.join(WORK, "tree")
RESULTS = os.path.join(WORK, "results.json")
SOUND = os.path.join(WORK, "sound.json")
PAGE = os.path.join(WORK, "mutants.md")
CC = os.environ.get("CC", "gcc")


def stop(text):
    sys.exit(f"mutate: {text}")


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def write(path, text):
    """The old or the new text, whenever it is stopped."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + ".new", "w", encoding="utf-8") as f:
        f.write(text)
    os.replace(path + ".new", path)


# ---- the list ----------------------------------------------------------------------------------


class Mutant:
    def __init__(self, where):
        self.where = where
        self.name = self.file = self.equivalent = ""
        self.old, self.new, self.tests = [], [], []

    def add(self, key, value):
        if key == "mutant":
            self.name = value.strip()
        elif key == "file":
            self.file = value.strip()
        elif key == "old":
            self.old.append(value)
        elif key == "new":
            self.new.append(value)
        elif key == "test":
            self.tests += value.split()
        elif key == "equivalent":
            self.equivalent = value.strip()
        else:
            stop(f"{self.where}: unknown word {key}  -> see the head of {__file__}")

    def check(self):
        if not (self.name and self.file and self.old) or bool(self.tests) == bool(self.equivalent):
            stop(f"{self.where}: {self.name or 'a mutant'} is incomplete  -> see the head of {__file__}")

    def planted(self):
        """The source with the mistake, or None if the old text does not occur exactly once."""
        path = os.path.join(TOP, self.file)
        text = read(path) if os.path.exists(path) else ""
        old = "\n".join(self.old)
        return text.replace(old, "\n".join(self.new)) if text.count(old) == 1 else None


def all_mutants():
    found = []
    for path in sorted(glob.glob(os.path.join(TOP, "tests", "mutants", "*.txt"))):
        mutant = None
        for number, line in enumerate(read(path).split("\n"), 1):
            key, _, value = line.partition(" ")
            if line.startswith("#"):
                continue
            if not key:
                mutant = None
                continue
            if mutant is None:
                mutant = Mutant(f"{os.path.relpath(path, TOP)}:{number}")
                found.append(mutant)
            mutant.add(key, value.lstrip(" ") if key != "old" and key != "new" else value)
    for mutant in found:
        mutant.check()
    names = [m.name for m in found]
    for name in names:
        if names.count(name) > 1:
            stop(f"two mutants are called {name}  -> rename one")
    return found


def test_sources():
    """Suite -> the files that define tests of it."""
    head = re.compile(r"^(?:ParameterizedTest|Test|TEST_EACH|EACH_FORM|EACH_VARIANT)\((?:[^,()]*\*\w+, *)?(\w+), *\w+", re.M)
    found = {}
    for path in glob.glob(os.path.join(TOP, "tests", "**", "*.c"), recursive=True):
        for suite in set(head.findall(read(path))):
            found.setdefault(suite, []).append(path)
    return found


def key_of(mutant, sources):
    """Changes when the verdict may: with the mutant, its source, or what judges it."""
    paths = [os.path.join(TOP, mutant.file)]
    for test in mutant.tests:
        suite = test.split("/")[0]
        if suite not in sources:
            stop(f"{mutant.where}: there is no suite {suite}")
        paths += sources[suite]
    digest = hashlib.sha256(repr((mutant.old, mutant.new, mutant.tests)).encode())
    support = glob.glob(os.path.join(TOP, "tests", "support", "**", "*.[ch]"), recursive=True)
    for path in sorted(set(paths)) + sorted(support):
        digest.update(read(path).encode() if os.path.exists(path) else b"")
    return digest.hexdigest()


# ---- the copy ----------------------------------------------------------------------------------


def tracked():
    out = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=TOP, check=True,
                         capture_output=True, text=True).stdout
    return [f for f in out.splitlines() if os.path.isfile(os.path.join(TOP, f))]


def sync():
    """Make the copy equal to the tree. Objects of the first copy are those of the tree."""
    files = tracked()
    if not os.path.isdir(TREE):
        print("copying the tree", flush=True)
        for f in files:
            os.makedirs(os.path.dirname(os.path.join(TREE, f)), exist_ok=True)
            shutil.copy2(os.path.join(TOP, f), os.path.join(TREE, f))
        objects = os.path.join(TOP, "build", "release")
        if os.path.isdir(objects):
            shutil.copytree(objects, os.path.join(TREE, "build", "release"), symlinks=True)
        return
    for f in files:
        to = os.path.join(TREE, f)
        with open(os.path.join(TOP, f), "rb") as source:
            want = source.read()
        if os.path.exists(to):
            with open(to, "rb") as there:
                if there.read() == want:
                    continue
        os.makedirs(os.path.dirname(to), exist_ok=True)
        with open(to, "wb") as there:
            there.write(want)
        shutil.copymode(os.path.join(TOP, f), to)
    for folder in ("variants", "harness", "tests"):
        for path in glob.glob(os.path.join(TREE, folder, "**", "*.[ch]"), recursive=True):
            if os.path.relpath(path, TREE) not in files:
                os.remove(path)


def environment():
    env = dict(os.environ, LC_ALL="C")
    if os.path.isdir("/usr/lib/ccache"):
        env["PATH"] = "/usr/lib/ccache:" + env["PATH"]
    shared = os.path.join(TOP, "..", "shared")
    if "BENCH_SHARED" not in env and os.path.isdir(shared):
        env["BENCH_SHARED"] = os.path.abspath(shared)
    return env


def run(command, timeout):
    """Exit status and output; None if it took too long. Ends everything that it started."""
    p = subprocess.Popen(command, cwd=TREE, env=environment(), stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, text=True, errors="replace",
                         start_new_session=True)
    try:
        said = p.communicate(timeout=timeout)[0]
        return p.returncode, said
    except subprocess.TimeoutExpired:
        return None, ""
    finally:
        try:
            os.killpg(p.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        p.wait()


def build():
    command = ["make", f"CC={CC}", "tests"]
    p = subprocess.run(command, cwd=TREE, env=environment(), capture_output=True, text=True)
    return p.returncode == 0, p.stdout + p.stderr


def run_tests(test, timeout):
    """Names of the passed and the failed tests of a suite; failed is ["timeout"] if it hangs."""
    pattern = test if "/" in test else test + "/*"
    tap = os.path.join(TREE, "build", "release", "tests.tap")
    if os.path.exists(tap):
        os.remove(tap)
    p = run(["scripts/test.sh", "build/release", "--filter", pattern], timeout)
    if p[0] is None and p[1] == "":
        return [], ["timeout"]
    passed, failed = [], []
    for line in read(tap).splitlines() if os.path.exists(tap) else []:
        m = re.match(r"(not ok|ok) - (\S+)", line)
        if m and m[1] == "not ok":
            failed.append(m[2])
        elif m and "# SKIP" not in line:
            passed.append(m[2])
    if p[0] and not failed:
        failed.append("the test runner")
    return passed, failed


# ---- judging -----------------------------------------------------------------------------------


def tree_key():
    digest = hashlib.sha256()
    for f in sorted(tracked()):
        if f.split("/")[0] in ("variants", "harness", "tests", "Makefile") and f[-4:] != ".txt":
            with open(os.path.join(TOP, f), "rb") as source:
                digest.update(f.encode() + source.read())
    return digest.hexdigest()


def expect_sound(mutants, timeout):
    """Without a mistake every suite passes, so that a failure is the mutant's."""
    key, sound = tree_key(), {}
    if os.path.exists(SOUND):
        sound = json.loads(read(SOUND))
    tests = sorted({t for m in mutants for t in m.tests})
    ok, said = build()
    if not ok:
        stop(f"the tree does not build:\n{said}")
    for i, t in enumerate(tests, 1):
        if sound.get(t) == key:
            continue
        print(f"without a mistake: {i}/{len(tests)} {t}", flush=True)
        passed, failed = run_tests(t, timeout)
        if failed:
            stop(f"fails without a mistake: {' '.join(failed)}  -> mend it first")
        if not passed:
            stop(f"no test of {t} passes here  -> it cannot judge")
        sound[t] = key
        write(SOUND, json.dumps(sound, indent=1))


def judge(mutant, timeout):
    """What became of it, and the test that failed."""
    path = os.path.join(TREE, mutant.file)
    original = read(path)
    write(path, mutant.planted())
    try:
        ok, said = build()
        if not ok:
            return "does not compile", said.strip().splitlines()[-1] if said.strip() else ""
        for test in mutant.tests:
            failed = run_tests(test, timeout)[1]
            if failed:
                return "caught", failed[0]
        return "survived", ""
    finally:
        write(path, original)


# ---- reports -----------------------------------------------------------------------------------


def table(mutants, results):
    lines = ["| mutant | file | caught by |", "|---|---|---|"]
    for m in mutants:
        r = results.get(m.name, {})
        by = f"equivalent: {m.equivalent}" if m.equivalent else \
            r["by"] if r.get("outcome") == "caught" else f"**{r.get('outcome', 'not judged')}**"
        lines.append(f"| {m.name} | `{m.file}` | {by} |")
    return "\n".join(lines) + "\n"


def main():
    a = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    os.nice(19)  # an hour or more, beside other work
    a.add_argument("--only", action="append", metavar="NAME", help="these mutants; repeat for several")
    a.add_argument("--list", action="store_true", help="name them and whether they apply; build nothing")
    a.add_argument("--again", action="store_true", help="judge those that have been judged, too")
    a.add_argument("--timeout", type=int, default=300, metavar="S",
                   help="a suite that takes longer hangs, and has caught it (%(default)s)")
    o = a.parse_args()

    mutants = all_mutants()
    for name in o.only or []:
        if name not in [m.name for m in mutants]:
            stop(f"no mutant is called {name}  -> --list names them")
    chosen = [m for m in mutants if not o.only or m.name in o.only]
    unplaced = [m for m in chosen if m.planted() is None]
    results = json.loads(read(RESULTS)) if os.path.exists(RESULTS) else {}
    if o.list:
        for m in chosen:
            state = "does not apply" if m in unplaced else \
                "equivalent" if m.equivalent else results.get(m.name, {}).get("outcome", "-")
            print(f"{state:16} {m.name:44} {m.file}")
        return 1 if unplaced else 0

    sources = test_sources()
    planted = [m for m in chosen if m not in unplaced and not m.equivalent]
    keys = {m.name: key_of(m, sources) for m in planted}
    due = [m for m in planted if o.again or results.get(m.name, {}).get("key") != keys[m.name]]
    if due:
        sync()
        expect_sound(due, o.timeout)
    for i, m in enumerate(due, 1):
        start = time.monotonic()
        outcome, by = judge(m, o.timeout)
        results[m.name] = {"key": keys[m.name], "outcome": outcome, "by": by}
        write(RESULTS, json.dumps(results, indent=1))
        print(f"{i}/{len(due)} {m.name}: {outcome} {by} ({time.monotonic() - start:.0f} s)",
              flush=True)

    write(PAGE, table(mutants, results))
    verdicts = [(m, results[m.name]["outcome"]) for m in planted]
    for m in unplaced:
        print(f"does not apply: {m.name} ({m.where})  -> its old text must occur once in {m.file}")
    for m, outcome in verdicts:
        if outcome == "does not compile":
            print(f"does not compile: {m.name} ({m.where}): {results[m.name]['by']}")
        elif outcome == "survived":
            print(f"survived: {m.name} ({m.where})  -> a test, or equivalent and why")
    caught = sum(o == "caught" for _, o in verdicts)
    survived = sum(o == "survived" for _, o in verdicts)
    broken = len(verdicts) - caught - survived
    print(f"{len(verdicts)} planted, {caught} caught, {survived} survived, "
          f"{len(unplaced)} do not apply" + (f", {broken} do not compile" if broken else ""))
    return 1 if survived or unplaced or broken else 0


if __name__ == "__main__":
    sys.exit(main())
