# Not run: written from the documentation of Ramble; goes to applications/bench/ of a repository of it.
# SPDX-License-Identifier: MIT
from ramble.appkit import *


class Bench(ExecutableApplication):
    """Compare attention variants on CPUs."""

    name = "bench"

    executable("measure",
               "{bench_path} --variant {variant} --mem {mem} --quick --ckpt none -q "
               "--format fom --out {experiment_run_dir}/results",
               use_mpi=False)
    workload("context", executables=["measure"])
    workload_variable("bench_path", default="bench", description="The program", workloads=["context"])
    workload_variable("variant", default="xl", description="As bench list variants names it",
                      workloads=["context"])
    workload_variable("mem", default="128", description="Tokens of context", workloads=["context"])

    figure_of_merit_context("case", regex=r"^fom (?P<case>\S+) ", output_format="{case}")
    figure_of_merit("time", fom_regex=r"^fom (?P<case>\S+) time (?P<value>\S+) ns$",
                    group_name="value", units="ns", contexts=["case"])
    figure_of_merit("arena", fom_regex=r"^fom (?P<case>\S+) arena (?P<value>\S+) bytes$",
                    group_name="value", units="bytes", contexts=["case"])
    success_criteria("all_ok", mode="string", match=r"^bench: all ok$", file="{log_file}")
