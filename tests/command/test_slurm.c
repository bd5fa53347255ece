/* SPDX-License-Identifier: MIT
 *
 * bench slurm: the script says what was asked, and what Slurm would find out late is refused. That
 * Slurm takes it: tests/slurm. */
#include "tests/support/program.h"
#include "tests/support/tmp_folder.h"

TestSuite(slurm, .init = folder_make, .fini = folder_remove, .timeout = 240);

#define CASES "--variant xl --seq 4,8,16 --mem 0 --workload attn --backend ref "

Test(slurm, a_script)
{
    struct ran r = must_bench("slurm " CASES "--filter 'seq_tokens>=4' --filter 'mem_tokens<1' "
                              "--ckpt none --out 'a b' --nodes 2 --shards 3");
    HAS(r.out.data, "#!/bin/bash\n", "\n#SBATCH --array=1-3%2\n", "\n#SBATCH --exclusive\n",
        "\n#SBATCH --hint=nomultithread\n", "\n#SBATCH --requeue\n", "srun --cpu-bind=none ",
        " --shard auto ", "(--resume)", "--dependency=afterok:", "\nout=\"a b\" ", " --ckpt none",
        "seq_tokens>=4", "mem_tokens<1");
    cr_expect(!strstr(r.out.data, "--nodes 2") && !strstr(r.out.data, "--partial"));
    must_shell("$BENCH slurm " CASES
               "--partial >job.sh && bash -n job.sh && grep -q afterany job.sh && grep -q 'merge "
               ".* --partial' job.sh && grep -qF 'array=1-1%%1' job.sh");
}

Test(slurm, of_a_study)
{
    struct ran r = must_shell(
        "printf '%%s\\n' 'variants = vanilla, xl' 'size = tiny: --layers 1 --d-model 16 --heads 2' "
        "'corpus = copies: copy:lag=4,p=0.9,alphabet=8' 'rates = 0.01' 'steps = 2' 'train = --seq "
        "32 --mem 8 --batch 2' >tiny.study && $BENCH slurm tiny.study --backend ref --nodes 2");
    HAS(r.out.data, " study tiny.study --backend ref --shard auto ");
    bench_exits(2, NULL, "slurm tiny.study --nodes 3"); /* two groups */
    bench_exits(2, NULL, "slurm tiny.study --variant xl");
}

Test(slurm, refuses)
{
    EACH_TEXT (bad, "--nodes 4", "--nodes 2 --shards 1", "--shard 1/2", "--resume", "--dry-run",
               "--nodes 0", "--filter 'nope>1'", "--variant no-such-variant",
               "--save-baseline name") {
        struct ran r = bench_exits(2, NULL, "slurm " CASES "%s", bad);
        cr_expect_eq(r.out.n, 0, "%s: %s", bad, r.out.data);
    }
    bench_exits(7, NULL, "slurm none.study");
}
