/* SPDX-License-Identifier: MIT
 *
 * Ranks of MPI; no other file calls MPI. A call that fails ends the job: MPI_ERRORS_ARE_FATAL is
 * the usual handler, and it prints the reason. */
#include "ranks.h"

#include "grow.h"

#include <mpi.h>

struct begun {
    MPI_Request *v;
    int n;
};

const char *ranks_library(void)
{
    static char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int n;

    MPI_Get_library_version(text, &n); /* allowed before MPI_Init */
    text[strcspn(text, ",\n")] = '\0';
    return text;
}

/* Without a launcher there is nobody to join, and MPI need not start. */
static bool launched(void)
{
    static const char *const set[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"};

    for (size_t i = 0; i < ARRAY_LEN(set); i++)
        if (getenv(set[i]))
            return true;
    return false;
}

static int count_nodes(void)
{
    MPI_Comm node;
    int local, first, nodes;

    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &local);
    MPI_Comm_free(&node);
    first = local == 0;
    MPI_Allreduce(&first, &nodes, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    return nodes;
}

enum status ranks_open(struct ranks *r, struct err *e)
{
    int given;

    *r = (struct ranks){.count = 1, .nodes = 1};
    if (!launched())
        return OK;
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &given) != MPI_SUCCESS ||
        given < MPI_THREAD_FUNNELED)
        return fail(e, E_UNSUPPORTED,
                    "this MPI does not support threads  -> use another build of MPI");
    MPI_Comm_rank(MPI_COMM_WORLD, &r->index);
    MPI_Comm_size(MPI_COMM_WORLD, &r->count);
    r->nodes = count_nodes();
    r->open = need_room(1, sizeof(struct begun));
    return OK;
}

void ranks_close(struct ranks *r)
{
    if (!r->open)
        return;
    free(((struct begun *)r->open)->v);
    free(r->open);
    r->open = NULL;
    MPI_Finalize();
}

void ranks_abort(const struct ranks *r, int code)
{
    if (r->open)
        MPI_Abort(MPI_COMM_WORLD, code);
}

void ranks_sum(const struct ranks *r, double *x, int n)
{
    if (r->open)
        MPI_Allreduce(MPI_IN_PLACE, x, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

bool ranks_any(const struct ranks *r, bool here)
{
    int any = here;

    if (r->open)
        MPI_Allreduce(MPI_IN_PLACE, &any, 1, MPI_INT, MPI_LOR, MPI_COMM_WORLD);
    return any;
}

void ranks_from_first(const struct ranks *r, void *x, size_t bytes)
{
    CHECK(bytes <= INT_MAX);
    if (r->open)
        MPI_Bcast(x, (int)bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
}

void ranks_gather(const struct ranks *r, const void *mine, size_t bytes, void *all)
{
    CHECK(bytes <= INT_MAX);
    if (r->open)
        MPI_Allgather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, MPI_COMM_WORLD);
    else
        memcpy(all, mine, bytes);
}

void ranks_add_begin(struct ranks *r, float *x, size_t n)
{
    enum { MOST = 1 << 30 }; /* MPI counts in int */
    struct begun *const b = r->open;

    for (size_t at = 0; b && at < n; at += MOST) {
        const int count = n - at < MOST ? (int)(n - at) : MOST;
        NEED(GROW(b->v, b->n, NULL) == OK);
        MPI_Iallreduce(MPI_IN_PLACE, x + at, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD,
                       &b->v[b->n++]);
    }
}

void ranks_add_poll(struct ranks *r)
{
    struct begun *const b = r->open;
    int all;

    if (b && b->n > 0)
        MPI_Testall(b->n, b->v, &all, MPI_STATUSES_IGNORE);
}

void ranks_add_end(struct ranks *r)
{
    struct begun *const b = r->open;

    if (b && b->n > 0)
        MPI_Waitall(b->n, b->v, MPI_STATUSES_IGNORE);
    if (b)
        b->n = 0;
}

enum status ranks_agree(const struct ranks *r, enum status st, struct err *e)
{
    int failed = st == OK ? r->count : r->index, first = failed;

    if (r->open)
        MPI_Allreduce(&failed, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (first == r->count || first == r->index)
        return st;
    return fail(e, E_CHILD, "rank %d failed", first);
}
