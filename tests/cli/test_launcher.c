/* SPDX-License-Identifier: MIT
 *
 * --shard auto: the part that each launcher means, and what is no part. */
#include "harness/cli/launcher.h"
#include "tests/support/program.h"
#include "tests/support/tmp_folder.h"
#include "tests/support/words.h"

TestSuite(launcher, .init = folder_make, .fini = folder_remove, .timeout = 240);

static const char known[] =
    "SLURM_ARRAY_TASK_ID SLURM_ARRAY_TASK_COUNT SLURM_ARRAY_TASK_MIN SLURM_ARRAY_TASK_STEP "
    "SLURM_PROCID SLURM_NTASKS OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE PMI_RANK PMI_SIZE "
    "PARALLEL_SEQ PARALLEL_JOBSLOTS";

/* Only these are set: "NAME=VALUE NAME=VALUE". */
static void set_only(const char *words)
{
    for (char **name = words_of(known); *name; name++)
        unsetenv(*name);
    for (char **word = words_of(words); *word && **word; word++)
        cr_assert_eq(putenv(*word), 0);
}

Test(launcher, parts)
{
    static const struct {
        char set[200], part[8];
    } rows[] = {
        {"SLURM_ARRAY_TASK_ID=3 SLURM_ARRAY_TASK_COUNT=8 SLURM_ARRAY_TASK_MIN=1", "3/8"},
        {"SLURM_ARRAY_TASK_ID=3 SLURM_ARRAY_TASK_COUNT=8 SLURM_ARRAY_TASK_MIN=0", "4/8"},
        {"SLURM_ARRAY_TASK_ID=9 SLURM_ARRAY_TASK_COUNT=4 SLURM_ARRAY_TASK_MIN=5 "
         "SLURM_ARRAY_TASK_STEP=2",
         "3/4"},
        {"SLURM_PROCID=0 SLURM_NTASKS=2", "1/2"},
        {"SLURM_ARRAY_TASK_ID=2 SLURM_ARRAY_TASK_COUNT=2 SLURM_ARRAY_TASK_MIN=1 SLURM_PROCID=0 "
         "SLURM_NTASKS=1",
         "2/2"},
        {"SLURM_ARRAY_TASK_ID=2 PMI_RANK=2 PMI_SIZE=3", "3/3"},
        {"OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 PMI_RANK=0 PMI_SIZE=9", "2/2"},
        {"PMI_RANK=4 PMI_SIZE=5", "5/5"},
        {"PARALLEL_SEQ=1 PARALLEL_JOBSLOTS=4", "1/4"},
        {"PARALLEL_SEQ=4 PARALLEL_JOBSLOTS=4", "4/4"},
    };
    char shard[SHARD_TEXT];

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        set_only(rows[i].set);
        cr_assert_eq(launcher_shard(shard, &failure), OK, "%s: %s", rows[i].set, failure.msg);
        cr_expect_str_eq(shard, rows[i].part, "%s", rows[i].set);
    }
}

Test(launcher, no_parts)
{
    char shard[SHARD_TEXT];

    EACH_TEXT (word, "", "SLURM_PROCID=0", "SLURM_NTASKS=4", "PARALLEL_SEQ=1",
               "SLURM_PROCID= SLURM_NTASKS=4", "SLURM_PROCID=x SLURM_NTASKS=4",
               "SLURM_PROCID=4 SLURM_NTASKS=4", "SLURM_PROCID=0 SLURM_NTASKS=0",
               "SLURM_PROCID=-1 SLURM_NTASKS=4", "PARALLEL_SEQ=5 PARALLEL_JOBSLOTS=4",
               "PARALLEL_SEQ=0 PARALLEL_JOBSLOTS=4",
               "SLURM_ARRAY_TASK_ID=7 SLURM_ARRAY_TASK_COUNT=3 SLURM_ARRAY_TASK_MIN=1",
               ("SLURM_ARRAY_TASK_ID=2 SLURM_ARRAY_TASK_COUNT=3 SLURM_ARRAY_TASK_MIN=1 "
                "SLURM_ARRAY_TASK_STEP=2")) {
        set_only(word);
        cr_expect_eq(launcher_shard(shard, &failure), E_USAGE, "%s", word);
    }
    set_only("");
    cr_expect_eq(launcher_shard(shard, &failure), E_USAGE);
    for (char **name = words_of(known); *name; name++) /* _MIN and _STEP are not written out */
        if (!strstr(*name, "TASK_MIN") && !strstr(*name, "TASK_STEP"))
            cr_expect(strstr(failure.msg, *name), "%s not named: %s", *name, failure.msg);
}

#define AXES "list cases --seq 4,8,16 --mem 0 --workload attn --backend ref --format csv"

Test(launcher, of_a_command)
{
    struct ran r = must_shell("SLURM_PROCID=1 SLURM_NTASKS=3 $BENCH " AXES " --shard auto");
    struct ran by_hand = run_bench(AXES " --shard 2/3");

    cr_expect(r.out.n > 0);
    cr_expect_str_eq(r.out.data, by_hand.out.data);
    shell_exits(2, NULL, "SLURM_PROCID=1 SLURM_NTASKS= $BENCH " AXES " --shard auto");
}

/* A run is of its part, however that was said, and goes on as this part only. */
Test(launcher, goes_on)
{
#define RUN "--seq 4,8 --mem 0 --workload attn --backend ref --variant xl --ckpt none -q " TINY
    must_shell("PMI_RANK=1 PMI_SIZE=2 $BENCH " RUN "--shard auto");
    must_bench(RUN "--shard 2/2 --resume");
    must_shell("PMI_RANK=1 PMI_SIZE=2 $BENCH " RUN "--shard auto --resume");
    shell_exits(2, NULL, "PMI_RANK=0 PMI_SIZE=2 $BENCH " RUN "--shard auto --resume");
}
