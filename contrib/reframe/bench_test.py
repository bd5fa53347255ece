# SPDX-License-Identifier: MIT
"""bench as a ReFrame (4) test: BENCH=$PWD/bench reframe -c contrib/reframe/bench_test.py -r"""
import os

import reframe as rfm
import reframe.utility.sanity as sn


@rfm.simple_test
class BenchTest(rfm.RunOnlyRegressionTest):
    variant = parameter(["xl", "rope"])
    mem = parameter([0, 128])
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    executable = os.environ.get("BENCH", "bench")

    @run_before("run")
    def choose_case(self):
        self.executable_opts = [f"--variant {self.variant} --mem {self.mem} --quick",
                                "--ckpt none -q --format fom --out results"]

    @sanity_function
    def all_ok(self):
        return sn.assert_found(r"^bench: all ok$", self.stdout)

    # Of several backends the fastest.
    @performance_function("ns")
    def time(self):
        return sn.min(sn.extractall(r"^fom \S+ time (\S+) ns$", self.stdout, 1, float))

    @performance_function("bytes")
    def arena(self):
        return sn.min(sn.extractall(r"^fom \S+ arena (\S+) bytes$", self.stdout, 1, float))
