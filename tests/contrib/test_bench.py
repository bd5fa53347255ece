#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""contrib/python/bench.py against the program in $BENCH, in a folder of its own."""
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "contrib", "python"))
import bench  # noqa: E402

TINY = ("--variant xl --backend ref --workload attn --seq 4,8 --mem 0 --d-model 32 --heads 2 "
        "--threads 1 --max-time 0.003 --min-samples 3 --warmup-ms 0 --block-ms 0.5 --out r")


class Bench(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder.name)

    def test_a_run_and_its_tables(self):
        run = bench.run(TINY)
        self.assertEqual([row["seq_tokens"] for row in run.ok()], [4, 8])
        self.assertEqual(run.code, 0)
        self.assertGreater(run.latency[0]["median_ns"], 0)
        self.assertIsNone(run.latency[0]["p99_ns"])
        self.assertTrue(run.context["cpu_model"])
        self.assertEqual(run.ok(seq_tokens=8)[0]["backend"], "ref")
        both = run.row(run.latency[0]["case_id"])
        self.assertGreater(both["arena_peak_bytes"], 0)
        self.assertEqual(both["median_ns"], run.latency[0]["median_ns"])
        again = bench.load("r/latest")
        self.assertEqual(again.latency, run.latency)
        self.assertEqual(again.memory, run.memory)
        with self.assertRaises(KeyError):
            run.row("zzz")

    def test_a_plan(self):
        plan = bench.cases(TINY.split())
        self.assertEqual([case["seq_tokens"] for case in plan], [4, 8])
        self.assertFalse(os.path.exists("r"))

    def test_mistakes(self):
        for call in (lambda: bench.run("--variant nosuch"), lambda: bench.cases("--seq 0"),
                     lambda: bench.load("nowhere")):
            with self.assertRaises(bench.BenchError) as caught:
                call()
            self.assertIn(caught.exception.code, (2, 7))
            self.assertIn("  -> ", str(caught.exception))


if __name__ == "__main__":
    unittest.main()
