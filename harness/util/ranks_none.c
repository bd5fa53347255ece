/* SPDX-License-Identifier: MIT
 *
 * ranks.h in a build without MPI: a training has one rank, which agrees with itself. */
#include "ranks.h"

const char *ranks_library(void) { return NULL; }

enum status ranks_open(struct ranks *r, struct err *e)
{
    static const char *const sizes[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"};

    *r = (struct ranks){.count = 1, .nodes = 1};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        const char *const text = getenv(sizes[i]);
        if (text && atoi(text) > 1)
            return fail(
                e, E_UNSUPPORTED,
                "%s is %.20s, but this program was built without MPI  -> build it with make MPI=1",
                sizes[i], text);
    }
    return OK;
}

void ranks_close(struct ranks *r) { (void)r; }
void ranks_abort(const struct ranks *r, int code) { (void)r, (void)code; }
void ranks_sum(const struct ranks *r, double *x, int n) { (void)r, (void)x, (void)n; }
bool ranks_any(const struct ranks *r, bool here) { return here; }
void ranks_from_first(const struct ranks *r, void *x, size_t bytes) {}
void ranks_gather(const struct ranks *r, const void *mine, size_t bytes, void *all)
{
    memcpy(all, mine, bytes);
}
void ranks_add_begin(struct ranks *r, float *x, size_t n) { (void)r, (void)x, (void)n; }
void ranks_add_poll(struct ranks *r) { (void)r; }
void ranks_add_end(struct ranks *r) { (void)r; }
enum status ranks_agree(const struct ranks *r, enum status st, struct err *e) { return st; }
