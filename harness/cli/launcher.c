/* SPDX-License-Identifier: MIT
 *
 * The table of launchers. */
#include "launcher.h"

/* One that says only a rank, or only a size, is none. What is not set is 0 for `first` and 1 for
 * `step`. */
static const struct launcher {
    const char *rank, *size;
    const char *first, *step; /* NULL: ranks are 0, 1, 2 ... */
    int origin;               /* the first rank, where no variable says it */
    const char *variables;
} launchers[] = {
    {"SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT", "SLURM_ARRAY_TASK_MIN",
     "SLURM_ARRAY_TASK_STEP", 0, "SLURM_ARRAY_TASK_ID with SLURM_ARRAY_TASK_COUNT, _MIN and _STEP"},
    {"SLURM_PROCID", "SLURM_NTASKS", NULL, NULL, 0, "SLURM_PROCID with SLURM_NTASKS"},
    /* Open MPI */
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", NULL, NULL, 0,
     "OMPI_COMM_WORLD_RANK with OMPI_COMM_WORLD_SIZE"},
    /* MPICH, Intel MPI */
    {"PMI_RANK", "PMI_SIZE", NULL, NULL, 0, "PMI_RANK with PMI_SIZE"},
    /* GNU parallel */
    {"PARALLEL_SEQ", "PARALLEL_JOBSLOTS", NULL, NULL, 1, "PARALLEL_SEQ with PARALLEL_JOBSLOTS"},
};

static bool is_set(const char *name)
{
    const char *const text = getenv(name);

    return text && *text;
}

/* The number that a variable holds; `absent` if it is not set, or NULL. */
static enum status read_number(int *to, const char *name, int absent, struct err *e)
{
    int end = 0;

    const char *const text = name ? getenv(name) : NULL;

    *to = absent;
    if (!text || !*text)
        return OK;
    if (sscanf(text, "%9d%n", to, &end) != 1 || text[end] || *to < 0)
        return fail(e, E_USAGE,
                    "--shard auto: %s is \"%.40s\", which is not a number  -> correct it, or write "
                    "--shard I/N",
                    name, text);
    return OK;
}

static enum status none_found(struct err *e)
{
    char looked[480] = "";

    for (size_t i = 0; i < ARRAY_LEN(launchers); i++)
        text_append(looked, sizeof(looked), "%s%s", i ? ", " : "", launchers[i].variables);
    return fail(
        e, E_USAGE,
        "--shard auto: no launcher found, none of these variables is set: %s  -> write --shard I/N",
        looked);
}

enum status launcher_shard(char shard[SHARD_TEXT], struct err *e)
{
    const struct launcher *l = launchers, *const end = launchers + ARRAY_LEN(launchers);
    int rank, size, first, step;

    while (l < end && !(is_set(l->rank) && is_set(l->size)))
        l++;
    if (l == end)
        return none_found(e);
    enum status st = read_number(&rank, l->rank, 0, e);
    if (st == OK)
        st = read_number(&size, l->size, 1, e);
    if (st == OK)
        st = read_number(&first, l->first, l->origin, e);
    if (st == OK)
        st = read_number(&step, l->step, 1, e);
    if (st != OK)
        return st;
    const int off = rank - first;
    if (size < 1 || step < 1 || off < 0 || off % step || off / step >= size)
        return fail(e, E_USAGE,
                    "--shard auto: %s %d is not one of %d parts from %d in steps of %d  -> use an "
                    "array without gaps, or write --shard I/N",
                    l->rank, rank, size, first, step);
    snprintf(shard, SHARD_TEXT, "%d/%d", off / step + 1, size);
    return OK;
}
