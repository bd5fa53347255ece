/* SPDX-License-Identifier: MIT
 *
 * bench slurm: a job script for a sweep or a study over the nodes of a cluster. It only prints:
 * Slurm queues, places and restarts. One array task is one shard with a folder of its own, so that
 * a task that runs again goes on where it stopped; task 0, which waits for the others, joins them.
 */
#include "commands.h"
#include "harness/cli/option_table.h"
#include "harness/cli/option_words.h"
#include "harness/learn/study/study_jobs.h"

static bool is_study(const struct options *o) { return o->words.n > 0; }

/* Options of this command itself, or written by the script. */
static bool is_own(const struct option_spec *s)
{
    return s->at == offsetof(struct options, nodes) || s->at == offsetof(struct options, shards) ||
           s->at == offsetof(struct options, partial) || s->at == offsetof(struct options, out);
}

/* The command that a task runs, with the options of the command line and its @files. */
static void print_command(FILE *f, const struct options *o)
{
    word_print(f, o->argv[0], '\0');
    fputs(is_study(o) ? " study " : " sweep", f);
    if (is_study(o))
        word_print(f, o->words.v[0], '\0');
    for (int i = 0; i < option_count; i++)
        if (options_written(o, option_specs[i].name) && !is_own(&option_specs[i]))
            option_print(f, o, &option_specs[i]);
}

/* ---- what Slurm would find out late ------------------------------------------------------------
 */

static enum status check_sweep(const struct options *o, struct err *e)
{
    struct plan p;

    TRY(plan_asked(&p, o, e));
    const int n = p.n;
    plan_free(&p);
    return n > 0 ? OK : fail(e, E_USAGE, "no cases to measure  -> see: bench list cases");
}

static enum status check_study(const struct options *o, struct err *e)
{
    char path[FILE_PATH];
    struct study study = {0};
    struct study_plan plan = {0};

    (void)options_locate(path, FILE_PATH, o->words.v[0]);
    enum status st = study_read(&study, path, e);
    if (st == OK)
        st = study_plan_make(&plan, &study, o, e);
    study_plan_free(&plan);
    study_free(&study);
    return st;
}

static enum status physical_cores(int *cores, struct err *e)
{
    struct topo *t = NULL;
    struct topo_facts facts;

    TRY(topo_open(&t, NULL, e));
    topo_facts(t, &facts);
    *cores = max_int(1, facts.allowed_cores);
    topo_close(t);
    return OK;
}

/* The last shard of the plan as this machine would make it: are the options right, and are there as
 * many groups? */
static enum status check_task(const struct options *o, int shards, struct err *e)
{
    struct options task = {0};
    struct bytes line;
    FILE *const f = bytes_begin(&line);

    print_command(f, o);
    fprintf(f, " --shard %d/%d", shards, shards);
    enum status st = options_parse_again(&task, bytes_end(f, &line), e);
    if (st == OK)
        st = physical_cores(&task.default_threads, e);
    if (st == OK)
        st = is_study(o) ? check_study(&task, e) : check_sweep(&task, e);
    options_free(&task);
    free(line.data);
    return st;
}

/* ---- the script ---------------------------------------------------------------------------------
 */

static void print_head(const struct options *o, int shards, const char *folder)
{
    printf("#!/bin/bash\n"
           "# %d shard%s of a %s, %d at a time. Submit it with sbatch; again, and it goes on.\n"
           "# The first task submits task 0, which joins the shards; where nodes may not submit:\n"
           "#   sbatch --array=0 --dependency=%s:JOB THIS_FILE\n"
           "#SBATCH --job-name=bench\n"
           "#SBATCH --array=1-%d%%%d\n"
           "#SBATCH --nodes=1\n"
           "#SBATCH --ntasks=1\n"
           "#SBATCH --exclusive\n"
           "#SBATCH --hint=nomultithread\n"
           "#SBATCH --requeue\n"
           "#SBATCH --open-mode=append\n"
           "#SBATCH --output=bench-%%A_%%a.log\n"
           "#SBATCH --chdir=",
           shards, plural(shards), is_study(o) ? "study" : "sweep", min_int(o->nodes, shards),
           o->partial ? "afterany" : "afterok", shards, min_int(o->nodes, shards));
    word_print(stdout, folder, '\0');
    printf("\nset -eu\nout=");
    word_print(stdout, o->out, '\0');
    printf(" # on a file system that all nodes share\n\n");
}

static void print_body(const struct options *o)
{
    printf("if [ \"$SLURM_ARRAY_TASK_ID\" = 0 ]; then\n    ");
    word_print(stdout, o->argv[0], '\0');
    printf(" merge \"$out\"/shards/*/latest --out \"$out\"%s\n    ",
           o->partial ? " --partial" : "");
    word_print(stdout, o->argv[0], '\0');
    printf(" report \"$out/latest\" --out \"$out/report.html\" --force\n    exit\nfi\n");
    printf("if [ \"$SLURM_ARRAY_TASK_ID\" = \"$SLURM_ARRAY_TASK_MIN\" ] && "
           "[ \"${SLURM_RESTART_COUNT:-0}\" = 0 ]; then\n"
           "    sbatch --array=0 --dependency=%s:\"$SLURM_ARRAY_JOB_ID\" "
           "--kill-on-invalid-dep=yes \"$0\"\nfi\n",
           o->partial ? "afterany" : "afterok");
    printf("shard=$out/shards/$SLURM_ARRAY_TASK_ID\nresume=()\n"
           "[ ! -e \"$shard/latest\" ] || resume=(--resume)\n"
           "srun --cpu-bind=none ");
    print_command(stdout, o);
    printf(" --shard auto --out \"$shard\" \"${resume[@]}\"\n");
}

enum status cmd_slurm(struct options *o, int *code, struct err *e)
{
    const int shards = o->shards ? o->shards : o->nodes;
    char folder[PATH_MAX];

    if (shards < o->nodes)
        return fail(e, E_USAGE, "--shards %d are fewer than --nodes %d  -> give at least as many",
                    shards, o->nodes);
    TRY(check_task(o, shards, e));
    if (!getcwd(folder, sizeof(folder)))
        return file_fail(e, "find", "the current folder", errno);
    print_head(o, shards, folder);
    print_body(o);
    return OK;
}
