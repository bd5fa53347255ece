# SPDX-License-Identifier: MIT
"""Run bench and read its results; the standard library only.

    import bench
    run = bench.run("--variant xl,rope --mem 512 --quick")
    for row in run.ok():
        print(row["variant"], row["backend"], row["median_ns"])
    old = bench.load("results/20261121T060102Z-4f2c1ab")

A row is a dict of the columns that `bench list columns` explains: int, float or str, and None where
nothing was measured.
"""
import json
import os
import shlex
import subprocess
from dataclasses import dataclass, field

PROGRAM = os.environ.get("BENCH", "bench")


class BenchError(Exception):
    """bench could not do it: `code` is its exit code, the text is what it said."""

    def __init__(self, code, text):
        super().__init__(text.strip() or f"bench ended with {code}")
        self.code = code


@dataclass
class Run:
    """The tables of one run. `context` is the row of env.csv, `code` bench's exit code."""

    context: dict
    latency: list
    memory: list
    perplexity: list
    code: int = 0
    said: str = field(default="", repr=False)

    def ok(self, **columns):
        """The measured rows whose columns have these values: run.ok(backend="avx2")."""
        return [row for row in self.latency
                if row["status"] == "ok" and all(row[k] == v for k, v in columns.items())]

    def row(self, case_id):
        """Time and memory of one case as one dict."""
        found = {}
        for row in self.memory + self.latency:
            if row["case_id"].startswith(case_id):
                found.update(row)
        if not found:
            raise KeyError(case_id)
        return found


def _words(options):
    return shlex.split(options) if isinstance(options, str) else [str(word) for word in options]


def _call(words, program):
    return subprocess.run([program or PROGRAM, *words], capture_output=True, text=True, check=False)


def _read(done):
    try:
        document = json.loads(done.stdout)
    except ValueError:
        raise BenchError(done.returncode, done.stderr) from None
    return Run(document["context"], document["benchmarks"], document["memory"],
               document["perplexity"], done.returncode, done.stderr)


def run(options="", program=None, strict=True):
    """Measure the cases of these options (a string or a list). A failed or wrong case raises
    BenchError, unless strict is False: then its row says so, and Run.code is bench's exit code."""
    done = _call([*_words(options), "--format", "json"], program)
    result = _read(done)
    if strict and done.returncode != 0:
        raise BenchError(done.returncode, done.stderr)
    return result


def load(folder="results/latest", program=None):
    """Read the run in this folder, or a baseline by its name."""
    return _read(_call(["export", "--to", "json", os.fspath(folder)], program))


def cases(options="", program=None):
    """What run(options) would measure, without measuring: rows of `bench list cases`."""
    done = _call(["list", "cases", *_words(options), "--format", "jsonl", "-q"], program)
    if done.returncode != 0:
        raise BenchError(done.returncode, done.stderr)
    return [json.loads(line) for line in done.stdout.splitlines()]
